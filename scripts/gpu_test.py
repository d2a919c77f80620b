#!/usr/bin/env python3
"""Runs everything that needs a GPU, in parts that can be run one by one (by scripts/gpu_test.sh).

Each step has its own time limit and prints one verdict line, whatever the earlier steps gave. OUT gets PART.log with all
output and summary.json with every verdict. A bound is reported with its figure and limit, and does not fail a run: speed
is measured, not tested. Models and plans stay in --cache, so that a later call on the same machine finds them.

Exit code: 0 nothing failed, 1 a test or command failed, 2 usage.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "gpu"
CGC = BUILD / "bin" / "cgc"
ENTRIES = ("encode_image", "encode_text", "forward")
# Bounds of the back-to-back milliseconds of ViT-L-14 in fp16 on an H200.
ASKED = {("encode_text", 1): 0.36, ("encode_text", 16): 0.60,
         ("encode_image", 1): 0.90, ("encode_image", 8): 2.65, ("encode_image", 64): 18.0}
TIMED = {"encode_text": (1, 16), "encode_image": (1, 8, 64)}
FEW = {"encode_text": "1,16", "encode_image": "1,8"}
PARTS = {}


def part(function):
    """Registers a part under the name of its function, whose docstring is its help."""
    PARTS[function.__name__] = function
    return function


class Session:
    """Runs steps and collects their verdicts."""

    def __init__(self, out, cache):
        self.out, self.cache, self.part = Path(out), Path(cache), ""
        self.started, self.verdicts = time.monotonic(), []
        for folder in (self.out, self.cache):
            folder.mkdir(parents=True, exist_ok=True)

    def verdict(self, name, word, **fields):
        """Prints a line and adds a row to summary.json; `word` is ok, FAILED, met, MISSED or skipped."""
        row = {"part": self.part, "step": name, "verdict": word, **fields}
        self.verdicts.append(row)
        more = " ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                        for key, value in fields.items())
        print(f"[{time.monotonic() - self.started:4.0f}s] {self.part}: {name}: {word} {more}".rstrip())
        (self.out / "summary.json").write_text(json.dumps(self.verdicts, indent=1) + "\n")

    def bound(self, name, figure, limit, unit):
        self.verdict(name, "met" if figure <= limit else "MISSED", figure=float(figure),
                     limit=float(limit), unit=unit)

    def run(self, name, command, limit, expect=0, says=(), quiet=False, env=None):
        """Runs a command for at most `limit` seconds. Returns its stdout, or None if it did not behave as
        expected. `says`: texts that stderr must contain. `quiet`: prints no line on success."""
        command, began = [str(word) for word in command], time.monotonic()
        out = err = ""
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       cwd=ROOT, env={**os.environ, **(env or {})})
            try:
                out, err = process.communicate(timeout=limit)
                why = "" if process.returncode == expect else f"exit {process.returncode}"
            except subprocess.TimeoutExpired:
                process.kill()
                why = f"not done in {limit} s"
                # A process that hangs in the driver does not die and gives no output.
                out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            why += ", nor killed in 10 s"
        except OSError as error:
            why = str(error)
        missing = [text for text in says if text not in err]
        if not why and missing:
            why = f"does not say {missing[0]!r}"
        seconds = round(time.monotonic() - began, 2)
        with open(self.out / f"{self.part}.log", "a", encoding="utf-8") as log:
            log.write(f"\n== {name} ({seconds} s): {' '.join(command)}\n{out}{err}")
        if why:
            self.verdict(name, "FAILED", why=why, seconds=seconds)
            for line in (out + err).strip().splitlines()[-6:]:
                print("    " + line)
            return None
        if not quiet:
            self.verdict(name, "ok", seconds=seconds)
        return out

    def json(self, name, command, limit, **more):
        text = self.run(name, [*command, "--json"], limit, quiet=True, **more)
        return None if text is None else json.loads(text)

    def model(self, name):
        """The path of a model such as ViT-L-14-fp16, or of a config in tests/data, exported if it is missing."""
        path = self.cache / f"{name}.pt"
        if path.exists():
            return path
        model, precision = name.rsplit("-", 1)
        config = ROOT / "tests" / "data" / f"{model}.json"
        what = ["--config", config] if config.exists() else ["--model", model]
        done = self.run(f"export {name}", [sys.executable, "scripts/export_openclip.py", *what, "--precision",
                                           precision, "--device", "cuda", "--out", path], 150)
        return None if done is None else path

    def plan(self, model, kind, batches, entries=(), more=(), size=224, context=77):
        """The path of the plan of an exported model, compiled if it is missing."""
        source = self.model(model)
        if source is None:
            return None
        path = self.cache / f"{model}.{kind}.cgplan"
        if path.exists():
            return path
        dtype = {"fp16": "f16", "bf16": "bf16", "fp32": "f32"}[model.rsplit("-", 1)[1]]
        command = [CGC, "compile", source, "-o", path, "--target", "cuda", "--batch",
                   ",".join(map(str, batches)), *more]
        if entries:
            command += ["--entry", ",".join(entries)]
        if not entries or "encode_image" in entries:
            command += ["--input", f"image={dtype}[1,3,{size},{size}]"]
        if not entries or "encode_text" in entries:
            command += ["--input", f"text=i64[1,{context}]"]
        done = self.run(f"compile {model} {kind}", command, 150)
        return None if done is None else path

    def timed_plans(self, model, more=(), kind=""):
        """A plan of each tower with the timed buckets, by entry."""
        plans = {entry: self.plan(model, f"{entry}{kind}", batches, [entry], more)
                 for entry, batches in TIMED.items()}
        return {entry: plan for entry, plan in plans.items() if plan}

    def bench(self, name, plan, limit=120, more=()):
        """Benchmarks a plan; the median milliseconds of each bucket: {(entry, batch): {system: back-to-back}}."""
        result = self.json(name, [CGC, "bench", plan, *more], limit)
        if result is None:
            return {}
        figures = {}
        for bucket in result["buckets"]:
            row = {"cgc": bucket["back_to_back_ms"]["median"], "latency": bucket["latency_ms"]["median"],
                   "submit": bucket["submit_ms"]["median"]}
            for peer in bucket.get("peers", ()):
                if "back_to_back_ms" in peer:
                    row[peer["system"]] = peer["back_to_back_ms"]["median"]
            batch = int(bucket["inputs"].split("[")[1].split(",")[0])
            figures[bucket["entry"], batch] = row
        self.verdict(name, "ok", gpu_bytes=result["gpu_bytes"], load_ms=result["load_ms"],
                     **{f"{entry}:{batch}": "/".join(f"{k} {v:.4f}" for k, v in row.items())
                        for (entry, batch), row in figures.items()})
        return figures


def asked(session, model, figures):
    """Checks the bounds in ASKED, if this is their model."""
    for case, limit in ASKED.items():
        if model == "ViT-L-14-fp16" and case in figures:
            session.bound(f"{case[0]} batch {case[1]} back-to-back", figures[case]["cgc"], limit, "ms")


def gtest(session, name, program, filters, limit):
    """Runs the tests that match `filters`; fails if one skips or none matches."""
    text = session.run(name, [BUILD / "bin" / program, f"--gtest_filter={filters}", "--gtest_brief=1"], limit)
    if text is None:
        return
    if "[  SKIPPED ]" in text:
        session.verdict(f"{name}: skipped tests", "FAILED", why="a GPU machine skips nothing")
    if not re.search(r"^\[=+\] [1-9][0-9]* tests? from ", text, re.MULTILINE):
        session.verdict(f"{name}: no tests", "FAILED", why=f"no test of {program} matches '{filters}'")


@part
def conformance(session, models):
    """kernels, executors, edges, capture, plug-in op and tuner against references"""
    gtest(session, "kernels of GEMMs", "cgc_conformance_tests", "*Gemm*", 420)
    gtest(session, "all other conformance tests", "cgc_conformance_tests", "-*Gemm*", 420)


@part
def ops(session, models):
    """each lowered op on the GPU against LibTorch on the CPU"""
    gtest(session, "lowered ops", "cgc_numerics_tests", "*EqualsTheCpuForCuda*", 280)


@part
def accuracy(session, models):
    """each model compared with LibTorch; stream, graph and plain edges bit for bit"""
    for model in models:
        plan = session.plan(model, "small", (1, 3, 4, 16))
        if not plan:
            continue
        session.run(f"{model} compared", [CGC, "compare", plan, session.model(model)], 120)
        for batch in (3, 16):  # 16 images of ViT-L-14 have more than 1536 tokens: persistent kernels.
            bit_equal(session, model, plan, batch)


def bit_equal(session, model, plan, batch, more=()):
    ways = {"stream": ["--executor", "stream"], "graph": [], "plain": ["--no-pdl"]}
    for entry in ENTRIES:
        inputs = [word for name in ("image", "text") if entry in ("forward", f"encode_{name}")
                  for word in ("--input", f"{name}=random:7")]
        outputs = {}
        for way, options in ways.items():
            path = session.cache / f"run-{way}.npy"
            for old in session.cache.glob(f"run-{way}*.npy"):
                old.unlink()
            session.run(f"{model} {entry} {way}", [CGC, "run", plan, "--entry", entry, "--batch", batch, *inputs,
                                                   "--output", path, *options, *more], 60, quiet=True)
            outputs[way] = [file.read_bytes() for file in sorted(session.cache.glob(f"run-{way}*.npy"))]
        equal = outputs["stream"] and outputs["stream"] == outputs["graph"] == outputs["plain"]
        session.verdict(f"{model} {entry} batch {batch}: stream, graph and plain edges are bit-equal",
                        "ok" if equal else "FAILED")


@part
def bench(session, models):
    """the timed buckets as compiled, LibTorch in the same run"""
    for model in models:
        for entry, plan in session.timed_plans(model).items():
            figures = session.bench(f"{model} {entry}", plan, 240, ["--against", session.model(model)])
            asked(session, model, figures)
            for case, row in figures.items():
                if "captured" in row:
                    session.bound(f"{case[0]} batch {case[1]} against LibTorch captured", row["cgc"],
                                  row["captured"], "ms")


@part
def tune(session, models):
    """the timed plans tuned, compared and timed"""
    for model in models:
        for entry, plan in session.timed_plans(model).items():
            tuned = session.cache / f"{model}.{entry}.tuned.cgplan"
            if session.run(f"{model} {entry} tuned", [CGC, "tune", plan, "-o", tuned], 280) is None:
                continue
            asked(session, model, session.bench(f"{model} {entry} tuned, timed", tuned))
            session.run(f"{model} {entry} tuned, compared", [CGC, "compare", tuned, session.model(model)], 120)


def small_plan(session, kind, batches=(1, 3), more=()):
    return session.plan("small-fp16", kind, batches, more=more, size=64, context=24)


@part
def sanitizer(session, models):
    """compute-sanitizer on a small model, an allocation for each buffer"""
    few = small_plan(session, "apart", more=["--no-reuse"])
    # More than 1536 rows select persistent kernels, which store with TMA. initcheck does not see TMA stores.
    many = small_plan(session, "many-apart", (96,), ["--no-reuse"])
    checker = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not few or not many:
        return
    for tool in ("memcheck", "initcheck", "racecheck"):
        cases = [(few, 3, "stream"), (few, 3, "graph")]
        if tool != "initcheck":
            cases += [(many, 96, "stream"), (many, 96, "graph")]
        for entry in ("encode_text", "encode_image"):
            for plan, batch, executor in cases:
                session.run(f"{tool} {entry} {executor} batch {batch}",
                            [checker, "--tool", tool, "--error-exitcode", 99, CGC, "run", plan, "--entry", entry,
                             "--batch", batch, "--input", f"{entry.removeprefix('encode_')}=random:1", "--executor",
                             executor, "--separate-buffers"], 100)


@part
def replays(session, models):
    """1000 replays with changing inputs equal 1000 stream runs; run neither allocates nor waits"""
    gtest(session, "replays, memory and waiting", "cgc_conformance_tests",
          "*1000*:*RunReturnsWhileTheStreamIsBusy*:*FreeTheirMemory*", 120)


@part
def bounds(session, models):
    """start, memory, capture, size, submit, batch 3 and 5"""
    model = "ViT-L-14-fp16"
    first_vector(session, model)
    plan = session.plan(model, "buckets", (1, 2, 3, 4, 5, 8, 16), ["encode_text", "encode_image"])
    if plan:
        memory_and_batches(session, plan)
    size = sum((BUILD / "lib" / name).stat().st_size for name in ("libcgc_runtime.so",))
    session.bound("libcgc_runtime.so, kernels included", size / 1e6, 30, "MB")


def first_vector(session, model):
    plan = session.plan(model, "first", (1,), ["encode_text"])
    if not plan:
        return
    seconds = []
    for i in range(6):
        began = time.monotonic()
        done = session.run("start to first text vector", [CGC, "run", plan, "--entry", "encode_text", "--input",
                                                          "text=random:1", "--output", session.cache / "first.npy"],
                           30, quiet=True)
        if done is not None and i > 0:  # The first one warms the page cache.
            seconds.append(time.monotonic() - began)
    if seconds:
        session.bound("process start to its end with the first text vector", statistics.median(seconds), 0.6, "s")


def memory_and_batches(session, plan):
    inspected = session.json("inspect", [CGC, "inspect", plan], 30)
    result = session.json("all buckets", [CGC, "bench", plan, "--samples", "30"], 200)
    if not inspected or not result:
        return
    own = inspected["weight_bytes"] + inspected["arena_bytes"]
    session.bound("device memory beyond weights and arena, buckets 1 to 16", (result["gpu_bytes"] - own) / 2**20, 64,
                  "MiB")
    session.bound("longest capture of a bucket", max(b["capture_ms"] for b in result["buckets"]), 10, "ms")
    session.verdict("host submit", "ok", ms=max(b["submit_ms"]["median"] for b in result["buckets"]))
    times = {(b["entry"], int(b["inputs"].split("[")[1].split(",")[0])): b["back_to_back_ms"]["median"]
             for b in result["buckets"]}
    for entry in ("encode_text", "encode_image"):
        for batch, above in ((3, 4), (5, 8)):
            session.bound(f"{entry} batch {batch} against batch {above}", times[entry, batch], times[entry, above], "ms")


@part
def bf16(session, models):
    """ViT-L-14 in bf16 within 3 % of fp16"""
    halves = {dtype: {} for dtype in ("fp16", "bf16")}
    for turn in (1, 2):
        for dtype, figures in halves.items():
            for entry, plan in session.timed_plans(f"ViT-L-14-{dtype}").items():
                few = ["--batch", FEW[entry]]
                for case, row in session.bench(f"{dtype} {entry}, turn {turn}", plan, more=few).items():
                    figures.setdefault(case, []).append(row["cgc"])
    for case, values in halves["bf16"].items():
        if case in halves["fp16"]:
            session.bound(f"bf16 by fp16, {case[0]} batch {case[1]}", min(values) / min(halves["fp16"][case]), 1.03, "x")


@part
def fp32(session, models):
    """ViT-L-14 in fp32 and tf32 against LibTorch captured"""
    for kind, more in (("", ()), (".tf32", ("--precision", "tf32"))):
        for entry, plan in session.timed_plans("ViT-L-14-fp32", more, kind).items():
            name = f"{kind.strip('.') or 'fp32'} {entry}"
            figures = session.bench(name, plan, 240, ["--batch", FEW[entry], "--against", session.model("ViT-L-14-fp32")])
            for case, row in figures.items():
                if "captured" in row:
                    session.bound(f"{name} batch {case[1]} against LibTorch captured", row["cgc"], row["captured"], "ms")


@part
def conversions(session, models):
    """--precision of an fp32 model and --arch sm_80 compared on the GPU"""
    model = "ViT-B-32-fp32"
    for kind, more in (("to-fp16", ["--precision", "fp16"]), ("to-bf16", ["--precision", "bf16"]),
                       ("to-tf32", ["--precision", "tf32"]), ("sm80", ["--arch", "sm_80"]),
                       ("sm80-fp16", ["--arch", "sm_80", "--precision", "fp16"])):
        plan = session.plan(model, kind, (1, 3), more=more)
        if plan:
            session.run(f"{kind} compared", [CGC, "compare", plan, session.model(model)], 100)
            bit_equal(session, kind, plan, batch=3)


@part
def families(session, models):
    """a small model of each family in every precision compared with LibTorch (gpu_families.sh: in real size)"""
    folder = session.cache / "families"
    if session.run("export", [sys.executable, "tests/e2e/make_families.py", folder], 200) is None:
        return
    kinds = {"fp32": [], "O0": ["-O0"], "tf32": ["--precision", "tf32"], "fp16": ["--precision", "fp16"],
             "bf16": ["--precision", "bf16"], "sm80-fp16": ["--arch", "sm_80", "--precision", "fp16"]}

    def check(model, kind):
        plan = folder / f"{model.stem}.{kind}.cgplan"
        inputs = [word for line in model.with_suffix(".inputs").read_text().split() for word in ("--input", line)]
        if session.run(f"compile {plan.stem}", [CGC, "compile", model, "-o", plan, "--target", "cuda", "--batch", "1,3",
                                                *inputs, *kinds[kind]], 150, quiet=True) is not None:
            session.run(f"{plan.stem} compared", [CGC, "compare", plan, model], 150)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(check, model, kind) for model in sorted(folder.glob("*.pt")) for kind in kinds]:
            future.result()


@part
def plugin(session, models):
    """examples/plugin on the GPU: compile, compare, profile and tune with an op library"""
    passes, library = (BUILD / "lib" / f"libexample_{name}.so" for name in ("passes", "ops"))
    if not library.exists():
        session.verdict("examples/plugin", "skipped", why="pack_for_gpu.sh found no build of it")
        return
    with_ops = ["--op-library", library]
    model = "tiny_quickgelu-fp32"
    plan = session.plan(model, "plugin", (1, 3), more=["--pass-plugin", passes, *with_ops], size=32, context=16)
    if not plan:
        return
    session.run("compare", [CGC, "compare", plan, session.model(model), *with_ops], 100)
    bit_equal(session, "plug-in", plan, 3, with_ops)
    trace = session.cache / "trace.json"
    profile = session.json("profile", [CGC, "profile", plan, "--entry", "encode_text", "--trace", trace, *with_ops], 60)
    if profile:
        json.loads(trace.read_text())
        session.verdict("profile and its trace", "ok")
    tuned = session.cache / "plugin.tuned.cgplan"
    session.run("tune", [CGC, "tune", plan, "-o", tuned, *with_ops], 100)
    session.run("tuned, compared", [CGC, "compare", tuned, session.model(model), *with_ops], 100)


@part
def serving(session, models):
    """a session under load: no copies, both towers in one graph, mixed batches, swapped weights, memory"""
    model = "ViT-L-14-fp16"
    both = session.plan(model, "both", (1,), ["encode_image", "encode_text"],
                        ["--entry-group", "both=encode_image+encode_text"])
    if both:
        towers(session, both)
    plan = session.plan(model, "serving", (1, 4, 16, 64), ["encode_image"])
    if not plan:
        return
    other = session.cache / "other.cgplan"
    shutil.copyfile(plan, other)
    load = [CGC, "bench", plan, "--threads", 4, "--tensors", "device", "--mix", "1:70,4:20,64:10"]
    for contexts in range(1, 5):
        name = f"mixed load, contexts {contexts}"
        result = session.json(name, [*load, "--contexts", contexts, "--seconds", 5], 60)
        if result:
            session.verdict(name, "ok", of_back_to_back=result["of_back_to_back"],
                            latency=str(result["load"]["latency_ms"]), **figures_of(result["load"]))
            if contexts == 1:
                session.bound("back to back by mixed load, rows/s", 1 / result["of_back_to_back"], 1 / 0.95, "x")
    result = session.json("swaps under load", [*load, "--contexts", 1, "--seconds", 8, "--swap", other], 90)
    if result:
        swap = result["swap"]
        session.verdict("swaps under load", "ok" if swap["load"]["failures"] == 0 else "FAILED", swaps=swap["swaps"],
                        **figures_of(swap["load"]))
        session.bound("p99 with swaps by p99 without", swap["p99_ratio"], 2, "x")
    result = session.json("memory", [CGC, "bench", plan, "--memory"], 100)
    for stage in result["stages"] if result else ():
        session.bound(f"memory, {stage['stage']}, measured by predicted", stage["measured_bytes"] / stage["rounded_bytes"],
                      1.01, "x")
    session.run("doctor", [CGC, "doctor", plan], 60)


def figures_of(load):
    return {name: load[name] for name in ("requests_per_s", "rows_per_s", "failures", "waits", "padded_rows")}


def towers(session, plan):
    """Both towers as one entry against each alone, and device tensors in place against copies."""
    for name, more in (("in place", ()), ("copied", ("--copies",))):
        figures = session.bench(f"towers, {name}", plan, more=["--samples", "100", *more])
        if not more and ("both", 1) in figures:
            slower = max(figures[entry, 1]["cgc"] for entry in ("encode_image", "encode_text"))
            session.bound("both towers in one graph by the slower one", figures["both", 1]["cgc"] / slower, 1.1, "x")


@part
def python(session, models):
    """the Python package with torch tensors of the GPU"""
    if not (BUILD / "py" / "cgc").exists():
        session.verdict("the Python package", "skipped", why="pack_for_gpu.sh found no build of it")
        return
    plans = session.cache / "python-plans"
    plans.mkdir(exist_ok=True)
    # The package of the wheel looks for no library outside of it but cuBLASLt and LibTorch.
    if session.run("make the plans", [sys.executable, "tests/python/make_plans.py", plans], 100) is not None:
        session.run("tests with torch", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--plans", plans,
                                         "tests/python/test_gpu.py", "tests/python/test_torch.py"], 200)


@part
def bad_input(session, models):
    """out of device memory, no cuBLASLt, a GPU that is not there"""
    model = "ViT-B-32-fp32"
    huge = session.plan(model, "huge", (50000,), ["encode_text"], ["--no-reuse"])
    if huge:
        session.run("out of device memory", [CGC, "bench", huge], 100, expect=7,
                    says=["for weights", "for the arena", "for inputs and outputs", "free"])
    plan = session.plan(model, "first", (1,), ["encode_text"])
    if plan:
        run = [CGC, "run", plan, "--entry", "encode_text", "--input", "text=random:1"]
        session.run("no GPU", run, 60, expect=6, says=["GPU"], env={"CUDA_VISIBLE_DEVICES": ""})
        session.run("afterwards all is well", run, 60)
        if "libcublasLt.so.13" in (session.run("the loader's libraries", ["ldconfig", "-p"], 20, quiet=True) or ""):
            session.verdict("no cuBLASLt", "skipped", why="the loader finds one by itself")
        else:
            session.run("no cuBLASLt", run, 60, expect=6, says=["libcublasLt.so.13"], env={"LD_LIBRARY_PATH": ""})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawTextHelpFormatter,
                                     epilog="parts:\n" + "\n".join(f"  {name:12} {function.__doc__}"
                                                                   for name, function in PARTS.items()))
    parser.add_argument("out", nargs="?", default=BUILD / "out", help="folder for logs and summary.json")
    parser.add_argument("models", nargs="*", default=["ViT-L-14-fp16"],
                        help="for accuracy, bench and tune: MODEL-PRECISION [ViT-L-14-fp16]")
    parser.add_argument("--part", action="append", choices=PARTS, help="just this part; may be repeated")
    parser.add_argument("--cache", default="/tmp/cgc-gpu-test", help="folder for models and plans, about 12 GB")
    args = parser.parse_args()
    session = Session(args.out, args.cache)
    session.part = "machine"
    session.run("GPU", ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 20)
    session.run("cgc", [CGC, "--version"], 20)
    for name in args.part or PARTS:
        session.part = name
        PARTS[name](session, args.models)
    failed = sum(row["verdict"] == "FAILED" for row in session.verdicts)
    missed = sum(row["verdict"] == "MISSED" for row in session.verdicts)
    print(f"done: {failed} failed, {missed} bounds missed, {len(session.verdicts)} verdicts in {args.out}/summary.json")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

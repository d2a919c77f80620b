#!/usr/bin/env python3
"""Records the results of the family tests and writes docs/supported-models.md from them.

    scripts/run_tests.py --filter '*Families*' && scripts/supported_models.py
    scripts/supported_models.py --check

The tests leave their results in build/release/e2e/results; RECORD keeps those that the page shows. Prints the CPU time of compiling each
model in real size, which neither has; writes nothing if one takes more than CPU_SECONDS. A missing result is an error and appears as
`not run` on the page. --check writes nothing and fails if the page is not that of RECORD, or if a result is missing.
"""
import json
import math
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build/release/e2e/results"
RECORD = ROOT / "tests/data/supported_models.json"
PAGE = ROOT / "docs/supported-models.md"
COLUMNS = {"small": "small", "fused": "small, fused ops", "real": "real size", "scripted": "scripted, small",
           "scripted_real": "scripted, real size"}
CPU_SECONDS = 20  # Not wall time, which depends on the load of the machine.

HEAD = f"""\
<!-- Which models compile and match LibTorch on target=cpu. Written by scripts/supported_models.py from the results of the tests. -->
# Supported models

Each figure is the result of a test in `tests/e2e/families_test.cpp`: the largest relative L2 to LibTorch over the outputs of all entries at batch 1 and 3, fp32, `target=cpu`,
rounded up to a power of ten. A test fails above 1e-5, and above 1e-6 where the result was equal. Weights are random; nothing is downloaded.
`tests/data/supported_models.json` has the figures of the run that wrote this page, at commit {{commit}} on {{processor}}; another processor gives others in the last bits.

A small model is the same configuration with fewer and narrower layers (`tests/e2e/make_families.py`): with the same classes and ops, tested in seconds. *Fused ops* are the ops that `-O1` selects for cuda.
The tests of the real sizes have the ctest labels `families` and, but for a few, `large`. A scripted module is compared with LibTorch's run of the same module; a small one, also with that of the traced module.
Small scripted modules are compiled with the default passes and with fused ops, those in real size only with fused ops.

Compiling a model, in real size too, takes at most {CPU_SECONDS} s of CPU time, for all entries and both batches together: if a compilation takes longer, the script does not write this page.
"""
TAIL = """
CoCa's `forward` returns a dict, whose keys become the names of the outputs. `roberta-ViT-B-32` has a text tower of transformers, made from a configuration, as is `bert`, an encoder.
`resnet50`, `vit_b_16` and `swin_t` are torchvision's. [scripted-modules.md](scripted-modules.md) describes the scripted code that compiles.
"""


def families():
    """The names in kFamilies, in order, with the columns that their tests fill; a third value of 0 means that no test scripts the model."""
    source = (ROOT / "tests/e2e/families.h").read_text().split("kFamilies[] = {", 1)[1].split("};", 1)[0]
    rows = re.findall(r'{"([^"]+)", \d+, (\d+)}', source)
    return {name: [column for column in COLUMNS if scripted != "0" or "scripted" not in column] for name, scripted in rows}


def figure(result):
    error = result["relative_l2"]
    return "equal" if error == 0 else f"1e{math.ceil(math.log10(error))}"


def listing(entries):
    return ", ".join(f"`{entry}`" for entry in sorted(entries))


def processor():
    match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    newest = next((name for name in ("avx512f", "avx2", "sse4_2") if flags and name in flags[1].split()), "no vector extension")
    return f"{match[1] if match else 'an unknown processor'} ({newest})"


def measured():
    """The results of the last run in the form of RECORD. Prints compile times."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    slow = [f"{r['family']} ({COLUMNS[r['column']]}): {r['compile_cpu_seconds']:.1f} s" for r in results if r["compile_cpu_seconds"] > CPU_SECONDS]
    if slow:
        sys.exit(f"supported_models: compiling takes more than {CPU_SECONDS} s of CPU time: {', '.join(slow)}; {PAGE.name} is not written")
    for r in results:
        seconds = r.pop("compile_cpu_seconds")
        if r["column"] == "real":
            print(f"{r['family']:20} compiled in {seconds:.1f} s of CPU time")
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return {"commit": commit, "processor": processor(), "results": results}


def page_of(record):
    """The page without the section of scripts/model_zoo.py, and the names of missing results."""
    results = {(r["family"], r["column"]): r for r in record["results"]}
    missing, notes = [], []
    lines = [f"| model | entries | {' | '.join(COLUMNS.values())} |", "|---" * (2 + len(COLUMNS)) + "|"]
    for name, columns in families().items():
        found = {column: results[name, column] for column in COLUMNS if (name, column) in results}
        missing += [f"{name} ({COLUMNS[column]})" for column in columns if column not in found]
        entries = {entry for column, result in found.items() if "scripted" not in column for entry in result["entries"]}
        notes += [f"- `{name}`, {COLUMNS[column]}: {listing(result['entries'])}" for column, result in found.items()
                  if "scripted" in column and set(result["entries"]) != entries]
        cells = [figure(found[column]) if column in found else "not run" if column in columns else ""
                 for column in COLUMNS]
        lines.append(f"| `{name}` | {listing(entries)} | {' | '.join(cells)} |")
    if notes:
        lines += ["", "The entries are those of the traced modules. A scripted module with other entries is compared in all of its own:", "", *notes]
    return "\n".join([HEAD.format(**record), *lines, TAIL]), missing


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    record = json.loads(RECORD.read_text()) if check else measured()
    page, missing = page_of(record)
    old, heading, zoo = PAGE.read_text().partition("\n## Architectures")  # Written by scripts/model_zoo.py.
    if check and page != old:
        sys.exit(f"supported_models: {PAGE.name} is not the page of {RECORD.name}; scripts/supported_models.py writes both")
    if not check:
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        PAGE.write_text(page + heading + zoo)
    if missing:
        sys.exit(f"supported_models: no result of {', '.join(missing)}; run scripts/run_tests.py --filter '*Families*'")


main()

#!/usr/bin/env python3
"""Runs the tests of a build: many cases of a gtest program in one process, several processes at a time.

    scripts/run_tests.py                                  all tests of build/release
    scripts/run_tests.py --filter '*Gradients*gelu*'      the cases that match one of the patterns
    scripts/run_tests.py --preset asan --entry cgc_ir_tests
    scripts/run_tests.py --exclude-label families         without the models in real size
    scripts/run_tests.py --settings all --label libtorch  under every processor setting of LibTorch

The tests are the entries of ctest. An entry with the label `gtest` is split into shards, whose cases run in a random order
(--seed repeats it). If a case ends its process, or runs for more than its limit, it fails, and the other cases of its shard run in
a new process. Each process has a folder of its own for temporary files. ctest and gtest-parallel start a process for each case, most of
which load LibTorch. The results are in build/tests/PRESET: results.json, and the output of every failed case. After an interruption, a
run with the same arguments, sources and programs goes on where the last one was.
"""
import argparse
import contextlib
import fcntl
import fnmatch
import hashlib
import json
import os
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS_OF_A_CASE = {"families": 1500, None: 600}  # By label. A case that takes longer hangs.
SECONDS_TO_LIST = 60  # The cases of a program.
SECONDS_TO_DRAIN = 10  # What a process has printed, after its end.
MOST_CASES = 100  # Of a shard.
# Of an entry. ctest lists WORKING_DIRECTORY always, but no test depends on it: all run in the current folder.
PROPERTIES = {"LABELS", "TIMEOUT", "ENVIRONMENT", "RUN_SERIAL", "FIXTURES_SETUP", "FIXTURES_REQUIRED", "WORKING_DIRECTORY"}
# What makes LibTorch choose other kernels. Entries with the label `libtorch` run a sample of their cases under each.
SETTINGS = [f"ATEN_CPU_CAPABILITY={value}" for value in ("default", "avx2", "avx512")] + [
    f"MKL_ENABLE_INSTRUCTIONS={value}" for value in ("SSE4_2", "AVX2", "AVX512")] + ["ONEDNN_MAX_CPU_ISA=AVX2"]
# CPU flags that a setting needs. Without them LibTorch ends in SIGILL.
NEEDED_FLAGS = {"ATEN_CPU_CAPABILITY=avx2": {"avx2", "fma"},
                "ATEN_CPU_CAPABILITY=avx512": {"avx512f", "avx512bw", "avx512vl", "avx512dq", "fma"}}
NOT_LISTED = "(its cases)"  # In place of the cases of a program that does not list them.
AT_EXIT = "(at exit of a shard)"  # In place of a case, if a process failed after its cases had passed.
SAMPLE = 1 / 50  # The part of the cases that runs under one setting.

BEGIN = re.compile(r"\[ RUN      \] (\S+)$")
# A sanitizer report that does not end the process at once.
FINDING = re.compile(r"(WARNING: ThreadSanitizer|ERROR: \w+Sanitizer): |^\S+:\d+:\d+: runtime error: ")
END = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([\w/.]+).*\((\d+) ms\)$")


@dataclass
class Case:
    """A gtest case, or a whole entry of another kind."""
    name: str
    where: str = ""  # "file:line" of the test.


@dataclass
class Entry:
    """An entry of ctest, possibly under one of SETTINGS."""
    name: str
    command: list
    labels: list
    environment: list
    seconds: float  # The limit of a case.
    serial: bool
    sets_up: list  # Names of fixtures.
    requires: list
    cases: list = field(default_factory=list)
    problem: str = ""  # Why the program does not list its cases.
    running: int = 0
    finished: Counter = field(default_factory=Counter)  # Results by status.
    spent: float = 0

    @property
    def is_gtest(self):
        return "gtest" in self.labels

    def rerun(self, cases):
        """The command that runs these cases alone."""
        command = list(map(str, self.command))
        if self.problem:
            return f"scripts/run_tests.py --entry {self.name}"
        if self.is_gtest:
            command = [c for c in command if not c.startswith("--gtest_filter=")] + [f"--gtest_filter={':'.join(c.name for c in cases)}"]
        if command[0].startswith(str(ROOT)):
            command[0] = os.path.relpath(command[0], ROOT)
        return shlex.join([*self.environment, *command])


def entries_of(preset):
    """The entries that ctest would run for this preset."""
    listing = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        sys.exit(f"run_tests: ctest cannot list the tests of preset '{preset}': {listing.stderr.strip()}; build it first")
    tests = json.loads(listing.stdout)["tests"]
    if not tests:  # ctest has none in an empty folder.
        sys.exit(f"run_tests: preset '{preset}' has no tests: cmake --preset {preset} && cmake --build --preset {preset}")
    for test in tests:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        # ctest lists an entry's fixtures as DEPENDS too.
        if unknown := properties.keys() - PROPERTIES - ({"DEPENDS"} if "FIXTURES_REQUIRED" in properties else set()):
            sys.exit(f"run_tests: {test['name']} has properties that only ctest knows: {', '.join(sorted(unknown))}")
        labels = properties.get("LABELS", [])
        limit = next((SECONDS_OF_A_CASE[l] for l in labels if l in SECONDS_OF_A_CASE), SECONDS_OF_A_CASE[None])
        if "gtest" not in labels:
            limit = properties.get("TIMEOUT", limit)
        yield Entry(test["name"], test.get("command", []), labels, properties.get("ENVIRONMENT", []), limit, properties.get("RUN_SERIAL", False),
                    properties.get("FIXTURES_SETUP", []), properties.get("FIXTURES_REQUIRED", []))


def flags_of_processor(cpuinfo=Path("/proc/cpuinfo")):
    """Those of an x86; none of another processor."""
    flags = re.search(r"^flags\s*: (.*)$", cpuinfo.read_text(), re.MULTILINE)
    return set(flags[1].split()) if flags else set()


def settings_for(flags):
    """Those of SETTINGS that a processor with these flags can run under."""
    return [setting for setting in SETTINGS if NEEDED_FLAGS.get(setting, set()) <= flags]


def environment_of(entry):
    return os.environ | dict(variable.split("=", 1) for variable in entry.environment)


def list_cases(entry):
    """The cases of an entry in the order of the program. One that stands for all, and a problem, if it does not list them."""
    def unlisted(problem):
        entry.problem = f"{problem}\n"
        return [Case(NOT_LISTED)]

    if not entry.command or not shutil.which(entry.command[0]):
        return unlisted("the program is not there: build the preset first")
    if not entry.is_gtest:
        return [Case(entry.name)]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        try:
            run = subprocess.run([*entry.command, "--gtest_list_tests", f"--gtest_output=json:{file.name}"], env=environment_of(entry),
                                 capture_output=True, text=True, errors="replace", timeout=SECONDS_TO_LIST)
        except subprocess.TimeoutExpired:
            return unlisted(f"the program does not list its cases in {SECONDS_TO_LIST} s")
        if run.returncode:
            return unlisted(f"the program does not list its cases: {run.stderr.strip() or run.returncode}")
        cases = []
        for suite in json.load(file)["testsuites"]:
            for test in suite["testsuite"]:
                where = re.sub(r"^.*?/(?=tests/)", "", test["file"]) + f":{test['line']}"
                cases.append(Case(f"{suite['name']}.{test['name']}", where))
    names = Counter(case.name for case in cases)
    bad = [name for name, count in names.items() if count > 1 or not re.fullmatch(r"[\w/]+\.[\w/]+", name)]
    if bad:
        return unlisted(f"name each parameter once, in letters and digits: {', '.join(bad[:5])}")
    return [case for case in cases if ".DISABLED_" not in f".{case.name}"]


def shuffled(cases, rng):
    """The cases suite by suite, in a random order."""
    suites = {}
    for case in cases:
        suites.setdefault(case.name.split(".")[0], []).append(case)
    groups = list(suites.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    return [case for group in groups for case in group]


def key_of(preset=None):
    """A hash of the sources, of the packages of .venv, and of the preset's programs and libraries. None outside of a clone."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
    if not (ROOT / ".git").exists():  # A folder in another clone, perhaps.
        return None
    try:
        untracked = git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
        # No test reads an untracked file of the root itself: a log of the run, say.
        parts = [git("rev-parse", "HEAD"), git("diff", "HEAD", "--binary")] + [
            name + (ROOT / name.decode()).read_bytes() for name in untracked if b"/" in name]
        files = [file for folder in ("bin", "lib") if preset for file in (ROOT / "build" / preset / folder).iterdir()]
        files += (ROOT / ".venv").glob("lib/python3*/site-packages/*.dist-info/RECORD")  # pip writes one for each package.
        for file in sorted(files):
            parts.append(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}".encode())
    except (OSError, subprocess.CalledProcessError):
        return None
    return hashlib.sha256(b"".join(parts)).hexdigest()


def results_in(journal, key):
    """What an interrupted run with this key has written down; nothing if it had another key. A line that a full disk or the end of
    the machine has damaged is left out."""
    header, *lines = journal.read_text(errors="replace").split("\n") if journal.exists() else [None]
    results = []
    for line in lines if header == key else []:
        with contextlib.suppress(ValueError):
            result = json.loads(line)
            if isinstance(result, dict) and result.keys() >= {"entry", "case", "status", "seconds"}:
                results.append(result)
    return results


class Run:
    def __init__(self, folder, entries, options):
        self.folder, self.entries, self.seed, self.jobs = folder, entries, options.seed, options.jobs
        self.lock = threading.Condition()
        self.results = []
        self.broken_fixtures = set()
        self.interrupted = False
        self.processes = set()
        self.journal = None

    # Scheduling.

    def is_ready(self, entry):
        missing = {fixture for other in self.entries if other.cases or other.running for fixture in other.sets_up}
        return not missing.intersection(entry.requires)

    def take(self):
        """The next shard: an entry and some of its cases. None at the end."""
        with self.lock:
            while not self.interrupted:
                waiting = [e for e in self.entries if e.cases]
                if not waiting:
                    return None
                busy = any(e.running for e in self.entries)
                for entry in waiting:
                    alone = entry.serial and any(not e.serial and e.cases for e in self.entries)
                    if alone or not self.is_ready(entry) or (entry.serial and busy):
                        continue
                    # Whatever --jobs is: the seed alone decides which cases share a process.
                    size = min(MOST_CASES, max(1, len(entry.cases) // 4))
                    cases, entry.cases = entry.cases[:size], entry.cases[size:]
                    entry.running += 1
                    return entry, cases
                self.lock.wait()
            return None

    def work(self):
        while (shard := self.take()) is not None:
            entry, cases = shard
            begin = time.monotonic()
            try:
                if entry.problem:
                    self.broken_fixtures.update(entry.sets_up)
                    self.add(entry, cases[0], "failed", 0, entry.problem)
                elif broken := self.broken_fixtures.intersection(entry.requires):
                    for case in cases:
                        self.add(entry, case, "failed", 0, f"fixture '{', '.join(broken)}' failed\n")
                else:
                    (self.run_gtest if entry.is_gtest else self.run_command)(entry, cases)
            except Exception as error:  # A full disk, say. The other shards go on.
                for case in cases:
                    self.add(entry, case, "failed", 0, f"run_tests: {error}\n")
            with self.lock:
                entry.running -= 1
                entry.spent += time.monotonic() - begin
                if not entry.cases and not entry.running and not self.interrupted:
                    self.say(f"{entry.name}: {totals(entry.finished)}, {entry.spent:.0f} s")
                self.lock.notify_all()

    # Processes.

    @contextlib.contextmanager
    def started(self, entry, command):
        """A process, and a folder for its temporary files, which goes with it however it ends."""
        with tempfile.TemporaryDirectory(dir=self.folder / "tmp", ignore_cleanup_errors=True) as temporary:
            process = subprocess.Popen(command, env=environment_of(entry) | {"TMPDIR": temporary}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, start_new_session=True)
            with self.lock:
                self.processes.add(process)
            try:
                yield process
            finally:
                self.stop(process)  # With the processes that it leaves.
                process.stdout.close()
                process.wait()
                with self.lock:
                    self.processes.discard(process)

    @staticmethod
    def lines_of(process):
        """The lines that a process prints until it ends. A process that it leaves may hold the pipe open, or print for ever."""
        line, ended = bytearray(), None
        while ended is None or time.monotonic() - ended < SECONDS_TO_DRAIN:
            if ended is None and process.poll() is not None:
                ended = time.monotonic()
            if not select.select([process.stdout], [], [], 0.2)[0]:
                if ended is not None:
                    break
                continue
            chunk = process.stdout.read(65536)
            if not chunk:
                break
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                line += part
                yield line.decode(errors="replace") + "\n"
                line.clear()
            line += rest
        if line:
            yield line.decode(errors="replace")
        process.wait()

    def stop(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def run_command(self, entry, cases):
        begin, late = time.monotonic(), threading.Event()
        with self.started(entry, entry.command) as process:
            timer = threading.Timer(entry.seconds, lambda: (late.set(), self.stop(process)))
            timer.start()
            output = "".join(self.lines_of(process))
            timer.cancel()
        status = "passed" if process.returncode == 0 else "timeout" if late.is_set() else "failed"
        if status != "passed":
            self.broken_fixtures.update(entry.sets_up)
        self.add(entry, cases[0], status, time.monotonic() - begin, output)

    def run_gtest(self, entry, cases):
        """Runs the cases, in as many processes as it takes."""
        left = {case.name: case for case in cases}
        while left and not self.interrupted:
            begun = self.run_shard(entry, left)
            if not begun and not self.interrupted:  # The program does not come to its first case.
                suites = {name.split(".")[0] for name in left}
                if len(suites) > 1:  # The set-up of one suite may have ended the process.
                    for suite in sorted(suites):
                        self.run_gtest(entry, [case for case in left.values() if case.name.split(".")[0] == suite])
                    return
                for case in list(left.values()):
                    self.add(entry, case, "failed", 0, begun.output or "the program did not begin this case\n")
                return

    @dataclass
    class Begun:
        count: int = 0
        output: str = ""

        def __bool__(self):
            return self.count > 0

    def run_shard(self, entry, left):
        """Runs the cases that are left in one process and removes those that have a result."""
        command = [c for c in entry.command if not c.startswith("--gtest_filter=")]
        command += [f"--gtest_filter={':'.join(left)}", "--gtest_shuffle", f"--gtest_random_seed={self.seed}", "--gtest_color=no"]
        begun, current, lines, began, late = self.Begun(), None, [], time.monotonic(), threading.Event()
        ran, any_failed = [], False
        done = threading.Event()

        def watch(process):
            while not done.wait(1):
                if time.monotonic() - began > entry.seconds:
                    late.set()
                    self.stop(process)
                    return
        with self.started(entry, command) as process:
            threading.Thread(target=watch, args=[process], daemon=True).start()
            for line in self.lines_of(process):
                if (match := BEGIN.search(line)) and match[1] in left:
                    current, lines, began = left[match[1]], [], time.monotonic()
                    begun.count += 1
                elif current and (match := END.search(line)) and match[2] == current.name:
                    status = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[match[1]]
                    any_failed |= status == "failed"  # By gtest, which then ends with status 1.
                    if status == "passed" and any(FINDING.search(text) for text in lines):
                        status = "failed"
                    self.add(entry, current, status, int(match[3]) / 1000, "".join(lines))
                    ran.append(left.pop(current.name))
                    current, lines, began = None, [], time.monotonic()
                else:
                    lines.append(line)
            done.set()
        if self.interrupted:
            return begun
        code = process.returncode
        how = (f"no result after {entry.seconds} s" if late.is_set() else
               f"the process ended by signal {signal.Signals(-code).name}" if code < 0 else f"the process ended with exit status {code}")
        status = "timeout" if late.is_set() else "crashed"
        begun.output = "".join(lines) + f"{how}\n"
        if current:
            self.add(entry, current, status, time.monotonic() - began, begun.output)
            left.pop(current.name)
        elif begun and (left or code != (1 if any_failed else 0)):
            # Between two cases, or at the exit of the process: a leak, say. The cases that have run may share the fault.
            self.add(entry, Case(AT_EXIT), status, 0, begun.output, ran)
        return begun

    # Results.

    def add(self, entry, case, status, seconds, output, rerun=None):
        """Records a result. `rerun`: the cases that may show the failure again, if they are not `case` alone."""
        result = {"entry": entry.name, "case": case.name, "where": case.where, "status": status, "seconds": round(seconds, 3),
                  "labels": entry.labels}
        if status == "skipped":
            result["reason"] = " ".join(line.strip() for line in output.splitlines()[1:] if line.strip())
        with self.lock:
            if self.interrupted:
                return
            self.results.append(result)
            entry.finished[status] += 1
            file = self.folder / "failed" / (re.sub(r"[^\w.]+", "_", f"{entry.name}.{case.name}") + ".log")
            try:
                if self.journal:
                    self.journal.write(json.dumps(result) + "\n")
                    self.journal.flush()
                if status in ("passed", "skipped"):
                    return
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("a" if case.name == AT_EXIT else "w") as log:  # Several shards of an entry may end badly.
                    log.write(output)
            except OSError as error:  # A full disk. The results are still printed.
                print(f"run_tests: cannot write below {self.folder.relative_to(ROOT)}: {error.strerror}", file=sys.stderr)
                if status in ("passed", "skipped"):
                    return
            lines = output.splitlines()
            if len(lines) > 60:
                lines = lines[:40] + [f"... {len(lines) - 55} lines ..."] + lines[-15:]
            self.say(f"{status.upper()}: {entry.name} {case.name}", *(f"  {line}" for line in lines), f"  in {case.where or entry.name}; all output: "
                     f"{file.relative_to(ROOT)}", f"  to run it alone: {entry.rerun(rerun or [case])}")

    def say(self, *lines):
        """Prints the lines. Where nobody can read them, the run ends as if it were interrupted."""
        try:
            print(*lines, sep="\n", flush=True)
        except OSError as error:
            cannot_print(error)
            self.interrupt()

    def interrupt(self, *_):
        self.interrupted = True
        for process in list(self.processes):
            self.stop(process)

    def reuse(self, known):
        """Takes what has passed before an interruption. A fixture runs again if a case that is left requires it."""
        passed = {(r["entry"], r["case"]): r for r in known if r["status"] in ("passed", "skipped")}
        at_exit = {r["entry"] for r in known if r["case"] == AT_EXIT}
        required = set()
        for entry in sorted(self.entries, key=lambda e: bool(e.sets_up)):
            if entry.name not in at_exit and not required.intersection(entry.sets_up):
                reused = [passed[entry.name, case.name] for case in entry.cases if (entry.name, case.name) in passed]
                self.results += reused
                entry.finished += Counter(result["status"] for result in reused)
                entry.cases = [case for case in entry.cases if (entry.name, case.name) not in passed]
            if entry.cases:
                required.update(entry.requires)

    def go(self, journal=None, key=None, keeps_journal=False, keeps_failed=False):
        """Runs everything. With a key, takes the results of an interrupted run from its journal, if it has the same key."""
        if key and (known := results_in(journal, key)):
            self.reuse(known)
            if self.results:
                print(f"going on after an interruption: {len(self.results)} cases have run", flush=True)
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        for old in [] if keeps_failed else (self.folder / "failed").glob("*.log"):
            old.unlink()
        if key:
            new = journal.with_name(f"{journal.name}.new")  # A full disk must not cost the old one.
            self.journal = new.open("w")
            self.journal.write("\n".join([key, *map(json.dumps, self.results)]) + "\n")
            self.journal.flush()
            new.replace(journal)
        signal.signal(signal.SIGINT, self.interrupt)
        signal.signal(signal.SIGTERM, self.interrupt)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # By nohup.
            signal.signal(signal.SIGHUP, self.interrupt)
        threads = [threading.Thread(target=self.work) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
                if self.interrupted:
                    self.interrupt()
                    with self.lock:
                        self.lock.notify_all()
        if self.journal:
            with contextlib.suppress(OSError):  # A full disk, as add() has said.
                self.journal.close()
        if self.interrupted:
            print("interrupted: run it again to go on", file=sys.stderr)
            sys.exit(130)
        if key and not keeps_journal:
            journal.unlink()


def cannot_print(error):
    """Says on stderr that stdout is closed or full, and writes no more to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"run_tests: cannot print the results: {error.strerror}", file=sys.stderr)


def totals(statuses):
    failed = sum(count for status, count in statuses.items() if status not in ("passed", "skipped"))
    return f"{statuses['passed']} passed, {failed} failed, {statuses['skipped']} skipped"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--filter", action="append", default=[], metavar="PATTERN", help="only cases that match a pattern, such as 'All/Gelu*'")
    parser.add_argument("--file", action="append", default=[], help="only cases of this test source, or below this folder")
    parser.add_argument("--entry", action="append", default=[], metavar="PATTERN", help="only these entries of ctest")
    parser.add_argument("--label", action="append", default=[], help="only entries with this label")
    parser.add_argument("--exclude-label", action="append", default=[], help="no entries with this label")
    parser.add_argument("--settings", choices=["none", "sample", "all", *SETTINGS], default="none", metavar="SETTING",
                        help="the processor settings of LibTorch, which entries with the label `libtorch` run under: none but the machine's, a "
                             "sample of the cases under each, all cases under each, or all under one")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time")
    parser.add_argument("--seed", type=int, default=None, help="of the random order")
    parser.add_argument("--add", action="store_true", help="keep the results of the last run, and add those of this one")
    parser.add_argument("--keep-journal", action="store_true", help="a second run with these arguments runs only what has not passed; "
                        "scripts/test.sh removes the journal at its end")
    parser.add_argument("--key", action="store_true", help="print a hash of the sources and packages, and run nothing; fails outside of a clone")
    options = parser.parse_args()
    if options.key:
        key = key_of()
        sys.exit(print(key) if key else "run_tests: this folder is no clone")
    if options.jobs < 1:
        parser.error("--jobs takes a number above 0")
    selection = json.dumps(vars(options) | {"jobs": None})
    if options.seed is None:
        options.seed = random.randrange(1, 99999)
    folder = ROOT / "build/tests" / options.preset

    everything = list(entries_of(options.preset))
    for pattern in options.entry:
        if not any(fnmatch.fnmatchcase(e.name, pattern) for e in everything):
            sys.exit(f"run_tests: no entry of ctest matches '{pattern}'")
    entries = [e for e in everything
               if (not options.entry or any(fnmatch.fnmatchcase(e.name, p) for p in options.entry))
               and (not options.label or set(options.label) & set(e.labels)) and not set(options.exclude_label) & set(e.labels)]
    begin = time.monotonic()
    for entry in entries:
        entry.cases = list_cases(entry)
    if options.filter or options.file:
        for entry in [e for e in entries if e.problem]:
            print(f"{entry.name} is not searched: {entry.problem.strip()}", file=sys.stderr)
        entries = [e for e in entries if not e.problem]
    for entry in entries:
        entry.cases = [case for case in entry.cases
                       if (not options.filter or any(fnmatch.fnmatchcase(case.name, p) for p in options.filter))
                       and (not options.file or any(case.where.startswith(f"{f}:") or case.where.startswith(f"{f.rstrip('/')}/")
                                                    for f in options.file))]
    if options.settings != "none":
        possible = settings_for(flags_of_processor())
        if options.settings in SETTINGS and options.settings not in possible:
            parser.error(f"this processor cannot run under {options.settings}")
        if missing := [setting for setting in SETTINGS if setting not in possible]:
            print(f"this processor cannot run under {', '.join(missing)}", file=sys.stderr)
        machine = entries if options.settings == "sample" else []
        entries = machine + [
            Entry(f"{e.name} {setting}", e.command, e.labels, [*e.environment, setting, f"CGC_TEST_VARIANT={setting}"], e.seconds, e.serial, [], e.requires,
                  [c for c in e.cases if options.settings != "sample" or zlib.crc32(f"{setting} {c.name}".encode()) < SAMPLE * 2**32])
            for setting in ([options.settings] if options.settings in SETTINGS else possible) for e in entries
            if "libtorch" in e.labels and "families" not in e.labels and not e.problem]
    # What another entry requires comes with it.
    needed = {fixture for e in entries if e.cases for fixture in e.requires}
    for entry in everything:
        if needed.intersection(entry.sets_up) and not any(e.sets_up == entry.sets_up and e.cases for e in entries):
            entry.cases = [Case(entry.name)]
            entries.insert(0, entry)
    entries = [entry for entry in entries if entry.cases]
    for entry in entries:  # The order does not depend on the other entries.
        entry.cases = shuffled(entry.cases, random.Random(f"{options.seed} {entry.name}"))
    count = sum(len(entry.cases) for entry in entries)
    if not count:
        sys.exit("run_tests: no case matches")
    # Long cases first, so that none runs alone at the end.
    entries.sort(key=lambda e: (not e.sets_up, e.is_gtest, "families" not in e.labels, not e.requires))
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / ".lock").open("w")  # Held until the process ends.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another run of this preset's tests", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    results = folder / "results.json"
    try:
        before = list(json.loads(results.read_text())["cases"]) if options.add and results.exists() else []
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"run_tests: {results.relative_to(ROOT)} is damaged ({error}); run without --add")
    results.unlink(missing_ok=True)
    wanted = {(entry.name, case.name): entry.labels for entry in entries for case in entry.cases}
    print(f"preset {options.preset}: {count} cases, {options.jobs} at a time, order of seed {options.seed}", flush=True)
    run = Run(folder, entries, options)
    # Each selection has a journal of its own.
    key = None if options.add else key_of(options.preset)
    run.go(folder / f"journal-{zlib.crc32(selection.encode()):08x}", key and f"{key} {selection}", options.keep_journal, options.add)
    never_run = wanted.keys() - {(r["entry"], r["case"]) for r in run.results}
    run.results += [{"entry": entry, "case": case, "where": "", "status": "never run", "seconds": 0, "labels": wanted[entry, case]}
                    for entry, case in sorted(never_run)]
    seconds = time.monotonic() - begin
    full_disk = None
    try:
        results.write_text(json.dumps({"seed": options.seed, "seconds": round(seconds, 1), "cases": before + run.results}, indent=0))
    except OSError as error:
        full_disk = f"run_tests: cannot write {results.relative_to(ROOT)}: {error.strerror}"
        results.unlink(missing_ok=True)
    all_statuses = Counter(result["status"] for result in run.results)
    failed = [r for r in run.results if r["status"] not in ("passed", "skipped")]
    if failed:
        print(f"failed, preset {options.preset} (their output is above and in {(folder / 'failed').relative_to(ROOT)}):",
              *(f"  {r['entry']} {r['case']} ({r['status']}, {r['where']})" for r in failed), sep="\n")
    print(f"preset {options.preset}: {seconds:.0f} s, {totals(all_statuses)}")
    sys.exit(full_disk or bool(failed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # Before the first test.
        sys.exit(130)
    except BrokenPipeError as error:  # Before or after the tests.
        cannot_print(error)
        sys.exit(1)
    except OSError as error:  # A full or read-only disk, say.
        sys.exit(f"run_tests: {error.filename or ROOT / 'build/tests'}: {error.strerror}")

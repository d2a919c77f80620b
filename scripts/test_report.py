#!/usr/bin/env python3
"""Prints the closing table of scripts/test.sh and keeps it in build/tests/reports.

The input is what the run has left in build/tests: stages.tsv (name, begin in seconds since 1970, seconds, exit status), with a row for each
time that a stage ran, and the results.json of each preset. The exit status is 1 if a stage failed or left no results, or if more than 3 % of the tests of preset release skipped: without
a GPU, only what nothing else can run may skip (docs/kernels.md). The last line counts the cases of all presets; a stage without cases that
failed counts as a failed one.
"""
import datetime
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "build/tests"
NO_REASON = "NEEDS A REASON in tests/slow_cases.txt"
SLOW_SECONDS = 20  # A case that takes longer needs a reason in SLOW.
LAST_LINES = 20  # Of the output of a failed stage.
QUICK = "tests of the change"
SLOW = ROOT / "tests/slow_cases.txt"


def duration(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Stage(NamedTuple):
    name: str
    begin: int  # Of the last time that it ran, in seconds since 1970.
    seconds: int  # Of every time that it ran.
    status: int  # Of the last time.


def read_stages():
    """The stages, and the lines that a full disk has damaged."""
    file = TESTS / "stages.tsv"
    stages, damaged = {}, []
    for line in file.read_text(errors="replace").splitlines() if file.exists() else []:
        try:
            name, begin, seconds, status = line.split("\t")
            before = stages[name].seconds if name in stages else 0
            stages[name] = Stage(name, int(begin), before + int(seconds), int(status))
        except ValueError:
            damaged.append(f"build/tests/stages.tsv has the damaged line {line!r}")
    return list(stages.values()), damaged


def preset_of(name):
    """The preset whose tests the stage runs."""
    return "release" if name == QUICK else name.removeprefix("tests, ") if name.startswith("tests, ") else None


def slow_reasons():
    """The reason by the pattern of a case."""
    lines = [line.partition(" ") for line in SLOW.read_text().splitlines() if line and not line.startswith("#")]
    return {pattern: reason or NO_REASON for pattern, _, reason in lines}


def main():
    stages, failures = read_stages()
    results = {}
    if not stages:
        failures.append("no stage has run")
    for stage in stages:
        if preset := preset_of(stage.name):
            file = TESTS / preset / "results.json"
            if file.exists() and file.stat().st_mtime >= stage.begin:
                try:
                    results[preset] = json.loads(file.read_text())["cases"]
                except (ValueError, KeyError, TypeError) as error:
                    failures.append(f"{file.relative_to(ROOT)} is damaged ({error})")
            elif stage.status == 0 and stage.name != QUICK:  # --quick has no results if no test covers the change.
                failures.append(f"stage {stage.name} has left no results")
    lines = [f"{'stage':<44}{'min:s':>8}"]
    for stage in stages:
        lines.append(f"{stage.name:<44}{duration(stage.seconds):>8}{'' if stage.status == 0 else f'  FAILED ({stage.status})'}")
    lines.append(f"{'all':<44}{duration(sum(stage.seconds for stage in stages)):>8}")

    lines += ["", f"{'tests':<60}{'cases':>7}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    everything = Counter()
    for preset, cases in results.items():
        entries = defaultdict(list)
        for case in cases:
            entries[case["entry"]].append(case)
        for entry, members in sorted(entries.items(), key=lambda item: -sum(c["seconds"] for c in item[1])):
            statuses = Counter(c["status"] for c in members)
            failed = len(members) - statuses["passed"] - statuses["skipped"]
            everything += Counter(passed=statuses["passed"], failed=failed, skipped=statuses["skipped"])
            lines.append(f"{f'{entry}, {preset}':<60}{len(members):>7}{failed:>8}{statuses['skipped']:>9}{sum(c['seconds'] for c in members):>9.1f}")

    all_cases = [(case, preset) for preset, cases in results.items() for case in cases]
    all_cases.sort(key=lambda item: -item[0]["seconds"])
    reasons = slow_reasons()
    lines += ["", "slowest cases"]
    for i, (case, preset) in enumerate(all_cases):
        slow = case["seconds"] > SLOW_SECONDS and "families" not in case["labels"]
        if i < 10 or slow:
            reason = next((r for pattern, r in reasons.items() if pattern in case["case"]), NO_REASON) if slow else ""
            lines.append(f"{case['seconds']:9.1f} s  {case['entry']} {case['case']}, {preset}{f': {reason}' if reason else ''}")

    skipped = Counter(case.get("reason") or "no reason" for case, _ in all_cases if case["status"] == "skipped")
    if skipped:
        lines += ["", "skipped"]
        lines += [f"{count:>6}  {reason}" for reason, count in skipped.most_common()]

    statuses = {stage.name: stage.status for stage in stages}
    lines += [f"\ntests, {preset}: some programs may be of an earlier build" for preset in results if statuses.get(f"build, {preset}")]

    failures += [f"stage {stage.name}" for stage in stages if stage.status != 0]
    release = results.get("release", [])
    skips = sum(case["status"] == "skipped" for case in release)
    if 100 * skips > 3 * len(release) and any(stage.name == "tests, release" for stage in stages):
        failures.append(f"{skips} of {len(release)} tests skip, more than 3 %; run them by the reference executor (docs/kernels.md)")
    failed_stages = sum(stage.status != 0 and not preset_of(stage.name) for stage in stages)
    everything["failed"] += failed_stages
    for stage in stages:
        log = TESTS / f"stages/{stage.name}.log"
        if stage.status != 0 and log.exists():
            lines += ["", f"the end of {log.relative_to(ROOT)}", *log.read_text(errors="replace").splitlines()[-LAST_LINES:]]
    if failures:
        everything["failed"] = max(everything["failed"], 1)
        lines += ["", "FAILED: " + "; ".join(failures)]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    lines += ["", f"{everything['passed']} passed, {everything['failed']} failed, {everything['skipped']} skipped"]
    text = "\n".join(lines) + "\n"
    print(f"\n{text}", end="")
    reports = TESTS / "reports"
    report = reports / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}-{commit or 'no-clone'}.txt"
    try:
        reports.mkdir(parents=True, exist_ok=True)
        report.write_text(f"{len(os.sched_getaffinity(0))} cores\n{text}")
    except OSError as error:
        sys.exit(f"test_report: cannot keep the table in {report.relative_to(ROOT)}: {error.strerror}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()

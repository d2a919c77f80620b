#!/usr/bin/env python3
"""Tests of scripts/run_tests.py: run_tests_test.py PROGRAM FOLDER, with the program of bad_cases.cpp."""
import argparse
import contextlib
import importlib.util
import io
import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2])
spec = importlib.util.spec_from_file_location("run_tests", ROOT / "scripts/run_tests.py")
run_tests = importlib.util.module_from_spec(spec)
sys.modules["run_tests"] = run_tests
spec.loader.exec_module(run_tests)


def entry(name="program", command=(PROGRAM,), labels=("gtest",), sets_up=(), requires=()):
    result = run_tests.Entry(name, list(command), list(labels), [], 3, False, list(sets_up), list(requires))
    result.cases = run_tests.list_cases(result)
    return result


def run(*entries, seed=1, key=None):
    """The statuses by case, the results and the output of a run."""
    one = run_tests.Run(FOLDER, list(entries), argparse.Namespace(seed=seed, jobs=2))
    run_tests.ROOT = FOLDER.parent  # Paths in the output are relative to it.
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        one.go(key)
    return {r["case"]: r["status"] for r in one.results}, one.results, output.getvalue()


ENDS = ("ExitStatus", "AfterTheSuite")  # Suites that end their process.


def without(cases, *names):
    return [case for case in cases if not case.name.startswith(names)]


class RunTests(unittest.TestCase):
    def test_every_case_has_its_own_result(self):
        wanted = {f"All/Parameters.Pass/{i}": "passed" for i in range(20)}
        wanted |= {"Misbehaving.Passes": "passed", "Misbehaving.PassesToo": "passed", "Misbehaving.Fails": "failed", "Misbehaving.Skips": "skipped",
                   "Misbehaving.Crashes": "crashed", "Misbehaving.Exits": "crashed", "Misbehaving.Hangs": "timeout"}
        for seed in (1, 2, 3):
            program = entry()
            program.cases = without(program.cases, *ENDS, "Sanitized")
            statuses, results, output = run(program, seed=seed)
            self.assertEqual(statuses, wanted)
            self.assertEqual(len(results), len(wanted))
            by_name = {r["case"]: r for r in results}
            self.assertEqual(by_name["Misbehaving.Skips"]["reason"], "the reason of a skip")
            self.assertRegex(by_name["Misbehaving.Fails"]["where"], r"^tests/run_tests/bad_cases.cpp:\d+$")
            for text in ("the message of a failed case", "the last words of a crash", "SIGABRT", "no result after 3 s", "ended with exit status 0",
                         "--gtest_filter=Misbehaving.Crashes", "in tests/run_tests/bad_cases.cpp:"):
                self.assertIn(text, output)
            self.assertIn("the last words", (FOLDER / "failed/program.Misbehaving.Crashes.log").read_text())

    def test_a_bad_exit_of_a_shard_is_a_failure(self):
        for suite, how in (("ExitStatus.", "exit status 23"), ("ExitStatusOne.", "exit status 1"), ("AfterTheSuite.", "SIGABRT")):
            for seed in range(1, 7):  # The suite is the last of its process, or is not.
                program = entry()
                program.cases = [case for case in program.cases if case.name.startswith((suite, "All"))]
                statuses, _, output = run(program, seed=seed)
                self.assertEqual(statuses.pop(run_tests.AT_EXIT), "crashed")
                self.assertEqual(set(statuses.values()), {"passed"})
                self.assertEqual(len(statuses), 21)
                self.assertIn(how, output)
                self.assertIn(suite, output[output.index("to run it alone"):])

    def test_a_finding_of_a_sanitizer_fails_its_case(self):
        program = entry()
        program.cases = [case for case in program.cases if case.name.startswith("Sanitized")]
        statuses, _, output = run(program)
        self.assertEqual(statuses["Sanitized.GoesOnAfterARace"], "failed")
        self.assertEqual(statuses["Sanitized.PrintsTheNameOfAnotherCase"], "passed")
        self.assertIn("data race", output)

    def test_a_program_that_does_not_start_fails_its_cases(self):
        program = entry()
        count = len(program.cases)
        program.command = ["/bin/false"]
        statuses, results, _ = run(program)
        self.assertEqual(set(statuses.values()), {"failed"})
        self.assertEqual(len(results), count)

    def test_a_case_without_the_fixture_fails(self):
        program = entry("after", requires=["fixture"])
        count = len(program.cases)
        broken = entry("fixture", ["/bin/false"], [], sets_up=["fixture"])
        statuses, _, _ = run(program, broken)
        self.assertEqual(set(statuses.values()), {"failed"})
        self.assertEqual(len(statuses), count + 1)

    def test_an_interrupted_run_goes_on(self):
        program = entry()
        program.cases = [case for case in program.cases if case.name.startswith("All/")]
        FOLDER.mkdir(parents=True, exist_ok=True)
        known = {"entry": "program", "case": "All/Parameters.Pass/3", "where": "", "status": "passed", "seconds": 77}
        failed = known | {"case": "All/Parameters.Pass/4", "status": "failed"}
        at_exit = known | {"case": run_tests.AT_EXIT, "status": "crashed"}  # Which of its cases did it is not known.
        for key, more, seconds in (("same", [], 77), ("other", [], 0), ("same", [json.dumps(at_exit)], 0)):
            (FOLDER / "journal").write_text("\n".join(["same", json.dumps(known), json.dumps(failed), *more, '{"half']) + "\n")
            again = entry()
            again.cases = [case for case in again.cases if case.name.startswith("All/")]
            statuses, results, _ = run(again, key=key)
            self.assertEqual(statuses, {f"All/Parameters.Pass/{i}": "passed" for i in range(20)})
            self.assertEqual(next(r["seconds"] for r in results if r["case"] == known["case"]), seconds)
            self.assertFalse((FOLDER / "journal").exists())


unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""Tests of scripts/run_tests.py: run_tests_test.py PROGRAM FOLDER [CASE...], with the program of bad_cases.cpp."""
import argparse
import contextlib
import fcntl
import importlib.util
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, FOLDER = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
spec = importlib.util.spec_from_file_location("run_tests", ROOT / "scripts/run_tests.py")
run_tests = importlib.util.module_from_spec(spec)
sys.modules["run_tests"] = run_tests
spec.loader.exec_module(run_tests)


def quoted(path):
    """The path in a command line; the clone may be in a folder with a space."""
    return shlex.quote(str(path))


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
        one.go(FOLDER / "journal", key)
    return {r["case"]: r["status"] for r in one.results}, one.results, output.getvalue()


ENDS = ("ExitStatus", "AfterTheSuite", "BeforeTheSuite", "HangsAtExit")  # Suites that end their process.


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
            self.assertRegex(output, r"(?m)^program: 22 passed, 4 failed, 1 skipped, \d+ s$")
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

    def test_a_suite_that_ends_the_process_before_its_cases_fails_alone(self):
        for seed in range(1, 7):  # The suite is the first of its process, or is not.
            program = entry()
            program.cases = [case for case in program.cases if case.name.startswith(("BeforeTheSuite.", "All"))]
            statuses = run(program, seed=seed)[0]
            statuses.pop(run_tests.AT_EXIT, None)
            self.assertEqual(statuses.pop("BeforeTheSuite.TheProcessEnds"), "failed")
            self.assertEqual((len(statuses), set(statuses.values())), (20, {"passed"}))

    def test_a_hang_at_the_exit_of_a_shard_is_named(self):
        program = entry()
        program.cases = [case for case in program.cases if case.name.startswith("HangsAtExit.")]
        statuses, _, output = run(program)
        self.assertEqual(statuses, {"HangsAtExit.TheProcess": "passed", run_tests.AT_EXIT: "timeout"})
        self.assertIn("no result after 3 s", output)

    def test_a_finding_of_a_sanitizer_fails_its_case(self):
        program = entry()
        program.cases = [case for case in program.cases if case.name.startswith("Sanitized")]
        statuses, _, output = run(program)
        self.assertEqual(statuses["Sanitized.GoesOnAfterARace"], "failed")
        self.assertEqual(statuses["Sanitized.GoesOnAfterUndefinedBehavior"], "failed")
        self.assertEqual(statuses["Sanitized.PrintsTheNameOfAnotherCase"], "passed")
        self.assertIn("data race", output)

    def test_a_program_that_does_not_start_fails_its_cases(self):
        for command in ("/bin/false", "/no/such/program"):
            program = entry()
            count = len(program.cases)
            program.command = [command]
            statuses, results, _ = run(program)
            self.assertEqual(set(statuses.values()), {"failed"})
            self.assertEqual(len(results), count)

    def test_a_case_without_the_fixture_fails(self):
        for command in ("/bin/false", "/no/such/program"):
            program = entry("after", requires=["fixture"])
            count = len(program.cases)
            broken = entry("fixture", [command], [], sets_up=["fixture"])
            statuses, _, output = run(program, broken)
            self.assertEqual(set(statuses.values()), {"failed"})
            self.assertEqual(len(statuses), count + 1)
            self.assertEqual(output.count("fixture 'fixture' failed"), count)

    def test_an_interrupted_run_goes_on(self):
        program = entry()
        program.cases = [case for case in program.cases if case.name.startswith("All/")]
        FOLDER.mkdir(parents=True, exist_ok=True)
        known = {"entry": "program", "case": "All/Parameters.Pass/3", "where": "", "status": "passed", "seconds": 77}
        failed = known | {"case": "All/Parameters.Pass/4", "status": "failed"}
        at_exit = known | {"case": run_tests.AT_EXIT, "status": "crashed"}  # Which of its cases did it is not known.
        damaged = ['{"half', 'half"}', '{"a": 1}', "[]", "\0\0", '{"entry": "\udcff"}']
        for key, more, seconds in (("same", [], 77), ("other", [], 0), ("same", [json.dumps(at_exit)], 0)):
            lines = ["same", *damaged, json.dumps(known), json.dumps(failed), *more]
            (FOLDER / "journal").write_text("\n".join(lines) + "\n", errors="surrogateescape")
            again = entry()
            again.cases = [case for case in again.cases if case.name.startswith("All/")]
            statuses, results, _ = run(again, key=key)
            self.assertEqual(statuses, {f"All/Parameters.Pass/{i}": "passed" for i in range(20)})
            self.assertEqual(next(r["seconds"] for r in results if r["case"] == known["case"]), seconds)
            self.assertFalse((FOLDER / "journal").exists())


    def test_a_fixture_runs_again_for_the_cases_that_are_left(self):
        FOLDER.mkdir(parents=True, exist_ok=True)
        fixture, after, other = "fixture", "All/Parameters.Pass/3", "other"
        for left, runs_again in ((), False), ((after,), True), ((other,), False):
            entries = [entry(fixture, ["/bin/true"], [], sets_up=["models"]), entry("after", requires=["models"]), entry(other, ["/bin/true"], [])]
            entries[1].cases = [case for case in entries[1].cases if case.name == after]
            known = [{"entry": e.name, "case": case.name, "where": "", "status": "passed", "seconds": 77} for e in entries for case in e.cases
                     if case.name not in left]
            (FOLDER / "journal").write_text("\n".join(["same", *map(json.dumps, known)]) + "\n")
            seconds = {r["case"]: r["seconds"] for r in run(*entries, key="same")[1]}
            self.assertEqual(set(seconds), {fixture, after, other})
            self.assertEqual({name for name in seconds if seconds[name] != 77}, {*left, *([fixture] if runs_again else [])})

    def test_nothing_stays_of_temporary_files(self):
        """Not even of a process that is killed."""
        command = ["/bin/sh", "-c", f'echo "$TMPDIR" >> {quoted(FOLDER)}/folders; touch "$TMPDIR/left"; [ "$1" ] && exit; sleep 1000', "sh"]
        (FOLDER / "folders").unlink(missing_ok=True)
        statuses, _, _ = run(entry("hangs", command, []), entry("ends", [*command, "ends"], []))
        self.assertEqual(statuses, {"hangs": "timeout", "ends": "passed"})
        folders = (FOLDER / "folders").read_text().splitlines()
        self.assertEqual(len(set(folders)), 2)
        for folder in folders:
            self.assertEqual(Path(folder).parent, FOLDER / "tmp")
            self.assertFalse(Path(folder).exists())

    def test_a_process_that_a_test_leaves_does_not_hold_up_the_run(self):
        """Whether it is in the test's session or in one of its own."""
        self.addCleanup(setattr, run_tests, "SECONDS_TO_DRAIN", run_tests.SECONDS_TO_DRAIN)
        run_tests.SECONDS_TO_DRAIN = 0.5
        left = FOLDER / "left"
        for session, sleeps in (("", "exec sleep 1000"), ("setsid ", "exec sleep 1000"), ("setsid ", "while true; do echo y; done")):
            left.unlink(missing_ok=True)
            FOLDER.mkdir(parents=True, exist_ok=True)
            script = f"LEFT={quoted(left)}; export LEFT; {session}sh -c 'echo $$ >\"$LEFT\"; {sleeps}' & while [ ! -s \"$LEFT\" ]; do sleep 0.01; done; echo the last line"
            program = entry("leaves", ["/bin/sh", "-c", f"{script}; exit 3"], [])
            program.seconds = 1000
            statuses, _, output = run(program)
            self.assertEqual(statuses, {"leaves": "failed"})
            self.assertIn("the last line", output + (FOLDER / "failed/leaves.leaves.log").read_text())
            pid = int(left.read_text())
            if session:
                os.kill(pid, signal.SIGKILL)
            with self.assertRaises(ProcessLookupError):
                while True:  # Its parent may still have to collect it.
                    os.kill(pid, 0)
                    time.sleep(0.05)

    def test_every_bad_exit_of_an_entry_is_in_its_log(self):
        program = entry()
        program.cases = [case for case in program.cases if case.name.startswith("ExitStatus")]  # A shard for each.
        run(program)
        log = (FOLDER / "failed/program._at_exit_of_a_shard_.log").read_text()
        self.assertIn("exit status 23", log)
        self.assertIn("exit status 1\n", log)

    def test_two_cases_of_one_name_are_an_error(self):
        """Their results could not be told apart."""
        cases = json.dumps({"testsuites": [{"name": "A", "testsuite": [{"name": "B", "file": "a.cpp", "line": 1}] * 2}]})
        program = entry(command=["/bin/sh", "-c", f'echo {shlex.quote(cases)} >"${{2#--gtest_output=json:}}"', "sh"])
        self.assertEqual([case.name for case in program.cases], [run_tests.NOT_LISTED])
        self.assertEqual(program.problem, "name each parameter once, in letters and digits: A.B\n")

    def test_a_program_that_hangs_before_it_lists_its_cases_fails(self):
        self.addCleanup(setattr, run_tests, "SECONDS_TO_LIST", run_tests.SECONDS_TO_LIST)
        run_tests.SECONDS_TO_LIST = 0.1
        statuses, _, output = run(entry(command=["/bin/sh", "-c", "exec sleep 1000"]))
        self.assertEqual(statuses, {run_tests.NOT_LISTED: "failed"})
        self.assertIn("does not list its cases in 0.1 s", output)


class Main(unittest.TestCase):
    """The program as a whole, in a folder of its own, with a stand-in for ctest."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(dir=FOLDER.parent))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/run_tests.py", self.root / "scripts")
        self.tests = [self.entry("good"), self.entry("plain", ["/bin/true"], [])]

    @staticmethod
    def entry(name, command=(PROGRAM, "--gtest_filter=All/*"), labels=("gtest",), **properties):
        return {"name": name, "command": list(command),
                "properties": [{"name": key, "value": value} for key, value in ({"LABELS": list(labels)} | properties).items()]}

    def clone(self):
        """Makes the folder a clone whose build has no programs."""
        for folder in ("build/release/bin", "build/release/lib"):
            (self.root / folder).mkdir(parents=True)
        subprocess.run("git init -q && git add scripts && git -c user.name=t -c user.email=t@t commit -qm t && "
                       "printf '.venv\n/build\n/bin\n/tests.json\n/log\n/go\n' >.git/info/exclude", shell=True, check=True, cwd=self.root)

    def run_it(self, *arguments, hang_up_when=None):
        """The exit status, the output and the results of a run. Ends it by SIGHUP when the condition holds."""
        stand_in = self.root / "bin"
        stand_in.mkdir(exist_ok=True)
        (stand_in / "ctest").write_text(f"#!/bin/sh\ncat {quoted(self.root)}/tests.json\n")
        (stand_in / "ctest").chmod(0o755)
        (self.root / "tests.json").write_text(json.dumps({"tests": self.tests}))
        file = self.root / "build/tests/release/results.json"
        if "--add" not in arguments and file.exists():
            file.unlink()
        ran = subprocess.Popen([sys.executable, "scripts/run_tests.py", *arguments], cwd=self.root, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=os.environ | {"PATH": f"{stand_in}:{os.environ['PATH']}"},
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup has it ignored.
        if hang_up_when:
            while not hang_up_when():
                self.assertIsNone(ran.poll(), "the run has ended before")
                time.sleep(0.05)
            ran.send_signal(signal.SIGHUP)
        output, errors = ran.communicate()
        results = json.loads(file.read_text())["cases"] if file.exists() else []
        self.assertNotIn("Traceback", errors)
        return ran.returncode, output + errors, results

    def test_everything_passes(self):
        status, output, results = self.run_it()
        self.assertEqual(status, 0)
        self.assertEqual(len(results), 21)
        self.assertEqual({r["status"] for r in results}, {"passed"})
        self.assertRegex(output, r"preset release: \d+ s, 21 passed, 0 failed, 0 skipped")

    def test_a_failure_is_the_exit_status(self):
        self.tests.append(self.entry("bad", [PROGRAM, "--gtest_filter=Misbehaving.Fails"]))
        status, output, results = self.run_it()
        self.assertEqual(status, 1)
        self.assertEqual([r["case"] for r in results if r["status"] == "failed"], ["Misbehaving.Fails"])
        self.assertIn("bad Misbehaving.Fails (failed, tests/run_tests/bad_cases.cpp:", output)

    def test_a_program_that_is_not_built_fails_and_the_others_run(self):
        self.tests += [self.entry("missing", []), self.entry("gone", ["/no/such/program"]), self.entry("refuses", ["/bin/false"])]
        status, output, results = self.run_it()
        self.assertEqual(status, 1)
        by_entry = {r["entry"]: r["status"] for r in results}
        self.assertEqual(by_entry, {"good": "passed", "plain": "passed", "missing": "failed", "gone": "failed", "refuses": "failed"})
        self.assertIn("build the preset first", output)
        status, output, results = self.run_it("--filter", "All/*")  # It cannot have the case.
        self.assertEqual((status, len(results)), (0, 20))
        self.assertIn("missing is not searched", output)

    def test_options_choose_the_cases(self):
        self.tests.append(self.entry("labeled", labels=["gtest", "libtorch"]))
        self.tests.append(self.entry("large", labels=["gtest", "families"]))
        names = lambda *arguments: sorted(f"{r['entry']} {r['case']}" for r in self.run_it(*arguments)[2])
        one = "All/Parameters.Pass/7"
        self.assertEqual(names("--filter", "*/7", "--entry", "good"), [f"good {one}"])
        self.assertEqual(names("--filter", "*/7", "--label", "libtorch"), [f"labeled {one}"])
        self.assertEqual(names("--filter", "*/7", "--exclude-label", "families"), [f"good {one}", f"labeled {one}"])
        self.assertEqual(len(names("--file", "tests/run_tests")), 60)
        self.assertEqual(names("--file", "tests/run"), [])
        everywhere = names("--filter", "*/7", "--label", "libtorch", "--settings", "all")
        possible = run_tests.settings_for(run_tests.flags_of_processor())
        self.assertEqual(everywhere, sorted(f"labeled {setting} {one}" for setting in possible))
        sampled = names("--label", "libtorch", "--settings", "sample")
        self.assertEqual(len([name for name in sampled if name.startswith("labeled All")]), 20)
        self.assertIn(len(sampled) - 20, range(1, 20))  # Of 140.
        self.assertEqual(names("--filter", "*/7", "--settings", run_tests.SETTINGS[0]), [f"labeled {run_tests.SETTINGS[0]} {one}"])

    def writes(self, text, *arguments):
        """The command of a program that appends the text, expanded by the shell, to the file log when it runs its cases."""
        return ["/bin/sh", "-c", f'case "$*" in *list_tests*) ;; *) echo "{text}" >>{quoted(self.root)}/log ;; esac; exec {quoted(PROGRAM)} "$@"', "sh",
                "--gtest_filter=All/*", *arguments]

    def test_a_setting_reaches_the_program(self):
        text = "$OMP_NUM_THREADS $ATEN_CPU_CAPABILITY $CGC_TEST_VARIANT"
        self.tests = [self.entry("labeled", self.writes(text), ["gtest", "libtorch"], ENVIRONMENT=["OMP_NUM_THREADS=1"])]
        setting = "ATEN_CPU_CAPABILITY=default"
        self.assertEqual(self.run_it("--settings", setting)[0], 0)
        self.assertEqual(set((self.root / "log").read_text().splitlines()), {f"1 default {setting}"})

    def test_models_in_real_size_run_under_no_setting(self):
        self.tests = [self.entry("labeled", labels=["gtest", "libtorch"]), self.entry("large", labels=["gtest", "libtorch", "families"])]
        entries = {r["entry"].split()[0] for r in self.run_it("--filter", "*/7", "--settings", "all")[2]}
        self.assertEqual(entries, {"labeled"})

    def test_a_serial_entry_runs_alone(self):
        command = lambda name: ["/bin/sh", "-c", f"echo {name} >>{quoted(self.root)}/log; sleep 0.2; echo {name} >>{quoted(self.root)}/log"]
        self.tests = [self.entry("serial", command("serial"), [], RUN_SERIAL=True)] + [self.entry(f"plain{i}", command(f"plain{i}"), []) for i in range(4)]
        self.assertEqual(self.run_it("--jobs", "3")[0], 0)
        lines = (self.root / "log").read_text().splitlines()
        self.assertEqual(len(lines), 10)
        self.assertEqual(lines.index("serial") + 1, len(lines) - 1 - lines[::-1].index("serial"), lines)

    def test_the_limits_of_cases(self):
        """An entry that is no gtest program is one case, whose limit is that of ctest. Of a program, ctest's is for all its cases."""
        self.tests += [self.entry("hangs", ["/bin/sh", "-c", "exec sleep 1000"], [], TIMEOUT=0.5), self.entry("large", labels=["gtest", "families"], TIMEOUT=3600)]
        self.tests[0]["properties"].append({"name": "TIMEOUT", "value": 3600})
        results = self.run_it("--entry", "hangs")[2]
        self.assertEqual([(r["entry"], r["status"]) for r in results], [("hangs", "timeout")])
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        os.environ["PATH"] = f"{self.root}/bin:{os.environ['PATH']}"
        limits = {e.name: e.seconds for e in run_tests.entries_of("release")}
        self.assertEqual(limits, {"good": 600, "plain": 600, "hangs": 0.5, "large": 1500})

    def test_a_second_run_waits_for_the_first(self):
        self.tests = [self.entry("good", self.writes("ran"))]
        self.run_it("--filter", "*/7")  # Writes the stand-in.
        log, output = self.root / "log", self.root / "output"
        lock = (self.root / "build/tests/release/.lock").open("w")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with output.open("w") as file:
            ran = subprocess.Popen([sys.executable, "scripts/run_tests.py", "--filter", "*/7"], cwd=self.root, stdout=file, stderr=file,
                                   env=os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"})
        while "waiting for another run of this preset's tests" not in output.read_text():
            self.assertIsNone(ran.poll(), "it has not waited")
            time.sleep(0.05)
        self.assertEqual(log.read_text(), "ran\n")
        fcntl.flock(lock, fcntl.LOCK_UN)
        self.assertEqual(ran.wait(), 0)
        self.assertEqual(log.read_text(), "ran\nran\n")

    def test_a_processor_has_the_settings_that_it_can_run(self):
        cpuinfo = self.root / "cpuinfo"
        cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu sse4_2 avx2 fma\nbugs\t\t: none\n")
        possible = run_tests.settings_for(run_tests.flags_of_processor(cpuinfo))
        self.assertEqual(set(run_tests.SETTINGS) - set(possible), {"ATEN_CPU_CAPABILITY=avx512"})
        cpuinfo.write_text("flags\t\t: fpu sse4_2\n")
        self.assertEqual(len(run_tests.settings_for(run_tests.flags_of_processor(cpuinfo))), len(run_tests.SETTINGS) - 2)
        cpuinfo.write_text("processor\t: 0\nFeatures\t: fp asimd\n")  # An ARM.
        self.assertEqual(run_tests.flags_of_processor(cpuinfo), set())

    def test_a_filter_that_matches_nothing_is_an_error(self):
        status, output, results = self.run_it("--filter", "NoSuchCase")
        self.assertEqual((status, results), (1, []))
        self.assertIn("no case matches", output)

    def test_an_entry_that_does_not_exist_is_an_error_beside_one_that_does(self):
        self.tests = [self.entry("plain", ["/bin/true"], [])]
        status, output, results = self.run_it("--entry", "plain", "--entry", "no_such_*")
        self.assertEqual((status, results), (1, []))
        self.assertIn("no entry of ctest matches 'no_such_*'", output)

    def test_a_preset_that_is_not_built_is_an_error(self):
        self.tests = []
        status, output, _ = self.run_it("--filter", "*")
        self.assertEqual((status, output), (1, "run_tests: preset 'release' has no tests: cmake --preset release && cmake --build --preset release\n"))

    def test_the_fixture_comes_with_what_requires_it(self):
        self.tests.append(self.entry("fixture", ["/bin/true"], [], FIXTURES_SETUP=["models"]))
        self.tests.append(self.entry("after", FIXTURES_REQUIRED=["models"], DEPENDS=["fixture"]))
        results = self.run_it("--entry", "after")[2]
        self.assertEqual({r["entry"] for r in results}, {"fixture", "after"})
        self.assertEqual(results[0]["entry"], "fixture")

    def test_the_seed_alone_decides_the_shards(self):
        shards = set()
        for jobs in ("1", "3"):
            self.tests = [self.entry("good", ["/bin/sh", "-c", f'echo "$@" >> {quoted(self.root)}/log-{jobs}; exec {quoted(PROGRAM)} "$@"', "sh"])]
            self.assertEqual(self.run_it("--seed", "5", "--jobs", jobs, "--filter", "All/*")[0], 0)
            lines = (self.root / f"log-{jobs}").read_text().splitlines()
            shards.add(frozenset(line for line in lines if "--gtest_random_seed=5" in line))
        self.assertEqual(len(shards), 1)
        self.assertGreater(len(shards.pop()), 1)

    def test_another_seed_is_another_order_and_other_shards(self):
        self.tests = [self.entry("good")]
        shards = []
        for seed in ("1", "2", "3"):
            results = self.run_it("--seed", seed, "--jobs", "1")[2]
            shards.append([int(r["case"].split("/")[-1]) for r in results[:5]])  # The first one.
        self.assertEqual(len({frozenset(shard) for shard in shards}), 3, shards)
        self.assertNotEqual(shards, [sorted(shard) for shard in shards])

    def test_added_results_are_kept(self):
        self.tests.append(self.entry("bad", [PROGRAM, "--gtest_filter=Misbehaving.Fails"]))
        self.run_it("--entry", "bad")
        status, _, results = self.run_it("--entry", "good", "--add")
        self.assertEqual((status, len(results)), (0, 21))
        self.assertTrue((self.root / "build/tests/release/failed/bad.Misbehaving.Fails.log").exists())
        self.assertEqual(len(self.run_it("--entry", "good")[2]), 20)
        self.assertFalse((self.root / "build/tests/release/failed/bad.Misbehaving.Fails.log").exists())

    def test_a_package_is_a_part_of_the_key(self):
        """What an interrupted run has found holds only with the same packages."""
        self.clone()
        self.addCleanup(setattr, run_tests, "ROOT", run_tests.ROOT)
        run_tests.ROOT = self.root
        keys = [run_tests.key_of("release")]
        for name in ("torch-1.dist-info", "torch-2.dist-info"):
            shutil.rmtree(self.root / ".venv", ignore_errors=True)
            package = self.root / ".venv/lib/python3.11/site-packages" / name
            package.mkdir(parents=True)
            (package / "RECORD").write_text("torch/__init__.py,,")
            keys.append(run_tests.key_of("release"))
        self.assertEqual(keys[-1], run_tests.key_of("release"))
        self.assertEqual(len(set(keys)), 3, keys)
        self.assertNotIn(None, keys)

    def test_the_key_is_that_of_what_tests_read(self):
        self.addCleanup(setattr, run_tests, "ROOT", run_tests.ROOT)
        run_tests.ROOT = self.root  # In a folder of another clone.
        self.assertIsNone(run_tests.key_of())
        self.clone()
        key = run_tests.key_of()
        (self.root / "nohup.out").write_text("the log of the run")
        self.assertEqual(run_tests.key_of(), key)
        (self.root / "scripts/new.py").write_text("a source")
        self.assertNotEqual(run_tests.key_of(), key)
        (self.root / "scripts/new.py").unlink()
        source = self.root / "scripts/run_tests.py"
        text = source.read_text()
        source.write_text(text + "# Changed.")
        self.assertNotEqual(run_tests.key_of(), key)
        source.write_text(text)
        self.assertEqual(run_tests.key_of(), key)
        key = run_tests.key_of("release")
        (self.root / "build/release/bin/program").write_text("a new program")
        self.assertNotEqual(run_tests.key_of("release"), key)

    def test_an_interrupted_run_goes_on_with_its_own_selection(self):
        """A run of another selection neither takes its results nor loses them."""
        self.clone()
        log, everything = self.root / "log", ("--jobs", "2")
        program = lambda first: ["/bin/sh", "-c", f'case "$*" in *list_tests*) ;; *) {first} ;; esac; exec {quoted(PROGRAM)} "$@"', "sh", "--gtest_filter=All/*"]
        self.tests = [self.entry("good", program(f"echo >> {quoted(log)}")), self.entry("slow", program(f"test -e {quoted(self.root)}/go || exec sleep 1000"))]
        ran = lambda: len(log.read_text())
        has_run = lambda: any(file.read_text().count("passed") == 20 for file in self.root.glob("build/tests/release/journal-*"))
        status, output, _ = self.run_it(*everything, hang_up_when=has_run)
        self.assertEqual(status, 130, output)
        self.assertIn("interrupted: run it again to go on", output)
        before = ran()

        for more in ([], ["--add"]):
            status, output, results = self.run_it("--entry", "good", "--filter", "*/7", *more)
            self.assertEqual((status, len(results)), (0, 1 + len(more)))
            self.assertNotIn("going on", output)
        self.assertEqual(ran(), before + 2)

        (self.root / "go").touch()
        status, output, results = self.run_it(*everything, "--jobs", "1")
        self.assertEqual((status, len(results), ran()), (0, 40, before + 2))
        self.assertIn("going on after an interruption: 20 cases have run", output)
        self.assertEqual(self.run_it(*everything)[0], 0)  # After its end, nothing is left to go on with.
        self.assertEqual(ran(), 2 * before + 2)

    def test_a_kept_journal_serves_a_second_run(self):
        self.clone()
        self.tests.append(self.entry("bad", [PROGRAM, "--gtest_filter=Misbehaving.Fails"]))
        for going_on in (False, True):
            status, output, results = self.run_it("--keep-journal")
            self.assertEqual((status, len(results)), (1, 22))
            self.assertEqual("going on after an interruption: 21 cases" in output, going_on)

    def test_an_unknown_property_is_an_error(self):
        for name, value in (("WILL_FAIL", True), ("DEPENDS", ["good"])):
            self.tests[2:] = [self.entry("bad", **{name: value})]
            status, output, _ = self.run_it()
            self.assertEqual(status, 1)
            self.assertIn(f"bad has properties that only ctest knows: {name}", output)

    def test_damaged_results_are_named(self):
        self.run_it()
        for text in (b"{", b"[]", b"\xff", b'{"cases": 1}'):
            (self.root / "build/tests/release/results.json").write_bytes(text)
            ran = subprocess.run([sys.executable, "scripts/run_tests.py", "--add"], cwd=self.root, capture_output=True, text=True,
                                 env=os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"})
            self.assertEqual(ran.returncode, 1)
            self.assertRegex(ran.stderr, r"^run_tests: build/tests/release/results.json is damaged \(.*\); run without --add\n$")

    def test_the_jobs_are_those_of_the_cores_that_it_may_use(self):
        cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, {min(cores)})
        self.assertIn("21 cases, 1 at a time", self.run_it()[1])

    def test_a_run_whose_output_nobody_reads_ends(self):
        self.tests = [self.entry("fixture", ["/bin/sh", "-c", f"while [ ! -e {quoted(self.root)}/go ]; do sleep 0.05; done"], [], FIXTURES_SETUP=["models"]),
                      self.entry("after", FIXTURES_REQUIRED=["models"], DEPENDS=["fixture"])]
        self.run_it("--filter", "NoSuchCase")  # Writes the stand-in.
        ran = subprocess.Popen([sys.executable, "scripts/run_tests.py", "--jobs", "2"], cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"})
        self.assertIn("21 cases", ran.stdout.readline())
        ran.stdout.close()
        (self.root / "go").touch()
        self.assertEqual(ran.wait(timeout=100), 130)
        self.assertEqual(ran.stderr.read(), "run_tests: cannot print the results: Broken pipe\ninterrupted: run it again to go on\n")
        ran.stderr.close()

    def test_a_full_disk_costs_no_old_results(self):
        """A process may not write more than that much, as on a full disk."""
        self.clone()
        self.tests = [self.entry(f"plain{i}", ["/bin/true" if i else "/bin/false"], []) for i in range(40)]
        self.run_it("--keep-journal")
        journal = next(self.root.glob("build/tests/release/journal-*"))
        before = journal.read_text()

        def limited(most):
            ran = subprocess.run(["prlimit", f"--fsize={most}", sys.executable, "scripts/run_tests.py", "--keep-journal"], cwd=self.root, text=True,
                                 capture_output=True, env=os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"})
            self.assertEqual(ran.returncode, 1)
            self.assertNotIn("Traceback", ran.stderr)
            self.assertFalse((self.root / "build/tests/release/results.json").exists())
            return ran

        self.assertRegex(limited(0).stderr, r"^run_tests: .*/build/tests: File too large\n$")
        self.assertEqual(journal.read_text(), before)
        journal.unlink()
        ran = limited(3000)
        self.assertIn("run_tests: cannot write build/tests/release/results.json: File too large\n", ran.stderr)
        self.assertIn("39 passed, 1 failed, 0 skipped", ran.stdout)

    def test_what_cannot_be_written_is_one_line(self):
        (self.root / "build").write_text("no folder")
        status, output, _ = self.run_it()
        self.assertEqual(status, 1)
        self.assertRegex(output.splitlines()[-1], r"^run_tests: .*build.*: Not a directory$")


unittest.main(argv=["tests", *sys.argv[3:]], verbosity=2)  # A test that hangs is the last line.

#!/usr/bin/env python3
"""Tests of scripts/test.sh and of the scripts that it calls, without run_tests.py: scripts_test.py FOLDER [CASE...]."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "scripts"))
import quick_tests  # noqa: E402


def case(name, status="passed", seconds=1.0, labels=(), **more):
    return {"entry": "tests", "case": name, "where": "", "status": status, "seconds": seconds, "labels": labels, **more}


class Report(unittest.TestCase):
    def setUp(self):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.root = Path(tempfile.mkdtemp(dir=FOLDER))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        for name in ("scripts/test_report.py", "tests/slow_cases.txt"):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.stages, self.begin = [], int(time.time()) - 100

    def stage(self, name, status=0):
        self.stages.append(f"{name}\t{self.begin}\t7\t{status}\n")

    def results(self, preset, *cases, age=0):
        file = self.root / f"build/tests/{preset}/results.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"cases": cases}))
        os.utime(file, (time.time() - age, time.time() - age))

    def report(self):
        """The exit status and the output."""
        tests = self.root / "build/tests"
        tests.mkdir(parents=True, exist_ok=True)
        (tests / "stages.tsv").write_text("".join(self.stages))
        ran = subprocess.run([sys.executable, self.root / "scripts/test_report.py"], capture_output=True, text=True)
        self.assertEqual(ran.stderr.replace("fatal", ""), ran.stderr)
        if not ran.stderr:
            self.assertEqual(len(list((tests / "reports").iterdir())), 1)
        return ran.returncode, ran.stdout

    def test_it_counts_the_cases_of_all_presets(self):
        self.stage("build, release")
        self.stage("tests, release")
        self.stage("tests, asan")
        self.results("release", *(case(f"A.{i}") for i in range(40)), case("A.s", "skipped", reason="no GPU"))
        self.results("asan", case("B.1"))
        self.results("tsan", case("C.1", "failed"))  # Of an earlier run: the stage has not run.
        status, output = self.report()
        self.assertEqual(status, 0, output)
        self.assertEqual(output.splitlines()[-1], "41 passed, 0 failed, 1 skipped")
        self.assertIn("1  no GPU", output)

    def test_failures(self):
        self.stage("tests, release", 1)
        self.results("release", case("A.1"), case("A.2", "crashed"), case("A.3", "never run"))
        self.stage("fuzzing", 1)
        log = self.root / "build/tests/stages/fuzzing.log"
        log.parent.mkdir(parents=True)
        log.write_text("".join(f"line {i}\n" for i in range(100)))
        status, output = self.report()
        self.assertIn("the end of build/tests/stages/fuzzing.log\nline 80\n", output)
        self.assertNotIn("line 79\n", output)
        self.assertEqual(status, 1)
        self.assertEqual(output.splitlines()[-1], "1 passed, 3 failed, 0 skipped")
        self.assertIn("FAILED: stage tests, release; stage fuzzing", output)

    def test_results_that_are_absent_or_old_are_failures(self):
        for age in (None, 1000):
            self.stages = []
            self.stage("tests, release")
            if age:
                self.results("release", case("A.1"), age=age)
            status, output = self.report_again()
            self.assertEqual(status, 1)
            self.assertIn("stage tests, release has left no results", output)
            self.assertEqual(output.splitlines()[-1], "0 passed, 1 failed, 0 skipped")

    def test_damaged_files_are_failures(self):
        """Of a full disk, say. The others are in the table."""
        self.stage("tests, release")
        self.stage("tests, asan")
        self.stages.insert(0, "format\t1\n")
        self.results("release", case("A.1"))
        for text in ('{"cases": [', "[]", "\0"):
            self.results("asan")
            (self.root / "build/tests/asan/results.json").write_text(text)
            status, output = self.report_again()
            self.assertEqual(status, 1)
            self.assertIn("FAILED: build/tests/stages.tsv has the damaged line 'format\\t1'; ", output)
            self.assertIn("build/tests/asan/results.json is damaged (", output)

    def test_a_table_that_cannot_be_kept_is_one_line(self):
        self.stage("tests, release")
        self.results("release", case("A.1"))
        (self.root / "build/tests/reports").write_text("no folder")
        ran = subprocess.run([sys.executable, self.root / "scripts/test_report.py"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"^test_report: cannot keep the table in build/tests/reports/.*: .*\n$")

    def report_again(self):
        shutil.rmtree(self.root / "build/tests/reports", ignore_errors=True)
        return self.report()

    def test_no_stage_is_a_failure(self):
        self.assertEqual(self.report()[0], 1)

    def test_many_skips_are_a_failure(self):
        self.stage("tests, release")
        self.results("release", *(case(f"A.{i}") for i in range(9)), case("A.s", "skipped"))
        self.assertEqual(self.report()[0], 1)

    def test_a_stage_that_was_interrupted_has_one_row(self):
        self.stage("tests, release", 130)
        self.stage("tests, release")
        self.results("release", case("A.1"))
        status, output = self.report()
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"(?m)^tests, release +0:14$")

    def test_programs_of_an_earlier_build_are_named(self):
        for status in (0, 1):
            self.stages = []
            self.stage("build, release", status)
            self.stage("tests, release")
            self.results("release", case("A.1"))
            status_of_report, output = self.report_again()
            self.assertEqual(status_of_report, status)
            self.assertEqual("tests, release: some programs may be of an earlier build" in output, bool(status))

    def test_a_quick_run_shows_its_cases(self):
        self.stage("tests of the change")
        self.results("release", case("A.1"), case("A.2", "skipped"))
        status, output = self.report()
        self.assertEqual((status, output.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        (self.root / "build/tests/release/results.json").unlink()  # No test belongs to the change.
        status, output = self.report_again()
        self.assertEqual((status, output.splitlines()[-1]), (0, "0 passed, 0 failed, 0 skipped"))

    def test_a_slow_case_needs_a_reason(self):
        self.stage("tests, release")
        self.results("release", case("Slow.Case", seconds=21.0), case("Rules.AreTotal", seconds=30.0),
                     case("Big.Case", seconds=40.0, labels=["gtest", "families"]), case("Odd.Case", seconds=22.0))
        with (self.root / "tests/slow_cases.txt").open("a") as reasons:
            reasons.write("Odd.\n")
        status, output = self.report()
        self.assertEqual(status, 0)  # A busy machine makes cases slow.
        self.assertRegex(output, r"Slow.Case, release: NEEDS A REASON")
        self.assertRegex(output, r"Odd.Case, release: NEEDS A REASON")
        self.assertRegex(output, r"Rules.AreTotal, release: 3,000 random")
        self.assertRegex(output, r"Big.Case, release\n")


class Copy(unittest.TestCase):
    """A script in a folder of its own."""
    SETUP = ("set -euo pipefail", 'cd "$(dirname "${BASH_SOURCE[0]}")/.."', 'say() { echo "== $*"; }', "fail() { exit 1; }", "setup() { :; }",
             'build() { echo "build $*" >>log; }', 'build_preset() { echo "build_preset $*" >>log; }')  # Of a stand-in for setup.sh.

    def stand_in(self, name, *lines):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(["#!/usr/bin/env bash", *lines, ""]))
        file.chmod(0o755)

    def assert_ended(self, pid):
        with self.assertRaises(ProcessLookupError):
            while True:  # Its parent may still have to collect it.
                os.kill(pid, 0)
                time.sleep(0.05)

    @staticmethod
    def wait_for(condition, ran):
        """Waits until the condition holds. If the process ends before, the test fails; it would wait for ever."""
        while not condition():
            if ran.poll() is not None and not condition():
                raise AssertionError(f"the process ended with exit status {ran.returncode} before what the test waits for")
            time.sleep(0.05)

    def copy(self, *scripts):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.root = Path(tempfile.mkdtemp(dir=FOLDER))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        (self.root / "scripts").mkdir()
        for script in scripts:
            shutil.copy(ROOT / "scripts" / script, self.root / "scripts")


    def git(self, commands):
        subprocess.run(f"set -e; git() {{ command git -c user.name=t -c user.email=t@t -c init.defaultBranch=main \"$@\"; }}; {commands}",
                       shell=True, executable="/bin/bash", check=True, cwd=self.root, stdout=subprocess.DEVNULL)


class ChangedFiles(Copy):
    def setUp(self):
        self.copy("changed_files.sh")

    def run_it(self):
        return subprocess.run(["scripts/changed_files.sh"], cwd=self.root, capture_output=True, text=True)

    def changed(self):
        ran = self.run_it()
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout.split()

    def test_a_change_has_files_that_are_new_gone_and_moved(self):
        everything = ["gone", "kept", "old_place", "scripts/changed_files.sh"]
        self.git("git init -q; for file in gone kept old_place; do echo $file >$file; done; git add .; git commit -qm 1")
        ran = self.run_it()
        self.assertEqual((ran.returncode, ran.stdout.split()), (0, everything))  # Without history.
        self.assertRegex(ran.stderr, "^changed_files.sh: these are all files, for git has no commit of origin/main here.*; git fetch")
        self.git("git update-ref refs/remotes/origin/main HEAD; git rm -q gone; git mv old_place new_place; git commit -qm 2; echo >untracked; echo >>kept")
        self.assertEqual(self.changed(), ["gone", "kept", "new_place", "old_place", "untracked"])
        self.git("git add .; git commit -qm 3; git update-ref refs/remotes/origin/main HEAD")
        self.assertEqual(self.changed(), ["kept", "untracked"])  # Of the last commit.
        self.git("git clone -q --depth 1 \"file://$PWD\" shallow; cp -r shallow/.git shallow.git; rm -rf shallow .git; mv shallow.git .git")
        self.assertIn("these are all files, for", self.run_it().stderr)
        self.assertEqual(self.run_it().stdout.split(), ["kept", "new_place", "scripts/changed_files.sh", "untracked"])

    def test_a_clone_without_origin_main_says_so(self):
        self.git("git init -q; git add .; git commit -qm 1; touch a; git add .; git commit -qm 2; touch b; git add .; git commit -qm 3")
        ran = self.run_it()
        self.assertEqual((ran.returncode, ran.stdout), (0, "b\n"))
        self.assertIn("these are the files of the last commit, for", ran.stderr)

    def test_letters_outside_of_ascii_and_spaces_stay(self):
        self.git("git init -q; git add .; git commit -qm 1; git update-ref refs/remotes/origin/main HEAD; mkdir passes; touch passes/{größe,two\\ words}.cpp")
        expected = ["passes/größe.cpp", "passes/two words.cpp", "scripts/changed_files.sh"]
        self.assertEqual(self.run_it().stdout.splitlines(), expected)
        self.git("git add .; git commit -qm 2")
        self.assertEqual(self.run_it().stdout.splitlines(), expected[:2])

    def test_it_fails_if_git_does(self):
        ran = self.run_it()
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))
        self.assertIn("this folder is no clone", ran.stderr)
        (self.root / ".git").write_text("gitdir: nowhere\n")
        ran = self.run_it()
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("not a git repository", ran.stderr)


class ClangTidy(Copy):
    def refusal(self, *files):
        ran = subprocess.run(["scripts/clang_tidy.sh", *files], cwd=self.root, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        return ran.stderr

    def test_what_it_cannot_check_is_an_error(self):
        self.copy("clang_tidy.sh", "compile_commands.py")
        self.assertRegex(self.refusal("a.cpp"), "compile_commands.json is missing: cmake --preset release")
        database = self.root / "build/release/compile_commands.json"
        database.parent.mkdir(parents=True)
        database.write_text("[]")
        for name in ("a.cpp", "a.h", "a"):
            self.assertRegex(self.refusal(name), f"there is no file {name}\n")
        (self.root / "a.cpp").touch()
        self.assertRegex(self.refusal("a.cpp"), "a.cpp is not compiled in build/release")

    def test_it_passes_only_if_it_has_checked(self):
        self.copy("clang_tidy.sh", "compile_commands.py")
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/compile_commands.json").write_text("[]")
        (self.root / "a.h").touch()
        stand_ins = {self.root / "scripts/changed_files.sh": "", self.root / "bin/clang-tidy-19": ""}
        (self.root / "bin").mkdir()
        for changed, tidy, status, output, errors in (
                ("exit 3", "", 3, "", ""),
                ("true", "", 0, "clang-tidy: 0 files to check: none of 0 changed files is a source of build/release\n", ""),
                ("echo gone.h", "", 0, "clang-tidy: 0 files to check: none of 0 changed files is a source of build/release\n", ""),
                ("echo a.h", "echo finding; echo suppressed >&2; exit 1", 123, "finding\n", ""),
                ("echo a.h", "echo suppressed >&2", 0, "", ""),
                ("echo a.h", "echo 'cannot run' >&2; exit 127", 123, "", "cannot run\n")):
            for file, code in zip(stand_ins, (changed, tidy)):
                file.write_text(f"#!/bin/sh\n{code}\n")
                file.chmod(0o755)
            ran = subprocess.run(["scripts/clang_tidy.sh"], cwd=self.root, capture_output=True, text=True,
                                 env=os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"})
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (status, output, errors))


    def test_of_a_large_change_it_checks_files_of_every_folder(self):
        self.copy("clang_tidy.sh", "compile_commands.py")
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/compile_commands.json").write_text("[]")
        self.stand_in("bin/clang-tidy-19", 'echo "${@: -1}" >>log')
        self.stand_in("scripts/changed_files.sh", "ls *.h")
        files = [f"{i:03}.h" for i in range(120)]
        for file in files:
            (self.root / file).touch()
        path = {"env": os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}}
        ran = subprocess.run(["scripts/clang_tidy.sh"], cwd=self.root, capture_output=True, text=True, **path)
        self.assertEqual((ran.returncode, ran.stdout), (0, "clang-tidy: 60 of 120 changed files; clang_tidy.sh FILE... checks others\n"))
        self.assertEqual(sorted((self.root / "log").read_text().split()), files[::2])
        (self.root / "log").unlink()
        subprocess.run(["scripts/clang_tidy.sh", *files], cwd=self.root, check=True, **path)
        self.assertEqual(sorted((self.root / "log").read_text().split()), files)

    def test_an_interrupted_run_goes_on(self):
        self.copy("clang_tidy.sh", "compile_commands.py")
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/compile_commands.json").write_text("[]")
        self.stand_in("scripts/run_tests.py", "cat key")
        self.stand_in("bin/clang-tidy-19", 'echo "${@: -1}" >>log', '[[ ! -e hang || ${@: -1} != b.h ]] || exec sleep 1000')
        for name in ("a.h", "b.h", "hang"):
            (self.root / name).touch()
        log = self.root / "log"

        def checked(key, interrupted):
            (self.root / "key").write_text(key)
            log.write_text("")
            ran = subprocess.Popen(["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), "scripts/clang_tidy.sh", "a.h", "b.h"], cwd=self.root,
                                   start_new_session=True, env=os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"})
            if interrupted:
                self.wait_for(lambda: "b.h" in log.read_text(), ran)
                os.killpg(ran.pid, signal.SIGTERM)
            self.assertEqual(ran.wait(), -signal.SIGTERM if interrupted else 0)
            return log.read_text().split()

        self.assertEqual(checked("key\n", True), ["a.h", "b.h"])
        self.assertEqual(checked("key\n", True), ["b.h"])
        (self.root / "hang").unlink()
        self.assertEqual(checked("key\n", False), ["b.h"])
        self.assertEqual(checked("key\n", False), ["a.h", "b.h"])
        (self.root / "hang").touch()
        checked("key\n", True)
        (self.root / "hang").unlink()
        self.assertEqual(checked("another key\n", False), ["a.h", "b.h"])


class Test(Copy):
    """scripts/test.sh with stand-ins, which write into the file log what they are called for."""

    def setUp(self):
        self.copy("test.sh")
        self.stand_in("scripts/setup.sh", *self.SETUP)
        for script in ("check_sources.sh", "clang_tidy.sh"):
            self.stand_in(f"scripts/{script}", f"echo {script} >>log")
        self.stand_in("scripts/fuzz.sh", 'echo "fuzz.sh $*" >>log', "if [[ $1 != --build && ! -e go ]]; then exec sleep 1000; fi")
        self.stand_in("scripts/run_tests.py", "if [[ $1 == --key ]]; then cat key; exit; fi", 'echo "run_tests.py $*" >>log',
                      "mkdir -p build/tests/release", "touch build/tests/release/journal-1")
        self.stand_in("scripts/test_report.py", "cat build/tests/stages.tsv", "exit 3")
        self.stand_in("bin/clang-format-19", "echo clang-format >>log")
        for folder in "backend bench driver examples frontend ir passes python runtime support tests tools triton tuner".split():
            (self.root / folder).mkdir()
        (self.root / "key").write_text("key\n")

    def start(self, *arguments):
        return subprocess.Popen(["scripts/test.sh", *arguments], cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"},
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup has it ignored.

    def run_it(self, *arguments, end_by=None):
        """The exit status, the output and the calls of a run, which gets the signal when it fuzzes."""
        log = self.root / "log"
        log.unlink(missing_ok=True)
        ran = self.start(*arguments)
        if end_by:
            self.wait_for(lambda: log.exists() and "fuzz.sh --seconds" in log.read_text(), ran)
            ran.send_signal(end_by)
        output, _ = ran.communicate()
        return ran.returncode, output, log.read_text().splitlines()

    def test_a_signal_ends_the_stage_with_its_processes(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.stand_in("scripts/fuzz.sh", "echo $$ >begun", 'echo "fuzz.sh $*" >>log', '[[ $1 == --build ]] || exec sleep 1000')
            status, output, _ = self.run_it(end_by=number)
            self.assertEqual(status, 130)
            self.assertIn("interrupted: run it again to go on", output)
            self.assert_ended(int((self.root / "begun").read_text()))

    def test_an_interrupted_run_goes_on(self):
        everything = self.run_it(end_by=signal.SIGTERM)[2]
        self.assertEqual(everything[:3], ["clang-format", "check_sources.sh", "build "])
        (self.root / "go").touch()
        status, output, calls = self.run_it()
        self.assertEqual(status, 3)  # Of the report.
        self.assertIn("going on after an interruption", output)
        # Builds and tests know what is left, and the tests take the results of the interrupted run.
        self.assertEqual([call.split()[0] for call in calls], ["build", *["run_tests.py", "build_preset"] * 2, "run_tests.py", "fuzz.sh"])
        self.assertTrue(all("--keep-journal" in call for call in calls if call.startswith("run_tests.py")))
        rows = [line.split("\t") for line in output.splitlines() if "\t" in line]
        self.assertEqual([row[3] for row in rows if row[0] == "fuzzing"], ["130", "0"])
        self.assertEqual([row[3] for row in rows if row[0] == "format"], ["0"])
        self.assertEqual(list(self.root.glob("build/tests/release/journal-*")), [])  # The next run begins anew.
        self.assertEqual(self.run_it()[2], everything)

    def test_every_stage_runs_where_others_have_failed(self):
        (self.root / "go").touch()
        everything = self.run_it()[2]
        self.assertEqual([call.split()[-1] for call in everything if "--settings sample" in call], ["large"])
        setup = self.SETUP[:-2]  # Without the builds.
        self.stand_in("scripts/setup.sh", *setup, 'build() { echo "build $*" >>log; return 4; }', 'build_preset() { echo "build_preset $*" >>log; return 5; }')
        self.stand_in("scripts/check_sources.sh", "echo check_sources.sh >>log", "exit 6")
        self.stand_in("scripts/fuzz.sh", 'echo "fuzz.sh $*" >>log', "exit 7")
        _, output, calls = self.run_it()
        self.assertEqual(calls, everything)
        rows = [line.split("\t") for line in output.splitlines() if "\t" in line]
        self.assertEqual({row[0]: row[3] for row in rows}, {
            "format": "0", "layers": "6", "build, release": "4", "headers alone": "4", "clang-tidy on changed files": "0", "tests, release": "0",
            "build, asan": "5", "tests, asan": "0", "build, tsan": "5", "tests, tsan": "0", "seeds of the fuzzer": "7", "fuzzing": "7"})
        self.assertIn("build, asan: FAILED with status 5", output)

    def test_a_quick_run_has_the_tests_of_the_change(self):
        self.stand_in("scripts/quick_tests.py", "")
        (self.root / "scripts/quick_tests.py").write_text("open('log', 'a').write('quick_tests.py\\n')\n")
        status, _, calls = self.run_it("--quick")
        self.assertEqual((status, calls), (3, ["clang-format", "check_sources.sh", "quick_tests.py"]))

    def test_a_second_run_waits_for_the_first(self):
        log, output = self.root / "log", self.root / "output"
        first = self.start()
        self.wait_for(lambda: log.exists() and "fuzz.sh --seconds" in log.read_text(), first)
        calls = log.read_text().splitlines()
        with output.open("w") as file:
            second = subprocess.Popen(["scripts/test.sh", "--quick"], cwd=self.root, stdout=file, stderr=file,
                                      env=os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"})
        self.wait_for(lambda: "waiting for another run of the tests in this folder" in output.read_text(), second)
        self.assertEqual(log.read_text().splitlines(), calls)
        first.terminate()
        first.communicate()
        second.communicate()
        self.assertEqual(log.read_text().splitlines(), [*calls, "clang-format", "check_sources.sh"])

    def test_an_interrupted_run_of_other_sources_does_not_go_on(self):
        everything = self.run_it(end_by=signal.SIGTERM)[2]
        (self.root / "go").touch()
        (self.root / "key").write_text("another key\n")
        self.assertEqual(self.run_it()[2], everything)


class Names(Copy):
    def failures(self, **sources):
        """What the script says of the files a.cpp and so on, in a library and in an unnamed namespace of one of cgc."""
        for name, code in sources.items():
            (self.root / f"passes/{name}.cpp").write_text(f"namespace cgc {{\nnamespace {{\n{code}\n}} // namespace\n}} // namespace cgc\n")
        ran = subprocess.run([sys.executable, "scripts/check_names.py"], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1 if ran.stderr else 0)
        return ran.stderr

    def test_a_name_stands_once_in_a_library(self):
        self.copy("check_names.py")
        for folder in ("passes", "tests"):
            (self.root / folder).mkdir()
            (self.root / folder / "CMakeLists.txt").touch()
        for one, other, name in (("constexpr int kRuns = 20;", "constexpr size_t kFew = 3, kRuns = 50;", "kRuns"),
                                 ("struct Part {\n  int first;\n};", "class Part {};", "Part"),
                                 ("int sum(int a,\n        const T &b) {", "int sum(int x, const T &y = T()) {", "sum(int, const T &)"),
                                 ("int sum(int a) {", "int sum(float a) {", None),
                                 ("struct Part;", "struct Part {", None),
                                 ("public:\n  int sum(int a) {", "int sum(int a) {", None),
                                 ("constexpr int kRuns = 20;", "constexpr int kWarmUps = kRuns;", None)):
            expected = f"passes/a.cpp, passes/b.cpp: {name} stands in each of them, but may be in one batch; name them differently\n" if name else ""
            self.assertEqual(self.failures(a=one, b=other), expected)

    def test_a_namespace_that_it_cannot_read_is_named(self):
        self.copy("check_names.py")
        for folder in ("passes", "tests"):
            (self.root / folder).mkdir()
            (self.root / folder / "CMakeLists.txt").touch()
        (self.root / "passes/a.h").write_bytes(b"// \xff\ninline namespace v1 {\n} // namespace v1\n")
        self.assertEqual(self.failures(), "")
        (self.root / "passes/a.h").write_text("namespace a { namespace b {\n} // namespace b\n} // namespace a\n")
        self.assertEqual(self.failures(), "passes/a.h:2: check_names.py has not seen this namespace open; write 'namespace NAME {' in a line of its own\n")

    def test_no_constant_hides_that_of_a_header(self):
        self.copy("check_names.py")
        for folder in ("passes", "tests"):
            (self.root / folder).mkdir()
            (self.root / folder / "CMakeLists.txt").touch()
        (self.root / "passes/a.h").write_text("namespace cgc {\nconstexpr int kRuns = 1;\n} // namespace cgc\n")
        self.assertEqual(self.failures(a="constexpr int kRuns = 2;"), "passes/a.cpp: kRuns hides that of passes/a.h; name it otherwise\n")
        self.assertEqual(self.failures(a="constexpr int kOthers = 2;"), "")


class Arguments(Copy):
    def test_no_script_takes_an_unknown_one_for_none(self):
        """It would install packages, and build for half an hour."""
        self.copy("setup.sh", "demo.sh", "wheel.sh", "test.sh", "fuzz.sh")
        for script in (self.root / "scripts").iterdir():
            ran = subprocess.run([script, "--help"], cwd=self.root, capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""))
            self.assertRegex(ran.stderr, rf"^{script.name}: '--help': usage: {script.name}.*\n$")


class Fuzz(Copy):
    def test_every_core_runs_a_target_until_the_end(self):
        self.copy("fuzz.sh")
        self.stand_in("scripts/setup.sh", *self.SETUP)
        (self.root / "build/fuzz/seeds").mkdir(parents=True)
        (self.root / "build/fuzz/seeds/complete").touch()
        targets = ["cgir", "npy"][:len(os.sched_getaffinity(0))]
        for target in targets:
            self.stand_in(f"build/asan/bin/cgc_fuzz_{target}", "echo $$ >>begun", "exec sleep 1000")
        ran = subprocess.Popen(["scripts/fuzz.sh", *targets], cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = self.root / "begun"
        self.wait_for(lambda: begun.exists() and len(begun.read_text().split()) == len(targets), ran)
        ran.terminate()
        ran.wait()
        for pid in begun.read_text().split():
            self.assert_ended(int(pid))


    def fuzzed(self, *arguments):
        ran = subprocess.run(["scripts/fuzz.sh", *arguments], cwd=self.root, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    def test_what_fails(self):
        self.copy("fuzz.sh")
        self.stand_in("scripts/setup.sh", *[line for line in self.SETUP if "fail()" not in line], 'fail() { echo "$*" >&2; exit 1; }')
        for target in ("cgir", "npy", "plan"):
            (self.root / "build/fuzz/seeds" / target).mkdir(parents=True)
        (self.root / "build/fuzz/seeds/complete").touch()
        done = 'echo "#9 DONE   cov: 1"; echo "stat::number_of_executed_units: %s"'
        self.stand_in("build/asan/bin/cgc_fuzz_npy", done % 150000)
        for executed, status in ((20000, 0), (19999, 1)):  # That is the number of runs with a seed.
            self.stand_in("build/asan/bin/cgc_fuzz_cgir", done % executed)
            self.assertEqual(self.fuzzed("--seed", "1", "cgir", "npy")[0], status)
            self.assertEqual(self.fuzzed("cgir", "npy")[0], 0)
        self.stand_in("build/asan/bin/cgc_fuzz_cgir", "echo 'x.cpp:1: runtime error: overflow'", "exit 77")
        status, output = self.fuzzed("cgir", "npy")
        self.assertEqual(status, 1)
        self.assertIn("found something: cgir;", output)
        self.assertIn("runtime error: overflow", output)
        self.assertTrue(list((self.root / "build/fuzz/found").glob("cgir-*.log")))
        for launches, status in (("gather 3\\ncopy 1", 0), ("gather 3\\ncopy 0", 1)):
            self.stand_in("build/asan/bin/cgc_fuzz_plan", f"printf '{launches}\\n' >$CGC_FUZZ_LAUNCHES", done % 1)
            self.assertEqual(self.fuzzed("plan")[0], status)
        self.stand_in("build/asan/bin/cgc_fuzz_plan", done % 1)
        self.assertEqual(self.fuzzed("plan")[0], 1)  # It has not written them.


class Sources(Copy):
    def test_what_fails(self):
        self.copy("check_sources.sh")
        self.stand_in("scripts/check_names.py", "exit 0")
        text = (self.root / "scripts/check_sources.sh").read_text()
        folders = {words[1] for words in (line.split() for line in text.splitlines()) if words[:1] in (["layer"], ["lines"])}
        for folder in folders:
            (self.root / folder).mkdir(parents=True, exist_ok=True)

        def check():
            ran = subprocess.run(["scripts/check_sources.sh"], cwd=self.root, capture_output=True, text=True)
            return ran.returncode, ran.stderr

        self.assertEqual(check(), (0, ""))
        file = self.root / "passes/a.h"
        for path, code, message in (("passes/a.h", '#include "ir/graph.h"\n', ""),
                                    ("passes/a.h", '#include "backend/backend.h"\n', "passes may include only: passes support ir runtime/base\n"),
                                    ("backend/a.cpp", '#include "runtime/kernels/sm90/wgmma.cuh"\n', "only the host half of runtime/kernels"),
                                    ("support/a.py", "\n" * 601, "support has more lines than scripts/check_sources.sh allows")):
            file = self.root / path
            file.write_text(code)
            status, errors = check()
            self.assertEqual(status, bool(message), path)
            self.assertIn(message, errors)
            file.unlink()
        self.stand_in("scripts/check_names.py", "exit 1")
        self.assertEqual(check()[0], 1)


class QuickRun(Copy):
    """scripts/quick_tests.py with stand-ins for builds and for run_tests.py."""

    def test_what_fails(self):
        self.copy("quick_tests.py")
        (self.root / "tests").mkdir()
        shutil.copy(ROOT / "tests/CMakeLists.txt", self.root / "tests")
        (self.root / "scripts/run_tests.py").write_text("import sys\nopen('log', 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
                                                        "sys.exit(sys.argv[-1] in open('bad').read().split())\n")
        paths = ["tests/unit/passes/cse_test.cpp", "tests/unit/ir/a_test.cpp", "tuner/tuner.cpp"]
        for path in paths:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).touch()
        results = self.root / "build/tests/release/results.json"
        results.parent.mkdir(parents=True)
        log = self.root / "log"

        def ran(bad="", build=0):
            log.write_text("")
            (self.root / "bad").write_text(bad)
            results.write_text("of an earlier run")
            self.stand_in("scripts/setup.sh", f'build() {{ echo "build $*" >>log; return {build}; }}')
            status = subprocess.run([sys.executable, "scripts/quick_tests.py", *paths], cwd=self.root, capture_output=True).returncode
            self.assertFalse(results.exists())
            return status, log.read_text().splitlines()

        options = "--exclude-label families --add --entry"
        calls = ["build cgc_fake_device_tests cgc_ir_tests cgc_passes_tests cgc_tuner_tests", f"{options} cgc_fake_device_tests --entry cgc_tuner_tests",
                 f"{options} cgc_ir_tests --file {paths[1]}", f"{options} cgc_passes_tests --file {paths[0]}"]
        self.assertEqual(ran(), (0, calls))
        for bad in ("cgc_tuner_tests", paths[0], paths[1]):  # The other runs do not hide it.
            self.assertEqual(ran(bad), (1, calls))
        self.assertEqual(ran(build=5), (5, calls[:1]))


class Quick(unittest.TestCase):
    @staticmethod
    def belong_to(path):
        return quick_tests.tests_of(path, quick_tests.programs())

    def test_every_file_of_the_repository_is_known(self):
        files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
        if files.returncode:
            self.skipTest("no clone")
        for file in files.stdout.splitlines():
            tests = self.belong_to(file)
            self.assertNotEqual(tests, [], file)

    def test_the_tests_exist(self):
        text = (ROOT / "tests/CMakeLists.txt").read_text()
        for _, tests in quick_tests.TESTS_OF:
            for test in tests or []:
                entry, _, file = test.partition(":")
                self.assertIn(entry.rstrip("*"), text)
                self.assertTrue((ROOT / file).exists(), file)

    def test_what_is_gone_has_the_tests_of_its_layer(self):
        self.assertEqual(self.belong_to("passes/gone.cpp"), ["cgc_passes_tests", "cgc_file_tests"])
        self.assertEqual(self.belong_to("tests/unit/passes/gone_test.cpp"), [])
        self.assertEqual(self.belong_to("tests/unit/passes/gone/gone.h"), ["cgc_passes_tests:tests/unit/passes"])
        self.assertIsNone(self.belong_to("somewhere/gone.cpp"))

    def test_scripts_of_the_tests_have_tests(self):
        for script in ("test.sh", "run_tests.py", "clang_tidy.sh", "changed_files.sh", "compile_commands.py", "check_sources.sh", "fuzz.sh"):
            self.assertEqual(self.belong_to(f"scripts/{script}"), ["RunTests.*"])

    def test_a_source_with_cases_in_two_entries_has_both(self):
        self.assertIn("cgc_e2e_installed:tests/e2e/plugin_test.cpp", self.belong_to("tests/e2e/plugin_test.cpp"))

    def test_a_file_that_nobody_knows_is_an_error(self):
        file = ROOT / "build/unknown.cpp"
        file.parent.mkdir(exist_ok=True)
        file.touch()
        self.addCleanup(file.unlink)
        with self.assertRaises(LookupError):
            self.belong_to("build/unknown.cpp")

    def test_a_file_that_nobody_knows_does_not_stop_the_others(self):
        ran = lambda *paths: subprocess.run([sys.executable, "scripts/quick_tests.py", *paths], cwd=self.root, capture_output=True, text=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.root = Path(tempfile.mkdtemp(dir=FOLDER))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        for name in ("scripts/quick_tests.py", "tests/CMakeLists.txt"):
            (self.root / name).parent.mkdir()
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "nohup.out").touch()
        result = ran("nohup.out", "docs/cli.md", "CMakeLists.txt")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("nohup.out has no row in TESTS_OF in scripts/quick_tests.py, so nothing tests it\n", result.stdout)
        self.assertIn("tested by scripts/test.sh only: docs/cli.md, CMakeLists.txt\n", result.stdout)
        for path in ("--help", "./passes/cse.cpp", "/passes/cse.cpp"):
            result = ran(path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"'{path}' is no path from the root of the repository; usage:", result.stderr)

    def test_a_source_of_tests_has_its_own_cases(self):
        self.assertEqual(self.belong_to("tests/unit/passes/cse_test.cpp"), ["cgc_passes_tests:tests/unit/passes/cse_test.cpp"])
        self.assertEqual(self.belong_to("tests/unit/passes/passes_test_util.h"), ["cgc_passes_tests:tests/unit/passes"])
        self.assertIn("cgc_session_tests_on_fake:tests/unit/runtime", self.belong_to("tests/unit/runtime/sample_plan.h"))


unittest.main(argv=["tests", *sys.argv[2:]], verbosity=2)  # A test that hangs is the last line.

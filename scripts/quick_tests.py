#!/usr/bin/env python3
"""Builds and runs the tests of what differs from origin/main: quick_tests.py [PATH...]

The cases of each changed test source, and the tests of the layer of each other changed file; of a helper in tests, all cases of its folder
and of those below. Files that the change deletes or moves count too.
Not run: tests of the layers above, models in real size, sanitizers, fuzzing, and clang-tidy; scripts/test.sh runs those. The output names
the changed files that have no quick tests.
"""
import fnmatch
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Which tests belong to a path: entries of ctest, or "entry:file" for the cases of one source. The first match counts. No test belongs to
# documents and to programs that people run; None is for what only scripts/test.sh tests.
TESTS_OF = [
    ("docs/passes.md", ["cgc_file_tests"]),
    ("README.md", ["Docs.CodeBlocksRun"]),
    ("docs/python.md", ["Docs.CodeBlocksRun"]), ("docs/training.md", ["Docs.CodeBlocksRun"]),
    ("docs/embeddings.md", ["Docs.CodeBlocksRun"]),
    ("docs/serving.md", ["Docs.CodeBlocksRun"]), ("docs/deployment.md", ["Docs.CodeBlocksRun"]),
    ("tests/filetests/*", ["cgc_file_tests"]),
    ("tests/python/*", ["Python.Wheel*"]),
    ("tests/run_tests/*", ["RunTests.*"]),
    ("tests/setup_test.sh", ["Setup.DoesOnlyWhatIsMissing"]),
    ("tests/fuzz/*", None),
    ("tests/fake_cuda/*", ["cgc_fake_device_tests", "cgc_device_tests_on_fake"]),
    ("tests/test_device/*", ["cgc_session_tests", "cgc_session_tests_on_fake", "cgc_train_tests", "cgc_train_tests_on_fake",
                             "cgc_deployment_tests", "cgc_tool_tests"]),
    ("tests/plugin_libraries/nccl.cpp", ["cgc_exec_tests:tests/unit/runtime/exec/communicator_test.cpp",
                                         "cgc_fake_device_tests:tests/unit/fake_device/collectives_test.cpp"]),
    ("tests/plugin_libraries/*", ["cgc_device_tests_on_fake", "cgc_e2e_tests:tests/e2e/plugin_test.cpp"]),
    ("tests/c_api/*", ["cgc_deployment_tests", "CApi.*"]),
    ("tests/device_code_test.cmake", ["Backend.LinksNoDeviceCode"]),
    ("tests/headers_hash_test.cmake", ["PluginHeaders.*"]),
    ("tests/data/*", ["cgc_e2e_tests:tests/e2e/exporter_test.cpp"]),
    ("tests/slow_cases.txt", ["RunTests.*"]),
    ("tests/op_library_files.h", ["cgc_tool_tests"]),
    ("tests/ranks.h", ["cgc_fake_device_tests:tests/unit/fake_device/collectives_test.cpp"]),
    ("tests/paths.*", ["cgc_tool_tests"]),
    ("tests/temp_folder.h", ["cgc_plan_tests"]),
    ("tests/make_once.h", ["cgc_numerics_tests:tests/numerics/script_model_test.cpp", "cgc_e2e_tests:tests/e2e/make_once_test.cpp",
                           "cgc_e2e_tests:tests/e2e/exporter_test.cpp"]),
    ("tests/e2e/installed_test.cpp", ["cgc_e2e_installed"]),
    ("tests/e2e/plugin_test.cpp", ["cgc_e2e_tests:tests/e2e/plugin_test.cpp", "cgc_e2e_installed:tests/e2e/plugin_test.cpp"]),
    ("tests/e2e/build_examples.cmake", ["cgc_e2e_installed"]),
    ("tests/e2e/real_model_test.cpp", None),
    ("tests/e2e/make_families.py", ["cgc_e2e_tests:tests/e2e/families_test.cpp"]),
    ("tests/e2e/families.*", ["cgc_e2e_tests:tests/e2e/families_test.cpp"]),
    ("tests/e2e/make_scripted.py", ["cgc_e2e_tests:tests/e2e/scripted_test.cpp"]),
    ("tests/e2e/make_training_models.py", ["cgc_e2e_tests:tests/e2e/training_exporter_test.cpp"]),
    ("tests/e2e/bad_steps.py", ["cgc_e2e_tests:tests/e2e/bad_steps_test.cpp"]),
    ("tests/e2e/docs_test.py", ["Docs.CodeBlocksRun"]),
    ("tests/e2e/advice_test.py", ["Messages.AdviseWhatExists"]),
    ("tests/e2e/checkpoint_names_test.py", ["Exporter.TakesCheckpointsOfTrainers"]),
    ("python/cgc/_checkpoint.py", ["Python.Wheel*", "cgc_e2e_tests:tests/e2e/exporter_test.cpp"]),
    ("scripts/openclip_checkpoint.py", ["Exporter.TakesCheckpointsOfTrainers",
                                        "cgc_e2e_tests:tests/e2e/exporter_test.cpp"]),
    ("tests/e2e/make_exported.py", ["cgc_e2e_tests:tests/e2e/exported_test.cpp"]),
    ("tests/e2e/*.py", ["cgc_e2e_tests:tests/e2e/compile_test.cpp"]),
    ("tests/numerics/generated_modules.py", ["cgc_numerics_tests:tests/numerics/generated_modules_test.cpp"]),
    ("tests/numerics/*.py", ["cgc_numerics_tests:tests/numerics/frontend_test.cpp"]),
    ("tests/*CMakeLists.txt", None),
    ("scripts/setup.sh", ["Setup.DoesOnlyWhatIsMissing"]),
    *((f"scripts/{name}", ["RunTests.*"]) for name in (
        "test.sh", "run_tests.py", "test_report.py", "quick_tests.py", "changed_files.sh", "clang_tidy.sh", "compile_commands.py", "check_names.py",
        "check_sources.sh", "fuzz.sh")),
    ("scripts/export_*", ["cgc_e2e_tests:tests/e2e/exporter_test.cpp", "cgc_e2e_tests:tests/e2e/training_exporter_test.cpp"]),
    ("scripts/openclip_*", ["cgc_e2e_tests:tests/e2e/exporter_test.cpp"]),
    ("scripts/preprocess_*", ["cgc_e2e_tests:tests/e2e/preprocess_test.cpp"]),
    ("scripts/*", None),
    ("runtime/base/*", ["cgc_base_tests", "cgc_plan_tests"]),
    ("runtime/plan/*", ["cgc_plan_tests", "cgc_exec_tests"]),
    ("runtime/kernels/*", ["cgc_kernels_tests", "cgc_conformance_tests"]),
    ("runtime/exec/*", ["cgc_exec_tests", "cgc_fake_device_tests", "cgc_device_tests_on_fake"]),
    ("runtime/session/*", ["cgc_session_tests", "cgc_session_tests_on_fake"]),
    ("runtime/train/*", ["cgc_train_tests", "cgc_train_tests_on_fake"]),
    ("runtime/c_api/*", ["cgc_deployment_tests", "cgc_session_tests_on_fake"]),
    ("runtime/cgc.h", ["cgc_deployment_tests"]),
    ("runtime/aten/*", ["cgc_numerics_tests:tests/numerics/aten_provider_test.cpp", "cgc_numerics_tests:tests/numerics/lowering_test.cpp"]),
    ("runtime/script/*", ["cgc_numerics_tests:tests/numerics/script_model_test.cpp", "cgc_numerics_tests:tests/numerics/frontend_test.cpp"]),
    ("support/*", ["cgc_ir_tests"]),
    ("ir/*", ["cgc_ir_tests", "cgc_file_tests", "cgc_numerics_tests:tests/numerics/shape_rules_test.cpp", "cgc_numerics_tests:tests/numerics/gradient_rules_test.cpp"]),
    ("passes/*", ["cgc_passes_tests", "cgc_file_tests"]),
    ("backend/*", ["cgc_backend_tests", "cgc_file_tests"]),
    ("tuner/*", ["cgc_tuner_tests", "cgc_fake_device_tests"]),
    ("driver/*", ["cgc_driver_tests"]),
    ("frontend/exported/*", ["cgc_exported_tests", "cgc_e2e_tests:tests/e2e/exported_test.cpp"]),
    ("frontend/*", ["cgc_numerics_tests:tests/numerics/frontend_test.cpp", "cgc_numerics_tests:tests/numerics/frontend_refusals_test.cpp"]),
    ("tools/*", ["cgc_tool_tests", "cgc_e2e_tests:tests/e2e/help_test.cpp"]),
    ("python/*", ["Python.Wheel*"]),
    ("triton/*", ["Python.WheelWithTriton"]),
    ("examples/triton/*", ["Python.WheelWithTriton"]),
    ("examples/*", ["Examples.BuildAgainstAnInstalledCgc"]),
    ("cmake/*", None), ("CMakePresets.json", None), ("CMakeLists.txt", None), ("runtime/CMakeLists.txt", None), ("bench/*", None),
    ("docs/*", None), ("*.md", None), (".*", None),
]


def changed():
    listing = subprocess.run(["scripts/changed_files.sh"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if listing.returncode:
        sys.exit("quick_tests: git cannot tell which files have changed, as above")
    return listing.stdout.splitlines()


def programs():
    """The folders of each gtest program's sources, from the lines of tests/CMakeLists.txt."""
    result = {}
    for line in (ROOT / "tests/CMakeLists.txt").read_text().split("\ncgc_add_test(")[1:]:
        words = line.split(")")[0].split()
        folders = []
        for word in words[words.index("DIR") + 1:]:
            if word.isupper():
                break
            folders.append(f"tests/{word}/")
        if "CASES_OF" in words:
            folders += result[words[words.index("CASES_OF") + 1]]
        result[words[0]] = folders
    return result


def tests_of(path, folders):
    """The tests of a path; None if only scripts/test.sh has some. Raises LookupError for a file that TESTS_OF does not know."""
    exists, is_test = (ROOT / path).exists(), path.endswith("_test.cpp")
    if is_test and not exists:
        return []  # Its cases are gone too.
    for pattern, tests in TESTS_OF:
        if fnmatch.fnmatch(path, pattern):
            return tests
    if path.startswith("tests/") and path.endswith((".cpp", ".h")):
        # A helper belongs to all cases of its folder and of those below.
        folder = next(str(parent) for parent in Path(path).parents if (ROOT / parent).exists())
        return [f"{program}:{path if is_test else folder}" for program, dirs in folders.items()
                if any(path.startswith(d) or (not is_test and d.startswith(f"{folder}/")) for d in dirs)]
    if exists:
        raise LookupError(path)
    return None


def main():
    for path in sys.argv[1:]:
        if path.startswith(("-", "/", "./", "../")):
            sys.exit(f"quick_tests: '{path}' is no path from the root of the repository; usage: quick_tests.py [PATH...]")
    paths = sys.argv[1:] or changed()
    folders = programs()
    entries, files, whole, untested = set(), set(), set(), []
    for path in paths:
        try:
            tests = tests_of(path, folders)
        except LookupError:  # A log or notes, say. RunTests.ReportsAndChooses fails for a file of the repository.
            print(f"quick_tests: {path} has no row in TESTS_OF in scripts/quick_tests.py, so nothing tests it")
            continue
        if tests is None:
            untested.append(path)
        for test in tests or []:
            entry, _, file = test.partition(":")
            entries.add(entry)
            if file:
                files.add((entry, file))
            else:
                whole.add(entry)
    if untested:
        print("quick_tests: tested by scripts/test.sh only:", ", ".join(untested))
    (ROOT / "build/tests/release/results.json").unlink(missing_ok=True)
    shutil.rmtree(ROOT / "build/tests/release/failed", ignore_errors=True)
    if not entries:
        print("quick_tests: no test belongs to the changed files")
        return
    print("quick_tests:", ", ".join(sorted(entries)), flush=True)
    # An entry that is no gtest program may need any target.
    targets = sorted(entries) if entries <= folders.keys() else ["all"]
    build = subprocess.run(["bash", "-c", 'source scripts/setup.sh; build "$@"', "bash", *targets], cwd=ROOT)
    if build.returncode:
        sys.exit(build.returncode)
    failed = 0
    runs = []
    if whole:
        runs.append([word for entry in sorted(whole) for word in ("--entry", entry)])
    for entry in sorted({e for e, _ in files} - whole):
        runs.append(["--entry", entry] + [word for e, file in sorted(files) if e == entry for word in ("--file", file)])
    for arguments in runs:
        command = [sys.executable, "scripts/run_tests.py", "--exclude-label", "families", "--add", *arguments]
        failed |= subprocess.run(command, cwd=ROOT).returncode
    sys.exit(failed)


if __name__ == "__main__":
    main()

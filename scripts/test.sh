#!/usr/bin/env bash
# Sets up, builds everything and runs every test. Continuous integration calls this and nothing else.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"
setup
say "checking the format of the sources"
sources() { find backend bench driver examples frontend ir passes python runtime support tests tools tuner -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'; }
sources | xargs clang-format-19 --dry-run --Werror || fail "not formatted, as above; clang-format-19 -i fixes it"
say "checking the layers"
scripts/check_layers.sh
# Also checks that every header that needs no LibTorch compiles alone.
layers=(cgc_{base,plan,kernel_table,kernels,exec,session,c_api,support,ir,passes,backend,tuner,driver})
build all "${layers[@]/%/_verify_interface_header_sets}"
say "checking the changed files with clang-tidy"
scripts/clang_tidy.sh || fail "clang-tidy has found something, as above; .clang-tidy says what it checks"
# run_tests PRESET: logs all output; prints only skipped tests, failed tests with their output, and the summary.
run_tests() {
  ctest --preset "$1" --parallel "$(nproc)" 2>&1 | tee "build/test-$1.log" |
    grep -vE '^ +Start|^ *[0-9]+/[0-9]+ Test .* Passed '
}
say "testing"
# To leave out the models in real size: ctest --preset release --label-exclude families
run_tests release
# Without a GPU only what nothing else can run may skip.
skipped=$(grep -c '\*\*\*Skipped' build/test-release.log || true)
total=$(sed -nE 's/.* tests? failed out of ([0-9]+)$/\1/p' build/test-release.log)
((100 * skipped <= 3 * total)) || fail "$skipped of $total tests skip, more than 3 %; run them by the reference executor (docs/kernels.md)"
# Repeats the tests that need no LibTorch, with assertions, sanitizers, and a check of the IR's round trip after every pass.
build_preset asan
say "testing with sanitizers"
run_tests asan
# Repeats the runtime's tests on the fake GPU with the thread sanitizer.
build_preset tsan
say "testing with the thread sanitizer"
run_tests tsan
# Fuzzes the file readers with reproducible inputs (docs/fuzzing.md).
scripts/fuzz.sh --seconds 20 --seed 1

#!/usr/bin/env bash
# test.sh [--quick]: sets up, builds everything and runs every test. Continuous integration calls this and nothing else.
# Every stage runs, also where an earlier one has failed; the exit status is 0 if all passed. The closing table is also
# in build/tests/reports. An interrupted run goes on where it was, if the sources and packages are the same. --quick: the
# format, the layers, and the tests of what differs from origin/main (scripts/quick_tests.py).
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"
[[ $# == 0 || $* == --quick ]] || fail "'$*': usage: test.sh [--quick]"

mkdir -p build/tests
exec 8>build/tests/.lock
flock --nonblock 8 || { say "waiting for another run of the tests in this folder"; flock 8; }
setup tests

stages=build/tests/stages.tsv
# The key of a run without a report. Outside of a clone, no run goes on.
unfinished=build/tests/unfinished
key=$(scripts/run_tests.py --key 2>/dev/null) && key+=" $*" || key=
if [[ $key && -f $unfinished && $(<$unfinished) == "$key" ]]; then
  say "going on after an interruption"
else
  rm -rf build/tests/stages
  mkdir build/tests/stages
  : >$stages
  echo "$key" >$unfinished
fi
job=
# A signal to this shell ends the stage with all of its processes.
interrupt() {
  if [[ $job ]]; then
    if kill -TERM -- "-$job"; then wait "$job" || true; fi 2>/dev/null
    record 130
  fi
  echo "interrupted: run it again to go on" >&2
  exit 130
}
trap interrupt INT TERM HUP
# record STATUS: adds a row for the stage: its name, when it began, its seconds and its exit status.
record() { printf '%s\t%s\t%s\t%s\n' "$name" "$begin" $((EPOCHSECONDS - begin)) "$1" >>$stages; }
# stage NAME COMMAND...: runs the command in a process group of its own, and records it, and in build/tests/stages its output.
# A stage that has passed before an interruption does not run again. Builds and tests find out themselves what is left.
stage() {
  name=$1 begin=$EPOCHSECONDS
  local status=0
  shift
  if [[ $name != build* && $name != tests* ]] && grep -q "^$name"$'\t.*\t0$' $stages; then
    say "$name: has passed before the interruption"
    return
  fi
  say "$name"
  set -m
  (set +m; set -e; "$@" 2>&1 | tee "build/tests/stages/$name.log") 8>&- </dev/null &
  job=$!
  set +m
  wait "$job" || status=$?
  job=
  record $status
  ((status != 130)) || exit 130
  ((status == 0)) || say "$name: FAILED with status $status" >&2
}

sources() { find backend bench driver examples frontend ir passes python runtime support tests tools triton tuner -name '*.cpp' -o -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh'; }
check_format() { sources | xargs -d '\n' clang-format-19 --dry-run --Werror || fail "not formatted, as above; clang-format-19 -i fixes it"; }
check_tidy() { scripts/clang_tidy.sh || fail "clang-tidy has found something, as above; .clang-tidy says what it checks"; }

stage "format" check_format
stage "layers" scripts/check_sources.sh
if [[ $* == --quick ]]; then
  stage "tests of the change" /usr/bin/env python3 scripts/quick_tests.py
else
  stage "build, release" build
  # Compiles every header alone, without precompiled headers (cmake/cgc_add_library.cmake).
  stage "headers alone" build all_verify_interface_header_sets
  stage "clang-tidy on changed files" check_tidy
  # To leave out the models in real size: scripts/run_tests.py --exclude-label families
  stage "tests, release" scripts/run_tests.py --keep-journal --settings sample --exclude-label large
  # The tests that need no LibTorch, with assertions, sanitizers, and a check of the IR's round trip after every pass.
  # The fuzz targets are built with them.
  stage "build, asan" build_preset asan
  stage "tests, asan" scripts/run_tests.py --keep-journal --preset asan
  # The runtime's tests on the fake GPU with the thread sanitizer.
  stage "build, tsan" build_preset tsan
  stage "tests, tsan" scripts/run_tests.py --keep-journal --preset tsan
  # The file readers with reproducible inputs (docs/fuzzing.md).
  stage "seeds of the fuzzer" scripts/fuzz.sh --build
  stage "fuzzing" scripts/fuzz.sh --seconds 20 --seed 1
fi
status=0
scripts/test_report.py || status=$?
rm -f $unfinished
if [[ $* != --quick ]]; then rm -f build/tests/*/journal-*; fi
exit $status

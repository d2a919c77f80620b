#!/usr/bin/env bash
# Sets up, builds everything and runs every test. Continuous integration calls this and nothing else.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"
setup
build
say "testing"
# What passes is one line each in the log; here come the skipped, the failed with their output, and the summary.
log=build/test-release.log
ctest --preset release --parallel "$(nproc)" 2>&1 | tee $log | grep -vE '^ +Start|^ *[0-9]+/[0-9]+ Test .* Passed '

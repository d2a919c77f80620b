#!/usr/bin/env bash
# clang_tidy.sh [FILE...]: checks the files, or else the sources among scripts/changed_files.sh, with .clang-tidy. Of a change
# of more than 60 files it checks 60, spread over the list. An interrupted run goes on where it was. Needs the compile commands of build/release; .cu and .cuh
# files have none that Clang understands.
set -euo pipefail
cd "$(dirname "$0")/.."

files=("$@")
if (($# == 0)); then
  changed=$(scripts/changed_files.sh)
  while read -r file; do
    if [[ -f $file ]]; then files+=("$file"); fi # Others are gone.
  done <<< "$changed"
fi
database=build/release/compile_commands.json
[[ -f $database ]] || { echo "clang_tidy.sh: $database is missing: cmake --preset release writes it" >&2; exit 1; }
mkdir -p build/release/{tidy,headers}
scripts/compile_commands.py build/release > build/release/tidy/compile_commands.json
database=build/release/tidy/compile_commands.json
sources=()
for file in "${files[@]}"; do
  [[ -f $file ]] || { echo "clang_tidy.sh: there is no file $file" >&2; exit 1; }
  case $file in
  examples/* | python/*) ;; # Built against an installed cgc: not in the compile commands.
  runtime/cgc.h | tests/c_api/*.h) ;; # C
  *.h) sources+=("$file") ;;
  *.cpp)
    if grep -qF "/$file\"" "$database"; then
      sources+=("$file")
    elif (($#)); then
      echo "clang_tidy.sh: $file is not compiled in build/release: give a path from the root of the repository" >&2
      exit 1
    fi
    ;;
  esac
done
((${#sources[@]})) || { echo "clang-tidy: 0 files to check: none of ${#files[@]} changed files is a source of build/release"; exit 0; }
if (($# == 0 && ${#sources[@]} > 60)); then
  all=("${sources[@]}") sources=()
  for ((i = 0; i < 60; ++i)); do sources+=("${all[i * ${#all[@]} / 60]}"); done
  echo "clang-tidy: ${#sources[@]} of ${#all[@]} changed files; clang_tidy.sh FILE... checks others"
fi
# The key of an interrupted run, and the files that have passed in it.
passed=build/release/tidy/passed
key=$(scripts/run_tests.py --key 2> /dev/null) || key=
[[ $key && -f $passed && $(head -n 1 $passed) == "$key" ]] || echo "$key" > $passed
# A target may precompile the header under test. It would then be defined twice, so headers are checked without the PCH.
sed -E 's/ -include [^ ]*cmake_pch\.hxx//' "$database" > build/release/headers/compile_commands.json
# check FILE: checks one file. clang-tidy's findings are on stdout, and its status is then 1. On stderr it counts what it
# suppresses, or says why it cannot run. It includes what GCC has precompiled.
check() {
  local errors status=0 database=tidy
  [[ $1 != *.h ]] || database=headers
  { errors=$(clang-tidy-19 -p build/release/$database --quiet --extra-arg=-Wno-ignored-gch "$1" 2>&1 >&3) || status=$?; } 3>&1
  ((status <= 1)) || echo "$errors" >&2
  ((status)) || echo "$1" >> $passed
  return $status
}
export -f check
export passed
status=0
# shellcheck disable=SC2016
printf '%s\n' "${sources[@]}" | { grep -vxFf $passed || true; } | xargs -rd '\n' -n 1 -P "$(nproc)" bash -c 'check "$1"' - || status=$?
rm -f $passed
exit $status

#!/usr/bin/env bash
# clang_tidy.sh [FILE...]: checks the files, or else the sources among scripts/changed_files.sh, with .clang-tidy. Of a change
# of more than 60 files it checks 60, spread over the list. Needs the compile commands of build/release; .cu and .cuh
# files have none that Clang understands.
set -euo pipefail
cd "$(dirname "$0")/.."

if (($#)); then files=("$@"); else mapfile -t files < <(scripts/changed_files.sh); fi
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
  runtime/cgc.h) ;;         # C
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
((${#sources[@]})) || exit 0
if (($# == 0 && ${#sources[@]} > 60)); then
  all=("${sources[@]}") sources=()
  for ((i = 0; i < 60; ++i)); do sources+=("${all[i * ${#all[@]} / 60]}"); done
  echo "clang-tidy: ${#sources[@]} of ${#all[@]} changed files; clang_tidy.sh FILE... checks others"
fi
# A header may be among those that its target precompiles, which would define it twice: headers are checked without those.
sed -E 's/ -include [^ ]*cmake_pch\.hxx//' "$database" > build/release/headers/compile_commands.json
# Clang-tidy counts what it suppresses on stderr; its findings are on stdout. It includes what GCC has precompiled.
# check FILE: checks one file.
check() { clang-tidy-19 -p "build/release/$([[ $1 == *.h ]] && echo headers || echo tidy)" --quiet --extra-arg=-Wno-ignored-gch "$1" 2> /dev/null; }
export -f check
# shellcheck disable=SC2016
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$1"' -

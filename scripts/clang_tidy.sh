#!/usr/bin/env bash
# clang_tidy.sh [FILE...]: checks the files, or else the sources that differ from origin/main, with .clang-tidy. On
# origin/main itself it checks those of the last commit, and without history those that are not committed. Of a change
# of more than 60 files it checks 60, spread over the list. Needs the compile commands of build/release; .cu and .cuh
# files have none that Clang understands.
set -euo pipefail
cd "$(dirname "$0")/.."

# base: prints the commit to compare with; nothing without history.
base() {
  local fork
  fork=$(git merge-base origin/main HEAD 2> /dev/null) && [[ $fork != "$(git rev-parse HEAD)" ]] && echo "$fork" && return
  git rev-parse --quiet --verify HEAD~1 || true
}

# changed: prints the files that differ from the base, those that are not committed included.
changed() {
  git rev-parse --is-inside-work-tree > /dev/null 2>&1 || return 0
  git diff --name-only --diff-filter=d "$(base | grep . || echo HEAD)"
  git ls-files --others --exclude-standard
}

if (($#)); then files=("$@"); else mapfile -t files < <(changed | sort -u); fi
database=build/release/compile_commands.json
sources=()
for file in "${files[@]}"; do
  case $file in
  examples/* | python/*) ;; # Built against an installed cgc: not in the compile commands.
  runtime/cgc.h) ;;         # C
  *.h) sources+=("$file") ;;
  *.cpp) if grep -qF "/$file\"" "$database"; then sources+=("$file"); fi ;;
  esac
done
((${#sources[@]})) || exit 0
step=$(((${#sources[@]} + 59) / 60))
if (($# == 0 && step > 1)); then
  all=("${sources[@]}") sources=()
  for ((i = 0; i < ${#all[@]}; i += step)); do sources+=("${all[i]}"); done
  echo "clang-tidy: ${#sources[@]} of ${#all[@]} changed files; clang_tidy.sh FILE... checks others"
fi
# Clang-tidy counts what it suppresses on stderr; its findings are on stdout. It includes what GCC has precompiled.
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/release --quiet --extra-arg=-Wno-ignored-gch 2> /dev/null

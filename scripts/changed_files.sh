#!/usr/bin/env bash
# Prints the files that differ from origin/main, those that are not committed included. On origin/main itself they are
# those of the last commit, and without history those that are not committed.
set -euo pipefail
cd "$(dirname "$0")/.."

# base: prints the commit to compare with; nothing without history.
base() {
  local fork
  fork=$(git merge-base origin/main HEAD 2> /dev/null) && [[ $fork != "$(git rev-parse HEAD)" ]] && echo "$fork" && return
  git rev-parse --quiet --verify HEAD~1 || true
}

git rev-parse --is-inside-work-tree > /dev/null 2>&1 || exit 0
{
  git diff --name-only --diff-filter=d "$(base | grep . || echo HEAD)"
  git ls-files --others --exclude-standard
} | sort -u

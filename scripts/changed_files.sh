#!/usr/bin/env bash
# Prints the files that differ from origin/main, those that are not committed and those that are gone included. On
# origin/main itself they are those of the last commit, and without history all files. Fails if git does.
set -euo pipefail
cd "$(dirname "$0")/.."

# base: prints what to compare with: a commit, or without history the empty tree.
base() {
  local fork
  fork=$(git merge-base origin/main HEAD 2> /dev/null) && [[ $fork != "$(git rev-parse HEAD)" ]] && echo "$fork" && return
  if git rev-parse --quiet --verify HEAD~1; then
    [[ $fork ]] || hint "the files of the last commit"
  else
    hint "all files"
    git hash-object -t tree /dev/null
  fi
}
hint() {
  echo "changed_files.sh: these are $1, for git has no commit of origin/main here, or none before HEAD;" \
    "git fetch origin main:refs/remotes/origin/main gets them, in a shallow clone with --unshallow" >&2
}

[[ -e .git ]] || { echo "changed_files.sh: this folder is no clone, so no file has changed" >&2; exit 0; }
{
  # Without quotes around names with letters outside of ASCII.
  git -c core.quotePath=off diff --name-only --no-renames "$(base)"
  git -c core.quotePath=off ls-files --others --exclude-standard
} | sort -u

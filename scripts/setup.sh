#!/usr/bin/env bash
# Sets up a Debian 12 machine for cgc: installs the packages of scripts/dependencies.txt and makes .venv. A second run
# does only what is missing. Other scripts source this one for setup, build and say.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build
trap 'echo "interrupted: run it again to go on" >&2; exit 130' INT

say() { echo "== $*"; }
fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

# quietly LOG COMMAND...: runs the command with its output in the log. On failure, shows what Ninja says of the first targets that
# failed, or else the end of the log.
quietly() {
  local log=$1 status=0
  shift
  "$@" >>"$log" 2>&1 </dev/null || status=$?
  [[ $status == 0 ]] && return
  grep -m 3 -A 15 '^FAILED: ' "$log" >&2 || tail -n 30 "$log" >&2
  fail "failed with status $status: $1 ${2-} ${3-}... (all of its output: $log)"
}

# dependencies KIND SEPARATOR: prints the dependencies of one kind as NAME SEPARATOR VERSION.
dependencies() { awk -v kind="$1" -v separator="$2" '$1 == kind { print $2 separator $3 }' scripts/dependencies.txt; }

install_debian_packages() {
  local name version status missing=()
  local -A installed=()
  command -v apt-get >/dev/null || fail "needs Debian 12 (no apt-get here)"
  while read -r status name version; do
    if [[ $status == ?i* ]]; then installed[$name]=$version; fi
  done < <(dpkg-query --show --showformat '${db:Status-Abbrev} ${Package} ${Version}\n')
  while read -r name version; do
    # shellcheck disable=SC2053  # the version is a pattern
    if [[ ! -v installed[$name] ]]; then
      missing+=("$name=$version")
    elif [[ ${installed[$name]} != $version ]]; then
      say "$name ${installed[$name]} is installed and stays; cgc is tested with $version"
    fi
  done < <(dependencies apt ' ')
  [[ ${#missing[@]} == 0 ]] && return

  local root=()
  if [[ $EUID != 0 ]]; then
    command -v sudo >/dev/null || fail "needs root or sudo for: apt-get install ${missing[*]}"
    root=(sudo)
    sudo -v || fail "sudo refused; as root: apt-get install ${missing[*]}"
  fi
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=600)
  local log=build/setup-debian.log
  say "Debian packages: installing ${#missing[@]} (log: $log)"
  : >$log
  quietly $log "${apt[@]}" update
  # After an interruption, dpkg refuses all work until `dpkg --configure -a` has finished it.
  if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >>$log 2>&1 </dev/null; then
    say "Debian packages: a second try, after finishing what an interrupted one has left"
    quietly $log "${root[@]}" dpkg --configure -a
    quietly $log "${apt[@]}" install --fix-broken
    quietly $log "${apt[@]}" install --no-install-recommends "${missing[@]}"
  fi
}

# Prefers Debian's own Python: another one that comes first in PATH may be older or lack venv.
find_python() {
  local candidate enough='import sys; sys.exit(sys.version_info < (3, 11))'
  for candidate in /usr/bin/python3 "$(command -v python3)"; do
    if "$candidate" -c "$enough" 2>/dev/null; then
      [[ $candidate == /usr/bin/python3 ]] || say "using $candidate: /usr/bin/python3 is older than 3.11" >&2
      echo "$candidate"
      return
    fi
  done
  fail "needs Python 3.11 or newer; /usr/bin/python3 and the python3 in PATH are older"
}

# Looks in the same places as cmake/dependencies.cmake.
has_cuda_toolkit() {
  local nvcc
  for nvcc in /usr/local/cuda-13.0/bin/nvcc /usr/local/cuda/bin/nvcc; do
    if [[ -x $nvcc ]] && "$nvcc" --version | grep -q 'release 13\.0'; then return 0; fi
  done
  return 1
}

# The CUDA wheels lack two things that nvcc and CMake expect: lib64, and library names without a version.
complete_cuda_wheels() {
  local library toolkit
  toolkit=$(echo .venv/lib/python3*/site-packages/nvidia/cu13)
  ln -sfn lib "$toolkit/lib64"
  for library in "$toolkit"/lib/lib*.so.*; do
    ln -sfn "${library##*/}" "${library%%.so.*}.so"
  done
}

# .venv holds a stamp of its requirements, written last. Without a stamp, or with a different one, .venv is made anew.
make_python_environment() {
  local python requirements wanted cuda_wheels="" stamp=.venv/cgc-stamp log=build/setup-python.log
  python=$(find_python)
  has_cuda_toolkit || cuda_wheels=cuda
  requirements=$(dependencies pip ==; if [[ $cuda_wheels ]]; then dependencies cuda ==; fi)
  wanted=$({ "$python" --version; echo "$requirements"; } | sha256sum)
  if [[ -x .venv/bin/python && -f $stamp && $(<$stamp) == "$wanted" ]]; then return; fi

  say "Python packages: installing $(wc -l <<<"$requirements") into .venv, 5 GB (log: $log)"
  : >$log
  rm -rf .venv
  quietly $log "$python" -m venv .venv
  echo "$requirements" >build/requirements.txt
  quietly $log .venv/bin/python -m pip install --no-input --disable-pip-version-check --progress-bar off \
    --only-binary :all: --no-deps -r build/requirements.txt
  quietly $log .venv/bin/python -m pip check --disable-pip-version-check
  if [[ $cuda_wheels ]]; then complete_cuda_wheels; fi
  echo "$wanted" >$stamp.new
  mv $stamp.new $stamp
}

# .venv-ray has Ray over the packages of .venv, for tests.
make_ray_environment() {
  local requirements wanted stamp=.venv-ray/cgc-stamp log=build/setup-ray.log
  requirements=$(dependencies ray ==)
  wanted=$(cat .venv/cgc-stamp; sha256sum <<<"$requirements")
  if [[ -f $stamp && $(<$stamp) == "$wanted" ]]; then return; fi

  say "Ray: installing $(wc -l <<<"$requirements") packages into .venv-ray, 0.5 GB (log: $log)"
  : >$log
  rm -rf .venv-ray
  quietly $log .venv/bin/python -m venv --without-pip .venv-ray
  echo "$PWD"/.venv/lib/python3*/site-packages >"$(echo .venv-ray/lib/python3*/site-packages)/cgc.pth"
  echo "$requirements" >build/requirements-ray.txt
  quietly $log .venv/bin/python -m pip --python .venv-ray/bin/python install --no-input --disable-pip-version-check \
    --progress-bar off --only-binary :all: --no-deps -r build/requirements-ray.txt
  quietly $log .venv-ray/bin/python -c 'import ray.serve'
  echo "$wanted" >$stamp.new
  mv $stamp.new $stamp
}

# .venv-triton is a folder of packages with the Triton Inference Server, for tests. The server's Python backend needs a
# program for the Python in use beside it.
make_triton_environment() {
  local requirements wanted version stamp=.venv-triton/cgc-stamp log=build/setup-triton.log
  local server=.venv-triton/pytriton/tritonserver
  requirements=$(dependencies triton ==)
  wanted=$(cat .venv/cgc-stamp; sha256sum <<<"$requirements")
  if [[ -f $stamp && $(<$stamp) == "$wanted" ]]; then return; fi

  say "Triton: installing into .venv-triton, 0.2 GB (log: $log)"
  : >$log
  rm -rf .venv-triton
  echo "$requirements" >build/requirements-triton.txt
  quietly $log .venv/bin/python -m pip install --no-input --disable-pip-version-check --progress-bar off \
    --only-binary :all: --no-deps --target .venv-triton -r build/requirements-triton.txt
  version=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  quietly $log cp "$server/python_backend_stubs/$version/triton_python_backend_stub" $server/backends/python/
  echo "$wanted" >$stamp.new
  mv $stamp.new $stamp
}

# Admits one set-up or build at a time in this folder, until unlock or the end of the process.
lock() {
  exec 9>build/.lock
  flock --nonblock 9 || { say "waiting for another set-up or build in this folder"; flock 9; }
}
unlock() { exec 9>&-; }

# Set-up and all builds take some 15 GB, .venv included. This finds a disk that is as good as full.
check_disk() {
  local megabytes
  megabytes=$(df --output=avail --block-size=M . | tail -n 1 | tr -dc 0-9)
  ((megabytes >= 1024)) || fail "only $megabytes MB are free on the disk of $PWD; set-up and all builds take 15 GB"
}

# setup [tests]: what the demo needs or, with `tests`, also what tests alone need.
setup() {
  check_disk
  lock
  install_debian_packages
  make_python_environment
  if [[ $* == tests ]]; then
    make_ray_environment
    make_triton_environment
  fi
  unlock
  say "set-up is complete"
}

# build_preset PRESET [TARGET...]: builds the preset's default targets, or the given ones, as far as it can.
build_preset() {
  local preset=$1 targets=()
  shift
  if (($#)); then targets=(--target "$@"); fi
  local log=build/build-$preset.log
  check_disk
  lock
  say "building, preset $preset (log: $log)"
  : >"$log"
  quietly "$log" cmake --preset "$preset"
  if [[ -t 1 ]]; then
    cmake --build --preset "$preset" "${targets[@]}" -- -k 0 # one line, rewritten
  else
    quietly "$log" cmake --build --preset "$preset" "${targets[@]}" -- -k 0
  fi
  unlock
}

# build [TARGET...]: builds everything, or the given targets.
build() { build_preset release "$@"; }

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  (($# == 0)) || [[ $* == tests ]] || fail "'$*': usage: setup.sh [tests]"
  setup "$@"
fi

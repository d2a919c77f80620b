#!/usr/bin/env bash
# Tests of scripts/setup.sh on a copy of it, with programs that only write down their calls:
# setup_test.sh FOLDER. Nothing is installed, and no network is used.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rm -rf "$1"
mkdir -p "$1"/{copy/scripts,bin}
cd "$1"
calls=$PWD/calls
here=$(printf %q "$PWD") # In the code of stubs.
cp "$repository/scripts/setup.sh" copy/scripts/
cat >copy/scripts/dependencies.txt <<EOF
apt compiler 12.*
apt library 3.1*
pip torch 2.0
EOF

# stub NAME: the rest of the input is its code; `record` writes its call down.
stub() {
  { echo '#!/bin/bash'; echo "record() { echo \"\${0##*/} \$*\" >>$here/calls; }"; cat; } >"bin/$1"
  chmod +x "bin/$1"
}
# The packages that dpkg lists: the compiler, and those that apt-get has installed since.
echo 'ii  compiler 12.2' >installed
stub dpkg-query <<EOF
cat $here/installed
EOF
stub sudo <<'EOF'
[[ $1 == -v ]] || exec "$@"
EOF
stub dpkg <<'EOF'
record "$@"
EOF
stub apt-get <<EOF
record "\$@"
[[ " \$* " == *" install --no-install-recommends "* ]] || exit 0
if [[ -e $here/apt_fails ]]; then rm $here/apt_fails; exit 100; fi
echo 'ii  library 3.14' >>$here/installed
EOF
# A disk without room, if there is the file full.
stub df <<EOF
if [[ -e $here/full ]]; then printf 'Avail\n 900M\n'; else exec $(type -P df) "\$@"; fi
EOF
# The Python of .venv too. While pip installs, it does as the file pip_does says.
stub python3 <<EOF
if [[ \$1 == --version ]]; then echo "Python 3.11.2"; exit; fi
record "\$@"
case "\$1 \$2" in
'-m venv') mkdir -p \$3/bin && cp $here/bin/python3 \$3/bin/python ;;
'-m pip') if [[ \$3 == install && -e $here/pip_does ]]; then source $here/pip_does; fi ;;
esac
EOF

failures=0
# is WHAT ACTUAL EXPECTED
is() {
  [[ $2 == "$3" ]] && return
  echo "FAILED: $1: '$2' is not '$3'; the output and the calls were:"
  cat output "$calls"
  failures=$((failures + 1))
}
called() { grep -cE "$1" "$calls" || true; }
# setup: a run; its exit status goes to `status`, its output to the file output.
setup() {
  : >"$calls"
  status=0
  # Where the tests run in the background, bash could not trap an interruption.
  env --default-signal=INT bash -c 'source copy/scripts/setup.sh
           find_python() { echo "$0"; }
           has_cuda_toolkit() { true; }
           setup' "$PWD/bin/python3" >output 2>&1 || status=$?
}
export PATH=$PWD/bin:$PATH

status=0
(cd copy && scripts/setup.sh --help) >output 2>&1 || status=$?
is "an argument" "$status $(cat output)" "1 setup.sh: '--help': usage: setup.sh [tests]"

setup
is "the first run" $status 0
is "Debian packages that are missing" "$(called 'apt-get .*install.* library=3\.1\*$')" 1
is "a package that is there" "$(called 'apt-get .*compiler')" 0
is "environments made" "$(called 'python3 -m venv .venv')" 1
is "installs of the list" "$(called 'python -m pip install')" 1
is "the list" "$(cat copy/build/requirements.txt)" torch==2.0

setup
is "the second run" $status 0
is "calls of the second run but for python's version" "$(cat "$calls")" ""

echo 'pip torch 2.1' >>copy/scripts/dependencies.txt
# shellcheck disable=SC2016  # expanded by the stub
echo 'touch .venv/half; kill -INT $PPID' >pip_does
setup
is "an interrupted run" $status 130
is "what it says" "$(grep -c 'interrupted: run it again to go on' output)" 1
echo 'exit 3' >pip_does
setup
is "a run whose pip fails" $status 1
is "its message" "$(grep -c 'failed with status 3' output)" 1
is "an environment that was interrupted is made anew" "$(called 'python3 -m venv .venv')" 1
is "what was left of it" "$(ls copy/.venv)" bin
rm pip_does
setup
is "the run after it" $status 0
is "an environment that failed is made anew" "$(called 'python3 -m venv .venv')" 1
is "a package that is installed" "$(called apt-get)" 0
setup
is "calls once all is there" "$(cat "$calls")" ""

# dpkg was interrupted, and refuses until it is told to finish.
echo 'apt other 1*' >>copy/scripts/dependencies.txt
touch apt_fails
setup
is "a run after an interrupted dpkg" $status 0
is "dpkg told to finish" "$(called 'dpkg --configure -a')" 1
is "tries" "$(called 'apt-get .*install --no-install-recommends other=1\*')" 2

touch full
setup
is "a run on a full disk" "$status $(cat output)" \
  "1 python3: only 900 MB are free on the disk of $PWD/copy; set-up and all builds take 15 GB"
is "calls on a full disk" "$(cat "$calls")" ""
rm full

exec 9>copy/build/.lock
flock 9
echo 'pip torch 2.2' >>copy/scripts/dependencies.txt
setup 9>&- &
until grep -q 'waiting for another set-up or build in this folder' output || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
is "calls while another set-up runs" "$(cat "$calls")" ""
exec 9>&-
wait $!
is "environments made after it" "$(called 'python3 -m venv .venv')" 1
exit $((failures > 0))

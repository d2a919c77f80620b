#!/usr/bin/env bash
# fuzz.sh [--build] [--seconds N] [--seed N] [TARGET...]: builds the libFuzzer targets and, without --build, runs each for
# N seconds (60), beginning with all seeds and regressions. With --seed, the inputs are reproducible: their number is
# fixed, the corpus of earlier runs is not used, and a run that has not tried them after 10 N seconds fails.
# Findings go to build/fuzz/found, and the exit status is then 1. docs/fuzzing.md explains.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/setup.sh"

seconds=60
seed=
targets=()
only_build=
while (($#)); do
  [[ $1 != --se* || $# -ge 2 ]] || fail "$1 takes a number"
  case $1 in
    --build) only_build=yes ;;
    --seconds) seconds=${2-} && shift ;;
    --seed) seed=${2-} && shift ;;
    plan | cgir | npy | torchscript | exported) targets+=("$1") ;;
    *) fail "'$1': usage: fuzz.sh [--build] [--seconds N] [--seed N] [plan|cgir|npy|torchscript|exported ...]" ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "--seconds takes a whole number from 1 on, not '$seconds'"
[[ $seed =~ ^[0-9]*$ ]] || fail "--seed takes a whole number, not '$seed'"
((${#targets[@]})) || targets=(plan cgir npy torchscript exported)

setup
mkdir -p build/fuzz
exec 7>build/fuzz/.lock
flock --nonblock 7 || { say "waiting for another fuzz.sh in this folder"; flock 7; }
# The targets use the LibTorch provider and the device code of the release build, which also makes the seed plans.
build cgc cgc_numerics_tests cgc_conformance_tests
build_preset asan cgc_fuzzers

cores=$(env -u OMP_NUM_THREADS nproc) # nproc takes it for a limit.
export OMP_NUM_THREADS=1
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
out=build/fuzz
programs=build/asan/bin
found=$out/found
mkdir -p $found

# make_seeds: writes the seeds anew if a program that makes them has changed.
make_seeds() {
  local seeds=$out/seeds release=build/release/bin
  local sources=($release/cgc{,_numerics_tests,_conformance_tests} tests/filetests ir/ops.def
    tests/{fuzz/make_seeds,e2e/make_scripted,numerics/small_models}.py)
  [[ -f $seeds/complete && -z $(find "${sources[@]}" -newer $seeds/complete -print -quit) ]] && return
  say "writing the seeds"
  rm -rf $seeds
  mkdir -p $seeds/{plan,cgir,npy,torchscript,exported}
  find tests/filetests -name '*.cgir' | while read -r file; do
    cp "$file" "$seeds/cgir/$(basename "$(dirname "$file")")_$(basename "$file")"
  done
  grep -o '"[a-z]*\.[a-z_0-9]*"' ir/ops.def | sort -u >$out/cgir.dict
  # Children of this shell, which the trap ends.
  local shard kernels=() file plan
  for shard in 0 1; do
    mkdir $seeds/kernels-$shard
    GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$shard CGC_KEEP_PLANS=$seeds/kernels-$shard \
      $release/cgc_conformance_tests --gtest_brief=1 >$out/seeds-kernels-$shard.log 2>&1 &
    kernels+=($!)
  done
  quietly $out/seeds.log .venv/bin/python tests/fuzz/make_seeds.py $release/cgc $seeds
  CGC_KEEP_PLANS=$seeds/plan quietly $out/seeds.log \
    $release/cgc_numerics_tests --gtest_filter='*Lowered.*' --gtest_brief=1
  for shard in 0 1; do
    wait "${kernels[$shard]}" || fail "cgc_conformance_tests failed (all of its output: $out/seeds-kernels-$shard.log)"
    for file in $seeds/kernels-$shard/*; do # Of two launches alike, the smaller one.
      plan=$seeds/plan/$(basename "$file")
      if [[ ! -e $plan || $(stat -c %s "$file") -lt $(stat -c %s "$plan") ]]; then mv "$file" "$plan"; fi
    done
    rm -r $seeds/kernels-$shard
  done
  touch $seeds/complete
}
make_seeds
[[ ! $only_build ]] || exit 0

# With --seed: as many runs, with those of the seeds, as take less than 20 seconds.
declare -A seeded_runs=([plan]=8000 [cgir]=20000 [npy]=150000 [torchscript]=600 [exported]=2000)
# Addresses are a part of libFuzzer's features. A container may forbid a fixed layout of memory.
fixed_layout=()
if setarch -R true 2>/dev/null; then fixed_layout=(setarch -R); fi
# fuzz TARGET: runs one target; its log is build/fuzz/TARGET.log.
fuzz() {
  local target=$1 options=() run=() corpus=$out/corpus/$1
  local folders=("$out/seeds/$target")
  if [[ -d tests/fuzz/regressions/$target ]]; then folders+=("tests/fuzz/regressions/$target"); fi
  if [[ $seed ]]; then
    corpus=$out/corpus-seeded/$target
    rm -rf "$corpus"
    # The order of a list does not depend on the file system, as that of a folder does.
    find "${folders[@]}" -type f | sort | paste -sd, >"$out/$target.seeds"
    run=("${fixed_layout[@]}" "$programs/cgc_fuzz_$target" "$corpus" -seed_inputs=@"$out/$target.seeds" -reload=0)
    options+=(-seed="$seed" -runs="${seeded_runs[$target]}" -max_total_time=$((10 * seconds)) -timeout=300)
  else
    run=(nice "$programs/cgc_fuzz_$target" "$corpus" "${folders[@]}")
    options+=(-max_total_time="$seconds" -timeout=20)
  fi
  mkdir -p "$corpus"
  if [[ $target == cgir ]]; then options+=(-dict=$out/cgir.dict); fi
  # One edit per mutation: of several, one usually makes the file invalid.
  if [[ $target == plan || $target == torchscript || $target == exported ]]; then options+=(-mutate_depth=1); fi
  # The plans of some GEMM kernels have 900 kB of weights.
  local longest=65536
  if [[ $target == plan ]]; then longest=1048576; fi
  # LibTorch's pickle reader allocates as much as a length in the file says, and frees it again.
  if [[ $target == torchscript ]]; then options+=(-malloc_limit_mb=1000000); else options+=(-malloc_limit_mb=2048); fi
  # In place of the shell, whose end would not end it.
  CGC_FUZZ_LAUNCHES=$out/launches exec "${run[@]}" "${options[@]}" -rss_limit_mb=3072 -max_len=$longest \
    -print_final_stats=1 -artifact_prefix="$found/$target-" >"$out/$target.log" 2>&1
}

rm -f $out/launches
say "fuzzing ${targets[*]}, $seconds s each (logs: $out/TARGET.log)"
failed=()
declare -A running=()
wait_for_one() {
  local pid status=0
  wait -n -p pid || status=$?
  local target=${running[$pid]} executed
  unset "running[$pid]"
  echo "$target: $(grep -oE '#[0-9]+[[:space:]]+DONE.*' "$out/$target.log" || echo "stopped with status $status")"
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log")
  if ((status == 0)) && [[ $seed ]] && ((executed < seeded_runs[$target])); then
    echo "$executed of ${seeded_runs[$target]} runs in $((10 * seconds)) s: the machine is too slow, or an input takes too long" >>"$out/$target.log"
    status=1
  fi
  ((status == 0)) || failed+=("$target")
}
for target in "${targets[@]}"; do
  if ((${#running[@]} == cores)); then wait_for_one; fi
  fuzz "$target" &
  running[$!]=$target
done
while ((${#running[@]})); do wait_for_one; done
for target in "${failed[@]}"; do
  cp "$out/$target.log" "$found/$target-$(date +%s).log"
  echo "-- $target" >&2
  grep -m1 -A 25 -E 'ERROR: |runtime error: |Assertion|^tests/fuzz' "$out/$target.log" >&2 || tail -n 30 "$out/$target.log" >&2
  echo "to reproduce: $programs/cgc_fuzz_$target FILE, the file that the log names last ($found/$target-*)" >&2
done
idle=
# The seeds have a launch of every kernel.
if [[ " ${targets[*]} " == *" plan "* ]]; then
  [[ -f $out/launches || " ${failed[*]} " == *" plan "* ]] || fail "the target plan has not written $out/launches"
fi
if [[ -f $out/launches ]]; then
  awk '{ sum += $2; if (NR == 1 || $2 < least) least = $2 }
    END { print "launches: " sum ", at least " least " of each of " NR " kernels" }' $out/launches
  idle=$(awk '$2 == 0 { printf " %s", $1 }' $out/launches)
fi
((${#failed[@]} == 0)) || fail "found something: ${failed[*]}; docs/fuzzing.md explains the next steps"
[[ ! $idle ]] || fail "no launch of$idle ran: add one to tests/conformance"

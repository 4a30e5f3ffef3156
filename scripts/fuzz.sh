#!/usr/bin/env bash
# Runs the fuzz targets for a bounded time each, on stable Rust, without cargo-fuzz.
#
#   scripts/fuzz.sh SECONDS [TARGET...]      default: every target in fuzz/fuzz_targets
#   scripts/fuzz.sh build [TARGET...]        builds them only
#
# The flags below are what cargo-fuzz passes, less the address sanitizer (which needs nightly, and
# has little to find where there is no unsafe code). --target is given so that build scripts and the
# libFuzzer runtime itself stay uninstrumented. Corpora start from what fuzz/src/seeds.rs makes and
# are kept in fuzz/corpus, findings in fuzz/artifacts. The target `canary` must be found, within a
# number of runs and not of seconds, however busy the machine: if it is not, nothing else was tested
# either. With FUZZ_SEED=N the same inputs come in the same order each
# time, as far as the time allows.
# Exit status: 0 if all is well, 1 for a finding or a canary that was missed, 2 for wrong usage.

set -euo pipefail

# Ten times what the slowest of many seeds took: two million, or some seconds.
CANARY_RUNS=20000000
# The longest that one input may take, and libFuzzer's exit status for one that takes longer.
UNIT_SECONDS=5
TIMED_OUT=70
cd "$(dirname "$0")/.."

usage() {
    echo "usage: scripts/fuzz.sh SECONDS|build [TARGET...]   (SECONDS for each target, at least 1)" >&2
    exit 2
}

[[ ${1:-} =~ ^([1-9][0-9]*|build)$ ]] || usage
seconds=$1
shift
targets=("$@")
if ((${#targets[@]} == 0)); then
    for file in fuzz/fuzz_targets/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi
for target in "${targets[@]}"; do
    if [[ ! -f fuzz/fuzz_targets/$target.rs ]]; then
        echo "fuzz.sh: no target \`$target\` in fuzz/fuzz_targets" >&2
        usage
    fi
done

triple=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
export CARGO_TARGET_DIR="$PWD/fuzz/target"
bins=()
for target in "${targets[@]}"; do
    bins+=(--bin "$target")
done
cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$triple" "${bins[@]}"
[[ $seconds == build ]] && exit

# Whether the input that ran out of time needs less processor time than it had by the clock: beside
# other work, at idle priority, libFuzzer's alarm rings for inputs of milliseconds.
was_starved() { # LOG
    local target=${1##*/} input
    input=$(sed -n 's/.*Test unit written to //p' "$1" | tail -1)
    [[ -f $input ]] || return
    (ulimit -t "$UNIT_SECONDS" &&
        exec "$CARGO_TARGET_DIR/$triple/release/$target" -timeout=0 "$input") >/dev/null 2>&1 &&
        rm "$input"
}

# Fuzzes one target; prints what came of it.
fuzz() { # TARGET LOG
    local target=$1 log=$2 status executions coverage summary
    local corpus=fuzz/corpus/$target artifacts=fuzz/artifacts/$target
    # A canary that was found once would be found at once.
    local limit=-max_total_time=$seconds
    if [[ $target == canary ]]; then
        rm -rf "$corpus" "$artifacts"
        limit=-runs=$CANARY_RUNS
    fi
    mkdir -p "$corpus" "$artifacts"
    rm -f "$corpus"/seed-*
    # Seed 0 is one drawn by libFuzzer.
    local command=("$CARGO_TARGET_DIR/$triple/release/$target" "$limit" "-timeout=$UNIT_SECONDS"
        "-seed=${FUZZ_SEED:-0}" -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1
        "-artifact_prefix=$artifacts/" "$corpus")
    while :; do
        status=0
        SEEDS=$corpus TMPDIR=$logs "${command[@]}" >"$log" 2>&1 || status=$?
        ((status == TIMED_OUT)) && was_starved "$log" || break
        echo "$target: an input had no processor for $UNIT_SECONDS s; once more"
    done
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
    summary="$target: ${executions:-?} executions, ${coverage:-no coverage reported}"
    if [[ $target == canary ]]; then
        if ((status != 0)) && grep -q 'the canary has been found' "$log"; then
            echo "$summary, found as it must be"
        else
            echo "$summary, NOT FOUND in $CANARY_RUNS runs: this set-up finds nothing" >&2
            tail -20 "$log" >&2
            return 1
        fi
    elif ((status != 0)); then
        echo "$summary, FAILED (status $status)" >&2
        tail -60 "$log" >&2
        echo "reproduce: $CARGO_TARGET_DIR/$triple/release/$target $artifacts/<file>" >&2
        return 1
    else
        echo "$summary, no findings in $seconds s"
    fi
}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
# As many at once as there are cores.
running=0
for target in "${targets[@]}"; do
    if ((running == $(nproc))); then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$target" "$logs/$target" &
    running=$((running + 1))
done
while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"

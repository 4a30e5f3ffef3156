#!/bin/bash
# Changes the code in small ways, one at a time, and asks the tests whether they notice: cargo-mutants.
#
# usage: scripts/mutants.sh [--package NAME] [--file GLOB]... [--shard K/N] [--golden] [--jobs N]
#
# NAME is simnel-core unless given. Takes hours for all of it: --file takes some files, --shard one part
# of N. With --golden what a package's own tests miss is tried on the recordings of Linux, too. What
# survives must be listed in scripts/mutants.txt, with the reason; what is listed must survive. Results
# stay in target/mutants. The exit status is 1 if a mutant survives that is not listed, or the other
# way round.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
package=simnel-core golden='' jobs=1 choice=()
while [ $# -gt 0 ]; do
    case $1 in
        --golden) golden=1 && shift && continue ;;
        --package | --file | --shard | --jobs) [ $# -gt 1 ] || usage ;;
        *) usage ;;
    esac
    case $1 in
        --package) package=$2 ;;
        --jobs) jobs=$2 ;;
        *) choice+=("$1" "$2") ;;
    esac
    shift 2
done
cargo mutants --version >/dev/null 2>&1 || {
    echo 'mutants: cargo-mutants is missing: cargo install --locked cargo-mutants@27.1.0' >&2
    exit 1
}
out=$PWD/target/mutants list=$PWD/scripts/mutants.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z | xargs -0 cp --parents -t "$work"

# cargo-mutants follows `mod` items, but no macro: here it finds the disciplines. Nothing is compiled
# twice.
all=$work/crates/core/src/qdisc/mod.rs
awk '/^disciplines! {/ { on = 1 } /^}/ { on = 0 }
    on && /^    [a-z_0-9]+: [A-Z]/ && !/toy/ { sub(/:.*/, ""); print "#[cfg(any())]\nmod" substr($0, 4) ";" }' \
    "$all" > "$work/found"
cat "$work/found" >> "$all"

run() { # ARGUMENT...
    # 2 and 3: some survived, or took too long. Anything else is a run that says nothing.
    (cd "$work" && cargo mutants --package "$package" --output "$out" --no-shuffle --colors never \
        --jobs "$jobs" --minimum-test-timeout 60 "${choice[@]}" "$@") || case $? in 2 | 3) ;; *) return 1 ;; esac
}
# Without doc tests, which take longest and say least.
rm -rf "$out"
run --cargo-test-arg=--lib --cargo-test-arg=--tests
if [ -n "$golden" ]; then
    run --iterate --test-package simnel-lab --cargo-test-arg=--test --cargo-test-arg=golden
fi

# "FILE: CHANGE", without the place in the file, which moves.
plain() { sed -E 's/^([^:]*):[0-9]+:[0-9]+: /\1: /' "$@" | sort; }
results=$out/mutants.out
touch "$results"/{caught,timeout,unviable,missed}.txt "$results"/previously_caught.txt
caught=$(cat "$results"/{caught,timeout,previously_caught}.txt | sort -u | wc -l)
missed=$(wc -l < "$results/missed.txt")
sed -n 's/^\([^#|]*[^ |]\) *|.*/\1/p' "$list" | sort -u > "$work/listed"
plain "$results/missed.txt" | uniq > "$work/missed"
plain "$results"/caught.txt "$results"/timeout.txt | uniq > "$work/caught"
echo "mutants: $caught caught, $missed missed, $(wc -l < "$results/unviable.txt") do not compile: $(
    awk -v c="$caught" -v m="$missed" 'BEGIN { printf "%.1f %%", c + m ? 100 * c / (c + m) : 100 }') caught"
failed=0
comm -23 "$work/missed" "$work/listed" | sed 's/^/survives, and is not listed: /' | grep . && failed=1
# One line stands for all places of a file where the same change survives.
comm -23 <(comm -12 "$work/caught" "$work/listed") "$work/missed" |
    sed 's/^/is listed, but caught: /' | grep . && failed=1
exit $failed

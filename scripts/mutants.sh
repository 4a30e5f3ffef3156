#!/bin/bash
# Changes the code in small ways, one at a time, and asks the tests whether they notice: cargo-mutants.
#
# usage: scripts/mutants.sh [--package NAME] [--file GLOB]... [--shard K/N | --sample N [--seed S]]
#                           [--golden] [--jobs N]
#
# NAME is simnel-core unless given. Takes hours for all of it: --file takes some files, --shard one part
# of N, --sample draws N changes at random and says between which bounds the share of all is. With
# --golden what a package's own tests miss is tried on the recordings of Linux, too. What survives must
# be listed in scripts/mutants.txt, with the reason; what is listed must survive. Results stay in
# target/mutants. The exit status is 1 if a mutant survives that is not listed, or the other way round.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '/^# usage: /,/^#$/ { s/^# *//; /./p }' "$0" >&2; exit 2; }
package=simnel-core golden='' sample='' seed=1 place=(--in-place) choice=()
while [ $# -gt 0 ]; do
    case $1 in
        --golden) golden=1 && shift && continue ;;
        --sample | --seed) [[ ${2-} =~ ^[0-9]+$ ]] || usage ;;
        --package | --file | --shard | --jobs) [ $# -gt 1 ] || usage ;;
        *) usage ;;
    esac
    case $1 in
        --package) package=$2 ;;
        --sample) sample=$2 ;;
        --seed) seed=$2 ;;
        --jobs) place=(--jobs "$2") ;;
        *) choice+=("$1" "$2") ;;
    esac
    shift 2
done
cargo mutants --version >/dev/null 2>&1 || {
    echo 'mutants: cargo-mutants is missing: cargo install --locked cargo-mutants@27.1.0' >&2
    exit 1
}
out=$PWD/target/mutants list=$PWD/scripts/mutants.txt
# What is built is kept for the next time: the same place, and times of files as they are.
work=$out/tree
rm -rf "$work"
mkdir -p "$work"
git ls-files -z | xargs -0 cp --parents --preserve=timestamps -t "$work"
export CARGO_TARGET_DIR=$out/build

# cargo-mutants follows `mod` items, but no macro: here it finds the disciplines. Nothing is compiled
# twice.
all=$work/crates/core/src/qdisc/mod.rs
awk '/^disciplines! {/ { on = 1 } /^}/ { on = 0 }
    on && /^    [a-z_0-9]+: [A-Z]/ && !/toy/ { sub(/:.*/, ""); print "#[cfg(any())]\nmod" substr($0, 4) ";" }' \
    "$all" > "$out/found"
cat "$out/found" >> "$all"

mutants() { (cd "$work" && cargo mutants --package "$package" --colors never "$@"); }
mutants --list > "$out/all"
mutants --list "${choice[@]}" > "$out/left"
if [ -n "$sample" ]; then
    cipher=(openssl enc -aes-128-ctr -nosalt -pbkdf2 -pass "pass:$seed")
    shuf --random-source=<("${cipher[@]}" < /dev/zero 2>/dev/null) --head-count "$sample" "$out/left" \
        > "$out/drawn"
    echo "mutants: $(wc -l < "$out/drawn") drawn of $(wc -l < "$out/left"), seed $seed"
    mv "$out/drawn" "$out/left"
fi

: > "$out/caught"
: > "$out/unviable"
stage() { # NAME ARGUMENT...: tries what all stages before have left
    local name=$1 results=$out/$1/mutants.out
    shift
    rm -rf "${out:?}/$name"
    [ -s "$out/left" ] || return 0
    # Not --re: it lets some through. What is said to be caught is not tried.
    mkdir -p "$results"
    grep -vxFf "$out/left" "$out/all" > "$results/caught.txt" || true
    # 2 and 3: some survived, or took too long. Anything else is a run that says nothing.
    mutants --output "$out/$name" --iterate --no-shuffle --profile mutants --minimum-test-timeout 30 \
        "${place[@]}" "$@" || case $? in 2 | 3) ;; *) return 1 ;; esac
    cp "$results/missed.txt" "$out/left"
    cat "$results"/{caught,timeout}.txt >> "$out/caught"
    cat "$results/unviable.txt" >> "$out/unviable"
    echo "mutants: $name: $(wc -l < "$results/caught.txt") caught," \
        "$(wc -l < "$results/timeout.txt") without an end, $(wc -l < "$out/left") missed"
}
# Without doc tests, which take longest and say least. The tests beside the code come first: most of
# what is changed is noticed there, and nothing else need be built.
stage lib --cargo-test-arg=--lib
stage tests --cargo-test-arg=--test='*'
own=$(wc -l < "$out/caught")
[ -z "$golden" ] || stage golden --test-package simnel-lab --cargo-test-arg=--test=golden

share() { # CAUGHT MISSED: percent, and between which bounds it is with a certainty of 95 % (Wilson 1927)
    awk -v c="$1" -v m="$2" 'BEGIN {
        n = c + m; if (!n) { print "nothing to catch"; exit }
        p = c / n; z = 1.96; d = 1 + z * z / n
        mid = (p + z * z / (2 * n)) / d; half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
        printf "%.1f %% (95 %%: %.1f to %.1f)", 100 * p, 100 * (mid - half), 100 * (mid + half) }'
}
# "FILE: CHANGE", without the place in the file, which moves.
plain() { sed -E 's/^([^:]*):[0-9]+:[0-9]+: /\1: /' "$@" | sort; }
noticed=$(wc -l < "$out/caught") missed=$(wc -l < "$out/left")
sed -n 's/^\([^#|]*[^ |]\) *|.*/\1/p' "$list" | sort -u > "$out/listed"
plain "$out/left" | uniq > "$out/missed"
plain "$out/caught" | uniq > "$out/noticed"
compile=$((noticed + missed))
echo "mutants: $compile compile, $(wc -l < "$out/unviable") do not"
echo "mutants: $package's tests catch $own: $(share "$own" $((compile - own)))"
[ -z "$golden" ] || echo "mutants: with Linux's recordings $noticed: $(share "$noticed" "$missed")"
failed=0
comm -23 "$out/missed" "$out/listed" | sed 's/^/survives, and is not listed: /' | grep . && failed=1
# One line stands for all places of a file where the same change survives: a part may have seen others.
if [[ -z $sample && " ${choice[*]-} " != *" --shard "* ]]; then
    comm -23 <(comm -12 "$out/noticed" "$out/listed") "$out/missed" |
        sed 's/^/is listed, but caught: /' | grep . && failed=1
fi
exit $failed

#!/bin/bash
# Changes the code in small ways, one at a time, and asks the tests whether they notice.
#
# usage: scripts/mutants.sh [--package NAME] [--file GLOB]... [--sample N [--seed S]] [--golden]
#                           [--lib] [--longest SECONDS] [--jobs N]
#
# NAME is simnel-core unless given. cargo-mutants lists the changes; all of them are built into one
# program, and each is switched on for the tests that reach it (scripts/mutants). --file takes some
# files; --sample draws N changes at random and says between which bounds the share of all is. With
# --golden what a package's own tests miss is tried on the recordings of Linux, too. With --lib only the
# tests beside the code are asked: the gateway's others need namespaces and time. Not asked are tests in
# documentation and, with --longest, those that take more seconds of processor. What survives must be
# listed in scripts/mutants.txt, with the reason; what is listed must survive. Results stay in
# target/mutants, where a run that was interrupted goes on. The exit status is 1 if a mutant survives
# that is not listed, or the other way round.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '/^# usage: /,/^#$/ { s/^# *//; /./p }' "$0" >&2; exit 2; }
package=simnel-core choice=()
while [ $# -gt 0 ]; do
    case $1 in
        --golden | --lib) choice+=("$1") && shift && continue ;;
        --sample | --seed | --longest | --jobs) [[ ${2-} =~ ^[0-9]+$ ]] || usage ;;
        --package | --file) [ $# -gt 1 ] || usage ;;
        *) usage ;;
    esac
    case $1 in
        --package) package=$2 ;;
        *) choice+=("$1" "$2") ;;
    esac
    shift 2
done
cargo mutants --version >/dev/null 2>&1 || {
    echo 'mutants: cargo-mutants is missing: cargo install --locked cargo-mutants@27.1.0' >&2
    exit 1
}
out=$PWD/target/mutants
mkdir -p "$out"
exec 9>"$out/lock"
flock --nonblock 9 || { echo 'mutants: another run is at work here' >&2; exit 1; }
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

(cd "$work" && cargo mutants --package "$package" --list --json) > "$out/list.json"
python3 scripts/mutants/run.py "$work" "$package" "${choice[@]}"

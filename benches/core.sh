#!/bin/bash
# What a pair of enqueue and dequeue costs in this tree and in another revision of it, one after the
# other on one core: nanoseconds, and this tree's divided by the other's.
#
# usage: benches/core.sh REVISION [ROUNDS [BENCH-CORE-OPTION...]]
#
#     benches/core.sh v0.1.0 10 --flows 100 --qdisc 'cake bandwidth 200gbit'
#
# Both are built with --release into target/bench-core, which takes minutes. A figure is the least
# of ROUNDS runs (5 unless given) of `simnel bench core`, under SCHED_FIFO where that is allowed.
# Options are for `simnel bench core`; without any: 100 flows, from the descriptor. The last line is
# the geometric mean of all ratios. Needs git and Python 3.
set -euo pipefail
revision=${1:?usage: benches/core.sh REVISION [ROUNDS [BENCH-CORE-OPTION...]]}
rounds=${2:-5}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- --flows 100 --input descriptor
cd "$(dirname "$0")/.."
git rev-parse --quiet --verify "$revision^{commit}" >/dev/null || {
    echo "core.sh: no revision \`$revision\` here" >&2
    exit 2
}
work=$PWD/target/bench-core
mkdir -p "$work"
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true' EXIT
git worktree remove --force "$work/tree" 2>/dev/null || rm -rf "$work/tree"
git worktree add --quiet --detach "$work/tree" "$revision"
build() { # DIRECTORY NAME
    echo "building $2" >&2
    (cd "$1" && cargo build --quiet --release --locked --package simnel --target-dir "$work/build")
    mv "$work/build/release/simnel" "$work/$2"
}
build "$work/tree" before
build "$PWD" now
first=()
if chrt -f 1 true 2>/dev/null; then first=(chrt -f 1); fi
for ((round = 1; round <= rounds; round++)); do
    echo "round $round of $rounds" >&2
    for name in before now; do
        "${first[@]}" "$work/$name" bench core --json --runs 3 --pairs 200000 "$@" |
            sed "s/^/$name /"
    done
done | python3 -c '
import json, math, sys
least = {}
for line in sys.stdin:
    name, figure = line.split(" ", 1)
    figure = json.loads(figure)
    key = tuple(figure[k] for k in ("qdisc", "load", "flows", "input"))
    pair = least.setdefault(key, {})
    pair[name] = min(pair.get(name, math.inf), figure["ns_per_pair"])
print(" before     now  ratio  load     flows  input       discipline")
ratios = []
for (qdisc, load, flows, how), pair in least.items():
    if len(pair) < 2:
        continue  # A discipline that one of the two does not have.
    ratios.append(pair["now"] / pair["before"])
    before, now = pair["before"], pair["now"]
    print(f"{before:7.1f} {now:7.1f} {ratios[-1]:6.3f}  {load:7}  {flows:5}  {how:10}  {qdisc}")
mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
print(f"{mean:22.3f}  geometric mean of {len(ratios)}")
'

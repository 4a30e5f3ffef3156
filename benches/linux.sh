#!/bin/bash
# What a pair of enqueue and dequeue costs in Linux's own disciplines and in ours, on this machine,
# one after the other: nanoseconds, and ours divided by Linux's. Nothing else should be running.
#
# usage: benches/linux.sh DIRECTORY [SIMNEL]
#
# DIRECTORY holds, or will hold, what `conformance/build-linux.sh DIRECTORY HEADERS` leaves (its
# first run takes some minutes; see there what it needs). SIMNEL is target/release/simnel unless
# given, and is built if it is not there. The disciplines' sources are compiled as they are, with
# -O2, into one program with benches/linux/*.c, which stands for the rest of the kernel.
#
# The work is that of `simnel bench core`: 1514-byte UDP packets on a virtual clock, no drops.
# "hashed" means that the flow's hash is given, "headers" that each packet's headers are read and
# hashed again. Each figure is the least of three medians of five runs.
set -euo pipefail
export LC_ALL=C
usage="usage: benches/linux.sh DIRECTORY [SIMNEL]"
directory=${1:?$usage}
here=$(cd "$(dirname "$0")" && pwd)
simnel=${2:-$here/../target/release/simnel}

if [ ! -e "$directory/src/include/generated/autoconf.h" ]; then
    "$here/../conformance/build-linux.sh" "$directory" HEADERS
fi
if [ ! -x "$simnel" ]; then
    (cd "$here/.." && cargo build --release --locked --package simnel)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "compiling Linux's disciplines" >&2
. "$here/linux/compile.sh"
link_linux "$directory/src" "$here/linux" bench "$work/linux-qdiscs"

# Least of three figures.
least() { sort -n | head -n 1; }
simnel_ns() {
    "$simnel" bench core --json --qdisc "$1" --flows "$2" --load "$3" --input "$4" |
        sed -E 's/.*"ns_per_pair":([0-9.]+).*/\1/'
}

# Linux's name, what packets start from, our words.
rows='pfifo|hashed|pfifo
codel|hashed|codel
pie|hashed|pie limit 20000
red|hashed|red limit 400mb min 30mb max 90mb avpkt 1000 probability 1
tbf|hashed|tbf rate 200gbit burst 1mb limit 400mb
htb|hashed|htb rate 200gbit burst 1mb pfifo limit 20000
drr|hashed|drr class 1:1
fq_codel|hashed|fq_codel limit 20000
fq_pie|hashed|fq_pie limit 20000
cake|hashed|cake unlimited besteffort flows
fq_codel|headers|fq_codel limit 20000
sfq|headers|sfq limit 20000 flows 2000 divisor 65536
sfb|headers|sfb limit 20000 target 20000 max 20000
cake-shaped|headers|cake bandwidth 200gbit diffserv4 triple-isolate'

printf '%-8s %5s %-8s %7s %7s %6s  %s\n' load flows input linux simnel ratio discipline
while IFS='|' read -r name input words; do
    [ "$input" = hashed ] && given=given ours=descriptor || given=computed ours=headers
    for load in empty backlog; do
        for flows in 1 100 1000; do
            for _ in 1 2 3; do
                "$work/linux-qdiscs" "$name" "$flows" "$load" "$given" >>"$work/linux.ns"
                simnel_ns "$words" "$flows" "$load" "$ours" >>"$work/simnel.ns"
            done
            awk -v load="$load" -v flows="$flows" -v input="$input" -v words="$words" \
                -v linux="$(least <"$work/linux.ns")" -v simnel="$(least <"$work/simnel.ns")" \
                'BEGIN { printf "%-8s %5d %-8s %7.1f %7.1f %6.2f  %s\n",
                         load, flows, input, linux, simnel, simnel / linux, words }'
            rm "$work/linux.ns" "$work/simnel.ns"
        done
    done
done <<<"$rows"

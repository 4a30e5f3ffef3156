#!/bin/bash
# The rrul benchmark in ns-2.35 and in simnel, side by side: packets through the two bottlenecks for
# each second of CPU time, and their ratio. So that anyone can check what the README says.
#
# usage: benches/ns2.sh [SIMNEL]      (default: target/release/simnel; built if it is not there)
# needs: apt-get install ns2
#
# ns-2 is timed over 600 simulated seconds, less what it needs to start (the same script with nothing
# to simulate): its best of five. Packets are counted in a run that is not timed. DropTail is the
# cheapest queue that ns-2 has; simnel runs fq_codel, which does more.
set -euo pipefail
export LC_ALL=C TIMEFORMAT='%U %S'
here=$(cd "$(dirname "$0")" && pwd)
simnel=${1:-$here/../target/release/simnel}
simulated=600

if ! command -v ns >/dev/null; then
    echo "ns-2 is not installed: apt-get install ns2" >&2
    exit 1
fi
if [ ! -x "$simnel" ]; then
    (cd "$here/.." && cargo build --release --locked --package simnel)
fi

# Least user and system time of five runs, in milliseconds.
cpu_ms() {
    for _ in 1 2 3 4 5; do
        { time ns "$here/ns2-rrul.tcl" "$1" "$2" >/dev/null; } 2>&1
    done | awk '{ ms = 1000 * ($1 + $2); if (NR == 1 || ms < least) least = ms } END { print least }'
}

ours=$("$simnel" bench sim --only rrul --json)
field() { sed -E "s/.*\"$1\":([0-9.]+).*/\1/" <<<"$ours"; }
our_rate=$(awk "BEGIN { print $(field bottleneck_packets) / $(field cpu_ms) / 1000 }")

printf '%-22s %10s %9s %11s %7s\n' program packets 'cpu ms' Mpackets/s ratio
for queue in DropTail DRR; do
    packets=$(ns "$here/ns2-rrul.tcl" "$queue" "$simulated" count | grep -E '^[0-9]+$')
    start=$(cpu_ms "$queue" 0.0001)
    total=$(cpu_ms "$queue" "$simulated")
    awk -v name="ns-2.35 $queue" -v packets="$packets" -v ms="$(awk "BEGIN { print $total - $start }")" \
        -v ours="$our_rate" 'BEGIN {
            rate = packets / ms / 1000
            printf "%-22s %10d %9.1f %11.2f %7.2f\n", name, packets, ms, rate, ours / rate
        }'
done
printf '%-22s %10d %9.1f %11.2f %7.2f\n' 'simnel fq_codel' \
    "$(field bottleneck_packets)" "$(field cpu_ms)" "$our_rate" 1
echo "ratio: how many times as many packets simnel simulates in the same time"

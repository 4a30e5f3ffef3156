#!/bin/bash
# Inside a guest: what a pair of enqueue and dequeue costs in Linux's disciplines and in ours, one
# after the other. Modules lie in $1; one line a case, "words|flows|backlog|stock|ours", picoseconds.
modules=$1 rounds=$2 pairs=$3
export TC_LIB_DIR=$modules
insmod "$modules/simnel.ko" || exit 1
for name in cake codel fq_codel pie sfq; do
    [ -d "/sys/module/sch_$name" ] || [ ! -e "$modules/sch_$name.ko" ] ||
        insmod "$modules/sch_$name.ko" || exit 1
done
ip link add d0 type dummy 2>/dev/null
ip link set d0 up
# Linux's cake takes random numbers, which are dear until the pool is ready.
dd if=/dev/random of=/dev/null bs=32 count=1 2>/dev/null

once() { # FLOWS BACKLOG WORDS...
    local flows=$1 backlog=$2
    shift 2
    tc qdisc replace dev d0 root "$@" || return
    insmod "$modules/simnel_bench.ko" flows=$flows backlog=$backlog pairs=$pairs rounds=3 2>/dev/null
    dmesg | sed -n 's/.*bench: .*: \([0-9]*\) ps a pair$/\1/p;s/.*bench: .*: error.*/0/p' | tail -1
    tc qdisc del dev d0 root
}
least() { # A B: the lesser one, 0 for none
    if [ "${1:-0}" = 0 ] || { [ "${2:-0}" != 0 ] && [ "$2" -lt "$1" ]; }; then echo "${2:-0}"; else echo "$1"; fi
}

while IFS='|' read -r words flows backlog; do
    stock=0 ours=0
    for _ in $(seq "$rounds"); do
        stock=$(least "$stock" "$(once $flows $backlog $words)")
        ours=$(least "$ours" "$(once $flows $backlog simnel $words)")
    done
    echo "case|$words|$flows|$backlog|$stock|$ours"
done < "$modules/cases"

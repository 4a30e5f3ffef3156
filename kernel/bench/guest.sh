#!/bin/bash
# Inside a guest: what a pair of enqueue and dequeue costs in Linux's disciplines and in ours, one
# after the other. Modules lie in $1; one line a case, "case|words|flows|backlog|stock|ours", picoseconds.
# Where all rounds fail, the error stands in place of the figure.
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
    local flows=$1 backlog=$2 said
    shift 2
    said=$(tc qdisc replace dev d0 root "$@" 2>&1) || { echo "error: ${said%%$'\n'*}"; return; }
    dmesg -c >/dev/null
    # It measures while it is loaded, and never stays: busybox tries twice.
    insmod "$modules/simnel_bench.ko" flows=$flows backlog=$backlog pairs=$pairs rounds=3 2>/dev/null
    said=$(dmesg | sed -n 's/.*bench: .*: \([0-9]*\) ps a pair$/\1/p;s/.*bench: .*: \(error.*\)/\1/p' | tail -1)
    echo "${said:-error: nothing was measured}"
    tc qdisc del dev d0 root
}
least() { # A B: the lesser one; an error only if there is no figure, and of two the later one
    case $1-$2 in
        -* | error*-*) echo "$2" ;;
        *-error*) echo "$1" ;;
        *) echo $(($1 < $2 ? $1 : $2)) ;;
    esac
}

while IFS='|' read -r words flows backlog; do
    stock='' ours=''
    for _ in $(seq "$rounds"); do
        stock=$(least "$stock" "$(once $flows $backlog $words)")
        ours=$(least "$ours" "$(once $flows $backlog simnel $words)")
    done
    echo "case|$words|$flows|$backlog|$stock|$ours"
done < "$modules/cases"

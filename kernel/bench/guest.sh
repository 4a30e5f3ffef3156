#!/bin/bash
# Inside a guest: Linux's disciplines and ours, one after the other. Modules lie in $1; one line a
# case, "case|kind|words|flows|backlog|stock|ours|size". Of kind `pair` are picoseconds that a pair of enqueue
# and dequeue costs, of kind `busy` the same as if another processor were sending, of kind `pktgen` packets
# a second through a device. Where all rounds fail, the error
# stands in place of the figure. Of $2 rounds, each of $4 spells of $3 pairs, the best spell counts: on a busy
# machine short ones find a moment when nobody else runs.
modules=$1 rounds=$2 pairs=$3 spells=$4
export TC_LIB_DIR=$modules
insmod "$modules/simnel.ko" || exit 1
for name in cake codel fq_codel pie fq_pie red sfb sfq; do
    [ -d "/sys/module/sch_$name" ] || [ ! -e "$modules/sch_$name.ko" ] ||
        insmod "$modules/sch_$name.ko" || exit 1
done
[ -d /proc/net/pktgen ] || [ ! -e "$modules/pktgen.ko" ] || insmod "$modules/pktgen.ko" || exit 1
ip link add d0 type dummy 2>/dev/null
ip link set d0 up
# Linux's cake takes random numbers, which are dear until the pool is ready.
dd if=/dev/random of=/dev/null bs=32 count=1 2>/dev/null

pair() { # FLOWS BACKLOG [PARAMETER]
    dmesg -c >/dev/null
    # It measures while it is loaded, and never stays: busybox tries twice.
    insmod "$modules/simnel_bench.ko" flows=$1 backlog=$2 pairs=$pairs rounds=$spells size=$size ${3:-} 2>/dev/null
    dmesg | sed -n 's/.*bench: .*: \([0-9]*\) ps a pair$/\1/p;s/.*bench: .*: \(error.*\)/\1/p' | tail -1
}
busy() { # FLOWS BACKLOG
    pair "$1" "$2" busy=1
}
pktgen() { # FLOWS
    local of=/proc/net/pktgen command
    [ -d $of ] || { echo 'error: no module pktgen'; return; }
    echo rem_device_all > $of/kpktgend_0
    echo 'add_device d0' > $of/kpktgend_0
    for command in "count $((pairs * 4))" 'xmit_mode queue_xmit' 'pkt_size 60' 'delay 0' \
        'src_min 10.0.0.1' "src_max 10.0.$(($1 >> 8)).$(($1 & 255))" \
        'dst 10.1.0.1' 'udp_src_min 1000' "udp_src_max $((999 + $1))" \
        'udp_dst_min 9' 'udp_dst_max 9'; do
        echo "$command" > $of/d0 || { echo "error: pktgen: $command"; return; }
    done
    echo start > $of/pgctrl
    sed -n 's/^ *\([0-9]*\)pps.*errors: 0$/\1/p' $of/d0
}
once() { # KIND FLOWS BACKLOG WORDS...
    local kind=$1 flows=$2 backlog=$3 said
    shift 3
    said=$(tc qdisc replace dev d0 root "$@" 2>&1) || { echo "error: ${said%%$'\n'*}"; return; }
    said=$($kind $flows $backlog)
    echo "${said:-error: nothing was measured}"
    tc qdisc del dev d0 root
}
better() { # KIND A B: the lesser cost or higher rate; an error only if there is no figure, and the later one
    case $2-$3 in
        -* | error*-*) echo "$3" ;;
        *-error*) echo "$2" ;;
        *) if [ $1 = pktgen ]; then echo $(($2 > $3 ? $2 : $3)); else echo $(($2 < $3 ? $2 : $3)); fi ;;
    esac
}

# Where a shaper makes packets wait (error -62), nothing is measured: shorter ones then, for both.
while IFS='|' read -r kind words flows backlog; do
    for size in 1514 757; do
        stock='' ours='' waits=''
        for _ in $(seq "$rounds"); do
            of_stock=$(once $kind $flows $backlog $words) of_ours=$(once $kind $flows $backlog simnel $words)
            stock=$(better $kind "$stock" "$of_stock") ours=$(better $kind "$ours" "$of_ours")
            case "$of_stock $of_ours" in *'error -62'*) waits=1 && break ;; esac
        done
        [ "$waits" ] || break
    done
    echo "case|$kind|$words|$flows|$backlog|$stock|$ours|$size"
done < "$modules/cases"

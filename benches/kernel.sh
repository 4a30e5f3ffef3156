#!/bin/bash
# What a pair of enqueue and dequeue costs in the kernel, in Linux's own disciplines and in ours, in
# one run: nanoseconds in user-mode Linux, instructions in a kernel of Debian's under QEMU. And packets a
# second that pktgen sends through a device (under QEMU a nanosecond is an instruction).
#
# usage: benches/kernel.sh DIRECTORY [--json] [--only uml|qemu] [--busy]
#
# --busy: pairs only, as if another processor were sending: then the dequeue is not the enqueuer's, and
# reads the clock itself.
#
# DIRECTORY holds, or will hold, the guests (user-mode Linux takes some ten minutes to build) and
# the modules built for them. Needs what kernel/guest/build-uml and kernel/guest/qemu need, and for
# QEMU the headers of the kernel package that this system would install (linux-headers-cloud-amd64).
# Each packet's headers are read anew each time; nothing is dropped. Packets have 1514 bytes; where those would
# have to wait for the shaper, 757, and the line says so. Ratios are ours to Linux's: of
# costs less is better, of packets a second more. A case that cannot be measured has its error in place of figures, and the exit status is then 1.
set -euo pipefail
export LC_ALL=C
usage='usage: benches/kernel.sh DIRECTORY [--json] [--only uml|qemu] [--busy]'
directory=$(realpath -m "${1:?$usage}")
shift
json='' only='' pair=pair
while [ $# -gt 0 ]; do
    case $1 in
        --json) json=1 ;;
        --busy) pair=busy ;;
        --only) only=${2:?$usage} && shift ;;
        *) echo "$usage" >&2 && exit 1 ;;
    esac
    shift
done
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$directory"

cases() {
    local words load red='red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02'
    for words in 'cake unlimited diffserv4' 'cake bandwidth 200gbit diffserv4' 'fq_codel limit 20000'; do
        for load in '1|0' '100|0' '1000|0' '1|1000' '100|1000' '1000|5000'; do
            echo "$pair|$words|$load"
        done
    done
    for words in 'codel limit 20000' 'pie limit 20000' sfq 'fq_pie limit 20000' "$red" sfb; do
        for load in '1|0' '100|0'; do echo "$pair|$words|$load"; done
    done
    [ $pair = pair ] || return 0
    for words in 'cake unlimited diffserv4' 'cake bandwidth 200gbit diffserv4' fq_codel codel pie fq_pie "$red" sfq sfb; do
        echo "pktgen|$words|100|0"
    done
}

# Builds our module and the one that times for a kernel, into a directory with all that a guest needs.
modules() { # OUT KDIR MAKE-ARGUMENT...
    local out=$1 kdir=$2
    shift 2
    mkdir -p "$out/timer"
    "$root/kernel/build" "$out/module" "$kdir" >"$out/module.log" 2>&1 || { cat "$out/module.log" >&2; return 1; }
    cp "$root"/kernel/bench/{simnel_bench.c,Kbuild} "$out/timer/"
    make -C "$kdir" "M=$out/timer" "$@" modules >"$out/timer.log" 2>&1 || { cat "$out/timer.log" >&2; return 1; }
    cp "$out/module/simnel.ko" "$out/timer/simnel_bench.ko" "$out/"
    "$root/kernel/tc/build" "$out"
    cases > "$out/cases"
}

# Lines of a guest as a table or as JSON; the cost of pairs in UNIT. False if one is an error.
show() { # GUEST UNIT
    awk -F'|' -v guest="$1" -v cost="$2" -v json="$json" '
        $1 != "case" { if (NF) print > "/dev/stderr"; next }
        !json && $2 != kind { printf "%-6s%7s%8s%10s%10s  %-13s%s\n", "guest", "flows", "backlog", "stock", "ours", "ratio", "discipline (" ($2 != "pktgen" ? cost : "packets/s") ")" }
        { kind = $2; is_pair = kind != "pktgen"; digits = is_pair ? 1 : 0; unit = is_pair ? cost : "packets/s" }
        { error = $6 !~ /^[1-9][0-9]*$/ ? "Linux: " $6 : $7 !~ /^[1-9][0-9]*$/ ? "ours: " $7 : "" }
        json { printf "{\"bench\":\"kernel%s\",\"guest\":\"%s\",\"qdisc\":\"%s\",\"flows\":%d,\"backlog\":%d,", kind == "pair" ? "" : "-" kind, guest, $3, $4, $5 }
        error && json { gsub(/["\\]/, "", error); printf "\"error\":\"%s\"}\n", error }
        error && !json { printf "%-6s%7d%8d  %s: %s\n", guest, $4, $5, $3, error }
        error { failed = 1; fflush(); next }
        {
            stock = $6; ours = $7; ratio = ours / stock
            # The guest counts thousandths.
            if (is_pair) { stock /= 1000; ours /= 1000 }
            is_short = is_pair && $8 != 1514
            if (json)
                printf "\"stock\":%.*f,\"ours\":%.*f,\"ratio\":%.3f,\"unit\":\"%s\"%s}\n", digits, stock, digits, ours, ratio, unit, is_short ? ",\"size\":" $8 : ""
            else
                printf "%-6s%7d%8d%10.*f%10.*f  %-13.2f%s%s\n", guest, $4, $5, digits, stock, digits, ours, ratio, $3, is_short ? ", " $8 " bytes" : ""
            fflush()
        }
        END { exit failed }'
}
failed=0

if [ "$only" != qemu ]; then
    if ! [ -x "$directory/uml/linux" ]; then
        echo 'building user-mode Linux: some ten minutes' >&2
        "$root/kernel/guest/build-uml" "$directory/uml" >"$directory/uml.log" 2>&1 || { tail -20 "$directory/uml.log" >&2; exit 1; }
    fi
    modules "$directory/for-uml" "$directory/uml/src" ARCH=um
    for name in cake codel fq_codel pie fq_pie red sfb sfq; do
        cp "$directory/uml/src/net/sched/sch_$name.ko" "$directory/for-uml/"
    done
    cp "$directory/uml/src/net/core/pktgen.ko" "$directory/for-uml/"
    SECONDS_AT_MOST=3600 "$root/kernel/guest/uml" "$directory/uml/linux" "$root/kernel/bench/guest.sh" \
        "$directory/for-uml" 5 10000 30 | show uml ns || failed=1
fi

if [ "$only" != uml ]; then
    version=$(ls /lib/modules | sed -n '/cloud-amd64$/p' | sort -V | head -1)
    if [ -z "$version" ] || ! [ -d "/lib/modules/$version/build" ]; then
        echo 'NOT RUN: QEMU: apt-get install linux-headers-cloud-amd64 qemu-system-x86 busybox-static' >&2
        exit $failed
    fi
    if ! [ -e "$directory/qemu/boot/vmlinuz-$version" ]; then
        (mkdir -p "$directory/qemu" && cd "$directory/qemu" && apt-get download "linux-image-$version" &&
            dpkg -x linux-image-*.deb .) >&2
    fi
    modules "$directory/for-qemu" "/lib/modules/$version/build"
    cp -r "$root/kernel/bench/guest.sh" "$directory/for-qemu/"
    cat > "$directory/for-qemu/run" <<END
bash ./guest.sh /share 1 3000 3
END
    ICOUNT=1 MODULES='dummy pktgen sch_cake sch_codel sch_fq_pie sch_pie sch_red sch_sfb sch_sfq' "$root/kernel/guest/qemu" \
        "$directory/qemu/boot/vmlinuz-$version" "$directory/for-qemu/run" \
        "$directory"/for-qemu/{guest.sh,cases,simnel.ko,simnel_bench.ko,q_simnel.so} | show qemu instructions || failed=1
fi
exit $failed

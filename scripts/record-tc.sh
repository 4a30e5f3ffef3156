#!/bin/sh
# Records what the real `tc` prints for real qdiscs: the witness of crates/core/tests/tc_recorded.
#
# Most kernels of virtual machines come without cake, so this boots Debian's user-mode-linux (a
# kernel in a process, about three seconds, no root needed for the kernel itself) with this very
# script as its init, and works there on a dummy device. Nothing of the host's network is touched.
#
#   apt-get install user-mode-linux iproute2 perl
#   scripts/record-tc.sh [PART]...   # rewrites crates/core/tests/data/tc/PART.txt
#
# Parts (all by default): options, units and statistics of cake and the FIFOs; fair_options and
# fair_statistics of codel, fq_codel, sfq and drr; aqm_options, aqm_classes and aqm_statistics of
# pie, red, sfb, tbf and htb.
#
# A block of the recordings is `$ WORDS`, the text that tc prints, then its JSON on one line
# (`! rejected` in the place of both if tc or the kernel refuses the words). A line of units.txt is
# a kind of value, the word, the number in tc's JSON and the text that tc prints for it.
set -eu

if [ "$$" != 1 ]; then
    here=$(cd "$(dirname "$0")/.." && pwd)
    # The kernel divides its command line at spaces.
    parts=$(echo "${*:-options units statistics fair_options fair_statistics aqm_options aqm_classes aqm_statistics}" | tr ' ' ,)
    exec linux quiet mem=256M rootfstype=hostfs rootflags=/ rw init="$here/scripts/record-tc.sh" \
        OUT="$here/crates/core/tests/data/tc" PARTS="$parts" con0=fd:0,fd:1 con=null
fi

# --- From here on we are the init of the guest. -------------------------------------------------
set +eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t sysfs sysfs /sys
exec 2>/run/errors

modules=/usr/lib/uml/modules/$(uname -r)
load() { # A module and whatever modules.dep lists before it; finit_module(2) is call 313 on amd64.
    line=$(grep "/$1.ko:" "$modules/modules.dep")
    for file in $(printf '%s\n' ${line#*:} | tac) ${line%%:*}; do
        perl -e 'open(F,"<",$ARGV[0])||die; syscall(313,fileno(F),my $none="",0)' "$modules/$file"
    done
}
for module in dummy veth sch_cake sch_prio sch_tbf sch_pie sch_red sch_sfb sch_htb \
    sch_codel sch_fq_codel sch_sfq sch_drr; do load $module; done
ip link set lo up
ip link add dummy0 type dummy
ip link set dummy0 up
ip address add 10.9.9.1/24 dev dummy0

head_lines() {
    echo "# Recorded by scripts/record-tc.sh from $(tc -V | sed 's/^tc utility, //;s/,.*//')" \
        "on Linux 6.1's own disciplines."
}

set_root() { # words
    printf 'qdisc del dev dummy0 root\nqdisc add dev dummy0 root %s\n' "$1" |
        tc -force -batch - >/dev/null
}

block() { # words, options of tc
    set_root "$1"
    printf '$ %s\n' "$1"
    text=$(tc $2 qdisc show dev dummy0)
    case $text in
    'qdisc noqueue'*) echo '! rejected' ;;
    *) printf '%s\n' "$text" && tc $2 -j qdisc show dev dummy0 && echo ;;
    esac
}

# --- Settings only -------------------------------------------------------------------------------
record_options() {
    head_lines
    while read -r words; do
        [ -z "$words" ] || block "$words"
    done <<'WORDS'
cake
cake unlimited
cake bandwidth 64kbit
cake bandwidth 128kbit
cake bandwidth 600kbit
cake bandwidth 1mbit
cake bandwidth 1.5mbit
cake bandwidth 10Mbit
cake bandwidth 12345678
cake bandwidth 20mbit
cake bandwidth 100mbit
cake bandwidth 940mbit
cake bandwidth 1gbit
cake bandwidth 10gbit
cake bandwidth 100gbit
cake bandwidth 1mbps
cake bandwidth 512kibit
cake bandwidth 0
cake bandwidth 10mbit unlimited
cake unlimited bandwidth 10mbit
cake bandwidth 10mbit bandwidth 5mbit
cake autorate-ingress
cake bandwidth 10mbit autorate-ingress
cake autorate-ingress bandwidth 10mbit
cake autorate-ingress unlimited
cake unlimited autorate-ingress
cake besteffort
cake precedence
cake diffserv8
cake diffserv4
cake diffserv3
cake diffserv
cake diffserv5
cake diffserv8 besteffort
cake flowblind
cake srchost
cake dsthost
cake hosts
cake flows
cake dual-srchost
cake dual-dsthost
cake triple-isolate
cake nat
cake nonat
cake nat nonat
cake wash
cake nowash
cake split-gso
cake no-split-gso
cake ack-filter
cake ack-filter-aggressive
cake no-ack-filter
cake ack-filter no-ack-filter
cake ingress
cake egress
cake ingress egress
cake rtt 5ms
cake rtt 100us
cake rtt 1s
cake rtt 1.5ms
cake rtt 0
cake rtt 1
cake rtt 25
cake rtt 20ns
cake rtt 37.5ms
cake rtt 283.9ms
cake rtt 4294s
cake rtt 5ms internet
cake datacentre
cake lan
cake metro
cake regional
cake internet
cake oceanic
cake satellite
cake interplanetary
cake satellite rtt 20ms
cake memlimit 32mb
cake memlimit 4Mb
cake memlimit 15k
cake memlimit 500000b
cake memlimit 1000001
cake memlimit 0
cake memlimit 4gb
cake memlimit 5gb
cake fwmark 0xff
cake fwmark 0
cake fwmark 240
cake fwmark 0x00f0
cake fwmark 017
cake fwmark 0xffffffff
cake fwmark 0x100000000
cake fwmark -1
cake fwmark ff
cake raw
cake overhead 0
cake overhead 18
cake overhead -20
cake overhead -64
cake overhead -65
cake overhead 256
cake overhead 257
cake overhead 0x10
cake overhead +18
cake mpu 0
cake mpu 64
cake mpu 84 overhead 38
cake mpu 256
cake mpu 257
cake mpu -1
cake atm
cake ptm
cake noatm
cake overhead 18 noatm
cake overhead 18 atm
cake overhead 18 ptm
cake overhead 18 raw
cake raw overhead 18
cake raw atm
cake atm raw
cake raw overhead 18 atm mpu 64
cake mpu 64 raw
cake conservative
cake overhead 10 conservative
cake conservative overhead 10
cake conservative noatm
cake ipoa-vcmux
cake ipoa-llcsnap
cake bridged-vcmux
cake bridged-llcsnap
cake pppoa-vcmux
cake pppoa-llc
cake pppoe-vcmux
cake pppoe-llcsnap
cake pppoe-ptm
cake bridged-ptm
cake via-ethernet
cake ethernet
cake ether-vlan
cake ethernet ether-vlan
cake ethernet ether-vlan ether-vlan
cake pppoe-ptm ether-vlan
cake via-ethernet pppoe-ptm
cake docsis
cake docsis overhead 22
cake overhead 22 docsis
cake docsis mpu 0
cake atm docsis
cake docsis docsis
cake conservative docsis
cake ethernet docsis
cake raw docsis
cake docsis raw
cake docsis raw ethernet
cake conservative ether-vlan
cake bandwidth 50mbit diffserv4 docsis ack-filter nat
cake bandwidth 16mbit besteffort dual-dsthost nat wash ingress pppoe-vcmux
cake bandwidth 1500kbit diffserv8 dual-srchost nat nowash egress ack-filter-aggressive no-split-gso rtt 50ms ptm overhead 34 mpu 68 memlimit 32mb fwmark 0x0f
cake bandwidth 9600 rtt 333333us memlimit 1234567 flows precedence overhead -4 atm
cake fwmark
cake bandwidth
cake bandwidth fast
cake nonsense
pfifo
pfifo limit 1
pfifo limit 1000
pfifo limit 0
pfifo limit 10 limit 20
pfifo limit 4294967295
pfifo limit 10p
pfifo limit 1k
bfifo
bfifo limit 0
bfifo limit 1
bfifo limit 64kb
bfifo limit 64k
bfifo limit 1mb
bfifo limit 1.5mb
bfifo limit 150000
pfifo_head_drop
pfifo_head_drop limit 0
pfifo_head_drop limit 37
pfifo_head_drop limit 1k
WORDS
}

# --- Values: fixed ones with a point, then decimals of every shape --------------------------------
decimals() { # how many, then the suffixes
    perl -e '
        my ($n, @suffix) = @ARGV; my $x = 12345;
        sub draw { $x = ($x * 1103515245 + 12345) & 0x7fffffff; return ($x >> 8) % $_[0]; }
        for (1 .. $n) {
            my $places = draw(5); my $whole = draw((1, 10, 100, 1000)[draw(4)]);
            my $word = $places ? sprintf("%d.%0${places}d", $whole, draw(10 ** $places)) : $whole + 1;
            print $word, $suffix[draw(scalar @suffix)], "\n";
        }' "$@"
}

value() { # name, keyword, field of the JSON; words come on standard input
    while read -r word; do
        set_root "cake $2 $word"
        number=$(tc -j qdisc show dev dummy0 | sed -n "s/.*\"$3\":\([0-9]*\)[,}].*/\1/p")
        text=$(tc qdisc show dev dummy0 | sed -n "s/.* $2 \([^ ]*\) .*/\1/p")
        echo "$1 $word ${number:--} ${text:--}"
    done
}

record_units() {
    head_lines
    { tr ' ' '\n' <<'W'
1 7 8 9 63 64 100 999 1000 1001 9600 64000 999999 1000000 1000001 123456789 1e6 1.5e6 1e3kbit
64kbit 64Kbit 64KBIT 64KiBit 1.5mbit 10mibit 1gibit 1tibit 2tbit 100gbit 10bps 64kbps 10mbps 1gbps
1tbps 64kibps 10mibps 1gibps 1tibps 0.29mbit 4.35mbit 1.005mbit 0.001kbit .5mbit 5.mbit 64k 64m
64kb 64kbyte 10% -1mbit +1mbit mbit 1.5.5mbit 1kbitx 999999bit 999.9kbit 1000.5mbit 18446744073709551615
W
      decimals 150 '' bit kbit Mbit Gbit kibit mibit gibit kbps Mbps mibps; } |
        value rate bandwidth bandwidth
    { tr ' ' '\n' <<'W'
0 1 20 999 1000 1001 9999 10000 999499 999500 999999 1000000 1234567 5ms 100us 1s 1sec 2secs 7msec
7msecs 9usec 9usecs 1.5ms 0.29s 0.57s 18.2ms 283.9ms 99.95ms 9.995ms 9.985ms 1.115ms 1.125ms 1.135ms
999.4ms 999.5ms 1.0005s 59.999s 100.5s 999.5s 1000s 1234s 4294s 1S 1MS 1m 1min -5ms 5ns 1e3 1e-3s ms
W
      decimals 150 '' s ms us ms us sec msec; } | value time rtt rtt
    { tr ' ' '\n' <<'W'
0 1 15k 15K 1m 1M 1g 1kb 1mb 1gb 1kbit 1mbit 1gbit 8kbit 1b 1000b 1024 1023 1025 1039 1040 1041
1048576 1047553 1049599 1049600 2097152 4294967295 4294967294 4194303k 4095m 4gb 1.5kb 0.3mb 0.7k
15.5k 1.1mb 1023.9k 2.5gb 1e6 1kib 1x kb 3999999k 4000000k 1000000k 999999k 1000001k 1234567k -1kb
W
      decimals 150 '' b k kb m mb kbit mbit; } | value size memlimit memlimit
}

# --- Statistics ----------------------------------------------------------------------------------
udp() { # bytes, packets, DSCP, first port, ports: datagrams into the dummy device
    perl -MSocket -e '
        my ($bytes, $n, $dscp, $port, $ports) = @ARGV;
        socket(my $s, PF_INET, SOCK_DGRAM, 0); setsockopt($s, IPPROTO_IP, IP_TOS, $dscp << 2 | $ENV{ECN});
        setsockopt($s, SOL_SOCKET, 32, 4000000); # SO_SNDBUFFORCE: never wait
        send($s, "x" x $bytes, 0, sockaddr_in($port + $_ % $ports, inet_aton("10.9.9.2")))
            for 1 .. $n;' "$@"
}

still() { # label, options that choose the qdisc: recorded when two looks a moment apart are equal
    for attempt in 1 2 3 4 5 6 7 8 9 10 11 12; do
        before=$(tc -s qdisc show $2) json=$(tc -s -j qdisc show $2) after=$(tc -s qdisc show $2)
        if [ "$before" = "$after" ]; then
            printf '$ %s\n%s\n\n%s\n' "$1" "$before" "$json"
            return
        fi
        sleep 0.3
    done
    echo "never still: $1" >&2
}

loaded() { # words: a little of everything, more than the rate takes
    set_root "$1"
    udp 1400 300 0 5000 3
    udp 200 40 46 6000 2
    udp 900 60 8 7000 1
    udp 1200 80 34 8000 5
    udp 40 20 16 9000 20
    udp 1 20 48 9100 20
    sleep "${2:-0.5}"
    still "$1" 'dev dummy0'
}

record_statistics() {
    head_lines
    for words in 'cake bandwidth 10mbit' 'cake' 'cake bandwidth 64kbit besteffort' \
        'cake diffserv4 bandwidth 100gbit' 'cake precedence' 'pfifo' 'bfifo' 'pfifo_head_drop'; do
        set_root "$words"
        still "$words" 'dev dummy0'
    done
    for mode in besteffort precedence diffserv3 diffserv4 diffserv8; do
        loaded "cake bandwidth 400kbit $mode docsis"
        loaded "cake $mode"
    done
    loaded 'cake bandwidth 64kbit memlimit 100kb pppoe-vcmux ingress' 1
    loaded 'cake bandwidth 128kbit flowblind wash overhead 18 rtt 5ms' 3
    loaded 'cake bandwidth 2mbit diffserv4 dual-srchost nat ether-vlan ptm' 5
    loaded 'cake bandwidth 300kbit autorate-ingress diffserv4' 1
    # At cake's smallest rate a packet takes many seconds, so that a backlog stands still.
    for mode in besteffort precedence diffserv3 diffserv4 diffserv8; do
        loaded "cake bandwidth 512bit $mode overhead 18"
    done
    loaded 'cake bandwidth 512bit diffserv4 memlimit 300kb ingress flowblind'
    for fifo in 'pfifo limit 100' 'bfifo limit 64kb' 'pfifo_head_drop limit 10'; do
        loaded "$fifo"
        set_root 'handle 1: tbf rate 8bit burst 2000 limit 1000000'
        tc qdisc replace dev dummy0 parent 1: handle 2: $fifo
        udp 1400 30 0 5000 3
        udp 200 100 46 6000 2
        still "$fifo, below tbf" 'dev dummy0'
    done

    # Below another qdisc, with all that tc says about where it is.
    set_root 'handle 1: prio'
    tc qdisc add dev dummy0 parent 1:1 handle 10: cake bandwidth 1mbit besteffort
    tc qdisc add dev dummy0 parent 1:2 handle 20: pfifo limit 7
    udp 1400 30 0 5000 3
    still 'several below prio' 'dev dummy0'
    set_root 'cake bandwidth 3mbit besteffort'
    still 'all devices' ''

    # TCP with ECN across a veth pair: marks and filtered acknowledgements.
    ip netns add one
    ip netns add two
    ip link add one0 netns one type veth peer name two0 netns two
    for n in one two; do
        ip netns exec $n sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_ecn'
        ip -n $n link set lo up
        ip -n $n link set ${n}0 up
    done
    ip -n one address add 10.8.8.1/24 dev one0
    ip -n two address add 10.8.8.2/24 dev two0
    tc -n one qdisc add dev one0 root cake bandwidth 8mbit ethernet
    tc -n two qdisc add dev two0 root cake bandwidth 100kbit ack-filter besteffort
    ip netns exec two perl -MSocket -e '
        socket(my $l, PF_INET, SOCK_STREAM, 0); bind($l, sockaddr_in(5001, INADDR_ANY)); listen($l, 5);
        for (1 .. 3) { accept(my $c, $l); fork() and next; 1 while sysread($c, my $b, 65536); exit }
        1 while wait() > 0' &
    sleep 0.5
    for flow in 1 2 3; do
        ip netns exec one perl -MSocket -e '
            socket(my $s, PF_INET, SOCK_STREAM, 0);
            connect($s, sockaddr_in(5001, inet_aton("10.8.8.2"))) or die;
            my $end = time + 4; syswrite($s, "x" x 16384) while time < $end' &
    done
    sleep 8
    for n in one two; do
        before=$(tc -n $n -s qdisc show dev ${n}0) json=$(tc -n $n -s -j qdisc show dev ${n}0)
        printf '$ after TCP, %s\n%s\n\n%s\n' $n "$before" "$json"
    done
}

# --- pie, red, sfb, tbf, htb -----------------------------------------------------------------------
record_aqm_options() {
    head_lines
    while read -r words; do
        [ -z "$words" ] || block "$words"
    done <<'WORDS'
pie
pie limit 1
pie limit 0
pie limit 4294967295
pie limit 100p
pie limit 1k
pie target 20ms
pie target 15ms tupdate 20ms
pie target 100us
pie target 64us tupdate 1s
pie target 0
pie tupdate 0
pie tupdate 30ms alpha 4 beta 30
pie alpha 0 beta 0
pie alpha 32 beta 32
pie alpha 33
pie beta 33
pie alpha -1
pie ecn
pie noecn
pie ecn noecn
pie bytemode
pie nobytemode
pie dq_rate_estimator
pie no_dq_rate_estimator
pie limit 500 target 10ms tupdate 20ms alpha 1 beta 10 ecn bytemode dq_rate_estimator
pie limit
pie target fast
pie nonsense
red
red limit 400000
red limit 400000 avpkt 1000
red avpkt 1000
red limit 400kb avpkt 1000 bandwidth 10mbit
red limit 400000 min 30000 max 90000 avpkt 1000
red limit 400000 min 30000 max 90000 avpkt 1000 burst 55
red limit 400000 min 30000 max 90000 avpkt 1000 burst 10
red limit 400000 min 30000 max 90000 avpkt 1000 bandwidth 10mbit probability 0.02
red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.1
red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.0333
red limit 400000 min 30000 max 90000 avpkt 1000 probability 1
red limit 400000 min 30000 max 90000 avpkt 1000 probability 1.5
red limit 400000 min 30000 max 90000 avpkt 1000 probability 0
red limit 400000 min 30000 avpkt 1000
red limit 400000 max 60000 avpkt 1000
red limit 400000 min 10000 max 30000 avpkt 500 ecn
red limit 400000 min 10000 max 30000 avpkt 500 ecn harddrop
red limit 400000 min 10000 max 30000 avpkt 500 harddrop
red limit 400000 min 10000 max 30000 avpkt 500 ecn nodrop
red limit 400000 min 10000 max 30000 avpkt 500 nodrop
red limit 400000 min 10000 max 30000 avpkt 500 adaptive
red limit 400000 min 10000 max 30000 avpkt 500 adaptative
red limit 400000 min 10000 max 30000 avpkt 500 ecn adaptive bandwidth 100mbit
red limit 60kb min 15kb max 45kb burst 20 avpkt 1000 bandwidth 10mbit probability 0.1 ecn
red limit 400000 min 90000 max 30000 avpkt 1000
red limit 400000 min 30000 max 40000 avpkt 1000
red limit 1mb min 100kb max 300kb avpkt 1500 burst 200 bandwidth 1gbit
red limit 1mb min 1000 max 3000 avpkt 1500
red limit
red limit 400000 avpkt 1000 bandwidth fast
red nonsense
sfb
sfb limit 60
sfb limit 0
sfb rehash 2000 db 1000
sfb rehash 2000 db 1000 target 8 max 12 increment 0.00458 decrement 0.00046
sfb target 10
sfb max 30
sfb target 10 max 20
sfb target 10 max 20 increment 0.01 decrement 0.001
sfb increment 0.01
sfb decrement 0.001
sfb increment 0.00050
sfb increment 1
sfb increment 0
sfb increment 1.5
sfb increment -0.1
sfb penalty_rate 20
sfb penalty_burst 40
sfb penalty_rate 0 penalty_burst 0
sfb rehash 0 db 0
sfb target 0
sfb target 65536
sfb max 70000
sfb limit
sfb nonsense
tbf
tbf rate 5mbit
tbf rate 5mbit burst 10kb
tbf burst 10kb limit 10kb
tbf rate 5mbit burst 10kb limit 60000
tbf rate 5mbit burst 10kb latency 50ms
tbf rate 5mbit burst 10kb limit 60000 latency 50ms
tbf rate 5mbit burst 10kb latency 0
tbf rate 5mbit burst 10kb limit 0
tbf rate 8mbit burst 64kb limit 300000
tbf rate 4mbit burst 40kb peakrate 6mbit mtu 3000 latency 100ms
tbf rate 4mbit burst 40kb peakrate 6mbit latency 100ms
tbf rate 4mbit burst 40kb mtu 3000 latency 100ms
tbf rate 4mbit burst 40kb peakrate 2mbit mtu 3000 latency 100ms
tbf rate 4mbit burst 40kb peakrate 6mbit minburst 2kb limit 1mb
tbf rate 2mbit burst 5kb latency 80ms overhead 20 mpu 100
tbf rate 2mbit burst 5kb latency 80ms overhead 20 linklayer atm
tbf rate 2mbit burst 5kb latency 80ms linklayer ethernet
tbf rate 2mbit burst 5kb latency 80ms linklayer adsl
tbf rate 2mbit burst 5kb latency 80ms linklayer nonsense
tbf rate 2mbit burst 5kb/8 latency 80ms
tbf rate 2mbit buffer 5kb latency 80ms
tbf rate 2mbit maxburst 5kb latency 80ms
tbf rate 1gbit burst 100kb latency 10ms
tbf rate 10gbit burst 1mb latency 1ms
tbf rate 100gbit burst 10mb latency 1ms
tbf rate 64kbit burst 1600 latency 400ms
tbf rate 3mbit burst 1000 limit 60000
tbf rate 0 burst 1000 limit 60000
tbf rate 1mbit burst 0 limit 60000
tbf rate 5mbit rate 6mbit burst 10kb limit 60000
tbf rate fast
tbf nonsense
htb
htb default 10
htb default 0x30
htb default 0
htb default ffff
htb r2q 5
htb r2q 10 default 20
htb default 10 direct_qlen 500
htb default 10 r2q 0
htb offload
htb debug 1
htb nonsense
WORDS
}

in_classes() { # label, options of the root class, then more `tc class` words, one class an argument
    label=$1
    set_root 'handle 1: htb default 10'
    shift
    for class in "$@"; do
        tc class add dev dummy0 $class
    done
    printf '$ %s\n%s\n\n%s\n' "$label" "$(tc $options class show dev dummy0)" \
        "$(tc $options -j class show dev dummy0)"
}

record_aqm_classes() {
    head_lines
    options=
    while read -r words; do
        in_classes "$words" "parent 1: classid 1:10 htb $words"
    done <<'WORDS'
rate 20mbit burst 15k
rate 20mbit
rate 20mbit ceil 30mbit
rate 20mbit ceil 30mbit burst 15k cburst 30k
rate 1mbit
rate 64kbit
rate 1gbit
rate 10gbit
rate 20mbit burst 15k prio 3
rate 20mbit burst 15k prio 8
rate 20mbit burst 15k quantum 1514
rate 20mbit burst 15k overhead 20 mpu 64
rate 20mbit burst 15k overhead 20 linklayer atm
rate 20mbit mtu 9000
rate 20mbit cburst 6000
rate 12345678 burst 6000
WORDS
    in_classes 'a tree' 'parent 1: classid 1:1 htb rate 10mbit burst 15000' \
        'parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit burst 6000 prio 1' \
        'parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit burst 8000 prio 2 quantum 1514'
}

record_aqm_statistics() {
    head_lines
    for words in 'pie tupdate 20ms' 'pie tupdate 20ms dq_rate_estimator' \
        'red limit 400000 min 30000 max 90000 avpkt 1000' \
        'red limit 400000 min 30000 max 90000 avpkt 1000 ecn' sfb 'tbf rate 5mbit burst 10kb limit 60000' \
        'htb default 10'; do
        set_root "$words"
        still "$words" 'dev dummy0'
        loaded "$words"
    done
    # Below a shaper at a crawl, so that there is a backlog, and signals.
    for words in 'pie limit 100 tupdate 20ms' 'pie tupdate 20ms ecn' \
        'pie tupdate 20ms dq_rate_estimator' 'red limit 100000 min 10000 max 30000 avpkt 1000 probability 0.1' \
        'red limit 100000 min 10000 max 30000 avpkt 1000 ecn' \
        'red limit 100000 min 10000 max 30000 avpkt 1000 ecn harddrop' 'sfb limit 100' \
        'sfb target 4 max 8 increment 0.1'; do
        set_root 'handle 1: tbf rate 200kbit burst 2000 limit 10000000'
        tc qdisc replace dev dummy0 parent 1: handle 2: $words
        for round in 1 2 3 4 5 6 7 8; do
            udp 1000 40 1 5000 3
            udp 200 40 46 6000 2
            sleep 0.2
        done
        tc qdisc change dev dummy0 handle 1: tbf rate 8bit burst 2000 limit 10000000
        still "$words, below tbf" 'dev dummy0'
    done
    for words in 'tbf rate 200kbit burst 2000 limit 20000' 'tbf rate 1mbit burst 5000 latency 400ms' \
        'tbf rate 8bit burst 2000 limit 30000'; do
        loaded "$words" 1
    done
}
# --- Fair queues and CoDel -----------------------------------------------------------------------
record_fair_options() {
    head_lines
    while read -r words; do
        [ -z "$words" ] || block "$words"
    done <<'WORDS'
codel
codel limit 1
codel limit 0
codel limit 500
codel limit 1k
codel limit 500p
codel limit 4294967295
codel target 5ms
codel target 20ms interval 200ms
codel target 1us
codel target 10ns
codel target 5
codel target 1.5ms
codel target 333us
codel target 0
codel interval 0
codel interval 30ms
codel interval 4294s
codel ecn
codel noecn
codel ecn noecn
codel noecn ecn
codel ce_threshold 1ms
codel ce_threshold 100us ecn
codel ce_threshold 0
codel ce_threshold 4294s
codel limit 37 target 7ms interval 70ms ce_threshold 3ms ecn
codel limit
codel target
codel target fast
codel nonsense
fq_codel
fq_codel limit 1000
fq_codel limit 1
fq_codel limit 0
fq_codel limit 1k
fq_codel flows 1
fq_codel flows 64
fq_codel flows 65536
fq_codel flows 65537
fq_codel flows 0
fq_codel flows 1k
fq_codel quantum 300
fq_codel quantum 256
fq_codel quantum 255
fq_codel quantum 0
fq_codel quantum 1
fq_codel quantum 1k
fq_codel quantum 1514
fq_codel quantum 1048576
fq_codel quantum 1048577
fq_codel quantum 1mb
fq_codel target 4ms interval 80ms
fq_codel target 0
fq_codel target 20us
fq_codel ecn
fq_codel noecn
fq_codel noecn ecn
fq_codel ce_threshold 1ms
fq_codel ce_threshold 0
fq_codel ce_threshold 1ms noecn
fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3
fq_codel ce_threshold_selector 0x4/0xfc
fq_codel ce_threshold_selector 1/3 ce_threshold 2ms
fq_codel memory_limit 32mb
fq_codel memory_limit 200k
fq_codel memory_limit 1
fq_codel memory_limit 0
fq_codel memory_limit 1234567
fq_codel drop_batch 16
fq_codel drop_batch 1
fq_codel drop_batch 0
fq_codel drop_batch 100000
fq_codel limit 10240 flows 512 quantum 1000 target 6ms interval 60ms memory_limit 4mb ecn drop_batch 32 ce_threshold 10ms
fq_codel flows
fq_codel limit many
fq_codel drop_batch 1k
fq_codel nonsense
sfq
sfq limit 100
sfq limit 1
sfq limit 0
sfq limit 2
sfq limit 1k
sfq limit 127
sfq limit 128
sfq limit 10000
sfq limit 10000 depth 10
sfq limit 10000000
sfq perturb 10
sfq perturb 0
sfq perturb 4294967295
sfq perturb 2147484
sfq perturb 10s
sfq perturb -1
sfq quantum 1514
sfq quantum 300
sfq quantum 1
sfq quantum 0
sfq quantum 1k
sfq quantum 262136
sfq quantum 262137
sfq quantum 300000
sfq divisor 64
sfq divisor 1
sfq divisor 2
sfq divisor 0
sfq divisor 100
sfq divisor 65536
sfq divisor 131072
sfq flows 16
sfq flows 1
sfq flows 0
sfq flows 1000
sfq flows 70000
sfq depth 10
sfq depth 1
sfq depth 0
sfq depth 128
sfq depth 1000
sfq flows 2 depth 1
sfq flows 1 depth 1
sfq flows 1 depth 2
sfq headdrop
sfq headdrop limit 50
sfq limit 40 depth 10 flows 16
sfq limit 3000 flows 512 divisor 16384 perturb 60
sfq limit 3000 flows 512 divisor 16 depth 30 headdrop quantum 1000 perturb 3
sfq redflowlimit 30000 min 8000 max 20000 avpkt 1000 probability 0.1
sfq redflowlimit 30000
sfq redflowlimit 30000 ecn
sfq redflowlimit 30000 min 8000
sfq redflowlimit 30000 max 9000 avpkt 500 ecn harddrop
sfq redflowlimit 100000 min 8000 max 60000 burst 30 avpkt 1000 probability 0.02 ecn headdrop limit 500
sfq redflowlimit 20k min 4k max 10k
sfq min 8000 max 20000
sfq redflowlimit 30000 min 8000 max 7000
sfq ecn
sfq headdrop ecn
sfq limit
sfq nonsense
drr
drr quantum 1000
drr nonsense
WORDS
}

below_tbf() { # words, rate: loaded and then still
    set_root "handle 1: tbf rate $2 burst 2000 limit 1000000"
    tc qdisc replace dev dummy0 parent 1: handle 2: $1
    udp 1400 60 0 5000 3
    ECN=2 udp 1400 40 0 5500 2
    udp 200 40 46 6000 2
    udp 900 20 8 7000 1
    sleep "$3"
    still "$1, below tbf $2" 'dev dummy0'
}

record_fair_statistics() {
    head_lines
    for words in codel fq_codel sfq drr; do
        set_root "$words"
        still "$words" 'dev dummy0'
    done
    for words in 'codel' 'codel ecn' 'codel limit 20' 'codel ce_threshold 1ms ecn' \
        'fq_codel' 'fq_codel limit 30' 'fq_codel memory_limit 60kb' 'fq_codel ce_threshold 1ms' \
        'fq_codel flows 1 noecn' 'sfq' 'sfq limit 20 depth 10 headdrop' 'sfq perturb 10' \
        'sfq redflowlimit 30000 min 3000 max 20000 avpkt 1000 ecn' \
        'sfq redflowlimit 30000 min 2000 max 6000 avpkt 1000 headdrop ecn harddrop'; do
        loaded "$words" 0.2
        below_tbf "$words" 8bit 0.3
        below_tbf "$words" 1mbit 3
    done
}

for part in $(echo "$PARTS" | tr , ' '); do
    "record_$part" >"$OUT/$part.txt"
done
grep -v '^Error: Cannot delete' /run/errors | sort | uniq -c | sort -rn | head -40
echo o >/proc/sysrq-trigger
sleep 5

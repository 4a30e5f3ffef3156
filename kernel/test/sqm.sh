#!/bin/bash
# The calls of tc that sqm-scripts make, with the module under the name `cake`: piece_of_cake and layer_cake
# whole, and simple's tree of htb with a leaf that the kernel does not have itself.
#
# usage: sqm.sh
#
# Inside a guest, with the module loaded as aliases=cake. Fails at the first thing that is not as it should be.
set -u

. "$(dirname "$0")/says.sh" || exit

far
has ' 0% packet loss' ping -c 2 -q 10.9.0.2

# Whether a discipline can be had.
must ip link add name TMP_IFB_4_SQM type ifb
must tc qdisc replace dev TMP_IFB_4_SQM root cake
has 'qdisc cake' tc qdisc show dev TMP_IFB_4_SQM
must ip link delete TMP_IFB_4_SQM type ifb

start() { # UP DOWN: words of both directions
    must ip link add name ifb4v0 type ifb
    tc qdisc del dev v0 root 2>/dev/null
    must tc qdisc add dev v0 root $1
    tc qdisc del dev v0 handle ffff: ingress 2>/dev/null
    must tc qdisc add dev v0 handle ffff: ingress
    tc qdisc del dev ifb4v0 root 2>/dev/null
    must tc qdisc add dev ifb4v0 root $2
    must ip link set dev ifb4v0 up
    must tc filter add dev v0 parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 \
        action mirred egress redirect dev ifb4v0
    has ifb4v0 tc -p filter show parent ffff: dev v0
}
shaped() {
    passes
    [ "$(sent ifb4v0)" -ge 20 ] || fail "ifb4v0 sent $(sent ifb4v0) packets"
}
stop() {
    must tc qdisc del dev v0 ingress
    must tc qdisc del dev v0 root
    must tc qdisc del dev ifb4v0 root
    must ip link set dev ifb4v0 down
    must ip link delete ifb4v0 type ifb
    has ' 0% packet loss' ping -c 2 -q 10.9.0.2
}

# piece_of_cake, on ATM and with the words for NAT that its documentation names.
start 'cake bandwidth 2000kbit atm overhead 44 besteffort nat dual-srchost' \
    'cake bandwidth 9000kbit atm overhead 44 besteffort wash nat dual-dsthost ingress'
has 'bandwidth 2Mbit besteffort dual-srchost nat' tc qdisc show dev v0
has 'atm overhead 44' tc qdisc show dev v0
has 'ingress' tc qdisc show dev ifb4v0
shaped
stop

# layer_cake, with the size table of tc in place of cake's own overhead; one direction unlimited.
start 'stab mtu 2047 tsize 512 mpu 0 overhead 40 linklayer atm cake bandwidth 3000kbit diffserv3' \
    'cake unlimited diffserv3'
has 'linklayer atm' tc -d qdisc show dev v0
has 'bandwidth 3Mbit diffserv3' tc qdisc show dev v0
has '"tins":[{' tc -s -j qdisc show dev v0
shaped
must tc qdisc change dev v0 root cake bandwidth 4000kbit
has 'bandwidth 4Mbit diffserv3' tc qdisc show dev v0
stop

# simple: three classes of htb with a leaf each, told apart by marks.
start 'handle 1: htb default 12' 'cake bandwidth 9000kbit besteffort'
class() { must tc class add dev v0 parent "$1" classid "$2" htb quantum 1500 rate "$3" ceil "$4" prio "$5"; }
class 1: 1:1 3000kbit 3000kbit 0
class 1:1 1:11 128kbit 1000kbit 1
class 1:1 1:12 500kbit 2984kbit 2
for leaf in 11 12; do
    must tc qdisc add dev v0 parent 1:$leaf handle ${leaf}0: cake unlimited besteffort
done
must tc filter add dev v0 parent 1:0 protocol all prio 999 u32 match ip protocol 0 0x00 flowid 1:12
must tc filter add dev v0 parent 1:0 protocol ip prio 1 handle 1 fw classid 1:11
shaped
has 'parent 1:12' tc -s qdisc show dev v0
stop
echo 'sqm: ok'

#!/bin/bash
# systemd-networkd on the module: what .network files ask for under Linux's names is ours, and `tc` shows of it what it
# shows of Linux's own; so it is with files that are read again, and it carries traffic.
#
# usage: networkd.sh
#
# Inside a guest with programs of systemd and D-Bus (guests.sh), with the module loaded under its own name only and with
# Linux's modules for $KINDS. Fails at the first thing that is not as it should be.
set -u
. "$(dirname "$0")/says.sh" && . "$(dirname "$0")/services.sh" || exit

# All that networkd has a section for and that is no part of the kernel itself. fq_pie uses pie.
KINDS=(cake codel fq_pie pie sfb sfq)
DEVICES=(v0 d1 d2 d3 d4 d5)
networks=/run/systemd/network

# A file that gives an interface a discipline.
network() { # DEVICE SECTION SETTING...
    local device=$1 section=$2
    shift 2
    printf '%s\n' '[Match]' "Name=$device" '[Network]' LinkLocalAddressing=no IPv6AcceptRA=no \
        $([ "$device" != v0 ] || echo Address=10.9.0.1/24) "[$section]" "$@" > "$networks/$device.network"
}
# Disciplines of all devices, as networkd has set them, once it is done.
settings() {
    local device
    for device in "${DEVICES[@]}"; do soon '(configured)' networkctl --no-pager status $device; done
    for device in "${DEVICES[@]}"; do tc qdisc show dev $device; done
}

take_away() {
    local device
    for device in "${DEVICES[@]}"; do must tc qdisc del dev $device root; done
}
# A round with whatever has the names: networkd starts, and reads changed files. Sets $made and $changed to what tc shows.
round() {
    local networkd
    network v0 CAKE Handle=10 Bandwidth=10M PriorityQueueingPreset=diffserv4 FlowIsolationMode=dual-src-host \
        NAT=yes Wash=yes CompensationMode=atm OverheadBytes=18 MPUBytes=64
    network d1 ControlledDelay Handle=11 PacketLimit=500 TargetSec=8ms IntervalSec=80ms ECN=yes CEThresholdSec=2ms
    network d2 FlowQueuePIE Handle=12 PacketLimit=3000
    network d3 PIE Handle=13 PacketLimit=700
    network d4 StochasticFairBlue Handle=14 PacketLimit=900
    network d5 StochasticFairnessQueueing Handle=15 PerturbPeriodSec=7
    SYSTEMD_LOG_TARGET=console /usr/lib/systemd/systemd-networkd 2>>/run/networkd.log & networkd=$!
    made=$(settings)
    passes

    network v0 CAKE Handle=20 Bandwidth=20M PriorityQueueingPreset=besteffort NAT=no UseRawPacketSize=yes
    network d1 ControlledDelay Handle=21 PacketLimit=600
    network d2 CAKE Handle=22 Bandwidth=5M AutoRateIngress=yes SplitGSO=no FirewallMark=255
    must networkctl reload
    # networkd 252 asks for new disciplines only: what stands stays, whatever the files say.
    take_away
    must networkctl reconfigure "${DEVICES[@]}"
    for device in "${DEVICES[@]}"; do soon "root refcnt" tc qdisc show dev $device root; done
    changed=$(settings)
    passes
    kill $networkd && wait $networkd
    rm -f /run/systemd/netif/links/*
}

prepare
far
# It is networkd's to give.
must ip addr flush dev v0
for device in "${DEVICES[@]:1}"; do must ip link add $device type dummy; done

round
linux_made=$made linux_changed=$changed
take_away
take_names "${KINDS[@]}"

round
counts ${#DEVICES[@]}
same made "$made" "$linux_made"
same changed "$changed" "$linux_changed"
has 'qdisc cake 10: root refcnt 2 bandwidth 10Mbit diffserv4 dual-srchost nat wash' echo "$made"
has 'qdisc sfq 15: root refcnt 2 limit 127p quantum 1514b depth 127 divisor 1024 perturb 7sec' echo "$made"
has 'qdisc codel 21: root refcnt 2 limit 600p target 5ms' echo "$changed"
has 'qdisc cake 20: root refcnt 2 bandwidth 20Mbit besteffort triple-isolate nonat' echo "$changed"
has 'qdisc cake 22: root refcnt 2 bandwidth 5Mbit' echo "$changed"
take_away
lacks ailed cat /run/networkd.log
leave
printf '%s\n' "$made" "$changed" 'networkd: ok'

#!/bin/bash
# NetworkManager on the module: what connections ask for under Linux's names is ours, and `tc` shows of it what it shows
# of Linux's own; so it is with connections that are changed, and it carries traffic.
#
# usage: networkmanager.sh
#
# Inside a guest with NetworkManager and D-Bus (guests.sh), with the module loaded under its own name only and with Linux's
# modules for $KINDS. Fails at the first thing that is not as it should be.
set -u
. "$(dirname "$0")/says.sh" && . "$(dirname "$0")/services.sh" || exit

# fq_pie uses pie.
KINDS=(cake codel fq_pie pie sfb sfq)
DEVICES=(v0 d1 d2 d3 d4 d5)
connections=/etc/NetworkManager/system-connections

# A connection that gives an interface a discipline.
connection() { # DEVICE TYPE WORD...
    local device=$1 type=$2 address='method disabled'
    shift 2
    [ "$device" != v0 ] || address='addresses 10.9.0.1/24 ipv4.method manual'
    nmcli --offline connection add type "$type" ifname "$device" con-name "$device" ipv4.$address \
        ipv6.method disabled tc.qdiscs "root $*" > "$connections/$device.nmconnection" || fail "$device: $*"
    chmod 600 "$connections/$device.nmconnection"
}
# Disciplines of all devices, as NetworkManager has set them, once it is done.
settings() {
    local device
    for device in "${DEVICES[@]}"; do soon '100 (connected)' nmcli --terse device show "$device"; done
    soon 'src 10.9.0.1' ip route
    for device in "${DEVICES[@]}"; do tc qdisc show dev "$device"; done
}

# A round with whatever has the names: NetworkManager starts, and is told of changes. Sets $made and $changed to what tc
# shows; so many are ours. Of these kinds it says options for sfq only.
round() { # OURS
    local manager device
    rm -f "$connections"/* /run/NetworkManager/devices/*
    # What is up already stays as it is: others have set it.
    must ip addr flush dev v0
    must ip link set v0 down
    connection v0 ethernet handle 10: cake
    connection d1 dummy handle 11: codel
    connection d2 dummy handle 12: fq_pie
    connection d3 dummy handle 13: pie
    connection d4 dummy handle 14: sfb
    connection d5 dummy handle 15: sfq limit 100 perturb 7 quantum 3000
    NetworkManager --debug >/run/manager.log 2>&1 & manager=$!
    soon running nmcli --terse --fields running general
    made=$(settings) || exit
    counts "$1"
    passes

    must nmcli connection modify v0 tc.qdiscs 'root handle 20: sfq limit 90'
    must nmcli connection modify d5 tc.qdiscs 'root handle 25: cake'
    for device in v0 d5; do must nmcli connection up "$device"; done
    changed=$(settings) || exit
    counts "$1"
    passes
    must kill $manager
    wait $manager
    for device in "${DEVICES[@]:1}"; do must ip link del "$device"; done
    must tc qdisc del dev v0 root
}

prepare
far
printf '[main]\nplugins=keyfile\nno-auto-default=*\n[logging]\nlevel=INFO\n' > /etc/NetworkManager/NetworkManager.conf

round 0
linux_made=$made linux_changed=$changed
take_names "${KINDS[@]}"
round ${#DEVICES[@]}
same made "$made" "$linux_made"
same changed "$changed" "$linux_changed"
has 'qdisc cake 10: root refcnt 2 bandwidth unlimited diffserv3' echo "$made"
has 'qdisc sfq 15: root refcnt 2 limit 100p quantum 3000b' echo "$made"
has 'qdisc cake 25: root refcnt 2 bandwidth unlimited' echo "$changed"
leave
printf '%s\n' "$made" "$changed" 'NetworkManager: ok'

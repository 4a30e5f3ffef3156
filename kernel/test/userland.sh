#!/bin/bash
# The programs of users on the module: simnel tc, simnel up --backend kernel, tc with its plug-in.
#
# usage: userland.sh SIMNEL PLUGINS MODULE
#
# Inside a guest, without the module loaded. SIMNEL is the program, PLUGINS the directory of
# q_simnel.so, MODULE simnel.ko. Fails at the first thing that is not as it should be.
set -u
simnel=$1 module=$3
export TC_LIB_DIR=$2

. "$(dirname "$0")/says.sh" || exit
up() { "$simnel" up v0 "$@" --anyway; }

mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir /run/netns && mount -t tmpfs tmpfs /run/netns; }
far
reaches() { has ' 0% packet loss' ping -c 3 -i 0.1 -W 2 -q 10.9.0.2; }
clean() {
    lacks 51a1: tc qdisc show
    lacks simnel- ip link show
    lacks mirred tc filter show dev v0 ingress
}

# Without the module.
has 'modprobe simnel' up upload 10mbit download 20mbit fq_codel --backend kernel
has 'make install-kernel' "$simnel" tc qdisc add dev v0 root simnel cake
clean

insmod "$module" || fail 'the module does not load'

# simnel tc, and tc with the plug-in: both print the same.
"$simnel" tc qdisc add dev v0 root simnel cake bandwidth 10mbit diffserv4 || fail 'add'
reaches
has '`replace` puts it' "$simnel" tc qdisc add dev v0 root simnel cake
has 'bandwidth 10Mbit diffserv4' tc qdisc show dev v0
has 'way_hits' tc -s qdisc show dev v0
for options in -s '-s -j' -j; do
    [ "$("$simnel" tc $options qdisc show dev v0)" = "$(tc $options qdisc show dev v0)" ] ||
        fail "simnel tc $options and tc $options differ"
done
tc -s -j qdisc show dev v0 | python3 -c 'import json, sys; json.load(sys.stdin)[0]["tins"][3]' ||
    fail 'tc -j: no tiers'
tc qdisc change dev v0 root simnel bandwidth 20mbit || fail 'change by tc'
has 'bandwidth 20Mbit diffserv4' "$simnel" tc qdisc show
has '`diffserv9` (word 4)' tc qdisc replace dev v0 root simnel cake bandwidth 1mbit diffserv9
has '`diffserv9` (word 4)' "$simnel" tc qdisc replace dev v0 root simnel cake bandwidth 1mbit diffserv9
has 'bytes of words' tc qdisc replace dev v0 root simnel $(yes word | head -n 1000)
"$simnel" tc qdisc del dev v0 root || fail 'del'
tc qdisc add dev v0 root simnel fq_pie savings 15kb || fail 'add by tc'
reaches
has 'savings 15Kb' tc -s qdisc show dev v0

# Disciplines that hold queues by the thousand, and others.
for words in fq_codel 'htb rate 10mbit fq_codel limit 100' 'tbf rate 5mbit burst 10kb latency 20ms' dualpi2 sfq; do
    tc qdisc replace dev v0 root handle 7: simnel $words || fail "$words"
    reaches
    tc qdisc del dev v0 root
done
tc qdisc add dev v0 root simnel fq_pie savings 15kb

# What somebody else has set stays.
has 'replace' up upload 10mbit --backend kernel
has 'savings 15Kb' tc qdisc show dev v0
tc qdisc del dev v0 root

# An interface in the kernel's hands.
has 'by the kernel: the module' up upload 10mbit download 20mbit cake nat --backend kernel
reaches
has 'v0:download' "$simnel" show -s
has 'bandwidth 20Mbit' "$simnel" show v0
"$simnel" show -j | python3 -c 'import json, sys; assert len(json.load(sys.stdin)) == 2' || fail 'show -j'
has 'shapes `v0` already' up upload 10mbit --backend kernel
"$simnel" change v0 download 30mbit besteffort || fail 'change'
has 'bandwidth 30Mbit besteffort' "$simnel" show
has '`diffserv9`' "$simnel" change v0 upload diffserv9

# On trial: two processes lead back, and either may be killed or stand still.
has 'nothing of `v0` is on trial' "$simnel" keep v0
has 'as before in 5 s' "$simnel" change v0 upload 8mbit --for 5s
has 'again cake bandwidth 10Mbit' "$simnel" show v0
kill -KILL "$(pgrep -x simnel-trial | head -n 1)"
has 'bandwidth 8Mbit' "$simnel" show v0
soon 'refcnt 2 cake bandwidth 10Mbit' "$simnel" show v0
lacks trial "$simnel" show v0
"$simnel" change v0 upload 8mbit --for 5s 2>/dev/null || fail 'change --for'
kill -STOP "$(pgrep -x simnel-trial | head -n 1)"
soon 'refcnt 2 cake bandwidth 10Mbit' "$simnel" show v0
pkill -KILL -x simnel-trial
"$simnel" change v0 upload 8mbit --for 5s 2>/dev/null || fail 'change --for'
has 'v0: kept' "$simnel" keep v0
"$simnel" change v0 download 29mbit --for 5s 2>/dev/null || fail 'change --for'
"$simnel" change v0 download 28mbit || fail 'change'
sleep 6
has 'bandwidth 8Mbit' "$simnel" show v0
has 'bandwidth 28Mbit' "$simnel" show v0
lacks simnel-trial ps -A -o comm
has 'v0: down' "$simnel" down v0
clean
lacks ingress tc qdisc show dev v0

has 'on trial: ends in 1 s' up upload 10mbit --backend kernel --for 1s
soon 'nothing is shaped' "$simnel" show
clean
has 'on trial' up upload 10mbit --backend kernel --for 1m
"$simnel" down v0 >/dev/null || fail 'down'
clean
sleep 1
lacks simnel-trial ps -A -o comm

# The daemon: its file says who does the work, and is read again.
file() { # WORDS
    printf '[[interface]]\nname = "v0"\nbackend = "kernel"\nupload = "9mbit"\ndownload = "20mbit"\nqdisc = "%s"\n' \
        "$1" > /run/simnel.toml
}
file 'cake nat'
"$simnel" daemon --config /run/simnel.toml 2>/run/daemon.log & daemon=$!
soon 'v0: up' cat /run/daemon.log
has 'bandwidth 9Mbit diffserv3' "$simnel" show v0
reaches
file 'cake besteffort'
kill -HUP $daemon
soon 'bandwidth 9Mbit besteffort' "$simnel" show v0
kill -TERM $daemon
wait $daemon || fail "the daemon: $(cat /run/daemon.log)"
clean

# Beside somebody's own filters.
tc qdisc add dev v0 clsact
tc filter add dev v0 ingress prio 30000 matchall classid 1:1 || fail 'no filter'
up download 20mbit --backend auto 2>/dev/null || fail 'auto'
reaches
has 'Sent' "$simnel" show -s v0
"$simnel" down v0 >/dev/null || fail 'down'
clean
has 'pref 30000' tc filter show dev v0 ingress

rmmod simnel || fail 'the module is still in use'
echo 'userland: ok'

#!/bin/bash
# Makes docs/top.png and docs/page.png anew: a laptop with 30 transfers on a line of 20/3 Mbit/s.
#
# usage: scripts/pictures/make.sh [SIMNEL]    as root, a minute; target/debug/simnel unless named
#
# Needs iperf3, ethtool, tmux, python3, chromium and `npm ci` in site. All of it is in network namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
simnel=$(realpath "${1:-target/debug/simnel}")
scratch=$(mktemp -d)
spaces=(laptop line far)
started=()
inside() { ip netns exec "pictures-$1" "${@:2}"; }
finish() {
    tmux -S "$scratch/tmux" kill-server 2>/dev/null || true
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait
    for space in "${spaces[@]}"; do ip netns del "pictures-$space" 2>/dev/null || true; done
    rm -rf "$scratch" /etc/netns/pictures-line
}
trap finish EXIT
start() { "$@" >>"$scratch/log" 2>&1 & started+=($!); }

for space in "${spaces[@]}"; do
    ip netns add "pictures-$space"
    ip -n "pictures-$space" link set lo up
done
join() { # INTERFACE SPACE ADDRESS INTERFACE SPACE ADDRESS
    ip link add "$1" netns "pictures-$2" type veth peer name "$4" netns "pictures-$5"
    ip -n "pictures-$2" addr add "$3/24" dev "$1"
    ip -n "pictures-$5" addr add "$6/24" dev "$4"
    # Packets as they are on the wire.
    inside "$2" ethtool -K "$1" tso off gso off gro off >"$scratch/log"
    inside "$5" ethtool -K "$4" tso off gso off gro off >"$scratch/log"
    ip -n "pictures-$2" link set "$1" up
    ip -n "pictures-$5" link set "$4" up
}
join lan laptop 192.168.77.11 lan line 192.168.77.1
join wan line 192.0.2.1 isp far 192.0.2.2
inside line sysctl -q net.ipv4.ip_forward=1
ip -n pictures-laptop route add default via 192.168.77.1
ip -n pictures-line route add default via 192.0.2.2
ip -n pictures-far route add 192.168.77.0/24 via 192.0.2.1

# A namespace's own names of hosts, as `ip netns` has them.
mkdir -p /etc/netns/pictures-line
echo '192.168.77.11 laptop' >/etc/netns/pictures-line/hosts
mkdir -m 700 "$scratch/run" "$scratch/far"
start inside far "$simnel" link isp rate 20mbit delay 15ms fifo 1000p --control-dir "$scratch/far"
start inside line "$simnel" up wan download 18mbit upload 2.8mbit --control-dir "$scratch/run"
sleep 2
for port in 5201 5202; do start inside far iperf3 --server --port "$port"; done
start inside line "$simnel" serve --control-dir "$scratch/run" --no-mdns
sleep 1
start inside laptop ping -q -i 0.1 192.0.2.2
start inside laptop iperf3 --client 192.0.2.2 --port 5201 --time 120 --parallel 15 --congestion cubic --set-mss 1448 --reverse
start inside laptop iperf3 --client 192.0.2.2 --port 5202 --time 120 --parallel 15 --congestion cubic --set-mss 1448
sleep 30
tmux -S "$scratch/tmux" new-session -d -x 100 -y 17 \
    "ip netns exec pictures-line '$simnel' top wan --no-mdns --control-dir '$scratch/run'"
sleep 8
tmux -S "$scratch/tmux" capture-pane -e -p | python3 scripts/pictures/screen.py >"$scratch/top.html"
picture() { node site/test/screen.mjs "$@" >>"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }; }
picture "file://$scratch/top.html" docs/top.png 980 350
export -f picture
export scratch
inside line bash -c 'picture http://127.0.0.1:8730/ docs/page.png 1000 880 "is full: laptop"'

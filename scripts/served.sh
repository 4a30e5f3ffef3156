#!/bin/bash
# Runs a command beside `simnel serve`, which may change settings: served.sh SIMNEL COMMAND...
#
# The command finds ADDRESS (HOST:PORT), TOKEN and CONTROL (the directory of control sockets) in its
# environment. As root all of it is in a network namespace of its own, with the interface `wan` that
# a daemon shapes to 20/5 Mbit/s, and some traffic there; SHAPED=1 says so. Otherwise nothing is shaped.
set -euo pipefail
simnel=$(realpath "${1:?usage: served.sh SIMNEL COMMAND...}")
shift
if [ -z "${SHAPED:-}" ] && [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
    SHAPED=1 exec unshare --net "$0" "$simnel" "$@"
fi

scratch=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap finish EXIT
export CONTROL=$scratch/run
if [ -n "${SHAPED:-}" ]; then
    # The line's far end: another namespace, which lives as long as a process in it.
    unshare --net sleep infinity &
    far=$!
    started+=($far)
    until [ "$(readlink "/proc/$far/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    ip link set lo up
    ip link add wan type veth peer name isp netns "$far"
    ip addr add 192.0.2.1/24 dev wan
    ip link set wan up
    nsenter --net="/proc/$far/ns/net" ip addr add 192.0.2.2/24 dev isp
    nsenter --net="/proc/$far/ns/net" ip link set isp up
    mkdir -m 700 "$CONTROL"
    "$simnel" up wan download 20mbit upload 5mbit --control-dir "$CONTROL" 2>"$scratch/up" &
    started+=($!)
    ping -q -i 0.01 -s 1400 192.0.2.2 >/dev/null &
    started+=($!)
fi
TOKEN=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
export TOKEN
echo "$TOKEN" >"$scratch/token"
"$simnel" serve --listen 127.0.0.1:0 --token-file "$scratch/token" --allow-changes --control-dir "$CONTROL" \
    --no-mdns 2>"$scratch/said" &
started+=($!)
ADDRESS=
for _ in $(seq 1200); do
    ADDRESS=$(sed -n 's|.*http://\([0-9.:]*\)/.*|\1|p' "$scratch/said")
    [ -n "$ADDRESS" ] && break
    sleep 0.1
done
[ -n "$ADDRESS" ] || { cat "$scratch/said" >&2; exit 1; }
export ADDRESS
# Until an interface has been looked at twice.
metrics=
for _ in $(seq 1200); do
    [ -z "${SHAPED:-}" ] && break
    metrics=$(exec 3<>"/dev/tcp/${ADDRESS/:/\/}" &&
        printf 'GET /metrics?token=%s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$TOKEN" >&3 && cat <&3) || true
    [[ $metrics == *simnel_added_latency_p99_seconds* ]] && break
    sleep 0.1
done
[ -z "${SHAPED:-}" ] || [[ $metrics == *simnel_added_latency_p99_seconds* ]] || { cat "$scratch/up" >&2; exit 1; }
"$@"

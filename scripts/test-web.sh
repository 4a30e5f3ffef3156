#!/bin/bash
# The API of `simnel serve` against its own description: schemathesis draws requests, some right
# and some wrong, and compares the answers.  SECONDS_EACH=60 for longer.
#
# As root in a network namespace of its own, with an interface that a daemon shapes; otherwise
# with none. Says NOT RUN where schemathesis cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.32.5
room=target/schemathesis
tool=$room/bin/schemathesis

if ! "$tool" --version 2>/dev/null | grep -q "$version"; then
    if ! { python3 -m venv "$room" && "$room/bin/pip" install --quiet "schemathesis==$version"; }; then
        echo "NOT RUN: schemathesis $version cannot be installed (python3 with venv, and a network)"
        exit 0
    fi
fi
if [ -z "${IN_NAMESPACE:-}" ]; then
    cargo build --quiet --locked --package simnel
    if [ "$(id -u)" = 0 ] && unshare --net true; then
        IN_NAMESPACE=1 exec unshare --net "$0"
    fi
    echo 'NOT RUN: with an interface that is shaped (needs root); the API without one:'
fi

simnel=target/debug/simnel
scratch=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap finish EXIT
if [ -n "${IN_NAMESPACE:-}" ]; then
    ip link set lo up
    ip link add wan type veth peer name isp
    ip link set wan up && ip link set isp up
    mkdir -m 700 "$scratch/run"
    "$simnel" up wan download 20mbit upload 5mbit --control-dir "$scratch/run" &
    started+=($!)
fi
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$scratch/token"
"$simnel" serve --listen 127.0.0.1:0 --token-file "$scratch/token" --allow-changes --control-dir "$scratch/run" \
    2>"$scratch/said" &
started+=($!)
for _ in $(seq 100); do
    address=$(sed -n 's|.*http://\([0-9.:]*\)/.*|\1|p' "$scratch/said")
    [ -n "$address" ] && break
    sleep 0.1
done
sleep 2 # Until an interface has been looked at twice.
# A discipline's words are a language of their own: a schema cannot tell which are right.
# Events go on for ever; tests/http.rs reads them. What the tool notes down goes with the rest.
tool=$PWD/$tool
cd "$scratch"
"$tool" run "http://$address/api/openapi.json" --no-color --exclude-path /api/v1/events \
    --exclude-checks positive_data_acceptance \
    --header "Authorization: Bearer $(cat "$scratch/token")" --max-time "${SECONDS_EACH:-20}"

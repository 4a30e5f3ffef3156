#!/bin/bash
# The API of `simnel serve` against its own description: schemathesis draws requests, some right
# and some wrong, and compares the answers.  SECONDS_EACH=60 for longer; SEED=1 for the same.
#
# SIMNEL=PROGRAM is the program that serves; without it, one is built.
#
# As root in a network namespace of its own, with an interface that a daemon shapes; otherwise
# with none. Says NOT RUN where schemathesis cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.32.5
room=target/schemathesis
tool=$PWD/$room/bin/schemathesis

if ! "$tool" --version 2>/dev/null | grep -q "$version"; then
    if ! { python3 -m venv "$room" && "$room/bin/pip" install --quiet "schemathesis==$version"; }; then
        echo "NOT RUN: schemathesis $version cannot be installed (python3 with venv, and a network)"
        exit 0
    fi
fi
if [ -z "${SIMNEL:-}" ]; then
    cargo build --quiet --locked --package simnel
    SIMNEL=target/debug/simnel
fi

drawn() {
    [ -n "${SHAPED:-}" ] || echo 'NOT RUN: with an interface that is shaped (needs root); the API without one:'
    # What the tool notes down goes with it.
    cd "$(mktemp -d)"
    trap 'rm -rf "$PWD"' EXIT
    # A discipline's words are a language of their own: a schema cannot tell which are right.
    # Events go on for ever; tests/http.rs reads them.
    "$tool" run "http://$ADDRESS/api/openapi.json" --no-color --exclude-path /api/v1/events \
        --exclude-checks positive_data_acceptance \
        --header "Authorization: Bearer $TOKEN" --max-time "${SECONDS_EACH:-20}" \
        ${SEED:+--seed "$SEED"}
}
export tool
export -f drawn
scripts/served.sh "$SIMNEL" bash -euc drawn

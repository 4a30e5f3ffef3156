#!/bin/bash
# The table of docs/CONFORMANCE.md, and the same figures in README.md: runs what compares us with
# recordings of Linux, and counts.
#
# usage: conformance/summary.sh [--write]
#
# Prints the table; --write puts it into the pages. Takes a minute. SIMNEL names a simnel to use
# instead of target/debug/simnel, which is built otherwise.
set -euo pipefail
case "${1:-}" in
'' | --write) ;;
*)
    echo 'usage: conformance/summary.sh [--write]' >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
if [ -z "${SIMNEL:-}" ]; then
    cargo build --quiet --locked --package simnel
    SIMNEL=target/debug/simnel
fi
table=$(mktemp)
trap 'rm -f "$table"' EXIT
row() { # WHAT RESULT COMMAND
    printf '| %s | %s | `%s` |\n' "$@"
}
last() { "$@" | tail -n 1; }
tests() { # NAMES OF TESTS: how many passed
    cargo test --quiet --locked --package simnel-core --test "$@" 2>&1 |
        sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1 tests pass/p'
}
decisions='simnel conformance golden conformance/golden'
situations='simnel conformance linux conformance/linux'
equal=$(last "$SIMNEL" ${decisions#simnel })
near=$(last "$SIMNEL" ${situations#simnel })
{
    echo '| compared with Linux | result | command |'
    echo '|---|---|---|'
    row 'decisions of every discipline, packet by packet' "$equal" "$decisions"
    row 'TCP, queues and delays in whole situations' "$near" "$situations"
    row "words, texts, JSON and netlink messages of the real \`tc\`" "$(tests tc_recorded)" \
        'cargo test -p simnel-core --test tc_recorded'
} >"$table"
if [ "${1:-}" = --write ]; then
    page=docs/CONFORMANCE.md
    sed -e '/<!-- figures -->/r '"$table" -e '/<!-- figures -->/,/<!-- \/figures -->/{//!d}' $page >"$table.page"
    mv "$table.page" $page
    for figure in "$decisions|$equal" "$situations|$near"; do
        sed -i "s#^\(| \`${figure%%|*}\`[^|]*|\)[^|]*|#\1 ${figure#*|} |#" README.md
    done
else
    cat "$table"
fi

#!/bin/bash
# The table of docs/CONFORMANCE.md, and the same figures in README.md: runs what compares us with
# recordings of Linux, and counts.
#
# usage: conformance/summary.sh [--write] [--papers]
#
# Prints the table; --write puts it into the pages. Takes a minute; with --papers, which runs the
# papers' experiments again instead of keeping that line, seven more. SIMNEL names a simnel to use
# instead of target/debug/simnel, which is built otherwise.
set -euo pipefail
write='' papers=''
for word; do
    case $word in
    --write) write=yes ;;
    --papers) papers=yes ;;
    *)
        echo 'usage: conformance/summary.sh [--write] [--papers]' >&2
        exit 2
        ;;
    esac
done
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
claims='simnel paper A B C D E'
stated='claims of five papers, and whether they hold here and on Linux'
page=docs/CONFORMANCE.md
equal=$(last "$SIMNEL" ${decisions#simnel })
near=$(last "$SIMNEL" ${situations#simnel })
if [ -n "$papers" ]; then
    judged=$("$SIMNEL" ${claims#simnel } --json | sed -n 's/.*"verdict": *"\([^"]*\)".*/\1/p' |
        sort | uniq -c | sort -rn | awk '{ sub(/^ +/, ""); sub(/holds/, "hold"); printf "%s%s", (NR > 1 ? ", " : ""), $0 }')
else
    judged=$(sed -n "s/^| $stated | \([^|]*\) |.*/\1/p" $page)
fi
{
    echo '| compared with Linux | result | command |'
    echo '|---|---|---|'
    row 'decisions of every discipline, packet by packet' "$equal" "$decisions"
    row 'TCP, queues and delays in whole situations' "$near" "$situations"
    row "words, texts, JSON and netlink messages of the real \`tc\`" "$(tests tc_recorded)" \
        'cargo test -p simnel-core --test tc_recorded'
    row "$stated" "$judged" "$claims"
} >"$table"
if [ -n "$write" ]; then
    sed -e '/<!-- figures -->/r '"$table" -e '/<!-- figures -->/,/<!-- \/figures -->/{//!d}' $page >"$table.page"
    mv "$table.page" $page
    for figure in "$decisions|$equal" "$situations|$near"; do
        sed -i "s#^\(| \`${figure%%|*}\`[^|]*|\)[^|]*|#\1 ${figure#*|} |#" README.md
    done
else
    cat "$table"
fi

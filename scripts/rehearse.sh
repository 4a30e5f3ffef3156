#!/usr/bin/env bash
# Rehearses the data path: its loop against a model of the kernel, in virtual time, with faults.
#
#   scripts/rehearse.sh HOURS [FIRST]        so many hours of virtual time, from case FIRST on
#   scripts/rehearse.sh --case CASE          one case: what a finding says
#   scripts/rehearse.sh --weeks N [FIRST]    so many weeks of one loop each: does what it holds grow?
#
# Each hour is a case that follows from its number (crates/gateway/src/datapath/rehearsal). After
# each hundred a line is printed. What does not hold is made smaller and printed with the words that
# reproduce it. FIRST is the time's by default, so that each run sees others.
# Exit status: 0 if all holds, 1 for a finding, 2 for wrong usage.

set -euo pipefail

cd "$(dirname "$0")/.."

usage() {
    echo "usage: scripts/rehearse.sh [--weeks] N [FIRST] | --case CASE   (numbers, at least 1 and 0)" >&2
    exit 2
}

test=nothing_is_lost
if [[ ${1:-} == --case ]]; then
    (($# == 2)) || usage
    export REHEARSE_CASE=$2
elif [[ ${1:-} == --weeks && ${2:-} =~ ^[1-9][0-9]{0,8}$ && ${3:-0} =~ ^[0-9]{1,12}$ ]] && (($# <= 3)); then
    export SOAK_WEEKS=$2 SOAK_FIRST=${3:-$(date +%s)}
    test=soak::a_week
elif [[ ${1:-} =~ ^[1-9][0-9]{0,8}$ && ${2:-0} =~ ^[0-9]{1,12}$ ]] && (($# <= 2)); then
    export REHEARSE_HOURS=$1 REHEARSE_FIRST=${2:-$(date +%s)}
else
    usage
fi
exec env RUST_BACKTRACE=0 cargo test --quiet --release --locked -p simnel-gateway --lib \
    "datapath::rehearsal::$test" -- --nocapture

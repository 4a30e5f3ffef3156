#!/bin/bash
# Linux's own code beside ours under drawn settings and traffic, packet by packet: what differs is
# shrunk and kept as a recording.
#
# usage: conformance/fuzz-linux.sh DIRECTORY [--seconds N | --cases N] [--seed S] [--only DISCIPLINE]
#                                            [--kept]
#        conformance/fuzz-linux.sh DIRECTORY --check RECORDINGS
#
# DIRECTORY holds, or will hold, what `conformance/build-linux.sh DIRECTORY HEADERS` leaves (see
# there what it needs), the programs `oracle-HZ` made of it, and in DIRECTORY/fuzz/ the counts
# (fuzz.json, added to at each run) and what differs (found/; `simnel conformance golden
# DIRECTORY/fuzz/found` shows it again). Python 3 is needed, too.
# Without --seed a run begins behind the last seed that was asked. --kept draws also what ours is known to do otherwise (fuzz_linux/changes.py, ledger.toml).
# VERSION=6.12, or another that the registry has, names the Linux that is fetched (build-linux.sh).
# --check asks the oracle about recordings that are there. SIMNEL names a simnel to use instead of
# target/release/simnel, which is built if it is not there. Status 1: something differs, or the oracle
# gave no answer; 3: Linux's source, or what compiles it, is not to be had.
#
#     conformance/fuzz-linux.sh ~/linux --seconds 600 --seed 1000 --only cake
set -euo pipefail
usage='usage: fuzz-linux.sh DIRECTORY [--seconds N | --cases N] [--seed S] [--only DISCIPLINE] [--kept] | --check RECORDINGS'
case ${1-} in '' | -*) echo "$usage" >&2 && exit 1 ;; esac
directory=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
simnel=${SIMNEL:-$here/../target/release/simnel}
if [ ! -e "$directory/src/include/generated/utsrelease.h" ]; then
    "$here/build-linux.sh" "$directory" HEADERS || {
        echo "fuzz-linux.sh: Linux's source, or what compiles it, is not to be had" >&2
        exit 3
    }
fi
directory=$(cd "$directory" && pwd)
# One for each HZ: some periods are counted in jiffies.
for hz in 1000 250 100; do
    oracle=$directory/oracle-$hz
    if [ ! -x "$oracle" ] || [ -n "$(find "$here/../benches/linux" -newer "$oracle" -type f)" ]; then
        echo "compiling Linux's disciplines, HZ=$hz" >&2
        # shellcheck source=benches/linux/compile.sh
        . "$here/../benches/linux/compile.sh"
        parts=$(cd "$here/../benches/linux" && pwd)
        link_linux "$directory/src" "$parts" oracle "$oracle.new" "$hz"
        mv "$oracle.new" "$oracle"
    fi
done
if [ ! -x "$simnel" ]; then
    (cd "$here/.." && cargo build --release --locked --package simnel)
fi
# What a release decides otherwise than 6.1 ours does, too, from the first that is known to do so.
release=$(awk '/^VERSION =/ { v = $3 } /^PATCHLEVEL =/ { print v "." $3; exit }' "$directory/src/Makefile")
case $release in
    7.[3-9]) release=7.3 ;;
    6.1[2-9] | 7.*) release=6.12 ;;
    *) release=6.1 ;;
esac
exec python3 "$here/fuzz-linux.py" --linux "$release" --oracle "$directory/oracle" --simnel "$simnel" \
    --ledger "$here/ledger.toml" --directory "$directory/fuzz" "$@"

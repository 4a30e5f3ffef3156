#!/bin/bash
# The Python package (crates/python): its wheel, and its tests on a wheel of their own.
#
#   scripts/python.sh build    an optimised wheel in target/wheels
#   scripts/python.sh room     what its tests need: a virtual environment below target/python
#   scripts/python.sh test     the same, and pytest in it
#
# Tools come from PyPI in the versions of crates/python/requirements*.txt. Says NOT RUN where they
# cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
home=crates/python
room=target/python/room
pip=("$room/bin/python" -m pip --quiet --disable-pip-version-check --no-input)
# Of what pip brings a quarter is ever imported, and compiled then.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/target/python/compiled

# Done once, and again when the list has changed. A broken room is made anew.
tools() {
    cmp -s $home/requirements.txt "$room/requirements.txt" && "$room/bin/python" -c '' && return
    rm -rf "$room"
    mkdir -p "$(dirname "$room")"
    python3 -m venv "$room" &&
        "${pip[@]}" install --no-compile --timeout 30 --retries 2 --only-binary :all: \
            --requirement $home/requirements.txt &&
        cp $home/requirements.txt "$room/requirements.txt"
}

# Packages of clusters: without them their tests alone say NOT RUN.
clusters() {
    local list=requirements-cluster.txt
    cmp -s $home/$list "$room/$list" && return
    "${pip[@]}" install --no-compile --timeout 30 --retries 2 --only-binary :all: --requirement $home/$list &&
        cp $home/$list "$room/$list"
}

wheel() { # DIRECTORY OPTIONS...
    local to=$1
    shift
    rm -f "$to"/simnel-*.whl
    "$room/bin/maturin" build --quiet --locked --manifest-path $home/Cargo.toml --out "$to" "$@"
}

case "${1:-}" in
build | room | test) ;;
*)
    echo "usage: $0 build|room|test" >&2
    exit 2
    ;;
esac
if ! tools; then
    echo 'NOT RUN: the Python package (python3 3.9 or newer with venv, and a network for pip)'
    [ "$1" != build ]
    exit
fi
if [ "$1" = build ]; then
    # Refused where the wheel has no tag that PyPI takes: it would run on this system alone.
    wheel target/wheels --release --strip --compatibility pypi
    ls target/wheels/simnel-*.whl
    exit
fi
clusters &
packages=$!
# With the features of the workspace's tests: what those have built is not built again.
wheel target/python/wheels --profile dev --features as-tested --compatibility linux
wait $packages || echo 'not installed: the packages of clusters'
"${pip[@]}" install --no-compile --no-index --no-deps --force-reinstall target/python/wheels/simnel-*.whl
[ "$1" = test ] || exit 0
export MPLBACKEND=Agg
run_tests() { # SECONDS FILES...
    timeout "$1" "$room/bin/python" -m pytest --quiet "${@:2}"
}
# Beside the others: clusters mostly wait.
apart=$home/tests/test_cluster.py
log=target/python/cluster.log
of_clusters=(-o cache_dir="$PWD/target/python/cache" $apart)
run_tests 600 "${of_clusters[@]}" >$log 2>&1 &
beside=$!
status=0
run_tests 1200 -p no:cacheprovider $home/tests --ignore=$apart || status=$?
wait $beside && clusters=0 || clusters=$?
cat $log
# Clusters run in real time, and one that starts late fails: what failed is asked once more by itself,
# and named. 1: pytest came to its end, and tests failed.
if [ $clusters -eq 1 ] && run_tests 600 --last-failed "${of_clusters[@]}"; then
    clusters=0
    sed -n -E 's/^(FAILED|ERROR) ([^ ]+).*/PASSED ONCE MORE: \2/p' $log
fi
[ $clusters -eq 0 ] || status=$clusters
exit $status

#!/bin/bash
# The one entry of all checks.
#
#   scripts/test.sh        tests, examples, Python, the browser
#   scripts/test.sh lint   what only reads the code: format, lints, documentation
#   scripts/test.sh all    what continuous integration runs: both, bounded fuzzing, Linux's own code beside
#                          ours, the kernel's guest, the Debian package, routers' programs, the API's
#                          description, mutants
#
# Runs every step even if an earlier one failed, and ends with a summary. A test that cannot run
# here prints a line that starts with "NOT RUN:" (or "NOT COMPARED:"); those are repeated loudly, as is a
# live test, or one of clusters, that passed only when it was asked once more.
set -uo pipefail
cd "$(dirname "$0")/.."
all=false
case ${1-} in
'') part=tests ;;
lint) part=lint ;;
all) part=all all=true ;;
*) echo "test.sh: \`$1\` is not \`lint\`, \`all\`, nor nothing" >&2 && exit 2 ;;
esac
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
[ -n "${CI:-}" ] && export CARGO_TERM_COLOR=never
# What makes a second build quicker makes the first one slower, which may be the only one.
[ -d "${CARGO_TARGET_DIR:-target}/debug/incremental" ] || export CARGO_INCREMENTAL=0

logs=$(mktemp -d)
lanes=()
# Nothing of ours goes on when this is interrupted.
trap 'for lane in "${lanes[@]}"; do kill -- -"$lane"; done; wait; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

step() { # NAME COMMAND...
    local name=$1 log="$logs/${1// /-}.log" start=$SECONDS word=ok
    local TIMEFORMAT='%U %S'
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    # In a shell of its own: what a lane has used that ends meanwhile is none of this step's.
    (time "$@" 2>&1 </dev/null | tee "$log") 2>"$log.processor" || {
        word=FAILED
        ln -s "$log" "$logs/failed-${name// /-}"
    }
    awk -v word="$word" -v name="$name" -v seconds=$((SECONDS - start)) '
        END { printf "%-7s %s (%d s; processor: %d s)\n", word, name, seconds, $1 + $2 }
    ' "$log.processor" >>"$logs/summary"
}

# Runs steps beside the builds and tests; with "idle" on what those leave of the processor: one crate is
# often all that can be built, and live tests mostly wait.
beside() { # idle|other FUNCTION
    set -m # a process group of its own, which is ended as one
    (chrt "--$1" --pid 0 $BASHPID; "$2") >"$logs/lane-$2" 2>&1 &
    lanes+=($!)
    set +m
}

documentation() {
    RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps --locked
}

# As the step before has built them.
examples() {
    local example
    for example in embed own_discipline compare; do
        "target/debug/examples/$example" || return
    done
}

# Linux's own disciplines beside ours under drawn settings. Fixed seeds: what differs here differs
# for everybody.
linux_beside() {
    local status=0
    SIMNEL=target/debug/simnel conformance/fuzz-linux.sh target/linux-beside --cases 300 --seed 1 ||
        status=$?
    [ $status -ne 3 ] && return $status
    echo 'NOT RUN: Linux beside (no linux-source-6.1, flex, bison, bc or xz-utils)'
}

# Small changes of files that many tests reach: each is noticed, or listed with its reason.
mutants() {
    if ! cargo mutants --version >/dev/null 2>&1; then
        echo 'NOT RUN: mutants (cargo install --locked cargo-mutants@27.1.0)'
        return
    fi
    scripts/mutants.sh --package simnel-tcp --longest 2 --file '*/ranges.rs' --file '*/segment.rs'
}

# The package, in a clean Debian. Its program is the one that the tests come with.
package() {
    local status=0
    PROFILE=dev dist/debian/build && dist/debian/test || status=$?
    [ $status -ne 3 ] && return $status
    echo 'NOT RUN: the Debian package (the lines above say what is missing)'
}

# As the module of the guest is built, which the step behind this takes up.
compiled_code() {
    local headers
    headers=$(. kernel/test/guests.sh && versions | head -1)
    kernel/check ${headers:+"/lib/modules/$headers/build"}
}

lints() {
    cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
}

# Beside live cases, for which it leaves the processor when they ask for it.
tests_built() {
    chrt --idle 0 cargo test --quiet --workspace --locked --no-run
}

# Crates that know no clock: whenever their tests get the processor is soon enough.
disciplines='core autorate kernel'
simulation='tcp sim scenario lab'

# The tests of these crates or, with "but", of all others. --show-output: what tests could not run must
# be seen even when they pass.
tests_of() { # "[but ]CRATE..." [TEST...]
    local crates=$1
    shift
    cargo --config "target.'cfg(all())'.runner = ['$PWD/scripts/tests-of', '$crates']" \
        test --workspace --locked --no-fail-fast --tests -- --show-output ${1+--test-threads=1 --exact} "$@"
}

# The gateway's live cases.
of_namespaces() {
    cargo test --workspace --locked --no-fail-fast --test netns -- --show-output
}

# Live cases run in real time beside all the rest. Where one or two failed, they are asked once more, each by
# itself: who passes then has no failure, but is named in the end.
once_more() {
    local logs_of_failed=() log failed programs again="$logs/tests-once-more.log"
    for log in tests-in-namespaces tests; do
        [ -e "$logs/failed-$log" ] && logs_of_failed+=("$logs/$log.log")
    done
    [ ${#logs_of_failed[@]} -ge 1 ] || return 0
    mapfile -t failed < <(names_of_failed "${logs_of_failed[@]}")
    # Each program that failed has said by which of its tests.
    programs=$(
        sed -n 's/^error: \([0-9]*\) targets\{0,1\} failed:$/\1/p' "${logs_of_failed[@]}" |
            awk '{ sum += $1 } END { print sum + 0 }'
    )
    [ "$(cat "${logs_of_failed[@]}" | grep -c '^test result: FAILED')" = "$programs" ] || return 0
    [ ${#failed[@]} -ge 1 ] && [ ${#failed[@]} -le 2 ] || return 0
    step 'tests once more' tests_of "but $disciplines $simulation" "${failed[@]}"
    [ -e "$logs/failed-tests-once-more" ] && return
    [ "$(counted passed "$again")" -ge ${#failed[@]} ] || return 0
    rm -f "$logs/failed-tests-in-namespaces" "$logs/failed-tests"
    sed -i -E 's/^FAILED  (tests|tests in namespaces) \(/again   \1 (/' "$logs/summary"
    printf '%s\n' "${failed[@]}" >"$logs/passed-once-more"
}

names_of_failed() { # LOG...
    sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$@" | sort -u
}

counted() { # passed|failed LOG...
    local word=$1
    shift
    sed -n "s/^test result: .* \([0-9]*\) $word.*/\1/p" "$@" | awk '{ sum += $1 } END { print sum + 0 }'
}

# Each is compiled as it is run.
examples_in_documentation() {
    cargo test --workspace --locked --no-fail-fast --doc
}

# What comes after this in a lane needs what the tests come with (`built`), or answers that must come in
# time, and so waits for their end (`tested`).
after() { # MOMENT
    until [ -e "$logs/$1" ]; do sleep 1; done
}

# What comes after this shares these tests' folder, which is locked until the first of them runs.
after_begin() { # MOMENT-OF-THEIR-END LOG...
    local end=$1 log
    shift
    for log in "$@"; do
        until [ -e "$logs/$end" ] || grep -q '^ *Running' "$logs/$log.log" 2>/dev/null; do
            sleep 1
        done
    done
}

# These mostly wait, and need little of what is built: all the rest is built meanwhile.
live_first() {
    step 'tests in namespaces' of_namespaces
    touch "$logs/lived"
}

# What builds or runs on one core most of the time, and is for all.
on_one_core() {
    # For a router, under an emulator: no C library, and at most 4 MB.
    step 'gateway alone' scripts/static.sh aarch64
    step 'compiled code' compiled_code
    after built
    step 'kernel' env SIMNEL=target/debug/simnel kernel/test/run target/kernel-test short
    # Where it is built and run is all that differs: as quickly built as can be.
    step 'gateway elsewhere' env PROFILE=quick scripts/static.sh x86_64 armv7
}

on_all_cores() {
    # The simulation side runs where there are no files, threads and sockets.
    step 'lab for a browser' scripts/site.sh wasm
    # A fixed seed: what fails here fails for everybody. New ground is broken by `make fuzz`, whose
    # optimised build would take longer here than all its targets.
    local bounded=(env FUZZ_SEED=1 CARGO_PROFILE_RELEASE_OPT_LEVEL=0)
    $all && step 'fuzz targets' "${bounded[@]}" scripts/fuzz.sh build
    after built
    $all && step 'fuzz' "${bounded[@]}" scripts/fuzz.sh 6
    $all && step 'Linux beside' linux_beside
    # Patient: nothing there is judged by its speed.
    step 'lab in a browser' env SIMNEL=target/debug/simnel scripts/site.sh test
}

# Live tests mostly wait, and leave much of the processor. Many of these programs keep one core busy.
of_disciplines() {
    after built
    step 'tests of disciplines' tests_of "$disciplines"
}

of_the_simulation() {
    after built
    step 'tests of the simulation' tests_of "$simulation"
    step 'examples' examples
}

with_python() {
    after built
    step 'python package' scripts/python.sh room
    # Workers of clusters are given up that do not answer in time.
    after tested
    step 'python' scripts/python.sh test
    $all || return 0
    step 'API as described' env SEED=1 SIMNEL=target/debug/simnel scripts/test-web.sh
}

# What reads the workspace once more.
of_the_workspace() {
    after_begin tested tests tests-of-disciplines tests-of-the-simulation
    $all && step 'lints' lints
    $all && step 'documentation' documentation
    step 'examples in documentation' examples_in_documentation
    $all || return 0
    after tested
    step 'mutants' mutants
    step 'package' package
}

tests() {
    beside other live_first
    $all && beside idle on_one_core
    beside idle on_all_cores
    beside idle of_disciplines
    beside idle of_the_simulation
    beside idle with_python
    beside idle of_the_workspace
    after_begin lived tests-in-namespaces
    step 'build' tests_built
    touch "$logs/built"
    after lived
    step 'tests' tests_of "but $disciplines $simulation netns"
    once_more
    touch "$logs/tested"
    # Not beside them: who gets no processor has no daemon that answers.
    step 'page of serve' env SIMNEL=target/debug/simnel scripts/site.sh page
    local lane
    for lane in "${lanes[@]}"; do
        wait "$lane" ||
            echo 'FAILED  steps beside the tests: they did not come to their end' >>"$logs/summary"
    done
    lanes=()
    cat "$logs"/lane-*
}

case $part in
tests) tests ;;
lint)
    step 'format' scripts/format.sh --check
    step 'lints' lints
    step 'documentation' documentation
    ;;
all)
    step 'format' scripts/format.sh --check
    tests
    ;;
esac

results=()
for log in tests-in-namespaces tests tests-of-{disciplines,the-simulation} examples-in-documentation; do
    results+=("$logs/$log.log")
done
# Where only the end of all this is kept, what failed must be in it.
for log in "$logs"/failed-*; do
    [ -e "$log" ] && printf '\n=== The end of what failed: %s\n' "${log##*/failed-}" && tail -60 "$log"
done
printf '\n=== Summary\n'
cat "$logs/summary"
if [ $part != lint ]; then
    printf 'tests   %d passed, %d failed\n' "$(counted passed "${results[@]}")" "$(counted failed "${results[@]}")"
    for log in "${results[@]}"; do
        names_of_failed "$log" | sed 's/^/        failed: /'
    done
fi
[ -e "$logs/python.log" ] && sed -n 's/^PASSED ONCE MORE: //p' "$logs/python.log" >>"$logs/passed-once-more"
if [ -s "$logs/passed-once-more" ]; then
    printf '\n!!! Failed, and passed when asked once more by itself:\n'
    sed 's/^/!!!   /' "$logs/passed-once-more"
fi
not_run=$(grep -ohE 'NOT (RUN|COMPARED): .*' "$logs"/*.log | sort -u)
if [ -n "$not_run" ]; then
    printf '\n!!! Not everything was checked here:\n'
    sed 's/^/!!!   /' <<<"$not_run"
fi
[ $part = tests ] && echo 'Besides: make lint; make test ARGS=all, all that continuous integration checks'
! grep -q '^FAILED' "$logs/summary"

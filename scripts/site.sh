#!/bin/bash
# The lab in a browser. `site.sh build`: target/site/, files for any static host. `site.sh wasm`:
# what cargo builds of it. `site.sh test`: a browser's figures against the program's, accessibility,
# errors. `site.sh page`: the page of `simnel serve`, beside a daemon. `site.sh papers [WHICH...]`:
# runs the published experiments (all; some minutes), whose page `build` then takes up. `site.sh
# measure`: the time until the page is usable, and from a change to the first picture; exit status 1
# above 2 s and 100 ms. `site.sh speed`: WebAssembly beside the program, in one run. `site.sh picture
# FILE`: docs/lab.png.
#
# SIMNEL=PROGRAM is the program that serves and is compared with; without it, one is built.
# Prints NOT RUN, and succeeds, where Node, npm, Chromium, the target of Rust or a network are
# missing; `build` fails then.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$PWD/target
built=${CARGO_TARGET_DIR:-$target}
wasm=$target/site-build/wasm
# Not $built: for the profile `site` cargo would keep there, in target/site, what the next build removes.
crates=$built/site-build/cargo
reports=$target/papers
command=${1:-build}
# In a fresh clone nothing has made it.
mkdir -p "$target"

lacks() { # WHAT
    if [ "$command" = build ]; then
        echo "site: $1" >&2
        exit 1
    fi
    local what='the lab in a browser'
    [ "$command" != page ] || what='the page of serve in a browser'
    echo "NOT RUN: $what ($1)"
    exit 0
}

packages() {
    local tool
    for tool in node npm; do
        command -v $tool >/dev/null || lacks "$tool is missing: apt-get install nodejs npm"
    done
    [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || lacks 'Node 18 or newer is needed'
    # Somebody else may be at it.
    exec 9>"$target/npm.lock"
    flock 9
    if ! cmp -s site/package-lock.json site/node_modules/.locked; then
        (cd site && npm ci --ignore-scripts --no-audit --no-fund >"$target/npm.log" 2>&1) ||
            lacks "npm ci failed: $(tail -n 1 "$target/npm.log")"
        cp site/package-lock.json site/node_modules/.locked
    fi
    exec 9>&-
}

# The program $bindgen, built once for a user as long as its sources are the same: it is made of 43 crates.
bindgen() {
    local sources
    sources=$(cd site/bindgen && { cat Cargo.toml Cargo.lock src/main.rs; uname -m; } | sha256sum)
    bindgen=${XDG_CACHE_HOME:-$HOME/.cache}/simnel/bindgen-${sources:0:12}
    [ ! -x "$bindgen" ] || return 0
    cargo fetch --quiet --locked --manifest-path site/bindgen/Cargo.toml ||
        lacks 'the crates of site/bindgen cannot be fetched'
    CARGO_TARGET_DIR=$built/bindgen \
        cargo build --quiet --locked --manifest-path site/bindgen/Cargo.toml
    mkdir -p "${bindgen%/*}"
    cp "$built/bindgen/debug/bindgen" "$bindgen.$$"
    mv "$bindgen.$$" "$bindgen"
}

wasm() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ] ||
        lacks 'rustup target add wasm32-unknown-unknown'
    mkdir -p "$wasm"
    bindgen
    CARGO_TARGET_DIR=$crates \
        cargo build --quiet --locked --profile site --target wasm32-unknown-unknown --package simnel-wasm
}

build() {
    # Packages first: what they lack shows before anything is compiled.
    packages
    wasm
    "$bindgen" "$crates/wasm32-unknown-unknown/site/simnel_wasm.wasm" "$wasm" lab
    (cd site && node_modules/.bin/tsc --noEmit && node build.mjs "$target/site" "$wasm" "$reports")
    local part bytes most=$((1536 * 1024))
    # What the pages of commands are made with is committed, since cargo has no npm.
    for part in report.js report.css; do
        cmp "$target/site/$part" "crates/lab/src/report/front/$part" || {
            echo 'site: site/src has changed: (cd site && npm run report)' >&2
            return 1
        }
    done
    bytes=$(gzip -9 -c "$target/site/lab.wasm" | wc -c)
    echo "$target/site: lab.wasm has $bytes bytes compressed; $most at most"
    [ "$command" != build ] || [ -n "${SITE_URL:-}" ] ||
        echo 'where the site will be is not said: most chats show links without their picture then' \
            '(SITE_URL=https://example.org/lab/ make site)'
    [ "$bytes" -le "$most" ]
}

# The program as it is used, where none is named.
released() {
    [ -z "${SIMNEL:-}" ] || return 0
    cargo build --quiet --locked --release --package simnel
    SIMNEL=$built/release/simnel
}

papers() { # WHICH...
    released
    # Taken up only when it is complete.
    rm -rf "$reports.part"
    "$SIMNEL" paper "${@:-all}" --report "$reports.part"
    rm -rf "$reports"
    mv "$reports.part" "$reports"
}

# Builds, starts the server, and runs a script of site/test against it.
drive() { # SCRIPT ARGUMENTS...
    local script=$1 simnel=${SIMNEL:-$built/debug/simnel} address=
    shift
    command -v chromium >/dev/null || lacks 'chromium is missing: apt-get install chromium'
    [ -n "${SIMNEL:-}" ] || cargo build --quiet --locked --package simnel
    if [ "$command" = test ] && [ ! -d "$reports" ]; then
        # One experiment, twice, so that the page is there to be tested.
        reports=$target/papers-test
        rm -rf "$reports"
        "$simnel" paper A6 --repetitions 2 --report "$reports" >"$target/papers-test.log" 2>&1
    fi
    build
    # From wherever a test calls it.
    simnel=$(realpath "$simnel")
    # Not local: the trap outlives this function.
    said=$(mktemp)
    "$simnel" lab --no-open --port 0 "$target/site" 2>"$said" &
    server=$!
    trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -f "$said"' EXIT
    for _ in $(seq 300); do
        address=$(sed -n 's|.*\(http://[0-9.:]*/\).*|\1|p' "$said")
        [ -n "$address" ] && break
        kill -0 $server 2>/dev/null || { cat "$said" >&2; return 1; }
        sleep 0.1
    done
    timeout 1200 node "site/test/$script" "$address" "$simnel" "$@"
}

# The page of `simnel serve`, beside a daemon.
page() { # OUT
    local simnel=${SIMNEL:-$built/debug/simnel}
    command -v chromium >/dev/null || lacks 'chromium is missing: apt-get install chromium'
    packages
    [ -n "${SIMNEL:-}" ] || cargo build --quiet --locked --package simnel
    timeout 600 scripts/served.sh "$simnel" node site/test/page.mjs "$simnel" "$1"
}

case $command in
    build) build ;;
    wasm) wasm ;;
    papers) shift; papers "$@" ;;
    test) drive lab.mjs "$target/site-test" ;;
    page) page "$target/site-test" ;;
    measure) drive measure.mjs ;;
    # A program that is built for tests is no match.
    speed) released; drive speed.mjs ;;
    picture) drive picture.mjs "${2:?a file for the picture}" ;;
    *)
        echo 'site.sh: expected build, wasm, papers, test, page, measure, speed or picture' >&2
        exit 2
        ;;
esac

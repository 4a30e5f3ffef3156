#!/bin/sh
# Installs what building and testing Simnel needs, and nothing that is already there.
#
# Quiet and without network use when nothing is missing. Installs Debian packages only as root on a
# machine with apt; elsewhere it prints what to install. Rust comes through rustup into the usual
# place (~/.cargo, ~/.rustup) with the toolchain that rust-toolchain.toml pins; neither the default
# toolchain nor any shell profile is changed.
#
# Exit status: 0 if building can go on (missing tools of the live data path are only warned about).
set -eu
cd "$(dirname "$0")/.."

CARGO_BIN="${CARGO_HOME:-$HOME/.cargo}/bin"
PATH="$CARGO_BIN:$PATH"
export PATH
channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

# A cargo that is not rustup's serves if it is new enough and brings the checks; it ignores
# rust-toolchain.toml.
minimum=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
enough() {
    version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\.[0-9]*\).*/\1/p')
    [ -n "$version" ] &&
        [ "$(printf '%s\n%s\n' "$minimum" "$version" | sort -V | head -n 1)" = "$minimum" ]
}
rust=yes
if ! have rustup && ! { enough && have cargo-fmt && have cargo-clippy; }; then
    rust=no
fi

# --- Debian packages -------------------------------------------------------------------------

needed=''   # without these nothing builds
wanted=''   # without these the live data path can be built, but neither run nor tested
need() { have "$1" || needed="$needed $2"; }
want() { have "$1" || wanted="$wanted $2"; }

need cc build-essential
if [ $rust = no ]; then
    need curl curl
    [ -e /etc/ssl/certs/ca-certificates.crt ] || needed="$needed ca-certificates"
fi
want nft nftables
want ip iproute2
want ping iputils-ping
want ethtool ethtool
want sysctl procps
want iperf3 iperf3
want irtt irtt
want nghttpd nghttp2-server

if [ -n "$needed$wanted" ]; then
    if have apt-get && [ "$(id -u)" = 0 ]; then
        say "installing$needed$wanted"
        log=$(mktemp)
        # The first attempt uses the package lists that are there; fresh images have none.
        install() {
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
                "$@" >>"$log" 2>&1 </dev/null
        }
        # shellcheck disable=SC2086
        if ! install $needed $wanted; then
            apt-get update >>"$log" 2>&1 || true
            # shellcheck disable=SC2086
            if ! install $needed $wanted; then
                cat "$log" >&2
                [ -z "$needed" ] || fail "apt-get could not install:$needed"
                say "WARNING: apt-get could not install$wanted; live demos and tests will not run"
            fi
        fi
        rm -f "$log"
    elif [ -n "$needed" ]; then
        fail "missing; as root, install: apt-get install$needed$wanted"
    else
        say "WARNING: live demos and tests need: apt-get install$wanted (as root)"
    fi
fi

# Guests in which the kernel module is tested (kernel/test/run, which says what it lacks).
guests=''
guest() { have "$1" || guests="$guests $2"; }
guest qemu-system-x86_64 qemu-system-x86
guest busybox busybox-static
guest cpio cpio
guest depmod kmod
ls -d /lib/modules/*-cloud-amd64/build >/dev/null 2>&1 ||
    guests="$guests linux-headers-cloud-amd64"
# Debian's package in a clean system (dist/debian/test); a router's program (scripts/static.sh).
guest mmdebstrap mmdebstrap
guest qemu-aarch64-static qemu-user-static
# Linux's disciplines, which ours are compared with (conformance/fuzz-linux.sh).
for tool in flex bison bc; do guest $tool $tool; done
guest xz xz-utils
if [ -n "$guests" ] && [ "$(uname -m)" = x86_64 ] && have apt-get && [ "$(id -u)" = 0 ]; then
    # A distribution that has one of them not may have the others.
    for package in $guests; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" \
            >/dev/null 2>&1 </dev/null ||
            say "WARNING: apt-get could not install $package; what needs it is not tested"
    done
fi

# The Python package is built and tested in a place of its own (scripts/python.sh).
if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    if have apt-get && [ "$(id -u)" = 0 ]; then
        venv() {
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
                python3 python3-venv >/dev/null 2>&1 </dev/null
        }
        # Fresh images have no package lists.
        venv || { apt-get update >/dev/null 2>&1 && venv; } ||
            say 'WARNING: apt-get could not install python3-venv; the Python package is not tested'
    else
        say 'WARNING: the Python package is not tested: apt-get install python3-venv (as root)'
    fi
fi

# The lab in a browser (scripts/site.sh, which says what it lacks).
browser=''
have node || browser="$browser nodejs"
have npm || browser="$browser npm"
have chromium || browser="$browser chromium"
if [ -n "$browser" ] && have apt-get && [ "$(id -u)" = 0 ]; then
    for package in $browser; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" \
            >/dev/null 2>&1 </dev/null ||
            say "WARNING: apt-get could not install $package; the lab in a browser is not tested"
    done
fi

# --- Rust ------------------------------------------------------------------------------------

if [ $rust = no ]; then
    say "installing rustup into $CARGO_BIN"
    have curl || fail "curl is missing, and rustup is fetched with it"
    script=$(mktemp)
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o "$script" ||
        fail "could not fetch https://sh.rustup.rs: is there a network?"
    # A distribution's cargo, too old, may be in the way; it stays where it is.
    RUSTUP_INIT_SKIP_PATH_CHECK=yes sh "$script" -y -q --no-modify-path --profile minimal --default-toolchain none >&2 ||
        fail "rustup's installer failed"
    rm -f "$script"
fi

if have rustup; then
    for part in rustfmt clippy; do
        if ! rustup component list --toolchain "$channel" 2>/dev/null |
            grep -q "^$part.*(installed)"; then
            say "installing Rust $channel"
            rustup toolchain install "$channel" --profile minimal -c rustfmt -c clippy \
                --no-self-update >&2 || fail "rustup could not install Rust $channel"
            break
        fi
    done
    # The kernel module compiles Rust's library itself.
    if ! rustup component list --toolchain "$channel" 2>/dev/null |
        grep -q '^rust-src.*(installed)'; then
        say 'installing the sources of the library of Rust'
        rustup component add rust-src --toolchain "$channel" >&2 ||
            say 'WARNING: rustup could not install rust-src; the kernel module cannot be built'
    fi
    # The simulation side is checked for browsers, the gateway for routers.
    for target in wasm32-unknown-unknown aarch64-unknown-linux-musl; do
        if ! rustup target list --toolchain "$channel" --installed 2>/dev/null | grep -qx $target; then
            say "installing Rust's $target"
            rustup target add $target --toolchain "$channel" >&2 ||
                say "WARNING: rustup could not install $target; that check will not run"
        fi
    done
fi
enough || fail "cargo $minimum or newer is needed, found: $(cargo --version 2>&1 | head -n 1)"

# --- Crates ----------------------------------------------------------------------------------

if ! cargo fetch --locked --offline >/dev/null 2>&1; then
    say 'fetching crates'
    cargo fetch --locked >/dev/null || fail 'could not fetch the crates that Cargo.lock names'
fi

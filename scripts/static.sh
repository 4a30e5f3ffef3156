#!/bin/sh
# Static binaries of the gateway, for routers without a C library of their own: musl, without the lab.
#
# usage: scripts/static.sh [TARGET...]     x86_64, aarch64 and armv7 unless said otherwise
#
# Each is built, must not be above 4 MB, and is run: its version, its words, and what it says of a file
# with a mistake. PROFILE=quick is built sooner, and may be larger. Those of other processors run under
# qemu-user (Debian: qemu-user-static). Results are target/static/simnel-ARCHITECTURE. Where rustup has no
# standard library for armv7, it is compiled from its sources, with the C library and the unwinder of
# Debian's packages (another three minutes). What cannot be built or run here says so in a line that starts
# with NOT RUN: and the exit status is 1 only for what is wrong.
set -eu
cd "$(dirname "$0")/.."
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
profile=${PROFILE:-router}
most=4000000
failed=0

fail() { echo "FAILED  $*" && failed=1; }
not_run() { echo "NOT RUN: static program for $*"; }

# The target's name, and what runs it.
describe() {
    case $1 in
    x86_64) target=x86_64-unknown-linux-musl emulator=qemu-x86_64-static ;;
    aarch64) target=aarch64-unknown-linux-musl emulator=qemu-aarch64-static ;;
    armv7) target=armv7-unknown-linux-musleabihf emulator=qemu-arm-static ;;
    *) echo "static.sh: $1 is none of x86_64, aarch64, armv7" >&2 && exit 2 ;;
    esac
    [ "$1" = "$(uname -m)" ] && emulator=''
    return 0
}

# What the linker needs beside the standard library for armv7, in the folder $parts: Debian's musl, and
# the unwinder that GCC brings. Nothing is installed.
parts=$PWD/target/static/armv7-musl
armhf() { # TOOL ARGUMENT...
    tool=$1 && shift
    "apt-$tool" -qq -o APT::Architecture=armhf -o APT::Architectures=armhf \
        -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" "$@" 2>/dev/null
}
fetch_parts() {
    [ -d "$parts" ] && return 0
    command -v dpkg-deb >/dev/null || return 1
    rm -rf "$parts.new"
    mkdir -p "$parts.new/lists/partial" "$parts.new/cache/archives/partial" "$parts.new/lib"
    (
        # Another's archive may be out of order; what is needed is downloaded, or not.
        cd "$parts.new" && { armhf get update || true; } &&
            gcc=$(armhf cache pkgnames libgcc- | grep -E '^libgcc-[0-9]+-dev$' | sort -V | tail -n 1) &&
            armhf get download musl-dev "$gcc" &&
            for package in ./*.deb; do dpkg-deb -x "$package" . || exit 1; done &&
            cp usr/lib/arm-linux-musleabihf/*.[ao] usr/lib/gcc/arm-linux-gnueabihf/*/crt*.o lib &&
            cp usr/lib/gcc/arm-linux-gnueabihf/*/libgcc_eh.a lib/libunwind.a
    ) && mv "$parts.new/lib" "$parts" && rm -rf "$parts.new"
}

# True if the program does what the gateway does everywhere.
works() { # PROGRAM...
    file=$(mktemp)
    printf '[[interface]]\nname = "eth0"\nupload = "10mbit"\nqdisc = "cake nate"\n' >"$file"
    "$@" --version | grep -q '^simnel ' &&
        "$@" words cake | grep -q 'diffserv4' &&
        "$@" daemon --config "$file" 2>&1 | grep -q '`nate`'
    result=$?
    rm -f "$file"
    return $result
}

mkdir -p target/static
for architecture in ${*:-x86_64 aarch64 armv7}; do
    describe "$architecture"
    # The linker that comes with the toolchain serves all of them; nothing is compiled from C.
    variable=CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')
    # It folds functions that are alike, and packs relocations, which musl unpacks since 1.2.4.
    flags='-Clink-arg=--icf=all -Clink-arg=--pack-dyn-relocs=relr'
    set -- "${variable}_LINKER=rust-lld"
    if ! rustup target list --installed 2>/dev/null | grep -qx "$target" &&
        ! rustup target add "$target" >/dev/null 2>&1; then
        sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library
        if [ "$architecture" != armv7 ] || [ ! -d "$sources" ] || ! fetch_parts ||
            ! RUSTC_BOOTSTRAP=1 cargo fetch --quiet --locked --manifest-path "$sources/Cargo.toml"; then
            not_run "$architecture: no standard library (rustup target add $target), nor what its sources need:" \
                "rust-src, its crates, Debian's package lists"
            continue
        fi
        # A stable compiler takes `build-std` only if it is told to.
        set -- "$@" RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort
        # Debian's musl may be older.
        flags="-Lnative=$parts"
    fi
    if ! env "$@" "${variable}_RUSTFLAGS=$flags" cargo build --profile "$profile" --locked --package simnel \
        --no-default-features --target "$target"; then
        fail "$architecture does not build"
        continue
    fi
    binary=target/static/simnel-$architecture
    cp "target/$target/$profile/simnel" "$binary"
    size=$(stat -c %s "$binary")
    if [ "$profile" = router ] && [ "$size" -gt $most ]; then
        fail "$architecture: $size bytes, of at most $most"
    elif [ -n "$emulator" ] && ! command -v "$emulator" >/dev/null; then
        not_run "$architecture: $size bytes; no $emulator (Debian: qemu-user-static)"
    elif works $emulator "$binary"; then
        echo "ok      $architecture: $size bytes, runs"
    else
        fail "$architecture: $size bytes, does not run"
    fi
done
exit $failed

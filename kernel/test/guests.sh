# What tests in guests of Debian's kernels share; sourced. The kernels are those of this system, or of
# the root file system $ROOT, and of the architecture $ARCH (kernel/guest/suite).

. "$(dirname "${BASH_SOURCE[0]}")/../guest/debian.sh"
export ARCH=${ARCH:-$(uname -m)}
# Guests are made in directories of their own.
[ -z "${ROOT:-}" ] || export ROOT=$(realpath "$ROOT")

not_run() { echo "NOT RUN: the kernel module: $*"; }

# Versions of Debian's kernels whose headers are installed, the oldest first.
versions() {
    local version
    ls "${ROOT:-}/lib/modules" 2>/dev/null | sed -n '/-cloud-a..64$/p' | sort -V | while read -r version; do
        [ ! -L "${ROOT:-}/lib/modules/$version/build" ] || echo "$version"
    done
}

# Fails, and says why, where no guest can be had.
can_run() {
    local tool
    for tool in "qemu-system-$ARCH" cpio busybox python3 ip tc rustc gcc make; do
        command -v $tool >/dev/null && continue
        not_run "$tool is missing (apt-get install qemu-system-x86 qemu-system-arm cpio busybox-static kmod)"
        return 1
    done
    if ! [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
        not_run "no sources of Rust's library (rustup component add rust-src)"
        return 1
    fi
    if [ -z "$(versions)" ]; then
        not_run 'no kernel headers (apt-get install linux-headers-cloud-amd64)'
        return 1
    fi
}

# Fetches a package into the present directory.
download() { # PACKAGE
    if [ -z "${ROOT:-}" ]; then
        apt-get download "$1" >/dev/null 2>&1
        return
    fi
    local package=$1
    [ "$ARCH" = "$(uname -m)" ] || package=$1:arm64
    chroot "$ROOT" sh -c "cd /tmp && apt-get download $package" >/dev/null 2>&1 && mv "$ROOT"/tmp/"$1"_*.deb .
}

# A kernel with its modules, as boot/ and lib/ of the present directory.
fetch_kernel() { # VERSION
    local package
    download "linux-image-$1" || download "linux-image-$1-unsigned" || return
    # From 7.x that one is empty.
    for package in "linux-binary-$1" "linux-modules-$1"; do download "$package" || true; done
    for package in linux-*.deb; do dpkg -x "$package" . || return; done
    [ -e lib ] || ln -s usr/lib lib
    kernel_to_boot "$1"
}

# A kernel and Python for a guest: GUEST/boot, GUEST/lib and GUEST/tree.
furnish() { # GUEST VERSION
    local guest=$1 version=$2
    mkdir -p "$guest"
    if ! ls "$guest"/boot/vmlinuz-* >/dev/null 2>&1; then
        (cd "$guest" && fetch_kernel "$version") || { not_run "the package linux-image-$version cannot be had"; return 1; }
    fi
    rm -rf "$guest/tree"
    if [ "$ARCH" = "$(uname -m)" ]; then python_for_guest "$guest/tree"; else ln -s "$ROOT/guest" "$guest/tree"; fi
}

# Programs of packages of this system's release and architecture, and D-Bus, with their libraries, as a directory.
programs_for_guest() { # DIRECTORY PACKAGE PROGRAM...
    local to=$1 wanted=$2 packages=$1.packages root=$1.root package program libraries
    shift 2
    [ "$ARCH" = "$(uname -m)" ] || return
    [ ! -d "$to" ] || return 0
    rm -rf "$packages" "$root" "$to.part" && mkdir -p "$packages/partial" "$root"/usr/{bin,lib,lib64,sbin} "$to.part"
    # As if nothing were installed, so that all libraries come along; nothing is installed by it.
    apt-get -o Dir::State::status=/dev/null -o Dir::Cache::archives="$packages" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User=root --quiet --yes --no-install-recommends --download-only \
        install "$wanted" dbus-daemon dbus-system-bus-common >/dev/null 2>&1 || return
    # Newer releases have below /usr what this one may have below /.
    ln -s usr/{bin,lib,lib64,sbin} "$root/"
    for package in "$packages"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar x --keep-directory-symlink -C "$root" || return
    done
    libraries=$(printf "$root/usr/lib/$ARCH-linux-gnu%s:" '' /systemd)
    {
        echo usr/share/dbus-1
        for program in usr/bin/dbus-daemon "$@"; do
            echo "$program"
            "$root"/lib64/ld-linux-*.so.* --library-path "$libraries" --list "$root/$program" |
                grep -o "$root/usr/lib/[^ ]*" | sed "s|^$root/||"
        done | sort -u
    } | (cd "$root" && xargs cp -rL --parents -t "$to.part") || return
    mv "$to.part" "$to" && rm -rf "$packages" "$root"
}

# Python and the parts of its library that the tests load, as a directory.
python_for_guest() { # DIRECTORY
    (cd "$(dirname "${BASH_SOURCE[0]}")" && python3 - "$1" <<'END'
import os, shutil, sys
import encodings.ascii, encodings.latin_1, encodings.utf_8, encodings.idna, stringprep
import json, mmap, random, socket, struct, subprocess, time, traceback
to = sys.argv[1]
for module in list(sys.modules.values()):
    file = getattr(module, "__file__", None)
    if file and file.startswith(sys.prefix):
        copy = to + file
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(file, copy)
END
    )
}

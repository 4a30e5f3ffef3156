# What tests in guests of Debian's kernels share; sourced.

not_run() { echo "NOT RUN: the kernel module: $*"; }

# Versions of Debian's kernels whose headers are installed, the oldest first.
versions() {
    local version
    ls /lib/modules 2>/dev/null | sed -n '/-cloud-amd64$/p' | sort -V | while read -r version; do
        [ ! -d "/lib/modules/$version/build" ] || echo "$version"
    done
}

# Fails, and says why, where no guest can be had.
can_run() {
    local tool
    for tool in qemu-system-x86_64 cpio busybox python3 ip tc rustc gcc make; do
        command -v $tool >/dev/null && continue
        not_run "$tool is missing (apt-get install qemu-system-x86 cpio busybox-static kmod)"
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

# A kernel and Python for a guest: GUEST/boot, GUEST/lib and GUEST/tree.
furnish() { # GUEST VERSION
    local guest=$1 version=$2
    mkdir -p "$guest"
    if ! ls "$guest"/boot/vmlinuz-* >/dev/null 2>&1; then
        (cd "$guest" && { apt-get download "linux-image-$version" || apt-get download "linux-image-$version-unsigned"; } >/dev/null 2>&1 &&
            dpkg -x linux-image-*.deb .) || { not_run "the package linux-image-$version cannot be had"; return 1; }
    fi
    rm -rf "$guest/tree" && python_for_guest "$guest/tree"
}

# Python and the parts of its library that the tests load, as a directory.
python_for_guest() { # DIRECTORY
    (cd "$(dirname "${BASH_SOURCE[0]}")" && python3 - "$1" <<'END'
import os, shutil, sys
import encodings.ascii, encodings.latin_1, encodings.utf_8, encodings.idna, stringprep
import random, socket, struct, subprocess, time, traceback
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

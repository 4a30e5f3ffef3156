# What scripts that make root file systems and kernels of Debian's share; sourced.

# Sets $base and $sources: the release that SUITE stands on, and where its packages are.
release() { # SUITE
    local mirror=http://deb.debian.org/debian
    base=${1%-backports}
    sources=("deb $mirror $base main")
    [ "$base" = "$1" ] || sources+=("deb $mirror $1 main")
}

# Packages and what they need, unpacked only: nothing of it runs here.
unpack() { # DIRECTORY SUITE ARCHITECTURE PACKAGE,...
    local base sources
    release "$2"
    mmdebstrap --quiet --mode=root --variant=extract --architectures="$3" \
        --aptopt="APT::Default-Release \"$2\"" --include="$4" "$base" "$1" "${sources[@]}"
    rm -rf "$1"/usr/share/{doc,man,locale,info} "$1"/var/{lib/apt,cache}
}

# The kernel of the modules in lib/ as a file of boot/. From 7.x on it lies beside them.
kernel_to_boot() { # VERSION
    ls boot/vmlinuz-* >/dev/null 2>&1 && return
    mkdir -p boot && cp "lib/modules/$1/vmlinuz" "boot/vmlinuz-$1"
}

#!/bin/bash
# The gateway's live cases (crates/gateway/tests/netns) as a static program, on a kernel of Debian's under
# QEMU: other kernels than this machine's, another C library, and other processors.
#
# usage: conformance/live-on-debian.sh DIRECTORY [SUITE [x86_64|aarch64 [CASE...]]]
#
# SUITE is bookworm (Linux 6.1) unless given, or trixie (6.12), trixie-backports (the newest), sid.
# DIRECTORY keeps kernel and programs of the guest. Without CASE all run that do not measure. The guest
# counts instructions for time, one a nanosecond, and sees nothing of a busy machine; all cases take some ten
# minutes of processor. Here alone run the cases that set the machine's clock and suspend it (`clocks.rs`). With
# GW_BACKEND=kernel in the environment the guest's own cake does the work, in the cases that this is for. What a
# case could not do says so; at the end stands how many passed. As root; needs
# mmdebstrap, qemu-system-x86 or qemu-system-arm, cpio, and the target of Rust (`rustup target add
# aarch64-unknown-linux-musl`). The exit status is 1 if a case failed.
set -euo pipefail
export LC_ALL=C
directory=$(realpath -m "${1:?usage: live-on-debian.sh DIRECTORY [SUITE [x86_64|aarch64 [CASE...]]]}")
suite=${2:-bookworm} arch=${3:-x86_64}
shift $(($# < 3 ? $# : 3))
case $arch in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *) echo "live-on-debian.sh: $arch is none of x86_64, aarch64" >&2 && exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
guest=$directory/$suite-$arch
. "$here/../kernel/guest/debian.sh"

# Kernel, modules and programs.
furnish() {
    local new=$guest.new kernel=linux-image-cloud-$debian
    [ "$suite" = "${suite%-backports}" ] || kernel=$kernel/$suite
    rm -rf "$new"
    mkdir -p "$new"
    unpack "$new/tree" "$suite" $debian \
        bash,busybox,coreutils,ethtool,grep,iproute2,iputils-ping,kmod,nftables,procps,sed,util-linux,"$kernel"
    cd "$new"
    mkdir -p lib
    mv tree/usr/lib/modules lib/ 2>/dev/null || mv tree/lib/modules lib/
    mv tree/boot .
    kernel_to_boot "$(ls lib/modules)"
    cd "$here"
    mv "$new" "$guest"
}
[ -d "$guest" ] || furnish

cd "$here/.."
export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
program=$(env "CARGO_TARGET_${arch^^}_UNKNOWN_LINUX_MUSL_LINKER=rust-lld" CARGO_PROFILE_DEV_STRIP=debuginfo \
    cargo test --locked --package simnel-gateway --test netns --target "$arch-unknown-linux-musl" --no-run \
    --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$program" "$work/netns"
cat > "$work/script" <<SCRIPT
mkdir -p /run/tmp /run/netns
mount -t tmpfs tmpfs /run/tmp
mount -t cgroup2 none /sys/fs/cgroup
export TMPDIR=/run/tmp RUST_BACKTRACE=0 GW_GUEST=1 ${GW_BACKEND:+GW_BACKEND=$GW_BACKEND}
cases="$*"
[ -n "\$cases" ] || cases=\$(./netns --list | sed -n 's/: test\$//p' | grep -v '^rates_are_reached')
for case in \$cases; do
    timeout 120 ./netns \$case 2>&1
    [ \$? -lt 124 ] || echo "test \$case ... FAILED"
done
SCRIPT
modules='veth dummy ifb tun bridge br_netfilter 8021q nf_tables nf_conntrack nf_conntrack_netlink nfnetlink_queue
    nfnetlink_log nft_queue nft_ct nft_masq nft_nat nft_log nft_chain_nat nft_socket nft_numgen nft_hash nft_limit
    nft_reject_inet nft_meta_bridge nft_compat nft_xfrm xt_NFQUEUE xfrm_user esp4 esp6 sch_cake sch_tbf sch_htb sch_ingress
    cls_matchall act_mirred act_ctinfo nf_flow_table nf_flow_table_inet nft_flow_offload'
ARCH=$arch ICOUNT=1 SECONDS_AT_MOST=7200 TREE=$guest/tree MODULES=$modules LOG=$guest/log \
    kernel/guest/qemu "$guest"/boot/vmlinuz-* "$work/script" "$work/netns" | tee "$guest/output"
count() { grep -c "^test .* \.\.\. $1\$" "$guest/output" || true; }
echo "Linux $(ls "$guest/lib/modules") for $arch: $(count ok) passed, $(count FAILED) failed, $(count 'NOT RUN') NOT RUN"
[ "$(count FAILED)" = 0 ] && [ "$(count ok)" -gt 0 ]

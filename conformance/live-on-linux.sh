#!/bin/sh
# The gateway's live cases (crates/gateway/tests/netns) on Linux 6.1, which has what the kernel of
# this machine may lack: nftables' own `queue` expression, flowtables. The kernel runs as a user
# process with this machine's files, read only; it needs no root.
#
#     conformance/live-on-linux.sh DIRECTORY [--backend kernel] [CASE...]
#
# DIRECTORY holds, or will hold, the kernel (build-linux.sh says what that needs). Without CASE all
# run that do not measure: this kernel has one core and spends some 0.2 ms on a packet. With
# `--backend kernel` the kernel module does the work, in a kernel as kernel/guest/build-uml builds it.
# There time passes only while all wait, so that neither this machine nor what else it does is in a rate.
# Cases of the program (crates/cli/tests/live, with `::` in their names) run there twice, with the module
# and with Linux's own cake; without CASE that is how autorate sets the kernel's rates, for good and on trial,
# recording, and what becomes of `--user`.
set -eu
directory=${1:?usage: live-on-linux.sh DIRECTORY [--backend kernel] [CASE...]}
shift
here=$(cd "$(dirname "$0")" && pwd)
prepare=: profile=--release clock= live=
if [ "${1-}" = --backend ]; then
    if [ "${2-}" != kernel ]; then
        echo 'live-on-linux.sh: --backend kernel, or nothing' >&2
        exit 1
    fi
    shift 2
    export GW_BACKEND=kernel
    profile='' clock=time-travel=inf-cpu
    [ -x "$directory/linux" ] || "$here/../kernel/guest/build-uml" "$directory"
    if ! grep -q '^CONFIG_MODULES=y' "$directory/src/.config"; then
        echo "live-on-linux.sh: $directory/linux takes no modules: name another directory" >&2
        exit 1
    fi
    "$here/../kernel/build" "$directory/module" "$directory/src"
    simnel=$(realpath "$directory/module/simnel.ko") cake=$(realpath "$directory/src/net/sched/sch_cake.ko")
    prepare="insmod '$simnel'; export GW_BACKEND=kernel"
    live='autorate::rates_in_the_kernel_follow_a_line_that_halves
        autorate::without_any_reflector_they_tell_where_the_kernel_shapes
        autorate::rates_in_the_kernel_on_trial_go_unless_they_are_kept
        record::what_the_kernel_shapes_is_recorded_and_replayed
        user::a_user_is_of_the_process_that_stays_or_told_that_none_does'
elif ! [ -x "$directory/linux" ]; then
    "$here/build-linux.sh" "$directory" MCONSOLE MAGIC_SYSRQ IPV6 XFRM XFRM_USER NETFILTER \
        NETFILTER_ADVANCED NETFILTER_INGRESS NETFILTER_NETLINK NETFILTER_NETLINK_QUEUE \
        NF_CONNTRACK NF_CT_NETLINK NF_NAT NF_TABLES NF_TABLES_INET NF_TABLES_IPV4 NF_TABLES_IPV6 NFT_CT \
        NFT_MASQ NFT_NAT NFT_QUEUE BRIDGE NF_TABLES_BRIDGE NFT_FLOW_OFFLOAD NF_FLOW_TABLE NF_FLOW_TABLE_INET \
        IFB NET_CLS_ACT NET_CLS_MATCHALL NET_ACT_MIRRED NET_SCH_INGRESS
elif ! grep -q '^CONFIG_NFT_QUEUE=y' "$directory/src/.config"; then
    echo "live-on-linux.sh: $directory/linux was built without nftables: name another directory" >&2
    exit 1
fi
kernel=$(realpath "$directory/linux")

cd "$here/.."
# The executable of a test, built.
built() { # PACKAGE TEST
    cargo test $profile --locked --package "$1" --test "$2" --no-run --message-format=json-render-diagnostics |
        sed -n '/"kind":\["test"\]/s/.*"executable":"\([^"]*\)".*/\1/p'
}
program=$(built simnel-gateway netns)
[ $# -gt 0 ] || set -- $("$program" --list | sed -n 's/: test$//p' | grep -v '^rates_are_reached') $live
runs=$# live_program=
case "$*" in
    *::*)
        [ -n "$live" ] || { echo 'live-on-linux.sh: cases with `::` want --backend kernel' >&2; exit 1; }
        live_program=$(built simnel live)
        for case in "$@"; do case $case in *::*) runs=$((runs + 1)) ;; esac; done
        ;;
esac

guest=$(mktemp -d)
trap 'rm -rf "$guest"' EXIT
cat > "$guest/init" <<INIT
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/tmp
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
cd /run
$prepare
for case in $*; do
    case \$case in
        *::*)
            for module in '${simnel-}' '${cake-}'; do
                echo "\$case with \${module##*/}"
                rmmod simnel sch_cake 2>/dev/null
                insmod "\$module"
                timeout 600 '$live_program' --exact "\$case" --nocapture --test-threads 1 2>&1
            done
            rmmod sch_cake
            insmod '${simnel-}'
            ;;
        *) timeout 60 '$program' "\$case" 2>&1 ;;
    esac
done
echo o > /proc/sysrq-trigger
sleep 10
INIT
chmod +x "$guest/init"
TMPDIR=$guest "$kernel" mem=1G root=/dev/root rootfstype=hostfs rootflags=/ ro \
    con=null con0=null,fd:1 ssl=null noreboot quiet $clock "uml_dir=$guest" "init=$guest/init" \
    < /dev/null 2>&1 | tee "$guest/console"
passed=$(grep -c '^test result: ok. 1 passed' "$guest/console" || true)
echo "$passed of $runs cases passed"
[ "$passed" -gt 0 ] && [ "$passed" -eq $runs ] && ! grep '^NOT RUN' "$guest/console"

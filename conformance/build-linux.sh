#!/bin/sh
# Builds the Linux that conformance/record-linux.py runs: Debian's 6.1, or the VERSION of another of its
# packages linux-source-VERSION, as a user-mode kernel with a virtual clock, HZ=1000, and every
# discipline built in. Needs Debian 12's package sources, and
# flex, bison, bc, gcc, make, xz-utils. Takes some ten minutes of one core and 2 GB in DIRECTORY.
#
#     [VERSION=6.12] conformance/build-linux.sh DIRECTORY [OPTION...]    # leaves the kernel as DIRECTORY/linux
#
# Each OPTION (without CONFIG_) is built in, too; OPTION=VALUE sets it so, the last one counting.
# With WLAN and NET_IPIP a segment takes as much memory as in distributions' kernels (1280 bytes
# beside its payload, not 768), and send buffers are as theirs.
# With MODULES all modules are built, in DIRECTORY/src. With HEADERS first nothing is built but
# what the disciplines' sources include, in some minutes: for benches/linux.sh and fuzz-linux.sh.
#
# $EDIT is a command that changes more of the sources before they are built, in their directory.
#
# Two places of Linux are changed. A packet that crosses a veth pair forgets its socket's hash, as it
# would on a wire, so that the router's disciplines hash the headers. And a process gets its floating
# point registers back on hosts that have more of them than 2,696 bytes (AMX), too: ptrace takes all or none.
set -eu
version=${VERSION:-6.1}
directory=${1:?usage: build-linux.sh DIRECTORY [OPTION...]}
shift
headers=
if [ "${1-}" = HEADERS ]; then
    headers=1
    shift
fi
for tool in flex bison bc gcc make xz; do
    if ! command -v $tool >/dev/null; then
        echo "build-linux.sh: $tool is missing: apt-get install flex bison bc gcc make xz-utils" >&2
        exit 1
    fi
done
mkdir -p "$directory/src"
cd "$directory"
apt-get download "linux-source-$version"
dpkg-deb --fsys-tarfile "linux-source-${version}_"*.deb |
    tar x --wildcards "*/linux-source-$version.tar.xz"
tar xJf "usr/src/linux-source-$version.tar.xz" -C src --strip-components=1
cd src
sed -i '/^config HZ$/,/default/s/default 100/default 1000/' arch/um/Kconfig
sed -i 's/^\tskb_tx_timestamp(skb);$/&\n\tskb_clear_hash(skb);/' drivers/net/veth.c
sed -i '/^int restore_fp_registers/,/^}/{
    s/^\tstruct iovec iov;$/\tstatic char whole[1 << 16];\n&/
    s/iov_base = fp_regs;/iov_base = whole;/
    s/^\(\t*\)iov.iov_len = FP_SIZE.*/\1iov.iov_len = sizeof(whole);\
\1if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, \&iov) < 0)\
\1\treturn -errno;\
\1__builtin_memcpy(whole, fp_regs, FP_SIZE * sizeof(unsigned long));/
}' arch/x86/um/os-Linux/registers.c
eval "${EDIT:-}"
for option in 64BIT UML_TIME_TRAVEL_SUPPORT HIGH_RES_TIMERS NO_HZ_IDLE MMU STDERR_CONSOLE \
    STDIO_CONSOLE NULL_CHAN PRINTK BUG MULTIUSER FUTEX EPOLL SIGNALFD TIMERFD EVENTFD SHMEM AIO \
    ADVISE_SYSCALLS POSIX_TIMERS FILE_LOCKING SYSVIPC BINFMT_ELF BINFMT_SCRIPT NAMESPACES NET_NS \
    UTS_NS PROC_FS PROC_SYSCTL SYSFS TMPFS HOSTFS DEVTMPFS NET UNIX PACKET INET INET_DIAG \
    INET_TCP_DIAG IP_ADVANCED_ROUTER IP_MULTIPLE_TABLES TCP_CONG_ADVANCED TCP_CONG_CUBIC \
    TCP_CONG_BBR TCP_CONG_DCTCP DEFAULT_CUBIC NETDEVICES NET_CORE VETH TUN DUMMY NET_SCHED \
    NET_SCH_HTB NET_SCH_PRIO NET_SCH_RED NET_SCH_SFB NET_SCH_SFQ NET_SCH_TBF NET_SCH_NETEM \
    NET_SCH_DRR NET_SCH_CODEL NET_SCH_FQ_CODEL NET_SCH_CAKE NET_SCH_FQ NET_SCH_PIE \
    NET_SCH_FQ_PIE NET_SCH_FIFO NET_CLS "$@"
do
    case $option in
        *=*) echo "CONFIG_$option" ;;
        *) echo "CONFIG_$option=y" ;;
    esac
done > ../fragment
make ARCH=um KCONFIG_ALLCONFIG=../fragment allnoconfig
if [ -n "$headers" ]; then
    make ARCH=um -j"$(nproc)" prepare
    exit
fi
make ARCH=um -j"$(nproc)" linux
if grep -q '^CONFIG_MODULES=y' .config; then
    make ARCH=um -j"$(nproc)" modules
fi
cp linux ../linux

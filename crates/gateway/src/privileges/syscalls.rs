//! The system calls that are left, each list with its reason.
//!
//! Two filters. By one, everything that is not listed fails with EPERM. By the other, clone3 fails
//! with ENOSYS, so that the C library uses clone, whose flags a filter can see.

use std::collections::BTreeMap;

use libc::*;
use seccompiler::{
    apply_filter, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// System calls of every thread, those of the data path included.
pub(super) const THREAD: &[i64] = &[
    // Packets, verdicts, frames, wake-ups.
    SYS_recvmmsg,
    SYS_recvmsg,
    SYS_recvfrom,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_ppoll,
    SYS_read,
    SYS_write,
    SYS_writev,
    SYS_close,
    // Time, what the thread has used, and rest.
    SYS_clock_gettime,
    SYS_getrusage,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_sched_yield,
    SYS_restart_syscall,
    // Memory, of a discipline that is replaced or of a thread that ends.
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_futex,
    SYS_membarrier,
    SYS_getrandom,
    // A thread's beginning, end, panic, and the confinement itself.
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_gettid,
    SYS_getpid,
    SYS_tgkill,
    SYS_prctl,
    SYS_seccomp,
    SYS_capget,
    SYS_capset,
    SYS_landlock_create_ruleset,
    SYS_landlock_add_rule,
    SYS_landlock_restrict_self,
    SYS_sched_setscheduler,
    SYS_sched_getaffinity,
    SYS_fstat,
    SYS_fcntl,
];

/// System calls for serving clients and reading settings again: sockets, files, threads.
pub(super) const CONTROL: &[i64] = &[
    // Clients and netfilter. `socket` and `ioctl` have rules of their own.
    SYS_bind,
    SYS_listen,
    SYS_accept4,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_eventfd2,
    SYS_signalfd4,
    SYS_dup,
    SYS_dup3,
    SYS_geteuid,
    SYS_getuid,
    // Settings, locks, sockets in the file system; landlock says which.
    SYS_openat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_flock,
    SYS_ftruncate,
    SYS_fchmod,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_pread64,
    // An interface that is taken over.
    SYS_mlockall,
    SYS_prlimit64,
    #[cfg(target_arch = "x86_64")]
    SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    SYS_poll,
    #[cfg(target_arch = "x86_64")]
    SYS_stat,
    #[cfg(target_arch = "x86_64")]
    SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    SYS_open,
    #[cfg(target_arch = "x86_64")]
    SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    SYS_readlink,
];

/// System calls of a family beside those of its threads: each process is another's child.
pub(super) const FAMILY: &[i64] = &[
    SYS_wait4,
    SYS_waitid,
    SYS_kill,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_socketpair,
    // Settings for daemons to come.
    SYS_memfd_create,
    // musl's fork(2).
    SYS_set_tid_address,
    #[cfg(target_arch = "x86_64")]
    SYS_fork,
];

/// System calls of the guard: it is told, looks, lets pass, kills, and ends.
pub(super) const GUARD: &[i64] = &[
    SYS_ppoll,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_sendto,
    SYS_close,
    SYS_pidfd_send_signal,
    SYS_clock_gettime,
    SYS_restart_syscall,
    // Its end, be it a panic's.
    SYS_write,
    SYS_writev,
    SYS_futex,
    SYS_munmap,
    SYS_madvise,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_exit,
    SYS_exit_group,
];

/// Families of sockets: netfilter; clients, and questions about interfaces.
const FAMILIES: [u64; 2] = [AF_NETLINK as u64, AF_UNIX as u64];
/// Questions about interfaces, non-blocking sockets, and whether something is a terminal.
#[allow(clippy::unnecessary_cast)] // Their type is the C library's.
const QUESTIONS: [u64; 8] = [
    SIOCGIFINDEX as u64,
    SIOCGIFMTU as u64,
    SIOCGIFTXQLEN as u64,
    SIOCGIFFLAGS as u64,
    SIOCGIFNAME as u64,
    0x8946, // SIOCETHTOOL
    FIONBIO as u64,
    TCGETS as u64,
];

/// Flags of clone(2) that put what is made into a namespace of its own.
const NAMESPACES: u64 = (CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET) as u64;

/// Allows the calling thread and its later children no other calls than those of `lists`.
pub(super) fn allow(lists: &[&[i64]]) -> Result<(), String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        lists.iter().flat_map(|list| list.iter()).map(|&call| (call, Vec::new())).collect();
    if lists.contains(&CONTROL) {
        let argument = |number, value| {
            let equal = SeccompCmpOp::Eq;
            let condition = SeccompCondition::new(number, SeccompCmpArgLen::Dword, equal, value)?;
            SeccompRule::new(vec![condition])
        };
        // Processes for the family, threads for the others, in no new namespace for anybody.
        let (mask, wanted) = match lists.contains(&FAMILY) {
            true => (NAMESPACES, 0),
            false => (CLONE_THREAD as u64, CLONE_THREAD as u64),
        };
        let masked = SeccompCmpOp::MaskedEq(mask);
        let copies = SeccompCondition::new(0, SeccompCmpArgLen::Dword, masked, wanted)
            .and_then(|condition| SeccompRule::new(vec![condition]));
        let families: Result<_, _> = FAMILIES.iter().map(|&family| argument(0, family)).collect();
        let questions: Result<_, _> = QUESTIONS.iter().map(|&code| argument(1, code)).collect();
        rules.insert(SYS_socket, families.map_err(said)?);
        rules.insert(SYS_ioctl, questions.map_err(said)?);
        rules.insert(SYS_clone, vec![copies.map_err(said)?]);
        rules.insert(SYS_clone3, Vec::new());
    }
    let refused = SeccompAction::Errno(EPERM as u32);
    let absent = BTreeMap::from([(SYS_clone3, Vec::new())]);
    install(absent, SeccompAction::Allow, SeccompAction::Errno(ENOSYS as u32))?;
    install(rules, refused, SeccompAction::Allow)
}

fn install(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    these: SeccompAction,
) -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(said)?;
    let filter = SeccompFilter::new(rules, others, these, arch).map_err(said)?;
    let program = BpfProgram::try_from(filter).map_err(said)?;
    apply_filter(&program).map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    format!("system calls are not confined: {error}")
}

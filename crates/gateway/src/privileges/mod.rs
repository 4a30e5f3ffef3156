//! Privileges of the processes once they are set up.
//!
//! ```text
//! at start, all processes    the user that is wanted; only NET_ADMIN and SYS_NICE; nothing regains
//!                            more by exec; system calls: those of the whole family, so no program
//!                            is started
//! guard                      only NET_ADMIN; no files; a dozen system calls
//! when all is set up:
//!   control thread           files: the configuration read, locks and sockets written, /proc read;
//!                            system calls: those listed, so no process either
//!   data path's threads      only NET_ADMIN; no files; system calls: those listed
//! ```
//!
//! No process inherits locked memory, so guard and daemon lock their own, without IPC_LOCK: the
//! start lifts the limit of what may be locked. Where it must not, the supervisor keeps IPC_LOCK
//! for those that it starts. A guard gives it up once it is locked. So does a daemon unless it is
//! to stay locked, since with a limit later mappings would fail.
//!
//! Three mechanisms of the kernel: capabilities(7), landlock(7), seccomp(2). All hold for a thread
//! and those that it starts. A call that is not listed fails with EPERM. To kill a process for a
//! call that a newer libc makes would be to cut the line. What a kernel lacks is gone without, and
//! said. The supervisor keeps what the start leaves it: it starts daemons that set up anew.

use std::io;
use std::path::Path;

use landlock::{
    path_beneath_rules, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, ABI,
};
use rustix::fs::Mode;
use rustix::thread::{capabilities, set_capabilities, set_no_new_privs, CapabilitySet};

use crate::error::Error;
use crate::sys;
use syscalls::{allow as confine_calls, CONTROL, FAMILY, GUARD, THREAD};

mod user;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod syscalls;

pub use user::{User, ACCOUNT};

/// Filters for other processors are made by nobody.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod syscalls {
    pub(super) const THREAD: &[i64] = &[];
    pub(super) const CONTROL: &[i64] = &[];
    pub(super) const FAMILY: &[i64] = &[];
    pub(super) const GUARD: &[i64] = &[];

    pub(super) fn allow(_: &[&[i64]]) -> Result<(), String> {
        Ok(())
    }
}

/// Netfilter; threads under SCHED_FIFO.
const AT_START: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_NICE);
/// Verdicts are netfilter's business.
const DATA_PATH: CapabilitySet = CapabilitySet::NET_ADMIN;

/// Gives up, for the calling thread and all processes to come, what no part of a daemon needs. With
/// a `user`, also what root has: the `directories` of locks and sockets become that user's.
///
/// # Errors
/// Capabilities or programs to come cannot be given up; as [`User::take_over`]. What the kernel
/// lacks to confine system calls is no error: the control thread tells the same.
pub(crate) fn at_start(user: Option<User>, directories: &[&Path]) -> Result<(), Error> {
    let lifted = sys::lift_lock_limit();
    if let Some(user) = user {
        user.take_over(directories)?;
        // Files are made with the modes that they are to have, sockets for their group, too.
        rustix::process::umask(Mode::RWXO);
    }
    keep(if lifted { AT_START } else { AT_START | CapabilitySet::IPC_LOCK })
        .map_err(|e| Error::system("giving up capabilities", e))?;
    let _ = confine_calls(&[THREAD, CONTROL, FAMILY]);
    Ok(())
}

/// Makes root's process the account of packages where `directory` is that one's, with the
/// capabilities of a family. Root makes no file where another user could prepare something.
///
/// # Errors
/// As [`User::take_over`].
pub(crate) fn follow_directory(directory: &Path) -> Result<(), Error> {
    match User::named(ACCOUNT) {
        Ok(account) => follow(account, directory),
        Err(_) => Ok(()),
    }
}

fn follow(account: User, directory: &Path) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() || !account.has(directory) {
        return Ok(());
    }
    account.take_over(&[])?;
    keep(AT_START).map_err(|e| Error::system("giving up capabilities", e))
}

/// Confines the calling process, the guard; it has set itself up.
pub(crate) fn confine_guard() -> Vec<String> {
    confined([keep_said(DATA_PATH), confine_files(&[], &[]), confine_calls(&[GUARD])])
}

/// Confines the calling thread, which answers the control sockets, and the threads that it starts.
/// Files below `read` may be read; files below `write` may be made, written and removed.
/// `is_locked`: memory is to stay locked. Says what the kernel could not do.
pub(crate) fn confine_control(read: &[&Path], write: &[&Path], is_locked: bool) -> Vec<String> {
    confined([
        keep_said(AT_START | to_lock(is_locked)),
        confine_files(read, write),
        confine_calls(&[THREAD, CONTROL]),
    ])
}

/// Confines the calling thread, which is one of the data path.
pub(crate) fn confine_data_path(is_locked: bool) -> Vec<String> {
    let capabilities = DATA_PATH | to_lock(is_locked);
    confined([keep_said(capabilities), confine_files(&[], &[]), confine_calls(&[THREAD])])
}

/// For threads of a process whose memory is to stay locked. Where that has a limit, each mapping of
/// theirs, such as of an allocation, counts for it.
fn to_lock(is_locked: bool) -> CapabilitySet {
    let has_limit = || sys::lock_limit().is_ok_and(|limit| limit.is_some());
    match is_locked && has_limit() {
        true => CapabilitySet::IPC_LOCK,
        false => CapabilitySet::empty(),
    }
}

/// Reasons of those that could not be done.
fn confined(results: [Result<(), String>; 3]) -> Vec<String> {
    results.into_iter().filter_map(Result::err).collect()
}

/// Gives up what a link does not need once its sockets are open: threads under SCHED_FIFO are left.
pub(crate) fn keep_for_link() -> io::Result<()> {
    keep(CapabilitySet::SYS_NICE)
}

/// Gives up all capabilities of the calling thread and those that it will start: for what only asks
/// a daemon.
///
/// # Errors
/// A system call failed.
pub fn give_up_privileges() -> Result<(), Error> {
    keep(CapabilitySet::empty()).map_err(|e| Error::system("giving up capabilities", e))
}

/// Keeps those of `wanted` that the thread has, and no others, whatever it executes.
fn keep(wanted: CapabilitySet) -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.permitted &= wanted;
    sets.effective = sets.permitted;
    sets.inheritable = CapabilitySet::empty();
    set_capabilities(None, sets)?;
    Ok(set_no_new_privs(true)?)
}

fn keep_said(wanted: CapabilitySet) -> Result<(), String> {
    keep(wanted).map_err(|e| format!("capabilities are kept: {e}"))
}

/// Files below `read` may be read, below `write` also made and removed; nothing else is opened.
fn confine_files(read: &[&Path], write: &[&Path]) -> Result<(), String> {
    const KNOWN: ABI = ABI::V5;
    let (all, reading) = (AccessFs::from_all(KNOWN), AccessFs::ReadFile | AccessFs::ReadDir);
    let writing = reading
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeSock
        | AccessFs::RemoveFile;
    let confined = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(read, reading)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(write, writing)))
        .and_then(|rules| rules.restrict_self());
    match confined {
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
            Err("this kernel has no landlock: files are not confined".into())
        }
        Ok(_) => Ok(()),
        Err(e) => Err(format!("files are not confined: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::net::UdpSocket;
    use std::os::unix::net::UnixListener;
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::netlink::Socket;

    /// Runs in a thread of its own, which alone is confined.
    fn confined<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(work).join().expect("the test's own thread"))
    }

    fn is_denied<T>(result: io::Result<T>) -> bool {
        result.err().is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn the_control_thread_reads_its_settings_and_starts_no_program() {
        let place = std::env::temp_dir().join(format!("pr-{}", std::process::id()));
        let (settings, run) = (place.join("etc"), place.join("run"));
        for directory in [&settings, &run] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(settings.join("a.toml"), "a").unwrap();
        fs::write(place.join("secret"), "secret").unwrap();
        assert!(File::open(place.join("secret")).is_ok() && Command::new("true").status().is_ok());
        confined(|| {
            let missing = confine_control(&[&settings, Path::new("/proc")], &[&run], false);
            assert_eq!(missing, [""; 0]);
            // What an attacker would want.
            assert!(is_denied(Command::new("true").status()));
            assert!(is_denied(File::open(place.join("secret"))));
            assert!(is_denied(File::open("/etc/shadow")));
            assert!(is_denied(fs::write(settings.join("a.toml"), "b")));
            assert!(is_denied(fs::write("/proc/self/comm", "b")));
            assert!(is_denied(UdpSocket::bind("127.0.0.1:0")));
            // What serving and a reload need.
            assert_eq!(fs::read_to_string(settings.join("a.toml")).unwrap(), "a");
            assert!(fs::read_to_string("/proc/thread-self/status").is_ok());
            fs::write(run.join("eth0.lock"), "1").unwrap();
            drop(UnixListener::bind(run.join("eth0.sock")).unwrap());
            fs::remove_file(run.join("eth0.sock")).unwrap();
            Socket::open().unwrap();
            assert!(crate::sys::interface("lo", crate::sys::Query::Mtu).is_ok());
            let other =
                thread::spawn(|| (confine_data_path(false), File::open("/proc/self/status")));
            let (missing, opened) = other.join().unwrap();
            assert_eq!(missing, [""; 0]);
            assert!(is_denied(opened));
        });
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn the_data_path_has_no_files_and_no_sockets_but_its_own() {
        let own = crate::sys::event().unwrap();
        confined(|| {
            assert_eq!(confine_data_path(false), [""; 0]);
            assert!(is_denied(File::open("/proc/self/status")));
            assert!(Socket::open().is_err());
            assert!(thread::Builder::new().spawn(|| ()).is_err());
            assert!(is_denied(Command::new("true").status()));
            let sets = capabilities(None).unwrap();
            assert!((sets.permitted - DATA_PATH).is_empty());
            crate::sys::signal_event(&own);
            let patience = Some(simnel_core::Span::from_millis(1));
            assert_eq!(crate::sys::wait(&[std::os::fd::AsFd::as_fd(&own)], patience), 1);
            assert!(crate::sys::thread_cpu() > simnel_core::Span::ZERO);
        });
    }

    #[test]
    fn few_capabilities_are_left_at_start_and_no_program() {
        confined(|| {
            at_start(None, &[]).unwrap();
            let sets = capabilities(None).unwrap();
            let most = match sys::lock_limit().unwrap() {
                None => AT_START,
                Some(_) => AT_START | CapabilitySet::IPC_LOCK,
            };
            assert!((sets.permitted - most).is_empty() && sets.inheritable.is_empty());
            assert!(rustix::thread::no_new_privs().unwrap());
            assert!(is_denied(Command::new("true").status()));
            assert!(is_denied(UdpSocket::bind("127.0.0.1:0")));
            // Other calls than those of a daemon that sets up anew.
            Socket::open().unwrap();
            assert!(is_denied(std::os::unix::fs::chroot("/")));
        });
    }

    #[test]
    fn root_works_in_another_users_directory_as_that_user() {
        if !rustix::process::geteuid().is_root() {
            println!("NOT RUN: root_works_in_another_users_directory_as_that_user needs root");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let nobody = User::named("65534").unwrap();
        confined(|| {
            follow(nobody, place.path()).unwrap();
            assert!(rustix::process::geteuid().is_root());
            std::os::unix::fs::chown(place.path(), Some(65_534), None).unwrap();
            follow(nobody, place.path()).unwrap();
            assert_eq!(rustix::process::geteuid().as_raw(), 65_534);
            let sets = capabilities(None).unwrap();
            assert!((sets.permitted - AT_START).is_empty());
            assert!(sets.effective.contains(CapabilitySet::NET_ADMIN));
            fs::write(place.path().join("wan.trials"), "").unwrap();
            follow(nobody, place.path()).unwrap();
        });
    }

    #[test]
    fn the_guard_has_neither_files_nor_sockets_nor_threads() {
        let (guarded, line) = crate::guard::line().unwrap();
        confined(|| {
            assert_eq!(confine_guard(), [""; 0]);
            assert!(is_denied(File::open("/proc/self/status")));
            assert!(Socket::open().is_err());
            assert!(thread::Builder::new().spawn(|| ()).is_err());
            assert!(is_denied(Command::new("true").status()));
            assert!(is_denied(UdpSocket::bind("127.0.0.1:0")));
            sys::send(&line, b"?").unwrap();
        });
        assert!(guarded.asks());
    }
}

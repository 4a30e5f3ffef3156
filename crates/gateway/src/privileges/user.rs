//! A user of its own for what root starts.
//!
//! The processes of a family become that user while they are one, and with the capabilities that
//! they keep anyway. The directory of locks and sockets is handed over before, since they could
//! make no file in one of root's. It hands root's group down to what is made in it: by that, root
//! reaches the sockets without any capability.
//!
//! Without a word the user is the account that packages make ([`ACCOUNT`]), in the usual directory.
//! Whatever root runs there afterwards becomes that account as well, so nobody shuts another out.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{chownat, fchmod, fchown, AtFlags, Dir, Mode};
use rustix::process::{geteuid, Gid, Uid};
use rustix::thread::{
    capabilities, set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    CapabilitySet,
};

use crate::control_dir::{is_locked, open_directory_of, DEFAULT_CONTROL_DIR};
use crate::error::Error;
use crate::sys;

/// The account that packages make for what root starts.
pub const ACCOUNT: &str = "simnel";

/// An account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    uid: Uid,
    gid: Gid,
}

impl User {
    /// The account with this name, or number.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<User, Error> {
        let (uid, gid) = sys::account(name).ok_or_else(|| Error::NoUser(name.to_owned()))?;
        Ok(User { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) })
    }

    /// The user of what root starts in `directory` unless one is named: [`ACCOUNT`].
    ///
    /// None if there is no such account, or the capabilities for it are missing. None also in any
    /// other than the usual directory, and if processes of root's use that already.
    pub fn by_default(directory: &Path) -> Option<User> {
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN;
        let may = || capabilities(None).is_ok_and(|sets| sets.effective.contains(needed));
        let is_usual = directory == Path::new(DEFAULT_CONTROL_DIR);
        if !is_usual || !geteuid().is_root() || !may() || is_in_roots_use(directory) {
            return None;
        }
        User::named(ACCOUNT).ok()
    }

    /// True if `directory` is this user's.
    pub(crate) fn has(self, directory: &Path) -> bool {
        directory.metadata().is_ok_and(|about| about.uid() == self.uid.as_raw())
    }

    /// Hands the `directories` of locks and sockets over, and makes the calling thread this user's
    /// for good. Its capabilities stay, but none is effective any more. Nothing, if it is already.
    ///
    /// # Errors
    /// Root's processes use a directory, or it is not safe; the caller is not root.
    pub(crate) fn take_over(self, directories: &[&Path]) -> Result<(), Error> {
        if geteuid() == self.uid {
            return Ok(());
        }
        directories.iter().try_for_each(|directory| self.own(directory))?;
        self.enter().map_err(|e| Error::system("becoming another user", e))
    }

    fn enter(self) -> io::Result<()> {
        set_keep_capabilities(true)?;
        set_thread_groups(&[])?;
        set_thread_res_gid(self.gid, self.gid, self.gid)?;
        set_thread_res_uid(self.uid, self.uid, self.uid)?;
        Ok(set_keep_capabilities(false)?)
    }

    fn own(self, path: &Path) -> Result<(), Error> {
        let failed = |e: io::Error| Error::system(format!("handing {} over", path.display()), e);
        let directory = File::from(open_directory_of(path, self.uid.as_raw())?);
        // One of the user's is left as it is: links in it could lead to anything of root's.
        if directory.metadata().map_err(failed)?.uid() == self.uid.as_raw() {
            return Ok(());
        }
        let names = names(&directory).map_err(failed)?;
        if let Some(interface) = used_for(path, &names) {
            return Err(Error::RootsDirectory { path: path.to_owned(), interface });
        }
        let given = names.iter().try_for_each(|name| {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&directory, name, Some(self.uid), Some(self.gid), flags)
        });
        let given = given
            .and_then(|()| fchown(&directory, Some(self.uid), Some(Gid::ROOT)))
            .and_then(|()| fchmod(&directory, Mode::from_raw_mode(0o2755)));
        given.map_err(|e| failed(e.into()))
    }
}

/// True if `directory` is root's, and processes use it.
fn is_in_roots_use(directory: &Path) -> bool {
    let Ok(opened) = File::open(directory) else { return false };
    let is_roots = opened.metadata().is_ok_and(|about| about.uid() == 0);
    is_roots && names(&opened).is_ok_and(|names| used_for(directory, &names).is_some())
}

/// An interface for which processes use the directory at `path`, which has these `names`: it is
/// served, or on trial in the kernel.
fn used_for(path: &Path, names: &[CString]) -> Option<String> {
    let used = |name: &CString| {
        let name = name.to_str().ok()?;
        let served = name.strip_suffix(".lock").filter(|interface| is_locked(path, interface));
        served.or(name.strip_suffix(".trials")).map(String::from)
    };
    names.iter().find_map(used)
}

/// Names of all that is in `directory`.
fn names(directory: &File) -> io::Result<Vec<CString>> {
    let entries = Dir::read_from(directory)?.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_own = |name: &io::Result<CString>| {
        !name.as_ref().is_ok_and(|name| [&b"."[..], b".."].contains(&name.to_bytes()))
    };
    entries.filter(is_own).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::thread::{capabilities, CapabilitySet};

    use super::*;
    use crate::control_dir::Lock;

    const NOBODY: u32 = 65_534;

    #[test]
    fn accounts_go_by_name_or_number() {
        let root = User { uid: Uid::ROOT, gid: Gid::ROOT };
        assert_eq!(["root", "0"].map(|name| User::named(name).unwrap()), [root; 2]);
        for name in ["", "no such user", "-1", "4294967295", "1\0"] {
            let error = User::named(name).unwrap_err().to_string();
            assert!(error.contains("there is no user"), "{name}: {error}");
        }
        // Whoever has no account has a number, and a group of the same.
        let number = User::named("4294967").unwrap();
        assert_eq!((number.uid.as_raw(), number.gid.as_raw()), (4_294_967, 4_294_967));
    }

    #[test]
    fn a_thread_becomes_its_user_with_its_directory_and_capabilities() {
        if !geteuid().is_root() {
            println!(
                "NOT RUN: a_thread_becomes_its_user_with_its_directory_and_capabilities: root"
            );
            return;
        }
        let place = std::env::temp_dir().join(format!("us-{}", std::process::id()));
        let (run, precious) = (place.join("run"), place.join("precious"));
        let nobody = User::named("65534").unwrap();
        let taken = Lock::take(&run, "eth0").unwrap();
        fs::write(&precious, "").unwrap();
        symlink(&precious, run.join("link")).unwrap();
        let error = nobody.take_over(&[&run]).unwrap_err().to_string();
        assert!(error.contains("eth0") && error.contains("--control-dir"), "{error}");
        let owner = |path: &Path| fs::symlink_metadata(path).unwrap().uid();
        assert_eq!((owner(&run), geteuid().is_root()), (0, true));
        drop(taken);
        fs::write(run.join("eth1.trials"), "{}").unwrap();
        let error = nobody.take_over(&[&run]).unwrap_err().to_string();
        assert!(error.contains("`eth1`") && error.contains("on trial"), "{error}");
        fs::remove_file(run.join("eth1.trials")).unwrap();
        std::thread::scope(|scope| {
            let become_nobody = || {
                let before = capabilities(None).unwrap();
                nobody.take_over(&[&run, &place.join("other")]).unwrap();
                let after = capabilities(None).unwrap();
                assert_eq!(
                    (after.permitted, after.effective),
                    (before.permitted, CapabilitySet::empty())
                );
                let text = fs::read_to_string("/proc/thread-self/status").unwrap();
                for line in ["Uid:", "Gid:", "Groups:"] {
                    let ids = text.lines().find_map(|said| said.strip_prefix(line)).unwrap();
                    let expected = if line == "Groups:" { 0 } else { 4 };
                    assert_eq!(ids.split_whitespace().count(), expected, "{line}{ids}");
                    assert!(ids.split_whitespace().all(|id| id == "65534"), "{line}{ids}");
                }
                // Once more it is nothing.
                nobody.take_over(&[&run]).unwrap();
                drop(Lock::take(&run, "eth0").unwrap());
                drop(Lock::take(&run, "eth1").unwrap());
                assert!(User::named("root").unwrap().take_over(&[]).is_err());
            };
            scope.spawn(become_nobody).join().unwrap();
        });
        for name in ["run", "run/eth0.lock", "run/eth1.lock", "run/link", "other"] {
            assert_eq!(owner(&place.join(name)), NOBODY, "{name}");
        }
        assert_eq!(owner(&precious), 0);
        // Root's group, by which root has the sockets without a capability.
        let about = fs::metadata(&run).unwrap();
        assert_eq!((about.gid(), about.mode() & 0o7777), (0, 0o2755));
        assert!(nobody.has(&run) && !nobody.has(&place));
        fs::remove_dir_all(place).unwrap();
    }
}

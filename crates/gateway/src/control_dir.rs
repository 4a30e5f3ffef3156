//! The directory of locks and control sockets.
//!
//! A lock makes an interface one daemon's. It is the daemon's while that lives, and its
//! supervisor's in the pause before the next one.
//!
//! Whoever may write there could put a link in the lock's place, or a socket of their own in ours.
//! So the directory must belong to root or to us, and be writable for nobody else. Files in it are
//! opened from it, never through a link.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{openat, Mode, OFlags, CWD};

use crate::error::Error;
use crate::sys;

/// It, unless told otherwise.
pub const DEFAULT_CONTROL_DIR: &str = "/run/simnel";

/// Attempts at a lock: whoever asks if it is held has it for a moment.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(2);

/// A lock file that only one process has at a time; the kernel lets go of it when that dies.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of `interface` in `directory`, which is made if it is not there.
    pub(crate) fn take(directory: &Path, interface: &str) -> Result<Lock, Error> {
        let place = open_directory(directory)?;
        let path = lock_path(directory, interface);
        let mut file = open_file(&place, &format!("{interface}.lock"), &path)?;
        let locked = (0..ATTEMPTS).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(BETWEEN_ATTEMPTS);
            }
            sys::try_lock(file.as_fd())
        });
        if !locked {
            let mut owner = String::new();
            let known = file.read_to_string(&mut owner).is_ok() && !owner.trim().is_empty();
            let owner = format!("process {}", if known { owner.trim() } else { "?" });
            return Err(Error::AlreadyUp { interface: interface.to_owned(), owner });
        }
        Lock { file, path }.signed()
    }

    /// The lock with this process as its owner, also where it came from the one before.
    pub(crate) fn signed(mut self) -> Result<Lock, Error> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| writeln!(self.file, "{}", std::process::id()))
            .map_err(|e| Error::system(format!("writing {}", self.path.display()), e))?;
        Ok(self)
    }

    /// The same lock once more, which stays as long as one of both does.
    pub(crate) fn again(&self) -> Result<Lock, Error> {
        let file = self.file.try_clone();
        let failed = |e| Error::system(format!("keeping {}", self.path.display()), e);
        Ok(Lock { file: file.map_err(failed)?, path: self.path.clone() })
    }

    /// True for the lock of `interface` in `directory`.
    pub(crate) fn is_of(&self, directory: &Path, interface: &str) -> bool {
        self.path == lock_path(directory, interface)
    }
}

/// True if a process has the lock of `interface` in `directory`.
pub(crate) fn is_locked(directory: &Path, interface: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, lock_path(directory, interface), flags, Mode::empty());
    file.is_ok_and(|file| sys::is_locked(file.as_fd()))
}

fn lock_path(directory: &Path, interface: &str) -> PathBuf {
    directory.join(format!("{interface}.lock"))
}

/// Opens the file `name` in `place`, made if it is not there; `path` is for errors.
pub(crate) fn open_file(place: &OwnedFd, name: &str, path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match openat(place, name, flags | OFlags::CLOEXEC, mode) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => return Err(unsafe_place(path, "it is a link")),
        Err(e) => return Err(Error::system(format!("opening {}", path.display()), e.into())),
    };
    check_owner(&file, path, own())?;
    Ok(file)
}

/// Opens the directory, made if it is not there; an error if somebody else may write to it.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, Error> {
    open_directory_of(path, own())
}

/// The same of a directory that belongs to root or to the user with the number `own`.
pub(crate) fn open_directory_of(path: &Path, own: u32) -> Result<OwnedFd, Error> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
        .map_err(|e| Error::system(format!("creating {}", path.display()), e))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => File::from(directory),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(unsafe_place(path, "it is a link"));
        }
        Err(e) => return Err(Error::system(format!("opening {}", path.display()), e.into())),
    };
    check_owner(&directory, path, own)?;
    Ok(directory.into())
}

/// Our number.
fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An error unless `file` belongs to root or to `own`, and nobody else may write to it.
fn check_owner(file: &File, path: &Path, own: u32) -> Result<(), Error> {
    let failed = |e: io::Error| Error::system(format!("looking at {}", path.display()), e);
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() && !about.is_dir() {
        return Err(unsafe_place(path, "it is no regular file"));
    }
    if about.uid() != 0 && about.uid() != own {
        return Err(unsafe_place(path, &format!("it belongs to user {}", about.uid())));
    }
    if about.mode() & 0o022 != 0 {
        return Err(unsafe_place(path, &format!("others may write to it, {:o}", about.mode())));
    }
    Ok(())
}

fn unsafe_place(path: &Path, reason: &str) -> Error {
    Error::UnsafePlace { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{symlink, PermissionsExt};
    use std::path::PathBuf;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("cd-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }

        fn refusal(&self, directory: &str) -> String {
            let taken = Lock::take(&self.0.join(directory), "eth0");
            taken.err().expect("the lock was taken").to_string()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn one_at_a_time_has_the_lock_and_later_ones_are_told_who() {
        let scratch = Scratch::new("lock");
        let directory = scratch.0.join("made/for/it");
        let lock = Lock::take(&directory, "eth0").unwrap();
        let error = Lock::take(&directory, "eth0").err().unwrap().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        assert!(Lock::take(&directory, "eth1").is_ok());
        assert!(is_locked(&directory, "eth0") && !is_locked(&directory, "eth1"));
        assert!(lock.is_of(&directory, "eth0") && !lock.is_of(&directory, "eth1"));
        let again = lock.again().unwrap();
        drop(lock);
        assert!(Lock::take(&directory, "eth0").is_err() && again.is_of(&directory, "eth0"));
        drop(again);
        assert!(Lock::take(&directory, "eth0").is_ok());
        let mode = fs::metadata(directory.join("eth0.lock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o022, 0);
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused_with_its_name_and_the_fix() {
        let scratch = Scratch::new("open");
        for mode in [0o777, 0o775, 0o1777] {
            let directory = scratch.0.join("open");
            fs::create_dir_all(&directory).unwrap();
            fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
            let error = scratch.refusal("open");
            let named = error.contains(&*directory.to_string_lossy());
            assert!(named && error.contains("chmod go-w"), "{error}");
            assert!(!directory.join("eth0.lock").exists());
        }
    }

    #[test]
    fn links_are_not_followed() {
        let scratch = Scratch::new("link");
        let (target, directory) = (scratch.0.join("precious"), scratch.0.join("run"));
        fs::create_dir(&directory).unwrap();
        fs::write(&target, "precious").unwrap();
        symlink(&target, directory.join("eth0.lock")).unwrap();
        let error = scratch.refusal("run");
        assert!(error.contains("eth0.lock") && error.contains("it is a link"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        symlink(&directory, scratch.0.join("other")).unwrap();
        assert!(scratch.refusal("other").contains("it is a link"));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            println!("NOT RUN: what_belongs_to_somebody_else_is_refused needs root");
            return;
        }
        let scratch = Scratch::new("owner");
        let directory = scratch.0.join("run");
        drop(Lock::take(&directory, "eth0").unwrap());
        let lock = directory.join("eth0.lock");
        std::os::unix::fs::chown(&lock, Some(65_534), None).unwrap();
        assert!(scratch.refusal("run").contains("it belongs to user 65534"));
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        assert!(scratch.refusal("run").contains("eth0.lock"));
        fs::remove_dir(&lock).unwrap();
        std::os::unix::fs::chown(&directory, Some(65_534), None).unwrap();
        let error = scratch.refusal("run");
        assert!(error.contains("it belongs to user 65534") && error.contains("run"), "{error}");
    }
}

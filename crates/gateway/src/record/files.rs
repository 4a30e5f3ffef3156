//! The files of a recording: one pcap a direction, of bounded size, whole at any moment.
//!
//! Records are appended whole, so whoever is killed leaves a file that can be read. What a full
//! disk has cut off is taken back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::anonymous::Key;
use super::{ETHERNET, HEAD};
use crate::direction::Direction;
use crate::sys;

/// Bytes at the beginning of a file.
const HEADER: usize = 24;
/// More than any record's headers: what readers make room for.
const LONGEST: u32 = 512;
const SECOND: u64 = 1_000_000_000;

/// Bounds of the files' size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all of them together.
    pub size: u64,
    /// A full file becomes the earlier one, in place of that before it, and a new one begins.
    pub rotate: bool,
}

/// The files of both directions.
pub struct Files {
    open: Vec<(Direction, Pcap)>,
    key: Option<Key>,
    /// Distance of the calendar's clock from the monotonic one as the recording began: later steps
    /// of it are no steps of the recording.
    ahead: u64,
}

impl Files {
    /// Begins files for `directions`, named after `stem`; with other addresses if `anonymous`.
    ///
    /// # Errors
    /// A file is there already, or an earlier one where they rotate; or one cannot be made.
    pub fn create(
        stem: &Path,
        directions: &[Direction],
        bounds: Bounds,
        anonymous: bool,
    ) -> io::Result<Files> {
        let parts = directions.len() as u64 * if bounds.rotate { 2 } else { 1 };
        let limit = bounds.size / parts.max(1);
        let mut open: Vec<(Direction, Pcap)> = Vec::new();
        for direction in directions {
            let mut name = stem.as_os_str().to_owned();
            name.push(format!(".{direction}.pcap"));
            let path = PathBuf::from(name);
            let free = if bounds.rotate { check_earlier(&path) } else { Ok(()) };
            match free.and_then(|()| Pcap::create(path, limit, bounds.rotate)) {
                Ok(file) => open.push((*direction, file)),
                Err(error) => {
                    // Nothing was recorded.
                    open.iter().for_each(|(_, begun)| drop(fs::remove_file(&begun.path)));
                    return Err(error);
                }
            }
        }
        Ok(Files { open, key: anonymous.then(Key::new), ahead: sys::calendar_ahead() })
    }

    /// Appends what was recorded of `direction`; false once its file is full.
    ///
    /// # Errors
    /// It cannot be written. The file ends with the last record that could.
    pub fn append(&mut self, direction: Direction, mut raw: Vec<u8>) -> io::Result<bool> {
        let Some((_, file)) = self.open.iter_mut().find(|(way, _)| *way == direction) else {
            return Ok(false);
        };
        let mut at = 0;
        while let Some(length) = finish(&mut raw[at..], self.ahead, self.key.as_ref()) {
            at += length;
        }
        file.append(&raw[..at])
    }

    /// Names of the files that are written.
    pub fn paths(&self) -> impl Iterator<Item = (Direction, &Path)> {
        self.open.iter().map(|(direction, file)| (*direction, file.path.as_path()))
    }

    /// Packets of `direction` that were written, also those that have made room since.
    pub fn written(&self, direction: Direction) -> u64 {
        let file = self.open.iter().find(|(way, _)| *way == direction);
        file.map_or(0, |(_, file)| file.written)
    }
}

/// Bytes of the first record in `raw`, if it is all there.
fn length_of(raw: &[u8]) -> Option<usize> {
    let captured = raw.get(8..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    let length = HEAD.checked_add(captured as usize)?;
    (captured <= LONGEST && length <= raw.len()).then_some(length)
}

/// Makes the first record in `raw` what a file holds; says how long it is.
fn finish(raw: &mut [u8], ahead: u64, key: Option<&Key>) -> Option<usize> {
    let length = length_of(raw)?;
    let word = |at: usize| raw[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let time = (u64::from(word(0)) * SECOND + u64::from(word(4))).saturating_add(ahead);
    raw[..4].copy_from_slice(&((time / SECOND) as u32).to_le_bytes());
    raw[4..8].copy_from_slice(&((time % SECOND) as u32).to_le_bytes());
    let packet = &mut raw[HEAD..length];
    if let (Some(key), Some((ethernet, network))) = (key, packet.split_at_mut_checked(ETHERNET)) {
        // PPPoE and PPP stand before IP.
        let skipped = if ethernet.ends_with(&[0x88, 0x64]) { 8 } else { 0 };
        key.hide(network.get_mut(skipped..).unwrap_or_default());
    }
    Some(length)
}

/// Name of the file that `path` becomes once it is full.
fn earlier(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

/// An error if there is an earlier file, of another recording, that the first full one would
/// replace.
fn check_earlier(path: &Path) -> io::Result<()> {
    let earlier = earlier(path);
    match fs::symlink_metadata(&earlier) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", earlier.display()))),
        Ok(_) => {
            let reason = format!("{}: it is there, and would be replaced", earlier.display());
            Err(io::Error::new(ErrorKind::AlreadyExists, reason))
        }
    }
}

/// One file.
struct Pcap {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
    rotate: bool,
    written: u64,
}

impl Pcap {
    fn create(path: PathBuf, limit: u64, rotate: bool) -> io::Result<Pcap> {
        // Whom one talks to is nobody else's business.
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let mut file = file.map_err(named)?;
        // Nanoseconds, version 2.4, times of UTC, Ethernet.
        let words = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, LONGEST, 1u32];
        if let Err(error) = file.write_all(&words.map(u32::to_le_bytes).concat()) {
            let _ = fs::remove_file(&path);
            return Err(named(error));
        }
        Ok(Pcap { file, size: HEADER as u64, limit, rotate, path, written: 0 })
    }

    fn append(&mut self, mut records: &[u8]) -> io::Result<bool> {
        while !records.is_empty() {
            let room = self.limit.saturating_sub(self.size);
            let (mut fitting, mut count) = (0, 0);
            while let Some(length) = length_of(&records[fitting..]) {
                if (fitting + length) as u64 > room {
                    break;
                }
                fitting += length;
                count += 1;
            }
            self.write(&records[..fitting])?;
            self.written += count;
            records = &records[fitting..];
            if !records.is_empty() && !self.begin_another()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&mut self, records: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(records) {
            let _ = self.file.set_len(self.size);
            return Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display())));
        }
        self.size += records.len() as u64;
        Ok(())
    }

    /// The full file becomes the earlier one; false where it must not, or would at once again.
    fn begin_another(&mut self) -> io::Result<bool> {
        if !self.rotate || self.size == HEADER as u64 {
            return Ok(false);
        }
        fs::rename(&self.path, earlier(&self.path))?;
        let next = Pcap::create(self.path.clone(), self.limit, true)?;
        *self = Pcap { written: self.written, ..next };
        Ok(true)
    }
}

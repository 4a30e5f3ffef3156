//! The settings that a reload has brought, for the daemons to come.
//!
//! Two files in memory, made before the first daemon, take turns. While one is written the other
//! holds the settings, so these are whole whenever a daemon dies. The supervisor remembers which
//! one holds (`supervisor.rs`). It is not waited for: its socket has no room for a file of
//! settings.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use rustix::fs::{memfd_create, MemfdFlags};

use crate::config;

/// The two files; all daemons of a process have the same.
#[derive(Debug)]
pub(crate) struct Texts([io::Result<File>; 2]);

impl Texts {
    /// Both empty. A kernel without files in memory is told of once one is needed.
    pub(crate) fn new() -> Texts {
        let file = |_| Ok(File::from(memfd_create("simnel-settings", MemfdFlags::CLOEXEC)?));
        Texts([0, 1].map(file))
    }

    fn file(&self, place: usize) -> io::Result<&File> {
        match self.0.get(place) {
            Some(Ok(file)) => Ok(file),
            Some(Err(error)) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Puts `text` in place of the one at `place`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn write(&self, place: usize, text: &str) -> io::Result<()> {
        let mut file = self.file(place)?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    }

    /// The text at `place`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, place: usize) -> io::Result<String> {
        let file = self.file(place)?;
        let mut bytes = vec![0; file.metadata()?.len().min(config::MOST_BYTES) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_while_the_other_stays() {
        let texts = Texts::new();
        let long = "x".repeat(config::MOST_BYTES as usize);
        for text in [long.as_str(), "short", ""] {
            texts.write(0, text).unwrap();
            texts.write(1, "other").unwrap();
            assert!(texts.read(0).unwrap() == text, "{} bytes", text.len());
            assert_eq!(texts.read(1).unwrap(), "other");
        }
        assert!(texts.read(2).is_err());
    }
}

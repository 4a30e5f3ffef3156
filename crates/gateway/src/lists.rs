//! Lists of the kernel's that only root may open: NFQUEUEs with their counters, and tables of the
//! old iptables.
//!
//! They are opened at the start, before the processes become another user's, and read again and
//! again. One that is not there yet, since its part of the kernel is not, is looked for once more.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// In the network namespace of whoever opens them.
const QUEUES: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";
const OLD_TABLES: [&str; 2] =
    ["/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"];

/// Those that could be opened.
#[derive(Default)]
pub(crate) struct Lists {
    queues: Option<File>,
    old_tables: [Option<File>; 2],
}

impl Lists {
    /// Opens all that are there.
    pub(crate) fn open() -> Lists {
        let open = |path: &str| File::open(path).ok();
        Lists { queues: open(QUEUES), old_tables: OLD_TABLES.map(open) }
    }

    /// The queues, a line each.
    pub(crate) fn queues(&self) -> io::Result<String> {
        text(self.queues.as_ref(), QUEUES)
    }

    /// Names of the old iptables' tables, of either version of IP.
    pub(crate) fn old_tables(&self) -> [io::Result<String>; 2] {
        [0, 1].map(|version| text(self.old_tables[version].as_ref(), OLD_TABLES[version]))
    }
}

/// All that the list says now.
fn text(opened: Option<&File>, path: &str) -> io::Result<String> {
    let Some(file) = opened else { return std::fs::read_to_string(path) };
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match file.read_at(&mut buffer, bytes.len() as u64)? {
            0 => break,
            length => bytes.extend(&buffer[..length]),
        }
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_anew_from_what_was_opened_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (opened, path) = (File::open(file.path()).unwrap(), file.path().to_str().unwrap());
        let long = "0123456789abcdef\n".repeat(1_000);
        for said in ["", "filter\n", &long] {
            std::fs::write(file.path(), said).unwrap();
            assert_eq!(text(Some(&opened), "/nowhere").unwrap(), said);
            assert_eq!(text(None, path).unwrap(), said);
        }
        assert!(text(None, "/nowhere").is_err());
    }
}

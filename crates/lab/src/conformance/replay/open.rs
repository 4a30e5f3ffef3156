//! Traces opened, whatever kind of file they are.
//!
//! The kind is told by the first bytes, not by the name; whatever is compressed with gzip is
//! unpacked on the way. Memory is a buffer a file, whatever the file's length.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use simnel_core::wire::Classifier;

use super::capture::{pcap, pcapng};
use super::error::{Place, TraceError};
use super::records::{self, Records};
use super::rows::Rows;
use super::source::Source;
use crate::files;

/// A trace that was opened.
pub struct Trace {
    /// Its packets.
    pub packets: Box<dyn Source>,
    /// Bytes of the file; zero of standard input.
    pub size: u64,
    /// Bytes of the file read so far.
    pub read: Rc<Cell<u64>>,
}

/// Bytes read ahead of text.
const BUFFER: usize = 1 << 17;

/// Opens the trace at `path`, or on standard input if that is `-`; its packets are described with
/// `classifier`'s hashes.
pub fn open(path: &Path, classifier: Classifier) -> Result<Trace, TraceError> {
    let fail = |error| unreadable(path, &error);
    let (size, bytes): (u64, Box<dyn Read>) = if files::is_stdin(path) {
        (0, Box::new(io::stdin()))
    } else {
        let file = File::open(path).map_err(fail)?;
        (file.metadata().map_err(fail)?.len(), Box::new(file))
    };
    let read = Rc::new(Cell::new(0));
    let meter = Meter { bytes, read: Rc::clone(&read) };
    let packets = source(path, Box::new(meter), classifier)?;
    Ok(Trace { packets, size, read })
}

/// The packets of the file at `path`, whose bytes `reader` gives.
pub fn source(
    path: &Path,
    reader: Box<dyn Read>,
    classifier: Classifier,
) -> Result<Box<dyn Source>, TraceError> {
    let fail = |error| unreadable(path, &error);
    let (head, reader) = files::stream(reader).map_err(fail)?;
    Ok(match *head.as_slice() {
        [] => return Err(TraceError::new(path, Place::File, "the file is empty").help(KINDS)),
        _ if head == records::MAGIC => Box::new(Records::new(path, reader, classifier)?),
        [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0x34, 0xcd, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..]
        | [0xa1, 0xb2, 0xcd, 0x34, ..] => pcap(path, reader, classifier)?,
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => pcapng(path, reader, classifier),
        [b'0'..=b'9', ..] => {
            Box::new(Rows::new(path, BufReader::with_capacity(BUFFER, reader), classifier))
        }
        _ => {
            let (problem, help) = match packer(&head) {
                Some(name) => (format!("compressed with {name}, which is not read"), UNPACK),
                None => (STRANGE.into(), KINDS),
            };
            return Err(TraceError::new(path, Place::File, problem).help(help));
        }
    })
}

/// An error that ends the reading of a file before its first packet.
fn unreadable(path: &Path, error: &io::Error) -> TraceError {
    let error = TraceError::io(path, Place::File, error);
    TraceError { help: error.help.or(Some(KINDS)), ..error }
}

const STRANGE: &str = "neither arrivals as CSV, nor a capture, nor one of our binary traces";
const UNPACK: &str = "unpack it on the way: `zstdcat FILE | simnel replay -`, or xzcat, bzcat";
const KINDS: &str = "expected arrivals as CSV (`t_ns,enq+,id,len,…`), pcap, pcapng, or what \
                     `--to-binary` writes, each also compressed with gzip";

/// The program that packed a file which begins with `head`.
fn packer(head: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 7] = [
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
        (b"BZh", "bzip2"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
        (b"LZIP", "lzip"),
        (b"PK\x03\x04", "zip"),
        (&[0x1f, 0x9d], "compress"),
    ];
    KNOWN.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name)
}

/// Counts what is read, for progress.
struct Meter {
    bytes: Box<dyn Read>,
    read: Rc<Cell<u64>>,
}

impl Read for Meter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes.read(buffer)?;
        self.read.set(self.read.get() + bytes as u64);
        Ok(bytes)
    }
}

//! Where packets come from: one interface over all kinds of file, and how a file's kind is told.
//!
//! The kind is told by the first bytes, not by the name; whatever is compressed with gzip is
//! unpacked on the way. Memory is a buffer a file, whatever the file's length.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use simnel_core::wire::tcp::AckView;
use simnel_core::wire::{Classifier, FlowKeys};
use simnel_core::{Packet, Time};

use super::capture::{pcap, pcapng};
use super::error::{Place, TraceError};
use super::records::{self, Records};
use super::rows::Rows;
use crate::files;

/// Packets of a trace, one after the other.
pub trait Source {
    /// Goes to the next packet. Returns when it arrives, never earlier than the one before; None at
    /// the end. Whatever can be wrong with the packet is found here.
    fn advance(&mut self) -> Result<Option<Time>, TraceError>;

    /// The present packet; its handle is left at 0.
    fn describe(&self) -> Packet;

    /// What the present packet's flow is told by.
    fn keys(&self) -> FlowKeys;

    /// The present packet's TCP header, if it has one.
    fn ack_view(&self) -> Option<AckView>;

    /// At the end: until when the line runs. None if until nothing is queued.
    fn end(&self) -> Option<Time> {
        None
    }

    /// Packets whose time lay before that of the packet before them, and that were taken as
    /// arriving together with it.
    fn out_of_order(&self) -> u64 {
        0
    }
}

/// A trace that was opened.
pub struct Trace {
    /// Its packets.
    pub packets: Box<dyn Source>,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of the file read so far.
    pub read: Rc<Cell<u64>>,
}

/// Bytes read ahead of text.
const BUFFER: usize = 1 << 17;

/// Opens the trace at `path`; its packets are described with `classifier`'s hashes.
pub fn open(path: &Path, classifier: Classifier) -> Result<Trace, TraceError> {
    let fail = |error: io::Error| TraceError::io(path, Place::File, &error);
    let file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let read = Rc::new(Cell::new(0));
    let meter = Meter { file, read: Rc::clone(&read) };
    let packets = source(path, Box::new(meter), classifier)?;
    Ok(Trace { packets, size, read })
}

/// The packets of the file at `path`, whose bytes `reader` gives.
pub fn source(
    path: &Path,
    reader: Box<dyn Read>,
    classifier: Classifier,
) -> Result<Box<dyn Source>, TraceError> {
    let fail = |error: io::Error| TraceError::io(path, Place::File, &error);
    let (head, reader) = files::stream(reader).map_err(fail)?;
    Ok(match *head.as_slice() {
        [] => return Err(TraceError::new(path, Place::File, "the file is empty").help(KINDS)),
        _ if head == records::MAGIC => Box::new(Records::new(path, reader, classifier)?),
        [0xd4, 0xc3, 0xb2 | 0x3c, 0xa1 | 0xb2, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3 | 0x3c, 0xd4 | 0x4d, ..] => pcap(path, reader, classifier)?,
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => pcapng(path, reader, classifier),
        [b'0'..=b'9', ..] => {
            Box::new(Rows::new(path, BufReader::with_capacity(BUFFER, reader), classifier))
        }
        _ => {
            let problem = "neither arrivals as CSV, nor a capture, nor one of our binary traces";
            return Err(TraceError::new(path, Place::File, problem).help(KINDS));
        }
    })
}

const KINDS: &str = "expected arrivals as CSV (`t_ns,enq+,id,len,…`), pcap, pcapng, or what \
                     `--to-binary` writes, each also compressed with gzip";

/// Counts what is read, for progress.
struct Meter {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Meter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.set(self.read.get() + bytes as u64);
        Ok(bytes)
    }
}

//! Our binary traces: records of one size, everything that a discipline can ask for, hashed anew on
//! reading.
//!
//! All numbers are little-endian. The file begins with a header of [`SIZE`] bytes:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 2 | version: 1 |
//! | 10 | 2 | bytes of a record: 80 |
//! | 16 | 8 | number of records |
//! | 24 | 8 | number of packets |
//! | 32 | 8 | until when the line runs, ns; 0: until nothing is queued |
//!
//! and goes on with records of the same size:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 8 | arrival, ns, never before that of the record before |
//! | 8 | 4 | length in bytes, from the link header on |
//! | 12 | 4 | class (`major << 16 \| minor`), 0 if none |
//! | 16 | 1 | outermost network layer: 4, 6, 1 (ARP), 0 (other); 255: SACK blocks, see below |
//! | 17 | 1 | family of the addresses at 32: 4 or 6 |
//! | 18 | 1 | protocol of the flow; zero without IP |
//! | 19 | 1 | TOS or traffic class |
//! | 20 | 1 | bytes before the network header |
//! | 21 | 1 | bytes of all headers |
//! | 22 | 1 | bits: 1 TCP; 2 the fields from 64 on count; 4 has payload; 8 options are expendable |
//! | 23 | 1 | SACK blocks, 0 to 4 |
//! | 24 | 4 | ports as in the header; without IP the EtherType |
//! | 28 | 2 | TCP flags |
//! | 32 | 16+16 | source and destination of the flow; IPv4 in the first four bytes |
//! | 64 | 4+4+4 | acknowledgement, timestamp value, timestamp echo |
//!
//! Fields not named are zero. A packet with SACK blocks is followed by a record with 255 at 16. It
//! has the blocks' left and right edges from 32 on, four bytes each.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use simnel_core::flow::Addresses;
use simnel_core::packet::Flags;
use simnel_core::wire::tcp::{AckView, MAX_SACK_BLOCKS};
use simnel_core::wire::{Classifier, FlowKeys};
use simnel_core::{Packet, Time};

use super::error::{Failure, Place, TraceError};
use super::source::Source;
use super::window::Window;

/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"\x93SIMNEL\n";
/// Bytes of the header and of each record.
pub const SIZE: usize = 80;
const VERSION: u16 = 1;

const SACK_RECORD: u8 = 255;
const TCP: u8 = 1;
const VIEW: u8 = 2;
const PAYLOAD: u8 = 4;
const EXPENDABLE: u8 = 8;

/// A trace that is read.
pub(super) struct Records {
    path: PathBuf,
    window: Window,
    classifier: Classifier,
    /// Records that the header announces, and that were read.
    announced: u64,
    read: u64,
    packets: u64,
    end: u64,
    clock: u64,
    present: [u8; SIZE],
    sack: [(u32, u32); MAX_SACK_BLOCKS],
}

impl Records {
    pub(super) fn new(
        path: &Path,
        reader: Box<dyn Read>,
        classifier: Classifier,
    ) -> Result<Records, TraceError> {
        let mut window = Window::new(reader);
        let header = window.take(SIZE);
        let header = header.map_err(|error| TraceError::io(path, Place::File, &error))?;
        let Some(header) = window.bytes(header).first_chunk::<SIZE>().copied() else {
            return Err(TraceError::cut_off(path, Place::File));
        };
        if u16_at(&header, 8) != VERSION || usize::from(u16_at(&header, 10)) != SIZE {
            let problem = format!("a binary trace of version {}", u16_at(&header, 8));
            return Err(TraceError::new(path, Place::File, problem)
                .help("this program reads version 1; write it again from the capture"));
        }
        Ok(Records {
            path: path.to_owned(),
            window,
            classifier,
            announced: u64_at(&header, 16),
            read: 0,
            packets: 0,
            end: u64_at(&header, 32),
            clock: 0,
            present: [0; SIZE],
            sack: [(0, 0); MAX_SACK_BLOCKS],
        })
    }

    fn error(&self, problem: impl Into<String>) -> TraceError {
        TraceError::new(&self.path, Place::Packet(self.packets), problem)
    }

    /// The next record; None at the end that the header announced.
    #[inline]
    fn record(&mut self) -> Result<Option<[u8; SIZE]>, TraceError> {
        if self.read == self.announced {
            return Ok(None);
        }
        let place = Place::Packet(self.packets);
        let taken =
            self.window.take(SIZE).map_err(|error| TraceError::io(&self.path, place, &error))?;
        match self.window.bytes(taken).first_chunk() {
            Some(record) => {
                self.read += 1;
                Ok(Some(*record))
            }
            None => Err(TraceError::cut_off(&self.path, place)),
        }
    }

    #[cold]
    fn read_sack(&mut self, count: u8) -> Result<(), TraceError> {
        let record = self.record()?.filter(|record| record[16] == SACK_RECORD);
        let Some(record) = record.filter(|_| usize::from(count) <= MAX_SACK_BLOCKS) else {
            return Err(self.error("its SACK blocks are not there: damaged"));
        };
        for (block, at) in self.sack.iter_mut().zip((32..).step_by(8)) {
            *block = (u32_at(&record, at), u32_at(&record, at + 4));
        }
        Ok(())
    }
}

impl Source for Records {
    #[inline]
    fn advance(&mut self) -> Result<Option<Time>, TraceError> {
        let Some(record) = self.record()? else { return Ok(None) };
        let time = u64_at(&record, 0);
        if time < self.clock {
            return Err(self.error(format!("time goes back from {} to {time}", self.clock)));
        }
        if !matches!(record[16], 0 | 1 | 4 | 6) {
            return Err(self.error(format!("network layer {}: damaged", record[16])));
        }
        if !matches!(record[17], 4 | 6) {
            return Err(self.error(format!("addresses of family {}: damaged", record[17])));
        }
        self.clock = time;
        self.present = record;
        if record[23] > 0 {
            self.read_sack(record[23])?;
        }
        self.packets += 1;
        Ok(Some(Time(time)))
    }

    #[inline]
    fn describe(&self) -> Packet {
        let record = &self.present;
        let mut packet = Packet::new(0, u32_at(record, 8));
        packet.class = u32_at(record, 12);
        packet.flags = match record[16] {
            4 => Flags::IPV4,
            6 => Flags::IPV6,
            1 => Flags::ARP,
            _ => Flags::default(),
        };
        packet.tos = record[19];
        packet.network_offset = record[20];
        packet.header_len = record[21];
        if record[22] & TCP != 0 {
            packet.flags.set(Flags::TCP);
        }
        let hash = self.classifier.hash(&self.keys());
        packet.flow = hash.flow;
        packet.src_host = hash.src_host;
        packet.dst_host = hash.dst_host;
        packet
    }

    #[inline]
    fn keys(&self) -> FlowKeys {
        let record = &self.present;
        FlowKeys {
            addresses: match record[17] {
                4 => Addresses::V4(array_at(record, 32), array_at(record, 48)),
                _ => Addresses::V6(array_at(record, 32), array_at(record, 48)),
            },
            protocol: matches!(record[16], 4 | 6).then_some(record[18]),
            ports: array_at(record, 24),
        }
    }

    fn ack_view(&self) -> Option<AckView> {
        let record = &self.present;
        (record[22] & VIEW != 0).then(|| AckView {
            flags: u16_at(record, 28),
            has_payload: record[22] & PAYLOAD != 0,
            expendable_options: record[22] & EXPENDABLE != 0,
            ack: u32_at(record, 64),
            timestamp: (u32_at(record, 68), u32_at(record, 72)),
            sack_count: record[23],
            sack: if record[23] > 0 { self.sack } else { [(0, 0); MAX_SACK_BLOCKS] },
        })
    }

    fn end(&self) -> Option<Time> {
        (self.end > 0).then_some(Time(self.end))
    }
}

/// Writes all of `source` to `out`; returns the number of packets. `step` is called now and then.
pub(super) fn write(
    source: &mut dyn Source,
    out: &mut (impl Write + Seek),
    step: &mut dyn FnMut(),
) -> Result<u64, Failure> {
    out.write_all(&[0; SIZE])?;
    let (mut records, mut packets) = (0u64, 0u64);
    while let Some(time) = source.advance()? {
        let view = source.ack_view();
        out.write_all(&encode(time, &source.describe(), &source.keys(), view.as_ref()))?;
        records += 1;
        if let Some(view) = view.filter(|view| view.sack_count > 0) {
            let mut record = [0; SIZE];
            record[16] = SACK_RECORD;
            for ((left, right), at) in view.sack.iter().zip((32..).step_by(8)) {
                put(&mut record, at, &left.to_le_bytes());
                put(&mut record, at + 4, &right.to_le_bytes());
            }
            out.write_all(&record)?;
            records += 1;
        }
        packets += 1;
        if packets % super::STEP == 0 {
            step();
        }
    }
    let mut header = [0; SIZE];
    put(&mut header, 0, &MAGIC);
    put(&mut header, 8, &VERSION.to_le_bytes());
    put(&mut header, 10, &(SIZE as u16).to_le_bytes());
    put(&mut header, 16, &records.to_le_bytes());
    put(&mut header, 24, &packets.to_le_bytes());
    put(&mut header, 32, &source.end().map_or(0, |end| end.0).to_le_bytes());
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header)?;
    Ok(packets)
}

fn encode(time: Time, packet: &Packet, keys: &FlowKeys, view: Option<&AckView>) -> [u8; SIZE] {
    let mut record = [0; SIZE];
    put(&mut record, 0, &time.0.to_le_bytes());
    put(&mut record, 8, &packet.len.to_le_bytes());
    put(&mut record, 12, &packet.class.to_le_bytes());
    record[16] = match packet.flags {
        flags if flags.has(Flags::IPV4) => 4,
        flags if flags.has(Flags::IPV6) => 6,
        flags if flags.has(Flags::ARP) => 1,
        _ => 0,
    };
    record[17] = match keys.addresses {
        Addresses::V4(src, dst) => {
            put(&mut record, 32, &src);
            put(&mut record, 48, &dst);
            4
        }
        Addresses::V6(src, dst) => {
            put(&mut record, 32, &src);
            put(&mut record, 48, &dst);
            6
        }
    };
    record[18] = keys.protocol.unwrap_or(0);
    record[19] = packet.tos;
    record[20] = packet.network_offset;
    record[21] = packet.header_len;
    record[22] = if packet.flags.has(Flags::TCP) { TCP } else { 0 };
    put(&mut record, 24, &keys.ports);
    if let Some(view) = view {
        record[22] |= VIEW;
        record[22] |= if view.has_payload { PAYLOAD } else { 0 };
        record[22] |= if view.expendable_options { EXPENDABLE } else { 0 };
        record[23] = view.sack_count;
        put(&mut record, 28, &view.flags.to_le_bytes());
        put(&mut record, 64, &view.ack.to_le_bytes());
        put(&mut record, 68, &view.timestamp.0.to_le_bytes());
        put(&mut record, 72, &view.timestamp.1.to_le_bytes());
    }
    record
}

fn put(record: &mut [u8; SIZE], at: usize, bytes: &[u8]) {
    record[at..at + bytes.len()].copy_from_slice(bytes);
}

#[inline]
fn array_at<const N: usize>(record: &[u8; SIZE], at: usize) -> [u8; N] {
    record.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

#[inline]
fn u16_at(record: &[u8; SIZE], at: usize) -> u16 {
    u16::from_le_bytes(array_at(record, at))
}

#[inline]
fn u32_at(record: &[u8; SIZE], at: usize) -> u32 {
    u32::from_le_bytes(array_at(record, at))
}

#[inline]
fn u64_at(record: &[u8; SIZE], at: usize) -> u64 {
    u64::from_le_bytes(array_at(record, at))
}

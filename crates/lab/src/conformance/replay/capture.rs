//! Captures: pcap and pcapng, as packets.
//!
//! Read here and not by a library. Of the two in use, one takes all times for nanoseconds and
//! refuses what `tcpdump -s` writes, the other allocates for each packet. What is read is the
//! framing only (IETF draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng); headers are `wire`'s
//! job. Both byte orders are read. So are pcap in µs, in ns and with Kuznetzov's longer records;
//! and pcapng with `if_tsresol` and `if_tsoffset`, any number of sections and interfaces.
//!
//! Captures of several queues are not always in order. A packet that lies before the one before it
//! is taken as arriving together with that, and counted.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use simnel_core::wire::tcp::{self, AckView};
use simnel_core::wire::{flow_keys, Classifier, FlowKeys, LinkLayer};
use simnel_core::{Packet, Time};

use super::error::{Place, TraceError};
use super::link_type::{LinkType, ETHERNET};
use super::source::Source;
use super::window::Window;

/// Longest packet or block: what libpcap takes for one. Longer is damage.
const LONGEST: u32 = 1 << 24;
/// Interfaces of a section at most: far more than a machine has.
const INTERFACES: usize = 1 << 16;
const NANOS: u64 = 1_000_000_000;
/// Longest time between two packets: a month. A later one has a wrong clock.
const LONGEST_GAP: u64 = 30 * 24 * 3600 * NANOS;
/// Captured bytes that are surely enough for addresses and ports.
const ENOUGH: usize = 128;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Common part of both kinds.
struct Reader {
    path: PathBuf,
    window: Window,
    classifier: Classifier,
    big_endian: bool,
    packets: u64,
    clock: Time,
    out_of_order: u64,
    cut_short: u64,
    link: LinkLayer,
    wire_len: u32,
    /// Place of the present packet in the window.
    present: Range<usize>,
    /// The present packet, where its link header had to be rewritten.
    rewritten: Vec<u8>,
}

impl Reader {
    fn new(path: &Path, reader: Box<dyn Read>, classifier: Classifier) -> Reader {
        Reader {
            path: path.to_owned(),
            window: Window::new(reader),
            classifier,
            big_endian: false,
            packets: 0,
            clock: Time::ZERO,
            out_of_order: 0,
            cut_short: 0,
            link: LinkLayer::Ethernet,
            wire_len: 0,
            present: 0..0,
            rewritten: Vec::new(),
        }
    }

    fn error(&self, problem: impl Into<String>) -> TraceError {
        TraceError::new(&self.path, Place::Packet(self.packets), problem)
    }

    /// Exactly `len` bytes; None at the end of the file if nothing of them is there.
    #[inline]
    fn take(&mut self, len: usize) -> Result<Option<Range<usize>>, TraceError> {
        let place = Place::Packet(self.packets);
        let taken =
            self.window.take(len).map_err(|error| TraceError::io(&self.path, place, &error))?;
        match taken.len() {
            n if n == len => Ok(Some(taken)),
            0 => Ok(None),
            _ => Err(TraceError::cut_off(&self.path, place)),
        }
    }

    /// As [`take`](Self::take), where the file must not end.
    #[inline]
    fn rest(&mut self, len: usize) -> Result<Range<usize>, TraceError> {
        match self.take(len)? {
            Some(taken) => Ok(taken),
            None if len == 0 => Ok(0..0),
            None => Err(TraceError::cut_off(&self.path, Place::Packet(self.packets))),
        }
    }

    #[inline]
    fn u32(&self, bytes: &[u8]) -> u32 {
        let word = bytes.first_chunk().copied().unwrap_or_default();
        if self.big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        }
    }

    #[inline]
    fn u16(&self, bytes: &[u8]) -> u16 {
        let word = bytes.first_chunk().copied().unwrap_or_default();
        if self.big_endian {
            u16::from_be_bytes(word)
        } else {
            u16::from_le_bytes(word)
        }
    }

    /// The present packet is that at `captured`, which had `wire_len` bytes.
    #[inline]
    fn place(
        &mut self,
        time: u64,
        link: LinkType,
        captured: Range<usize>,
        wire_len: u32,
    ) -> Result<Time, TraceError> {
        if wire_len > LONGEST {
            return Err(self.error(format!("it had {wire_len} bytes on the wire: damaged")));
        }
        if self.packets > 0 && time.saturating_sub(self.clock.0) > LONGEST_GAP {
            let days = (time - self.clock.0) / (24 * 3600 * NANOS);
            let problem = format!("it came {days} days after the one before: a wrong time");
            return Err(self.error(problem).help("leave it out: `editcap IN OUT NUMBER`, from 1"));
        }
        let cut = link.locate(self.window.bytes(captured.clone()), &mut self.rewritten);
        self.link = cut.link;
        // Some tools write a length of zero for what they made up.
        self.wire_len = wire_len.max(captured.len() as u32).saturating_sub(cut.removed);
        self.present = captured.start + cut.start..captured.end;
        self.packets += 1;
        if time < self.clock.0 {
            self.out_of_order += 1;
        }
        self.clock = self.clock.max(Time(time));
        if captured.len() < (wire_len as usize).min(ENOUGH) && self.lacks_ports() {
            self.cut_short += 1;
        }
        Ok(self.clock)
    }

    /// True if the present packet is IP, or may be, and what is captured of it does not tell its
    /// flow.
    fn lacks_ports(&self) -> bool {
        const IP: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xdd]];
        const WITH_PORTS: [u8; 4] = [6, 17, 33, 132];
        let keys = flow_keys(self.link, self.bytes());
        match keys.protocol {
            Some(protocol) => WITH_PORTS.contains(&protocol) && keys.ports == [0; 4],
            None if self.link == LinkLayer::Ethernet && self.bytes().len() >= ETHERNET => {
                IP.contains(&[keys.ports[0], keys.ports[1]])
            }
            None => true,
        }
    }

    #[inline]
    fn describe(&self) -> Packet {
        self.classifier.classify(self.link, self.bytes(), self.wire_len, 0)
    }

    /// The present packet, from the header that `link` says.
    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.rewritten.is_empty() {
            self.window.bytes(self.present.clone())
        } else {
            &self.rewritten
        }
    }
}

/// Form in which a file holds its packets.
trait Format {
    /// Goes to the next packet: places it in the reader.
    fn advance(&mut self, reader: &mut Reader) -> Result<Option<Time>, TraceError>;
}

/// A capture in one of the formats.
struct Capture<F> {
    reader: Reader,
    format: F,
}

impl<F: Format> Source for Capture<F> {
    #[inline]
    fn advance(&mut self) -> Result<Option<Time>, TraceError> {
        let time = self.format.advance(&mut self.reader)?;
        if time.is_none() && self.reader.packets == 0 {
            let problem = "the capture holds no packets";
            return Err(TraceError::new(&self.reader.path, Place::File, problem));
        }
        Ok(time)
    }

    fn describe(&self) -> Packet {
        self.reader.describe()
    }

    fn keys(&self) -> FlowKeys {
        flow_keys(self.reader.link, self.reader.bytes())
    }

    fn ack_view(&self) -> Option<AckView> {
        tcp::ack_view(self.reader.link, self.reader.bytes())
    }

    fn out_of_order(&self) -> u64 {
        self.reader.out_of_order
    }

    fn cut_short(&self) -> u64 {
        self.reader.cut_short
    }
}

/// Reads a file in the older format.
pub(super) fn pcap(
    path: &Path,
    reader: Box<dyn Read>,
    classifier: Classifier,
) -> Result<Box<dyn Source>, TraceError> {
    let mut reader = Reader::new(path, reader, classifier);
    let format = Pcap::begin(&mut reader)?;
    Ok(Box::new(Capture { reader, format }))
}

/// Reads a file in the newer format.
pub(super) fn pcapng(
    path: &Path,
    reader: Box<dyn Read>,
    classifier: Classifier,
) -> Box<dyn Source> {
    let reader = Reader::new(path, reader, classifier);
    Box::new(Capture { reader, format: Pcapng::default() })
}

/// The older format.
struct Pcap {
    link: LinkType,
    /// Nanoseconds of the fraction's unit.
    unit: u64,
    /// Bytes before each packet: Kuznetzov's have interface, protocol and type behind the lengths.
    header: usize,
}

impl Pcap {
    /// Reads the file's header.
    fn begin(reader: &mut Reader) -> Result<Pcap, TraceError> {
        let header = reader.window.take(24);
        let path = &reader.path;
        let header = header.map_err(|error| TraceError::io(path, Place::File, &error))?;
        if header.len() < 24 {
            return Err(TraceError::cut_off(path, Place::File));
        }
        let header: [u8; 24] =
            reader.window.bytes(header).first_chunk().copied().unwrap_or([0; 24]);
        let (big_endian, unit, before) = match header[..4] {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000, 16),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1, 16),
            [0x34, 0xcd, 0xb2, 0xa1] => (false, 1000, 24),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000, 16),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1, 16),
            [0xa1, 0xb2, 0xcd, 0x34] => (true, 1000, 24),
            _ => return Err(TraceError::new(path, Place::File, "not a pcap file after all")),
        };
        reader.big_endian = big_endian;
        let version = (reader.u16(&header[4..]), reader.u16(&header[6..]));
        if version.0 != 2 {
            return Err(unknown_version(&reader.path, version));
        }
        // The upper bits tell of a frame check sequence.
        let number = reader.u32(&header[20..]) & 0x03ff_ffff;
        let path = &reader.path;
        let link = LinkType::new(number)
            .map_err(|problem| TraceError::new(path, Place::File, problem).help(LinkType::HELP))?;
        Ok(Pcap { link, unit, header: before })
    }
}

impl Format for Pcap {
    fn advance(&mut self, reader: &mut Reader) -> Result<Option<Time>, TraceError> {
        let Some(header) = reader.take(self.header)? else { return Ok(None) };
        let header = reader.window.bytes(header);
        let (seconds, fraction) = (reader.u32(header), reader.u32(&header[4..]));
        let (captured, wire_len) = (reader.u32(&header[8..]), reader.u32(&header[12..]));
        if captured > LONGEST {
            return Err(reader.error(format!("{captured} bytes of one packet: damaged")));
        }
        let nanos = u64::from(fraction) * self.unit;
        if nanos >= NANOS {
            return Err(reader.error("its time has more than a second of fraction: damaged"));
        }
        let captured = reader.rest(captured as usize)?;
        let time = u64::from(seconds) * NANOS + nanos;
        reader.place(time, self.link, captured, wire_len).map(Some)
    }
}

fn unknown_version(path: &Path, (major, minor): (u16, u16)) -> TraceError {
    let problem = format!("version {major}.{minor} of the format is not understood");
    TraceError::new(path, Place::File, problem).help("pcap 2.x and pcapng 1.x are")
}

/// One interface of a section.
#[derive(Clone, Copy)]
struct Interface {
    link: Result<LinkType, u32>,
    /// Ticks of its clock in a second.
    per_second: u64,
    /// Seconds to be added to its times.
    offset: i64,
}

/// The newer format.
#[derive(Default)]
struct Pcapng {
    interfaces: Vec<Interface>,
}

impl Pcapng {
    /// The next block: its kind and where its body lies. None at the end.
    #[inline]
    fn block(reader: &mut Reader) -> Result<Option<(u32, Range<usize>)>, TraceError> {
        let Some(start) = reader.take(8)? else { return Ok(None) };
        let bytes = reader.window.bytes(start);
        let (mut kind, length) = (reader.u32(bytes), [bytes[4], bytes[5], bytes[6], bytes[7]]);
        if bytes[..4] == SECTION_HEADER.to_be_bytes() {
            kind = SECTION_HEADER;
            // The byte order is that of the magic number behind the length.
            let place = Place::Packet(reader.packets);
            let magic = reader.window.peek(4);
            let magic = magic.map_err(|error| TraceError::io(&reader.path, place, &error))?;
            reader.big_endian = match reader.window.bytes(magic) {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                short if short.len() < 4 => {
                    return Err(TraceError::cut_off(&reader.path, place));
                }
                _ => return Err(reader.error("the section before it has no byte order: damaged")),
            };
        }
        let length = reader.u32(&length);
        if !(12..=LONGEST).contains(&length) || !length.is_multiple_of(4) {
            return Err(reader.error(format!("a block of {length} bytes: damaged")));
        }
        let body = reader.rest(length as usize - 8)?;
        let body = body.start..body.end - 4;
        let repeated = reader.window.bytes(body.end..body.end + 4);
        if reader.u32(repeated) != length {
            return Err(reader.error("a block does not end as long as it began: damaged"));
        }
        Ok(Some((kind, body)))
    }

    /// Link type, and the two options that make times of ticks.
    fn interface(&mut self, reader: &Reader, body: Range<usize>) -> Result<(), TraceError> {
        let bytes = reader.window.bytes(body);
        if bytes.len() < 8 || self.interfaces.len() >= INTERFACES {
            return Err(reader.error("an interface is described that cannot be: damaged"));
        }
        let number = u32::from(reader.u16(bytes));
        let mut interface = Interface {
            link: LinkType::new(number).map_err(|_| number),
            per_second: 1_000_000,
            offset: 0,
        };
        let mut options = &bytes[8..];
        while options.len() >= 4 {
            let (code, length) = (reader.u16(options), usize::from(reader.u16(&options[2..])));
            let Some(value) = options.get(4..4 + length) else { break };
            match (code, value) {
                (0, _) => break,
                (9, [power]) => {
                    let base: u64 = if power & 0x80 == 0 { 10 } else { 2 };
                    let ticks = base.checked_pow(u32::from(power & 0x7f));
                    interface.per_second = ticks
                        .ok_or_else(|| reader.error("its interface's clock is too fine for us"))?;
                }
                (14, value) => {
                    let (first, second) =
                        (reader.u32(value), reader.u32(&value[value.len().min(4)..]));
                    let (high, low) =
                        if reader.big_endian { (first, second) } else { (second, first) };
                    interface.offset = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// A block that holds a packet.
    #[inline]
    fn packet(
        &self,
        reader: &mut Reader,
        kind: u32,
        body: Range<usize>,
    ) -> Result<Time, TraceError> {
        const FIXED: usize = 20;
        let bytes = reader.window.bytes(body.clone());
        if bytes.len() < FIXED {
            return Err(reader.error("its block is too short: damaged"));
        }
        let number = match kind {
            OBSOLETE_PACKET => u32::from(reader.u16(bytes)),
            _ => reader.u32(bytes),
        };
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Err(reader.error(format!("interface {number} was never described")));
        };
        let link = interface.link.map_err(|number| {
            let problem = LinkType::new(number).err().unwrap_or_default();
            reader.error(problem).help(LinkType::HELP)
        })?;
        let ticks = u64::from(reader.u32(&bytes[4..])) << 32 | u64::from(reader.u32(&bytes[8..]));
        let (captured, wire_len) = (reader.u32(&bytes[12..]), reader.u32(&bytes[16..]));
        let start = body.start + FIXED;
        let end = start.saturating_add(captured as usize);
        if end > body.end {
            return Err(reader.error("it is longer than its block: damaged"));
        }
        let Some(time) = nanos(ticks, interface.per_second, interface.offset) else {
            return Err(reader.error("its time is out of range"));
        };
        reader.place(time, link, start..end, wire_len)
    }
}

/// Nanoseconds since 1970.
#[inline]
fn nanos(ticks: u64, per_second: u64, offset: i64) -> Option<u64> {
    let nanos = match per_second {
        NANOS => ticks,
        1_000_000 => ticks.checked_mul(1000)?,
        per_second => {
            u64::try_from(u128::from(ticks) * u128::from(NANOS) / u128::from(per_second)).ok()?
        }
    };
    match offset {
        0 => Some(nanos),
        offset => nanos.checked_add_signed(offset.checked_mul(NANOS as i64)?),
    }
}

impl Format for Pcapng {
    fn advance(&mut self, reader: &mut Reader) -> Result<Option<Time>, TraceError> {
        while let Some((kind, body)) = Pcapng::block(reader)? {
            match kind {
                ENHANCED_PACKET | OBSOLETE_PACKET => {
                    return self.packet(reader, kind, body).map(Some);
                }
                INTERFACE_DESCRIPTION => self.interface(reader, body)?,
                SECTION_HEADER => {
                    let bytes = reader.window.bytes(body);
                    let version = match bytes.get(4..8) {
                        Some(version) => (reader.u16(version), reader.u16(&version[2..])),
                        None => return Err(reader.error("the section before it is too short")),
                    };
                    if version.0 != 1 {
                        return Err(unknown_version(&reader.path, version));
                    }
                    self.interfaces.clear();
                }
                SIMPLE_PACKET => {
                    return Err(reader.error("it is a simple packet block, without a time"));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

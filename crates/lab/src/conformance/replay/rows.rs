//! Arrivals as text: the `.csv` of the recordings (`conformance/golden/README.md`).

use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use simnel_core::flow::Addresses;
use simnel_core::wire::tcp::AckView;
use simnel_core::wire::{Classifier, FlowKeys};
use simnel_core::{Packet, Time};

use super::error::{Place, TraceError};
use super::source::Source;
use crate::conformance::golden::{parse_line, Arrival};

/// Longest line that is looked at: several times the longest that the format has.
const LINE: u64 = 4096;

/// The trace.
pub(super) struct Rows {
    path: PathBuf,
    reader: BufReader<Box<dyn Read>>,
    classifier: Classifier,
    line: Vec<u8>,
    lines: u64,
    packets: u64,
    clock: Time,
    /// The last line lets time pass.
    end: Option<Time>,
    keys: FlowKeys,
    present: Option<Arrival>,
}

impl Rows {
    pub(super) fn new(
        path: &Path,
        reader: BufReader<Box<dyn Read>>,
        classifier: Classifier,
    ) -> Rows {
        Rows {
            path: path.to_owned(),
            reader,
            classifier,
            line: Vec::new(),
            lines: 0,
            packets: 0,
            clock: Time::ZERO,
            end: None,
            keys: FlowKeys {
                addresses: Addresses::V4([0; 4], [0; 4]),
                protocol: None,
                ports: [0; 4],
            },
            present: None,
        }
    }

    fn read(&mut self) -> Result<Option<Time>, String> {
        let text = std::str::from_utf8(&self.line).map_err(|_| "not text")?;
        let text = text.trim_end_matches(['\n', '\r']);
        let Some((arrival, tuple)) = parse_line(text, &mut self.clock, self.packets)? else {
            self.end = Some(self.clock);
            return Ok(None);
        };
        self.keys = keys(tuple, if arrival.tcp.is_some() { 6 } else { 17 })?;
        self.present = Some(arrival);
        self.packets += 1;
        self.end = None;
        Ok(Some(arrival.time))
    }

    fn ipv6(&self) -> bool {
        matches!(self.keys.addresses, Addresses::V6(..))
    }
}

impl Source for Rows {
    fn advance(&mut self) -> Result<Option<Time>, TraceError> {
        loop {
            self.line.clear();
            self.lines += 1;
            let place = Place::Line(self.lines);
            let read = self.reader.by_ref().take(LINE).read_until(b'\n', &mut self.line);
            let bytes = read.map_err(|error| TraceError::io(&self.path, place, &error))?;
            if bytes == 0 {
                return Ok(None);
            }
            if bytes as u64 == LINE {
                return Err(TraceError::new(&self.path, place, "this is no line of arrivals"));
            }
            match self.read() {
                Ok(Some(time)) => return Ok(Some(time)),
                Ok(None) => {}
                Err(problem) => return Err(TraceError::new(&self.path, place, problem)),
            }
        }
    }

    fn describe(&self) -> Packet {
        let Some(arrival) = &self.present else { return Packet::new(0, 0) };
        let hash = self.classifier.hash(&self.keys);
        let mut packet = arrival.describe(self.ipv6());
        packet.flow = hash.flow;
        packet.src_host = hash.src_host;
        packet.dst_host = hash.dst_host;
        packet
    }

    fn keys(&self) -> FlowKeys {
        self.keys
    }

    fn ack_view(&self) -> Option<AckView> {
        self.present.as_ref()?.ack_view(self.ipv6())
    }

    fn end(&self) -> Option<Time> {
        self.end
    }
}

/// The keys of a tuple as written.
pub(super) fn keys(tuple: &str, protocol: u8) -> Result<FlowKeys, String> {
    let mut columns = tuple.split(',');
    let mut column = || columns.next().unwrap_or_default();
    let address =
        |text: &str| text.parse::<IpAddr>().map_err(|_| format!("`{text}` is not an IP address"));
    let (src, dst) = (address(column())?, address(column())?);
    let port = |text: &str| text.parse::<u16>().map_err(|_| format!("`{text}` is not a port"));
    let ([a, b], [c, d]) = (port(column())?.to_be_bytes(), port(column())?.to_be_bytes());
    Ok(FlowKeys {
        addresses: match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Addresses::V4(src.octets(), dst.octets()),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Addresses::V6(src.octets(), dst.octets()),
            _ => return Err(format!("{src} and {dst} are not of one family")),
        },
        protocol: Some(protocol),
        ports: [a, b, c, d],
    })
}

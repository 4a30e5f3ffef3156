//! Captures of runs in pcapng, which Wireshark opens: one interface a direction, times in ns.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::DataLink;
use simnel_core::Time;
use simnel_sim::capture::Capture;
use simnel_sim::Direction;

/// Bytes of each frame that are kept: all headers; payload is zeros anyway.
const SNAP_LENGTH: usize = 128;
/// The option's code for nanoseconds: 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// A capture file that is being written.
pub struct Pcapng {
    writer: PcapNgWriter<BufWriter<File>>,
    /// The disk was full, or the like: nothing more is written.
    failed: bool,
}

impl Pcapng {
    /// Creates the file with its two interfaces, `up` and `down`.
    pub fn create(path: &Path) -> io::Result<Pcapng> {
        let file = BufWriter::new(File::create(path)?);
        let mut writer = PcapNgWriter::new(file).map_err(io::Error::other)?;
        for direction in Direction::BOTH {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(direction.name())),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(io::Error::other)?;
        }
        Ok(Pcapng { writer, failed: false })
    }
}

impl Capture for Pcapng {
    fn frame(&mut self, direction: Direction, now: Time, frame: &[u8]) {
        if self.failed {
            return;
        }
        let block = EnhancedPacketBlock {
            interface_id: direction as u32,
            timestamp: Duration::from_nanos(now.0),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(&frame[..frame.len().min(SNAP_LENGTH)]),
            options: Vec::new(),
        };
        self.failed = self.writer.write_pcapng_block(block).is_err();
    }
}

//! Captures of runs in pcapng, which Wireshark opens: one interface a direction, times in ns.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::{DataLink, PcapError};
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
    fate: Fate,
}

/// The outcome of a capture, known once its [`Pcapng`] is gone.
#[derive(Clone, Debug, Default)]
pub struct Fate(Arc<Mutex<Option<io::Error>>>);

impl Fate {
    /// The first error, if there was one: nothing was written after it.
    pub fn told(self) -> io::Result<()> {
        self.first().take().map_or(Ok(()), Err)
    }

    fn first(&self) -> std::sync::MutexGuard<'_, Option<io::Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of writing, without the form of a block around it.
fn cause(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

impl Pcapng {
    /// Begins `file` with its two interfaces, `up` and `down`.
    pub fn begin(file: File) -> io::Result<(Pcapng, Fate)> {
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(cause)?;
        for direction in Direction::BOTH {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(direction.name())),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(cause)?;
        }
        let fate = Fate::default();
        Ok((Pcapng { writer, fate: fate.clone() }, fate))
    }
}

impl Drop for Pcapng {
    fn drop(&mut self) {
        let mut first = self.fate.first();
        if first.is_none() {
            *first = self.writer.get_mut().flush().err();
        }
    }
}

impl Capture for Pcapng {
    fn frame(&mut self, direction: Direction, now: Time, frame: &[u8]) {
        let mut first = self.fate.first();
        if first.is_some() {
            return;
        }
        let block = EnhancedPacketBlock {
            interface_id: direction as u32,
            timestamp: Duration::from_nanos(now.0),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(&frame[..frame.len().min(SNAP_LENGTH)]),
            options: Vec::new(),
        };
        *first = self.writer.write_pcapng_block(block).err().map(cause);
    }
}

//! What an ACK filter must know of a TCP header.

/// Most SACK blocks that fit a TCP header (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The parts of a TCP segment that decide whether it is a redundant acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckView {
    /// Reserved bits (bits 8..=11) and flags (bits 0..=7: FIN SYN RST PSH ACK URG ECE CWR).
    pub flags: u16,
    /// True if the segment carries data.
    pub has_payload: bool,
    /// True if every option is NOP, EOL, MD5, a well-formed SACK or a well-formed timestamp:
    /// nothing would be lost with them. False keeps the segment from being filtered.
    pub expendable_options: bool,
    /// Cumulative acknowledgement.
    pub ack: u32,
    /// Timestamp value and echo; (0, 0) if there is no timestamp option.
    pub timestamp: (u32, u32),
    /// Number of SACK blocks.
    pub sack_count: u8,
    /// SACK blocks: left edge, right edge.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
}

impl AckView {
    /// FIN.
    pub const FIN: u16 = 0x01;
    /// SYN.
    pub const SYN: u16 = 0x02;
    /// RST.
    pub const RST: u16 = 0x04;
    /// PSH.
    pub const PSH: u16 = 0x08;
    /// ACK.
    pub const ACK: u16 = 0x10;
    /// URG.
    pub const URG: u16 = 0x20;
    /// ECE.
    pub const ECE: u16 = 0x40;
    /// CWR.
    pub const CWR: u16 = 0x80;
}

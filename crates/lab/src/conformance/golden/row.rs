//! One line of a recording's `.csv`: an arrival.
//!
//! The format is that of `conformance/golden/README.md`: one event a line, trailing empty columns
//! left off. Lines are read without allocating, for traces of any length (`replay`).

use simnel_core::wire::tcp::MAX_SACK_BLOCKS;
use simnel_core::Time;

/// Columns of a line at most.
const COLUMNS: usize = 18;

/// A packet's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub time: Time,
    /// Bytes on the wire without frame check sequence.
    pub len: u32,
    /// Index of the five-tuple in the recording's flows.
    pub flow: usize,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Priority as a `tc` class id, 0 if none.
    pub class: u32,
    /// The TCP header; None for UDP.
    pub tcp: Option<Tcp>,
}

/// One line of a `.csv` file: packet number `id` and its tuple as written (its index is left at 0).
/// None for a line that only lets time pass until the new value of `clock`, which never goes back.
pub fn parse_line<'a>(
    line: &'a str,
    clock: &mut Time,
    id: u64,
) -> Result<Option<(Arrival, &'a str)>, String> {
    let mut columns = [""; COLUMNS];
    for (column, text) in columns.iter_mut().zip(line.split(',')) {
        *column = text;
    }
    let time = Time(number(columns[0], "time")?);
    if time < *clock {
        return Err(format!("time goes back from {} to {}", clock.0, time.0));
    }
    *clock = time;
    match columns[1] {
        "run" => return Ok(None),
        "enq+" => {}
        other => return Err(format!("unknown operation `{other}`")),
    }
    let written: u64 = number(columns[2], "id")?;
    if written != id {
        return Err(format!("packet {written} where {id} was expected"));
    }
    // The five columns with the commas between them, as one piece of the line.
    let tuple_len = columns[4..9].iter().map(|column| column.len()).sum::<usize>() + 4;
    let behind = line.splitn(5, ',').nth(4).ok_or("no five-tuple")?;
    let tuple = behind.get(..tuple_len).ok_or("no five-tuple")?;
    let (dscp, ecn): (u8, u8) = (number(columns[9], "dscp")?, number(columns[10], "ecn")?);
    if dscp > 63 || ecn > 3 {
        return Err(format!("dscp {dscp}, ecn {ecn}: out of range"));
    }
    let tcp = match columns[8] {
        "6" => Some(Tcp::read(&|n| columns[n])?),
        "17" => None,
        other => return Err(format!("protocol {other} is neither 6 nor 17")),
    };
    let class = match columns[17] {
        "" => 0,
        text => class_id(text).ok_or_else(|| format!("`{text}` is not MAJOR:MINOR"))?,
    };
    let len = number(columns[3], "length")?;
    Ok(Some((Arrival { time, len, flow: 0, tos: dscp << 2 | ecn, class, tcp }, tuple)))
}

impl Tcp {
    fn read<'a>(column: &dyn Fn(usize) -> &'a str) -> Result<Tcp, String> {
        let optional = |n: usize, what: &str| match column(n) {
            "" => Ok(None),
            text => number::<u32>(text, what).map(Some),
        };
        let flags = column(11);
        let flags = u8::from_str_radix(flags.strip_prefix("0x").unwrap_or(flags), 16)
            .map_err(|_| format!("TCP flags `{flags}` are not hexadecimal"))?;
        let timestamp = match (optional(14, "tsval")?, optional(15, "tsecr")?) {
            (None, None) => None,
            (value, echo) => Some((value.unwrap_or(0), echo.unwrap_or(0))),
        };
        let mut tcp = Tcp {
            flags,
            seq: optional(12, "seq")?.unwrap_or(0),
            ack: optional(13, "ack")?.unwrap_or(0),
            timestamp,
            ..Tcp::default()
        };
        for block in column(16).split(';').filter(|block| !block.is_empty()) {
            let (left, right) =
                block.split_once('-').ok_or_else(|| format!("SACK block `{block}`"))?;
            let slot =
                tcp.sack.get_mut(usize::from(tcp.sack_count)).ok_or("too many SACK blocks")?;
            *slot = (number(left, "SACK edge")?, number(right, "SACK edge")?);
            tcp.sack_count += 1;
        }
        Ok(tcp)
    }
}

/// Fields of a TCP header in the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Byte 13 of the header.
    pub flags: u8,
    /// Sequence number.
    pub seq: u32,
    /// Cumulative acknowledgement.
    pub ack: u32,
    /// Timestamp value and echo.
    pub timestamp: Option<(u32, u32)>,
    /// Number of SACK blocks.
    pub sack_count: u8,
    /// SACK blocks: left edge, right edge.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
}

impl Tcp {
    /// Bytes of the header with its options.
    pub fn header_len(&self) -> u32 {
        let timestamp = if self.timestamp.is_some() { 12 } else { 0 };
        let sack = if self.sack_count > 0 { 4 + 8 * u32::from(self.sack_count) } else { 0 };
        20 + timestamp + sack
    }
}

/// `1:10`, both numbers hexadecimal.
fn class_id(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) =
        (u16::from_str_radix(major, 16).ok()?, u16::from_str_radix(minor, 16).ok()?);
    Some(u32::from(major) << 16 | u32::from(minor))
}

/// A number that must be there; `what` names it in the error.
pub(super) fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{what} `{text}` is not a number in range"))
}

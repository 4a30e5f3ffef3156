//! The words for link framing, shared by `cake` and `line` (facts A.1).
//!
//! They are instructions in the order given. `overhead N` and `conservative` set the overhead. The
//! keywords of particular encapsulations add to it, so that `pppoe-ptm ether-vlan` works. Once
//! `raw` has been said, sizes are taken as they are, whatever else is said. Words that amend
//! settings count from nothing, as `tc` does in each command: `docsis` is 18 bytes, and not `raw`.

use core::fmt::{self, Write};

use super::error::{ParseError, Problem};
use super::grammar::{Keyword, Words};
use super::json::Json;
use crate::framing::{Cells, Framing};

/// Smallest and largest overhead, in bytes, that `tc` accepts.
const OVERHEAD: (i64, i64) = (-64, 256);
const OVERHEAD_RANGE: &str = "a whole number of bytes, -64 to 256";
/// Smallest and largest minimum packet size, in bytes, that `tc` accepts.
const MPU: (i64, i64) = (0, 256);
const MPU_RANGE: &str = "a whole number of bytes, 0 to 256";

/// The keywords.
pub(crate) const KEYWORDS: &[Keyword] = &[
    Keyword::new("raw", "", "sizes as Linux reports them, no overhead (default)"),
    Keyword::new("conservative", "", "ATM with 48 bytes: too much for any link, never too little"),
    Keyword::new("overhead", "BYTES", "bytes that the link adds to each packet: -64 to 256"),
    Keyword::new("mpu", "BYTES", "smallest size on the link: 0 to 256"),
    Keyword::new("atm", "", "53-byte cells that carry 48 (ADSL)"),
    Keyword::new("ptm", "", "64b/65b code words (VDSL2)"),
    Keyword::new("noatm", "", "neither cells nor code words (default)"),
    Keyword::new("ethernet", "", "overhead +38, mpu 84: Ethernet with preamble and gap"),
    Keyword::new("ether-vlan", "", "overhead +4: a VLAN tag; may be repeated"),
    Keyword::new("docsis", "", "overhead +18, mpu 64, no cells: cable modems"),
    Keyword::new("pppoe-ptm", "", "overhead +30 with ptm"),
    Keyword::new("bridged-ptm", "", "overhead +22 with ptm"),
    Keyword::new("pppoe-vcmux", "", "overhead +32 with atm"),
    Keyword::new("pppoe-llcsnap", "", "overhead +40 with atm"),
    Keyword::new("pppoa-vcmux", "", "overhead +10 with atm"),
    Keyword::new("pppoa-llc", "", "overhead +14 with atm"),
    Keyword::new("bridged-vcmux", "", "overhead +24 with atm"),
    Keyword::new("bridged-llcsnap", "", "overhead +32 with atm"),
    Keyword::new("ipoa-vcmux", "", "overhead +8 with atm"),
    Keyword::new("ipoa-llcsnap", "", "overhead +16 with atm"),
    Keyword::new("via-ethernet", "", "accepted, without effect: sizes are compensated anyway"),
];

/// Encapsulations: keyword, bytes that it adds, cells that it implies.
const ENCAPSULATIONS: &[(&str, i64, Option<Cells>)] = &[
    ("ipoa-vcmux", 8, Some(Cells::Atm)),
    ("ipoa-llcsnap", 16, Some(Cells::Atm)),
    ("bridged-vcmux", 24, Some(Cells::Atm)),
    ("bridged-llcsnap", 32, Some(Cells::Atm)),
    ("pppoa-vcmux", 10, Some(Cells::Atm)),
    ("pppoa-llc", 14, Some(Cells::Atm)),
    ("pppoe-vcmux", 32, Some(Cells::Atm)),
    ("pppoe-llcsnap", 40, Some(Cells::Atm)),
    ("pppoe-ptm", 30, Some(Cells::Ptm)),
    ("bridged-ptm", 22, Some(Cells::Ptm)),
    ("docsis", 18, Some(Cells::None)),
    ("ethernet", 38, None),
    ("ether-vlan", 4, None),
];

/// Keywords that set the overhead, whatever it was.
const OVERHEADS: &[&str] = &["raw", "conservative", "overhead"];

/// Framing while its words are being read.
#[derive(Default)]
pub(crate) struct FramingWords {
    overhead: i64,
    mpu: u16,
    cells: Cells,
    /// Some word has set an overhead, if only zero.
    counted: bool,
    /// `raw` has been said.
    raw: bool,
    /// Words that amend have set an overhead.
    amended: bool,
}

impl FramingWords {
    /// Takes `word` (the last one read) if it concerns framing; false if it does not.
    pub fn take(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, ParseError> {
        let encapsulation = ENCAPSULATIONS.iter().find(|row| row.0 == word);
        let sets_overhead = encapsulation.is_some() || OVERHEADS.contains(&word);
        if sets_overhead && words.amends() && !self.amended {
            (self.amended, self.overhead, self.raw) = (true, 0, false);
        }
        if let Some((keyword, bytes, cells)) = encapsulation {
            self.overhead += bytes;
            if self.overhead > OVERHEAD.1 {
                let range = "no more than 256 bytes of overhead in all";
                return Err(words.error_here(Problem::OutOfRange { keyword, range }));
            }
            self.cells = cells.unwrap_or(self.cells);
            self.counted = true;
            match word {
                "docsis" => self.mpu = 64,
                "ethernet" => self.mpu = 84,
                _ => {}
            }
            return Ok(true);
        }
        match word {
            "raw" => {
                (self.raw, self.overhead, self.cells) = (true, 0, Cells::None);
            }
            "conservative" => {
                (self.counted, self.overhead, self.cells) = (true, 48, Cells::Atm);
            }
            "overhead" => {
                self.overhead = words.decimal(OVERHEAD, OVERHEAD_RANGE)?;
                self.counted = true;
            }
            "mpu" => self.mpu = words.decimal(MPU, MPU_RANGE)? as u16,
            "atm" => self.cells = Cells::Atm,
            "ptm" => self.cells = Cells::Ptm,
            "noatm" => self.cells = Cells::None,
            "via-ethernet" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The framing that the words describe.
    pub fn framing(&self) -> Framing {
        Framing {
            compensate: self.counted && !self.raw,
            overhead: self.overhead as i16,
            mpu: self.mpu,
            cells: self.cells,
        }
    }
}

/// Name of the cells; None where `tc` says nothing.
fn cells(framing: &Framing) -> Option<&'static str> {
    match framing.cells {
        Cells::Atm => Some("atm"),
        Cells::Ptm => Some("ptm"),
        Cells::None => framing.compensate.then_some("noatm"),
    }
}

/// Writes the framing as words, each with a space after it.
pub(crate) fn write_words(framing: &Framing, out: &mut dyn Write) -> fmt::Result {
    if !framing.compensate {
        out.write_str("raw ")?;
    }
    if let Some(cells) = cells(framing) {
        write!(out, "{cells} ")?;
    }
    write!(out, "overhead {} ", framing.overhead)?;
    if framing.mpu > 0 {
        write!(out, "mpu {} ", framing.mpu)?;
    }
    Ok(())
}

/// Writes the framing as members of a JSON object.
pub(crate) fn write_json(framing: &Framing, json: &mut Json<'_>) -> fmt::Result {
    json.key("raw")?.boolean(!framing.compensate)?;
    if let Some(cells) = cells(framing) {
        json.key("atm")?.string(cells)?;
    }
    json.key("overhead")?.signed(framing.overhead.into())?;
    if framing.mpu > 0 {
        json.key("mpu")?.number(framing.mpu.into())?;
    }
    Ok(())
}

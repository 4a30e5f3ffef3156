//! `cake`'s words (man tc-cake, facts A.1), both ways, and its statistics (facts A.13).
//!
//! All that `tc` accepts means the same here; recordings of the real program are the test
//! (tests/data/tc). Two things are added. One is `bandwidth unlimited`, which `tc` prints but does
//! not read. The other is our own settings (`queues`, `savings`, `host-prefix`, `host-load`,
//! `host-guard`), printed after everything else and only when they differ from what Linux has.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{AckFilter, Cake, DiffservMode, FlowMode, HostGuard, HostLoad, Params, Stats};
use crate::packet::Packet;
use crate::qdisc::netlink::Abi;
use crate::qdisc::{too_small, Choice, ConfigError, Described, Device, Managed, Names, Needs};
use crate::rate::Rate;
use crate::tc::link::FramingWords;
use crate::tc::units::{shown_size, shown_time, write_rate, ValueError, RATE_OR_NONE};
use crate::tc::{
    after_0x, link, or_default, savings, units, Digits, Json, Keyword, Keywords, ParseError, Value,
    Words,
};
use crate::time::Span;

/// From this rate on super-packets stay whole in any case, as in the first cake of Linux. Their 64
/// kB take half a millisecond at most.
const WHOLE_FROM: Rate = Rate(1_000_000_000 / 8);

const TIME: Value<Span> =
    Value::new("a TIME such as 30ms or 100us", units::span).within("a TIME of at most 4294s");
const SIZE: Value<u32> =
    Value::new("a SIZE such as 32mb", units::size).within("a SIZE less than 4gb");
const MASK: Value<u32> =
    Value::new("a MASK such as 0xff", mask).within("a MASK of at most 0xffffffff");
const QUEUES: &str = "a power of two, 8 to 32768";
const PREFIX: &str = "a number of bits, 1 to 128";
const LOAD: &str = "`bulk` or `active`";

/// The keywords, by group.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("bandwidth", "RATE", "shape to this rate"),
        Keyword::new("unlimited", "", "do not shape (default)"),
        Keyword::new("autorate-ingress", "", "follow the rate at which packets arrive"),
        // Before the other modes, so that a mistyped one is taken for this.
        Keyword::new("diffserv4", "", "four tiers: Bulk, Best Effort, Video, Voice"),
        Keyword::new("diffserv3", "", "three tiers: Bulk, Best Effort, Voice (default)"),
        Keyword::new("diffserv8", "", "eight tiers by purpose"),
        Keyword::new("diffserv", "", "the same as diffserv4"),
        Keyword::new("besteffort", "", "one tier for all"),
        Keyword::new("precedence", "", "eight tiers by the old precedence bits"),
        Keyword::new("triple-isolate", "", "fair to hosts at both ends, then flows (default)"),
        Keyword::new("dual-srchost", "", "fair between source hosts, then between their flows"),
        Keyword::new("dual-dsthost", "", "fair between destination hosts, then their flows"),
        Keyword::new("flows", "", "fair between flows"),
        Keyword::new("hosts", "", "fair between pairs of hosts"),
        Keyword::new("srchost", "", "fair between source hosts"),
        Keyword::new("dsthost", "", "fair between destination hosts"),
        Keyword::new("flowblind", "", "one queue in each tier"),
        Keyword::new("nat", "", "see hosts behind address translation"),
        Keyword::new("nonat", "", "take addresses as they are (default)"),
        Keyword::new("wash", "", "clear the DSCP after reading it"),
        Keyword::new("nowash", "", "leave the DSCP (default)"),
        Keyword::new("ingress", "", "stands behind the bottleneck: charge dropped packets too"),
        Keyword::new("egress", "", "stands before the bottleneck (default)"),
        Keyword::new("ack-filter", "", "drop redundant acknowledgements, always keeping two"),
        Keyword::new("ack-filter-aggressive", "", "drop all redundant acknowledgements"),
        Keyword::new("no-ack-filter", "", "drop no acknowledgements (default)"),
        Keyword::new("split-gso", "", "cut super-packets up (default)"),
        Keyword::new("no-split-gso", "", "leave super-packets whole"),
        Keyword::new("rtt", "TIME", "typical round-trip time of the traffic; 0 is the default"),
        Keyword::new("datacentre", "", "rtt 100us"),
        Keyword::new("lan", "", "rtt 1ms"),
        Keyword::new("metro", "", "rtt 10ms"),
        Keyword::new("regional", "", "rtt 30ms"),
        Keyword::new("internet", "", "rtt 100ms (default)"),
        Keyword::new("oceanic", "", "rtt 300ms"),
        Keyword::new("satellite", "", "rtt 1s"),
        Keyword::new("interplanetary", "", "rtt 1000s"),
    ],
    link::KEYWORDS,
    &[
        Keyword::new("memlimit", "SIZE", "memory for packets; 0 computes it (default)"),
        Keyword::new("fwmark", "MASK", "firewall-mark bits that choose the tier"),
        Keyword::new("queues", "N", "queues in each tier, 8 to 32768, default 1024 (ours)"),
        savings::KEYWORD,
        Keyword::new("host-prefix", "BITS", "IPv6 bits that make a host, default 128 (ours)"),
        Keyword::new("host-load", "bulk|active", "flows that divide a host's share (ours)"),
        Keyword::new(
            "host-guard",
            "[src|dst]",
            "no host's many flows take the others' share; src or dst says which hosts (ours)",
        ),
        Keyword::new("no-host-guard", "", "a host's many flows may, as in Linux (default; ours)"),
    ],
];

/// `rtt` presets in microseconds.
const PRESETS: &[(&str, u64)] = &[
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 1_000_000_000),
];

/// Tin modes; where two words mean the same, the first is printed.
const DIFFSERV_MODES: &[(&str, DiffservMode)] = &[
    ("diffserv3", DiffservMode::Diffserv3),
    ("diffserv4", DiffservMode::Diffserv4),
    ("diffserv", DiffservMode::Diffserv4),
    ("diffserv8", DiffservMode::Diffserv8),
    ("besteffort", DiffservMode::Besteffort),
    ("precedence", DiffservMode::Precedence),
];

/// Flow modes.
const FLOW_MODES: &[(&str, FlowMode)] = &[
    ("flowblind", FlowMode::Flowblind),
    ("srchost", FlowMode::Srchost),
    ("dsthost", FlowMode::Dsthost),
    ("hosts", FlowMode::Hosts),
    ("flows", FlowMode::Flows),
    ("dual-srchost", FlowMode::DualSrchost),
    ("dual-dsthost", FlowMode::DualDsthost),
    ("triple-isolate", FlowMode::TripleIsolate),
];

/// ACK-filter modes: as words, and as `tc`'s JSON calls them.
const ACK_FILTERS: &[(&str, AckFilter, &str)] = &[
    ("no-ack-filter", AckFilter::Off, "disabled"),
    ("ack-filter", AckFilter::Conservative, "enabled"),
    ("ack-filter-aggressive", AckFilter::Aggressive, "aggressive"),
];

/// The value that `word` has in a table.
fn meaning<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// The word for a value; each value has one.
fn name<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name)
}

impl Described for Params {
    const NAMES: Names = &[("cake", "shaper, fair queues, AQM and tiers in one")];
    const KEYWORDS: Keywords = KEYWORDS;
    const RATE: Option<&'static str> = Some("bandwidth");
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params::default();
        let mut framing = FramingWords::default();
        while let Some(word) = words.next() {
            if let Some(micros) = meaning(PRESETS, word) {
                params.set_rtt(Span::from_micros(micros));
            } else if let Some(mode) = meaning(DIFFSERV_MODES, word) {
                params.diffserv = mode;
            } else if let Some(mode) = meaning(FLOW_MODES, word) {
                params.flow_mode = mode;
            } else if let Some(row) = ACK_FILTERS.iter().find(|row| row.0 == word) {
                params.ack_filter = row.1;
            } else if !framing.take(word, words)?
                && !take_flag(&mut params, word)
                && !take_value(&mut params, word, words)?
            {
                return Err(words.unknown());
            }
        }
        params.framing = framing.framing();
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        out.write_str("bandwidth ")?;
        match self.bandwidth {
            Rate(0) => out.write_str("unlimited")?,
            rate => write_rate(rate, digits, out)?,
        }
        out.write_str(if self.autorate_ingress { " autorate-ingress " } else { " " })?;
        write!(out, "{} ", name(DIFFSERV_MODES, &self.diffserv))?;
        write!(out, "{} ", name(FLOW_MODES, &self.flow_mode))?;
        out.write_str(if self.nat { "nat " } else { "nonat " })?;
        out.write_str(if self.wash { "wash " } else { "nowash " })?;
        out.write_str(if self.ingress { "ingress " } else { "" })?;
        write!(out, "{} ", ack_filter(self).0)?;
        out.write_str(if self.split_gso { "split-gso " } else { "no-split-gso " })?;
        write!(out, "rtt {} ", shown_time(self.rtt, digits))?;
        link::write_words(&self.framing, out)?;
        if self.memlimit > 0 {
            write!(out, "memlimit {} ", shown_size(self.memlimit.into(), digits))?;
        }
        if self.fwmark > 0 {
            write!(out, "fwmark {:#x} ", self.fwmark)?;
        }
        let linux = Params::default();
        if self.queues != linux.queues {
            write!(out, "queues {} ", self.queues)?;
        }
        savings::write(self.savings, digits, out)?;
        if self.host_prefix != linux.host_prefix {
            write!(out, "host-prefix {} ", self.host_prefix)?;
        }
        if self.host_load == HostLoad::Active {
            out.write_str("host-load active ")?;
        }
        out.write_str(match self.host_guard {
            HostGuard::Off => "",
            HostGuard::On => "host-guard ",
            HostGuard::Source => "host-guard src ",
            HostGuard::Destination => "host-guard dst ",
        })?;
        Ok(())
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        match self.bandwidth {
            Rate(0) => json.key("bandwidth")?.string("unlimited")?,
            rate => json.key("bandwidth")?.number(rate.bytes())?,
        }
        if self.autorate_ingress {
            json.key("autorate")?.string("autorate-ingress")?;
        }
        json.key("diffserv")?.string(name(DIFFSERV_MODES, &self.diffserv))?;
        json.key("flowmode")?.string(name(FLOW_MODES, &self.flow_mode))?;
        json.key("nat")?.boolean(self.nat)?;
        json.key("wash")?.boolean(self.wash)?;
        json.key("ingress")?.boolean(self.ingress)?;
        json.key("ack-filter")?.string(ack_filter(self).2)?;
        json.key("split_gso")?.boolean(self.split_gso)?;
        json.key("rtt")?.number(self.rtt.as_micros())?;
        link::write_json(&self.framing, json)?;
        if self.memlimit > 0 {
            json.key("memlimit")?.number(self.memlimit.into())?;
        }
        match self.fwmark {
            0 => json.key("fwmark")?.string("0")?,
            mask => json.key("fwmark")?.display(format_args!("{mask:#x}"))?,
        }
        let linux = Params::default();
        if self.queues != linux.queues {
            json.key("queues")?.number(self.queues.into())?;
        }
        savings::write_json(self.savings, json)?;
        if self.host_prefix != linux.host_prefix {
            json.key("host_prefix")?.number(self.host_prefix.into())?;
        }
        if self.host_load == HostLoad::Active {
            json.key("host_load")?.string("active")?;
        }
        match self.host_guard {
            HostGuard::Off => {}
            HostGuard::On => json.key("host_guard")?.string("on")?,
            HostGuard::Source => json.key("host_guard")?.string("src")?,
            HostGuard::Destination => json.key("host_guard")?.string("dst")?,
        }
        Ok(())
    }

    fn rate(&self) -> Option<Rate> {
        (!self.bandwidth.is_unlimited()).then_some(self.bandwidth)
    }

    fn with_rate(&self, rate: Rate, _: fn(Rate) -> u32) -> Option<Params> {
        Some(Params { bandwidth: rate, autorate_ingress: false, ..*self })
    }

    fn packet_time(&self, device: &Device) -> Option<Span> {
        let bytes = self.framing.charge(&Packet::new(0, device.mtu));
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate()?.bytes().max(1));
        Some(Span(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    fn takes_super_packets(&self) -> bool {
        !self.split_gso || self.rate().is_none_or(|rate| rate >= WHOLE_FROM)
    }

    fn own_host_prefix(&self) -> Option<u8> {
        Some(self.host_prefix)
    }

    fn filters_acks(&self) -> bool {
        self.ack_filter != AckFilter::Off
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        // Zero is none.
        let limit = Some(self.memlimit).filter(|limit| *limit > 0)?;
        too_small("memlimit", limit.into(), device.mtu)
    }

    fn own_needs(&self) -> Needs {
        Needs {
            translation: self.nat,
            pieces: self.split_gso,
            vain_calls: false,
            choice: Choice::QueueAndHost,
            ..Needs::MOST
        }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Cake::boxed(0, self, device)?)
    }
}

/// Takes a word that stands alone; false if it is none.
fn take_flag(params: &mut Params, word: &str) -> bool {
    match word {
        "unlimited" => (params.bandwidth, params.autorate_ingress) = (Rate(0), false),
        "autorate-ingress" => params.autorate_ingress = true,
        "nat" => params.nat = true,
        "nonat" => params.nat = false,
        "wash" => params.wash = true,
        "nowash" => params.wash = false,
        "ingress" => params.ingress = true,
        "egress" => params.ingress = false,
        "split-gso" => params.split_gso = true,
        "no-split-gso" => params.split_gso = false,
        "no-host-guard" => params.host_guard = HostGuard::Off,
        _ => return false,
    }
    true
}

/// Takes a word that is followed by a value; false if it is none.
fn take_value(params: &mut Params, word: &str, words: &mut Words<'_>) -> Result<bool, ParseError> {
    match word {
        "bandwidth" => {
            params.bandwidth = words.take(&RATE_OR_NONE)?;
            params.autorate_ingress = false;
        }
        "rtt" => {
            // A zero leaves the default in force. `tc` sends a target of 1 us with it: nobody means
            // that.
            params.set_rtt(or_default(words.take(&TIME)?, Params::DEFAULT_RTT));
        }
        "memlimit" => params.memlimit = words.take(&SIZE)?,
        "fwmark" => params.fwmark = words.take(&MASK)?,
        "queues" => {
            params.queues = words.value(QUEUES, QUEUES, |word| match units::count(word)? {
                n @ 8..=32_768 if n.is_power_of_two() => Ok(n),
                _ => Err(ValueError::TooLarge),
            })?;
        }
        "savings" => params.savings = Some(savings::take(words)?),
        "host-prefix" => params.host_prefix = words.number((1, 128), PREFIX)? as u8,
        "host-guard" => {
            params.host_guard = match words.peek() {
                Some("src") => HostGuard::Source,
                Some("dst") => HostGuard::Destination,
                _ => HostGuard::On,
            };
            if params.host_guard != HostGuard::On {
                words.next();
            }
        }
        "host-load" => {
            params.host_load = words.value(LOAD, LOAD, |word| match word {
                "bulk" => Ok(HostLoad::Bulk),
                "active" => Ok(HostLoad::Active),
                _ => Err(ValueError::Invalid),
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A mask as C writes integers: 0x for hexadecimal, a leading zero for octal, else decimal.
fn mask(word: &str) -> Result<u32, ValueError> {
    let (digits, radix) = match (after_0x(word), word.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (word, 10),
    };
    // A second sign would be read as part of the number.
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(ValueError::Invalid);
    }
    u32::from_str_radix(digits, radix).map_err(|_| ValueError::TooLarge)
}

fn ack_filter(params: &Params) -> &'static (&'static str, AckFilter, &'static str) {
    ACK_FILTERS.iter().find(|row| row.1 == params.ack_filter).unwrap_or(&ACK_FILTERS[0])
}

//! The settings of a discipline: read from words, written as words, asked, and built.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::netlink::Abi;
use super::{Config, ConfigError, Device, Managed, Needs, OwnStats};
use crate::flow::{FlowHasher, HashKey};
use crate::rate::Rate;
use crate::tc::{Digits, Json, Keywords, ParseError, Words};
use crate::time::Span;

/// Names, and what each stands for.
pub type Names = &'static [(&'static str, &'static str)];

/// Settings that words describe. Every discipline's `Params` are.
///
/// With its line in the list of `qdisc/mod.rs` this is all that makes a discipline known. It then
/// exists on the command line, in configuration files, scenarios, tables, JSON and property tests.
pub trait Described: Sized + PartialEq {
    /// The discipline's name, the first word, and what it is, in one line. Most have one name.
    const NAMES: Names;
    /// Its keywords.
    const KEYWORDS: Keywords;
    /// Contenders in every figure of the lab in which disciplines compete, beside those of
    /// the papers: the series' name, and words. `{rate}` in them stands for the line's rate; what
    /// does not shape itself gets each experiment's shaper.
    const CONTENDERS: Names = &[];
    /// The keyword of the rate that it shapes to, if it can shape.
    const RATE: Option<&'static str> = None;
    /// Linux's netlink attributes of it, under its first name, if Linux has it.
    const NETLINK: Option<Abi<Self, Self::Stats>> = None;
    /// Its statistics beyond those that all have; `()` for nothing.
    type Stats: OwnStats + 'static;

    /// Reads the words behind the name.
    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError>;

    /// Writes the settings as words, without the name: with [`Digits::AsTc`] as they are shown,
    /// with [`Digits::Exact`] so that the same settings are read back.
    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result;

    /// Writes the settings as members of a JSON object.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result;

    /// Writes the settings as `tc` shows them where it shows a statistic among them.
    fn show_words(&self, stats: &Self::Stats, out: &mut dyn Write) -> fmt::Result {
        let _ = stats;
        self.write_words(Digits::AsTc, out)
    }

    /// The same as members of a JSON object.
    fn show_json(&self, stats: &Self::Stats, json: &mut Json<'_>) -> fmt::Result {
        let _ = stats;
        self.write_json(json)
    }

    /// The name; one of [`Described::NAMES`].
    fn name(&self) -> &'static str {
        Self::NAMES[0].0
    }

    /// Disciplines that the settings say to stand below, with the classes that they hang at.
    fn children(&self) -> Vec<(u32, &Config)> {
        Vec::new()
    }

    /// The settings of the same disciplines, in the same order, to be changed.
    fn children_mut(&mut self) -> Vec<&mut Config> {
        Vec::new()
    }

    /// True if it has classes with settings of their own, which its words as `tc` shows them lack.
    fn shows_classes_apart(&self) -> bool {
        false
    }

    /// The rate that it never exceeds, if its settings say one.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// The same at another rate; None where no rate, or not that, can be set. `burst` is the
    /// default of shapers with a bucket: one that is as deep gets the new default.
    fn with_rate(&self, rate: Rate, burst: fn(Rate) -> u32) -> Option<Self> {
        let _ = (rate, burst);
        None
    }

    /// Time of the largest packet of `device` at a rate that is kept without any burst.
    fn packet_time(&self, device: &Device) -> Option<Span> {
        let _ = device;
        None
    }

    /// Bits of an IPv6 address that make a host, where it tells hosts apart.
    fn own_host_prefix(&self) -> Option<u8> {
        None
    }

    /// True if it tells flows or hosts apart: packets' hashes matter.
    fn own_tells_flows(&self) -> bool {
        true
    }

    /// True if it queues super-packets whole: their segments wait and leave together.
    fn takes_super_packets(&self) -> bool {
        false
    }

    /// True if it looks at acknowledgements ([`super::PacketOwner::ack_view`]).
    fn filters_acks(&self) -> bool {
        false
    }

    /// True if the settings are those of `other`, as far as that can be told without a look at what
    /// stands below. The comparison must not take stack for each level.
    fn is_surely(&self, other: &Self) -> bool {
        self == other
    }

    /// Its needs of a home that hands it packets as they are.
    fn own_needs(&self) -> Needs {
        Needs::MOST
    }

    /// Reason for which it drops what comes, if its settings leave no room for a full packet of
    /// `device`.
    fn drops_all(&self, device: &Device) -> Option<String> {
        let _ = device;
        None
    }

    /// True if it drops a packet also while it is empty.
    fn drops_first(&self, device: &Device) -> bool {
        self.drops_all(device).is_some()
    }

    /// Fills in what `device` decides, so that it is shown: limits, quanta, and times of timers.
    fn resolve(&mut self, device: &Device) {
        let _ = device;
    }

    /// The discipline, empty. All its memory is reserved here.
    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError>;
}

/// The discipline of `params`. Apart from the others, for the stack's sake.
#[inline(never)]
pub(super) fn built<P: Described>(
    params: &P,
    device: &Device,
) -> Result<Box<dyn Managed + Send>, ConfigError> {
    params.build(device)
}

/// Settings of a discipline that stands in the list: the list itself makes them this.
pub trait Listed: Described + Into<Config> {
    /// The settings within `config`, if they are of this discipline.
    fn of(config: &Config) -> Option<&Self>;
}

/// Questions to settings together with all that stands below.
impl Config {
    /// Bits of an IPv6 address that make a host, where hosts are told apart.
    pub fn host_prefix(&self) -> Option<u8> {
        let below = || self.children().into_iter().find_map(|(_, child)| child.host_prefix());
        self.own_host_prefix().or_else(below)
    }

    /// True if flows or hosts are told apart. Otherwise a packet's description needs no hashes
    /// ([`describe_network`](crate::wire::describe_network)).
    pub fn tells_flows(&self) -> bool {
        let below = || self.children().into_iter().any(|(_, child)| child.tells_flows());
        self.own_tells_flows() || below()
    }

    /// The hasher of packets' flows under `key`, and of hosts where these are told apart.
    pub fn hasher(&self, key: HashKey) -> FlowHasher {
        match self.host_prefix() {
            Some(prefix) => FlowHasher::new(key, prefix),
            None => FlowHasher::of_flows(key),
        }
    }

    /// True if acknowledgements are looked at.
    pub fn wants_acks(&self) -> bool {
        self.filters_acks() || self.children().into_iter().any(|(_, child)| child.wants_acks())
    }

    /// Reason for which packets will be dropped whatever comes; None if there is none.
    pub fn passes_nothing(&self, device: &Device) -> Option<String> {
        let below =
            || self.children().into_iter().find_map(|(_, child)| child.passes_nothing(device));
        self.drops_all(device).or_else(below)
    }
}

/// Reason for which no full packet fits, if `value`, which the words `option` say, is below
/// `least`.
pub(super) fn too_small(option: &str, value: u64, least: u32) -> Option<String> {
    (value < least.into()).then(|| match least {
        1 => format!("`{option} {value}` leaves no room for a packet"),
        _ => format!("`{option} {value}b` leaves no room for a packet of {least} bytes"),
    })
}

#[cfg(test)]
mod tests {
    use crate::qdisc::many::Settings;
    use crate::qdisc::{codel, fq_codel, parse, pie, Config, Device};
    use crate::rate::Rate;
    use crate::tick::Tick;

    fn settings(words: &str) -> Config {
        parse(words).unwrap()
    }

    #[test]
    fn settings_say_their_rate_and_take_another_one() {
        let below = "tbf rate 4mbit burst 15k limit 30k";
        for (words, mbit) in [
            ("cake bandwidth 3mbit", 3),
            ("cake unlimited", 0),
            ("line rate 3mbit", 3),
            ("line delay 5ms", 0),
            ("delay 5ms", 0),
            ("fq_codel", 0),
            ("drr class 1:1", 0),
            (below, 4),
            (&std::format!("tbf rate 9mbit burst 15k {below}"), 4),
            ("htb rate 2mbit ceil 5mbit burst 15k fq_codel", 5),
            ("htb default 2 class 1:1 rate 1mbit class 1:2 rate 2mbit", 3),
            ("htb class 1:1 rate 1mbit", 0),
        ] {
            let rate = (mbit > 0).then_some(Rate::from_bits(mbit * 1_000_000));
            assert_eq!(settings(words).rate(), rate, "{words}");
        }
        let burst = |rate: Rate| rate.0 as u32 / 100;
        for (words, expected) in [
            ("cake bandwidth 3mbit nat", Some("cake bandwidth 8mbit nat")),
            ("line delay 5ms", Some("line rate 8mbit delay 5ms")),
            (below, Some("tbf rate 8mbit burst 15k limit 30k")),
            ("tbf rate 4mbit burst 5000b pie", Some("tbf rate 8mbit burst 10000b pie")),
            (
                "htb rate 2mbit burst 9k cburst 9k sfq",
                Some("htb rate 8mbit burst 9k cburst 9k sfq"),
            ),
            ("htb default 2 class 1:1 rate 1mbit class 1:2 rate 2mbit", None),
            ("fq_codel", None),
        ] {
            let other = settings(words).with_rate(Rate::from_bits(8_000_000), burst);
            assert_eq!(other, expected.map(settings), "{words}");
        }
        assert_eq!(settings(below).with_rate(Rate(0), burst), None);
    }

    #[test]
    fn a_rate_without_a_burst_says_how_long_a_packet_takes() {
        let device = Device::default();
        let micros = |words| settings(words).packet_time(&device).map(|time| time.0 / 1000);
        // A full frame has 1514 bytes, 1500 of them IP; a cell of ATM carries 48 of its 53.
        assert_eq!(micros("cake bandwidth 12mbit"), Some(1009));
        assert_eq!(micros("cake bandwidth 12mbit overhead 38"), Some(1025));
        assert_eq!(micros("cake bandwidth 424kbit raw overhead 26 atm"), Some(33_000));
        for words in ["cake", "fq_codel", "tbf rate 1mbit burst 15k limit 30k", "line rate 9mbit"] {
            assert_eq!(micros(words), None, "{words}");
        }
    }

    /// From 1 Gbit/s on cake does not split them, as in Linux; and then not without a rate.
    #[test]
    fn super_packets_are_taken_whole_where_they_are_not_split() {
        for (words, whole) in [
            ("cake", true),
            ("cake bandwidth 1gbit", true),
            ("cake bandwidth 999999kbit", false),
            ("cake bandwidth 1mbit no-split-gso", true),
            ("cake bandwidth 1mbit", false),
            ("fq_codel", false),
            ("pfifo", false),
        ] {
            assert_eq!(settings(words).takes_super_packets(), whole, "{words}");
        }
    }

    #[test]
    fn settings_with_others_below_are_not_compared() {
        for (words, known) in [
            ("pie limit 9", true),
            ("cake nat", true),
            ("drr srchost", false),
            ("htb rate 1mbit burst 15k", false),
            ("tbf rate 1mbit burst 15k limit 30k", false),
        ] {
            assert_eq!(settings(words).is_surely(&settings(words)), known, "{words}");
            assert!(!settings(words).is_surely(&settings("codel")), "{words}");
        }
        assert!(!settings("pie limit 9").is_surely(&settings("pie limit 8")));
    }

    #[test]
    fn what_stands_below_is_the_same_to_look_at_and_to_change() {
        for (words, below) in [
            ("tbf rate 1mbit burst 15k pie", 1),
            ("tbf rate 1mbit burst 15k limit 30k", 0),
            ("htb default 2 class 1:1 rate 1mbit sfq class 1:2 rate 2mbit cake", 2),
            ("drr class 1:1 pie class 1:2 class 1:3 sfb", 2),
            ("cake", 0),
        ] {
            let (config, mut other) = (settings(words), settings(words));
            assert_eq!(config.children().len(), below, "{words}");
            let seen = config.children().into_iter().map(|(_, child)| child);
            assert!(seen.eq(other.children_mut().into_iter().map(|child| &*child)), "{words}");
        }
    }

    #[test]
    fn settings_are_asked_with_all_below() {
        let above = settings("htb rate 5mbit drr class 1:1 cake host-prefix 64 ack-filter");
        assert_eq!((above.host_prefix(), above.wants_acks()), (Some(64), true));
        let plain = settings("htb rate 5mbit fq_codel");
        assert_eq!((plain.host_prefix(), plain.wants_acks()), (None, false));
        for (words, tells_flows) in [
            ("htb rate 5mbit fq_codel", true),
            ("tbf rate 5mbit burst 15k limit 30k sfq", true),
            ("drr", true),
            ("htb rate 5mbit codel", false),
            ("tbf rate 5mbit burst 15k limit 30k", false),
            ("drr class 1:1 pie", false),
            ("drr class 1:1 sfb", true),
            ("blue", false),
            ("dualpi2", false),
            ("delay 5ms", false),
            ("line", false),
            ("bfifo", false),
            ("red limit 40kb avpkt 1000", false),
            ("red ns", false),
        ] {
            assert_eq!(settings(words).tells_flows(), tells_flows, "{words}");
        }
        for (words, prefix) in [
            ("drr", None),
            ("drr srchost", Some(128)),
            ("drr dsthost", Some(128)),
            ("cake host-prefix 56", Some(56)),
        ] {
            assert_eq!(settings(words).host_prefix(), prefix, "{words}");
        }
    }

    #[test]
    fn what_a_device_decides_is_filled_in() {
        let device = Device {
            tick: Tick::Jiffies { hz: 250, wheel: false },
            tx_queue_len: 77,
            mtu: 1514,
            ..Device::default()
        };
        for (words, resolved) in [
            ("pfifo", "pfifo limit 77"),
            ("pfifo limit 5", "pfifo limit 5"),
            ("bfifo", "bfifo limit 116578"),
            ("pie", "pie tupdate 16ms"),
            ("pie tupdate 20ms", "pie tupdate 20ms"),
        ] {
            assert_eq!(settings(words).resolved(&device), settings(resolved), "{words}");
        }
    }

    #[test]
    fn what_has_no_room_for_a_packet_says_so() {
        let device = Device::default();
        for (words, reason) in [
            ("pfifo limit 0", "`limit 0` leaves no room for a packet"),
            ("bfifo limit 1000", "`limit 1000b` leaves no room for a packet of 1514 bytes"),
            ("line fifo 0p", "`limit 0` leaves no room"),
            ("tbf rate 1mbit burst 1000 limit 9000", "`burst 1000b`"),
            ("cake memlimit 1", "`memlimit 1b`"),
            ("blue limit 0", "`limit 0`"),
            ("fq_codel memory_limit 1513", "`memory_limit 1513b`"),
            ("red limit 1513 min 300 max 900 avpkt 100", "a packet of 1514 bytes"),
            ("htb rate 1mbit pfifo limit 0", "`limit 0`"),
            ("drr class 1:1", "priority"),
        ] {
            let said = settings(words).passes_nothing(&device).expect(words);
            assert!(said.contains(reason), "{words}: {said}");
        }
        let Config::FqCodel(fair) = settings("fq_codel") else { panic!() };
        let empty = fq_codel::Params { queues: Settings { limit: 0, ..fair.queues }, ..fair };
        for config in [
            Config::Codel(codel::Params { limit: 0, ..codel::Params::default() }),
            Config::Pie(pie::Params { limit: 0, ..pie::Params::default() }),
            Config::FqCodel(empty),
        ] {
            let said = config.passes_nothing(&device).unwrap_or_default();
            assert!(said.contains("`limit 0`"), "{config}: {said}");
        }
        for words in [
            "pfifo",
            "bfifo",
            "cake",
            "tbf rate 1mbit burst 15k sfq",
            "drr",
            "dualpi2",
            "red limit 1514 min 300 max 900 avpkt 100",
            "red ns limit 1",
            "codel limit 1",
            "pie limit 1",
            "fq_codel limit 1 memory_limit 1514",
        ] {
            assert_eq!(settings(words).passes_nothing(&device), None, "{words}");
        }
    }
}

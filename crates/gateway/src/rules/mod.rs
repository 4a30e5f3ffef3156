//! Rules people ask for: which traffic goes where, whatever its DSCP says.
//!
//! A `[[rule]]` of the configuration file (`read`) names traffic by port, address, hardware
//! address, host name, program or code point. It says what becomes of that: a tier of cake, a class
//! of htb or drr, or a way past the discipline. The first rule that fits a packet decides. A
//! `[[share]]` (`shares`) is such a rule and the class that it leads to. Rules with hours (`hours`)
//! hold at these only.
//!
//! The kernel does the work (`nft`): rules stand in the interface's own nftables table, in front of
//! the one that queues, and vanish with it. A tier travels in four bits of the packet mark that
//! cake's `fwmark` reads, a class in the packet's priority. Both are taken away again behind the
//! queue.
//!
//! `plan` fits rules to the discipline of a direction: which number a tier has depends on the
//! words of cake.

pub(crate) mod cgroup;
pub(crate) mod forms;
mod host_name;
mod hours;
mod read;
pub(crate) mod shares;

use std::fmt;
use std::net::IpAddr;

use simnel_core::dscp;
use simnel_core::qdisc::cake::DiffservMode;
use simnel_core::qdisc::{Config, Device};

use crate::direction::Direction;
use crate::words::below;

pub use crate::mac::Mac;
pub use cgroup::Cgroup;
pub use host_name::HostName;
pub use hours::Hours;
pub(crate) use hours::Moment;
pub(crate) use read::Table;

/// Packets and bytes that a rule has fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Bytes, from the IP header on.
    pub bytes: u64,
}

/// Control groups of one file: each needs a number in the four bits of the mark.
pub(crate) const MOST_CGROUPS: usize = 15;

/// Most rules of one file: each costs every packet some tens of nanoseconds.
pub const MOST_RULES: usize = 64;

/// One `[[rule]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its place in the file, from 1.
    pub number: usize,
    /// Its author's name for it.
    pub name: Option<String>,
    /// The traffic that it is about.
    pub traffic: Traffic,
    /// Fate of packets that it fits.
    pub action: Action,
    /// Hours at which it holds; None is always.
    pub hours: Option<Hours>,
}

/// Traffic: all that is said must fit, and of each list one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Protocol number; with ports and without it, TCP and UDP.
    pub protocol: Option<u8>,
    /// Port ranges of either end.
    pub ports: Vec<(u16, u16)>,
    /// Prefixes of either end's address.
    pub addresses: Vec<Prefix>,
    /// Hardware addresses of hosts at home.
    pub macs: Vec<Mac>,
    /// Names of the far end.
    pub hosts: Vec<HostName>,
    /// Programs of this machine.
    pub cgroups: Vec<Cgroup>,
    /// Code points.
    pub dscps: Vec<u8>,
}

impl Rule {
    /// True if it fits every packet that a `later` one fits, whenever that holds. Names and control
    /// groups are compared as they are written.
    pub(crate) fn hides(&self, later: &Rule) -> bool {
        let when = self.hours.is_none() || self.hours == later.hours;
        when && self.traffic.covers(&later.traffic)
    }
}

impl Traffic {
    fn covers(&self, other: &Traffic) -> bool {
        /// Whatever fits `some` fits `all`; an empty list asks for nothing.
        fn list<T>(all: &[T], some: &[T], holds: impl Fn(&T, &T) -> bool) -> bool {
            let held = |item| all.iter().any(|one| holds(one, item));
            all.is_empty() || !some.is_empty() && some.iter().all(held)
        }
        let protocol = match (self.protocol, other.protocol) {
            // Ports without a protocol are those of TCP and UDP.
            (None, other) => self.ports.is_empty() || other.is_none_or(|p| [6, 17].contains(&p)),
            (own, other) => own == other,
        };
        protocol
            && list(&self.ports, &other.ports, |all, some| all.0 <= some.0 && some.1 <= all.1)
            && list(&self.addresses, &other.addresses, Prefix::holds)
            && list(&self.macs, &other.macs, Mac::eq)
            && list(&self.hosts, &other.hosts, HostName::eq)
            && list(&self.cgroups, &other.cgroups, Cgroup::eq)
            && list(&self.dscps, &other.dscps, u8::eq)
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A tier of cake.
    Tier(Tier),
    /// A class, by its minor number.
    Class(u16),
    /// The class of a share, in directions that have it.
    Share(u16),
    /// Past the discipline.
    Pass,
}

/// A tier of cake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Background traffic.
    Bulk,
    /// Traffic without a claim.
    BestEffort,
    /// Streams; only `diffserv4` has it.
    Video,
    /// Calls and games.
    Voice,
    /// By its place in the statistics, from 1.
    Number(u8),
}

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its address; bits behind the length are zero.
    pub address: IpAddr,
    /// Leading bits that count.
    pub length: u8,
}

impl Prefix {
    /// Its addresses, as numbers.
    fn interval(&self) -> forms::Interval {
        let (first, bits) = match self.address {
            IpAddr::V4(address) => (u32::from(address).into(), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        // A shift by all bits would be none.
        let others = 1u128.checked_shl(bits - u32::from(self.length)).unwrap_or(0);
        (first, first | others.wrapping_sub(1))
    }

    /// True if all addresses of `other` are among its own.
    fn holds(&self, other: &Prefix) -> bool {
        let ((first, last), (from, to)) = (self.interval(), other.interval());
        self.address.is_ipv4() == other.address.is_ipv4() && first <= from && to <= last
    }
}

/// A rule as it runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RuleEntry {
    /// The interface.
    pub dev: String,
    /// Its place in the file, from 1.
    pub number: usize,
    /// Its author's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The traffic, in words, and when.
    pub traffic: String,
    /// The action, in words.
    pub action: String,
    /// Addresses that are known of its host names, if it has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<usize>,
    /// Packets of the upload that it has fitted, if that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Counted>,
    /// Packets of the download that it has fitted, if that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Counted>,
}

/// Rules of one direction, as its discipline can carry them out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
}

impl Plan {
    /// Lists of hardware addresses whose hosts' addresses are to be learnt.
    pub(crate) fn macs(&self) -> impl Iterator<Item = &[Mac]> {
        self.steps.iter().map(|step| &*step.traffic.macs).filter(|macs| !macs.is_empty())
    }

    /// Lists of names whose addresses are to be learnt.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &[HostName]> {
        self.steps.iter().map(|step| &*step.traffic.hosts).filter(|hosts| !hosts.is_empty())
    }

    /// Priorities that are written into packets.
    pub(crate) fn classes(&self) -> Vec<u32> {
        let class = |step: &Step| match step.write {
            Write::Class(class) => Some(class),
            _ => None,
        };
        let mut all: Vec<u32> = self.steps.iter().filter_map(class).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Plan {
    /// The same for a discipline with this `handle`.
    pub(crate) fn below(mut self, handle: u32) -> Plan {
        for step in &mut self.steps {
            if let Write::Class(class) = &mut step.write {
                *class = handle & 0xffff_0000 | *class & 0xffff;
            }
        }
        self
    }

    /// The same where packets bear a number only: that which a class has in `numbers`.
    pub(crate) fn numbered(mut self, numbers: &[(u16, u8)]) -> Plan {
        for step in &mut self.steps {
            let Write::Class(class) = step.write else { continue };
            let number = numbers.iter().find(|(minor, _)| *minor == class as u16);
            step.write = Write::Tier(number.map_or(0, |(_, number)| *number));
        }
        self
    }
}

/// Classes that numbers are left for: four bits, of which tiers have one to eight.
pub(crate) const MOST_NUMBERED: usize = 7;

/// Classes to which `rules` lead, each with a number that is none of a tier. They keep it whichever
/// rules hold at present.
pub(crate) fn numbered_classes(rules: &[Rule]) -> Vec<(u16, u8)> {
    let class = |rule: &Rule| match rule.action {
        Action::Class(minor) | Action::Share(minor) => Some(minor),
        Action::Tier(_) | Action::Pass => None,
    };
    let mut all: Vec<u16> = rules.iter().filter_map(class).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().zip((0..=15).rev()).collect()
}

/// A rule, and what the kernel writes into a packet for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) number: usize,
    pub(crate) traffic: Traffic,
    pub(crate) write: Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Into the four bits of the mark.
    Tier(u8),
    /// Into the priority.
    Class(u32),
    /// Nothing: the packet is accepted in front of the queue.
    Pass,
}

/// True if any of `rules` needs bits of the mark.
pub(crate) fn need_mark(rules: &[Rule]) -> bool {
    let needs =
        |rule: &Rule| matches!(rule.action, Action::Tier(_)) || !rule.traffic.cgroups.is_empty();
    rules.iter().any(needs)
}

/// Control groups of `rules`, with their present numbers.
pub(crate) fn cgroups(rules: &[Rule]) -> Vec<cgroup::Found> {
    cgroup::find(rules.iter().flat_map(|rule| rule.traffic.cgroups.clone()).collect())
}

/// Those of `rules` that hold at `moment`.
pub(crate) fn holding(rules: &[Rule], moment: Moment) -> Vec<Rule> {
    let holds = |rule: &&Rule| rule.hours.is_none_or(|hours| hours.hold(moment));
    rules.iter().filter(holds).cloned().collect()
}

/// Meaning of `rules` for the discipline `config` of `direction`.
///
/// # Errors
/// The number of the rule, its key, and what the discipline lacks for it.
pub(crate) fn plan(rules: &[Rule], direction: Direction, config: &Config) -> Result<Plan, String> {
    let step = |rule: &Rule| {
        let write = match rule.action {
            Action::Share(minor) => match class_of(config, minor) {
                Ok(class) => Ok(Write::Class(class)),
                Err(_) => return Ok(None),
            },
            Action::Pass => Ok(Write::Pass),
            Action::Class(minor) => class_of(config, minor).map(Write::Class),
            Action::Tier(tier) => tier_of(config, tier).map(Write::Tier),
        };
        let write = write.map_err(|e| format!("rule {}: {e} (the {direction})", rule.number))?;
        Ok(Some(Step { number: rule.number, traffic: rule.traffic.clone(), write }))
    };
    let steps = rules.iter().filter_map(|rule| step(rule).transpose());
    Ok(Plan { steps: steps.collect::<Result<_, String>>()? })
}

/// The number that cake has for `tier`, which all cakes must agree upon.
fn tier_of(config: &Config, tier: Tier) -> Result<u8, String> {
    let mut modes = Vec::new();
    each_cake(config, &mut |mode| modes.push(mode));
    let Some((&mode, others)) = modes.split_first() else {
        return Err(format!(
            "`tier = {tier}` needs cake, but the discipline is {}: say `qdisc = \"cake …\"`",
            below(config).unwrap_or(config).name()
        ));
    };
    if others.iter().any(|other| *other != mode) {
        return Err(format!("`tier = {tier}`: the cakes of `{}` have other tiers", config.name()));
    }
    let (name, tiers) = match mode {
        DiffservMode::Diffserv3 => ("diffserv3", 3),
        DiffservMode::Diffserv4 => ("diffserv4", 4),
        DiffservMode::Diffserv8 => ("diffserv8", 8),
        DiffservMode::Precedence => ("precedence", 8),
        DiffservMode::Besteffort => ("besteffort", 1),
    };
    let number = match (tier, tiers) {
        (Tier::Number(number), _) => Some(number).filter(|number| *number <= tiers),
        (Tier::Bulk, 3 | 4) => Some(1),
        (Tier::BestEffort, 3 | 4) => Some(2),
        (Tier::Video, 4) => Some(3),
        (Tier::Voice, 3 | 4) => Some(tiers),
        _ => None,
    };
    number.ok_or_else(|| {
        let there = match tiers {
            1 => "one tier only: say `diffserv4`",
            3 => "\"bulk\", \"besteffort\" and \"voice\" (1 to 3)",
            4 => "\"bulk\", \"besteffort\", \"video\" and \"voice\" (1 to 4)",
            _ => "tiers by number only, 1 to 8",
        };
        format!("`tier = {tier}`: `cake {name}` has {there}")
    })
}

/// Calls `each` with the tiers of every cake in `config`.
fn each_cake(config: &Config, each: &mut dyn FnMut(DiffservMode)) {
    if let Config::Cake(cake) = config {
        each(cake.diffserv);
    }
    config.children().into_iter().for_each(|(_, child)| each_cake(child, each));
}

/// The priority that names the class `minor`.
fn class_of(config: &Config, minor: u16) -> Result<u32, String> {
    let classes: Vec<u16> = config.children().iter().map(|(class, _)| *class as u16).collect();
    if classes.contains(&minor) {
        return Ok(Device::default().handle & 0xffff_0000 | u32::from(minor));
    }
    let there: Vec<String> = classes.iter().map(|class| format!("\"1:{class:x}\"")).collect();
    let there = match &there[..] {
        [] => String::from("has no classes"),
        there => format!("has {}", there.join(", ")),
    };
    Err(format!("`class = \"1:{minor:x}\"`: the discipline {} {there}", config.name()))
}

/// `config` with cakes that read their tier from the bits `mask` of the mark.
pub(crate) fn reading_mark(mut config: Config, mask: u32) -> Config {
    fn each(config: &mut Config, mask: u32) {
        if let Config::Cake(cake) = config {
            cake.fwmark = mask;
        }
        config.children_mut().into_iter().for_each(|child| each(child, mask));
    }
    each(&mut config, mask);
    config
}

/// True if a cake's own words say `fwmark`.
pub(crate) fn says_fwmark(config: &Config) -> bool {
    matches!(config, Config::Cake(cake) if cake.fwmark != 0)
        || config.children().iter().any(|(_, child)| says_fwmark(child))
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tier::Bulk => f.write_str("\"bulk\""),
            Tier::BestEffort => f.write_str("\"besteffort\""),
            Tier::Video => f.write_str("\"video\""),
            Tier::Voice => f.write_str("\"voice\""),
            Tier::Number(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Tier(tier) => write!(f, "tier {}", tier.to_string().trim_matches('"')),
            Action::Class(minor) => write!(f, "class 1:{minor:x}"),
            Action::Share(minor) => write!(f, "share, class :{minor:x}"),
            Action::Pass => f.write_str("pass"),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.length) {
            (IpAddr::V4(address), 32) => write!(f, "{address}"),
            (IpAddr::V6(address), 128) => write!(f, "{address}"),
            (address, length) => write!(f, "{address}/{length}"),
        }
    }
}

impl fmt::Display for Traffic {
    /// As words: `udp port 3478,5000-5010 dscp EF`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn listed<T>(name: &str, all: &[T], each: impl Fn(&T) -> String) -> Option<String> {
            let all: Vec<String> = all.iter().map(each).collect();
            (!all.is_empty()).then(|| format!("{name} {}", all.join(",")))
        }
        let protocol = self.protocol.map(read::protocol_name);
        let ports = listed("port", &self.ports, |(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let code = |code: &u8| dscp::name(*code).map_or_else(|| code.to_string(), str::to_owned);
        let words = [
            protocol,
            ports,
            listed("address", &self.addresses, Prefix::to_string),
            listed("mac", &self.macs, Mac::to_string),
            listed("host", &self.hosts, HostName::to_string),
            listed("cgroup", &self.cgroups, Cgroup::to_string),
            listed("dscp", &self.dscps, code),
        ];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(action: Action) -> Rule {
        Rule { number: 2, name: None, traffic: Traffic::default(), action, hours: None }
    }

    fn planned(action: Action, words: &str) -> Result<Write, String> {
        let config = simnel_core::qdisc::parse(words).unwrap();
        plan(&[rule(action)], Direction::Upload, &config).map(|plan| plan.steps[0].write)
    }

    /// As far as they are so few that numbers of tiers are left.
    #[test]
    fn classes_have_numbers_beside_those_of_tiers() {
        let rules = [0x12, 0x11, 0x12].map(|minor| rule(Action::Share(minor)));
        let numbers = numbered_classes(&rules);
        assert_eq!(numbers, [(0x11, 15), (0x12, 14)]);
        let step = |write| Step { number: 1, traffic: Traffic::default(), write };
        let steps = [Write::Class(0x8001_0012), Write::Tier(3)].map(step).to_vec();
        let writes = |plan: Plan| plan.steps.iter().map(|step| step.write).collect::<Vec<_>>();
        let plan = Plan { steps };
        assert_eq!(writes(plan.clone().numbered(&numbers)), [Write::Tier(14), Write::Tier(3)]);
        let below = [Write::Class(0x51a1_0012), Write::Tier(3)];
        assert_eq!(writes(plan.below(0x51a1_0000)), below);
        let many = (0..MOST_NUMBERED).map(|n| rule(Action::Class(n as u16))).collect::<Vec<_>>();
        assert!(numbered_classes(&many).iter().all(|(_, number)| *number > 8));
    }

    #[test]
    fn tiers_have_the_numbers_of_cakes_statistics() {
        for (tier, words, expected) in [
            (Tier::Voice, "cake diffserv4", Ok(4)),
            (Tier::Voice, "cake diffserv3", Ok(3)),
            (Tier::Video, "cake diffserv4", Ok(3)),
            (Tier::Bulk, "cake diffserv4", Ok(1)),
            (Tier::BestEffort, "cake", Ok(2)),
            (Tier::Number(8), "cake diffserv8", Ok(8)),
            (Tier::Video, "cake diffserv3", Err("(1 to 3)")),
            (Tier::Voice, "cake besteffort", Err("one tier only")),
            (Tier::Voice, "cake precedence", Err("by number only")),
            (Tier::Number(5), "cake diffserv4", Err("(1 to 4)")),
            (Tier::Voice, "fq_codel", Err("needs cake, but the discipline is fq_codel")),
            (Tier::Voice, "htb rate 9mbit sfq", Err("needs cake, but the discipline is sfq")),
        ] {
            match (planned(Action::Tier(tier), words), expected) {
                (Ok(Write::Tier(number)), Ok(expected)) => assert_eq!(number, expected, "{words}"),
                (Err(error), Err(expected)) => {
                    assert!(error.contains("rule 2: `tier") && error.contains(expected), "{error}");
                }
                other => panic!("{words}: {other:?}"),
            }
        }
    }

    #[test]
    fn classes_are_those_that_there_are() {
        let words = "htb default 20 class 1:10 rate 1mbit sfq class 1:20 rate 2mbit cake";
        assert_eq!(planned(Action::Class(0x10), words), Ok(Write::Class(0x8001_0010)));
        let error = planned(Action::Class(0x30), words).unwrap_err();
        assert!(error.contains("\"1:30\"") && error.contains("\"1:10\", \"1:20\""), "{error}");
        assert!(planned(Action::Class(1), "cake").unwrap_err().contains("has no classes"));
    }

    #[test]
    fn every_cake_reads_the_mark() {
        let words = "htb default 20 class 1:10 rate 1mbit sfq class 1:20 rate 2mbit cake";
        let config = reading_mark(simnel_core::qdisc::parse(words).unwrap(), 0xf0);
        assert!(says_fwmark(&config) && config.to_string().contains("fwmark 0xf0"));
        for words in [
            "tbf rate 1mbit burst 15k cake",
            "drr class 1:1 cake bandwidth 10mbit diffserv4",
            "tbf rate 1mbit burst 15k drr class 1:1 sfq class 1:2 cake",
        ] {
            let config = reading_mark(simnel_core::qdisc::parse(words).unwrap(), 0xf0);
            assert!(says_fwmark(&config), "{words}");
        }
    }

    #[test]
    fn a_tier_is_the_same_in_every_cake_or_none() {
        let words = "htb default 20 class 1:10 rate 1mbit cake diffserv4 \
                     class 1:20 rate 2mbit cake diffserv4";
        assert_eq!(planned(Action::Tier(Tier::Voice), words), Ok(Write::Tier(4)));
        let other = words.replacen("diffserv4", "diffserv3", 1);
        let error = planned(Action::Tier(Tier::Voice), &other).unwrap_err();
        assert!(error.contains("the cakes of `htb` have other tiers"), "{error}");
    }

    #[test]
    fn a_plan_says_what_is_to_be_learnt_and_which_classes_are_written() {
        let step = |number, macs: &[u8], hosts: &[&str], write| {
            let macs = macs.iter().map(|last| Mac([2, 0, 0, 0, 0, *last])).collect();
            let hosts = hosts.iter().map(|name| HostName::read(name).unwrap()).collect();
            Step { number, traffic: Traffic { macs, hosts, ..Traffic::default() }, write }
        };
        let steps = vec![
            step(1, &[7, 8], &[], Write::Class(0x8001_0020)),
            step(2, &[], &["a.org"], Write::Class(0x8001_0010)),
            step(3, &[], &[], Write::Class(0x8001_0020)),
            step(4, &[9], &["b.org", "c.org"], Write::Tier(1)),
            step(5, &[], &[], Write::Pass),
        ];
        let plan = Plan { steps };
        assert!(plan.macs().map(<[Mac]>::len).eq([2, 1]));
        assert!(plan.hosts().map(<[HostName]>::len).eq([1, 2]));
        assert_eq!(plan.classes(), [0x8001_0010, 0x8001_0020]);
    }

    #[test]
    fn tiers_and_programs_need_bits_of_the_mark() {
        let of = |action, group: Option<&str>| {
            let cgroups = group.map(|path| Cgroup::read(path).unwrap()).into_iter().collect();
            Rule { traffic: Traffic { cgroups, ..Traffic::default() }, ..rule(action) }
        };
        assert!(!need_mark(&[]));
        assert!(!need_mark(&[of(Action::Class(1), None), of(Action::Pass, None)]));
        assert!(need_mark(&[of(Action::Pass, None), of(Action::Tier(Tier::Bulk), None)]));
        assert!(need_mark(&[of(Action::Class(1), Some("a/b"))]));
    }

    #[test]
    fn a_rule_hides_what_fits_nothing_else() {
        let read = |text: &str| {
            let table: Table = toml::from_str(&format!("pass = true\n{text}")).unwrap();
            table.read(1).unwrap()
        };
        for (earlier, later, hidden) in [
            ("port = 80", "port = 80", true),
            ("ports = [80, \"1000-2000\"]", "ports = [\"1000-1001\", 80]", true),
            ("ports = [80]", "ports = [80, 81]", false),
            ("port = 80", "port = 80\nprotocol = \"tcp\"", true),
            ("port = 80\nprotocol = \"tcp\"", "port = 80", false),
            ("port = 80", "port = 80\nprotocol = \"sctp\"", false),
            ("port = 80", "protocol = \"tcp\"", false),
            ("dscp = \"EF\"", "dscp = 46\nport = 80", true),
            ("dscp = \"EF\"\nport = 80", "dscp = 46", false),
            ("address = \"10.0.0.0/8\"", "address = [\"10.1.0.0/16\", \"10.0.0.1\"]", true),
            ("address = \"10.1.0.0/16\"", "address = \"10.0.0.0/8\"", false),
            ("address = \"0.0.0.0/0\"", "address = \"::a00:1\"", false),
            ("address = \"::/0\"", "address = \"10.0.0.1\"", false),
            ("mac = \"02:00:5e:10:00:01\"", "address = \"10.0.0.1\"", false),
            ("host = [\"a.org\", \"b.org\"]", "host = \"b.org\"", true),
            ("port = 80\nhours = \"08:00-12:00\"", "port = 80", false),
            ("port = 80", "port = 80\nhours = \"08:00-12:00\"", true),
            ("port = 80\nday = \"sat\"", "port = 80\nday = \"sat\"", true),
        ] {
            assert_eq!(read(earlier).hides(&read(later)), hidden, "{earlier} / {later}");
        }
    }

    #[test]
    fn only_rules_of_this_hour_hold() {
        let hours = |text| Hours::read(Some(text), &[]).unwrap();
        let one = |number, hours| Rule { number, hours, ..rule(Action::Pass) };
        let all = [one(1, None), one(2, hours("08:00-12:00")), one(3, hours("12:00-14:00"))];
        let held = |minute| {
            let held = holding(&all, Moment { day: 3, minute });
            held.iter().map(|rule| rule.number).collect::<Vec<_>>()
        };
        assert_eq!((held(9 * 60), held(13 * 60), held(0)), (vec![1, 2], vec![1, 3], vec![1]));
    }
}

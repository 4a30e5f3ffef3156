//! `[[rule]]` as it stands in the configuration file.
//!
//! ```toml
//! [[rule]]
//! name = "calls"
//! protocol = "udp"
//! ports = [3478, "5000-5010"]
//! tier = "voice"
//! ```
//!
//! Errors name the rule by its place in the file, and the key.

use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;
use simnel_core::dscp;

use super::hours::{self, Hours};
use super::{Action, Cgroup, HostName, Mac, Prefix, Rule, Tier, Traffic};

/// Items of one list.
const MOST_ITEMS: usize = 32;
/// Characters of a name: `simnel rules` shows it in a line.
const LONGEST_NAME: usize = 64;

/// Names of protocols, as `/etc/protocols` has them.
const PROTOCOLS: [(&str, u8); 7] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ipv6-icmp", 58),
    ("sctp", 132),
];

/// One `[[rule]]`, not yet understood.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// Its author's name for it.
    name: Option<String>,
    /// The interface; without it, all of the file.
    pub(crate) interface: Option<String>,
    protocol: Option<Word>,
    #[serde(alias = "ports")]
    port: Option<List>,
    #[serde(alias = "addresses")]
    address: Option<List>,
    #[serde(alias = "macs")]
    mac: Option<List>,
    #[serde(alias = "hosts")]
    host: Option<List>,
    #[serde(alias = "cgroups")]
    cgroup: Option<List>,
    dscp: Option<List>,
    tier: Option<Word>,
    class: Option<String>,
    pass: Option<bool>,
    hours: Option<String>,
    #[serde(alias = "days")]
    day: Option<List>,
}

/// A number or a word.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number or a string")]
pub(super) enum Word {
    Number(i64),
    Text(String),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Number(number) => write!(f, "{number}"),
            Word::Text(text) => f.write_str(text),
        }
    }
}

/// One, or several in brackets.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, a string, or several in brackets")]
pub(super) enum List {
    One(Word),
    Several(Vec<Word>),
}

impl Table {
    /// The rule that is the `number`th of the file.
    ///
    /// # Errors
    /// The number of the rule, the key, and what was expected.
    pub(crate) fn read(&self, number: usize) -> Result<Rule, String> {
        self.understand(number).map_err(|error| format!("rule {number}: {error}"))
    }

    fn understand(&self, number: usize) -> Result<Rule, String> {
        let traffic = Traffic {
            protocol: self.protocol.as_ref().map(protocol).transpose()?,
            ports: all("port", self.port.as_ref(), ports)?,
            dscps: all("dscp", self.dscp.as_ref(), code_point)?,
            hosts: all("host", self.host.as_ref(), HostName::read)?,
            cgroups: all("cgroup", self.cgroup.as_ref(), Cgroup::read)?,
            ..hosts(self.address.as_ref(), self.mac.as_ref())?
        };
        if traffic == Traffic::default() {
            return Err(
                "no traffic is named: add `port`, `protocol`, `address`, `mac`, `host`, `cgroup` \
                 or `dscp`"
                    .into(),
            );
        }
        if !traffic.ports.is_empty() && traffic.protocol.is_some_and(|p| ![6, 17, 132].contains(&p))
        {
            return Err("`port`: only \"tcp\", \"udp\" and \"sctp\" have ports".into());
        }
        if !traffic.cgroups.is_empty() && !traffic.macs.is_empty() {
            return Err(
                "`cgroup` is about programs of this machine, `mac` about other hosts: leave one out"
                    .into(),
            );
        }
        let hours = hours(self.hours.as_deref(), self.day.as_ref())?;
        let name = name(self.name.as_deref())?;
        Ok(Rule { number, name, traffic, action: self.action()?, hours })
    }

    fn action(&self) -> Result<Action, String> {
        match (&self.tier, &self.class, self.pass) {
            (Some(word), None, None) => tier(word).map(Action::Tier),
            (None, Some(word), None) => class(word).map(Action::Class),
            (None, None, Some(true)) => Ok(Action::Pass),
            (None, None, Some(false)) => Err("`pass = false` says nothing: leave it out".into()),
            (None, None, None) => {
                Err("nothing is to be done: add `tier`, `class` or `pass = true`".into())
            }
            _ => Err("of `tier`, `class` and `pass` only one can be".into()),
        }
    }
}

/// The name that a rule or share has, if it is one for a line of a table.
pub(super) fn name(said: Option<&str>) -> Result<Option<String>, String> {
    let Some(said) = said else { return Ok(None) };
    let (length, longest) = (said.chars().count(), LONGEST_NAME);
    if length > longest || said.contains(char::is_control) {
        let start: String = said.chars().take(longest).collect();
        let rest = if length > longest { "…" } else { "" };
        return Err(format!(
            "`name = \"{}{rest}\"`: expected up to {longest} characters without line breaks and \
             other control characters",
            start.escape_debug()
        ));
    }
    Ok(Some(said.to_owned()))
}

/// Traffic of the hosts that are named.
pub(super) fn hosts(address: Option<&List>, macs: Option<&List>) -> Result<Traffic, String> {
    let addresses = all("address", address, prefix)?;
    let macs = all("mac", macs, mac)?;
    match addresses.is_empty() || macs.is_empty() {
        true => Ok(Traffic { addresses, macs, ..Traffic::default() }),
        false => Err("`address` and `mac` both name hosts: make two of them".into()),
    }
}

/// Hours and days at which something holds; None if neither is said.
pub(super) fn hours(text: Option<&str>, days: Option<&List>) -> Result<Option<Hours>, String> {
    Hours::read(text, &all("day", days, hours::day)?)
}

/// Every item of a list, each once.
fn all<T: PartialEq>(
    key: &str,
    list: Option<&List>,
    each: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let words = match list {
        None => return Ok(Vec::new()),
        Some(List::One(word)) => std::slice::from_ref(word),
        Some(List::Several(words)) => words,
    };
    if words.is_empty() || words.len() > MOST_ITEMS {
        return Err(format!("`{key}`: 1 to {MOST_ITEMS} items, not {}", words.len()));
    }
    let mut items = Vec::new();
    for word in words {
        let text = word.to_string();
        let item = each(text.trim())
            .map_err(|expected| format!("`{key} = \"{text}\"`: expected {expected}"))?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

fn protocol(word: &Word) -> Result<u8, String> {
    let text = word.to_string();
    let named = PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&text));
    named.map(|(_, number)| *number).or_else(|| text.parse().ok()).ok_or_else(|| {
        let names: Vec<&str> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
        format!("`protocol = \"{text}\"`: expected {} or a number to 255", names.join(", "))
    })
}

/// The name of a protocol, or its number.
pub(super) fn protocol_name(number: u8) -> String {
    let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
    named.map_or_else(|| format!("protocol {number}"), |(name, _)| (*name).to_owned())
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok();
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("a port from 0 to 65535, or a range such as \"5000-5010\"".into()),
    }
}

pub(super) fn prefix(text: &str) -> Result<Prefix, String> {
    const EXPECTED: &str = "an address or a prefix, such as 192.168.1.20 or fd00::/64";
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| EXPECTED)?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => longest,
        Some(text) => text.parse().ok().filter(|length| *length <= longest).ok_or(EXPECTED)?,
    };
    // A shift by all bits would be none.
    let address = match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((u32::from(a) & mask).into())
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((u128::from(a) & mask).into())
        }
    };
    Ok(Prefix { address, length })
}

pub(super) fn mac(text: &str) -> Result<Mac, String> {
    let expected = || String::from("a hardware address such as 02:00:5e:10:00:01");
    let mut bytes = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'));
        *byte = part.and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or_else(expected)?;
    }
    match parts.next() {
        None => Ok(Mac(bytes)),
        Some(_) => Err(expected()),
    }
}

fn code_point(text: &str) -> Result<u8, String> {
    dscp::parse(text).ok_or_else(|| "a code point such as EF, CS1 or 0 to 63".into())
}

fn tier(word: &Word) -> Result<Tier, String> {
    const EXPECTED: &str =
        "expected \"voice\", \"video\", \"besteffort\", \"bulk\", or a number from 1 to 8";
    match word {
        Word::Number(number @ 1..=8) => Ok(Tier::Number(*number as u8)),
        Word::Text(text) => match text.as_str() {
            "voice" => Ok(Tier::Voice),
            "video" => Ok(Tier::Video),
            "besteffort" => Ok(Tier::BestEffort),
            "bulk" => Ok(Tier::Bulk),
            _ => Err(format!("`tier = \"{text}\"`: {EXPECTED}")),
        },
        Word::Number(number) => Err(format!("`tier = {number}`: {EXPECTED}")),
    }
}

fn class(text: &str) -> Result<u16, String> {
    let minor = text.strip_prefix("1:").unwrap_or(text);
    let minor = if minor.starts_with('+') { "" } else { minor };
    let known = u16::from_str_radix(minor, 16).ok().filter(|minor| *minor > 0);
    known.ok_or_else(|| format!("`class = \"{text}\"`: expected a class such as \"1:10\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rule, String> {
        toml::from_str::<Table>(text).map_err(|e| e.to_string())?.read(3)
    }

    #[test]
    fn a_name_is_one_for_a_line() {
        let named = |name: &str| read(&format!("name = \"{name}\"\nport = 1\npass = true"));
        let longest = "é".repeat(LONGEST_NAME);
        assert_eq!(named(&longest).unwrap().name, Some(longest.clone()));
        for name in [&(longest + "x"), "a\\nb", "\\u001b[2J", "\\t"] {
            let error = named(name).unwrap_err();
            assert!(error.starts_with("rule 3: `name = \"") && error.contains("64"), "{error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn rules_are_read_as_they_are_shown() {
        for (text, traffic, action) in [
            ("port = 443\ntier = \"bulk\"", "port 443", "tier bulk"),
            (
                "protocol = \"udp\"\nports = [3478, \"5000-5010\", \"3478\"]\ntier = 4",
                "udp port 3478,5000-5010",
                "tier 4",
            ),
            ("address = \"192.168.1.77/24\"\npass = true", "address 192.168.1.0/24", "pass"),
            ("address = [\"fd00::1\", \"::/0\"]\npass = true", "address fd00::1,::/0", "pass"),
            (
                "mac = \"02-00-5E-10-00-01\"\nclass = \"1:1f\"",
                "mac 02:00:5e:10:00:01",
                "class 1:1f",
            ),
            (
                "host = [\"Video.example.org.\"]\nmac = \"02:00:5e:10:00:01\"\ntier = 1",
                "mac 02:00:5e:10:00:01 host video.example.org",
                "tier 1",
            ),
            ("cgroup = \"/a.slice/b\"\ntier = 1", "cgroup a.slice/b", "tier 1"),
            ("dscp = [\"ef\", 46, 8]\ntier = \"video\"", "dscp EF,CS1", "tier video"),
            ("protocol = 4\ntier = \"besteffort\"", "protocol 4", "tier besteffort"),
            ("port = 5060\ntier = \"voice\"", "port 5060", "tier voice"),
        ] {
            let rule = read(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((&*rule.traffic.to_string(), &*rule.action.to_string()), (traffic, action));
        }
    }

    #[test]
    fn errors_name_the_rule_and_the_key() {
        for (text, expected) in [
            ("port = 70000\npass = true", "`port = \"70000\"`: expected a port from 0"),
            ("port = \"9-8\"\npass = true", "`port = \"9-8\"`"),
            ("port = []\npass = true", "`port`: 1 to 32 items, not 0"),
            ("address = \"10.0.0.0/33\"\npass = true", "`address = \"10.0.0.0/33\"`"),
            ("mac = \"02:00:5e:10:00\"\npass = true", "`mac = \"02:00:5e:10:00\"`"),
            ("mac = \"02:00:5e:10:00:+1\"\npass = true", "a hardware address"),
            ("host = \"*.a.org\"\ntier = 1", "expected \"a.org\": names below it are included"),
            ("cgroup = \"a//b\"\ntier = 1", "expected a path such as"),
            (
                "cgroup = \"a\"\nmac = \"02:00:5e:10:00:01\"\ntier = 1",
                "`cgroup` is about programs of this machine",
            ),
            ("dscp = 64\npass = true", "`dscp = \"64\"`"),
            ("port = 1\ntier = \"vioce\"", "`tier = \"vioce\"`: expected \"voice\""),
            ("port = 1\ntier = 0", "`tier = 0`"),
            ("port = 1\nclass = \"1:0\"", "`class = \"1:0\"`"),
            ("port = 1", "nothing is to be done"),
            ("port = 1\npass = false", "leave it out"),
            ("port = 1\ntier = 1\npass = true", "only one can be"),
            ("tier = 1", "no traffic is named"),
            ("protocol = \"icmp\"\nport = 1\npass = true", "`port`: only"),
            ("protocol = \"tpc\"\npass = true", "`protocol = \"tpc\"`: expected icmp, tcp"),
            ("mac = \"02:00:5e:10:00:01\"\naddress = \"1.1.1.1\"\npass = true", "make two of them"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with("rule 3: ") && error.contains(expected), "{error}");
        }
        assert!(read("prot = 1\npass = true").unwrap_err().contains("`prot`"));
        let many = |items: usize| vec!["1"; items].join(", ");
        assert!(read(&format!("port = [{}]\npass = true", many(32))).is_ok());
        let error = read(&format!("port = [{}]\npass = true", many(33))).unwrap_err();
        assert!(error.contains("`port`: 1 to 32 items, not 33"), "{error}");
    }
}

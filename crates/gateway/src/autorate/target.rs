//! Reflectors as they are named: an address is asked by ICMP, `irtt:ADDRESS[:PORT]` by irtt.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use simnel_measure::irtt::PORT;

/// Before the address of an irtt server.
const IRTT: &str = "irtt:";

/// A reflector, and how it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// By ICMP or ICMPv6.
    Icmp(IpAddr),
    /// By irtt's protocol, over UDP.
    Irtt(SocketAddr),
}

/// Protocol by which a reflector is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By ICMP or ICMPv6.
    #[default]
    Icmp,
    /// By irtt's protocol, over UDP.
    Irtt,
}

impl Target {
    /// Its address.
    pub fn address(self) -> IpAddr {
        match self {
            Target::Icmp(address) => address,
            Target::Irtt(address) => address.ip(),
        }
    }

    /// Port of an irtt server.
    pub fn port(self) -> Option<u16> {
        match self {
            Target::Icmp(_) => None,
            Target::Irtt(address) => Some(address.port()),
        }
    }

    /// Protocol by which it is asked.
    pub fn kind(self) -> Kind {
        match self {
            Target::Icmp(_) => Kind::Icmp,
            Target::Irtt(_) => Kind::Irtt,
        }
    }

    /// True if datagrams of this irtt server come from `address`.
    pub(crate) fn is_irtt(self, address: SocketAddr) -> bool {
        // Not what else a socket address has: scope and flow label.
        self.port() == Some(address.port()) && self.address() == address.ip()
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(word: &str) -> Result<Target, String> {
        let Some(rest) = word.strip_prefix(IRTT) else {
            let address = word.parse().map_err(|_| {
                format!(
                    "`{word}` is no address: for example 1.1.1.1 or 2606:4700::1111, or \
                     {IRTT}192.0.2.1 where an irtt server is"
                )
            });
            return address.map(Target::Icmp);
        };
        let bare = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let address = match bare.unwrap_or(rest).parse() {
            Ok(ip) => Some(SocketAddr::new(ip, PORT)),
            Err(_) => rest.parse::<SocketAddr>().ok().filter(|address| address.port() != 0),
        };
        address.map(Target::Irtt).ok_or_else(|| {
            format!(
                "`{word}` names no irtt server by its address: for example {IRTT}192.0.2.1, \
                 {IRTT}192.0.2.1:{PORT} or {IRTT}[2001:db8::1]:{PORT}"
            )
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Target::Icmp(address) => address.to_string(),
            Target::Irtt(address) if address.port() == PORT => format!("{IRTT}{}", address.ip()),
            Target::Irtt(address) => format!("{IRTT}{address}"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_they_are_shown() {
        for (word, shown) in [
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("irtt:192.0.2.1", "irtt:192.0.2.1"),
            ("irtt:192.0.2.1:2112", "irtt:192.0.2.1"),
            ("irtt:192.0.2.1:9", "irtt:192.0.2.1:9"),
            ("irtt:2001:db8::1", "irtt:2001:db8::1"),
            ("irtt:[2001:db8::1]", "irtt:2001:db8::1"),
            ("irtt:[2001:db8::1]:2112", "irtt:2001:db8::1"),
            ("irtt:[2001:db8::1]:2113", "irtt:[2001:db8::1]:2113"),
        ] {
            let target: Target = word.parse().unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(shown.parse(), Ok(target));
            assert_eq!(target.kind() == Kind::Irtt, word.starts_with("irtt"));
        }
    }

    #[test]
    fn what_is_no_target_says_how_to_name_one() {
        for (word, said) in [
            ("example.org", "`example.org` is no address"),
            ("192.0.2.1:2112", "irtt:192.0.2.1 where an irtt server is"),
            ("irtt:", "`irtt:` names no irtt server"),
            ("irtt:example.org", "by its address"),
            ("irtt:192.0.2.1:0", "irtt:[2001:db8::1]:2112"),
            ("irtt:192.0.2.1:65536", "names no irtt server"),
            ("irtt:[192.0.2.1", "names no irtt server"),
            ("IRTT:192.0.2.1", "is no address"),
        ] {
            let error = word.parse::<Target>().unwrap_err();
            assert!(error.contains(said), "{word}: {error}");
        }
    }

    /// All else that a socket says, scope and flow label, does not matter.
    #[test]
    fn a_server_is_known_by_its_address_and_port() {
        let server: Target = "irtt:[2001:db8::1]:9".parse().unwrap();
        assert_eq!((server.port(), server.address()), (Some(9), "2001:db8::1".parse().unwrap()));
        for (from, is_it) in [
            ("[2001:db8::1]:9", true),
            ("[2001:db8::1%3]:9", true),
            ("[2001:db8::1]:10", false),
            ("[2001:db8::2]:9", false),
        ] {
            assert_eq!(server.is_irtt(from.parse().unwrap()), is_it, "{from}");
        }
        let other: Target = "2001:db8::1".parse().unwrap();
        assert!(other.port().is_none() && !other.is_irtt("[2001:db8::1]:9".parse().unwrap()));
    }
}

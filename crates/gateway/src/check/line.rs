//! The interface to the Internet: which it is, its state, its link, the longest packets on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::links::{self, LinkType};
use super::{Finding, Level};
use crate::links::{devices, Device};
use crate::routes;

/// Interfaces that the default routes leave by, the preferred one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeadsOut {
    /// Of IPv4.
    pub ipv4: Vec<String>,
    /// Of IPv6.
    pub ipv6: Vec<String>,
}

impl LeadsOut {
    /// The one that leads to the Internet: IPv4's preferred one, or else IPv6's.
    pub fn interface(&self) -> Option<&str> {
        self.ipv4.first().or(self.ipv6.first()).map(String::as_str)
    }
}

/// Interfaces that lead to everywhere, by the main table.
pub fn leads_out() -> LeadsOut {
    let [ipv4, ipv6] = routes::preferred();
    LeadsOut { ipv4, ipv6 }
}

/// Findings about an interface, and its link type if it is there.
pub(super) struct Line {
    pub(super) findings: Vec<Finding>,
    pub(super) link: Option<LinkType>,
}

pub(super) fn findings(name: Option<&str>, out: &LeadsOut) -> Line {
    let mut line = Line { findings: vec![routes_out(out, name)], link: None };
    let Some(name) = name else { return line };
    let all = devices().unwrap_or_default();
    let Some(interface) = all.iter().find(|interface| interface.name == name) else {
        let what = format!("there is no interface `{name}`");
        let fix = "`ip link` lists those there are";
        line.findings.push(Finding::new(
            Level::Error,
            "interface",
            what,
            "nothing can be shaped",
            fix,
        ));
        return line;
    };
    let link = links::of(interface);
    line.link = Some(link);
    line.findings.push(state(interface));
    line.findings.push(kind(interface, link, &all));
    line.findings.push(mtu(interface, link));
    line.findings.extend(path_mtu(interface, out));
    line
}

fn routes_out(out: &LeadsOut, name: Option<&str>) -> Finding {
    const ID: &str = "leads-out";
    let list = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>();
    let (four, six) = (list(&out.ipv4), list(&out.ipv6));
    let Some(first) = out.interface() else {
        let why = "nothing tells which interface is the line";
        let fix = "add a default route, or name the interface: `simnel check eth0`";
        let level = if name.is_some() { Level::Note } else { Level::Error };
        return Finding::new(level, ID, "there is no default route", why, fix);
    };
    if name.is_some_and(|name| !out.ipv4.iter().chain(&out.ipv6).any(|way| way == name)) {
        let what = format!("`{first}` leads to the Internet, and what is asked about does not");
        let why = "only packets through the line's interface wait for the line";
        return Finding::new(Level::Warning, ID, what, why, format!("`simnel check {first}`"));
    }
    let differ = matches!((out.ipv4.first(), out.ipv6.first()), (Some(a), Some(b)) if a != b);
    if differ {
        let what = format!("IPv4 leaves by {}, IPv6 by {}", four.join(", "), six.join(", "));
        let why = "what one interface sends is not seen at the other: they share no rate";
        let fix = "shape both, or the interface below both of them";
        return Finding::new(Level::Warning, ID, what, why, fix);
    }
    if four.len() > 1 || six.len() > 1 {
        let ways = if four.len() > 1 { four } else { six };
        let what = format!("several default routes: {}", ways.join(", "));
        let why = "each way out is a line of its own, with its own rates";
        return Finding::new(Level::Note, ID, what, why, "shape each of them that is in use");
    }
    let families = match (four.is_empty(), six.is_empty()) {
        (false, false) => "IPv4 and IPv6",
        (false, true) => "IPv4",
        _ => "IPv6",
    };
    Finding::ok(ID, format!("`{first}` leads to the Internet ({families})"))
}

fn state(interface: &Device) -> Finding {
    let name = &interface.name;
    if name == "lo" {
        let fix = "name the one that leads to the Internet";
        let what = "`lo` is the loopback interface";
        return Finding::new(Level::Error, "interface", what, "it leads nowhere", fix);
    }
    match (interface.is_up, interface.is_running) {
        (false, _) => Finding::new(
            Level::Warning,
            "interface",
            format!("`{name}` is down"),
            "no packets pass",
            format!("`ip link set {name} up`"),
        ),
        (true, false) => Finding::new(
            Level::Warning,
            "interface",
            format!("`{name}` has no carrier"),
            "no packets pass",
            "look at the cable and the modem",
        ),
        (true, true) => Finding::ok("interface", format!("`{name}` is up")),
    }
}

fn kind(interface: &Device, link: LinkType, all: &[Device]) -> Finding {
    const ID: &str = "link";
    let overhead = link.overhead();
    let words = overhead.word.map_or("no words for overhead fit".into(), |w| format!("`{w}` fits"));
    let what = format!("`{}`: {}; {words}", interface.name, link.name());
    let named = |index: u32| all.iter().find(|other| other.index == index);
    if let Some(master) = interface.master.and_then(named) {
        let why = format!("it is a port of `{}`: packets that are routed pass there", master.name);
        let fix = format!("shape `{}`, unless this machine only bridges", master.name);
        return Finding::new(Level::Note, ID, what, why, fix);
    }
    match link {
        LinkType::Tunnel => {
            let fix = "shape the interface that the tunnel's packets leave by";
            Finding::new(Level::Warning, ID, what, overhead.why, fix)
        }
        LinkType::Wireless => {
            let fix = "set the rate low enough for the radio's worst times, or shape at the modem";
            Finding::new(Level::Note, ID, what, overhead.why, fix)
        }
        LinkType::Mobile | LinkType::Ppp => {
            let why = "the rate of a mobile line changes all the time";
            let fix = "set what it always has, and measure now and then: `simnel test`";
            Finding::new(Level::Note, ID, what, why, fix)
        }
        _ => Finding::ok(ID, format!("{what}: {}", overhead.why)),
    }
}

/// IPv6's least (RFC 8200, section 5).
const LEAST: u32 = 1280;

fn mtu(interface: &Device, link: LinkType) -> Finding {
    let (id, mtu) = ("mtu", interface.mtu);
    let what = format!("MTU {mtu}");
    let fix = format!("`ip link set {} mtu 1500`", interface.name);
    match mtu {
        0..LEAST => {
            let why = "IPv6 needs 1280, and small packets cost more of the line and the processor";
            Finding::new(Level::Warning, id, what, why, fix)
        }
        1501.. if link != LinkType::Virtual => {
            let why = "the Internet's packets have 1500 bytes at most";
            Finding::new(Level::Note, id, what, why, fix)
        }
        _ => Finding::ok(id, what),
    }
}

/// The longest packets by the kernel's routes: a smaller MTU of a route, or one that a
/// router told of. Nothing is sent.
fn path_mtu(interface: &Device, out: &LeadsOut) -> Option<Finding> {
    let addresses = [
        (&out.ipv4, IpAddr::from(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::from(Ipv4Addr::UNSPECIFIED)),
        (
            &out.ipv6,
            IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
            IpAddr::from(Ipv6Addr::UNSPECIFIED),
        ),
    ];
    for (ways, address, any) in addresses {
        if ways.first() != Some(&interface.name) {
            continue;
        }
        let asked = UdpSocket::bind(SocketAddr::new(any, 0))
            .and_then(|socket| socket.connect(SocketAddr::new(address, 9)).map(|()| socket));
        let Ok(socket) = asked else { continue };
        let mtu = match any {
            IpAddr::V4(_) => rustix::net::sockopt::ip_mtu(&socket),
            IpAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&socket),
        };
        if let Some(mtu) = mtu.ok().filter(|mtu| *mtu < interface.mtu) {
            let what = format!("the default route allows {mtu} bytes, the interface {}", {
                interface.mtu
            });
            let why = "longer packets of others are lost unless their senders are told";
            let fix = "`tcp option maxseg size set rt mtu` in the firewall's forward chain";
            return Some(Finding::new(Level::Note, "path-mtu", what, why, fix));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(four: &[&str], six: &[&str]) -> LeadsOut {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        LeadsOut { ipv4: owned(four), ipv6: owned(six) }
    }

    #[test]
    fn ways_out_that_differ_are_named() {
        let told = |four: &[&str], six: &[&str], name| routes_out(&ways(four, six), name);
        assert_eq!(told(&["wan"], &["wan"], Some("wan")).level, Level::Ok);
        assert!(told(&["wan"], &[], None).what.contains("(IPv4)"));
        assert!(told(&[], &["wan"], None).what.contains("(IPv6)"));
        let differ = told(&["wan"], &["he-ipv6"], Some("wan"));
        assert_eq!(differ.level, Level::Warning);
        assert!(differ.what.contains("`wan`") && differ.what.contains("`he-ipv6`"));
        assert_eq!(told(&["wan", "lte"], &[], Some("lte")).level, Level::Note);
        assert_eq!(told(&["wan"], &[], Some("lan")).level, Level::Warning);
        assert_eq!(told(&[], &[], None).level, Level::Error);
        assert_eq!(told(&[], &[], Some("wan")).level, Level::Note);
    }

    #[test]
    fn longest_packets_that_are_odd_are_told() {
        let level = |mtu| mtu_of(mtu).level;
        fn mtu_of(mtu: u32) -> Finding {
            let interface = Device { name: "wan".into(), mtu, ..Device::default() };
            super::mtu(&interface, LinkType::Ethernet)
        }
        assert_eq!((level(1279), level(1280)), (Level::Warning, Level::Ok));
        assert_eq!((level(1500), level(9000)), (Level::Ok, Level::Note));
        assert!(mtu_of(576).fix.contains("ip link set wan mtu 1500"));
    }

    #[test]
    fn a_port_of_a_bridge_is_not_where_routed_packets_pass() {
        let bridge = Device { index: 3, name: "br-wan".into(), ..Device::default() };
        let port = Device { name: "eth1".into(), master: Some(3), ..Device::default() };
        let told = kind(&port, LinkType::Ethernet, &[bridge, port.clone()]);
        assert_eq!(told.level, Level::Note);
        assert!(told.fix.starts_with("shape `br-wan`"));
        assert_eq!(kind(&port, LinkType::Ethernet, &[]).level, Level::Ok);
    }
}

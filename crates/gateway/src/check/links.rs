//! Kinds of links that interfaces are, and the words of `man tc-cake` for what a kind adds to each
//! packet.
//!
//! The kind comes from rtnetlink (linux/if_link.h): the hardware type, and the name of the driver
//! of virtual interfaces. Radios and modems are told by sysfs (`DEVTYPE`, the name of the driver).

use std::fs;
use std::path::Path;

use crate::links::{devices, Device};

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_PPP: u16 = 512;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_NONE: u16 = 0xfffe;

/// Kinds of links, as far as this machine can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet port, with whatever modem behind it.
    Ethernet,
    /// A VLAN on an Ethernet port.
    Vlan,
    /// PPP over Ethernet.
    Pppoe,
    /// PPP over something else, such as a modem's serial line.
    Ppp,
    /// A DSL modem in this machine, in packet mode (VDSL2).
    Vdsl,
    /// A DSL modem in this machine, over ATM (ADSL).
    Atm,
    /// A radio of this machine's.
    Wireless,
    /// A mobile modem.
    Mobile,
    /// Packets inside packets: WireGuard, OpenVPN, 6in4.
    Tunnel,
    /// Several ports as one.
    Bridge,
    /// A device of the kernel's own.
    Virtual,
}

/// Bytes that a link adds to each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// The word of `man tc-cake`; none where nothing fits.
    pub word: Option<&'static str>,
    /// Bytes that the word counts beside IP's; ATM's cells come on top.
    pub bytes: u32,
    /// In a sentence.
    pub why: &'static str,
}

impl LinkType {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            LinkType::Ethernet => "Ethernet",
            LinkType::Vlan => "VLAN on Ethernet",
            LinkType::Pppoe => "PPPoE",
            LinkType::Ppp => "PPP",
            LinkType::Vdsl => "VDSL modem",
            LinkType::Atm => "ADSL modem",
            LinkType::Wireless => "WiFi",
            LinkType::Mobile => "mobile modem",
            LinkType::Tunnel => "tunnel",
            LinkType::Bridge => "bridge",
            LinkType::Virtual => "virtual device",
        }
    }

    /// The words for what it adds to each packet.
    pub const fn overhead(self) -> Overhead {
        let (word, bytes, why) = match self {
            LinkType::Ethernet | LinkType::Bridge => (
                Some("ethernet"),
                38,
                "38 bytes a packet beside IP's: enough for cable, fibre and VDSL2 behind an \
                 Ethernet port (ADSL wants more: `pppoe-vcmux` and others, man tc-cake)",
            ),
            LinkType::Vlan => {
                (Some("ethernet ether-vlan"), 42, "38 bytes of Ethernet and 4 of the VLAN's tag")
            }
            LinkType::Pppoe => (Some("pppoe-ptm"), 30, "PPPoE over VDSL2 or fibre"),
            LinkType::Ppp => (None, 0, "PPP on a modem's line: no frames that are known"),
            LinkType::Vdsl => (Some("bridged-ptm"), 22, "Ethernet frames over VDSL2"),
            LinkType::Atm => (Some("bridged-llcsnap"), 32, "Ethernet frames in ATM's cells"),
            LinkType::Wireless => (None, 14, "a radio's overhead and rate change all the time"),
            LinkType::Mobile | LinkType::Virtual => {
                (None, 0, "packets without frames of their own")
            }
            LinkType::Tunnel => (
                None,
                0,
                "a tunnel's packets leave by another interface, which is the one to shape",
            ),
        };
        Overhead { word, bytes, why }
    }
}

/// Link type of `interface`, if it is there.
pub fn link_type(interface: &str) -> Option<LinkType> {
    let found = devices().ok()?.into_iter().find(|found| found.name == interface)?;
    Some(of(&found))
}

/// Link type of `interface`.
pub(super) fn of(interface: &Device) -> LinkType {
    let place = Path::new("/sys/class/net").join(&interface.name);
    let uevent = super::read(place.join("uevent")).unwrap_or_default();
    let devtype = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
    let driver = fs::read_link(place.join("device/driver")).ok();
    let driver = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let is_pppoe = super::read("/proc/thread-self/net/pppoe").is_some_and(|all| has_session(&all));
    classify(interface, devtype.unwrap_or_default(), &driver.unwrap_or_default(), is_pppoe)
}

/// True if the kernel's list of PPPoE sessions has one: a line behind the heading.
fn has_session(list: &str) -> bool {
    list.lines().nth(1).is_some()
}

/// Link type by what is known of an interface; `is_pppoe` if the machine has a PPPoE session.
fn classify(interface: &Device, devtype: &str, driver: &str, is_pppoe: bool) -> LinkType {
    /// Drivers of mobile modems that look like Ethernet.
    const MODEMS: [&str; 6] =
        ["cdc_mbim", "qmi_wwan", "huawei_cdc_ncm", "sierra_net", "hso", "rndis_host"];
    /// MTU of PPPoE without RFC 4638.
    const PPPOE_MTU: u32 = 1492;
    let named = |prefixes: &[&str]| {
        prefixes.iter().any(|prefix| {
            let rest = interface.name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let tunnels =
        ["wireguard", "tun", "ipip", "sit", "gre", "ip6gre", "ip6tnl", "vti", "vti6", "xfrm"];
    match interface.kind.as_str() {
        "vlan" => return LinkType::Vlan,
        "bridge" | "bond" | "team" => return LinkType::Bridge,
        // OpenVPN's `tap` has Ethernet frames, and is as much a tunnel.
        kind if tunnels.contains(&kind) => return LinkType::Tunnel,
        "gretap" | "ip6gretap" | "vxlan" | "geneve" | "l2tp" => return LinkType::Tunnel,
        "ifb" | "dummy" => return LinkType::Virtual,
        _ => {}
    }
    match interface.hardware {
        ARPHRD_PPP if is_pppoe || interface.mtu == PPPOE_MTU => LinkType::Pppoe,
        ARPHRD_PPP if interface.name.starts_with("pppoe") => LinkType::Pppoe,
        ARPHRD_PPP => LinkType::Ppp,
        _ if devtype == "wlan" => LinkType::Wireless,
        _ if devtype == "wwan" || named(&["wwan"]) => LinkType::Mobile,
        _ if MODEMS.contains(&driver) => LinkType::Mobile,
        ARPHRD_RAWIP => LinkType::Mobile,
        ARPHRD_NONE => LinkType::Tunnel,
        ARPHRD_ETHER if named(&["nas", "atm"]) => LinkType::Atm,
        ARPHRD_ETHER if named(&["ptm", "dsl"]) => LinkType::Vdsl,
        ARPHRD_ETHER => LinkType::Ethernet,
        _ => LinkType::Virtual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_no_link() {
        let all = devices().unwrap();
        assert!(all.iter().any(|found| found.name == "lo" && found.hardware == 772));
        assert_eq!(link_type("lo"), Some(LinkType::Virtual));
        assert_eq!(link_type("no-such-device"), None);
    }

    /// As the kernel prints it, without a session and with one.
    #[test]
    fn a_heading_alone_is_no_session() {
        let heading = "Id       Address              Device\n";
        assert!(!has_session("") && !has_session(heading));
        assert!(has_session(&format!("{heading}01000000 00:11:22:33:44:55     eth0\n")));
    }

    #[test]
    fn links_are_told_by_what_is_known_of_them() {
        let of = |name: &str, hardware, mtu, kind: &str, devtype, driver, pppoe| {
            let (name, kind) = (name.into(), kind.into());
            let interface = Device { name, hardware, mtu, kind, ..Device::default() };
            classify(&interface, devtype, driver, pppoe)
        };
        assert_eq!(of("eth0", 1, 1500, "", "", "r8169", true), LinkType::Ethernet);
        assert_eq!(of("eth0", 1, 1500, "veth", "", "", false), LinkType::Ethernet);
        assert_eq!(of("eth0.7", 1, 1500, "vlan", "vlan", "", false), LinkType::Vlan);
        assert_eq!(of("ppp0", 512, 1492, "ppp", "ppp", "", false), LinkType::Pppoe);
        assert_eq!(of("ppp0", 512, 1500, "ppp", "ppp", "", true), LinkType::Pppoe);
        assert_eq!(of("ppp0", 512, 1500, "ppp", "ppp", "", false), LinkType::Ppp);
        assert_eq!(of("wlan0", 1, 1500, "", "wlan", "ath9k", false), LinkType::Wireless);
        assert_eq!(of("wwan0", 1, 1500, "", "wwan", "qmi_wwan", false), LinkType::Mobile);
        assert_eq!(of("usb0", 1, 1500, "", "", "rndis_host", false), LinkType::Mobile);
        assert_eq!(of("rmnet0", 519, 1500, "", "", "", false), LinkType::Mobile);
        assert_eq!(of("wg0", 65534, 1420, "wireguard", "", "", false), LinkType::Tunnel);
        assert_eq!(of("tap0", 1, 1500, "tun", "", "", false), LinkType::Tunnel);
        assert_eq!(of("tun0", 65534, 1500, "", "", "", false), LinkType::Tunnel);
        for (kind, hardware) in [("ifb", 1), ("dummy", 1), ("", 772)] {
            assert_eq!(of("v0", hardware, 1500, kind, "", "", false), LinkType::Virtual, "{kind}");
        }
        for kind in ["gretap", "ip6gretap", "vxlan", "geneve", "l2tp"] {
            assert_eq!(of("t0", 1, 1450, kind, "", "", false), LinkType::Tunnel, "{kind}");
        }
        // OpenWrt's name of a session, whose MTU RFC 4638 makes a whole one.
        assert_eq!(of("pppoe-wan", 512, 1500, "", "", "", false), LinkType::Pppoe);
        assert_eq!(of("wwan0", 1, 1500, "", "", "", false), LinkType::Mobile);
        assert_eq!(of("br-wan", 1, 1500, "bridge", "bridge", "", false), LinkType::Bridge);
        assert_eq!(of("nas0", 1, 1500, "", "", "", false), LinkType::Atm);
        assert_eq!(of("dsl0", 1, 1500, "", "", "", false), LinkType::Vdsl);
        // A name that only begins like a modem's.
        assert_eq!(of("dslan", 1, 1500, "", "", "", false), LinkType::Ethernet);
    }

    /// Cake's own table of overheads is the witness.
    #[test]
    fn the_words_count_the_bytes_that_are_said() {
        use LinkType::*;
        let all =
            [Ethernet, Vlan, Pppoe, Ppp, Vdsl, Atm, Wireless, Mobile, Tunnel, Bridge, Virtual];
        let names: std::collections::BTreeSet<&str> = all.iter().map(|link| link.name()).collect();
        assert_eq!(names.len(), all.len(), "each can be told from the others");
        for link in all {
            let Overhead { word: Some(word), bytes, .. } = link.overhead() else { continue };
            let config = simnel_core::qdisc::parse(&format!("cake {word}")).unwrap().to_string();
            assert!(config.contains(&format!("overhead {bytes}")), "{link:?}: {config}");
            assert_eq!(config.contains(" atm"), link == Atm, "{config}");
        }
    }
}

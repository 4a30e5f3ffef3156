//! Devices over rtnetlink: made, removed, named, and joined to a bridge (linux/if_link.h).

use std::io;
use std::net::IpAddr;

use crate::addresses;
use crate::error::Error;
use crate::mac::Mac;
use crate::netlink::{attributes, text, Message, Refusal, Socket, Writer};
use crate::sys::{self, Query};

const IFLA_ADDRESS: i32 = 1;
const IFLA_IFNAME: i32 = 3;
const IFLA_MTU: i32 = 4;
const IFLA_LINK: i32 = 5;
const IFLA_MASTER: i32 = 10;
const IFLA_LINKINFO: i32 = 18;
const IFLA_INFO_KIND: i32 = 1;
const IFLA_INFO_DATA: i32 = 2;
const IFLA_INFO_SLAVE_KIND: i32 = 4;
const IFLA_BR_STP_STATE: i32 = 5;
const IFLA_BR_VLAN_FILTERING: i32 = 7;
/// Bytes of a `struct ifinfomsg`.
const FIXED: usize = 16;

/// The bridge that [`join`] makes.
const BRIDGE: &str = "simnel-br";

/// Family, padding, type; number; then flags and which of them count: IFF_UP, or none.
fn fixed_part(index: u32, up: bool) -> [u8; FIXED] {
    let up = if up { libc::IFF_UP as u32 } else { 0 };
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&up.to_ne_bytes());
    fixed[12..].copy_from_slice(&up.to_ne_bytes());
    fixed
}

/// A request for a new device of a `kind`, set up.
pub(crate) fn new(name: &str, kind: &str) -> Writer {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_NEWLINK.into(), flags, 1, &fixed_part(0, true));
    writer.string(IFLA_IFNAME, name);
    let info = writer.start(IFLA_LINKINFO);
    writer.string(IFLA_INFO_KIND, kind);
    writer.end(info);
    writer.finish();
    writer
}

/// A request to remove device number `index`.
pub(crate) fn removal(index: u32) -> Writer {
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_DELLINK.into(), libc::NLM_F_ACK, 1, &fixed_part(index, false));
    writer.finish();
    writer
}

/// A request to make device number `index` a port of device number `bridge`, and to set it up.
fn enslavement(index: u32, bridge: u32) -> Writer {
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_NEWLINK.into(), libc::NLM_F_ACK, 1, &fixed_part(index, true));
    writer.attribute(IFLA_MASTER, &bridge.to_ne_bytes());
    writer.finish();
    writer
}

/// A request to set device number `index` up, too short for IPv6: nobody but us is to send by it.
pub(crate) fn small_and_up(index: u32) -> Writer {
    const SMALLEST: u32 = 68;
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_NEWLINK.into(), libc::NLM_F_ACK, 1, &fixed_part(index, true));
    writer.attribute(IFLA_MTU, &SMALLEST.to_ne_bytes());
    writer.finish();
    writer
}

/// All devices of the calling thread's network namespace.
///
/// # Errors
/// A system call failed.
pub(crate) fn devices() -> io::Result<Vec<Device>> {
    let mut question = Writer::default();
    question.begin_with(libc::RTM_GETLINK.into(), libc::NLM_F_DUMP, 1, &fixed_part(0, false));
    question.finish();
    let mut all = Vec::new();
    Socket::open_routing()?.dump(&question, |message| all.extend(Device::of(&message)))?;
    Ok(all)
}

/// Number of the bridge that `interface` is a port of.
///
/// # Errors
/// A system call failed.
pub(crate) fn bridge_of(interface: &str) -> Result<Option<u32>, Error> {
    Ok(devices().map_err(not_told)?.iter().find_map(|device| device.bridge_of(interface)))
}

fn not_told(error: io::Error) -> Error {
    Error::system("asking for the interfaces", error)
}

/// A bridge that only joins two interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Its other port.
    pub(crate) other: String,
    /// Hardware addresses of the bridge and its ports.
    pub(crate) own: Vec<Mac>,
}

/// The bridge that `interface` is a port of, if that has one other port and does nothing but pass
/// frames on.
///
/// # Errors
/// It is none of that; or a system call failed.
pub(crate) fn pair_of(interface: &str) -> Result<Pair, Error> {
    let all = devices().map_err(not_told)?;
    let bridge = all.iter().find_map(|device| device.bridge_of(interface));
    let bridge = bridge
        .ok_or_else(|| Error::Bridge(format!("`{interface}` is no port of a bridge any more")))?;
    let itself = all.iter().find(|device| device.index == bridge);
    let ports: Vec<&Device> = all.iter().filter(|device| device.master == Some(bridge)).collect();
    let name = itself.map(|device| device.name.clone()).unwrap_or_default();
    match (&ports[..], itself.and_then(|device| device.decides)) {
        ([one, two], None) => {
            let other = if one.name == interface { two } else { one };
            let own = itself.into_iter().chain(ports.iter().copied());
            Ok(Pair { other: other.name.clone(), own: own.filter_map(|one| one.address).collect() })
        }
        ([_, _], Some(what)) => Err(Error::BridgeDecides { bridge: name, what }),
        _ => Err(Error::BridgePorts { bridge: name, ports: ports.len() }),
    }
}

/// A device as the kernel tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// ARPHRD_….
    pub(crate) hardware: u16,
    pub(crate) address: Option<Mac>,
    pub(crate) mtu: u32,
    /// IFF_UP.
    pub(crate) is_up: bool,
    /// IFF_RUNNING: there is a carrier.
    pub(crate) is_running: bool,
    /// IFLA_INFO_KIND, of virtual ones: `vlan`, `wireguard`.
    pub(crate) kind: String,
    /// The device below, such as a VLAN's port.
    pub(crate) below: Option<u32>,
    /// The bridge or bond that it is a port of.
    pub(crate) master: Option<u32>,
    /// Its master is a bridge, and not a bond or the like.
    pub(crate) is_bridge_port: bool,
    /// Of a bridge: what it does beside passing frames on.
    pub(crate) decides: Option<&'static str>,
}

impl Device {
    /// The device that a message tells of.
    fn of(message: &Message<'_>) -> Option<Device> {
        if message.kind != i32::from(libc::RTM_NEWLINK) {
            return None;
        }
        let number = |data: &[u8]| data.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        // Family, padding, type, index, flags, which of them changed.
        let fixed: &[u8; FIXED] = message.body.first_chunk()?;
        let flags = number(&fixed[8..])? as i32;
        let mut device = Device {
            index: number(&fixed[4..])?,
            hardware: u16::from_ne_bytes([fixed[2], fixed[3]]),
            is_up: flags & libc::IFF_UP != 0,
            is_running: flags & libc::IFF_RUNNING != 0,
            ..Device::default()
        };
        for (kind, data) in message.attributes_after(FIXED) {
            match kind {
                IFLA_ADDRESS => device.address = data.try_into().ok().map(Mac),
                IFLA_IFNAME => device.name = text(data),
                IFLA_MTU => device.mtu = number(data).unwrap_or(0),
                IFLA_LINK => device.below = number(data),
                IFLA_MASTER => device.master = number(data),
                IFLA_LINKINFO => attributes(data).for_each(|info| device.add(info)),
                _ => {}
            }
        }
        Some(device)
    }

    /// Adds what is told of its kind.
    fn add(&mut self, (info, data): (i32, &[u8])) {
        let is_on = |(kind, data): (i32, &[u8])| match kind {
            _ if data.iter().all(|&byte| byte == 0) => None,
            IFLA_BR_STP_STATE => Some("STP"),
            IFLA_BR_VLAN_FILTERING => Some("VLAN filtering"),
            _ => None,
        };
        match info {
            IFLA_INFO_KIND => self.kind = text(data),
            IFLA_INFO_DATA => self.decides = attributes(data).find_map(is_on),
            IFLA_INFO_SLAVE_KIND => self.is_bridge_port = text(data) == "bridge",
            _ => {}
        }
    }

    /// Number of the bridge that it is a port of, if it is `interface`.
    fn bridge_of(&self, interface: &str) -> Option<u32> {
        self.master.filter(|_| self.is_bridge_port && self.name == interface)
    }
}

/// Two interfaces that are ports of one bridge. A bridge that was made for it is removed with this
/// value, unless it is kept.
#[must_use]
pub struct Joined {
    made: Option<u32>,
}

impl Joined {
    /// Lets the bridge stay when we end, so that traffic does not.
    pub fn keep(mut self) {
        self.made = None;
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let (Some(bridge), Ok(socket)) = (self.made, Socket::open_routing()) {
            let _ = socket.request(&removal(bridge));
        }
    }
}

/// Makes two interfaces ports of one bridge, `simnel-br`, if they are not yet: what comes in by one
/// goes out by the other.
///
/// # Errors
/// One of them is not there, or a port of another bridge; or the kernel has no bridges.
pub fn join(first: &str, second: &str) -> Result<Joined, Error> {
    if first == second {
        return Err(Error::Bridge(format!("`{first}` cannot be joined to itself")));
    }
    let mut numbers = [0; 2];
    let mut bridges = [None; 2];
    for (place, name) in [first, second].into_iter().enumerate() {
        check_name(name)?;
        numbers[place] =
            sys::interface(name, Query::Index).map_err(|_| Error::NoInterface(name.to_owned()))?;
        bridges[place] = bridge_of(name)?;
    }
    if bridges[0].is_some() && bridges[0] == bridges[1] {
        return Ok(Joined { made: None });
    }
    for (name, bridge) in [first, second].into_iter().zip(bridges) {
        if let Some(bridge) = bridge.and_then(sys::interface_name) {
            return Err(Error::Bridge(format!(
                "`{name}` is a port of the bridge `{bridge}`: `ip link set {name} nomaster` first"
            )));
        }
    }
    let socket =
        Socket::open_routing().map_err(|e| Error::system("opening a socket for interfaces", e))?;
    socket.request(&new(BRIDGE, "bridge")).map_err(no_bridge)?;
    let bridge = sys::interface(BRIDGE, Query::Index)
        .map_err(|e| Error::system("looking for the new bridge", e))?;
    let joined = Joined { made: Some(bridge) };
    for number in numbers {
        socket.request(&enslavement(number, bridge)).map_err(no_bridge)?;
    }
    Ok(joined)
}

/// The first address by which `first` or `second` is reached now, and will not be once [`join`] has
/// made them ports. Ports of one bridge have nothing to lose.
///
/// # Errors
/// A system call failed.
pub fn lost_address(first: &str, second: &str) -> Result<Option<(String, IpAddr)>, Error> {
    let devices = devices().map_err(not_told)?;
    let bridge = |name| devices.iter().find_map(|device| device.bridge_of(name));
    if bridge(first).is_some() && bridge(first) == bridge(second) {
        return Ok(None);
    }
    for name in [first, second] {
        // What does not exist, is said where it is joined.
        let Ok(number) = sys::interface(name, Query::Index) else { continue };
        let addresses = addresses::of(number).map_err(not_told)?;
        if let Some(address) = addresses.first() {
            return Ok(Some((name.to_owned(), *address)));
        }
    }
    Ok(None)
}

fn no_bridge(refusal: Refusal) -> Error {
    match refusal.error.raw_os_error() {
        Some(libc::EPERM) => Error::Privilege,
        Some(libc::EOPNOTSUPP) => Error::KernelLacks {
            what: "bridges",
            fix: "`modprobe bridge` (OpenWrt: the package kmod-bridge)",
        },
        Some(libc::EEXIST) => Error::Bridge(format!(
            "`{BRIDGE}` is there already, with other ports: `ip link del {BRIDGE}` first"
        )),
        _ => {
            let reason = refusal.explanation.unwrap_or_else(|| refusal.error.to_string());
            Error::Bridge(format!("the kernel refuses: {reason}"))
        }
    }
}

/// Linux's own rule for interface names.
///
/// # Errors
/// [`Error::BadInterfaceName`].
pub fn check_name(name: &str) -> Result<(), Error> {
    let bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if name.is_empty()
        || name.len() >= libc::IFNAMSIZ
        || name.contains(bad)
        || name.starts_with('.')
    {
        return Err(Error::BadInterfaceName(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    #[test]
    fn requests_have_the_bytes_that_the_kernel_expects() {
        if cfg!(target_endian = "big") {
            return;
        }
        let expected = [
            // Length, RTM_NEWLINK, REQUEST | ACK | EXCL | CREATE.
            &[60, 0, 0, 0, 16, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0][..],
            // Flags and mask: IFF_UP.
            &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
            &[13, 0, 3, 0],
            b"simnel-5\0\0\0\0",
            &[12, 0, 18, 0x80, 8, 0, 1, 0],
            b"ifb\0",
        ];
        assert_eq!(new("simnel-5", "ifb").bytes(), expected.concat());
        let expected = [
            &[40, 0, 0, 0, 16, 0, 0x05, 0, 1, 0, 0, 0, 0, 0, 0, 0][..],
            &[0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
            &[8, 0, 4, 0, 68, 0, 0, 0],
        ];
        assert_eq!(small_and_up(7).bytes(), expected.concat());
        let expected = [
            &[40, 0, 0, 0, 16, 0, 0x05, 0, 1, 0, 0, 0, 0, 0, 0, 0][..],
            &[0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
            &[8, 0, 10, 0, 9, 0, 0, 0],
        ];
        assert_eq!(enslavement(7, 9).bytes(), expected.concat());
    }

    /// `dev_valid_name` of Linux refuses these, and what begins with a dot or controls a terminal
    /// is refused here.
    #[test]
    fn names_are_those_that_linux_allows() {
        for name in
            ["", "a/b", "a:b", "a b", "a\tb", "a\u{1b}b", ".", "..", ".a", "a234567890123456"]
        {
            assert!(matches!(check_name(name), Err(Error::BadInterfaceName(_))), "{name:?}");
        }
        for name in ["a", "eth0.7", "ppp-wan_1", "a23456789012345"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    /// RTM_NEWLINK as Linux 6.1 sent it for a VLAN, without its statistics.
    const VLAN: &[u8] = &[
        0x54, 0, 0, 0, 0x10, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, // header
        0, 0, 1, 0, 7, 0, 0, 0, 0x43, 0x10, 1, 0, 0, 0, 0, 0, // ifinfomsg: up, running
        0x0a, 0, 3, 0, b'w', b'a', b'n', b'.', b'7', 0, 0, 0, // IFLA_IFNAME
        8, 0, 4, 0, 0xdc, 5, 0, 0, // IFLA_MTU
        8, 0, 5, 0, 2, 0, 0, 0, // IFLA_LINK
        0x10, 0, 18, 0, 9, 0, 1, 0, b'v', b'l', b'a', b'n', 0, 0, 0, 0, // IFLA_LINKINFO
        8, 0, 10, 0, 9, 0, 0, 0, // IFLA_MASTER
    ];

    #[test]
    fn what_the_kernel_tells_of_a_device_is_read() {
        if cfg!(target_endian = "big") {
            return;
        }
        let found = Device::of(&Messages(VLAN).next().unwrap()).unwrap();
        let expected = Device {
            index: 7,
            name: "wan.7".into(),
            hardware: 1,
            mtu: 1500,
            is_up: true,
            is_running: true,
            kind: "vlan".into(),
            below: Some(2),
            master: Some(9),
            ..Device::default()
        };
        assert_eq!(found, expected);
        for (flags, is_up, is_running) in
            [(0x1002_u32, false, false), (1, true, false), (0x40, false, true)]
        {
            let mut bytes = VLAN.to_vec();
            bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
            let found = Device::of(&Messages(&bytes).next().unwrap()).unwrap();
            assert_eq!((found.is_up, found.is_running), (is_up, is_running), "{flags:#x}");
        }
        for end in 0..VLAN.len() {
            Messages(&VLAN[..end]).for_each(|message| drop(Device::of(&message)));
        }
    }

    #[test]
    fn a_port_of_a_bridge_is_told_from_what_has_another_master() {
        let told = |name: &str, kind: &str| {
            let mut writer = Writer::default();
            writer.begin_with(libc::RTM_NEWLINK.into(), 0, 1, &fixed_part(7, true));
            writer.string(IFLA_IFNAME, name);
            writer.attribute(IFLA_MASTER, &9u32.to_ne_bytes());
            let info = writer.start(IFLA_LINKINFO);
            writer.string(IFLA_INFO_KIND, "bridge");
            writer.string(IFLA_INFO_SLAVE_KIND, kind);
            writer.end(info);
            writer.finish();
            let message = Messages(writer.bytes()).next().expect("a message");
            Device::of(&message).unwrap().bridge_of("eth0")
        };
        assert_eq!(told("eth0", "bridge"), Some(9));
        assert_eq!(told("eth0", "bond"), None);
        assert_eq!(told("eth1", "bridge"), None);
    }

    /// Asked of the bridge alone: other kinds of devices mean something else by these attributes.
    #[test]
    fn what_a_bridge_does_beside_passing_on_is_told() {
        let told = |attribute: i32, value: &[u8]| {
            let mut writer = Writer::default();
            writer.begin_with(libc::RTM_NEWLINK.into(), 0, 1, &fixed_part(7, false));
            writer.string(IFLA_IFNAME, "br0");
            writer.attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 7]);
            writer.attribute(IFLA_MASTER, &9u32.to_ne_bytes());
            let info = writer.start(IFLA_LINKINFO);
            writer.string(IFLA_INFO_KIND, "bridge");
            let data = writer.start(IFLA_INFO_DATA);
            writer.attribute(attribute, value);
            writer.end(data);
            writer.end(info);
            writer.finish();
            let message = Messages(writer.bytes()).next().unwrap();
            let device = Device::of(&message).unwrap();
            assert_eq!((device.index, device.name.as_str(), device.master), (7, "br0", Some(9)));
            assert_eq!(device.address, Some(Mac([2, 0, 0, 0, 0, 7])));
            device.decides
        };
        assert_eq!(told(IFLA_BR_STP_STATE, &1u32.to_ne_bytes()), Some("STP"));
        assert_eq!(told(IFLA_BR_VLAN_FILTERING, &[1]), Some("VLAN filtering"));
        assert_eq!(told(IFLA_BR_STP_STATE, &[0; 4]), None);
        assert_eq!(told(IFLA_BR_VLAN_FILTERING, &[0]), None);
        assert_eq!(told(1, &[1]), None);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let said = |code| {
            let error = io::Error::from_raw_os_error(code);
            no_bridge(Refusal { error, explanation: None }).to_string()
        };
        assert_eq!(said(libc::EPERM), Error::Privilege.to_string());
        assert!(said(libc::EOPNOTSUPP).contains("`modprobe bridge`"));
        assert!(said(libc::EEXIST).contains("`ip link del simnel-br`"));
        assert!(said(libc::ENOMEM).contains("the kernel refuses: "));
    }
}

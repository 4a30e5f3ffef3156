//! Offload of forwarded flows, by which packets pass us by.
//!
//! A flow in an nftables flowtable, in software or in the NIC, skips the hooks where our rules are,
//! after its first packets. No discipline can shape it then, so the operator must know.

use std::io;

use crate::netlink::{attributes, text, Message, Socket, Writer};
use crate::sys;

/// Warnings about `interface`, one sentence or two each. Whatever cannot be found out gives none.
pub(crate) fn warnings(interface: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for table in flowtables(interface).unwrap_or_default() {
        warnings.push(format!(
            "flow offload is on: packets of `{interface}` that match {table} bypass every \
             discipline; remove the flowtable (OpenWrt: \
             `uci set firewall.@defaults[0].flow_offloading=0`)"
        ));
    }
    if feature(interface, "hw-tc-offload").unwrap_or(false) {
        warnings.push(format!(
            "`{interface}` may forward flows in hardware, which bypasses every discipline; \
             turn it off with `ethtool -K {interface} hw-tc-offload off`"
        ));
    }
    warnings
}

/// Flowtables with `interface` among their devices.
pub(crate) fn flowtables(interface: &str) -> io::Result<Vec<String>> {
    /// NFT_MSG_GETFLOWTABLE.
    const GET_FLOWTABLE: i32 = libc::NFNL_SUBSYS_NFTABLES << 8 | 23;
    let mut writer = Writer::default();
    writer.begin(GET_FLOWTABLE, libc::NLM_F_DUMP, 1, 0, 0);
    writer.finish();
    let mut found = Vec::new();
    Socket::open()?.dump(&writer, |message| found.extend(flowtable(&message, interface)))?;
    Ok(found)
}

/// Facts about a flowtable in a message, if `interface` is among its devices.
fn flowtable(message: &Message<'_>, interface: &str) -> Option<String> {
    let (mut table, mut name, mut ours) = (String::new(), String::new(), false);
    for (kind, data) in message.attributes() {
        match kind {
            1 => table = text(data),
            2 => name = text(data),
            // hook { devices { name, name, … } }
            3 => {
                ours = attributes(data)
                    .filter(|(kind, _)| *kind == 3)
                    .flat_map(|(_, list)| attributes(list))
                    .any(|(_, device)| text(device) == interface);
            }
            _ => {}
        }
    }
    ours.then(|| format!("flowtable `{name}` of table `{table}`"))
}

/// State of a feature of the NIC (linux/ethtool.h).
pub(crate) fn feature(interface: &str, wanted: &str) -> io::Result<bool> {
    const GET_SET_INFO: u32 = 0x37;
    const GET_STRINGS: u32 = 0x1b;
    const GET_FEATURES: u32 = 0x3a;
    const FEATURES: u32 = 4;
    const NAME: usize = 32;
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };

    // command, reserved, set of sets, then one size for each set asked for.
    let mut info = [0; 20];
    info[..4].copy_from_slice(&GET_SET_INFO.to_ne_bytes());
    info[8..16].copy_from_slice(&(1u64 << FEATURES).to_ne_bytes());
    sys::ethtool(interface, &mut info)?;
    let count = number(&info, 16) as usize;

    // command, set, count, names.
    let mut names = vec![0; 12 + count * NAME];
    names[..4].copy_from_slice(&GET_STRINGS.to_ne_bytes());
    names[4..8].copy_from_slice(&FEATURES.to_ne_bytes());
    names[8..12].copy_from_slice(&(count as u32).to_ne_bytes());
    sys::ethtool(interface, &mut names)?;
    let Some(bit) = names[12..].chunks(NAME).position(|name| text(name) == wanted) else {
        return Ok(false);
    };

    // command, blocks, then available, requested, active, never changed for each 32 features.
    let blocks = count.div_ceil(32);
    let mut features = vec![0; 8 + blocks * 16];
    features[..4].copy_from_slice(&GET_FEATURES.to_ne_bytes());
    features[4..8].copy_from_slice(&(blocks as u32).to_ne_bytes());
    sys::ethtool(interface, &mut features)?;
    Ok(number(&features, 8 + bit / 32 * 16 + 8) >> (bit % 32) & 1 == 1)
}

/// Packets that the card's ring for sending holds.
pub(crate) fn ring(interface: &str) -> io::Result<u32> {
    const GET_RINGS: u32 = 0x10;
    // command; most for receiving (three kinds) and sending; those in force in the same order.
    let mut rings = [0; 36];
    rings[..4].copy_from_slice(&GET_RINGS.to_ne_bytes());
    sys::ethtool(interface, &mut rings)?;
    Ok(rings[32..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    #[test]
    fn features_of_a_device_are_read_by_name() {
        let on = |name: &str| feature("lo", name).unwrap();
        assert!(on("loopback"));
        assert!(!on("hw-tc-offload") && !on("no-such-feature"));
        assert!(feature("no-such-device", "loopback").is_err());
    }

    #[test]
    fn a_flowtable_concerns_its_devices_only() {
        let mut writer = Writer::default();
        writer.begin(10 << 8 | 22, 0, 1, 1, 0);
        writer.string(1, "fw4");
        writer.string(2, "ft");
        let hook = writer.start(3);
        writer.number(1, 0);
        let devices = writer.start(3);
        writer.string(1, "eth0");
        writer.string(1, "lan1");
        writer.end(devices);
        writer.end(hook);
        writer.finish();
        let message = Messages(writer.bytes()).next().unwrap();
        let found = flowtable(&message, "lan1");
        assert_eq!(found.as_deref(), Some("flowtable `ft` of table `fw4`"));
        assert_eq!(flowtable(&message, "lan"), None);
    }
}

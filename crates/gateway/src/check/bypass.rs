//! Ways of packets past every discipline, and changes to them on their way to one.

use super::{read, Finding, Level};
use crate::nfqueue::has_net_admin;
use crate::offload;

/// Drivers that forward flows in hardware or by a short cut of their own, and how each is turned
/// off.
const SHORT_CUTS: [(&str, &str); 7] = [
    ("qca_nss_ecm", "`rmmod ecm` or `/etc/init.d/qca-nss-ecm stop`"),
    ("ecm", "`/etc/init.d/qca-nss-ecm stop`"),
    ("shortcut_fe", "`rmmod shortcut_fe`"),
    ("fast_classifier", "`rmmod fast_classifier`"),
    ("mtkhnat", "`echo 0 > /sys/kernel/debug/hnat/hook_toggle`"),
    ("hw_nat", "`rmmod hw_nat`"),
    ("ctf", "`nvram set ctf_disable=1` and reboot"),
];

pub(super) fn findings(interface: &str) -> Vec<Finding> {
    let is_on = |feature: &str| offload::feature(interface, feature).ok();
    let flowtables = flowtables(interface, offload::flowtables(interface), has_net_admin());
    let mut all = vec![flowtables, short_cuts(read("/proc/modules").as_deref())];
    all.push(hardware(interface, is_on("hw-tc-offload")));
    all.push(merging(interface, is_on));
    all.extend(ring(interface, offload::ring(interface).ok()));
    all
}

/// Flowtables that have the interface, as far as they could be `found`.
fn flowtables(
    interface: &str,
    found: std::io::Result<Vec<String>>,
    has_net_admin: bool,
) -> Finding {
    const ID: &str = "flow-offload";
    let found = match found {
        Ok(found) => found,
        Err(_) if !has_net_admin => {
            return Finding::unknown(ID, "flowtables", "CAP_NET_ADMIN is missing");
        }
        Err(error) => return Finding::unknown(ID, "flowtables", &error.to_string()),
    };
    if found.is_empty() {
        return Finding::ok(ID, format!("no flowtable has `{interface}`"));
    }
    Finding::new(
        Level::Error,
        ID,
        format!("flow offload: {} takes packets of `{interface}`", found.join(" and ")),
        "after its first packets a flow bypasses every discipline, and nothing is shaped",
        "remove the flowtable (OpenWrt: `uci set firewall.@defaults[0].flow_offloading=0`, \
         `uci commit firewall`, `/etc/init.d/firewall restart`)",
    )
}

fn short_cuts(modules: Option<&str>) -> Finding {
    const ID: &str = "short-cuts";
    // Without the file the kernel has no modules.
    let loaded = |wanted: &str| {
        let names = modules.unwrap_or_default().lines().filter_map(|line| line.split(' ').next());
        names.into_iter().any(|name| name == wanted)
    };
    let found = SHORT_CUTS.iter().find(|(module, _)| loaded(module));
    found.map_or_else(
        || Finding::ok(ID, "no vendor's short cut that is known is loaded"),
        |(module, fix)| {
            Finding::new(
                Level::Error,
                ID,
                format!("the module `{module}` forwards flows past the kernel"),
                "what it forwards bypasses every discipline",
                *fix,
            )
        },
    )
}

fn hardware(interface: &str, is_on: Option<bool>) -> Finding {
    const ID: &str = "hardware-offload";
    match is_on {
        None => Finding::unknown(ID, "what the hardware forwards", "the driver does not answer"),
        Some(false) => Finding::ok(ID, "the hardware forwards no flows"),
        Some(true) => Finding::new(
            Level::Warning,
            ID,
            format!("`{interface}` may forward flows in hardware (hw-tc-offload)"),
            "what it forwards bypasses every discipline",
            format!("`ethtool -K {interface} hw-tc-offload off`"),
        ),
    }
}

/// Offloads that make long packets of short ones.
fn merging(interface: &str, is_on: impl Fn(&str) -> Option<bool>) -> Finding {
    const ID: &str = "offloads";
    let Some(lro) = is_on("rx-lro") else {
        return Finding::unknown(ID, "offloads", "the driver does not answer");
    };
    if lro {
        let what = format!("LRO is on at `{interface}`");
        let why = "packets are merged such that they cannot be forwarded as they were";
        let fix = format!("`ethtool -K {interface} lro off`");
        return Finding::new(Level::Warning, ID, what, why, fix);
    }
    let all =
        [("GRO", "rx-gro"), ("TSO", "tx-tcp-segmentation"), ("GSO", "tx-generic-segmentation")];
    let on: Vec<&str> =
        all.iter().filter(|(_, name)| is_on(name) == Some(true)).map(|(name, _)| *name).collect();
    let what = match on.is_empty() {
        true => "no packets are merged".into(),
        false => format!("{}: merged packets are split before they queue", on.join(", ")),
    };
    Finding::ok(ID, what)
}

/// Packets that wait in the network card, behind the discipline.
fn ring(interface: &str, pending: Option<u32>) -> Option<Finding> {
    /// At 100 Mbit/s 1024 packets are 120 ms, but a shaper below the card's rate never fills them.
    const LONG: u32 = 1024;
    let what = format!("the card's ring holds {} packets", pending?);
    if pending? <= LONG {
        return Some(Finding::ok("ring", what));
    }
    let why = "without a rate below the line's, that many wait where no discipline sees them";
    let fix = format!("set a rate; or `ethtool -G {interface} tx 256`");
    Some(Finding::new(Level::Note, "ring", what, why, fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_short_cuts_are_known_by_their_modules() {
        let told = short_cuts(Some("nf_tables 1 0 - Live 0x0\nmtkhnat 45056 0 - Live 0x0\n"));
        assert_eq!(told.level, Level::Error);
        assert!(told.what.contains("mtkhnat") && told.fix.contains("hook_toggle"));
        assert_eq!(short_cuts(Some("act_ctinfo 1 0 -\n")).level, Level::Ok);
        assert_eq!(short_cuts(None).level, Level::Ok);
    }

    #[test]
    fn offloads_are_told_apart_from_not_knowing() {
        assert_eq!(hardware("wan", Some(true)).level, Level::Warning);
        assert_eq!(hardware("wan", Some(false)).level, Level::Ok);
        assert!(hardware("wan", None).what.starts_with("cannot tell"));
        assert!(merging("wan", |_| None).what.starts_with("cannot tell"));
        let with = |on: &'static [&str]| merging("wan", |feature| Some(on.contains(&feature)));
        assert_eq!(with(&["rx-lro", "rx-gro"]).level, Level::Warning);
        let some = with(&["rx-gro", "tx-generic-segmentation"]);
        assert_eq!(some.what, "GRO, GSO: merged packets are split before they queue");
        assert_eq!(with(&[]).what, "no packets are merged");
        assert_eq!(ring("wan", Some(4096)).unwrap().level, Level::Note);
        assert_eq!(ring("wan", Some(256)).unwrap().level, Level::Ok);
        assert_eq!(ring("wan", None), None);
    }

    #[test]
    fn flowtables_are_told_and_why_they_cannot_be() {
        let refused = || Err(std::io::Error::from_raw_os_error(libc::EPERM));
        let told = flowtables("wan", Ok(vec!["`ft` of `fw4`".into()]), true);
        assert_eq!(told.level, Level::Error);
        assert!(told.what.contains("`ft` of `fw4` takes packets of `wan`"), "{told:?}");
        assert_eq!(flowtables("wan", Ok(Vec::new()), false).level, Level::Ok);
        let lacks = |told: Finding| format!("{told:?}").contains("CAP_NET_ADMIN is missing");
        assert!(lacks(flowtables("wan", refused(), false)));
        assert!(!lacks(flowtables("wan", refused(), true)));
    }

    #[test]
    fn each_way_past_is_looked_for() {
        let all: Vec<&str> = findings("lo").iter().map(|finding| finding.id).collect();
        let expected = ["flow-offload", "short-cuts", "hardware-offload", "offloads"];
        assert_eq!(all[..4], expected);
    }
}

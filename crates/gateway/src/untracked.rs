//! Rules of others that take packets away from connection tracking (`notrack`).
//!
//! Where the kernel shapes, rules write the tiers of what arrives into connections' marks. Hosts
//! and flows are those of connections. Of a packet without one nothing is known. Any rule counts
//! that may fit a packet of ours, whatever else it looks at; one about loopback alone does
//! not. Rules of the old iptables cannot be seen.

use std::io;

use crate::netlink::{attribute, attributes, text};
use crate::nft::{in_others, Other};

/// Loopback's number in every namespace.
const LOOPBACK: u32 = 1;

/// Warnings about such rules, a sentence or two each. Whatever cannot be found out gives none.
pub(crate) fn warnings(interface: &str) -> Vec<String> {
    let warn = |rule: String| {
        format!(
            "{rule} turns connection tracking off: of packets of `{interface}` that it fits, rules \
             choose no tier or class as they arrive, and hosts and flows are not told; let them be \
             tracked"
        )
    };
    rules().unwrap_or_default().into_iter().map(warn).collect()
}

/// Chains with such rules, in words, each once.
///
/// # Errors
/// The kernel does not tell its rules.
pub(crate) fn rules() -> io::Result<Vec<String>> {
    let mut rules = in_others(rule)?;
    // Of both families the names are the same.
    rules.sort();
    rules.dedup();
    Ok(rules)
}

fn rule(Other { table, chain, expressions }: &Other<'_>) -> Option<String> {
    let mut loaded = None;
    for (_, element) in attributes(expressions) {
        let name = text(attribute(element, 1)?);
        let data = attribute(element, 2).unwrap_or_default();
        match name.as_str() {
            "meta" => loaded = number(data, 2),
            "cmp" if loaded.take().is_some_and(|key| is_loopback(key, data)) => return None,
            _ if is_notrack(&name, data) => {
                return Some(format!("a rule in chain `{chain}` of table `{table}`"));
            }
            _ => {}
        }
    }
    None
}

/// True of nftables' own expression, and of iptables' targets.
fn is_notrack(name: &str, data: &[u8]) -> bool {
    /// XT_CT_NOTRACK, among the flags that the target's data begin with.
    const OFF: u16 = 1;
    match name {
        "notrack" => true,
        "target" => match attribute(data, 1).map(text).as_deref() {
            Some("NOTRACK") => true,
            Some("CT") => attribute(data, 3)
                .and_then(|info| info.first_chunk())
                .is_some_and(|flags| u16::from_ne_bytes(*flags) & OFF != 0),
            _ => false,
        },
        _ => false,
    }
}

/// True if a comparison of what meta's `key` has loaded fits loopback alone.
fn is_loopback(key: u32, comparison: &[u8]) -> bool {
    let is_equal = number(comparison, 2) == Some(libc::NFT_CMP_EQ as u32);
    let value = attribute(comparison, 3).and_then(|data| attribute(data, 1)).unwrap_or_default();
    is_equal
        && match key as i32 {
            libc::NFT_META_IIFNAME | libc::NFT_META_OIFNAME => text(value) == "lo",
            libc::NFT_META_IIF | libc::NFT_META_OIF => value == LOOPBACK.to_ne_bytes(),
            _ => false,
        }
}

fn number(list: &[u8], wanted: i32) -> Option<u32> {
    attribute(list, wanted)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::netlink::{Messages, Writer};

    /// Words about a rule with a target of iptables', which has these data.
    fn target(name: &str, info: &[u8]) -> Option<String> {
        let mut writer = Writer::default();
        writer.begin(libc::NFNL_SUBSYS_NFTABLES << 8 | libc::NFT_MSG_NEWRULE, 0, 1, 1, 0);
        writer.string(1, "raw");
        writer.string(2, "PREROUTING");
        let list = writer.start(4);
        let element = writer.start(1);
        writer.string(1, "target");
        let data = writer.start(2);
        writer.string(1, name);
        writer.attribute(3, info);
        writer.end(data);
        writer.end(element);
        writer.end(list);
        writer.finish();
        Messages(writer.bytes()).next().and_then(|message| rule(&Other::read(&message)?))
    }

    #[test]
    fn iptables_targets_turn_tracking_off_by_name_or_flag() {
        let told = "a rule in chain `PREROUTING` of table `raw`";
        assert_eq!(target("NOTRACK", &[]).as_deref(), Some(told));
        assert_eq!(target("CT", &[1u16, 0].map(u16::to_ne_bytes).concat()).as_deref(), Some(told));
        // A zone, a helper: tracked all the same.
        assert_eq!(target("CT", &[0u16, 7].map(u16::to_ne_bytes).concat()), None);
        assert_eq!((target("CT", &[]), target("LOG", &[1, 1])), (None, None));
    }

    #[test]
    fn rules_about_more_than_loopback_are_found() {
        const TEST: &str = "rules_about_more_than_loopback_are_found";
        crate::apart::apart(TEST, || {
            let chain = "{ type filter hook prerouting priority raw; }";
            let begin = format!("add table inet raw; add chain inet raw pre {chain};");
            let nft = |rules: &str| Command::new("nft").arg(format!("{begin} {rules}")).status();
            if !nft("add rule inet raw pre iif lo notrack").is_ok_and(|status| status.success()) {
                return eprintln!("NOT RUN: {TEST} needs nft, and notrack in the kernel");
            }
            nft("add rule inet raw pre iifname lo udp dport 53 notrack").unwrap();
            nft("add rule inet raw pre iifname != lo accept").unwrap();
            assert_eq!(rules().unwrap(), Vec::<String>::new());
            nft("add rule inet raw pre iifname != lo notrack").unwrap();
            nft("add rule inet raw pre udp dport 53 notrack").unwrap();
            let pre = "a rule in chain `pre` of table `raw`";
            assert_eq!(rules().unwrap(), [pre]);
            // As iptables has them, for IPv4 and IPv6.
            for family in ["ip", "ip6"] {
                let raw = format!("{family} raw");
                let out = "{ type filter hook output priority raw; }";
                let table = format!("add table {raw}; add chain {raw} pre {chain};");
                nft(&format!("{table} add rule {raw} pre notrack")).unwrap();
                nft(&format!("add chain {raw} out {out}; add rule {raw} out notrack")).unwrap();
            }
            assert_eq!(rules().unwrap(), ["a rule in chain `out` of table `raw`", pre]);
            assert!(warnings("wan")[0].contains("off: of packets of `wan` that it fits"));
        });
    }
}

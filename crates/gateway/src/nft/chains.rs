//! Rules as nftables has them: forms of one rule that all fit the same traffic.
//!
//! ```text
//! learning  postrouting  89   oifname WAN, ether saddr MAC → add source address to the MAC's set
//! asking    postrouting  88   oifname WAN, to port 53 → a copy for `names`
//! answering prerouting  -91   iifname WAN, from port 53 → the same
//! sending   output       90   oifname WAN, of a control group → its number as if it were a tier
//! rules_up, rules_down        the first that fits: count, write tier or class, return; or accept
//! ```
//!
//! What arrives from the Internet bears no hardware address of a host at home. So addresses from
//! which a host sends are learnt from its own packets, of which the first one always leaves before
//! an answer comes.
//!
//! Addresses of host names the daemon adds to their sets. They stay as long as traffic with them
//! flows: a connection outlives the time for which a name's answer holds.
//!
//! Which program sends a packet is known where the machine's own packets leave, and nowhere behind
//! that. What arrives for one is known by its socket.
//!
//! nftables has no "or" within a rule: each combination of list items, ends and protocols is a form
//! of its own. All forms of a rule bear its number as their comment, and what they count is summed.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use super::batch::{Batch, Expressions};
use crate::direction::Direction;
use crate::names::{self, Known};
use crate::netlink::{text, Attributes, Message, Socket, Writer};
use crate::rules::cgroup::Found;
use crate::rules::forms::{End, Family, Form, Who};
use crate::rules::{Cgroup, Counted, HostName, Mac, Plan, Write};

/// Most addresses of one hardware address: a host changes its IPv6 address daily.
const ADDRESSES: i32 = 64;
/// How long an address is kept after its host has last sent from it.
const KEPT_MS: u64 = 24 * 3_600_000;
/// NFT_SET_TIMEOUT and NFT_SET_EVAL: rules add to it, and what they added ends.
const LEARNT: i32 = 0x10 | 0x20;
/// Most addresses of one host name, and room for those that only traffic keeps.
const HOST_ADDRESSES: i32 = 4 * names::ADDRESSES as i32;
/// How long an address of a host name is kept behind its last packet.
const HOST_KEPT_MS: u64 = names::LONGEST.as_micros() / 1_000;
/// Addresses of one message.
const ELEMENTS: usize = 512;
/// Begins a comment of ours.
const COMMENT: &str = "rule ";

/// Programs whose packets a rule fits.
enum Owner {
    Anybody,
    /// By the number of their group in the mark.
    Marked(u8),
    /// By level and number of the socket's group.
    Socket(u8, u64),
}

/// Owners that a form with the control group `wanted` may have.
fn owners(wanted: Option<&Cgroup>, direction: Direction, cgroups: &[Found]) -> Vec<Owner> {
    let Some(wanted) = wanted else { return vec![Owner::Anybody] };
    let numbered = (1..).zip(cgroups);
    let owner = |(number, found): (u8, &Found)| match direction {
        Direction::Upload => wanted.covers(&found.cgroup).then_some(Owner::Marked(number)),
        Direction::Download if *wanted == found.cgroup => {
            Some(Owner::Socket(wanted.level(), found.id?))
        }
        Direction::Download => None,
    };
    numbered.filter_map(owner).collect()
}

/// Fills the chain that marks packets of this machine's programs with the numbers of `cgroups`.
pub(super) fn mark_own(
    batch: &mut Batch<'_>,
    chain: &str,
    interface: &str,
    tiers: u32,
    cgroups: &[Found],
) {
    batch.rule(chain, |rule| {
        rule.interface(libc::NFT_META_OIFNAME, interface);
        rule.clear_mark(tiers);
    });
    // The deepest come first.
    for (number, found) in (1..).zip(cgroups) {
        let Some(id) = found.id else { continue };
        batch.rule(chain, |rule| {
            rule.interface(libc::NFT_META_OIFNAME, interface);
            rule.cgroup(found.cgroup.level(), id);
            rule.write_mark(tiers, number << tiers.trailing_zeros());
            rule.verdict(libc::NFT_RETURN, None);
        });
    }
}

/// Appends all forms of all rules to `chain`. `tiers` are the bits of the mark.
pub(super) fn write(
    plan: &Plan,
    batch: &mut Batch<'_>,
    chain: &str,
    direction: Direction,
    tiers: u32,
    cgroups: &[Found],
) {
    // Numbers of groups are no tiers.
    let is_numbered = direction == Direction::Upload && !cgroups.is_empty();
    for step in &plan.steps {
        let forms = step.traffic.combinations(direction);
        let owned = forms.iter().flat_map(|form| {
            owners(form.cgroup, direction, cgroups).into_iter().map(move |owner| (form, owner))
        });
        for (form, owner) in owned {
            let comment = format!("{COMMENT}{}", step.number);
            batch.rule_called(chain, &comment, |rule| {
                match owner {
                    Owner::Anybody => {}
                    Owner::Marked(number) => {
                        rule.mark_is(tiers, u32::from(number) << tiers.trailing_zeros());
                    }
                    Owner::Socket(level, id) => rule.cgroup(level, id),
                }
                fit(form, rule);
                rule.counter();
                if is_numbered {
                    rule.clear_mark(tiers);
                }
                match step.write {
                    Write::Tier(number) => {
                        rule.write_mark(tiers, u32::from(number) << tiers.trailing_zeros());
                        rule.verdict(libc::NFT_RETURN, None);
                    }
                    Write::Class(class) => {
                        rule.write_priority(class);
                        rule.verdict(libc::NFT_RETURN, None);
                    }
                    Write::Pass => rule.verdict(libc::NF_ACCEPT, None),
                }
            });
        }
    }
    if is_numbered {
        batch.rule(chain, |rule| rule.clear_mark(tiers));
    }
}

/// Appends what a packet of `form` must fit.
fn fit(form: &Form<'_>, rule: &mut Expressions<'_>) {
    const NETWORK: i32 = libc::NFT_PAYLOAD_NETWORK_HEADER;
    const TRANSPORT: i32 = libc::NFT_PAYLOAD_TRANSPORT_HEADER;
    if let Some(family) = form.family {
        rule.meta(libc::NFT_META_NFPROTO);
        rule.compare(libc::NFT_CMP_EQ, &[family.number() as u8]);
    }
    match (form.who, form.family) {
        (Who::Prefix(prefix, end), Some(family)) => {
            let (at, length) = family.address(end);
            let bytes = match prefix.address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            rule.payload(NETWORK, at, length);
            rule.bitwise(&mask(prefix.length, bytes.len()), &vec![0; bytes.len()]);
            rule.compare(libc::NFT_CMP_EQ, &bytes);
        }
        (Who::Learnt(mac, end), Some(family)) => {
            let (at, length) = family.address(end);
            rule.payload(NETWORK, at, length);
            rule.lookup(&set_name(mac, family));
        }
        _ => {}
    }
    if let (Some((host, end)), Some(family)) = (form.host, form.family) {
        let (at, length) = family.address(end);
        let set = host_set(host, family);
        rule.payload(NETWORK, at, length);
        rule.lookup(&set);
        rule.add_to_set(&set, HOST_KEPT_MS);
    }
    if let (Some(dscp), Some(family)) = (form.dscp, form.family) {
        let (mask, shift) = match family {
            Family::V4 => (0x00fc_u16, 2),
            Family::V6 => (0x0fc0, 6),
        };
        rule.payload(NETWORK, 0, 2);
        rule.bitwise(&mask.to_be_bytes(), &[0; 2]);
        rule.compare(libc::NFT_CMP_EQ, &(u16::from(dscp) << shift).to_be_bytes());
    }
    if let Some(protocol) = form.protocol {
        rule.meta(libc::NFT_META_L4PROTO);
        rule.compare(libc::NFT_CMP_EQ, &[protocol]);
    }
    if let Some(((first, last), end)) = form.port {
        rule.payload(TRANSPORT, if end == End::Source { 0 } else { 2 }, 2);
        rule.compare(libc::NFT_CMP_GTE, &first.to_be_bytes());
        rule.compare(libc::NFT_CMP_LTE, &last.to_be_bytes());
    }
}

/// `length` leading ones in so many bytes.
fn mask(length: u8, bytes: usize) -> Vec<u8> {
    let ones = |byte: usize| usize::from(length).saturating_sub(8 * byte).min(8);
    (0..bytes).map(|byte| !(0xff_u16 >> ones(byte)) as u8).collect()
}

/// The set of addresses of `mac`.
fn set_name(mac: Mac, family: Family) -> String {
    let digits: String = mac.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let family = if family == Family::V4 { "v4" } else { "v6" };
    format!("mac_{digits}_{family}")
}

/// The set of addresses of `host`.
fn host_set(host: &HostName, family: Family) -> String {
    let family = if family == Family::V4 { "v4" } else { "v6" };
    format!("host_{host}_{family}")
}

/// A set of addresses to which rules add, unless it is there already.
fn address_set(batch: &mut Batch<'_>, name: &str, family: Family, ms: u64, size: i32) {
    // Types as nft knows them: ipv4_addr and ipv6_addr.
    let kind = if family == Family::V4 { 7 } else { 8 };
    let (_, length) = family.address(End::Source);
    batch.set(name, (kind, length), LEARNT, ms, size);
}

/// Makes the sets of `hosts`, where they are not there yet.
pub(super) fn host_sets(batch: &mut Batch<'_>, hosts: &[HostName]) {
    for host in hosts {
        for family in Family::BOTH {
            let name = host_set(host, family);
            address_set(batch, &name, family, HOST_KEPT_MS, HOST_ADDRESSES);
        }
    }
}

/// Keeps addresses of a host in its sets.
pub(super) fn keep(batch: &mut Batch<'_>, host: &HostName, known: &[&Known]) {
    for family in Family::BOTH {
        let bytes = |known: &&&Known| match (known.address, family) {
            (IpAddr::V4(address), Family::V4) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), Family::V6) => Some(address.octets().to_vec()),
            _ => None,
        };
        let element = |known: &&Known| Some((bytes(&known)?, known.kept.as_micros() / 1_000));
        let elements: Vec<(Vec<u8>, u64)> = known.iter().filter_map(element).collect();
        // As many as fit into the lengths of netlink's attributes.
        for elements in elements.chunks(ELEMENTS) {
            batch.elements(&host_set(host, family), elements);
        }
    }
}

/// Copies what is asked of resolvers, or answered by them, to the log `group`.
pub(super) fn log_names(batch: &mut Batch<'_>, chain: &str, interface: &str, key: i32, group: u16) {
    // The far end's port.
    let port = if key == libc::NFT_META_OIFNAME { 2 } else { 0 };
    for protocol in [libc::IPPROTO_UDP, libc::IPPROTO_TCP] {
        batch.rule(chain, |rule| {
            rule.interface(key, interface);
            rule.meta(libc::NFT_META_L4PROTO);
            rule.compare(libc::NFT_CMP_EQ, &[protocol as u8]);
            rule.payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, port, 2);
            rule.compare(libc::NFT_CMP_EQ, &names::PORT.to_be_bytes());
            rule.log(group, names::COPY_RANGE);
        });
    }
}

/// Makes the sets of `macs`, where they are not there yet, and fills the chain that learns.
pub(super) fn learn(batch: &mut Batch<'_>, chain: &str, interface: &str, macs: &[Mac]) {
    for &mac in macs {
        for family in Family::BOTH {
            let (at, length) = family.address(End::Source);
            let name = set_name(mac, family);
            address_set(batch, &name, family, KEPT_MS, ADDRESSES);
            batch.rule(chain, |rule| {
                rule.interface(libc::NFT_META_OIFNAME, interface);
                rule.payload(libc::NFT_PAYLOAD_LL_HEADER, 6, 6);
                rule.compare(libc::NFT_CMP_EQ, &mac.0);
                rule.meta(libc::NFT_META_NFPROTO);
                rule.compare(libc::NFT_CMP_EQ, &[family.number() as u8]);
                rule.payload(libc::NFT_PAYLOAD_NETWORK_HEADER, at, length);
                rule.add_to_set(&name, KEPT_MS);
            });
        }
    }
}

/// Counters of the rules in the chains of `table`, by chain and number.
pub(super) fn counted(table: &str) -> io::Result<BTreeMap<(String, usize), Counted>> {
    const GET_RULE: i32 = libc::NFNL_SUBSYS_NFTABLES << 8 | libc::NFT_MSG_GETRULE;
    let mut writer = Writer::default();
    writer.begin(GET_RULE, libc::NLM_F_DUMP, 1, libc::NFPROTO_INET as u8, 0);
    writer.string(1, table);
    writer.finish();
    let mut all: BTreeMap<(String, usize), Counted> = BTreeMap::new();
    Socket::open()?.dump(&writer, |message| {
        if let Some((key, counted)) = count(&message, table) {
            let sum = all.entry(key).or_default();
            sum.packets += counted.packets;
            sum.bytes += counted.bytes;
        }
    })?;
    Ok(all)
}

/// The counter of a form, with the chain and number of its rule.
fn count(message: &Message<'_>, wanted: &str) -> Option<((String, usize), Counted)> {
    let (mut table, mut chain, mut number, mut counted) =
        (String::new(), String::new(), None, None);
    for (kind, data) in message.attributes() {
        match kind {
            1 => table = text(data),
            2 => chain = text(data),
            4 => counted = Attributes(data).find_map(|(_, element)| counter(element)),
            // NFTA_RULE_USERDATA: a type, a length, a string.
            7 => number = text(data.get(2..)?).strip_prefix(COMMENT)?.parse().ok(),
            _ => {}
        }
    }
    (table == wanted).then_some(((chain, number?), counted?))
}

fn counter(element: &[u8]) -> Option<Counted> {
    let attribute = |wanted| Attributes(element).find(|(kind, _)| *kind == wanted).map(|(_, d)| d);
    if text(attribute(1)?) != "counter" {
        return None;
    }
    let data = attribute(2)?;
    let number = |wanted| {
        let (_, bytes) = Attributes(data).find(|(kind, _)| *kind == wanted)?;
        Some(u64::from_be_bytes(*bytes.first_chunk()?))
    };
    Some(Counted { packets: number(2)?, bytes: number(1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_as_many_ones_as_the_prefix_is_long() {
        assert_eq!(mask(0, 4), [0, 0, 0, 0]);
        assert_eq!(mask(32, 4), [255; 4]);
        assert_eq!(mask(20, 4), [255, 255, 0xf0, 0]);
        assert_eq!(mask(127, 16)[15], 0xfe);
    }

    #[test]
    fn any_bytes_of_counters_are_read_without_a_panic() {
        let mut random = simnel_core::random::Random::new(29);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(120)).map(|_| random.below(24) as u8).collect();
            let message = Message { kind: 0, flags: 0, seq: 0, body: &bytes };
            let _ = (count(&message, ""), counter(&bytes));
        }
    }
}

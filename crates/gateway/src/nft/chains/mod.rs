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
//! All forms of a rule bear its number as their comment, and what they count is summed. Several
//! hosts or names of one rule share a set, so that a packet is looked up once.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::IpAddr;

use super::batch::{Batch, Expressions};
use super::lists::Key;
use crate::direction::Direction;
use crate::names::{self, Known};
use crate::netlink::{attribute, attributes, text, Message, Socket, Writer};
use crate::rules::cgroup::Found;
use crate::rules::forms::{merged, End, Family, Form};
use crate::rules::{Cgroup, Counted, HostName, Mac, Plan, Traffic, Write};

/// Most addresses of one hardware address: a host changes its IPv6 address daily.
const ADDRESSES: i32 = 64;
/// Time for which an address is kept after its host has last sent from it.
const KEPT_MS: u64 = 24 * 3_600_000;
/// NFT_SET_TIMEOUT and NFT_SET_EVAL: rules add to it, and what they added ends.
const LEARNT: i32 = 0x10 | 0x20;
/// Most addresses of one host name, and room for those that only traffic keeps.
const HOST_ADDRESSES: i32 = 4 * names::ADDRESSES as i32;
/// Time for which an address of a host name is kept after its last packet.
const HOST_KEPT_MS: u64 = names::LONGEST.as_micros() / 1_000;
/// Addresses of one message: netlink counts the bytes of a list in 16 bits.
const ELEMENTS: usize = 512;
/// Begins a comment of ours.
const COMMENT: &str = "rule ";

/// Programs whose packets a rule fits.
enum Owner {
    Anybody,
    /// By the numbers of their groups in the mark.
    Marked(Vec<u32>),
    /// By level and numbers of the socket's group.
    Socket(u8, Vec<u64>),
}

/// The mark into which a tier is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// That of the packet.
    Packet,
    /// That of its connection.
    Connection,
}

/// Owners that a form with the control groups `wanted` may have.
fn owners(wanted: &[Cgroup], direction: Direction, cgroups: &[Found]) -> Vec<Owner> {
    if wanted.is_empty() {
        return vec![Owner::Anybody];
    }
    match direction {
        Direction::Upload => {
            let covers = |found: &Found| wanted.iter().any(|one| one.covers(&found.cgroup));
            let numbered = (1..).zip(cgroups).filter(|(_, found)| covers(found));
            vec![Owner::Marked(numbered.map(|(number, _)| number).collect())]
        }
        Direction::Download => {
            let mut levels: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
            for found in cgroups.iter().filter(|found| wanted.contains(&found.cgroup)) {
                levels.entry(found.cgroup.level()).or_default().extend(found.id);
            }
            levels.retain(|_, ids| !ids.is_empty());
            levels.into_iter().map(|(level, ids)| Owner::Socket(level, ids)).collect()
        }
    }
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
            rule.cgroup(found.cgroup.level(), &[id]);
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
    target: Target,
    tiers: u32,
    cgroups: &[Found],
) {
    // Numbers of groups are no tiers.
    let is_numbered = direction == Direction::Upload && !cgroups.is_empty();
    for step in &plan.steps {
        let forms = step.traffic.forms();
        let owners = owners(&step.traffic.cgroups, direction, cgroups);
        for (owner, form) in owners.iter().flat_map(|owner| forms.iter().map(move |f| (owner, f))) {
            let comment = format!("{COMMENT}{}", step.number);
            batch.rule_called(chain, &comment, |rule| {
                match owner {
                    Owner::Anybody => {}
                    Owner::Marked(numbers) => {
                        let shift = tiers.trailing_zeros();
                        let marks: Vec<u32> = numbers.iter().map(|n| n << shift).collect();
                        rule.mark_is(tiers, &marks);
                    }
                    Owner::Socket(level, ids) => rule.cgroup(*level, ids),
                }
                fit(&step.traffic, *form, direction, rule);
                rule.counter();
                if is_numbered {
                    rule.clear_mark(tiers);
                }
                match step.write {
                    Write::Tier(number) => {
                        let value = u32::from(number) << tiers.trailing_zeros();
                        match target {
                            Target::Packet => rule.write_mark(tiers, value),
                            Target::Connection => rule.write_connection_mark(tiers, value),
                        }
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

/// Appends what a packet of a form must fit.
fn fit(traffic: &Traffic, form: Form, direction: Direction, rule: &mut Expressions<'_>) {
    const NETWORK: i32 = libc::NFT_PAYLOAD_NETWORK_HEADER;
    const TRANSPORT: i32 = libc::NFT_PAYLOAD_TRANSPORT_HEADER;
    if let Some(family) = form.family {
        rule.meta(libc::NFT_META_NFPROTO);
        rule.compare(libc::NFT_CMP_EQ, &[family.number() as u8]);
    }
    if let (Some(family), Some(end)) = (form.family, form.address) {
        let (at, length) = family.address(end);
        rule.payload(NETWORK, at, length);
        rule.within(address_key(family), &traffic.prefixes(family));
    }
    let protocols = traffic.protocols();
    if !protocols.is_empty() {
        rule.meta(libc::NFT_META_L4PROTO);
        rule.one_of(Key::PROTOCOL, protocols.into_iter().map(|number| number as u128));
    }
    if let Some(end) = form.port {
        rule.payload(TRANSPORT, if end == End::Source { 0 } else { 2 }, 2);
        let ports = traffic.ports.iter().map(|&(first, last)| (first.into(), last.into()));
        rule.within(Key::PORT, &merged(ports));
    }
    let Some(family) = form.family else { return };
    if !traffic.dscps.is_empty() {
        let (mask, shift) = match family {
            Family::V4 => (0x00fc_u16, 2),
            Family::V6 => (0x0fc0, 6),
        };
        rule.payload(NETWORK, 0, 2);
        rule.bitwise(&mask.to_be_bytes(), &[0; 2]);
        rule.one_of(Key::DSCP, traffic.dscps.iter().map(|code| u128::from(*code) << shift));
    }
    if !traffic.macs.is_empty() {
        let (at, length) = family.address(End::home(direction));
        rule.payload(NETWORK, at, length);
        rule.lookup(&mac_set(&traffic.macs, family));
    }
    // At last: only what fits in all else keeps an address.
    if !traffic.hosts.is_empty() {
        let (at, length) = family.address(End::far(direction));
        let set = host_set(&traffic.hosts, family);
        rule.payload(NETWORK, at, length);
        rule.lookup(&set);
        rule.add_to_set(&set, HOST_KEPT_MS);
    }
}

/// Addresses of an IP version.
fn address_key(family: Family) -> Key {
    match family {
        Family::V4 => Key::V4,
        Family::V6 => Key::V6,
    }
}

/// Name of the set of addresses of `items`, whatever their order.
fn set_name<T: Clone + Ord + Hash>(
    what: &str,
    items: &[T],
    name: impl Fn(&T) -> String,
    family: Family,
) -> String {
    let family = if family == Family::V4 { "v4" } else { "v6" };
    if let [item] = items {
        return format!("{what}_{}_{family}", name(item));
    }
    let mut items = items.to_vec();
    items.sort_unstable();
    let mut hasher = DefaultHasher::new();
    items.hash(&mut hasher);
    format!("{what}s_{:016x}_{family}", hasher.finish())
}

/// The set of addresses of `macs`.
fn mac_set(macs: &[Mac], family: Family) -> String {
    let digits = |mac: &Mac| mac.0.iter().map(|byte| format!("{byte:02x}")).collect();
    set_name("mac", macs, digits, family)
}

/// The set of addresses of `hosts`.
fn host_set(hosts: &[HostName], family: Family) -> String {
    set_name("host", hosts, HostName::to_string, family)
}

/// Makes the sets of lists of host names, where they are not there yet.
pub(super) fn host_sets(batch: &mut Batch<'_>, lists: &[Vec<HostName>]) {
    for hosts in lists {
        for family in Family::BOTH {
            let (name, size) = (host_set(hosts, family), HOST_ADDRESSES * hosts.len() as i32);
            batch.set(&name, address_key(family), LEARNT, HOST_KEPT_MS, size);
        }
    }
}

/// The bytes of an address of `family`.
fn octets(address: IpAddr, family: Family) -> Option<Vec<u8>> {
    match (address, family) {
        (IpAddr::V4(address), Family::V4) => Some(address.octets().to_vec()),
        (IpAddr::V6(address), Family::V6) => Some(address.octets().to_vec()),
        _ => None,
    }
}

/// Keys of a set, and the milliseconds for which each is to stay.
pub(super) type Kept = Vec<(Vec<u8>, u64)>;

/// Addresses that the sets of `hosts` are to keep, by the name of the set: as many at a time as fit
/// into a message.
pub(super) fn kept(hosts: &[HostName], known: &[Known]) -> Vec<(String, Kept)> {
    let mut parts = Vec::new();
    for family in Family::BOTH {
        // One address may have several names, or come in several answers: it is deleted once.
        let mut kept: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for known in known.iter().filter(|known| hosts.contains(&known.host)) {
            let Some(bytes) = octets(known.address, family) else { continue };
            let longest = kept.entry(bytes).or_default();
            *longest = (*longest).max(known.kept.as_micros() / 1_000);
        }
        let elements: Kept = kept.into_iter().collect();
        let part = |part: &[_]| (host_set(hosts, family), part.to_vec());
        parts.extend(elements.chunks(ELEMENTS).map(part));
    }
    parts
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

/// Makes the sets of lists of hardware addresses, where they are not there yet, and fills the chain
/// that learns.
pub(super) fn learn(batch: &mut Batch<'_>, chain: &str, interface: &str, lists: &[Vec<Mac>]) {
    for macs in lists {
        for family in Family::BOTH {
            let (at, length) = family.address(End::Source);
            let (name, size) = (mac_set(macs, family), ADDRESSES * macs.len() as i32);
            batch.set(&name, address_key(family), LEARNT, KEPT_MS, size);
            batch.rule(chain, |rule| {
                rule.interface(libc::NFT_META_OIFNAME, interface);
                rule.meta(libc::NFT_META_NFPROTO);
                rule.compare(libc::NFT_CMP_EQ, &[family.number() as u8]);
                rule.payload(libc::NFT_PAYLOAD_LL_HEADER, 6, 6);
                rule.one_of(Key::MAC, macs.iter().map(|mac| mac.number().into()));
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
            4 => counted = attributes(data).find_map(|(_, element)| counter(element)),
            // NFTA_RULE_USERDATA: a type, a length, a string.
            7 => number = text(data.get(2..)?).strip_prefix(COMMENT)?.parse().ok(),
            _ => {}
        }
    }
    (table == wanted).then_some(((chain, number?), counted?))
}

fn counter(element: &[u8]) -> Option<Counted> {
    if text(attribute(element, 1)?) != "counter" {
        return None;
    }
    let data = attribute(element, 2)?;
    let number = |wanted| Some(u64::from_be_bytes(*attribute(data, wanted)?.first_chunk()?));
    Some(Counted { packets: number(2)?, bytes: number(1)? })
}

#[cfg(test)]
mod in_kernel;
#[cfg(test)]
mod tests;

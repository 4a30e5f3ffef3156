//! The rules of all chains of the table, and where the chains stand.

use super::batch::{Batch, Queues};
use super::chains::{self, Target};
use super::place::{Place, ARRIVE, LEAVE};
use super::{marking, Holder, Ruling, Wanted};
use crate::autorate::Own;
use crate::direction::Direction;
use crate::rules::Plan;

/// NFT_META_SECPATH.
const SECURITY_PATH: i32 = 25;
/// NFT_RT_XFRM.
const ROUTE_TRANSFORM: i32 = 4;

/// Abilities of the kernel; found out by trying.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// CONFIG_NFT_QUEUE. Without it, iptables' NFQUEUE target does the same through nft_compat.
    pub(super) queue_expression: bool,
    /// CONFIG_XFRM. Without it there are no security paths, and no exception for them is needed.
    pub(super) security_paths: bool,
}

/// The chain that learns addresses of hosts, in front of the rules.
pub(super) const LEARN_CHAIN: &str = "learning";

/// The chains that copy questions to resolvers and their answers.
pub(super) const ASK_CHAIN: &str = "asking";
pub(super) const ANSWER_CHAIN: &str = "answering";

/// The chain that keeps a bridge from passing on what we do.
pub(super) const PASS_CHAIN: &str = "passing";

/// The chain that marks what the machine's own programs send.
pub(super) const SEND_CHAIN: &str = "sending";

/// Writes all rules of all chains, which must be empty.
pub(super) fn fill(batch: &mut Batch<'_>, wanted: &Wanted, kernel: Kernel) {
    let macs = wanted.macs();
    if !macs.is_empty() {
        batch.chain(LEARN_CHAIN, LEAVE.hook, LEAVE.priority - 1);
        chains::learn(batch, LEARN_CHAIN, &wanted.interface, &macs);
    }
    chains::host_sets(batch, &wanted.hosts());
    if wanted.knows_own() {
        let Ruling { tiers, cgroups, .. } = &wanted.rules;
        batch.chain(SEND_CHAIN, libc::NF_INET_LOCAL_OUT, LEAVE.priority);
        chains::mark_own(batch, SEND_CHAIN, &wanted.interface, *tiers, cgroups);
    }
    if let Some(group) = wanted.rules.names {
        let chains =
            [(ASK_CHAIN, &LEAVE, LEAVE.priority - 2), (ANSWER_CHAIN, &ARRIVE, ARRIVE.priority - 1)];
        for (chain, place, priority) in chains {
            batch.chain(chain, place.hook, priority);
            chains::log_names(batch, chain, &wanted.interface, place.name_key, group);
        }
    }
    fill_ours(batch, wanted);
    for (holder, place, plan) in wanted.directions() {
        match holder {
            Holder::Process(queues) => fill_direction(batch, place, wanted, queues, plan, kernel),
            Holder::Kernel => marking::fill(batch, place, wanted, plan),
        }
    }
}

/// Keeps the bridge from what we pass on.
pub(super) fn fill_ours(batch: &mut Batch<'_>, wanted: &Wanted) {
    for (from, to) in &wanted.ours {
        batch.rule(PASS_CHAIN, |rule| {
            rule.interface(libc::NFT_META_IIFNAME, from);
            rule.interface(libc::NFT_META_OIFNAME, to);
            rule.verdict(libc::NF_DROP, None);
        });
    }
}

/// Writes the rules of one direction.
fn fill_direction(
    batch: &mut Batch<'_>,
    place: &Place,
    wanted: &Wanted,
    queues: Queues,
    plan: &Plan,
    kernel: Kernel,
) {
    let (interface, bits) = (&*wanted.interface, wanted.bits);
    let tiers = wanted.rules.tiers;
    let all = bits.mask() | tiers;
    let knows_own = wanted.knows_own() && place.direction == Direction::Upload;

    // Nobody else may seem to have asked for CE or washing.
    let foreign = if knows_own { bits.mask() } else { all };
    batch.rule(place.queue_chain, |rule| {
        rule.interface(place.name_key, interface);
        rule.mark_has(foreign);
        rule.clear_mark(foreign);
    });
    if knows_own {
        // The machine's own have the numbers of their groups there.
        batch.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.meta(libc::NFT_META_IIF);
            rule.compare(libc::NFT_CMP_NEQ, &[0; 4]);
            rule.clear_mark(tiers);
        });
    }
    pass_own(batch, place, interface, &wanted.own);
    if *plan != Plan::default() {
        batch.branch(place.rule_chain);
        let cgroups = &wanted.rules.cgroups;
        let (chain, target) = (place.rule_chain, Target::Packet);
        chains::write(plan, batch, chain, place.direction, target, tiers, cgroups);
        batch.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.verdict(libc::NFT_JUMP, Some(place.rule_chain));
        });
    }
    batch.rule(place.queue_chain, |rule| {
        rule.interface(place.name_key, interface);
        if kernel.security_paths {
            match place.hook {
                libc::NF_INET_PRE_ROUTING => rule.meta(SECURITY_PATH),
                _ => rule.route(ROUTE_TRANSFORM),
            }
            rule.compare(libc::NFT_CMP_EQ, &[0]);
        }
        rule.queue(queues, kernel.queue_expression);
    });

    // The device's own discipline is not to see our classes.
    for class in plan.classes() {
        batch.rule(place.act_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.meta(libc::NFT_META_PRIORITY);
            rule.compare(libc::NFT_CMP_EQ, &class.to_ne_bytes());
            rule.write_priority(0);
        });
    }
    // The common case first: nothing to do.
    batch.rule(place.act_chain, |rule| {
        rule.mark_lacks(all);
        rule.verdict(libc::NF_ACCEPT, None);
    });
    // The first 16 bits: version, header length, TOS; version, traffic class, flow label.
    let headers = [(libc::ETH_P_IP, 0x00fcu16, 3), (libc::ETH_P_IPV6, 0x0fc0, 0x30)];
    for (protocol, dscp, ecn) in headers {
        for (bit, clear, set) in [(bits.ce(), ecn, ecn), (bits.wash(), dscp, 0)] {
            batch.rule(place.act_chain, |rule| {
                rule.interface(place.name_key, interface);
                rule.mark_has(bit);
                rule.meta(libc::NFT_META_PROTOCOL);
                rule.compare(libc::NFT_CMP_EQ, &(protocol as u16).to_be_bytes());
                rule.rewrite_first_word(!clear, set, protocol == libc::ETH_P_IP);
            });
        }
    }
    batch.rule(place.act_chain, |rule| {
        rule.interface(place.name_key, interface);
        rule.clear_mark(all);
    });
}

/// Lets probes of our own by; nobody else's leave, for only ours come from no interface.
fn pass_own(batch: &mut Batch<'_>, place: &Place, interface: &str, own: &Own) {
    let leaves = place.direction == Direction::Upload;
    let mut pass = |protocol: i32, fields: &[(i32, &[u8])]| {
        batch.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            if leaves {
                rule.meta(libc::NFT_META_IIF);
                rule.compare(libc::NFT_CMP_EQ, &[0; 4]);
            }
            rule.meta(libc::NFT_META_L4PROTO);
            rule.compare(libc::NFT_CMP_EQ, &[protocol as u8]);
            for (at, bytes) in fields {
                rule.payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, *at, bytes.len() as i32);
                rule.compare(libc::NFT_CMP_EQ, bytes);
            }
            rule.verdict(libc::NF_ACCEPT, None);
        });
    };
    // Requests and replies of ICMP and ICMPv6; ICMP's ask for the time, too.
    let kinds = [
        (libc::IPPROTO_ICMP, [8, 0]),
        (libc::IPPROTO_ICMP, [13, 14]),
        (libc::IPPROTO_ICMPV6, [128, 129]),
    ];
    if let Some(ident) = own.echo {
        for (protocol, [request, reply]) in kinds {
            let kind = if leaves { request } else { reply };
            pass(protocol, &[(0, &[kind]), (4, &ident.to_be_bytes())]);
        }
    }
    if let Some((here, servers)) = &own.datagrams {
        for there in servers {
            let mut ports = [here.to_be_bytes(), there.to_be_bytes()];
            if !leaves {
                ports.reverse();
            }
            pass(libc::IPPROTO_UDP, &[(0, ports.as_flattened())]);
        }
    }
}

//! Rules for disciplines of the kernel, which read a packet's tier in its mark.
//!
//! ```text
//! leaving   postrouting  90   oifname WAN → the first rule that fits writes the packet's mark
//! arriving  prerouting  -90   iifname WAN → the first rule that fits writes the connection's mark
//! opening   postrouting  91   oifname WAN, of a connection without answers → the download's rules
//! arrived   prerouting -310   iifname WAN → clear the packet's mark, which the discipline has seen
//! ```
//!
//! What arrives has passed its discipline before any table sees it. So a rule decides for the next
//! packets of the connection. A filter in front of the discipline (`kernel/redirect.rs`) copies
//! bits of the connection's mark to the packet's. Where the first packet leaves, `opening` has
//! decided before anything arrives. It cannot where a rule looks at what only an arriving packet
//! shows: its code point, or the socket that it is for.

use super::batch::{Batch, Expressions};
use super::chains::{self, Target};
use super::place::{Place, ARRIVE, LEAVE};
use super::{Holder, Wanted};
use crate::direction::Direction;
use crate::rules::{Plan, Step};

/// Behind the chain that learns addresses of hosts, and that of the upload's rules.
const OPENING: i32 = LEAVE.priority + 1;

/// The chain of what connections begin with, and that of its rules.
pub(super) const OPEN_CHAIN: &str = "opening";
pub(super) const OPEN_RULES: &str = "rules_open";

/// Writes the rules of one direction.
pub(super) fn fill(batch: &mut Batch<'_>, place: &Place, wanted: &Wanted, plan: &Plan) {
    let interface = &*wanted.interface;
    let tiers = wanted.rules.tiers;
    match place.direction {
        Direction::Upload => {
            // Nobody else names a tier; the machine's own have the numbers of their groups there.
            batch.rule(place.queue_chain, |rule| {
                rule.interface(place.name_key, interface);
                if wanted.knows_own() {
                    rule.meta(libc::NFT_META_IIF);
                    rule.compare(libc::NFT_CMP_NEQ, &[0; 4]);
                }
                rule.clear_mark(tiers);
            });
            lead(batch, place, wanted, plan, Target::Packet);
        }
        Direction::Download => {
            lead(batch, place, wanted, plan, Target::Connection);
            batch.rule(place.act_chain, |rule| {
                rule.interface(place.name_key, interface);
                rule.mark_has(tiers);
                rule.clear_mark(tiers);
            });
            open(batch, wanted);
        }
    }
}

/// Leads to the rules of `plan`, which write into the mark of `target`.
fn lead(batch: &mut Batch<'_>, place: &Place, wanted: &Wanted, plan: &Plan, target: Target) {
    if *plan == Plan::default() {
        return;
    }
    let (tiers, cgroups) = (wanted.rules.tiers, &wanted.rules.cgroups);
    batch.branch(place.rule_chain);
    chains::write(plan, batch, place.rule_chain, place.direction, target, tiers, cgroups);
    if target == Target::Connection {
        batch.rule(place.rule_chain, |rule| rule.write_connection_mark(tiers, 0));
    }
    jump(batch, place.queue_chain, (place.name_key, &wanted.interface), place.rule_chain, |_| {});
}

/// Lets the download's rules see what connections begin with as it leaves.
fn open(batch: &mut Batch<'_>, wanted: &Wanted) {
    let Some(plan) = opening(wanted) else { return };
    let tiers = wanted.rules.tiers;
    batch.chain(OPEN_CHAIN, LEAVE.hook, OPENING);
    batch.branch(OPEN_RULES);
    chains::write(&plan, batch, OPEN_RULES, LEAVE.direction, Target::Connection, tiers, &[]);
    let place = (LEAVE.name_key, &*wanted.interface);
    jump(batch, OPEN_CHAIN, place, OPEN_RULES, |rule| rule.connection_is_new());
}

fn jump(
    batch: &mut Batch<'_>,
    from: &str,
    (key, interface): (i32, &str),
    to: &str,
    only: impl FnOnce(&mut Expressions<'_>),
) {
    batch.rule(from, |rule| {
        rule.interface(key, interface);
        only(rule);
        rule.verdict(libc::NFT_JUMP, Some(to));
    });
}

/// Rules of the download that a packet of the same connection decides as it leaves: those in front
/// of the first that looks at more. None if there are none.
pub(super) fn opening(wanted: &Wanted) -> Option<Plan> {
    let mut directions = wanted.directions();
    let arriving = |(holder, place, _): &(Holder, &Place, &Plan)| {
        *holder == Holder::Kernel && place.direction == ARRIVE.direction
    };
    let (_, _, plan) = directions.find(arriving)?;
    let shows = |step: &&Step| step.traffic.dscps.is_empty() && step.traffic.cgroups.is_empty();
    let steps: Vec<Step> = plan.steps.iter().take_while(shows).cloned().collect();
    (!steps.is_empty()).then_some(Plan { steps })
}

#[cfg(test)]
mod tests {
    use super::super::batch::Queues;
    use super::super::Ruling;
    use super::*;
    use crate::rules::{Cgroup, Traffic, Write};

    fn opened(download: Option<Holder>, traffic: &[Traffic]) -> Vec<usize> {
        let steps = (1..).zip(traffic).map(|(number, traffic)| Step {
            number,
            traffic: traffic.clone(),
            write: Write::Tier(1),
        });
        let plans = [Plan { steps: steps.collect() }, Plan::default()];
        let rules = Ruling { plans, ..Ruling::default() };
        let wanted = Wanted { download, rules, ..Wanted::default() };
        let plan = opening(&wanted).unwrap_or_default();
        plan.steps.iter().map(|step| step.number).collect()
    }

    /// Behind a rule that nobody can tell yet, others must not decide in its place.
    #[test]
    fn what_leaves_first_decides_up_to_the_first_rule_of_what_arrives() {
        let by_port = Traffic { ports: vec![(7, 7)], ..Traffic::default() };
        let by_code = Traffic { dscps: vec![46], ..Traffic::default() };
        let cgroups = vec![Cgroup::read("system.slice").unwrap()];
        let by_socket = Traffic { cgroups, ..Traffic::default() };
        let kernel = Some(Holder::Kernel);
        let all = [by_port.clone(), by_port.clone(), by_code.clone(), by_port.clone()];
        assert_eq!(opened(kernel, &all), [1, 2]);
        assert_eq!(opened(kernel, &[by_port.clone(), by_socket, by_port.clone()]), [1]);
        assert!(opened(kernel, &[by_code, by_port]).is_empty());
        assert!(opened(Some(Holder::Process(Queues::one(7))), &all).is_empty());
        assert!(opened(None, &all).is_empty());
    }
}

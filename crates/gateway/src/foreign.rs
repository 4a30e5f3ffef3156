//! Rules of others that hand packets to a kernel queue of ours.
//!
//! No other program can take such a queue: the kernel refuses a second owner. But any rule may name
//! its number, and then packets that are not the interface's wait and leave with its own, against
//! its rate. Our own tables name only the numbers that we were given. Rules of the old iptables
//! cannot be seen.

use std::ops::RangeInclusive;

use crate::netlink::{attribute, attributes, text};
use crate::nft::{in_others, Other};

/// Warnings about such rules, a sentence or two each, for the `queues` of `interface`. Whatever
/// cannot be found out gives none.
pub(crate) fn warnings(interface: &str, queues: &[u16]) -> Vec<String> {
    let rules = in_others(rule).unwrap_or_default();
    let ours = |rule: &Rule| queues.iter().find(|queue| rule.queues.contains(queue)).copied();
    let mut warnings: Vec<String> = rules
        .iter()
        .filter_map(|rule| {
            let queue = ours(rule)?;
            let Rule { chain, table, .. } = rule;
            Some(format!(
                "a rule in chain `{chain}` of table `{table}` hands packets to queue {queue}, \
                 which is `{interface}`'s: they wait with its own, against its rate; give that \
                 rule another number"
            ))
        })
        .collect();
    warnings.dedup();
    warnings
}

/// Another program's rule that queues.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    table: String,
    chain: String,
    queues: RangeInclusive<u16>,
}

fn rule(other: &Other<'_>) -> Option<Rule> {
    let queues = attributes(other.expressions).find_map(|(_, element)| expression(element))?;
    Some(Rule { table: other.table.clone(), chain: other.chain.clone(), queues })
}

/// Queues of an expression: nftables' own, or iptables' target.
fn expression(element: &[u8]) -> Option<RangeInclusive<u16>> {
    let data = attribute(element, 2)?;
    let (first, count) = match text(attribute(element, 1)?).as_str() {
        "queue" => {
            let number =
                |wanted| Some(u16::from_be_bytes(*attribute(data, wanted)?.first_chunk()?));
            (number(1)?, number(2).unwrap_or(1))
        }
        "target" if text(attribute(data, 1)?) == "NFQUEUE" => {
            let revision = u32::from_be_bytes(*attribute(data, 2)?.first_chunk()?);
            let number = |at| {
                let bytes = attribute(data, 3)?.get(at..)?.first_chunk()?;
                Some(u16::from_ne_bytes(*bytes))
            };
            // Revision 0 has a number only.
            (number(0)?, if revision == 0 { 1 } else { number(2)? })
        }
        _ => return None,
    };
    Some(first..=first.saturating_add(count.max(1) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{Messages, Writer};

    /// A rule of `table` with one expression.
    fn told(table: &str, name: &str, data: &dyn Fn(&mut Writer)) -> Option<Rule> {
        let mut writer = Writer::default();
        writer.begin(libc::NFNL_SUBSYS_NFTABLES << 8 | libc::NFT_MSG_NEWRULE, 0, 1, 1, 0);
        writer.string(1, table);
        writer.string(2, "forward");
        let list = writer.start(4);
        let element = writer.start(1);
        writer.string(1, name);
        let inner = writer.start(2);
        data(&mut writer);
        writer.end(inner);
        writer.end(element);
        writer.end(list);
        writer.finish();
        Messages(writer.bytes()).next().and_then(|message| rule(&Other::read(&message)?))
    }

    #[test]
    fn rules_that_queue_are_found_in_both_forms() {
        let queues = |rule: Option<Rule>| rule.map(|rule| rule.queues);
        let native = |first: u16, count: u16| {
            move |writer: &mut Writer| {
                writer.attribute(1, &first.to_be_bytes());
                writer.attribute(2, &count.to_be_bytes());
            }
        };
        assert_eq!(queues(told("ids", "queue", &native(20_896, 2))), Some(20_896..=20_897));
        assert_eq!(queues(told("ids", "queue", &native(5, 0))), Some(5..=5));
        assert_eq!(told("simnel_wan", "queue", &native(20_896, 2)), None);
        assert_eq!(told("ids", "counter", &native(20_896, 2)), None);
        for (revision, words, expected) in [
            (0, &[7u16, 9][..], 7..=7),
            (3, &[7, 3, 1, 0], 7..=9),
            (3, &[u16::MAX, 9], 65535..=65535),
        ] {
            let target = |writer: &mut Writer| {
                writer.string(1, "NFQUEUE");
                writer.number(2, revision);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                writer.attribute(3, &bytes);
            };
            assert_eq!(queues(told("filter", "target", &target)), Some(expected));
        }
        assert_eq!(told("filter", "target", &|writer| writer.string(1, "LOG")), None);
    }
}

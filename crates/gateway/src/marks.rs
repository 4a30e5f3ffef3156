//! Bits of the packet mark that are ours: two for decisions, and four for tiers where rules ask for
//! them. Unless the settings name them, they are such as no rule of others used when the daemon
//! started.
//!
//! Bits of others are read as the daemon starts, from rules of nftables (also those that iptables
//! has made there) and of policy routing. Bits of the connection mark count as well: others restore
//! the packet's from them. Where the kernel shapes, our rules for what arrives keep their tiers in
//! them. Rules of a load balancer's or firewall's own that come later are not seen. Nor are those
//! of the old iptables, of which the kernel tells only names of tables. Our bits are set between a
//! verdict and the next chain, and cleared where packets of the interface come in. All other bits
//! stay as they are.

use std::collections::BTreeMap;
use std::io;

use crate::error::Error;
use crate::lists::Lists;
use crate::netlink::{attribute, attributes, text, Message, Socket, Writer};
use crate::nft::{in_others, MarkBits, Other};

/// Programs whose chains or tables begin so take all these bits, whatever their rules show.
const KNOWN: [(&str, u32); 1] = [("cali", 0xffff_0000)];

/// The bits that are ours, and what the operator should know about them.
pub(crate) struct Choice {
    pub(crate) bits: MarkBits,
    pub(crate) warnings: Vec<String>,
}

/// Somebody else's use of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    bits: u32,
    by: String,
}

/// The bits that were `configured`, or else two that nobody uses.
///
/// # Errors
/// [`Error::NoMarkBits`] if fewer than two bits are free.
pub(crate) fn choose(configured: Option<MarkBits>, lists: &Lists) -> Result<Choice, Error> {
    let mut uses = in_others(rule).unwrap_or_default();
    uses.extend(policies().unwrap_or_default());
    let mut choice = decide(configured, &uses)?;
    if configured.is_none() && names_tables(lists.old_tables()) {
        choice.warnings.push(format!(
            "rules of the old iptables cannot be seen: if one of them uses bits {:#x} of the mark, \
             set `mark_mask`",
            choice.bits.mask()
        ));
    }
    Ok(choice)
}

/// True if one of the kernel's lists names a table.
fn names_tables(lists: [io::Result<String>; 2]) -> bool {
    lists.into_iter().flatten().any(|names| !names.is_empty())
}

fn decide(configured: Option<MarkBits>, uses: &[Use]) -> Result<Choice, Error> {
    let user = |bits: u32| uses.iter().find(|other| other.bits & bits != 0);
    if let Some(bits) = configured {
        let warning = user(bits.mask()).map(|other| {
            format!(
                "mark_mask {:#x} overlaps {:#x}, which {} uses: name two other bits, or none",
                bits.mask(),
                other.bits,
                other.by
            )
        });
        return Ok(Choice { bits, warnings: warning.into_iter().collect() });
    }
    let Some(other) = user(MarkBits::DEFAULT.mask()) else {
        return Ok(Choice { bits: MarkBits::DEFAULT, warnings: Vec::new() });
    };
    let free = (0..32).rev().map(|bit| 1 << bit).filter(|&bit| user(bit).is_none());
    let bits =
        MarkBits::new(free.take(2).sum()).map_err(|_| Error::NoMarkBits(other.by.clone()))?;
    Ok(Choice { bits, warnings: Vec::new() })
}

/// Bits that are tried first for tiers.
const TIERS: u32 = 0x0f00_0000;

/// Four bits beside each other, beside those of `decisions`, that nobody uses.
///
/// # Errors
/// [`Error::NoTierBits`] if there are none.
pub(crate) fn choose_tiers(decisions: MarkBits) -> Result<u32, Error> {
    let mut uses = in_others(rule).unwrap_or_default();
    uses.extend(policies().unwrap_or_default());
    tiers(decisions, &uses)
}

fn tiers(decisions: MarkBits, uses: &[Use]) -> Result<u32, Error> {
    let user = |bits: u32| uses.iter().find(|other| other.bits & bits != 0);
    let free = |bits: &u32| bits & decisions.mask() == 0 && user(*bits).is_none();
    let all = std::iter::once(TIERS).chain((0..=28).rev().map(|bit| 0xf << bit));
    all.into_iter().find(free).ok_or_else(|| {
        let by = user(TIERS).map_or_else(|| String::from("`mark_mask`"), |other| other.by.clone());
        Error::NoTierBits(by)
    })
}

/// Mark bits of a rule of nftables.
fn rule(rule: &Other<'_>) -> Option<Use> {
    let Other { table, chain, expressions: list } = rule;
    let mut bits = expressions(list);
    for (prefix, all) in KNOWN {
        if bits != 0 && (table.starts_with(prefix) || chain.starts_with(prefix)) {
            bits |= all;
        }
    }
    (bits != 0).then(|| Use { bits, by: format!("a rule in chain `{chain}` of table `{table}`") })
}

/// Contents of a register of nftables' machine, as far as they matter.
#[derive(Clone, Copy)]
enum Held {
    /// The mark, or part of it, with the bits that were changed on the way.
    Mark { mask: u32, changed: u32 },
    /// A constant.
    Value(u32),
    /// Another thing, of which `mask` may be set.
    Other { mask: u32 },
}

/// Bits of the mark that a rule's expressions compare or set.
fn expressions(list: &[u8]) -> u32 {
    let mut registers: BTreeMap<u32, Held> = BTreeMap::new();
    let mut bits = 0;
    for (_, element) in attributes(list) {
        let (mut name, mut data) = (String::new(), &[][..]);
        for (kind, value) in attributes(element) {
            match kind {
                1 => name = text(value),
                2 => data = value,
                _ => {}
            }
        }
        let number = |wanted| attribute(data, wanted).and_then(be);
        match name.as_str() {
            "meta" | "ct" if number(2) == Some(mark_key(&name)) => {
                match (number(1), number(source(&name))) {
                    (Some(to), _) => {
                        registers.insert(to, Held::Mark { mask: u32::MAX, changed: 0 });
                    }
                    (_, Some(from)) => {
                        bits |= match registers.get(&from) {
                            Some(Held::Mark { changed, .. }) => *changed,
                            Some(Held::Value(value)) => *value,
                            Some(Held::Other { mask }) if *mask != u32::MAX => *mask,
                            // Any value may come, and which bits matter shows where it was made.
                            _ => 0,
                        };
                    }
                    _ => {}
                }
            }
            "immediate" => {
                if let (Some(to), Some(value)) = (number(1), attribute(data, 2).and_then(value)) {
                    registers.insert(to, Held::Value(value));
                }
            }
            "bitwise" => {
                let (Some(from), Some(to)) = (number(1), number(2)) else { continue };
                let mask = attribute(data, 4).and_then(value).unwrap_or(u32::MAX);
                let xor = attribute(data, 5).and_then(value).unwrap_or(0);
                let held = match registers.get(&from) {
                    Some(Held::Mark { changed, .. }) => {
                        Held::Mark { mask, changed: changed | !mask | xor }
                    }
                    _ => Held::Other { mask },
                };
                registers.insert(to, held);
            }
            "cmp" => {
                if let Some(Held::Mark { mask, .. }) = number(1).and_then(|r| registers.get(&r)) {
                    // The whole mark is compared: bits that are not in the value, ours among them,
                    // are zero where anybody looks.
                    let compared = attribute(data, 3).and_then(value).unwrap_or(0);
                    bits |= if *mask == u32::MAX { compared } else { *mask };
                }
            }
            // iptables' own: mark, mask; without a mask of its own, all bits.
            "match" | "target" if attribute(data, 1).map(text).is_some_and(|n| is_mark(&n)) => {
                let word = |at| attribute(data, 3).and_then(|info| ne(info, at)).unwrap_or(0);
                bits |= match word(4) {
                    u32::MAX => word(0),
                    mask => mask | word(0),
                };
            }
            // Whatever loads something else.
            _ => {
                registers.extend(number(1).map(|to| (to, Held::Other { mask: u32::MAX })));
            }
        }
    }
    bits
}

/// Key of the packet's mark, or of the connection's.
fn mark_key(expression: &str) -> u32 {
    let key = if expression == "ct" { libc::NFT_CT_MARK } else { libc::NFT_META_MARK };
    key as u32
}

/// The attribute of the register that is written from.
fn source(expression: &str) -> i32 {
    if expression == "ct" {
        4
    } else {
        3
    }
}

fn is_mark(name: &str) -> bool {
    ["mark", "connmark"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Uses by rules of policy routing.
fn policies() -> io::Result<Vec<Use>> {
    let mut uses = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut writer = Writer::default();
        writer.begin(libc::RTM_GETRULE.into(), libc::NLM_F_DUMP, 1, family as u8, 0);
        writer.finish();
        Socket::open_routing()?.dump(&writer, |message| uses.extend(policy(&message)))?;
    }
    Ok(uses)
}

/// Mark bits of a rule of policy routing.
fn policy(message: &Message<'_>) -> Option<Use> {
    const HEADER: usize = 12;
    let (mut mark, mut mask, mut priority) = (0, None, 0);
    for (kind, data) in attributes(message.body.get(HEADER..)?) {
        match kind {
            6 => priority = ne(data, 0)?,
            10 => mark = ne(data, 0)?,
            16 => mask = ne(data, 0),
            _ => {}
        }
    }
    let bits = if mark == 0 { 0 } else { mask.filter(|&mask| mask != u32::MAX).unwrap_or(mark) };
    (bits != 0).then(|| Use { bits, by: format!("the rule {priority} of `ip rule`") })
}

/// A number in network order.
fn be(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?))
}

/// A number in the machine's own order.
fn ne(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The value inside of an NFTA_DATA attribute: marks are in the machine's own order.
fn value(data: &[u8]) -> Option<u32> {
    ne(attribute(data, 1)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(bits: u32) -> Use {
        Use { bits, by: format!("user of {bits:#x}") }
    }

    #[test]
    fn free_bits_are_chosen_and_configured_ones_kept_with_a_word() {
        let mask = |configured, uses: &[Use]| decide(configured, uses).unwrap().bits.mask();
        assert_eq!(mask(None, &[]), 0x3000_0000);
        assert_eq!(mask(None, &[used(0xff)]), 0x3000_0000);
        assert_eq!(mask(None, &[used(0xffff_0000)]), 0xc000);
        assert_eq!(mask(None, &[used(0x1000_0000), used(0x4000_0000)]), 0xa000_0000);
        assert_eq!(mask(None, &[used(0x7fff_fffe)]), 0x8000_0001);
        let configured = MarkBits::new(0x300).unwrap();
        let choice = decide(Some(configured), &[used(1), used(0x200)]).unwrap();
        assert_eq!(choice.bits, configured);
        let [warning] = &choice.warnings[..] else { panic!("{:?}", choice.warnings) };
        assert!(warning.contains("0x300") && warning.contains("user of 0x200"), "{warning}");
        assert!(decide(Some(configured), &[used(1)]).unwrap().warnings.is_empty());
        let none = decide(None, &[used(0x7fff_ffff)]).err().unwrap().to_string();
        assert!(none.contains("user of 0x7fffffff"), "{none}");
    }

    #[test]
    fn four_bits_beside_each_other_name_a_tier() {
        let mask = |decisions, uses: &[Use]| tiers(MarkBits::new(decisions).unwrap(), uses);
        assert_eq!(mask(0x3000_0000, &[]).unwrap(), 0x0f00_0000);
        assert_eq!(mask(0x0300_0000, &[]).unwrap(), 0xf000_0000);
        assert_eq!(mask(0x3000_0000, &[used(0x0400_0000)]).unwrap(), 0x03c0_0000);
        assert_eq!(mask(0x3000_0000, &[used(0xffff_0000)]).unwrap(), 0x0000_f000);
        let none = mask(0x3000_0000, &[used(0x8888_8888)]).unwrap_err().to_string();
        assert!(none.contains("user of 0x88888888"), "{none}");
    }

    /// An expression's name, and a writer of its data.
    type Expression<'a> = (&'a str, &'a dyn Fn(&mut Writer));

    /// A rule of a table with these expressions.
    fn told(table: &str, chain: &str, list: &[Expression<'_>]) -> Option<Use> {
        let mut writer = Writer::default();
        writer.begin(0, 0, 1, 2, 0);
        writer.string(1, table);
        writer.string(2, chain);
        let open = writer.start(4);
        for (name, data) in list {
            let element = writer.start(1);
            writer.string(1, name);
            let inner = writer.start(2);
            data(&mut writer);
            writer.end(inner);
            writer.end(element);
        }
        writer.end(open);
        writer.finish();
        Other::read(&crate::netlink::Messages(writer.bytes()).next().expect("a message"))
            .and_then(|other| rule(&other))
    }

    fn bits(list: &[Expression<'_>]) -> u32 {
        told("filter", "forward", list).map_or(0, |used| used.bits)
    }

    /// An attribute with a value of the mark.
    fn data(writer: &mut Writer, kind: i32, value: u32) {
        let open = writer.start(kind);
        writer.attribute(1, &value.to_ne_bytes());
        writer.end(open);
    }

    fn load(writer: &mut Writer) {
        writer.number(1, 1);
        writer.number(2, libc::NFT_META_MARK);
    }

    fn store(writer: &mut Writer) {
        writer.number(2, libc::NFT_META_MARK);
        writer.number(3, 1);
    }

    /// The bits that `nft` compares, `meta mark & 0xf0 == 0x10`, and those that it sets, `meta mark
    /// set meta mark & 0xff | 0x100`.
    #[test]
    fn bits_of_nftables_rules_are_those_compared_or_set() {
        let bitwise = |mask, xor| {
            move |w: &mut Writer| {
                w.number(1, 1);
                w.number(2, 1);
                data(w, 4, mask);
                data(w, 5, xor);
            }
        };
        let cmp = |value| {
            move |w: &mut Writer| {
                w.number(1, 1);
                data(w, 3, value);
            }
        };
        let immediate = |value| {
            move |w: &mut Writer| {
                w.number(1, 1);
                data(w, 2, value);
            }
        };
        assert_eq!(bits(&[("meta", &load), ("cmp", &cmp(0x21))]), 0x21);
        let masked = bitwise(0xf0, 0);
        assert_eq!(bits(&[("meta", &load), ("bitwise", &masked), ("cmp", &cmp(0x10))]), 0xf0);
        assert_eq!(bits(&[("immediate", &immediate(0x5)), ("meta", &store)]), 5);
        let changed = bitwise(!0xff00, 0x300);
        assert_eq!(bits(&[("meta", &load), ("bitwise", &changed), ("meta", &store)]), 0xff00);
        let again = [("bitwise", &changed as &dyn Fn(&mut Writer)), ("bitwise", &changed)];
        let twice = [&[("meta", &load as &dyn Fn(&mut Writer))][..], &again, &[("meta", &store)]];
        assert_eq!(bits(&twice.concat()), 0xff00);
        let set = bitwise(u32::MAX, 0x30);
        assert_eq!(bits(&[("meta", &load), ("bitwise", &set), ("meta", &store)]), 0x30);
        // The connection's mark is another one of the same bits.
        let load_ct = |w: &mut Writer| {
            w.number(1, 1);
            w.number(2, libc::NFT_CT_MARK);
        };
        let store_ct = |w: &mut Writer| {
            w.number(2, libc::NFT_CT_MARK);
            w.number(4, 1);
        };
        assert_eq!(bits(&[("ct", &load_ct), ("bitwise", &masked), ("cmp", &cmp(0x10))]), 0xf0);
        assert_eq!(bits(&[("ct", &load_ct), ("bitwise", &changed), ("ct", &store_ct)]), 0xff00);
        assert_eq!(bits(&[("immediate", &immediate(0x5)), ("ct", &store_ct)]), 5);
        // Of another thing, the bits that are let through; a whole one may have any.
        let other = |w: &mut Writer| w.number(1, 1);
        assert_eq!(bits(&[("ct", &other), ("bitwise", &masked), ("meta", &store)]), 0xf0);
        assert_eq!(bits(&[("ct", &other), ("meta", &store)]), 0);
        assert_eq!(bits(&[("ct", &other), ("cmp", &cmp(0x21))]), 0);
        let priority = |w: &mut Writer| {
            w.number(1, 1);
            w.number(2, libc::NFT_META_PRIORITY);
        };
        assert_eq!(bits(&[("meta", &priority), ("cmp", &cmp(0x21))]), 0);
        let by = told("fw4", "mangle_forward", &[("meta", &load), ("cmp", &cmp(0x21))]).unwrap().by;
        assert!(by.contains("`mangle_forward` of table `fw4`"), "{by}");
        assert_eq!(told("simnel_eth0", "post", &[("meta", &load), ("cmp", &cmp(1))]), None);
    }

    /// iptables over nftables (`xt_mark`): `--mark 0x10/0xf0`, `--set-xmark`. Without a mask all
    /// bits are compared or set, of which those of the value matter, as in nftables' own words.
    #[test]
    fn bits_of_iptables_rules_are_those_of_mark_and_mask() {
        let xt = |name: &'static str, mark: u32, mask: u32| {
            move |w: &mut Writer| {
                w.string(1, name);
                w.attribute(3, &[mark.to_ne_bytes(), mask.to_ne_bytes()].concat());
            }
        };
        assert_eq!(bits(&[("match", &xt("mark", 0x10, 0xf0))]), 0xf0);
        assert_eq!(bits(&[("target", &xt("MARK", 0x100, 0x3f00))]), 0x3f00);
        assert_eq!(bits(&[("match", &xt("mark", 0x21, u32::MAX))]), 0x21);
        assert_eq!(bits(&[("target", &xt("MARK", 0x21, u32::MAX))]), 0x21);
        assert_eq!(bits(&[("match", &xt("connmark", 0x10, 0xf0))]), 0xf0);
        assert_eq!(bits(&[("target", &xt("CONNMARK", 0x100, 0x3f00))]), 0x3f00);
        // `--xor-mark` has no mask.
        assert_eq!(bits(&[("target", &xt("MARK", 0x4, 0))]), 0x4);
        assert_eq!(bits(&[("target", &xt("DSCP", 0x4, 0xf))]), 0);
    }

    /// `ip rule add fwmark 0x100/0xff00 pref 77`.
    #[test]
    fn bits_of_policy_rules_are_those_of_their_masks() {
        let told = |mark: Option<u32>, mask: Option<u32>| {
            let mut writer = Writer::default();
            writer.begin_with(0, 0, 1, &[0; 12]);
            writer.attribute(6, &77u32.to_ne_bytes());
            mark.iter().for_each(|mark| writer.attribute(10, &mark.to_ne_bytes()));
            mask.iter().for_each(|mask| writer.attribute(16, &mask.to_ne_bytes()));
            writer.finish();
            policy(&crate::netlink::Messages(writer.bytes()).next().expect("a message"))
        };
        let bits = |mark, mask| told(mark, mask).map(|used| used.bits);
        assert_eq!(bits(Some(0x100), Some(0xff00)), Some(0xff00));
        assert_eq!(bits(Some(0x100), Some(u32::MAX)), Some(0x100));
        assert_eq!(bits(Some(0x100), None), Some(0x100));
        assert_eq!((bits(None, Some(0xff00)), bits(Some(0), Some(0xff00))), (None, None));
        assert!(told(Some(1), None).unwrap().by.contains("the rule 77 of `ip rule`"));
    }

    #[test]
    fn any_bytes_of_rules_are_read_without_a_panic() {
        let mut random = simnel_core::random::Random::new(23);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(120)).map(|_| random.below(24) as u8).collect();
            let message = Message { kind: 0, flags: 0, seq: 0, body: &bytes };
            let other = Other::read(&message);
            let _ = (other.and_then(|other| rule(&other)), policy(&message), expressions(&bytes));
        }
    }

    /// Calico takes all bits that its manual names, whichever its rules show.
    #[test]
    fn who_is_known_takes_all_of_its_bits() {
        let compares: &[Expression<'_>] = &[
            ("meta", &load),
            ("cmp", &|w: &mut Writer| {
                w.number(1, 1);
                data(w, 3, 0x21);
            }),
        ];
        let bits = |table, chain| told(table, chain, compares).map(|used| used.bits);
        assert_eq!(bits("filter", "cali-FORWARD"), Some(0xffff_0021));
        assert_eq!(bits("calico", "forward"), Some(0xffff_0021));
        assert_eq!(bits("filter", "forward"), Some(0x21));
        assert_eq!(told("filter", "cali-FORWARD", &[]), None);
    }

    #[test]
    fn tables_of_the_old_iptables_are_told_where_there_are_some() {
        let none = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert!(!names_tables([none(), none()]) && !names_tables([Ok(String::new()), none()]));
        assert!(names_tables([none(), Ok("filter\n".into())]));
        assert!(names_tables([Ok("mangle\nfilter\n".into()), Ok(String::new())]));
    }

    #[test]
    fn bits_of_policy_routing_are_left_to_it() {
        use crate::apart::{apart, ip};
        apart("bits_of_policy_routing_are_left_to_it", || {
            let chosen = || {
                let Choice { bits, warnings } = choose(None, &Lists::default()).unwrap();
                assert!(warnings.is_empty(), "{warnings:?}");
                (bits.mask(), choose_tiers(bits).unwrap())
            };
            assert_eq!(chosen(), (0x3000_0000, 0x0f00_0000));
            ip("rule add fwmark 0x04000000/0x04000000 table 7");
            assert_eq!(chosen(), (0x3000_0000, 0x03c0_0000));
            ip("rule add fwmark 0x10000000/0x10000000 table 7");
            assert_eq!(chosen(), (0xc000_0000, 0x03c0_0000));
            // What was configured stays, with a word.
            let choice = choose(Some(MarkBits::DEFAULT), &Lists::default()).unwrap();
            assert_eq!(choice.bits, MarkBits::DEFAULT);
            assert!(choice.warnings[0].contains("of `ip rule`"), "{:?}", choice.warnings);
        });
    }
}

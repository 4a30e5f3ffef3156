//! Interfaces that lead somewhere, over rtnetlink (linux/rtnetlink.h): to everywhere, by the main
//! table's default routes, or to one address. Default routes that lead nowhere (unreachable,
//! blackhole) do not count.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::{attribute, Message, Socket, Writer};
use crate::sys;

/// Bytes of a `struct rtmsg`: family, lengths of both prefixes, TOS, table, protocol, scope, type;
/// flags.
const FIXED: usize = 12;
/// Bytes of a `struct rtnexthop`: length, flags, hops, number of the interface.
const NEXT_HOP: usize = 8;

const OIF: i32 = libc::RTA_OIF as i32;
const GATEWAY: i32 = libc::RTA_GATEWAY as i32;
const PRIORITY: i32 = libc::RTA_PRIORITY as i32;
const MULTIPATH: i32 = libc::RTA_MULTIPATH as i32;

/// A way of a default route, which may have several: packets are spread over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    /// The least is preferred.
    metric: u32,
    /// Number of the interface.
    index: u32,
    router: Option<IpAddr>,
}

/// Names of the interfaces that default routes leave by, each once.
pub fn default_routes() -> Vec<String> {
    let mut names = preferred().concat();
    names.sort();
    names.dedup();
    names
}

/// The same of IPv4 and of IPv6, the preferred one first.
pub(crate) fn preferred() -> [Vec<String>; 2] {
    ways().map(|ways| names(&ways))
}

/// The preferred one of IPv4 and of IPv6: `interface`, if it is as good as any.
pub(crate) fn best(interface: &str) -> [Option<String>; 2] {
    ways().map(|mut ways| {
        let least = ways.first().map_or(0, |way| way.metric);
        ways.retain(|way| way.metric == least);
        let mut names = names(&ways);
        let ours = names.iter().position(|name| name == interface);
        (!names.is_empty()).then(|| names.swap_remove(ours.unwrap_or(0)))
    })
}

/// The router that IPv4's default route leads to, if it is a router at home: one with a private
/// address (RFC 1918). None for a machine that is itself at the line's end.
pub fn home_router() -> Option<Ipv4Addr> {
    let [ipv4, _] = ways();
    match ipv4.first()?.router {
        Some(IpAddr::V4(router)) => Some(router).filter(Ipv4Addr::is_private),
        _ => None,
    }
}

/// The router that a default route by `interface` leads to, whatever its address: IPv4's, or else
/// IPv6's. None where routes name none, as on point-to-point links.
pub fn next_hop(interface: &str) -> Option<IpAddr> {
    let by = |way: &Way| sys::interface_name(way.index).is_some_and(|name| name == interface);
    ways().into_iter().flatten().filter(by).find_map(|way| way.router)
}

/// Number of the interface that leads from here to `address`; None if none does.
pub(crate) fn leads_to(socket: &Socket, address: IpAddr) -> Option<u32> {
    const DESTINATION: i32 = libc::RTA_DST as i32;
    let octets = match &address {
        IpAddr::V4(address) => &address.octets()[..],
        IpAddr::V6(address) => &address.octets()[..],
    };
    let mut fixed = [0; FIXED];
    fixed[0] = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
    fixed[1] = 8 * octets.len() as u8;
    let mut question = Writer::default();
    question.begin_with(libc::RTM_GETROUTE.into(), libc::NLM_F_ACK, 1, &fixed);
    question.attribute(DESTINATION, octets);
    question.finish();
    let mut index = None;
    let found = |message: Message<'_>| {
        let mut attributes = message.attributes_after(FIXED);
        index = attributes.find(|(kind, _)| *kind == OIF).map(|(_, data)| number(data));
    };
    socket.question(&question, found).ok()?;
    index
}

/// The interfaces' names, each once.
fn names(ways: &[Way]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in ways.iter().filter_map(|way| sys::interface_name(way.index)) {
        if name != "lo" && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The ways of all default routes of IPv4 and of IPv6, the preferred ones first.
fn ways() -> [Vec<Way>; 2] {
    // Where there is no table, there are no routes.
    [libc::AF_INET, libc::AF_INET6].map(|family| ask(family as u8).unwrap_or_default())
}

fn ask(family: u8) -> io::Result<Vec<Way>> {
    let mut fixed = [0; FIXED];
    (fixed[0], fixed[4], fixed[7]) = (family, libc::RT_TABLE_MAIN, libc::RTN_UNICAST);
    let mut question = Writer::default();
    question.begin_with(libc::RTM_GETROUTE.into(), libc::NLM_F_DUMP, 1, &fixed);
    question.finish();
    let mut ways = Vec::new();
    let socket = Socket::open_routing()?.filtered()?;
    socket.dump(&question, |message| read(&message, family, &mut ways))?;
    ways.sort_by_key(|way| way.metric);
    Ok(ways)
}

/// Adds the ways of a route, if it is a default route of `family`.
fn read(message: &Message<'_>, family: u8, ways: &mut Vec<Way>) {
    let Some(&[version, length, _, _, table, _, _, kind, ..]) = message.body.first_chunk::<FIXED>()
    else {
        return;
    };
    let asked = (family, 0, libc::RT_TABLE_MAIN, libc::RTN_UNICAST);
    if message.kind != i32::from(libc::RTM_NEWROUTE) || (version, length, table, kind) != asked {
        return;
    }
    let mut way = Way::default();
    let mut hops: &[u8] = &[];
    for (kind, data) in message.attributes_after(FIXED) {
        match kind {
            OIF => way.index = number(data),
            PRIORITY => way.metric = number(data),
            GATEWAY => way.router = router(data),
            MULTIPATH => hops = data,
            _ => {}
        }
    }
    if hops.is_empty() {
        ways.push(way);
    }
    while let Some((hop, rest)) = first_of(hops) {
        let gateway = attribute(&hop[NEXT_HOP..], GATEWAY);
        ways.push(Way { index: number(&hop[4..]), router: gateway.and_then(router), ..way });
        hops = rest;
    }
}

/// The first of several next hops, and the others.
fn first_of(hops: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes(*hops.first_chunk()?));
    let hop = hops.get(..length).filter(|hop| hop.len() >= NEXT_HOP)?;
    Some((hop, hops.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn number(data: &[u8]) -> u32 {
    data.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn router(data: &[u8]) -> Option<IpAddr> {
    let ipv4 = <[u8; 4]>::try_from(data).map(|octets| Ipv4Addr::from(octets).into());
    ipv4.or(<[u8; 16]>::try_from(data).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    const INET: u8 = libc::AF_INET as u8;
    const HOME: [u8; 4] = [192, 168, 0, 1];

    /// A route of the kernel's: family, length of the prefix, table and type.
    fn told(fixed: [u8; 4], attributes: &[(i32, &[u8])]) -> Vec<u8> {
        let [family, length, table, kind] = fixed;
        let fixed = [family, length, 0, 0, table, 4, 0, kind, 0, 0, 0, 0];
        let mut writer = Writer::default();
        writer.begin_with(libc::RTM_NEWROUTE.into(), 0, 1, &fixed);
        attributes.iter().for_each(|(kind, data)| writer.attribute(*kind, data));
        writer.finish();
        writer.bytes().to_vec()
    }

    fn ways_of(bytes: &[u8]) -> Vec<Way> {
        let mut ways = Vec::new();
        Messages(bytes).for_each(|message| read(&message, INET, &mut ways));
        ways
    }

    fn way(metric: u32, index: u32, router: Option<[u8; 4]>) -> Way {
        Way { metric, index, router: router.map(IpAddr::from) }
    }

    #[test]
    fn default_routes_are_told_from_others() {
        let (index, metric) = (7u32.to_ne_bytes(), 20u32.to_ne_bytes());
        let all = [(OIF, &index[..]), (PRIORITY, &metric[..]), (GATEWAY, &HOME[..])];
        let (main, unicast) = (libc::RT_TABLE_MAIN, libc::RTN_UNICAST);
        for (fixed, expected) in [
            ([INET, 0, main, unicast], vec![way(20, 7, Some(HOME))]),
            ([INET, 1, main, unicast], vec![]),
            ([INET, 0, 100, unicast], vec![]),
            // Unreachable.
            ([INET, 0, main, 7], vec![]),
            ([libc::AF_INET6 as u8, 0, main, unicast], vec![]),
        ] {
            assert_eq!(ways_of(&told(fixed, &all)), expected, "{fixed:?}");
        }
        let alone = told([INET, 0, main, unicast], &[(OIF, &index)]);
        assert_eq!(ways_of(&alone), [way(0, 7, None)]);
    }

    #[test]
    fn each_next_hop_is_a_way_and_any_cut_is_harmless() {
        let hop = |index: u32, gateway: &[u8]| {
            let length = (NEXT_HOP + gateway.len()) as u16;
            [&length.to_ne_bytes()[..], &[0, 0], &index.to_ne_bytes(), gateway].concat()
        };
        let gateway = [&8u16.to_ne_bytes()[..], &5u16.to_ne_bytes(), &HOME].concat();
        let hops = [hop(3, &gateway), hop(9, &[])].concat();
        let metric = 5u32.to_ne_bytes();
        let attributes = [(PRIORITY, &metric[..]), (MULTIPATH, &hops[..])];
        let bytes = told([INET, 0, libc::RT_TABLE_MAIN, libc::RTN_UNICAST], &attributes);
        assert_eq!(ways_of(&bytes), [way(5, 3, Some(HOME)), way(5, 9, None)]);
        for cut in 0..bytes.len() {
            ways_of(&bytes[..cut]);
        }
        let mut random = simnel_core::random::Random::new(7);
        for _ in 0..20_000 {
            let mut bytes = bytes.clone();
            let at = random.below(bytes.len() as u32) as usize;
            bytes[at] = random.u32() as u8;
            assert!(ways_of(&bytes).len() < 64);
        }
    }

    #[test]
    fn the_preferred_way_is_that_of_the_least_metric() {
        use crate::apart::{apart, cable, ip};
        apart("the_preferred_way_is_that_of_the_least_metric", || {
            assert_eq!((default_routes(), home_router()), (vec![], None));
            assert_eq!(best("wan"), [None, None]);
            cable("wan", "far", "10.7.0.2/24");
            cable("lte", "far2", "10.8.0.2/24");
            ip("route add default via 10.7.0.1 dev wan metric 20");
            ip("route add default dev lte metric 10");
            ip("route add default dev lte metric 30");
            ip("route add default dev lo metric 5");
            assert_eq!(default_routes(), ["lte", "wan"]);
            assert_eq!(preferred()[0], ["lte", "wan"]);
            assert_eq!((best("wan")[0].take(), home_router()), (None, None), "it is loopback");
            ip("route del default dev lo metric 5");
            let of = |interface| best(interface)[0].take();
            assert_eq!((of("wan").as_deref(), home_router()), (Some("lte"), None));
            ip("route add default metric 1 nexthop via 10.7.0.1 dev wan nexthop dev lte");
            assert_eq!([of("wan"), of("lte")], ["wan", "lte"].map(|name| Some(name.into())));
            assert_eq!((of("dsl").as_deref(), home_router()), (Some("wan"), Some(HOME_ROUTER)));
        });
    }

    #[test]
    fn the_next_hop_is_that_of_the_interface_whatever_its_address() {
        use crate::apart::{apart, cable, ip};
        apart("the_next_hop_is_that_of_the_interface_whatever_its_address", || {
            cable("wan", "far", "203.0.113.2/24");
            cable("lte", "far2", "10.8.0.2/24");
            assert_eq!(next_hop("wan"), None);
            ip("-6 route add default via fe80::1 dev wan");
            assert_eq!(next_hop("wan"), Some("fe80::1".parse().unwrap()));
            ip("route add default via 203.0.113.1 dev wan metric 20");
            ip("route add default dev lte metric 10");
            assert_eq!((next_hop("lte"), home_router()), (None, None));
            assert_eq!(next_hop("wan"), Some("203.0.113.1".parse().unwrap()));
        });
    }

    const HOME_ROUTER: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
}

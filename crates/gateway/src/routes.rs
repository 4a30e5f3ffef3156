//! Which interfaces lead to everywhere: the default routes of the main table, as /proc lists them.

use std::fs;
use std::net::Ipv4Addr;

/// Where a table of /proc has its columns.
struct Columns {
    name: usize,
    /// A number with this radix, the least is preferred.
    metric: (usize, u32),
    /// Destination and mask, and how many zeros they are.
    zero: [(usize, usize); 2],
}

const FOUR: Columns = Columns { name: 0, metric: (6, 10), zero: [(1, 8), (7, 8)] };
const SIX: Columns = Columns { name: 9, metric: (5, 16), zero: [(0, 32), (1, 2)] };

/// Names of the interfaces that default routes leave by, each once.
pub fn default_routes() -> Vec<String> {
    let mut names = preferred().concat();
    names.sort();
    names.dedup();
    names
}

/// The same of IPv4 and of IPv6, the preferred one first.
pub(crate) fn preferred() -> [Vec<String>; 2] {
    let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    [("route", &FOUR), ("ipv6_route", &SIX)].map(|(file, columns)| {
        let mut names = defaults(&read(file).unwrap_or_default(), columns);
        names.retain(|name| name != "lo");
        names
    })
}

/// The router that IPv4's default route leads to, if it is a router at home: one with a private
/// address (RFC 1918). None for a machine that is itself at the line's end.
pub fn home_router() -> Option<Ipv4Addr> {
    let table = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    router(&table).filter(Ipv4Addr::is_private)
}

/// The gateway of the default route with the least metric.
fn router(table: &str) -> Option<Ipv4Addr> {
    let route = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, "00000000", gateway, _, _, _, metric, "00000000", ..] = columns[..] else {
            return None;
        };
        // As the machine has it in memory.
        let gateway = u32::from_str_radix(gateway, 16).ok()?.to_ne_bytes();
        Some((metric.parse::<u32>().ok()?, Ipv4Addr::from(gateway)))
    };
    let (_, gateway) = table.lines().filter_map(route).min_by_key(|(metric, _)| *metric)?;
    (!gateway.is_unspecified()).then_some(gateway)
}

/// Names in the lines whose destination and mask are zero, by their metric, each once.
fn defaults(table: &str, at: &Columns) -> Vec<String> {
    let lead_everywhere = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_zero = |(at, digits): (usize, usize)| {
            columns.get(at).is_some_and(|text| *text == "0".repeat(digits))
        };
        let metric = u32::from_str_radix(columns.get(at.metric.0)?, at.metric.1).ok()?;
        let name = String::from(*columns.get(at.name)?);
        at.zero.into_iter().all(is_zero).then_some((metric, name))
    };
    let mut all: Vec<(u32, String)> = table.lines().filter_map(lead_everywhere).collect();
    all.sort_by_key(|(metric, _)| *metric);
    let mut names: Vec<String> = Vec::new();
    for (_, name) in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_told_from_others() {
        let four =
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                    wan\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                    lan\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
                    vpn\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n";
        assert_eq!(defaults(four, &FOUR), ["wan"]);
        if cfg!(target_endian = "little") {
            assert_eq!(router(four), Some(Ipv4Addr::new(192, 168, 0, 1)));
        }
        let two = "lte\t00000000\t0100A8C0\t3\t0\t0\t20\t00000000\t0\t0\t0\n\
                   wan\t00000000\t0100A8C0\t3\t0\t0\t9\t00000000\t0\t0\t0\n";
        assert_eq!(defaults(&two.repeat(2), &FOUR), ["wan", "lte"]);
        assert_eq!(router("nonsense\n\n"), None);
        let zeros = "0".repeat(32);
        let line = |bits, name| {
            format!(
                "{zeros} {bits} {zeros} 00 {zeros} 00000400 00000001 00000000 00000003 {name}\n"
            )
        };
        let six = line("00", "pppoe-wan") + &line("40", "lan");
        assert_eq!(defaults(&six, &SIX), ["pppoe-wan"]);
        assert!(defaults("nonsense\n\n", &FOUR).is_empty());
    }
}

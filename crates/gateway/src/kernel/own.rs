//! Statistics that are a discipline's own: cake's tins, marks, and sojourn times.
//!
//! The module tells them as JSON with the keys of `tc -j`, Linux's cake as `TCA_CAKE_STATS_*`
//! (linux/pkt_sched.h).

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::Deserialize;
use simnel_core::qdisc::cake::TinStats;
use simnel_core::qdisc::netlink::read_statistics;
use simnel_core::sojourns::{Sojourns, BUCKETS};
use simnel_core::Span;

use super::qdiscs::Listed;

/// Statistics of a discipline's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Packets marked; None where that is not told.
    pub marks: Option<u64>,
    /// Tins of cake, in the order in which `tc` shows them.
    pub tins: Vec<TinStats>,
    /// Sojourn times of packets that were queued; Linux's disciplines have none.
    pub sojourns: Option<Sojourns>,
}

impl Own {
    /// The statistics in `listed`. Those that cannot be read are left out.
    pub fn of(listed: &Listed) -> Own {
        match listed.is_ours() {
            true => Own::of_json(&listed.json()),
            false => Own::of_linux(&listed.kind, &listed.own),
        }
    }

    fn of_tins(tins: Vec<TinStats>) -> Own {
        let marks = tins.iter().fold(0u64, |sum, tin| sum + u64::from(tin.ecn_mark));
        Own { marks: (!tins.is_empty()).then_some(marks), tins, sojourns: None }
    }

    fn of_linux(kind: &str, bytes: &[u8]) -> Own {
        let mut tins = BTreeMap::<u16, BTreeMap<&str, u64>>::new();
        read_statistics(kind, bytes, &mut |figure| {
            if let (Some(part), Some(name)) = (figure.part, figure.name) {
                tins.entry(part).or_default().insert(name, figure.value);
            }
        });
        Own::of_tins(tins.values().map(tin).collect())
    }

    fn of_json(text: &str) -> Own {
        let Ok(told) = serde_json::from_str::<Told>(text) else { return Own::default() };
        let own = Own::of_tins(told.tins.iter().map(tin).collect());
        let counts = <[u64; BUCKETS]>::try_from(told.sojourns).ok();
        let sojourns = counts.map(|counts| Sojourns { counts, last: Span(told.sojourn_ns) });
        Own { marks: own.marks.or(told.ecn_mark), sojourns, ..own }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    tins: Vec<BTreeMap<String, u64>>,
    ecn_mark: Option<u64>,
    sojourn_ns: u64,
    sojourns: Vec<u64>,
}

/// One tin, by the keys of `tc -j`. The bytes dropped are not told: a dropped packet counts as one
/// of mean length.
fn tin<K: Borrow<str> + Ord>(told: &BTreeMap<K, u64>) -> TinStats {
    let told = |key: &str| told.get(key).copied().unwrap_or(0);
    let count = |key: &str| u32::try_from(told(key)).unwrap_or(u32::MAX);
    let mean = told("sent_bytes").checked_div(told("sent_packets")).unwrap_or(0);
    let dropped = u64::from(count("drops")) + u64::from(count("ack_drops"));
    TinStats {
        sent_bytes: told("sent_bytes"),
        sent_packets: told("sent_packets"),
        backlog_bytes: told("backlog_bytes"),
        drops: count("drops"),
        ack_drops: count("ack_drops"),
        ecn_mark: count("ecn_mark"),
        avg_delay: Span::from_micros(told("avg_delay_us")),
        dropped_bytes: dropped.saturating_mul(mean),
        ..TinStats::default()
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::qdisc::{self, Common, Detail, Snapshot};
    use simnel_core::tc::Json;

    use super::*;

    /// One of 30 packets and 30,000 bytes, of which five packets were dropped.
    fn tin() -> TinStats {
        TinStats {
            sent_bytes: 30_000,
            sent_packets: 30,
            backlog_bytes: 4_000,
            drops: 2,
            ack_drops: 3,
            ecn_mark: 5,
            avg_delay: Span::from_micros(700),
            dropped_bytes: 5 * 1_000,
            ..TinStats::default()
        }
    }

    /// Statistics of cake with three tins, of which the second is [`tin`].
    fn snapshot() -> Snapshot {
        let words = "cake bandwidth 9mbit diffserv3";
        let config = qdisc::parse(words).unwrap();
        let mut snapshot = qdisc::build(&config, &qdisc::Device::default()).unwrap().snapshot();
        let Detail::Cake(stats) = &mut snapshot.detail else { panic!("{words}") };
        stats.tins[1] = tin();
        snapshot
    }

    #[test]
    fn tins_are_read_as_the_module_and_as_linux_tell_them() {
        let snapshot = snapshot();
        let mut json = String::new();
        qdisc::show_own_json(&snapshot, &mut json).unwrap();
        let mut bytes = [0; 4096];
        let length = qdisc::netlink::write_statistics(&snapshot, &mut bytes).unwrap();
        let tins = vec![TinStats::default(), tin(), TinStats::default()];
        let expected = Own { marks: Some(5), tins, sojourns: None };
        assert_eq!(Own::of_json(&json), expected);
        assert_eq!(Own::of_linux("cake", &bytes[..length]), expected);
        assert_eq!(tin().released_bytes(), 30_000 - 4_000 - 5 * 1_000);
        for cut in 0..length {
            let _ = Own::of_linux("cake", &bytes[..cut]);
        }
    }

    #[test]
    fn others_tell_marks_or_nothing() {
        let json = |words: &str| {
            let config = qdisc::parse(words).unwrap();
            let qdisc = qdisc::build(&config, &qdisc::Device::default()).unwrap();
            let mut json = String::new();
            qdisc::show_own_json(&qdisc.snapshot(), &mut json).unwrap();
            Own::of_json(&json)
        };
        assert_eq!(json("fq_codel"), Own { marks: Some(0), ..Own::default() });
        assert_eq!(json("pfifo limit 9"), Own::default());
        let mut sojourns = Sojourns::default();
        sojourns.add(Span::from_millis(3), 2);
        let mut told = String::new();
        let mut json = Json::new(&mut told);
        json.begin_object().and_then(|()| sojourns.write_json(&mut json)).unwrap();
        json.end_object().unwrap();
        assert_eq!(Own::of_json(&told).sojourns, Some(sojourns));
        for wrong in [
            "",
            "{",
            "[]",
            r#"{"tins": 3}"#,
            r#"{"tins": [{"drops": -1}]}"#,
            r#"{"sojourns": [1]}"#,
        ] {
            assert_eq!(Own::of_json(wrong), Own::default(), "{wrong}");
        }
        let listed = |kind: &str, own: &[u8]| Listed {
            device: "wan".to_owned(),
            kind: kind.to_owned(),
            handle: 0,
            parent: 0,
            refcnt: 0,
            options: Vec::new(),
            common: Common::default(),
            own: own.to_vec(),
        };
        assert_eq!(Own::of(&listed("htb", &[12, 0, 10, 0, 1, 0, 0, 0])), Own::default());
    }
}

//! Statements of Controlling Queue Delay. Grids are judged by the mean over their runs.

use super::{of, rising, List};
use crate::experiments::paper::claim::Judge::{
    All, AtLeast, AtMost, Between, DifferMore, Near, NotAbove, Ratio,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::codel::{rate_name, FALLS, FAST, LONG_RTTS, SLOW};

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "C1" => fast(list),
        "C2" => slow(list),
        "C3" => dynamic(list),
        "C4" => by_rtt(list),
        "C5" => fairness(list),
        "C6" => edge(list),
        "C7" => everywhere(list),
        _ => {}
    }
}

fn fast(list: &mut List<'_>) {
    for kbit in FAST {
        let rate = rate_name(kbit);
        let of = |aqm: &str, kind: &str, what: &str| of(format!("{aqm} {rate} 1500 {kind}"), what);
        list.named(
            &format!("{rate}.delay"),
            &format!("{rate}bit/s, transfers only: CoDel's median delay is near its target"),
            "near 5 ms, never tens of ms (mean of medians ≤ 10 ms)",
            AtMost(of("codel", "transfers", "delay"), 10.0),
        );
        list.named(
            &format!("{rate}.utilisation"),
            &format!("{rate}bit/s: CoDel's utilisation is comparable to tail drop's"),
            "at least 90 % of it",
            All(["transfers", "mixed"]
                .map(|kind| {
                    let of = |aqm: &str| of(aqm, kind, "utilisation");
                    Ratio(of("codel"), of("tail"), 0.9, 1.1)
                })
                .into()),
        );
        if kbit >= 10_000 {
            list.named(
                &format!("{rate}.red"),
                &format!("{rate}bit/s: RED's utilisation is lower than CoDel's"),
                "red < codel",
                All(["transfers", "mixed"]
                    .map(|kind| {
                        rising(of("red", kind, "utilisation"), of("codel", kind, "utilisation"))
                    })
                    .into()),
            );
        }
    }
}

fn slow(list: &mut List<'_>) {
    for kbit in SLOW {
        let rate = rate_name(kbit);
        let of =
            |aqm: &str, mtu: u32, what: &str| of(format!("{aqm} {rate} {mtu} transfers"), what);
        list.named(
            &format!("{rate}.mtu"),
            &format!("{rate}bit/s: CoDel's delay is larger with the larger MTU"),
            "500 < 1500 bytes",
            rising(of("codel", 500, "delay"), of("codel", 1500, "delay")),
        );
        list.named(
            &format!("{rate}.utilisation"),
            &format!("{rate}bit/s: utilisation under CoDel is good"),
            "≥ 90 %",
            AtLeast(of("codel", 1500, "utilisation"), 0.9),
        );
        list.named(
            &format!("{rate}.red"),
            &format!("{rate}bit/s: RED's median delays"),
            "100 to 200 ms",
            Between(of("red", 1500, "delay"), 100.0, 200.0),
        );
    }
    let of = |rate: &str, mtu: u32| of(format!("codel {rate} {mtu} transfers"), "delay");
    list.named(
        "lower",
        "the larger MTU costs more at the lower rate: 128 kbit/s against 1.5 Mbit/s",
        "the difference is larger",
        DifferMore((of("128k", 1500), of("128k", 500)), (of("1.5M", 1500), of("1.5M", 500))),
    );
}

fn dynamic(list: &mut List<'_>) {
    list.named(
        "tail.delay",
        "tail drop, 830 packets: longest delay",
        "up to 10 s (± 10 %)",
        Near(of("tail 830", "max"), 10_000.0, Tolerance::share(0.10)),
    );
    // A drop takes a departure: one packet at the slowest rate, 12 ms, and the millisecond of the
    // observer come on top.
    const CONTROL_MS: f64 = 100.0 + 12.0 + 1.0;
    for at in FALLS {
        list.named(
            &format!("spike.{at}"),
            &format!("CoDel: the delay spikes where the rate falls, at {at} s"),
            "peak in the 5 s after above that in the 5 s before",
            rising(of("codel 830", format!("before {at}")), of("codel 830", format!("after {at}"))),
        );
        list.named(
            &format!("control.{at}"),
            &format!("CoDel: a new control point after the fall at {at} s"),
            "within 100 ms of passing the target (and one packet)",
            AtMost(of("control", format!("time {at}")), CONTROL_MS),
        );
    }
    list.named(
        "bytes",
        "CoDel moves nearly the same kilobytes as tail drop",
        "at least 90 %",
        Ratio(of("codel 830", "megabytes"), of("tail 830", "megabytes"), 0.9, 1.1),
    );
    for aqm in ["codel", "red", "tail"] {
        list.named(
            &format!("small.{aqm}"),
            &format!("{aqm}: throughput with 10 packets against 830"),
            "about 75 % less (20 to 30 % left)",
            Ratio(
                of(format!("{aqm} 10"), "megabytes"),
                of(format!("{aqm} 830"), "megabytes"),
                0.2,
                0.3,
            ),
        );
    }
    list.named(
        "small.same",
        "with 10 packets tail drop and CoDel are identical",
        "kilobytes within 5 %",
        Ratio(of("codel 10", "megabytes"), of("tail 10", "megabytes"), 0.95, 1.05),
    );
    list.named(
        "median",
        "CoDel, 830 packets: delay at half of the time",
        "2.7 ms (± 25 % or 1 ms)",
        Near(of("codel 830", "median"), 2.7, Tolerance::LATENCY),
    );
    list.named(
        "p75",
        "CoDel, 830 packets: 75th percentile of the delay over time",
        "5 ms (± 25 % or 1 ms)",
        Near(of("codel 830", "p75"), 5.0, Tolerance::LATENCY),
    );
    list.named(
        "p95",
        "CoDel, 830 packets: 95th percentile of the delay over time",
        "< 90 ms",
        AtMost(of("codel 830", "p95"), 90.0),
    );
}

fn by_rtt(list: &mut List<'_>) {
    let of = |aqm: &str, rtt: u32, what: &str| of(format!("{aqm} {rtt} ms"), what);
    for (what, words) in [("delay", "median delay"), ("utilisation", "utilisation")] {
        let pairs = [50, 100, 200].map(|rtt| {
            let within = if what == "delay" { (0.5, 1.5) } else { (0.9, 1.1) };
            Ratio(of("codel", rtt, what), of("codel", 30, what), within.0, within.1)
        });
        let stated = if what == "delay" { "within 50 % of 30 ms" } else { "within 10 % of 30 ms" };
        list.named(
            &format!("same.{what}"),
            &format!("CoDel's {words} is about the same from 30 to 200 ms"),
            stated,
            All(pairs.into()),
        );
    }
    for rtt in LONG_RTTS.into_iter().filter(|rtt| *rtt < 500) {
        list.named(
            &format!("tail.{rtt}"),
            &format!("{rtt} ms: CoDel's utilisation is close to tail drop's"),
            "at least 95 % of it",
            Ratio(of("codel", rtt, "utilisation"), of("tail", rtt, "utilisation"), 0.95, 1.05),
        );
    }
    list.named(
        "tail.500",
        "500 ms: CoDel's utilisation is below tail drop's",
        "codel < tail drop",
        rising(of("codel", 500, "utilisation"), of("tail", 500, "utilisation")),
    );
}

fn fairness(list: &mut List<'_>) {
    for rtt in LONG_RTTS {
        list.named(
            &rtt.to_string(),
            &format!("{rtt} ms: Jain's index of drop shares"),
            "red < codel",
            rising(of(format!("red {rtt} ms"), "jain"), of(format!("codel {rtt} ms"), "jain")),
        );
    }
}

/// Table 1: drop %, median delay in ms, megabytes, fairness: CoDel, tail drop.
type Cell = (f64, f64);

fn edge(list: &mut List<'_>) {
    let table: [(&str, &str, [Cell; 4]); 4] = [
        ("512k", "down", [(8.0, 8.0), (18.0, 73.0), (17.0, 18.0), (0.87, 0.89)]),
        ("512k", "up", [(1.5, 5.8), (9.0, 37.0), (12.8, 13.9), (0.93, 0.89)]),
        ("1.5M", "down", [(3.5, 4.7), (8.0, 49.0), (37.0, 40.0), (0.81, 0.96)]),
        ("1.5M", "up", [(1.4, 2.5), (0.0, 0.0), (22.0, 21.0), (0.6, 0.71)]),
    ];
    for (rate, way, cells) in table {
        let of = |aqm: &str, what: &str| of(format!("{aqm} {rate}"), format!("{way} {what}"));
        list.named(
            &format!("{rate}.{way}.rule.drops"),
            &format!("{rate}bit/s {way}: CoDel does not drop at a higher rate than tail drop"),
            "codel ≤ tail drop",
            NotAbove(of("codel", "drops"), of("tail", "drops")),
        );
        if (rate, way) != ("1.5M", "up") {
            list.named(
                &format!("{rate}.{way}.rule.delay"),
                &format!("{rate}bit/s {way}: CoDel's median delay against tail drop's"),
                "at most 35 %",
                Ratio(of("codel", "delay"), of("tail", "delay"), 0.0, 0.35),
            );
        }
        list.named(
            &format!("{rate}.{way}.rule.data"),
            &format!("{rate}bit/s {way}: data that CoDel moves against tail drop"),
            "at least 90 %",
            Ratio(of("codel", "megabytes"), of("tail", "megabytes"), 0.9, f64::MAX),
        );
        let kinds = ["drops", "delay", "megabytes", "fairness"];
        let units = ["%", "ms", "MB", ""];
        for ((kind, unit), (codel, tail)) in kinds.iter().zip(units).zip(cells) {
            for (aqm, value) in [("codel", codel), ("tail", tail)] {
                list.named(
                    &format!("{rate}.{way}.{aqm}.{kind}"),
                    &format!("{rate}bit/s {way}, {aqm}: {kind} (table 1)"),
                    format!("{value} {unit} (± 25 %)").replace("  ", " ").as_str(),
                    Near(
                        of(aqm, kind),
                        value,
                        Tolerance {
                            relative: 0.25,
                            absolute: 1.0 * f64::from(u8::from(*kind != "fairness")),
                        },
                    ),
                );
            }
        }
    }
}

fn everywhere(list: &mut List<'_>) {
    for rate in ["3M", "10M", "45M", "100M"] {
        for cc in ["reno", "cubic"] {
            list.named(
                &format!("{rate}.{cc}.delay"),
                &format!("{rate}bit/s, {cc}, transfers only, up to 200 ms: median delay"),
                "near the target: ≤ 10 ms (mean of medians)",
                AtMost(of(format!("{cc} {rate} transfers"), "delay"), 10.0),
            );
        }
    }
    for rate in ["64k", "128k", "256k", "512k", "1.5M", "3M", "10M", "45M", "100M"] {
        list.named(
            &format!("{rate}.reno"),
            &format!("{rate}bit/s: New Reno's utilisation is similar to CUBIC's, slightly lower"),
            "90 to 100 % of it",
            Ratio(
                of(format!("reno {rate} many"), "utilisation"),
                of(format!("cubic {rate} many"), "utilisation"),
                0.9,
                1.0,
            ),
        );
    }
}

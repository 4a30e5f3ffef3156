//! Statements of Controlling Queue Delay. Grids are judged by the mean over their runs.

use simnel_sim::Direction::{self, Down, Up};

use super::{of, rising, List};
use crate::experiments::paper::claim::Judge::{
    All, AtLeast, AtMost, Between, DifferMore, Near, NotAbove, Ratio,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::codel::Quantity::{self, *};
use crate::experiments::paper::codel::{
    self, on_grid, rate_name, ALL_RATES, AQMS, FALLS, FAST, KINDS, LONG_RTTS, SLOW,
};

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
        let of = |aqm: &str, kind, what| of(on_grid(aqm, &rate, 1500, kind), what);
        let text = "transfers only: CoDel's median delay is near its target";
        list.claim(format!("{rate}.delay"), format!("{rate}bit/s, {text}")).stated(
            "near 5 ms, never tens of ms (mean of medians ≤ 10 ms)",
            AtMost(of("codel", "transfers", Delay), 10.0),
        );
        let used = |aqm, kind| of(aqm, kind, Utilisation);
        let as_tail = |kind| Ratio(used("codel", kind), used("tail", kind), 0.9, 1.1);
        let text = "CoDel's utilisation is comparable to tail drop's";
        list.claim(format!("{rate}.utilisation"), format!("{rate}bit/s: {text}"))
            .stated("at least 90 % of it", All(KINDS.map(as_tail).into()));
        if kbit >= 10_000 {
            let above_red = |kind| rising(used("red", kind), used("codel", kind));
            let text = "RED's utilisation is lower than CoDel's";
            list.claim(format!("{rate}.red"), format!("{rate}bit/s: {text}"))
                .stated("red < codel", All(KINDS.map(above_red).into()));
        }
    }
}

fn slow(list: &mut List<'_>) {
    for kbit in SLOW {
        let rate = rate_name(kbit);
        let of = |aqm, mtu, what| of(on_grid(aqm, &rate, mtu, "transfers"), what);
        let text = "CoDel's delay is larger with the larger MTU";
        list.claim(format!("{rate}.mtu"), format!("{rate}bit/s: {text}"))
            .stated("500 < 1500 bytes", rising(of("codel", 500, Delay), of("codel", 1500, Delay)));
        let text = format!("{rate}bit/s: utilisation under CoDel is good");
        list.claim(format!("{rate}.utilisation"), text)
            .stated("≥ 90 %", AtLeast(of("codel", 1500, Utilisation), 0.9));
        list.claim(format!("{rate}.red"), format!("{rate}bit/s: RED's median delays"))
            .stated("100 to 200 ms", Between(of("red", 1500, Delay), 100.0, 200.0));
    }
    let of = |kbit, mtu| of(on_grid("codel", &rate_name(kbit), mtu, "transfers"), Delay);
    let text = "the larger MTU costs more at the lower rate: 128 kbit/s against 1.5 Mbit/s";
    list.claim("lower", text).stated(
        "the difference is larger",
        DifferMore((of(128, 1500), of(128, 500)), (of(1_500, 1500), of(1_500, 500))),
    );
}

fn dynamic(list: &mut List<'_>) {
    list.claim("tail.delay", "tail drop, 830 packets: longest delay").stated(
        "up to 10 s (± 10 %)",
        Near(of("tail 830", Longest), 10_000.0, Tolerance::share(0.10)),
    );
    // A drop takes a departure: one packet at the slowest rate, 12 ms, and the millisecond of the
    // observer come on top.
    const CONTROL_MS: f64 = 100.0 + 12.0 + 1.0;
    for at in FALLS {
        let text = format!("CoDel: the delay spikes where the rate falls, at {at} s");
        list.claim(format!("spike.{at}"), text).stated(
            "peak in the 5 s after above that in the 5 s before",
            rising(of("codel 830", Before(at)), of("codel 830", After(at))),
        );
        let text = format!("CoDel: a new control point after the fall at {at} s");
        list.claim(format!("control.{at}"), text).stated(
            "within 100 ms of passing the target (and one packet)",
            AtMost(of("control", ControlTime(at)), CONTROL_MS),
        );
    }
    list.claim("bytes", "CoDel moves nearly the same kilobytes as tail drop").stated(
        "at least 90 %",
        Ratio(of("codel 830", Megabytes), of("tail 830", Megabytes), 0.9, 1.1),
    );
    for aqm in AQMS {
        let of = |buffer| of(format!("{aqm} {buffer}"), Megabytes);
        let text = format!("{aqm}: throughput with 10 packets against 830");
        list.claim(format!("small.{aqm}"), text)
            .stated("about 75 % less (20 to 30 % left)", Ratio(of(10), of(830), 0.2, 0.3));
    }
    list.claim("small.same", "with 10 packets tail drop and CoDel are identical").stated(
        "kilobytes within 5 %",
        Ratio(of("codel 10", Megabytes), of("tail 10", Megabytes), 0.95, 1.05),
    );
    list.claim("median", "CoDel, 830 packets: delay at half of the time")
        .stated("2.7 ms (± 25 % or 1 ms)", Near(of("codel 830", Median), 2.7, Tolerance::LATENCY));
    list.claim("p75", "CoDel, 830 packets: 75th percentile of the delay over time")
        .stated("5 ms (± 25 % or 1 ms)", Near(of("codel 830", P75), 5.0, Tolerance::LATENCY));
    list.claim("p95", "CoDel, 830 packets: 95th percentile of the delay over time")
        .stated("< 90 ms", AtMost(of("codel 830", P95), 90.0));
}

fn by_rtt(list: &mut List<'_>) {
    let of = |aqm, rtt, what| of(codel::by_rtt(aqm, rtt), what);
    for (what, words, share, low, high) in
        [(Delay, "median delay", 50, 0.5, 1.5), (Utilisation, "utilisation", 10, 0.9, 1.1)]
    {
        let ratio = |rtt| Ratio(of("codel", rtt, what), of("codel", 30, what), low, high);
        let text = format!("CoDel's {words} is about the same from 30 to 200 ms");
        list.claim(format!("same.{what}"), text)
            .stated(format!("within {share} % of 30 ms"), All([50, 100, 200].map(ratio).into()));
    }
    for rtt in LONG_RTTS.into_iter().filter(|rtt| *rtt < 500) {
        let of = |aqm| of(aqm, rtt, Utilisation);
        let text = format!("{rtt} ms: CoDel's utilisation is close to tail drop's");
        list.claim(format!("tail.{rtt}"), text)
            .stated("at least 95 % of it", Ratio(of("codel"), of("tail"), 0.95, 1.05));
    }
    list.claim("tail.500", "500 ms: CoDel's utilisation is below tail drop's").stated(
        "codel < tail drop",
        rising(of("codel", 500, Utilisation), of("tail", 500, Utilisation)),
    );
}

fn fairness(list: &mut List<'_>) {
    for rtt in LONG_RTTS {
        let of = |aqm| of(codel::by_rtt(aqm, rtt), Jain);
        list.claim(rtt, format!("{rtt} ms: Jain's index of drop shares"))
            .stated("red < codel", rising(of("red"), of("codel")));
    }
}

/// Table 1: drop %, median delay in ms, megabytes, fairness: CoDel, tail drop.
type Cell = (f64, f64);

fn edge(list: &mut List<'_>) {
    let table: [(&str, Direction, [Cell; 4]); 4] = [
        ("512k", Down, [(8.0, 8.0), (18.0, 73.0), (17.0, 18.0), (0.87, 0.89)]),
        ("512k", Up, [(1.5, 5.8), (9.0, 37.0), (12.8, 13.9), (0.93, 0.89)]),
        ("1.5M", Down, [(3.5, 4.7), (8.0, 49.0), (37.0, 40.0), (0.81, 0.96)]),
        ("1.5M", Up, [(1.4, 2.5), (0.0, 0.0), (22.0, 21.0), (0.6, 0.71)]),
    ];
    for (rate, way, cells) in table {
        let of =
            |aqm: &str, what: fn(Direction) -> Quantity| of(format!("{aqm} {rate}"), what(way));
        let (name, place) = (format!("{rate}.{way}"), format!("{rate}bit/s {way}"));
        let text = format!("{place}: CoDel does not drop at a higher rate than tail drop");
        list.claim(format!("{name}.rule.drops"), text)
            .stated("codel ≤ tail drop", NotAbove(of("codel", WayDrops), of("tail", WayDrops)));
        if (rate, way) != ("1.5M", Up) {
            let text = format!("{place}: CoDel's median delay against tail drop's");
            list.claim(format!("{name}.rule.delay"), text).stated(
                "at most 35 %",
                Ratio(of("codel", WayDelay), of("tail", WayDelay), 0.0, 0.35),
            );
        }
        let text = format!("{place}: data that CoDel moves against tail drop");
        list.claim(format!("{name}.rule.data"), text).stated(
            "at least 90 %",
            Ratio(of("codel", WayMegabytes), of("tail", WayMegabytes), 0.9, f64::MAX),
        );
        type Column = (&'static str, fn(Direction) -> Quantity, &'static str, f64);
        let columns: [Column; 4] = [
            ("drops", WayDrops, " %", 1.0),
            ("delay", WayDelay, " ms", 1.0),
            ("megabytes", WayMegabytes, " MB", 1.0),
            ("fairness", WayFairness, "", 0.0),
        ];
        for ((kind, what, unit, absolute), (codel, tail)) in columns.into_iter().zip(cells) {
            for (aqm, value) in [("codel", codel), ("tail", tail)] {
                let within = Tolerance { relative: 0.25, absolute };
                list.claim(
                    format!("{name}.{aqm}.{kind}"),
                    format!("{place}, {aqm}: {kind} (table 1)"),
                )
                .stated(format!("{value}{unit} (± 25 %)"), Near(of(aqm, what), value, within));
            }
        }
    }
}

fn everywhere(list: &mut List<'_>) {
    for rate in ["3M", "10M", "45M", "100M"] {
        for cc in ["reno", "cubic"] {
            let text = "transfers only, up to 200 ms: median delay";
            list.claim(format!("{rate}.{cc}.delay"), format!("{rate}bit/s, {cc}, {text}")).stated(
                "near the target: ≤ 10 ms (mean of medians)",
                AtMost(of(format!("{cc} {rate} transfers"), Delay), 10.0),
            );
        }
    }
    for rate in ALL_RATES.map(rate_name) {
        let of = |cc: &str| of(format!("{cc} {rate} many"), Utilisation);
        let text = "New Reno's utilisation is similar to CUBIC's, slightly lower";
        list.claim(format!("{rate}.reno"), format!("{rate}bit/s: {text}"))
            .stated("90 to 100 % of it", Ratio(of("reno"), of("cubic"), 0.9, 1.0));
    }
}

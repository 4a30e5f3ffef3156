//! Statements of Piece of CAKE, in its text and its published data (doi:10.5281/zenodo.1226887,
//! CC BY-SA 4.0; medians over repetitions, rounded).

use simnel_sim::Direction::{Down, Up};

use super::{of, rising, List};
use crate::experiments::paper::cake::{Quantity, Rrul, CLASSES, PROBES};
use crate::experiments::paper::claim::Judge::{
    All, AtLeast, AtMost, Between, Differ, MoreByAtMost, Near, NearRatio, NotAbove, Ratio,
    SteadierTogether,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::direct::{
    self, plain_formula, points, set_associative_formula, RATES, STEP,
};

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "A1" => collisions(list),
        "A2" => baseline(list),
        "A3" => isolation(list),
        "A4" => diffserv(list),
        "A5" => call(list),
        "A6" => filter(list),
        "A7" => shaper(list),
        _ => {}
    }
}

/// A probability by the number of flows.
type Formula = fn(u32) -> f64;

/// Section III-B and figure 1.
fn collisions(list: &mut List<'_>) {
    let point = Tolerance { relative: 0.0, absolute: 0.01 };
    let tables: [(&str, &str, Formula); 2] = [
        ("plain", "1 − (1 − 1/1024)^n within 1 percentage point", plain_formula),
        ("8-way", "P[Binomial(n, 1/128) ≥ 8] within 1 percentage point", set_associative_formula),
    ];
    for (arm, stated, formula) in tables {
        let flows = |n| of(arm, direct::Quantity::Flows(n));
        let judges = points().map(|n| Near(flows(n), formula(n), point)).collect();
        let text = format!("collision probability of a new flow, {arm} hash, n up to 1024");
        list.claim(arm, &text).stated(stated, All(judges));
    }
    let lower = (1..=16).map(|n| {
        let of = |arm| of(arm, direct::Quantity::Flows(n * STEP));
        NotAbove(of("8-way"), of("plain"))
    });
    list.claim("lower", "8 ways collide less as long as flows are fewer than queues")
        .stated("8-way < plain up to 512 flows", All(lower.collect()));
}

/// Of one line and discipline: the base of the pings is 50 ms.
struct Row {
    line: &'static str,
    arm: &'static str,
    /// ICMP, UDP BE, UDP BK, UDP EF: mean round-trip time in ms.
    ping: [Option<f64>; 4],
    /// BE, BK, CS5, EF: Mbit/s.
    up: [f64; 4],
    down: [f64; 4],
}

const fn row(
    line: &'static str,
    arm: &'static str,
    ping: [Option<f64>; 4],
    up: [f64; 4],
    down: [f64; 4],
) -> Row {
    Row { line, arm, ping, up, down }
}

#[rustfmt::skip]
const DATA: [Row; 8] = [
    row("10/10", "cake", [Some(51.74), Some(51.81), Some(51.82), Some(51.81)],
        [2.323, 2.32, 2.328, 2.331], [2.319, 2.324, 2.325, 2.32]),
    row("10/10", "cake_diff3", [Some(52.71), Some(53.04), Some(69.49), Some(55.15)],
        [3.183, 0.612, 3.152, 2.352], [3.161, 0.606, 3.184, 2.348]),
    row("10/10", "cake_diff4", [Some(52.38), Some(52.76), Some(68.28), Some(54.62)],
        [5.551, 0.674, 1.524, 1.53], [5.557, 0.664, 1.526, 1.521]),
    row("10/10", "fq_codel", [Some(51.39), Some(51.4), Some(51.37), Some(51.37)],
        [2.319, 2.316, 2.322, 2.318], [2.319, 2.312, 2.315, 2.312]),
    row("1/10", "cake", [Some(57.97), Some(57.76), Some(57.78), Some(57.7)],
        [0.1726, 0.1808, 0.1893, 0.1887], [2.371, 2.372, 2.377, 2.371]),
    row("1/10", "cake_diff3", [Some(63.3), Some(64.43), Some(216.52), Some(68.96)],
        [0.2708, 0.041, 0.271, 0.1899], [3.219, 0.556, 3.204, 2.5]),
    row("1/10", "cake_diff4", [Some(62.29), Some(64.67), Some(214.71), Some(73.29)],
        [0.508, 0.0421, 0.0796, 0.0796], [5.779, 0.56, 1.533, 1.524]),
    row("1/10", "fq_codel", [Some(58.12), Some(60.28), None, Some(60.95)],
        [0.1776, 0.1922, 0.1961, 0.195], [2.367, 2.384, 2.377, 2.353]),
];

/// Base round-trip time of the paper's line, in ms.
const BASE_MS: f64 = 50.0;

/// Section IV and figure 2.
fn baseline(list: &mut List<'_>) {
    list.claim("totals", "cake and fq_codel carry the same total").stated(
        "totals within 1 %",
        Ratio(of("cake 10/10", Rrul::Total), of("fq_codel 10/10", Rrul::Total), 0.99, 1.01),
    );
    // Within a millisecond, as a difference: neither is more than that above the other.
    list.claim("latency", "mean added latency of cake and fq_codel within 1 ms of each other")
        .stated(
            "difference of at most 1 ms",
            Differ(of("cake 10/10", Rrul::MeanPing), of("fq_codel 10/10", Rrul::MeanPing), 1.0),
        );
    for row in &DATA {
        let Row { line, arm, .. } = row;
        let measure = |what: Rrul| of(format!("{arm} {line}"), what);
        for ((probe, _), ping) in PROBES.into_iter().zip(row.ping) {
            let Some(ping) = ping else { continue };
            let added = ping - BASE_MS;
            list.claim(
                format!("{line}.{arm}.ping.{probe}"),
                format!("{arm}, {line} Mbit/s (up/down): mean added latency of {probe}"),
            )
            .stated(
                format!("{added:.2} ms ± 25 % or 1 ms"),
                Near(measure(Rrul::Ping(probe)), added, Tolerance::LATENCY),
            );
        }
        for (way, stated) in [(Up, row.up), (Down, row.down)] {
            for ((class, _), mbps) in CLASSES.into_iter().zip(stated) {
                list.claim(
                    format!("{line}.{arm}.{way}.{class}"),
                    format!("{arm}, {line} Mbit/s (up/down): goodput {way} of {class}"),
                )
                .stated(
                    format!("{mbps} Mbit/s ± 10 %"),
                    Near(measure(Rrul::Goodput(way, class)), mbps, Tolerance::share(0.10)),
                );
            }
        }
    }
}

/// Section IV-A and figure 3. Shares of the total.
fn isolation(list: &mut List<'_>) {
    let sixth = [1.0 / 6.0; 6];
    let dst = [1.0 / 4.0, 1.0 / 4.0, 1.0 / 12.0, 1.0 / 12.0, 1.0 / 12.0, 1.0 / 4.0];
    let src = [1.0 / 8.0, 1.0 / 8.0, 1.0 / 8.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 4.0];
    let weights = [1.0 / 4.0, 1.0 / 4.0, 1.0 / 4.0, 1.0 / 4.0, 1.0 / 3.0, 1.0 / 2.0];
    let sum: f64 = weights.iter().sum();
    let triple = weights.map(|weight| weight / sum);
    let arms = [
        ("fq_codel", "six equal shares", sixth),
        ("flows", "six equal shares", sixth),
        ("dst hosts", "1/4 for each destination: 1/4, 1/4, 3 × 1/12, 1/4", dst),
        ("src hosts", "half for each source: 4 × 1/8, 2 × 1/4", src),
        ("triple", "weights 1/4 ×4, 1/3, 1/2", triple),
    ];
    for (arm, words, shares) in arms {
        for (n, share) in (1..).zip(shares) {
            list.claim(
                format!("{}.{n}", arm.replace(' ', "-")),
                format!("{arm}: {words}; flow {n}"),
            )
            .stated(
                format!("{share:.4} of the total ± 5 %"),
                Near(of(arm, Quantity::Share(n)), share, Tolerance::share(0.05)),
            );
        }
    }
    // Linux 6.1, measured: Mbit/s of six flows.
    let linux = [
        ("src hosts, Linux", [1.23, 1.23, 1.23, 1.23, 2.27, 2.32]),
        ("dst hosts, Linux", [2.25, 2.27, 0.905, 0.905, 0.905, 2.24]),
        ("triple, Linux", [1.33, 1.33, 1.33, 1.33, 1.73, 2.44]),
    ];
    for (arm, rates) in linux {
        let judges = (1..)
            .zip(rates)
            .map(|(n, mbps)| Near(of(arm, Quantity::Goodput(n)), mbps, Tolerance::share(0.05)));
        list.claim(
            arm.replace(", ", "-").replace(' ', "-"),
            format!("{arm}: what Linux 6.1 gives the six flows, where only bulk flows count"),
        )
        .stated(
            format!("{} Mbit/s, each ± 5 %", rates.map(|rate| rate.to_string()).join(" / ")),
            All(judges.collect()),
        );
    }
    let flows = (1..=6).map(|n| {
        let of = |arm: &str| of(arm, Quantity::Goodput(n));
        (of("flows"), of("fq_codel"))
    });
    let (cake, fq_codel): (Vec<_>, Vec<_>) = flows.unzip();
    list.claim("variance", "cake's flows vary less from run to run than fq_codel's").stated(
        "variance of cake below that of fq_codel, over all six flows",
        SteadierTogether(cake, fq_codel),
    );
}

/// Section IV-B and figure 4.
fn diffserv(list: &mut List<'_>) {
    for way in [Down, Up] {
        let of = |arm: &str, class| of(arm, Rrul::Goodput(way, class));
        let classes = CLASSES.map(|(class, _)| class);
        let mut equal = Vec::new();
        for a in classes {
            for b in classes.into_iter().filter(|b| *b != a) {
                equal.push(Ratio(of("besteffort", a), of("besteffort", b), 0.97, 1.03));
            }
        }
        list.claim(format!("{way}.equal"), format!("besteffort, {way}: four equal flows"))
            .stated("equal within 3 %", All(equal));
        let tiers = |class| of("diffserv4", class);
        list.claim(format!("{way}.most"), format!("diffserv4, {way}: best effort gets most"))
            .stated(
                "CS5 < BE, EF < BE",
                All(vec![rising(tiers("CS5"), tiers("BE")), rising(tiers("EF"), tiers("BE"))]),
            );
        list.claim(format!("{way}.least"), format!("diffserv4, {way}: background gets least"))
            .stated(
                "BK < CS5, BK < EF",
                All(vec![rising(tiers("BK"), tiers("CS5")), rising(tiers("BK"), tiers("EF"))]),
            );
        for class in ["CS5", "EF"] {
            list.claim(
                format!("{way}.{class}"),
                format!("diffserv4, {way}: {class} below a quarter of the link"),
            )
            .stated("< 2.5 Mbit/s", AtMost(tiers(class), 2.5));
        }
    }
}

/// Section IV-B and figure 5. "Several hundred": 200 to 1000 ms. The ends of an oscillation are
/// the 5 % and 95 % quantiles.
fn call(list: &mut List<'_>) {
    for arm in ["fq_codel", "besteffort"] {
        list.claim(format!("{arm}.spike"), format!("{arm}: spike as the bulk flows start"))
            .stated("several hundred ms", Between(of(arm, Quantity::Spike), 200.0, 1000.0));
    }
    list.claim("besteffort.steady", "cake besteffort: steady state").stated(
        "about 200 ms (± 25 %)",
        Near(of("besteffort", Quantity::SteadyMean), 200.0, Tolerance::LATENCY),
    );
    list.claim("fq_codel.low", "fq_codel oscillates: lower end").stated(
        "50 ms ± 25 %",
        Near(of("fq_codel", Quantity::SteadyLow), 50.0, Tolerance::LATENCY),
    );
    list.claim("fq_codel.high", "fq_codel oscillates: upper end").stated(
        "500 ms ± 25 %",
        Near(of("fq_codel", Quantity::SteadyHigh), 500.0, Tolerance::LATENCY),
    );
    list.claim("diffserv.none", "cake with DiffServ: no added latency over the whole test")
        .stated("p99 < 5 ms", AtMost(of("diffserv", Quantity::P99), 5.0));
}

/// Section IV-C and figure 6. Percentages of the text within a third of the improvement, ranges as
/// given.
fn filter(list: &mut List<'_>) {
    for (arm, way, what, gain, points) in [
        ("conservative", Down, "download", 15, 5),
        ("aggressive", Down, "download", 15, 5),
        ("conservative", Up, "upload", 10, 5),
        ("aggressive", Up, "upload", 40, 10),
    ] {
        let of = |arm| of(arm, Quantity::Carried(way));
        let (ratio, within) = (1.0 + f64::from(gain) / 100.0, f64::from(points) / 100.0);
        list.claim(format!("{arm}.{what}"), format!("{arm}: {what} goodput against no filter"))
            .stated(
                format!("+{gain} % (± {points} points)"),
                NearRatio(of(arm), of("none"), ratio, within),
            );
    }
    for arm in ["none", "conservative", "aggressive"] {
        for (name, text, quantity, low, high, unit) in [
            ("download", "download", Quantity::Carried(Down), 24.5, 27.5, "Mbit/s"),
            ("upload", "upload", Quantity::Carried(Up), 0.45, 0.7, "Mbit/s"),
            ("latency", "added latency of the probe", Quantity::Latency, 2.6, 7.5, "ms"),
        ] {
            list.claim(format!("{arm}.range.{name}"), format!("{arm}: {text}"))
                .stated(format!("{low} to {high} {unit}"), Between(of(arm, quantity), low, high));
        }
    }
    for arm in ["conservative", "aggressive"] {
        let (with, without) = (of(arm, Quantity::Latency), of("none", Quantity::Latency));
        list.claim(format!("{arm}.increase"), format!("{arm}: latency that filtering adds"))
            .stated("at most 5 ms", MoreByAtMost(with, without, 5.0));
    }
}

/// Section III-A.
fn shaper(list: &mut List<'_>) {
    use direct::Quantity::{Burst, GreatestShare, LeastShare};
    for (_, rate) in RATES {
        let text = format!("{rate}, every framing: bytes on the wire over any second");
        list.claim(format!("{rate}.most"), &text)
            .stated("never above the rate", AtMost(of(rate, GreatestShare), 1.0 + 1e-9));
        list.claim(format!("{rate}.least"), &text)
            .stated("at least 99.9 % of the rate", AtLeast(of(rate, LeastShare), 0.999));
    }
    list.claim("burst", "cake: no initial burst after an idle time")
        .stated("at most one packet at once", AtMost(of("cake", Burst), 1.0));
    list.claim("bucket", "a token bucket sends a burst where cake does not")
        .stated("cake < htb with burst 15k", rising(of("cake", Burst), of("htb", Burst)));
}

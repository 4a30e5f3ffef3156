//! Statements of CAKE's performance evaluation. "About" and "~" are judged within 25 % or 1 ms.

use super::{of, rising, List, Measure};
use crate::experiments::paper::claim::Judge::{
    self, All, AtLeast, AtMost, Differ, Near, NotAbove, Ratio,
};
use crate::experiments::paper::claim::Tolerance;

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "B1" => peaks(
            list,
            &[
                ("sfq", "~30", About(30.0)),
                ("pie", "< 30", Below(30.0)),
                ("codel", "10", About(10.0)),
                ("fq_codel", "1", About(1.0)),
                ("cake", "~1", About(1.0)),
            ],
        ),
        "B2" => peaks(
            list,
            &[
                ("sfq", "~30", About(30.0)),
                ("pie", "< 30", Below(30.0)),
                ("sfb", "~400", About(400.0)),
                ("fq_codel", "6", About(6.0)),
                ("cake", "~6", About(6.0)),
            ],
        ),
        "B3" => peaks(
            list,
            &[
                ("pie", "85", About(85.0)),
                ("codel", "55", About(55.0)),
                ("sfb", "~400", About(400.0)),
                ("fq_codel", "20", About(20.0)),
                ("cake", "5", About(5.0)),
            ],
        ),
        "B4" => rrul(list),
        "B5" => fifty(list),
        "B6" => gaps(list),
        "B7" => single(list),
        "B8" => shares(list),
        "B9" => download(list),
        "B10" => evening(list),
        _ => {}
    }
}

use Peak::{About, Above, Below};

/// A stated peak in ms.
#[derive(Clone, Copy)]
enum Peak {
    About(f64),
    Below(f64),
    Above(f64),
}

impl Peak {
    fn judge(self, measure: Measure) -> Judge {
        match self {
            About(value) => Near(measure, value, Tolerance::LATENCY),
            Below(limit) => AtMost(measure, limit),
            Above(limit) => AtLeast(measure, limit),
        }
    }
}

fn peak(list: &mut List<'_>, name: &str, measure: Measure, stated: &str, peak: Peak) {
    list.named(
        name,
        &format!("{name}: peak induced latency"),
        &format!("{stated} ms"),
        peak.judge(measure),
    );
}

/// Sections on single flows: peaks, and cake-lite as cake.
fn peaks(list: &mut List<'_>, peaks: &[(&str, &str, Peak)]) {
    for (arm, stated, value) in peaks {
        peak(list, arm, of(arm, "peak"), stated, *value);
    }
    list.named(
        "cake-lite",
        "cake-lite as cake: peak induced latency",
        "equal (within 1 ms)",
        Differ(of("cake-lite", "peak"), of("cake", "peak"), 1.0),
    );
    if list.id == "B1" {
        list.named(
            "sfb",
            "sfb has poor throughput: the poorest of all",
            "sfb < pie, codel, fq_codel, cake, sfq",
            All(["pie", "codel", "fq_codel", "cake", "sfq"]
                .map(|other| rising(of("sfb", "down"), of(other, "down")))
                .into()),
        );
    }
}

fn rrul(list: &mut List<'_>) {
    for (arm, stated, value) in [
        ("sfq", "40", About(40.0)),
        ("pie", "> 170", Above(170.0)),
        ("codel", "~90", About(90.0)),
        ("sfb", "200", About(200.0)),
        ("fq_codel", "33", About(33.0)),
        ("cake-lite", "8", About(8.0)),
    ] {
        peak(list, arm, of(arm, "peak"), stated, value);
    }
    for (class, probe, stated, value) in [
        ("cake.CS0", "UDP_BE", "13", 13.0),
        ("cake.EF", "UDP_EF", "22", 22.0),
        ("cake.CS1", "UDP_BK", "70", 70.0),
    ] {
        peak(list, class, of("cake", format!("peak {probe}")), stated, About(value));
    }
}

fn fifty(list: &mut List<'_>) {
    peak(list, "sfq", of("sfq", "peak"), "≤ 230", Below(230.0));
    let first = "in the first 5 s: 245";
    list.named(
        "pie.first",
        "pie: peak in the first 5 s",
        first,
        About(245.0).judge(of("pie", "peak first 5 s")),
    );
    list.named(
        "pie.after",
        "pie: peak after 5 s",
        "< 60 ms",
        Below(60.0).judge(of("pie", "peak after")),
    );
    peak(list, "sfb", of("sfb", "peak"), "> 200", Above(200.0));
    peak(list, "fq_codel", of("fq_codel", "peak"), "~50", About(50.0));
    peak(list, "cake", of("cake", "peak"), "~5", About(5.0));
    list.named(
        "cake-lite",
        "cake-lite as cake: peak induced latency",
        "equal (within 1 ms)",
        Differ(of("cake-lite", "peak"), of("cake", "peak"), 1.0),
    );
}

fn gaps(list: &mut List<'_>) {
    let others = ["pie", "codel", "sfb", "fq_codel", "cake", "cake-lite"];
    for test in ["down", "up", "both"] {
        let of = |arm: &str, what: &str| of(format!("{arm} {test}"), what);
        list.named(
            &format!("{test}.best"),
            &format!("{test}: sfq has the best average throughput of all"),
            "no contender above sfq",
            All(others.map(|other| NotAbove(of(other, "total"), of("sfq", "total"))).into()),
        );
        list.named(
            &format!("{test}.gaps"),
            &format!("{test}: sfq has long gaps in throughput, longer than AQMs have"),
            "sfq's longest gap above that of fq_codel and cake",
            All(["fq_codel", "cake"].map(|o| rising(of(o, "gap"), of("sfq", "gap"))).into()),
        );
    }
}

fn single(list: &mut List<'_>) {
    for test in ["down", "up", "both"] {
        list.named(
            test,
            &format!("{test}: cake's average single-flow throughput is not below fq_codel's"),
            "fq_codel ≤ cake",
            NotAbove(of(format!("fq_codel {test}"), "total"), of(format!("cake {test}"), "total")),
        );
    }
}

fn shares(list: &mut List<'_>) {
    for way in ["down", "up"] {
        let (of, sum) =
            (|class: &str| of("cake", format!("{way} {class}")), of("cake", format!("{way} sum")));
        let share =
            |class: &str, share: f64| Ratio(of(class), sum.clone(), share * 0.85, share * 1.15);
        list.named(
            &format!("{way}.CS1"),
            &format!("{way}: CS1 gets a sixteenth of the link"),
            "1/16 ± 15 %",
            share("BK", 1.0 / 16.0),
        );
        list.named(
            &format!("{way}.EF"),
            &format!("{way}: EF gets at most a quarter"),
            "≤ 1/4 (+ 15 %)",
            Ratio(of("EF"), sum.clone(), 0.0, 0.25 * 1.15),
        );
        for class in ["BE", "CS5"] {
            list.named(
                &format!("{way}.{class}"),
                &format!("{way}: {class} gets half of the remaining 11/16"),
                "11/32 ± 15 %",
                share(class, 11.0 / 32.0),
            );
        }
    }
}

fn download(list: &mut List<'_>) {
    for (arm, measure, stated, value) in [
        ("sfq", "down late", "~12 Mbit after a long start", 12.0),
        ("pie", "down late", "~16 Mbit", 16.0),
        ("sfb", "down best second", "~14 Mbit at best", 14.0),
        ("fq_codel", "down", "~7 Mbit", 7.0),
        ("cake", "down late", "~12 Mbit after 20–25 s", 12.0),
    ] {
        list.named(
            arm,
            &format!("{arm}: throughput of the download"),
            &format!("{stated} (± 25 %)"),
            Near(of(arm, measure), value, Tolerance::share(0.25)),
        );
    }
    list.named(
        "steady",
        "cake's download is steadier than fq_codel's",
        "coefficient of variation: cake < fq_codel",
        rising(of("cake", "down variation"), of("fq_codel", "down variation")),
    );
    list.named(
        "unsteady",
        "sfb's download is unsteady",
        "coefficient of variation: cake < sfb",
        rising(of("cake", "down variation"), of("sfb", "down variation")),
    );
}

/// A background share: the tier's sixteenth and half as much again. "Negligible": 5 ms.
fn evening(list: &mut List<'_>) {
    const BACKGROUND: f64 = 1.5 / 16.0;
    const NEGLIGIBLE: f64 = 5.0;
    for way in ["down", "up"] {
        list.named(
            &format!("swarm.{way}"),
            &format!("{way}: cake keeps the CS1 swarm to a background share, in every phase"),
            "≤ 1/16 and half as much again",
            AtMost(of("cake", format!("swarm share {way}")), BACKGROUND),
        );
        let others = ["sfq", "pie", "codel", "sfb", "fq_codel", "cake-lite"];
        list.named(
            &format!("only.{way}"),
            &format!("{way}: cake is the only one that does"),
            "every other's greatest share above that",
            All(others.map(|o| AtLeast(of(o, format!("swarm share {way}")), BACKGROUND)).into()),
        );
    }
    for (way, mbps) in [("down", 20.0), ("up", 3.0)] {
        list.named(
            &format!("fills.{way}"),
            &format!("{way}: without contention the swarm fills the link under cake"),
            "at least 95 % of the link's rate, with acknowledgements and the call",
            AtLeast(of("cake", format!("line alone {way}")), 0.95 * mbps),
        );
    }
    for arm in ["fq_codel", "cake-lite", "cake"] {
        let of = |what: &str| of(arm, format!("voice {what}"));
        list.named(
            &format!("voice.{arm}.loss"),
            &format!("{arm}: the call loses nothing"),
            "no loss",
            AtMost(of("loss"), 0.0),
        );
        list.named(
            &format!("voice.{arm}.delay"),
            &format!("{arm}: negligible induced delay and jitter"),
            "mean of both < 5 ms",
            All(vec![AtMost(of("mean"), NEGLIGIBLE), AtMost(of("jitter"), NEGLIGIBLE)]),
        );
    }
    list.named(
        "voice.sfq.delay",
        "sfq: about 10 ms with the swarm",
        "~10 ms (up, the busier way)",
        Near(of("sfq", "voice with swarm up"), 10.0, Tolerance::LATENCY),
    );
    list.named("voice.sfq.loss", "sfq: no loss", "no loss", AtMost(of("sfq", "voice loss"), 0.0));
    list.named(
        "voice.pie.swings",
        "pie: delay varies by more than 100 ms",
        "peak > 100 ms",
        AtLeast(of("pie", "voice peak"), 100.0),
    );
    list.named(
        "voice.pie.loss",
        "pie: a steady rate of packet loss",
        "some loss",
        AtLeast(of("pie", "voice loss"), 0.001),
    );
    list.named(
        "voice.sfb.spikes",
        "sfb: latency spikes reach about 150 ms",
        "~150 ms (± 25 %)",
        Near(of("sfb", "voice peak"), 150.0, Tolerance::LATENCY),
    );
    list.named(
        "voice.sfb.loss",
        "sfb: some packet loss",
        "some loss",
        AtLeast(of("sfb", "voice loss"), 1e-5),
    );
}

//! Statements of CAKE's performance evaluation. "About" and "~" are judged within 25 % or 1 ms.

use std::fmt;

use simnel_sim::Direction::{Down, Up};

use super::{of, rising, List, Measure};
use crate::experiments::paper::cake::Rrul;
use crate::experiments::paper::claim::Judge::{
    self, All, AtLeast, AtMost, Differ, Near, NearRatio, NotAbove, Ratio,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::performance::Quantity::*;

pub(super) fn state(list: &mut List<'_>) {
    let one_down = [
        ("sfq", About(30.0)),
        ("pie", Below(30.0)),
        ("codel", At(10.0)),
        ("fq_codel", At(1.0)),
        ("cake", About(1.0)),
    ];
    let one_up = [
        ("sfq", About(30.0)),
        ("pie", Below(30.0)),
        ("sfb", About(400.0)),
        ("fq_codel", At(6.0)),
        ("cake", About(6.0)),
    ];
    let both = [
        ("pie", At(85.0)),
        ("codel", At(55.0)),
        ("sfb", About(400.0)),
        ("fq_codel", At(20.0)),
        ("cake", At(5.0)),
    ];
    match list.id {
        "B1" => peaks(list, &one_down),
        "B2" => peaks(list, &one_up),
        "B3" => peaks(list, &both),
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

use Stated::{About, Above, At, Below};

/// A stated peak in ms.
#[derive(Clone, Copy)]
enum Stated {
    At(f64),
    About(f64),
    Below(f64),
    Above(f64),
}

impl Stated {
    fn judge(self, measure: Measure) -> Judge {
        match self {
            At(value) | About(value) => Near(measure, value, Tolerance::LATENCY),
            Below(limit) => AtMost(measure, limit),
            Above(limit) => AtLeast(measure, limit),
        }
    }
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At(value) => write!(f, "{value} ms"),
            About(value) => write!(f, "~{value} ms"),
            Below(limit) => write!(f, "< {limit} ms"),
            Above(limit) => write!(f, "> {limit} ms"),
        }
    }
}

fn peak(list: &mut List<'_>, name: &str, measure: Measure, stated: Stated) {
    list.claim(name, format!("{name}: peak induced latency"))
        .stated(stated.to_string(), stated.judge(measure));
}

fn as_cake(list: &mut List<'_>) {
    list.claim("cake-lite", "cake-lite as cake: peak induced latency")
        .stated("equal (within 1 ms)", Differ(of("cake-lite", Peak), of("cake", Peak), 1.0));
}

/// Sections on single flows: peaks, and cake-lite as cake.
fn peaks(list: &mut List<'_>, peaks: &[(&str, Stated)]) {
    for (arm, stated) in peaks {
        peak(list, arm, of(arm, Peak), *stated);
    }
    as_cake(list);
    if list.id == "B1" {
        let others = ["pie", "codel", "fq_codel", "cake", "sfq"];
        let below = |other| rising(of("sfb", Carried(Down)), of(other, Carried(Down)));
        list.claim("sfb", "sfb has poor throughput: the poorest of all")
            .stated("sfb < pie, codel, fq_codel, cake, sfq", All(others.map(below).into()));
    }
}

fn rrul(list: &mut List<'_>) {
    for (arm, stated) in [
        ("sfq", At(40.0)),
        ("pie", Above(170.0)),
        ("codel", About(90.0)),
        ("sfb", At(200.0)),
        ("fq_codel", At(33.0)),
        ("cake-lite", At(8.0)),
    ] {
        peak(list, arm, of(arm, Rrul::GreatestPeak), stated);
    }
    for (class, probe, value) in
        [("cake.CS0", "UDP_BE", 13.0), ("cake.EF", "UDP_EF", 22.0), ("cake.CS1", "UDP_BK", 70.0)]
    {
        peak(list, class, of("cake", Rrul::Peak(probe)), At(value));
    }
}

fn fifty(list: &mut List<'_>) {
    list.claim("sfq", "sfq: peak induced latency")
        .stated("≤ 230 ms", AtMost(of("sfq", Peak), 230.0));
    list.claim("pie.first", "pie: peak in the first 5 s")
        .stated("in the first 5 s: 245", At(245.0).judge(of("pie", FirstPeak)));
    list.claim("pie.after", "pie: peak after 5 s")
        .stated("< 60 ms", AtMost(of("pie", LaterPeak), 60.0));
    peak(list, "sfb", of("sfb", Peak), Above(200.0));
    peak(list, "fq_codel", of("fq_codel", Peak), About(50.0));
    peak(list, "cake", of("cake", Peak), About(5.0));
    as_cake(list);
}

fn gaps(list: &mut List<'_>) {
    let others = ["pie", "codel", "sfb", "fq_codel", "cake", "cake-lite"];
    for test in ["down", "up", "both"] {
        let of = |arm: &str, what| of(format!("{arm} {test}"), what);
        let not_above = |other| NotAbove(of(other, Total), of("sfq", Total));
        list.claim(
            format!("{test}.best"),
            format!("{test}: sfq has the best average throughput of all"),
        )
        .stated("no contender above sfq", All(others.map(not_above).into()));
        let text = format!("{test}: sfq has long gaps in throughput, longer than AQMs have");
        list.claim(format!("{test}.gaps"), text).stated(
            "sfq's longest gap above that of fq_codel and cake",
            All(["fq_codel", "cake"].map(|o| rising(of(o, Gap), of("sfq", Gap))).into()),
        );
    }
}

fn single(list: &mut List<'_>) {
    for test in ["down", "up", "both"] {
        let of = |arm| of(format!("{arm} {test}"), Total);
        let text = "cake's average single-flow throughput is not below fq_codel's";
        list.claim(test, format!("{test}: {text}"))
            .stated("fq_codel ≤ cake", NotAbove(of("fq_codel"), of("cake")));
    }
}

fn shares(list: &mut List<'_>) {
    for way in [Down, Up] {
        let of = |what| of("cake", what);
        let sum = of(Rrul::Sum(way));
        let goodput = |class| of(Rrul::Goodput(way, class));
        let share = |class, share| NearRatio(goodput(class), sum.clone(), share, share * 0.15);
        list.claim(format!("{way}.CS1"), format!("{way}: CS1 gets a sixteenth of the link"))
            .stated("1/16 ± 15 %", share("BK", 1.0 / 16.0));
        list.claim(format!("{way}.EF"), format!("{way}: EF gets at most a quarter"))
            .stated("≤ 1/4 (+ 15 %)", Ratio(goodput("EF"), sum.clone(), 0.0, 0.25 * 1.15));
        for class in ["BE", "CS5"] {
            let text = format!("{way}: {class} gets half of the remaining 11/16");
            list.claim(format!("{way}.{class}"), text)
                .stated("11/32 ± 15 %", share(class, 11.0 / 32.0));
        }
    }
}

fn download(list: &mut List<'_>) {
    for (arm, quantity, stated, value) in [
        ("sfq", LateDownload, "~12 Mbit after a long start", 12.0),
        ("pie", LateDownload, "~16 Mbit", 16.0),
        ("sfb", BestSecond, "~14 Mbit at best", 14.0),
        ("fq_codel", Carried(Down), "~7 Mbit", 7.0),
        ("cake", LateDownload, "~12 Mbit after 20–25 s", 12.0),
    ] {
        let within = Tolerance::share(0.25);
        list.claim(arm, format!("{arm}: throughput of the download"))
            .stated(format!("{stated} (± 25 %)"), Near(of(arm, quantity), value, within));
    }
    let steadier = |other| rising(of("cake", DownloadVariation), of(other, DownloadVariation));
    list.claim("steady", "cake's download is steadier than fq_codel's")
        .stated("coefficient of variation: cake < fq_codel", steadier("fq_codel"));
    list.claim("unsteady", "sfb's download is unsteady")
        .stated("coefficient of variation: cake < sfb", steadier("sfb"));
}

/// A background share: the tier's sixteenth and half as much again. "Negligible": 5 ms.
fn evening(list: &mut List<'_>) {
    const BACKGROUND: f64 = 1.5 / 16.0;
    const NEGLIGIBLE: f64 = 5.0;
    for way in [Down, Up] {
        let text = format!("{way}: cake keeps the CS1 swarm to a background share, in every phase");
        list.claim(format!("swarm.{way}"), text).stated(
            "≤ 1/16 and half as much again",
            AtMost(of("cake", SwarmShare(way)), BACKGROUND),
        );
        let above = |other| AtLeast(of(other, SwarmShare(way)), BACKGROUND);
        let others = ["sfq", "pie", "codel", "sfb", "fq_codel", "cake-lite"];
        list.claim(format!("only.{way}"), format!("{way}: cake is the only one that does"))
            .stated("every other's greatest share above that", All(others.map(above).into()));
    }
    for (way, mbps) in [(Down, 20.0), (Up, 3.0)] {
        let text = format!("{way}: without contention the swarm fills the link under cake");
        list.claim(format!("fills.{way}"), text).stated(
            "at least 95 % of the link's rate, with acknowledgements and the call",
            AtLeast(of("cake", LineAlone(way)), 0.95 * mbps),
        );
    }
    for arm in ["fq_codel", "cake-lite", "cake"] {
        list.claim(format!("voice.{arm}.loss"), format!("{arm}: the call loses nothing"))
            .stated("no loss", AtMost(of(arm, VoiceLoss), 0.0));
        let both = [VoiceMean, VoiceJitter].map(|what| AtMost(of(arm, what), NEGLIGIBLE));
        let text = format!("{arm}: negligible induced delay and jitter");
        list.claim(format!("voice.{arm}.delay"), text)
            .stated("mean of both < 5 ms", All(both.into()));
    }
    list.claim("voice.sfq.delay", "sfq: about 10 ms with the swarm").stated(
        "~10 ms (up, the busier way)",
        Near(of("sfq", VoiceWithSwarm(Up)), 10.0, Tolerance::LATENCY),
    );
    list.claim("voice.sfq.loss", "sfq: no loss")
        .stated("no loss", AtMost(of("sfq", VoiceLoss), 0.0));
    list.claim("voice.pie.swings", "pie: delay varies by more than 100 ms")
        .stated("peak > 100 ms", AtLeast(of("pie", VoicePeak), 100.0));
    list.claim("voice.pie.loss", "pie: a steady rate of packet loss")
        .stated("some loss", AtLeast(of("pie", VoiceLoss), 0.001));
    list.claim("voice.sfb.spikes", "sfb: latency spikes reach about 150 ms")
        .stated("~150 ms (± 25 %)", Near(of("sfb", VoicePeak), 150.0, Tolerance::LATENCY));
    list.claim("voice.sfb.loss", "sfb: some packet loss")
        .stated("some loss", AtLeast(of("sfb", VoiceLoss), 1e-5));
}

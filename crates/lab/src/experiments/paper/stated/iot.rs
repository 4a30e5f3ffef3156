//! Statements on IoT flows, for each round-trip time of the competing flows.
//!
//! IoT high writes 100 kbit/s; it reaches its rate if 98 % of that arrive. "About": 25 %.

use super::{of, rising, List, Measure};
use crate::experiments::paper::claim::Judge::{
    self, All, AtLeast, AtMost, Between, Near, NotAbove,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::iot::Part::Median;
use crate::experiments::paper::iot::Quantity::*;
use crate::experiments::paper::iot::{home, ALL_LINES, APPLICATIONS, AQMS, LINES, RTTS};

const ABOUT: Tolerance = Tolerance::share(0.25);
/// Rate of IoT high, Mbit/s, and the least that counts as reached.
const IOT_HIGH: f64 = 0.1;
const REACHED: f64 = 0.98;
/// The video's highest and lowest rate, Mbit/s.
const TOP: f64 = 4.219_897;
const BOTTOM: f64 = 0.045_652;

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "E1" => fifo(list),
        "E2" => any_aqm(list),
        "E3" => slow(list),
        "E4" => fast(list),
        "E5" => bursts(list),
        "E6" => video(list),
        "E7" => everywhere(list),
        _ => {}
    }
}

/// One judgement over all round-trip times.
fn each_rtt(judge: impl Fn(u32) -> Judge) -> Judge {
    All(RTTS.into_iter().map(judge).collect())
}

fn reaches(arm: &str) -> Judge {
    AtLeast(of(arm, Rate("iot-high", Median)), IOT_HIGH * REACHED)
}

fn fifo(list: &mut List<'_>) {
    let of = |rtt, what| of(home("12/1", "fifo", rtt), what);
    for application in APPLICATIONS {
        let text = format!("induced round-trip time of {application}, median, at every RTT");
        list.claim(format!("rtt.{}", application.replace(' ', "-")), text).stated(
            "≈ 2700 ms (± 25 %)",
            each_rtt(|rtt| Near(of(rtt, Rtt(application, Median)), 2700.0, ABOUT)),
        );
    }
    list.claim("iot-high", "IoT high misses its 150 kbit/s (100 of payload)").stated(
        "< 98 % of its rate",
        each_rtt(|rtt| AtMost(of(rtt, Rate("iot-high", Median)), IOT_HIGH * REACHED)),
    );
    list.claim("bulk", "bulk download")
        .stated("< 2 Mbit/s", each_rtt(|rtt| AtMost(of(rtt, Rate("bulk down", Median)), 2.0)));
}

fn any_aqm(list: &mut List<'_>) {
    for aqm in AQMS {
        let arm = |rtt| home("12/1", aqm, rtt);
        list.claim(format!("bulk.{aqm}"), format!("{aqm}: bulk download, at every RTT")).stated(
            "4 to 8 Mbit/s",
            each_rtt(|rtt| Between(of(arm(rtt), Rate("bulk down", Median)), 4.0, 8.0)),
        );
        let text = format!("{aqm}: IoT high reaches its rate, at every RTT");
        list.claim(format!("iot-high.{aqm}"), text)
            .stated("≥ 98 % of its rate", each_rtt(|rtt| reaches(&arm(rtt))));
    }
}

fn slow(list: &mut List<'_>) {
    let arm = |discipline, rtt| home("1.5/0.5", discipline, rtt);
    let fifo = |rtt, what| of(arm("fifo", rtt), what);
    let text = "fifo: median induced round-trip time of the application that suffers most";
    list.claim("fifo.rtt", text).stated(
        "up to 5000 ms (± 25 %)",
        each_rtt(|rtt| Near(fifo(rtt, GreatestRtt), 5000.0, ABOUT)),
    );
    list.claim("fifo.dash", "fifo: DASH achieves less than its lowest rate")
        .stated("< 46 kbit/s", each_rtt(|rtt| AtMost(fifo(rtt, Achieved), BOTTOM)));
    list.claim("fifo.stalls", "fifo: the video stalls")
        .stated("some time stalled", each_rtt(|rtt| AtLeast(fifo(rtt, Stalled), 0.5)));
    list.claim("pie.iot-high", "pie: IoT high just misses its rate").stated(
        "85 to 98 % of its rate",
        each_rtt(|rtt| {
            let measure = of(arm("pie", rtt), Rate("iot-high", Median));
            Between(measure, IOT_HIGH * 0.85, IOT_HIGH * REACHED)
        }),
    );
    for aqm in ["fq_codel", "fq_pie"] {
        let text = format!("{aqm}: IoT high reaches its rate, at every RTT");
        list.claim(format!("{aqm}.iot-high"), text)
            .stated("≥ 98 % of its rate", each_rtt(|rtt| reaches(&arm(aqm, rtt))));
    }
}

fn fast(list: &mut List<'_>) {
    let of = |discipline, rtt, what| of(home("25/5", discipline, rtt), what);
    for aqm in AQMS {
        let full = each_rtt(|rtt| {
            let at = |(what, rate)| AtLeast(of(aqm, rtt, what), rate * REACHED);
            let low = (Rate("iot-low", Median), 0.002);
            let high = (Rate("iot-high", Median), IOT_HIGH);
            All([low, high, (Rate("video", Median), 0.28), (Chosen, TOP)].map(at).into())
        });
        let text = format!("{aqm}: IoT, call and video reach their full rates, at every RTT");
        list.claim(format!("full.{aqm}"), text).stated("≥ 98 % of their rates", full);
        let text = format!("fifo's induced round-trip time is larger than {aqm}'s");
        list.claim(format!("fifo.{aqm}"), text).stated(
            format!("{aqm} < fifo, at every RTT"),
            each_rtt(|rtt| rising(of(aqm, rtt, MeanRtt), of("fifo", rtt, MeanRtt))),
        );
    }
    for fq in ["fq_codel", "fq_pie"] {
        for (what, name, words) in
            [(MeanRtt, "rtt", "median"), (Spread, "spread", "spread (quartiles)")]
        {
            let text = format!("pie's {words} of the induced round-trip time is above {fq}'s");
            list.claim(format!("pie.{name}.{fq}"), text).stated(
                format!("{fq} < pie, at every RTT"),
                each_rtt(|rtt| rising(of(fq, rtt, what), of("pie", rtt, what))),
            );
        }
    }
}

fn bursts(list: &mut List<'_>) {
    for line in LINES {
        let judge = |rtt| {
            let of = |discipline| of(home(line, discipline, rtt), MeanRtt);
            NotAbove(of("fq_codel"), of("fq_pie"))
        };
        list.claim(line, format!("{line}: fq_pie's induced delay is not below fq_codel's"))
            .stated("fq_codel ≤ fq_pie, at every RTT", each_rtt(judge));
    }
}

fn video(list: &mut List<'_>) {
    let of = |line: &str, discipline: &str, rtt, what| of(home(line, discipline, rtt), what);
    for line in ALL_LINES {
        for other in AQMS {
            let text = format!("{line}: fifo is worst: its achieved rate is not above {other}'s");
            let of = |discipline, rtt| of(line, discipline, rtt, Achieved);
            list.claim(format!("fifo.{line}.{other}"), text).stated(
                format!("fifo ≤ {other}, at every RTT"),
                each_rtt(|rtt| NotAbove(of("fifo", rtt), of(other, rtt))),
            );
        }
    }
    for fq in ["fq_codel", "fq_pie"] {
        let mut at = |line: &str, (what, rate), stated: &str, judge: &dyn Fn(Measure) -> Judge| {
            let text = format!("{line}, {fq}: {rate} rate, at every RTT");
            list.claim(format!("{line}.{fq}.{rate}"), text)
                .stated(stated, each_rtt(|rtt| judge(of(line, fq, rtt, what))));
        };
        let (achieved, chosen) = ((Achieved, "achieved"), (Chosen, "chosen"));
        let rung = Tolerance::share(0.05);
        at("12/1", achieved, "> 4 Mbit/s", &|one| AtLeast(one, 4.0));
        at("12/1", chosen, "the highest, 4.2 Mbit/s", &|one| AtLeast(one, TOP * 0.999));
        at("4/1", achieved, "~1.5 Mbit/s (± 25 %)", &|one| Near(one, 1.5, ABOUT));
        at("4/1", chosen, "1.24 Mbit/s (the rung: ± 5 %)", &|one| Near(one, 1.24, rung));
        at("1.5/0.5", chosen, "~400 kbit/s (± 25 %)", &|one| Near(one, 0.4, ABOUT));
    }
    list.claim("12/1.pie", "12/1, pie: achieved rate most of the time, at every RTT")
        .stated("median < 1 Mbit/s", each_rtt(|rtt| AtMost(of("12/1", "pie", rtt, Achieved), 1.0)));
    list.claim("4/1.pie", "4/1, pie: achieved rate, at every RTT").stated(
        "0.5 Mbit/s (± 25 %)",
        each_rtt(|rtt| Near(of("4/1", "pie", rtt, Achieved), 0.5, ABOUT)),
    );
    for aqm in AQMS {
        let text = format!("25/5, {aqm}: chosen rate, at every RTT");
        list.claim(format!("25/5.{aqm}"), text).stated(
            "the highest, 4.2 Mbit/s",
            each_rtt(|rtt| AtLeast(of("25/5", aqm, rtt, Chosen), TOP * 0.999)),
        );
    }
    let of = |discipline, rtt| of("25/5", discipline, rtt, Achieved);
    list.claim("25/5.fq", "25/5: fq_pie's achieved rate is not below fq_codel's").stated(
        "fq_codel ≤ fq_pie, at every RTT",
        each_rtt(|rtt| NotAbove(of("fq_codel", rtt), of("fq_pie", rtt))),
    );
}

/// Section IV-A, "Using AQM yields benefits across all bottleneck bandwidths".
fn everywhere(list: &mut List<'_>) {
    for line in LINES {
        for aqm in AQMS {
            let less = |application: &'static str| {
                each_rtt(|rtt| {
                    let of = |d| of(home(line, d, rtt), Rtt(application, Median));
                    rising(of(aqm), of("fifo"))
                })
            };
            let text = "reduces the induced round-trip time of every application";
            list.claim(format!("{line}.{aqm}"), format!("{line}: {aqm} {text}"))
                .stated(format!("{aqm} < fifo, at every RTT"), All(APPLICATIONS.map(less).into()));
        }
    }
}

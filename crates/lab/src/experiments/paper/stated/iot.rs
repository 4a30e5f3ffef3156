//! Statements on IoT flows, for each round-trip time of the competing flows.
//!
//! IoT high writes 100 kbit/s; it reaches its rate if 98 % of that arrive. "About": 25 %.

use super::{of, rising, List};
use crate::experiments::paper::claim::Judge::{
    self, All, AtLeast, AtMost, Between, Near, NotAbove,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::iot::{APPLICATIONS, RTTS};

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
    AtLeast(of(arm, "iot-high rate"), IOT_HIGH * REACHED)
}

fn fifo(list: &mut List<'_>) {
    let arm = |rtt: u32| format!("12/1 fifo {rtt}");
    for application in APPLICATIONS {
        list.named(
            &format!("rtt.{}", application.replace(' ', "-")),
            &format!("induced round-trip time of {application}, median, at every RTT"),
            "≈ 2700 ms (± 25 %)",
            each_rtt(|rtt| Near(of(arm(rtt), format!("{application} rtt")), 2700.0, ABOUT)),
        );
    }
    list.named(
        "iot-high",
        "IoT high misses its 150 kbit/s (100 of payload)",
        "< 98 % of its rate",
        each_rtt(|rtt| AtMost(of(arm(rtt), "iot-high rate"), IOT_HIGH * REACHED)),
    );
    list.named(
        "bulk",
        "bulk download",
        "< 2 Mbit/s",
        each_rtt(|rtt| AtMost(of(arm(rtt), "bulk down rate"), 2.0)),
    );
}

fn any_aqm(list: &mut List<'_>) {
    for aqm in ["pie", "fq_codel", "fq_pie"] {
        list.named(
            &format!("bulk.{aqm}"),
            &format!("{aqm}: bulk download, at every RTT"),
            "4 to 8 Mbit/s",
            each_rtt(|rtt| Between(of(format!("12/1 {aqm} {rtt}"), "bulk down rate"), 4.0, 8.0)),
        );
        list.named(
            &format!("iot-high.{aqm}"),
            &format!("{aqm}: IoT high reaches its rate, at every RTT"),
            "≥ 98 % of its rate",
            each_rtt(|rtt| reaches(&format!("12/1 {aqm} {rtt}"))),
        );
    }
}

fn slow(list: &mut List<'_>) {
    let arm = |discipline: &str, rtt: u32| format!("1.5/0.5 {discipline} {rtt}");
    list.named(
        "fifo.rtt",
        "fifo: median induced round-trip time of the application that suffers most",
        "up to 5000 ms (± 25 %)",
        each_rtt(|rtt| Near(of(arm("fifo", rtt), "greatest rtt"), 5000.0, ABOUT)),
    );
    list.named(
        "fifo.dash",
        "fifo: DASH achieves less than its lowest rate",
        "< 46 kbit/s",
        each_rtt(|rtt| AtMost(of(arm("fifo", rtt), "dash achieved"), BOTTOM)),
    );
    list.named(
        "fifo.stalls",
        "fifo: the video stalls",
        "some time stalled",
        each_rtt(|rtt| AtLeast(of(arm("fifo", rtt), "dash stalled"), 0.5)),
    );
    list.named(
        "pie.iot-high",
        "pie: IoT high just misses its rate",
        "85 to 98 % of its rate",
        each_rtt(|rtt| {
            let measure = of(arm("pie", rtt), "iot-high rate");
            Between(measure, IOT_HIGH * 0.85, IOT_HIGH * REACHED)
        }),
    );
    for aqm in ["fq_codel", "fq_pie"] {
        list.named(
            &format!("{aqm}.iot-high"),
            &format!("{aqm}: IoT high reaches its rate, at every RTT"),
            "≥ 98 % of its rate",
            each_rtt(|rtt| reaches(&arm(aqm, rtt))),
        );
    }
}

fn fast(list: &mut List<'_>) {
    for aqm in ["pie", "fq_codel", "fq_pie"] {
        let full = each_rtt(|rtt| {
            let at = |what: &str, rate: f64| {
                AtLeast(of(format!("25/5 {aqm} {rtt}"), what), rate * REACHED)
            };
            All(vec![
                at("iot-low rate", 0.002),
                at("iot-high rate", IOT_HIGH),
                at("video rate", 0.28),
                at("dash chosen", TOP),
            ])
        });
        list.named(
            &format!("full.{aqm}"),
            &format!("{aqm}: IoT, call and video reach their full rates, at every RTT"),
            "≥ 98 % of their rates",
            full,
        );
        list.named(
            &format!("fifo.{aqm}"),
            &format!("fifo's induced round-trip time is larger than {aqm}'s"),
            &format!("{aqm} < fifo, at every RTT"),
            each_rtt(|rtt| {
                rising(
                    of(format!("25/5 {aqm} {rtt}"), "rtt"),
                    of(format!("25/5 fifo {rtt}"), "rtt"),
                )
            }),
        );
    }
    for fq in ["fq_codel", "fq_pie"] {
        for (what, words) in [("rtt", "median"), ("spread", "spread (quartiles)")] {
            list.named(
                &format!("pie.{what}.{fq}"),
                &format!("pie's {words} of the induced round-trip time is above {fq}'s"),
                &format!("{fq} < pie, at every RTT"),
                each_rtt(|rtt| {
                    let of = |discipline: &str| of(format!("25/5 {discipline} {rtt}"), what);
                    rising(of(fq), of("pie"))
                }),
            );
        }
    }
}

fn bursts(list: &mut List<'_>) {
    for line in ["25/5", "12/1", "1.5/0.5"] {
        list.named(
            line,
            &format!("{line}: fq_pie's induced delay is not below fq_codel's"),
            "fq_codel ≤ fq_pie, at every RTT",
            each_rtt(|rtt| {
                let of = |discipline: &str| of(format!("{line} {discipline} {rtt}"), "rtt");
                NotAbove(of("fq_codel"), of("fq_pie"))
            }),
        );
    }
}

fn video(list: &mut List<'_>) {
    let of = |line: &str, discipline: &str, rtt: u32, what: &str| {
        of(format!("{line} {discipline} {rtt}"), format!("dash {what}"))
    };
    for line in ["25/5", "12/1", "4/1", "1.5/0.5"] {
        for other in ["pie", "fq_codel", "fq_pie"] {
            list.named(
                &format!("fifo.{line}.{other}"),
                &format!("{line}: fifo is worst: its achieved rate is not above {other}'s"),
                &format!("fifo ≤ {other}, at every RTT"),
                each_rtt(|rtt| {
                    NotAbove(of(line, "fifo", rtt, "achieved"), of(line, other, rtt, "achieved"))
                }),
            );
        }
    }
    for fq in ["fq_codel", "fq_pie"] {
        list.named(
            &format!("12/1.{fq}.achieved"),
            &format!("12/1, {fq}: achieved rate, at every RTT"),
            "> 4 Mbit/s",
            each_rtt(|rtt| AtLeast(of("12/1", fq, rtt, "achieved"), 4.0)),
        );
        list.named(
            &format!("12/1.{fq}.chosen"),
            &format!("12/1, {fq}: chosen rate, at every RTT"),
            "the highest, 4.2 Mbit/s",
            each_rtt(|rtt| AtLeast(of("12/1", fq, rtt, "chosen"), TOP * 0.999)),
        );
        list.named(
            &format!("4/1.{fq}.achieved"),
            &format!("4/1, {fq}: achieved rate, at every RTT"),
            "~1.5 Mbit/s (± 25 %)",
            each_rtt(|rtt| Near(of("4/1", fq, rtt, "achieved"), 1.5, ABOUT)),
        );
        list.named(
            &format!("4/1.{fq}.chosen"),
            &format!("4/1, {fq}: chosen rate, at every RTT"),
            "1.24 Mbit/s (the rung: ± 5 %)",
            each_rtt(|rtt| Near(of("4/1", fq, rtt, "chosen"), 1.24, Tolerance::share(0.05))),
        );
        list.named(
            &format!("1.5/0.5.{fq}.chosen"),
            &format!("1.5/0.5, {fq}: chosen rate, at every RTT"),
            "~400 kbit/s (± 25 %)",
            each_rtt(|rtt| Near(of("1.5/0.5", fq, rtt, "chosen"), 0.4, ABOUT)),
        );
    }
    list.named(
        "12/1.pie",
        "12/1, pie: achieved rate most of the time, at every RTT",
        "median < 1 Mbit/s",
        each_rtt(|rtt| AtMost(of("12/1", "pie", rtt, "achieved"), 1.0)),
    );
    list.named(
        "4/1.pie",
        "4/1, pie: achieved rate, at every RTT",
        "0.5 Mbit/s (± 25 %)",
        each_rtt(|rtt| Near(of("4/1", "pie", rtt, "achieved"), 0.5, ABOUT)),
    );
    for aqm in ["pie", "fq_codel", "fq_pie"] {
        list.named(
            &format!("25/5.{aqm}"),
            &format!("25/5, {aqm}: chosen rate, at every RTT"),
            "the highest, 4.2 Mbit/s",
            each_rtt(|rtt| AtLeast(of("25/5", aqm, rtt, "chosen"), TOP * 0.999)),
        );
    }
    list.named(
        "25/5.fq",
        "25/5: fq_pie's achieved rate is not below fq_codel's",
        "fq_codel ≤ fq_pie, at every RTT",
        each_rtt(|rtt| {
            NotAbove(of("25/5", "fq_codel", rtt, "achieved"), of("25/5", "fq_pie", rtt, "achieved"))
        }),
    );
}

/// Section IV-A, "Using AQM yields benefits across all bottleneck bandwidths".
fn everywhere(list: &mut List<'_>) {
    for line in ["25/5", "12/1", "1.5/0.5"] {
        for aqm in ["pie", "fq_codel", "fq_pie"] {
            list.named(
                &format!("{line}.{aqm}"),
                &format!("{line}: {aqm} reduces the induced round-trip time of every application"),
                &format!("{aqm} < fifo, at every RTT"),
                All(APPLICATIONS
                    .iter()
                    .map(|app| {
                        each_rtt(|rtt| {
                            let of =
                                |d: &str| of(format!("{line} {d} {rtt}"), format!("{app} rtt"));
                            rising(of(aqm), of("fifo"))
                        })
                    })
                    .collect()),
            );
        }
    }
}

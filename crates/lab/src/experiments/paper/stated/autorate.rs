//! Goals for lines that change, set before anything was measured.

use simnel_sim::Direction;

use super::{of, rising, List};
use crate::experiments::paper::autorate::Quantity::*;
use crate::experiments::paper::autorate::FAULTS;
use crate::experiments::paper::claim::Judge::{AtLeast, AtMost};

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "F8" => return faults(list),
        "F1" | "F9" => {
            for way in Direction::BOTH {
                let text = format!("the {way} rate varies around its mean by (%)");
                list.claim(format!("steady.{way}"), text)
                    .stated("at most 5 %", AtMost(of("simnel", Variation(way)), 5.0));
            }
        }
        "F2" => answered(list, "simnel", ""),
        "F7" => {
            for way in Direction::BOTH {
                let text = format!("{way} rate in 5 s after a route change, of that before (%)");
                list.claim(format!("kept.{way}"), text)
                    .stated("at least 90 %", AtLeast(of("simnel", Kept(way)), 90.0));
            }
        }
        _ => {}
    }
    for (arm, short) in [("simnel", ""), ("simnel, no reflector", ".passing")] {
        low(list, arm, short);
        for way in Direction::BOTH {
            let text = format!("{arm}: share of the {way} capacity used (%)");
            list.claim(format!("used.{way}{short}"), text)
                .stated("at least 88 %", AtLeast(of(arm, Used(way)), 88.0));
        }
    }
    better(list, "simnel", "cake-autorate", "");
}

fn low(list: &mut List<'_>, arm: &str, suffix: &str) {
    list.claim(format!("p95{suffix}"), format!("{arm}: p95 of added latency (ms)"))
        .stated("at most 30 ms", AtMost(of(arm, P95), 30.0));
}

fn better(list: &mut List<'_>, arm: &str, rules: &str, suffix: &str) {
    let text = "p95 of added latency is below that of cake-autorate's rules";
    list.claim(format!("better{suffix}"), text)
        .stated("below", rising(of(arm, P95), of(rules, P95)));
}

fn answered(list: &mut List<'_>, arm: &str, suffix: &str) {
    for way in Direction::BOTH {
        let text = format!("{arm}: seconds until the {way} rate is at most the halved capacity");
        list.claim(format!("answered.{way}{suffix}"), text)
            .stated("within 1 s", AtMost(of(arm, Answered(way)), 1.0));
    }
    let text = format!("{arm}: seconds until the added latency is below 30 ms again");
    list.claim(format!("calm{suffix}"), text).stated("within 1 s", AtMost(of(arm, Calm), 1.0));
}

fn faults(list: &mut List<'_>) {
    for (_, fault) in FAULTS {
        let arm = format!("simnel, {fault}");
        let suffix = format!(".{}", fault.replace(' ', "-"));
        answered(list, &arm, &suffix);
        low(list, &arm, &suffix);
        better(list, &arm, &format!("cake-autorate, {fault}"), &suffix);
    }
}

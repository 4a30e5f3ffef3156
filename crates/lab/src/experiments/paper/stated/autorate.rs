//! Goals for lines that change, set before anything was measured.

use super::{of, rising, List};
use crate::experiments::paper::claim::Judge::{AtLeast, AtMost};

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "F8" => return faults(list),
        "F1" => {
            for direction in ["up", "down"] {
                list.named(
                    &format!("steady.{direction}"),
                    &format!("the {direction} rate varies around its mean by (%)"),
                    "at most 5 %",
                    AtMost(of("simnel", format!("{direction} variation")), 5.0),
                );
            }
        }
        "F2" => answered(list, "simnel", ""),
        "F7" => {
            for direction in ["up", "down"] {
                list.named(
                    &format!("kept.{direction}"),
                    &format!("{direction} rate in 5 s after a route change, of that before (%)"),
                    "at least 90 %",
                    AtLeast(of("simnel", format!("{direction} kept")), 90.0),
                );
            }
        }
        _ => {}
    }
    for arm in ["simnel", "simnel, no reflector"] {
        let short = if arm == "simnel" { "" } else { ".passing" };
        list.named(
            &format!("p95{short}"),
            &format!("{arm}: p95 of added latency (ms)"),
            "at most 30 ms",
            AtMost(of(arm, "p95"), 30.0),
        );
        for direction in ["up", "down"] {
            list.named(
                &format!("used.{direction}{short}"),
                &format!("{arm}: share of the {direction} capacity used (%)"),
                "at least 88 %",
                AtLeast(of(arm, format!("{direction} used")), 88.0),
            );
        }
    }
    list.named(
        "better",
        "p95 of added latency is below that of cake-autorate's rules",
        "below",
        rising(of("simnel", "p95"), of("cake-autorate", "p95")),
    );
}

fn answered(list: &mut List<'_>, arm: &str, suffix: &str) {
    for direction in ["up", "down"] {
        list.named(
            &format!("answered.{direction}{suffix}"),
            &format!("{arm}: seconds until the {direction} rate is at most the halved capacity"),
            "within 1 s",
            AtMost(of(arm, format!("{direction} answered")), 1.0),
        );
    }
    list.named(
        &format!("calm{suffix}"),
        &format!("{arm}: seconds until the added latency is below 30 ms again"),
        "within 1 s",
        AtMost(of(arm, "calm"), 1.0),
    );
}

fn faults(list: &mut List<'_>) {
    for fault in ["dead", "rate-limited", "slow", "all blind"] {
        let arm = format!("simnel, {fault}");
        let suffix = format!(".{}", fault.replace(' ', "-"));
        answered(list, &arm, &suffix);
        list.named(
            &format!("p95{suffix}"),
            &format!("{arm}: p95 of added latency (ms)"),
            "at most 30 ms",
            AtMost(of(&arm, "p95"), 30.0),
        );
        list.named(
            &format!("better{suffix}"),
            "p95 of added latency is below that of cake-autorate's rules",
            "below",
            rising(of(&arm, "p95"), of(format!("cake-autorate, {fault}"), "p95")),
        );
    }
}

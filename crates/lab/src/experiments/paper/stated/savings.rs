//! Statements on limited deficit savings. "Equal" is within 5 %; "about" within 25 %.

use super::{of, rising, List};
use crate::experiments::paper::claim::Judge::{self, All, AtLeast, AtMost, Between, Near, Ratio};
use crate::experiments::paper::claim::Tolerance;

const ABOUT: Tolerance = Tolerance::share(0.25);

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "D1" => plain_enqueue(list),
        "D2" => {
            plain_dequeue(list);
            linear_dequeue(list);
        }
        "D3" => savings_enqueue(list),
        "D4" => savings_dequeue(list),
        "D5" => transfers(list),
        "D6" => elsewhere(list),
        _ => {}
    }
}

fn unequal(arm: &str) -> Judge {
    AtLeast(of(arm, "gap"), 1.05)
}

fn equal(arm: &str) -> Judge {
    Between(of(arm, "gap"), 0.95, 1.05)
}

fn all(arms: impl IntoIterator<Item = String>, judge: fn(&str) -> Judge) -> Judge {
    All(arms.into_iter().map(|arm| judge(&arm)).collect())
}

fn plain_enqueue(list: &mut List<'_>) {
    for packets in [15, 20, 30, 40] {
        list.named(
            &format!("unequal.{packets}"),
            &format!("S_B = {packets}: rate of a heavy user over that of a light one"),
            "heavy > light (by 5 % or more)",
            unequal(&format!("enqueue {packets}")),
        );
    }
    for packets in [50, 75, 100] {
        list.named(
            &format!("equal.{packets}"),
            &format!("S_B = {packets}: rate of a heavy user over that of a light one"),
            "equal ± 5 %",
            equal(&format!("enqueue {packets}")),
        );
        list.named(
            &format!("occupancy.{packets}"),
            &format!("S_B = {packets}: mean number of packets in the buffer"),
            "5/6 of S_B (± 10 %)",
            Near(
                of(format!("enqueue {packets}"), "occupancy"),
                f64::from(packets) * 5.0 / 6.0,
                Tolerance::share(0.10),
            ),
        );
    }
    list.named(
        "linear",
        "delay rises about linearly with the buffer: S_B = 100 against 50",
        "twice (± 25 %)",
        Ratio(of("enqueue 100", "delay"), of("enqueue 50", "delay"), 1.5, 2.5),
    );
}

fn plain_dequeue(list: &mut List<'_>) {
    for (packets, ms) in [(15, 18), (20, 24)] {
        list.named(
            &format!("larger.{ms}"),
            &format!("T_D = {ms} ms: the gap between users is larger than at S_B = {packets}"),
            "drop-on-enqueue < drop-on-dequeue",
            rising(of(format!("enqueue {packets}"), "gap"), of(format!("dequeue {ms}"), "gap")),
        );
    }
    for ms in [90, 105, 120] {
        list.named(
            &format!("equal.{ms}"),
            &format!("T_D = {ms} ms: rate of a heavy user over that of a light one"),
            "equal ± 5 %",
            equal(&format!("dequeue {ms}")),
        );
    }
    list.named(
        "delay.90",
        "T_D = 90 ms: mean delay",
        "≈ 40 ms (± 25 %)",
        Near(of("dequeue 90", "delay"), 40.0, ABOUT),
    );
    for ms in [24, 48, 90, 120] {
        list.named(
            &format!("half.{ms}"),
            &format!("T_D = {ms} ms: mean delay is about half of it"),
            "T_D / 2 (± 25 %)",
            Near(of(format!("dequeue {ms}"), "delay"), f64::from(ms) / 2.0, ABOUT),
        );
        list.named(
            &format!("similar.{ms}"),
            &format!("T_D = {ms} ms: delay is similar for both kinds of user"),
            "ratio 1 ± 25 %",
            Ratio(
                of(format!("dequeue {ms}"), "heavy delay"),
                of(format!("dequeue {ms}"), "light delay"),
                0.75,
                1.25,
            ),
        );
    }
}

/// Drop-on-dequeue, as [`plain_enqueue`]'s last claim.
fn linear_dequeue(list: &mut List<'_>) {
    list.named(
        "linear",
        "delay rises about linearly with the threshold: T_D = 120 ms against 60",
        "twice (± 25 %)",
        Ratio(of("dequeue 120", "delay"), of("dequeue 60", "delay"), 1.5, 2.5),
    );
}

fn savings_enqueue(list: &mut List<'_>) {
    list.named(
        "unequal",
        "no savings: rate of a heavy user over that of a light one",
        "heavy > light (by 5 % or more)",
        unequal("enqueue 20 savings 0"),
    );
    for savings in [10, 15, 20] {
        list.named(
            &format!("equal.{savings}"),
            &format!("D_max = {savings}: rate of a heavy user over that of a light one"),
            "equal ± 5 %",
            equal(&format!("enqueue 20 savings {savings}")),
        );
    }
    list.named(
        "delay",
        "D_max = 10: mean delay",
        "≈ 20 ms (± 25 %)",
        Near(of("enqueue 20 savings 10", "delay"), 20.0, ABOUT),
    );
    list.named(
        "heavy",
        "D_max = 10: heavy users wait slightly longer",
        "light < heavy",
        rising(
            of("enqueue 20 savings 10", "light delay"),
            of("enqueue 20 savings 10", "heavy delay"),
        ),
    );
}

fn savings_dequeue(list: &mut List<'_>) {
    list.named(
        "unequal",
        "no savings: rate of a heavy user over that of a light one",
        "heavy > light (by 5 % or more)",
        unequal("dequeue 24 savings 0"),
    );
    for savings in [6, 8, 10, 15, 20] {
        list.named(
            &format!("equal.{savings}"),
            &format!("D_max = {savings}: rate of a heavy user over that of a light one"),
            "equal ± 5 %",
            equal(&format!("dequeue 24 savings {savings}")),
        );
    }
    list.named(
        "delay",
        "D_max = 6: mean delay",
        "≈ 10 ms (± 25 %)",
        Near(of("dequeue 24 savings 6", "delay"), 10.0, ABOUT),
    );
    list.named(
        "heavy",
        "D_max = 6: heavy users wait slightly longer",
        "light < heavy",
        rising(
            of("dequeue 24 savings 6", "light delay"),
            of("dequeue 24 savings 6", "heavy delay"),
        ),
    );
}

fn transfers(list: &mut List<'_>) {
    let enqueue =
        |load: u32, savings: u32| of(format!("enqueue {load} flows savings {savings}"), "time");
    let dequeue =
        |load: u32, savings: u32| of(format!("dequeue {load} flows savings {savings}"), "time");
    list.named(
        "enqueue.load",
        "S_B = 20, no savings: nearly independent of the load, 20 flows against 5",
        "ratio 1 ± 25 %",
        Ratio(enqueue(20, 0), enqueue(5, 0), 0.75, 1.25),
    );
    list.named(
        "enqueue.below",
        "S_B = 20: larger D_max (100) brings the time below the fair 1.68 s, at every load",
        "< 1.68 s",
        All([5, 10, 20].map(|load| AtMost(enqueue(load, 100), 1.68)).into()),
    );
    for (load, seconds) in [(5, 4.8), (10, 5.5), (20, 5.9)] {
        list.named(
            &format!("dequeue.none.{load}"),
            &format!("T_D = 24 ms, no savings, {load} flows: time"),
            &format!("{seconds} s (± 25 %)"),
            Near(dequeue(load, 0), seconds, ABOUT),
        );
    }
    list.named(
        "dequeue.load",
        "T_D = 24 ms: the difference between loads vanishes with little D_max (2)",
        "ratio of 20 to 5 flows 1 ± 25 %",
        Ratio(dequeue(20, 2), dequeue(5, 2), 0.75, 1.25),
    );
    list.named(
        "dequeue.below",
        "T_D = 24 ms: even larger D_max (100) brings the time below 0.4 s, at every load",
        "< 0.4 s",
        All([5, 10, 20].map(|load| AtMost(dequeue(load, 100), 0.4)).into()),
    );
}

fn elsewhere(list: &mut List<'_>) {
    let far = |arm: &str| format!("{arm} 50 ms");
    list.named(
        "far.enqueue",
        "50 ms: drop-on-enqueue, unequal at 20 packets",
        "heavy > light (by 5 % or more)",
        unequal(&far("enqueue 20")),
    );
    list.named(
        "far.enqueue.equal",
        "50 ms: drop-on-enqueue, equal at 50 packets",
        "equal ± 5 %",
        equal(&far("enqueue 50")),
    );
    list.named(
        "far.dequeue",
        "50 ms: drop-on-dequeue, unequal at 24 ms",
        "heavy > light (by 5 % or more)",
        unequal(&far("dequeue 24")),
    );
    list.named(
        "far.dequeue.equal",
        "50 ms: drop-on-dequeue, equal at 90 ms",
        "equal ± 5 %",
        equal(&far("dequeue 90")),
    );
    list.named(
        "far.savings",
        "50 ms: savings make both strategies equal (20 packets, D_max 10; 24 ms, D_max 6)",
        "equal ± 5 %",
        all([far("enqueue 20 savings 10"), far("dequeue 24 savings 6")], equal),
    );
    list.named(
        "far.transfer",
        "50 ms: savings speed the transfer up with drop-on-dequeue",
        "D_max 100 < no savings",
        rising(
            of("transfer dequeue 10 savings 100 50 ms", "time"),
            of("transfer dequeue 10 savings 0 50 ms", "time"),
        ),
    );
    let (enqueue, dequeue) = ("enqueue 20 savings 10 cubic", "dequeue 24 savings 6 cubic");
    list.named(
        "cubic.enqueue.rate",
        "CUBIC: savings with drop-on-enqueue give light users more than heavy ones",
        "light > heavy (by 5 % or more)",
        AtMost(of(enqueue, "gap"), 0.95),
    );
    list.named(
        "cubic.enqueue.delay",
        "CUBIC: and light users wait longer",
        "heavy < light",
        rising(of(enqueue, "heavy delay"), of(enqueue, "light delay")),
    );
    list.named(
        "cubic.dequeue",
        "CUBIC: savings with drop-on-dequeue behave as with New Reno",
        "equal ± 5 %",
        equal(dequeue),
    );
    list.named(
        "cubic.transfer",
        "CUBIC: savings speed the transfer up with drop-on-dequeue",
        "D_max 100 < no savings",
        rising(
            of("transfer dequeue 10 savings 100 cubic", "time"),
            of("transfer dequeue 10 savings 0 cubic", "time"),
        ),
    );
}

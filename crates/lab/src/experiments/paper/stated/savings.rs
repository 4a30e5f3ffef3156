//! Statements on limited deficit savings. "Equal" is within 5 %; "about" within 25 %.

use super::{of, rising, List};
use crate::experiments::paper::claim::Judge::{
    self, All, AtLeast, AtMost, Between, Near, NearRatio,
};
use crate::experiments::paper::claim::Tolerance;
use crate::experiments::paper::savings::Quantity::*;
use crate::experiments::paper::savings::{dequeue, enqueue, Setting, CUBIC, FAR, LOADS};

const ABOUT: Tolerance = Tolerance::share(0.25);

pub(super) fn state(list: &mut List<'_>) {
    match list.id {
        "D1" => plain_enqueue(list),
        "D2" => plain_dequeue(list),
        "D3" => savings(list, enqueue(20), &[10, 15, 20], 20.0),
        "D4" => savings(list, dequeue(24), &[6, 8, 10, 15, 20], 10.0),
        "D5" => transfers(list),
        "D6" => elsewhere(list),
        _ => {}
    }
}

/// Rate of a heavy user over that of a light one.
fn unequal(arm: Setting) -> Judge {
    AtLeast(of(arm, Gap), 1.05)
}

fn equal(arm: Setting) -> Judge {
    Between(of(arm, Gap), 0.95, 1.05)
}

const UNEQUAL: &str = "heavy > light (by 5 % or more)";
const EQUAL: &str = "equal ± 5 %";
const RATES: &str = "rate of a heavy user over that of a light one";

fn plain_enqueue(list: &mut List<'_>) {
    for packets in [15, 20, 30, 40] {
        list.claim(format!("unequal.{packets}"), format!("S_B = {packets}: {RATES}"))
            .stated(UNEQUAL, unequal(enqueue(packets)));
    }
    for packets in [50, 75, 100] {
        list.claim(format!("equal.{packets}"), format!("S_B = {packets}: {RATES}"))
            .stated(EQUAL, equal(enqueue(packets)));
        let text = format!("S_B = {packets}: mean number of packets in the buffer");
        let (five_sixths, within) = (f64::from(packets) * 5.0 / 6.0, Tolerance::share(0.10));
        list.claim(format!("occupancy.{packets}"), text).stated(
            "5/6 of S_B (± 10 %)",
            Near(of(enqueue(packets), Occupancy), five_sixths, within),
        );
    }
    let of = |packets| of(enqueue(packets), Delay);
    list.claim("linear", "delay rises about linearly with the buffer: S_B = 100 against 50")
        .stated("twice (± 25 %)", NearRatio(of(100), of(50), 2.0, 0.5));
}

fn plain_dequeue(list: &mut List<'_>) {
    for (packets, ms) in [(15, 18), (20, 24)] {
        let text = format!("the gap between users is larger than at S_B = {packets}");
        list.claim(format!("larger.{ms}"), format!("T_D = {ms} ms: {text}")).stated(
            "drop-on-enqueue < drop-on-dequeue",
            rising(of(enqueue(packets), Gap), of(dequeue(ms), Gap)),
        );
    }
    for ms in [90, 105, 120] {
        list.claim(format!("equal.{ms}"), format!("T_D = {ms} ms: {RATES}"))
            .stated(EQUAL, equal(dequeue(ms)));
    }
    list.claim("delay.90", "T_D = 90 ms: mean delay")
        .stated("≈ 40 ms (± 25 %)", Near(of(dequeue(90), Delay), 40.0, ABOUT));
    for ms in [24, 48, 90, 120] {
        let of = |what| of(dequeue(ms), what);
        list.claim(format!("half.{ms}"), format!("T_D = {ms} ms: mean delay is about half of it"))
            .stated("T_D / 2 (± 25 %)", Near(of(Delay), f64::from(ms) / 2.0, ABOUT));
        let text = format!("T_D = {ms} ms: delay is similar for both kinds of user");
        list.claim(format!("similar.{ms}"), text)
            .stated("ratio 1 ± 25 %", NearRatio(of(HeavyDelay), of(LightDelay), 1.0, 0.25));
    }
    // As the last claim of `plain_enqueue`.
    let of = |ms| of(dequeue(ms), Delay);
    list.claim("linear", "delay rises about linearly with the threshold: T_D = 120 ms against 60")
        .stated("twice (± 25 %)", NearRatio(of(120), of(60), 2.0, 0.5));
}

/// Effects of savings on `plain`: the rates are equal with those in `enough`; the mean delay is
/// that with the first of them.
fn savings(list: &mut List<'_>, plain: Setting, enough: &[u32], delay: f64) {
    list.claim("unequal", format!("no savings: {RATES}")).stated(UNEQUAL, unequal(plain.saving(0)));
    for packets in enough {
        list.claim(format!("equal.{packets}"), format!("D_max = {packets}: {RATES}"))
            .stated(EQUAL, equal(plain.saving(*packets)));
    }
    let least = enough[0];
    let of = |what| of(plain.saving(least), what);
    list.claim("delay", format!("D_max = {least}: mean delay"))
        .stated(format!("≈ {delay} ms (± 25 %)"), Near(of(Delay), delay, ABOUT));
    list.claim("heavy", format!("D_max = {least}: heavy users wait slightly longer"))
        .stated("light < heavy", rising(of(LightDelay), of(HeavyDelay)));
}

fn transfers(list: &mut List<'_>) {
    let on_enqueue = |load, savings| of(enqueue(20).beside(load).saving(savings), Time);
    let on_dequeue = |load, savings| of(dequeue(24).beside(load).saving(savings), Time);
    let text = "S_B = 20, no savings: nearly independent of the load, 20 flows against 5";
    list.claim("enqueue.load", text)
        .stated("ratio 1 ± 25 %", NearRatio(on_enqueue(20, 0), on_enqueue(5, 0), 1.0, 0.25));
    let text = "S_B = 20: larger D_max (100) brings the time below the fair 1.68 s, at every load";
    list.claim("enqueue.below", text)
        .stated("< 1.68 s", All(LOADS.map(|load| AtMost(on_enqueue(load, 100), 1.68)).into()));
    for (load, seconds) in [(5, 4.8), (10, 5.5), (20, 5.9)] {
        let text = format!("T_D = 24 ms, no savings, {load} flows: time");
        list.claim(format!("dequeue.none.{load}"), text)
            .stated(format!("{seconds} s (± 25 %)"), Near(on_dequeue(load, 0), seconds, ABOUT));
    }
    let text = "T_D = 24 ms: the difference between loads vanishes with little D_max (2)";
    list.claim("dequeue.load", text).stated(
        "ratio of 20 to 5 flows 1 ± 25 %",
        NearRatio(on_dequeue(20, 2), on_dequeue(5, 2), 1.0, 0.25),
    );
    let text = "T_D = 24 ms: even larger D_max (100) brings the time below 0.4 s, at every load";
    list.claim("dequeue.below", text)
        .stated("< 0.4 s", All(LOADS.map(|load| AtMost(on_dequeue(load, 100), 0.4)).into()));
}

fn elsewhere(list: &mut List<'_>) {
    list.claim("far.enqueue", "50 ms: drop-on-enqueue, unequal at 20 packets")
        .stated(UNEQUAL, unequal(enqueue(20).over(FAR)));
    list.claim("far.enqueue.equal", "50 ms: drop-on-enqueue, equal at 50 packets")
        .stated(EQUAL, equal(enqueue(50).over(FAR)));
    list.claim("far.dequeue", "50 ms: drop-on-dequeue, unequal at 24 ms")
        .stated(UNEQUAL, unequal(dequeue(24).over(FAR)));
    list.claim("far.dequeue.equal", "50 ms: drop-on-dequeue, equal at 90 ms")
        .stated(EQUAL, equal(dequeue(90).over(FAR)));
    let saving = [enqueue(20).saving(10), dequeue(24).saving(6)];
    let text = "50 ms: savings make both strategies equal (20 packets, D_max 10; 24 ms, D_max 6)";
    list.claim("far.savings", text)
        .stated(EQUAL, All(saving.map(|arm| equal(arm.over(FAR))).into()));
    let faster = |path| {
        let of = |savings| of(dequeue(24).beside(10).saving(savings).over(path), Time);
        rising(of(100), of(0))
    };
    list.claim("far.transfer", "50 ms: savings speed the transfer up with drop-on-dequeue")
        .stated("D_max 100 < no savings", faster(FAR));
    let [enqueue, dequeue] = saving.map(|arm| arm.over(CUBIC));
    let text = "CUBIC: savings with drop-on-enqueue give light users more than heavy ones";
    list.claim("cubic.enqueue.rate", text)
        .stated("light > heavy (by 5 % or more)", AtMost(of(enqueue, Gap), 0.95));
    list.claim("cubic.enqueue.delay", "CUBIC: and light users wait longer")
        .stated("heavy < light", rising(of(enqueue, HeavyDelay), of(enqueue, LightDelay)));
    list.claim("cubic.dequeue", "CUBIC: savings with drop-on-dequeue behave as with New Reno")
        .stated(EQUAL, equal(dequeue));
    list.claim("cubic.transfer", "CUBIC: savings speed the transfer up with drop-on-dequeue")
        .stated("D_max 100 < no savings", faster(CUBIC));
}

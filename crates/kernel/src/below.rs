//! Decisions of `red` and `sfb` about packets that wait in another discipline of the kernel, below
//! theirs (`kernel/below.c`).

use simnel_core::qdisc::{Backlog, Fate};
use simnel_core::time::Time;

use crate::arrival::Unusual;
use crate::line::Line;

/// Gives all packets back through `simnel_host_dropped`: from now on they wait below. What was
/// learnt stays.
#[no_mangle]
pub extern "C" fn simnel_open(line: &mut Line) {
    if let Some(gate) = line.qdisc.gate() {
        gate.open(&mut line.owner);
    }
}

/// Decides about the packet that C has described in the line, while `packets` with `bytes` wait
/// below. Not 0 if it is to be queued there. It is to be marked first if its descriptor says so.
///
/// # Safety
/// As [`simnel_enqueue`](crate::line::simnel_enqueue).
#[no_mangle]
pub unsafe extern "C" fn simnel_decide(
    line: &mut Line,
    unusual: &Unusual,
    packets: u32,
    bytes: u32,
    now: u64,
) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { line.describe(Some(unusual)) };
    let Some(gate) = line.qdisc.gate() else { return 1 };
    let below = Backlog { packets, bytes: bytes.into() };
    match gate.decide(&line.arrival.packet, below, Time(now), &mut line.owner) {
        Fate::Pass => {}
        Fate::Marked => _ = line.arrival.packet.mark_ce(),
        Fate::Drop(_) => return 0,
    }
    1
}

/// The packet that was decided about last was refused below.
#[no_mangle]
pub extern "C" fn simnel_refused(line: &mut Line, now: u64) {
    if let Some(gate) = line.qdisc.gate() {
        gate.refused(Time(now));
    }
}

/// Of the packets that were queued below, so many are there still.
#[no_mangle]
pub extern "C" fn simnel_left(line: &mut Line, packets: u32) {
    if let Some(gate) = line.qdisc.gate() {
        gate.left(packets);
    }
}

/// There was no packet to take from below.
#[no_mangle]
pub extern "C" fn simnel_found_empty(line: &mut Line, now: u64) {
    if let Some(gate) = line.qdisc.gate() {
        gate.found_empty(Time(now));
    }
}

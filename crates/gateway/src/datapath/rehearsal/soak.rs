//! A week of one loop: what it holds at the end of a day does not grow.
//!
//! Trouble, changes, looks at the flows and recordings go on day and night, and hosts and
//! connections come and go. Left out is what ends a loop, since the next one begins with nothing:
//! hangs, drains and the guard. At the end of each day the line falls silent, one discipline comes,
//! and all is counted. `scripts/rehearse.sh --weeks N` has more of them.

use std::sync::mpsc::sync_channel;

use allocation_counter::measure;
use simnel_core::qdisc::Device;
use simnel_core::{qdisc, Span, Time};

use super::books::{Bounds, Violation, FULL};
use super::plan::{Plan, Trouble};
use super::{discipline, Case, Discipline, HOUR};
use crate::datapath::mailbox::Command;
use crate::flows::{empty_part, PARTS};
use crate::record;

/// Days of the week.
const DAYS: usize = 7;
/// Days in which tables and queues become as long as they ever will.
const FIRST: usize = 2;
/// Bytes of the heap by which later days may differ: less than a byte an hour.
const BOUND: i64 = 100;
/// Silences are shorter than so many seconds.
const LULL: u32 = 5_000;
/// By then all that was queued has left, whatever the rate.
const SILENCE: Span = Span::from_secs(900);

/// Holdings of the loop and of the model around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holdings {
    /// Flows of which some packets are queued, by the table's account.
    queued: usize,
    /// Flows that gave their place in the full table to others, so far.
    evicted: u64,
    /// Packets and ghosts in the books, messages in the socket.
    books: [usize; 3],
}

impl Case {
    /// Lives 24 hours from `hour` on, and settles.
    fn day(&mut self, hour: &mut Time) -> Result<Holdings, Violation> {
        for number in 0..24 {
            *hour += HOUR;
            self.live_until(*hour)?;
            self.flows();
            self.record(number % 2 == 0);
        }
        self.settle()
    }

    /// All that the loop holds, once it has nothing to do.
    fn settle(&mut self) -> Result<Holdings, Violation> {
        self.model.end_load();
        self.until(self.model.clock() + SILENCE)?;
        let config = qdisc::parse("cake bandwidth 10mbit").expect("words of cake");
        let (reply, _answer) = sync_channel(1);
        let qdisc = discipline(&config, Discipline::Sound);
        self.ask(Command::Replace(qdisc, Device::default(), reply));
        let bounds = Bounds { rate: 10_000_000 / 8, burst: FULL, limit: 4 << 20, shares: 1 };
        self.model.books.follow(bounds, self.model.clock());
        self.record(false);
        // Those that are silent for so long are told only if they have something queued.
        let (queued, evicted) = self.flows();
        let books = self.model.tidy();
        Ok(Holdings { queued, evicted, books })
    }

    /// Looks at the flows: how many are told, and how many were evicted so far.
    fn flows(&mut self) -> (usize, u64) {
        let part = |number| {
            let (reply, answer) = sync_channel(1);
            self.ask(Command::Flows(number, empty_part(), reply));
            answer.try_recv().expect("an answer at once")
        };
        let parts: Vec<_> = (0..PARTS).map(part).collect();
        (parts.iter().map(|part| part.flows.len()).sum(), parts[0].whole.evicted)
    }

    fn record(&mut self, more: bool) {
        let (reply, _answer) = sync_channel(1);
        self.ask(Command::Record(more.then(|| record::room(1)), reply));
    }
}

/// Lives a week; the packets that got a verdict, or what did not hold. Nothing is printed in it:
/// words that a test keeps are on the heap, too.
fn week(seed: u64, discipline: Discipline) -> Result<u64, String> {
    let plan = Plan::new(seed).without(Trouble::Starved).without(Trouble::Drains);
    let mut case = Case::new(plan, discipline);
    (case.silence, case.patience) = (LULL, Span(u64::MAX));
    case.model.renew_flows();
    let (mut hour, mut evicted, mut more) = (case.model.clock(), 0, 0);
    for day in 1..=DAYS {
        let mut ended = None;
        let grown = measure(|| ended = Some(case.day(&mut hour))).bytes_current;
        let now = ended.expect("a day").map_err(|Violation(words)| words)?;
        if (now.queued, now.books) != (0, [0; 3]) {
            return Err(format!("after {day} days {now:?}"));
        }
        evicted = now.evicted;
        if day > FIRST {
            more += grown;
        }
        if more.abs() > BOUND {
            return Err(format!("{more} bytes more after {day} days than after {FIRST}: {now:?}"));
        }
    }
    assert!(evicted > 0, "the table of flows was not full");
    assert_eq!(case.ended, 0, "loops that ended");
    Ok(case.model.books.judged)
}

/// The first week, or as many as `scripts/rehearse.sh` names.
#[test]
fn a_week_leaves_nothing_behind() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let first = number("SOAK_FIRST").unwrap_or(0);
    for seed in first..first + number("SOAK_WEEKS").unwrap_or(1) {
        match week(seed, Discipline::Sound) {
            Ok(judged) => println!("week {seed}: {judged} packets, nothing is left behind"),
            Err(words) => panic!("week {seed}: {words}"),
        }
    }
}

#[test]
fn a_discipline_that_keeps_memory_is_found() {
    let words = week(0, Discipline::Hoarding).expect_err("the canary must be found");
    assert!(words.contains("bytes more after 3 days"), "{words}");
}

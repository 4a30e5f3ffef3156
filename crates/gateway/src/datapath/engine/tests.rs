//! The loop's rules one at a time, against a kernel that does as it is told.

use std::cell::Cell;
use std::collections::VecDeque;

use simnel_core::qdisc;

use super::*;
use crate::connections::Connections;
use crate::datapath::rehearsal::{queued, stale};
use crate::direction::Direction;
use crate::netlink::Messages;
use crate::nfqueue::parse;
use crate::words::settings_of;

const START: Time = Time(7_000_000_000);

/// A kernel with this time, these messages, and what was said of its packets: number and whether
/// it may pass.
#[derive(Default)]
struct Fake {
    now: Cell<Time>,
    /// Times that the next receive calls take.
    takes: VecDeque<Span>,
    waiting: VecDeque<Vec<u8>>,
    batch: Vec<Vec<u8>>,
    said: Vec<(u32, bool)>,
    refuses: bool,
    fails: bool,
}

impl Kernel for Fake {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn receive(&mut self) -> io::Result<(usize, bool)> {
        if self.fails {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.now.set(self.now.get() + self.takes.pop_front().unwrap_or_default());
        let count = self.waiting.len().min(BATCH);
        self.batch = self.waiting.drain(..count).collect();
        Ok((count, count == BATCH))
    }

    fn event(&self, index: usize) -> Event<'_> {
        parse(&self.batch[index])
    }

    fn send(&mut self, verdicts: &[u8]) -> io::Result<()> {
        if self.refuses {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        for message in Messages(verdicts) {
            let (_, body) = message.attributes().next().expect("a verdict");
            let number = |at: usize| u32::from_be_bytes(*body[at..].first_chunk().unwrap());
            self.said.push((number(4), number(0) == libc::NF_ACCEPT as u32));
        }
        Ok(())
    }

    fn cpu(&self) -> Span {
        Span(77)
    }
}

/// Headers of an UDP packet of 986 bytes.
fn headers() -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 3, 218, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 1, 0, 1];
    bytes.extend([0x13, 1, 0x14, 0x51, 3, 198, 0, 0]);
    bytes
}

/// A packet that is 1000 bytes on the wire.
fn packet(id: u32) -> Vec<u8> {
    queued(id, 986, &headers())
}

/// A loop and its kernel.
struct Loop {
    engine: Engine,
    kernel: Fake,
}

impl Loop {
    fn new(rate: Option<&str>, words: &str, tuning: Tuning) -> Loop {
        let config = settings_of(Direction::Upload, rate, words).unwrap();
        let device = Device::default();
        let key = HashKey::new(1, 2);
        let qdisc = qdisc::build(&config, &device).unwrap();
        let segments = Arc::new(SegmentSizes::of(Connections::with_key(key)));
        let verdicts = Verdicts::new(5, LONGEST);
        let surroundings = (device, MarkBits::DEFAULT);
        let engine = Engine::new(qdisc, verdicts, surroundings, (tuning, key), segments, START);
        Loop { engine, kernel: Fake { now: Cell::new(START), ..Fake::default() } }
    }

    /// Packets of these numbers arrive at once.
    fn arrive(&mut self, ids: std::ops::Range<u32>) -> &mut Loop {
        self.kernel.waiting.extend(ids.map(packet));
        self
    }

    fn turn(&mut self) -> Rest {
        self.engine.turn(&mut self.kernel)
    }

    /// A turn so much later.
    fn later(&mut self, span: Span) -> Rest {
        self.kernel.now.set(self.kernel.now.get() + span);
        self.turn()
    }

    /// Numbers of packets that were let go.
    fn gone(&self) -> Vec<u32> {
        self.kernel.said.iter().map(|(id, passes)| passes.then_some(*id).unwrap()).collect()
    }

    fn counters(&self) -> Counters {
        self.engine.status(START, Span::ZERO).counters
    }
}

/// A packet of 1000 bytes each millisecond.
const SHAPED: &str = "cake besteffort flowblind";

fn shaped(tuning: Tuning) -> Loop {
    Loop::new(Some("8mbit"), SHAPED, tuning)
}

fn micros(span: Span) -> u64 {
    span.as_micros()
}

#[test]
fn without_work_it_sleeps_until_something_comes_or_a_sign_of_life_is_due() {
    let mut idle = shaped(Tuning::default());
    assert_eq!(idle.turn(), Rest::sleep(BEAT, true));
    // The first packet leaves at once, and nothing waits.
    assert_eq!(idle.arrive(1..2).later(Span(5)), Rest::sleep(BEAT, true));
    assert_eq!((idle.gone(), idle.counters().turns), (vec![1], 2));
}

#[test]
fn the_next_packet_is_slept_for_and_arrivals_end_a_long_sleep() {
    let mut line = shaped(Tuning::default());
    let rest = line.arrive(1..3).turn();
    // The clock is slower by the time of a packet each second.
    assert!((1_000..1_003).contains(&micros(rest.time)), "{rest:?}");
    assert_eq!((rest.arrivals, rest.spin_until, line.gone()), (true, None, vec![1]));
    // Less than 250 µs are not worth a wake-up for an arrival.
    let rest = line.later(Span::from_micros(760));
    assert!((240..245).contains(&micros(rest.time)) && !rest.arrivals, "{rest:?}");
    let rest = line.later(Span::from_micros(250));
    assert_eq!((rest, line.gone()), (Rest::sleep(BEAT, true), vec![1, 2]));
    // The last part of a wait is spent spinning, if asked for.
    let mut line = shaped(Tuning { spin: Span::from_micros(60), ..Tuning::default() });
    let rest = line.arrive(1..3).turn();
    assert!((940..943).contains(&micros(rest.time)), "{rest:?}");
    assert_eq!(rest.spin_until, line.engine.planned);
    assert!(rest.spin_until.is_some_and(|at| at > START));
}

#[test]
fn a_datagram_that_takes_two_packets_on_the_wire_takes_the_time_of_two() {
    let mut line = Loop::new(Some("8mbit"), "cake flowblind overhead 38", Tuning::default());
    line.kernel.waiting.extend([1, 2].map(|id| queued(id, 1_501, &headers())));
    let rest = line.turn();
    // The second one has a byte, and in this reckoning UDP's header.
    let both = (1_500 + 38) + (28 + 1 + 38);
    assert!((both..both + 4).contains(&micros(rest.time)), "{rest:?}");
}

/// Beyond 200 Mbit/s a wake-up is for several packets.
#[test]
fn fast_packets_leave_in_batches() {
    let mut line = Loop::new(Some("400mbit"), SHAPED, Tuning::default());
    // Twenty microseconds each.
    line.arrive(1..60).turn();
    line.later(Span::from_micros(100));
    let before = line.gone().len();
    let rest = line.later(Span::from_micros(100));
    assert!((2..8).contains(&(line.gone().len() - before)), "{:?}", line.gone());
    assert!((500..504).contains(&micros(rest.time)) && !rest.arrivals, "{rest:?}");
    // Those of 60 µs and more each have a wake-up of their own.
    let mut line = Loop::new(Some("100mbit"), SHAPED, Tuning::default());
    line.arrive(1..60).turn();
    let rest = line.later(Span::from_micros(400));
    assert!(micros(rest.time) <= 81, "{rest:?}");
}

/// A burst makes up for [`Tuning::catch_up`]; more is forfeited, if there is a rate to keep.
#[test]
fn lateness_is_counted_and_what_is_too_much_is_forfeited() {
    for (late_us, forfeited_us, bucket) in [(3_000, 0, 12), (10_000, 6_000, 14), (1, 0, 1)] {
        let mut line = shaped(Tuning::default());
        let rest = line.arrive(1..40).turn();
        line.later(rest.time + Span::from_micros(late_us));
        let counters = line.counters();
        let forfeited = micros(counters.forfeited);
        assert!(forfeited.abs_diff(forfeited_us) <= 20, "{late_us}: {forfeited}");
        assert_eq!(counters.lateness[bucket], 1, "{late_us}: {:?}", counters.lateness);
        assert_eq!(counters.lateness.iter().sum::<u64>(), 1);
        // As many packets as were due, and one.
        let due = 2 + (late_us - forfeited_us) / 1_000;
        assert!((line.gone().len() as u64).abs_diff(due) <= 1, "{late_us}: {:?}", line.gone());
    }
    let mut free = Loop::new(None, "pfifo limit 40", Tuning::default());
    free.arrive(1..3).turn();
    free.arrive(3..9).later(Span::from_secs(9));
    assert_eq!((free.gone().len(), free.counters().forfeited), (8, Span::ZERO));
}

/// A thread that is stopped in the middle of a turn forfeits as much as one that sleeps on.
#[test]
fn time_lost_within_a_turn_is_forfeited() {
    let mut line = shaped(Tuning::default());
    let rest = line.arrive(1..40).turn();
    line.kernel.takes = [Span::from_millis(120)].into();
    line.later(rest.time);
    let forfeited = |line: &Loop| micros(line.counters().forfeited);
    // Reckoned by the clock that is slower by a packet each second.
    assert!((115_800..=116_000).contains(&forfeited(&line)), "{}", forfeited(&line));
    assert!(line.gone().len() <= 7, "{:?}", line.gone());
    // A flood meets an empty queue.
    let mut line = shaped(Tuning::default());
    line.kernel.takes = [Span::ZERO, Span::from_millis(120)].into();
    line.arrive(0..100).turn();
    assert!((115_800..=116_000).contains(&forfeited(&line)), "{}", forfeited(&line));
    assert!(line.gone().len() <= 6, "{:?}", line.gone());
    // While verdicts are refused, all of the time is forfeited.
    let mut line = shaped(Tuning::default());
    line.kernel.refuses = true;
    line.arrive(1..40).turn();
    line.kernel.takes = [Span::from_millis(120)].into();
    line.later(Span::from_millis(1));
    line.kernel.refuses = false;
    line.later(Span::from_millis(1));
    assert!(line.gone().len() <= 2, "{:?}", line.gone());
}

#[test]
fn verdicts_that_are_refused_come_first_and_nothing_is_released_meanwhile() {
    let mut line = shaped(Tuning::default());
    line.kernel.refuses = true;
    assert_eq!(line.arrive(1..9).turn(), Rest::sleep(VERDICTS_AGAIN, false));
    assert_eq!((line.engine.progress(), line.gone()), (None, vec![]));
    assert_eq!(line.later(Span::from_millis(3)), Rest::sleep(VERDICTS_AGAIN, false));
    line.kernel.refuses = false;
    // What was refused leaves, and the next is due as long after it.
    line.later(Span::from_millis(1));
    assert_eq!(line.gone()[0], 1);
    assert!(line.gone().len() <= 2 && line.counters().forfeited >= Span::from_millis(3));
    assert_eq!(line.engine.progress(), Some(8));
}

#[test]
fn a_drain_lets_all_go_in_order_and_then_each_at_once() {
    let mut line = shaped(Tuning::default());
    // Numbers wrap round.
    line.kernel.waiting.extend([u32::MAX - 1, u32::MAX, 0, 1].map(packet));
    line.turn();
    line.arrive(2..4);
    let (reply, answer) = std::sync::mpsc::sync_channel(1);
    assert!(!line.engine.carry_out(Command::Drain(reply), &mut line.kernel));
    assert_eq!(line.gone(), [u32::MAX - 1, u32::MAX, 0, 1, 2, 3]);
    assert_eq!(answer.try_recv(), Ok(5));
    assert_eq!(line.arrive(4..7).later(Span(9)), Rest::sleep(BEAT, true));
    assert_eq!(line.gone().len(), 9);
    assert!(line.engine.carry_out(Command::Stop, &mut line.kernel));
}

#[test]
fn what_comes_is_counted_by_kind() {
    let mut line = shaped(Tuning::default());
    line.kernel.waiting.extend([packet(7), stale(), vec![1, 2, 3], stale()]);
    line.turn();
    let counters = line.counters();
    assert_eq!((counters.received, counters.stale_verdicts, counters.unknown), (1, 2, 1));
    assert_eq!((counters.released, counters.receive_errors), (1, 0));
    line.kernel.fails = true;
    line.turn();
    assert_eq!(line.counters().receive_errors, 1);
    // Bytes as on the wire.
    let Passed { arrived, released, backlog } = line.engine.passed();
    assert_eq!((arrived, released, backlog), (1_000, 1_000, 0));
    let mut line = shaped(Tuning::default());
    line.arrive(1..4).turn();
    let Passed { arrived, released, backlog } = line.engine.passed();
    assert_eq!((arrived, released, backlog), (3_000, 1_000, 2_000));
}

/// A flood is taken in parts, so that due packets do not wait for its end.
#[test]
fn a_turn_is_bounded() {
    let mut free = Loop::new(None, "pfifo limit 10000", Tuning::default());
    let taken = (RECEIVES_PER_TURN * BATCH) as u32;
    assert_eq!(free.arrive(0..taken + 5).turn(), Rest::NONE);
    assert_eq!(free.counters().received, u64::from(taken));
    assert_eq!(free.gone().len(), RELEASES_PER_TURN.min(taken as usize));
    free.turn();
    assert_eq!(free.counters().received, u64::from(taken) + 5);
    while free.turn() == Rest::NONE {}
    assert!(free.gone().into_iter().eq(0..taken + 5));
}

/// Other settings are followed in all that depends on them, not only by the discipline.
#[test]
fn a_change_is_followed_and_told() {
    let mut line = shaped(Tuning::default());
    let slip = |line: &Loop| {
        Span::from_secs(1).saturating_sub(line.engine.time(START + Span::from_secs(1)).since(START))
    };
    let before = slip(&line);
    assert!(before > Span::from_millis(1) && !line.engine.filters_acks);
    let words = "cake besteffort flowblind ack-filter";
    let config = settings_of(Direction::Upload, Some("80mbit"), words).unwrap();
    let spare = line.engine.qdisc.prepare(&config, START).unwrap();
    let (reply, answer) = std::sync::mpsc::sync_channel(1);
    line.engine.carry_out(Command::Adopt(spare, reply), &mut line.kernel);
    assert!(answer.try_recv().is_ok() && line.engine.filters_acks);
    // A packet lasts a tenth as long.
    let after = slip(&line);
    assert!(after.0.abs_diff(before.0 / 10) < before.0 / 5, "{after:?} of {before:?}");
    let (reply, answer) = std::sync::mpsc::sync_channel(1);
    line.engine.carry_out(Command::Report(reply), &mut line.kernel);
    let status = answer.try_recv().unwrap();
    assert_eq!((status.counters.cpu, status.root.config.rate()), (Span(77), config.rate()));
}

//! A model of NFQUEUE, its netlink socket and the clock, with everything that can go wrong there.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;

use simnel_core::random::Random;
use simnel_core::{Span, Time};

use super::books::{Books, Violation};
use super::plan::{Plan, Trouble};
use crate::datapath::engine::{Kernel, Rest};
use crate::netlink::{Messages, Writer};
use crate::nfqueue::{parse, Event, BATCH};

/// Nanoseconds of a look at the clock.
const LOOK: u64 = 20;
/// Flows that send.
pub(super) const FLOWS: usize = 8;
/// Offsets of a message's packet number and length.
const ID: std::ops::Range<usize> = 24..28;
const LENGTH: std::ops::Range<usize> = 36..40;
/// Offsets in a template: the third byte of its source address, and the first of its source port.
const NETWORK: usize = 44 + 14;
const PORT: usize = 44 + 20;
/// A turn that did not sleep took this long.
const BUSY: Span = Span::from_micros(2);

/// A message that waits in the socket.
#[derive(Clone, Copy)]
enum Message {
    Packet { id: u32, flow: usize, len: u32 },
    Stale,
    Noise,
}

/// The present arrivals.
#[derive(Clone, Copy)]
struct Load {
    /// Mean time between arrivals.
    gap: Span,
    /// Bytes from the network header on, at most.
    largest: u32,
    /// Packets that come at once.
    together: u32,
}

/// The kernel.
pub(super) struct Model {
    now: Cell<u64>,
    plan: Plan,
    random: Random,
    /// One for each kind of trouble: one less leaves the others as they are.
    troubles: Vec<Random>,
    wake_ups: Random,
    pub(super) books: Books,
    /// The first thing that did not hold.
    pub(super) violation: Option<Violation>,
    next_id: u32,
    room: usize,
    socket: VecDeque<Message>,
    batch: Vec<Vec<u8>>,
    received: usize,
    templates: Vec<Vec<u8>>,
    /// Arrivals so far, if hosts and connections come and go.
    renewed: Option<u32>,
    load: Option<Load>,
    next_arrival: Time,
    /// Until then it takes no verdicts.
    refuses_until: Time,
    /// Until then nothing comes to the queue: somebody has flushed the table.
    bypass_until: Time,
}

/// A message about an IPv4 packet of flow `flow`: UDP, or TCP with an acknowledgement alone.
fn template(flow: usize) -> Vec<u8> {
    let (tcp, dscp) = (flow.is_multiple_of(3), [0, 0, 46, 8, 34, 0, 0, 0][flow % 8]);
    let mut bytes = vec![0x45, dscp << 2 | (flow as u8 & 1) << 1, 0, 0, 0, 0, 0, 0, 64];
    bytes.extend([if tcp { 6 } else { 17 }, 0, 0]);
    bytes.extend([10, 0, 0, flow as u8 / 2, 10, 1, 0, flow as u8]);
    bytes.extend([0x13, flow as u8, 0x14, 0x51]);
    if tcp {
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 5 << 4, 16, 1, 0, 0, 0, 0, 0]);
    }
    queued(0, 0, &bytes)
}

/// The kernel's message about packet `id` of `len` bytes, of which these are told.
pub(crate) fn queued(id: u32, len: u32, bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.begin(libc::NFNL_SUBSYS_QUEUE << 8 | libc::NFQNL_MSG_PACKET, 0, 0, 2, 5);
    writer.attribute(libc::NFQA_PACKET_HDR, &[&id.to_be_bytes()[..], &[8, 0, 3]].concat());
    writer.attribute(libc::NFQA_CAP_LEN, &len.to_be_bytes());
    writer.attribute(libc::NFQA_PAYLOAD, bytes);
    writer.finish();
    writer.bytes().to_vec()
}

/// The answer to a verdict that found nothing.
pub(crate) fn stale() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.begin_with(libc::NLMSG_ERROR, 0, 0, &(-libc::ENOENT).to_ne_bytes());
    writer.finish();
    writer.bytes().to_vec()
}

fn up_to(random: &mut Random, most: Span) -> Span {
    Span((u64::from(random.below(1 << 20)) * most.0) >> 20)
}

impl Model {
    pub(super) fn new(plan: Plan, books: Books) -> Model {
        let stream = |number| Random::derive(plan.seed, number);
        let mut random = stream(1);
        // Machines run for years; numbers wrap round.
        let now = u64::from(random.u32()) * 100_000_000;
        let next_id = random.u32() | if random.below(2) == 0 { 0xffff_f000 } else { 0 };
        let room = match plan.has(Trouble::ShortQueue) && random.below(2) == 0 {
            true => 1 + random.below(200) as usize,
            false => 16_384,
        };
        Model {
            now: Cell::new(now),
            plan,
            random,
            troubles: (0..Trouble::ALL.len() as u64).map(|n| stream(3 + n)).collect(),
            wake_ups: stream(2),
            books,
            violation: None,
            next_id,
            room,
            socket: VecDeque::new(),
            batch: vec![Vec::new(); BATCH],
            received: 0,
            templates: (0..FLOWS).map(template).collect(),
            renewed: None,
            load: None,
            next_arrival: Time(u64::MAX),
            refuses_until: Time::ZERO,
            bypass_until: Time::ZERO,
        }
    }

    /// From now on packets of up to `largest` bytes arrive, so many together, `gap` apart each.
    pub(super) fn begin_load(&mut self, gap: Span, largest: u32, together: u32) {
        self.load = Some(Load { gap, largest, together });
        self.next_arrival = self.clock();
    }

    /// Hosts and connections come and go from now on.
    pub(super) fn renew_flows(&mut self) {
        self.renewed = Some(0);
    }

    /// Others send, after some arrivals.
    fn renew(&mut self) {
        let Some(arrivals) = &mut self.renewed else { return };
        *arrivals = arrivals.wrapping_add(1);
        let [_, port, network, _] = (*arrivals << 2).to_be_bytes();
        for template in &mut self.templates {
            (template[NETWORK], template[PORT]) = (network, port);
        }
    }

    /// Gives memory back that busier times took; what is left, in numbers.
    pub(super) fn tidy(&mut self) -> [usize; 3] {
        self.socket.shrink_to_fit();
        self.batch.iter_mut().for_each(|place| *place = Vec::new());
        let [held, ghosts] = self.books.tidy();
        [held, ghosts, self.socket.len()]
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.load.is_some()
    }

    /// Nothing arrives any more.
    pub(super) fn end_load(&mut self) {
        self.load = None;
        self.next_arrival = Time(u64::MAX);
        let now = self.clock();
        self.books.quiet(now);
    }

    /// The time, without a look at the clock.
    pub(super) fn clock(&self) -> Time {
        Time(self.now.get())
    }

    fn advance(&self, span: Span) {
        self.now.set(self.now.get() + span.0);
    }

    /// True once in `times`, if the plan has such trouble.
    fn strikes(&mut self, trouble: Trouble, times: u32) -> bool {
        self.plan.has(trouble) && self.troubles[trouble as usize].below(times) == 0
    }

    /// Random length of such trouble, up to `most`.
    fn time_of(&mut self, trouble: Trouble, most: Span) -> Span {
        up_to(&mut self.troubles[trouble as usize], most)
    }

    /// Puts what has arrived by now into the queue.
    fn deliver(&mut self) {
        while let Some(load) = self.load.filter(|_| self.next_arrival <= self.clock()) {
            for _ in 0..load.together {
                self.arrive(load.largest);
            }
            let gap = Span(load.gap.0 * u64::from(load.together) * 2);
            let gap = up_to(&mut self.random, gap);
            self.next_arrival += gap.max(Span(1));
        }
    }

    fn arrive(&mut self, largest: u32) {
        self.renew();
        let now = self.clock();
        let flow = self.random.below(FLOWS as u32) as usize;
        let len = if flow.is_multiple_of(3) { 40 } else { 28 + self.random.below(largest - 27) };
        let id = self.next_id;
        let bypassed = now < self.bypass_until
            || self.books.held() >= self.room
            || self.strikes(Trouble::Lost, 50);
        if bypassed {
            self.books.passed += 1;
            return;
        }
        self.next_id = id.wrapping_add(1);
        self.books.hold(id, len + 14, now);
        let packet = Message::Packet { id, flow, len };
        self.socket.push_back(packet);
        if self.strikes(Trouble::Repeated, 200) {
            self.books.repeat(id, len + 14);
            self.socket.push_back(packet);
        }
        if self.strikes(Trouble::Noise, 100) {
            self.socket.push_back(Message::Noise);
        }
        if self.strikes(Trouble::Vanish, 300) {
            let lost: Vec<u32> = match self.troubles[Trouble::Vanish as usize].below(3) {
                0 => self.books.ids().collect(),
                _ => self.books.ids().step_by(3).take(5).collect(),
            };
            lost.into_iter().for_each(|id| self.books.lose(id));
        }
        if self.strikes(Trouble::Refused, 500) {
            self.refuses_until = now + self.time_of(Trouble::Refused, Span::from_millis(200));
        }
        if self.strikes(Trouble::Bypassed, 2_000) {
            self.bypass_until = now + self.time_of(Trouble::Bypassed, Span::from_secs(2));
        }
    }

    /// Sleeps as the loop wants it, more or less. True if the loop alone stood still for so long
    /// that the guard has let all pass.
    pub(super) fn sleep(&mut self, rest: Rest) -> bool {
        self.deliver();
        if rest.time == Span::ZERO || rest.arrivals && !self.socket.is_empty() {
            self.advance(BUSY);
            return false;
        }
        let mut end = self.clock() + rest.time;
        if rest.arrivals && self.next_arrival < end {
            end = self.next_arrival;
        }
        if self.strikes(Trouble::Spurious, 10) {
            end = self.clock() + self.time_of(Trouble::Spurious, end.since(self.clock()));
        }
        end += up_to(&mut self.wake_ups, Span::from_micros(80));
        let mut late = Span::ZERO;
        if self.strikes(Trouble::Late, 50) {
            let most = if self.strikes(Trouble::Late, 20) { 200 } else { 4 };
            late = self.time_of(Trouble::Late, Span::from_millis(most));
        }
        if self.is_loaded() && self.strikes(Trouble::Suspended, 5_000) {
            late = self.time_of(Trouble::Suspended, Span::from_secs(20));
        }
        let starved = self.is_loaded() && self.strikes(Trouble::Starved, 20_000);
        if starved {
            // The guard looks at each 50 ms, five times.
            let more = self.time_of(Trouble::Starved, Span::from_millis(100));
            late = Span::from_millis(250) + more;
        }
        self.books.excuse(late);
        self.now.set((end + late).0);
        starved
    }

    /// Somebody lets all pass and throws the loop away.
    pub(super) fn open(&mut self) {
        self.deliver();
        self.books.open();
        self.socket.clear();
        self.refuses_until = Time::ZERO;
    }

    /// Looks whether all holds.
    pub(super) fn check(&mut self, drained: bool) {
        let result = self.books.check(self.clock(), drained);
        self.note(result);
    }

    pub(super) fn note(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    fn judge(&mut self, verdicts: &[u8]) -> Result<(), Violation> {
        let now = self.clock();
        self.books.sent(true, now);
        for message in Messages(verdicts) {
            let (_, body) = message.attributes().next().ok_or(Violation("no verdict".into()))?;
            let number = |at: usize| body.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b));
            let (Some(verdict), Some(id)) = (number(0), number(4)) else {
                return Err(Violation("a verdict that is too short".into()));
            };
            if !self.books.judge(id, verdict == libc::NF_ACCEPT as u32, now)? {
                self.socket.push_back(Message::Stale);
            }
        }
        Ok(())
    }
}

impl Kernel for Model {
    fn now(&self) -> Time {
        self.advance(Span(LOOK));
        self.clock()
    }

    fn receive(&mut self) -> io::Result<(usize, bool)> {
        if self.is_loaded() && self.strikes(Trouble::Stopped, 500) {
            let late = self.time_of(Trouble::Stopped, Span::from_millis(200));
            self.books.excuse(late);
            self.advance(late);
        }
        self.deliver();
        if !self.socket.is_empty() && self.strikes(Trouble::ReceiveFails, 100) {
            return Err(io::Error::from_raw_os_error(match self.wake_ups.below(2) {
                0 => libc::EINTR,
                _ => libc::ENOBUFS,
            }));
        }
        self.received = self.socket.len().min(BATCH);
        for place in &mut self.batch[..self.received] {
            place.clear();
            match self.socket.pop_front() {
                Some(Message::Packet { id, flow, len }) => {
                    place.extend_from_slice(&self.templates[flow]);
                    place[ID].copy_from_slice(&id.to_be_bytes());
                    place[LENGTH].copy_from_slice(&len.to_be_bytes());
                }
                Some(Message::Stale) => place.extend(stale()),
                Some(Message::Noise) | None => {
                    let bytes = self.random.below(64);
                    place.extend((0..bytes).map(|_| self.random.u32() as u8));
                }
            }
        }
        Ok((self.received, self.received == BATCH))
    }

    fn event(&self, index: usize) -> Event<'_> {
        parse(&self.batch[index])
    }

    fn send(&mut self, verdicts: &[u8]) -> io::Result<()> {
        let left = self.refuses_until.since(self.clock());
        if left > Span::ZERO {
            // The loop asks again each millisecond.
            self.books.excuse(left.min(Span::from_millis(1)) + Span::from_micros(100));
            self.books.sent(false, self.clock());
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        let result = self.judge(verdicts);
        self.note(result);
        Ok(())
    }

    fn cpu(&self) -> Span {
        Span::ZERO
    }
}

//! Every discipline: other settings at run time, a new beginning, and counters that tell what an
//! onlooker counts.

use std::collections::BTreeMap;

use serde_json::Value;
use simnel_core::packet::Flags;
use simnel_core::qdisc::{
    self, build, show_own_json, Backlog, Config, Device, Discard, DropReason, Managed, PacketOwner,
};
use simnel_core::random::Random;
use simnel_core::{Packet, Span, Time};

use DropReason::{Congested, Flood, Overlimit};
use Seen::{Drops, Marks, Most, Queued};

/// A packet's end: sent (and marked) or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sent { handle: u64, at: Time, marked: bool },
    Dropped { handle: u64, reason: DropReason, marked: bool },
}

/// A discipline under load, and what became of each packet.
struct Run {
    qdisc: Box<dyn Managed + Send>,
    now: Time,
    ends: Ends,
    /// Most packets that were queued after an arrival.
    longest: u32,
}

/// Ends of packets in their order, what is still queued, and bytes that were sent.
#[derive(Default)]
struct Ends(Vec<End>, Backlog, u64);

impl Ends {
    fn left(&mut self, packet: &Packet, end: End) {
        self.1.packets -= 1;
        self.1.bytes -= u64::from(packet.len);
        self.2 += u64::from(packet.len) * u64::from(matches!(end, End::Sent { .. }));
        self.0.push(end);
    }
}

impl PacketOwner for Ends {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        let marked = packet.flags.has(Flags::MARKED);
        self.left(&packet, End::Dropped { handle: packet.handle, reason, marked });
    }
}

fn config(words: &str) -> Config {
    qdisc::parse(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

impl Run {
    fn new(words: &str, now: Time) -> Run {
        let device = Device { now, seed: 77, ..Device::default() };
        let qdisc = build(&config(words), &device).unwrap_or_else(|e| panic!("{words}: {e}"));
        Run { qdisc, now, ends: Ends::default(), longest: 0 }
    }

    fn change(&mut self, words: &str) {
        let changed = self.qdisc.configure(&config(words), self.now, &mut self.ends);
        assert_eq!(changed, Ok(()), "{words}");
    }

    /// Eight flows, a third of them ECN-capable, offer half more than a line of a packet a
    /// millisecond for so long; then all may leave.
    fn load(&mut self, millis: u64, seed: u64) {
        self.load_with(3, millis, seed);
    }

    /// The same with up to `most` packets a millisecond.
    fn load_with(&mut self, most: u32, millis: u64, seed: u64) {
        let mut random = Random::new(seed);
        let start = self.now;
        for ms in 0..millis {
            for _ in 0..random.below(most + 1) {
                let flow = random.below(8);
                let mut packet = Packet::new(self.now.0, 64 + random.below(1451));
                (packet.flow, packet.src_host) = (u64::from(flow) << 29 | 5, flow + 1);
                packet.tos = if flow.is_multiple_of(3) { 2 } else { 0 };
                (packet.flags, packet.class) = (Flags::IPV4, 1 + flow % 2);
                self.put(&packet);
                self.now += Span(u64::from(random.below(200_000)));
            }
            self.now = self.now.max(start + Span::from_millis(ms + 1));
            self.take();
        }
        while let Some(due) = self.qdisc.next_event() {
            self.now = self.now.max(due);
            self.take();
        }
    }

    fn put(&mut self, packet: &Packet) {
        self.ends.1.packets += 1;
        self.ends.1.bytes += u64::from(packet.len);
        self.qdisc.enqueue(packet, self.now, &mut self.ends);
        let backlog = self.qdisc.backlog();
        assert_eq!(backlog, self.ends.1, "{}", self.qdisc.config());
        self.longest = self.longest.max(backlog.packets);
    }

    fn take(&mut self) {
        let now = self.now;
        if let Some(&mut packet) = self.qdisc.dequeue(now, &mut self.ends) {
            let (handle, marked) = (packet.handle, packet.flags.has(Flags::MARKED));
            self.ends.left(&packet, End::Sent { handle, at: now, marked });
        }
        assert_eq!(self.qdisc.backlog(), self.ends.1, "{}", self.qdisc.config());
    }

    fn seen(&self, what: Seen) -> u64 {
        let counts = |end: &End| match (what, end) {
            (Drops(of), End::Dropped { reason, .. }) => of == *reason,
            (Marks, End::Sent { marked, .. } | End::Dropped { marked, .. }) => *marked,
            (Queued, End::Sent { .. }) => true,
            _ => false,
        };
        match what {
            Most => u64::from(self.longest) - 1,
            _ => self.ends.0.iter().filter(|end| counts(end)).count() as u64,
        }
    }

    /// Its own statistics by name.
    fn own(&self) -> BTreeMap<String, Value> {
        let mut json = String::new();
        show_own_json(&self.qdisc.snapshot(), &mut json).unwrap();
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }
}

/// Settings of each discipline that differ in all that can change.
const CHANGES: &[[&str; 2]] = &[
    ["pfifo", "pfifo limit 9"],
    ["bfifo", "bfifo limit 9000"],
    ["codel", "codel limit 50 target 1ms interval 10ms ecn ce_threshold 2ms"],
    ["pie", "pie limit 50 target 1ms tupdate 3ms alpha 4 beta 9 ecn bytemode"],
    ["pie ecn", "pie freebsd onoff nodrand nocapdrop"],
    ["red limit 60kb avpkt 1000", "red limit 30kb min 3kb max 9kb avpkt 500 probability 0.3 ecn"],
    ["red ns", "red ns limit 30 min 2 max 9 probability 0.3 ecn"],
    ["blue", "blue limit 20 threshold 5 increment 0.1 decrement 0.01 freeze 10ms ecn"],
    ["cobalt", "cobalt limit 50 target 1ms interval 10ms"],
    ["dualpi2", "dualpi2 limit 50 target 1ms alpha 1 beta 9 any_ect step_thresh 3p"],
    ["sfb", "sfb limit 50 target 9 max 15 increment 0.1 decrement 0.01 penalty_rate 9"],
    ["sfq", "sfq limit 50 depth 9 quantum 3000 headdrop"],
    [
        "fq_codel",
        "fq_codel limit 50 target 1ms interval 10ms noecn quantum 300 memory_limit 90kb \
         ce_threshold 3ms drop_batch 2",
    ],
    [
        "fq_pie",
        "fq_pie limit 50 target 1ms tupdate 3ms alpha 4 beta 9 ecn ecn_prob 3 quantum 300 \
         memory_limit 90kb",
    ],
    ["cake", "cake bandwidth 4mbit diffserv4 rtt 9ms memlimit 50kb overhead 20 nat wash"],
    ["drr", "drr class 1:1 quantum 300 class 1:2 quantum 900 codel"],
    ["tbf rate 4mbit burst 15k limit 30k", "tbf rate 2mbit burst 3k limit 9k"],
    ["htb rate 4mbit burst 15k codel", "htb rate 2mbit burst 3k fq_codel limit 9"],
    ["delay 5ms", "delay 9ms limit 7"],
    ["line rate 4mbit", "line rate 2mbit delay 3ms fifo 9p overhead 20"],
];

/// More of them.
const OTHERS: &[&str] = &[
    "drr srchost queues 64 quantum 700 buffer 60",
    "drr dsthost max-age 24ms savings 15kb",
    "drr class 1:1 fq_codel class 1:2",
    "fq_codel savings 15kb",
    "htb default 2 class 1:1 rate 2mbit class 1:2 rate 1mbit ceil 4mbit sfq",
    "tbf rate 4mbit burst 15k peakrate 6mbit mtu 3000 limit 30k",
    "cake bandwidth 4mbit besteffort savings 15kb",
    "cake bandwidth 4mbit host-guard",
    "cake besteffort flowblind",
];

/// Beginning of all times.
const START: Time = Time(50_000_000_000);

#[test]
fn settings_that_came_later_decide_as_if_they_had_come_first() {
    for pair in CHANGES {
        for [before, after] in [*pair, [pair[1], pair[0]]] {
            let (mut changed, mut fresh) = (Run::new(before, START), Run::new(after, START));
            changed.change(after);
            for run in [&mut changed, &mut fresh] {
                // Buckets fill up.
                run.now += Span::from_secs(1);
                run.load(3_000, 9);
            }
            let differs = changed.ends.0.iter().zip(&fresh.ends.0).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{before} to {after}");
            assert!(fresh.ends.0.len() > 3_000 && changed.ends.0.len() == fresh.ends.0.len());
            assert_eq!(changed.own(), fresh.own(), "{before} to {after}");
            assert_eq!(changed.qdisc.snapshot(), fresh.qdisc.snapshot(), "{before} to {after}");
        }
    }
}

#[test]
fn a_reset_forgets_what_was_learnt() {
    for words in [
        "codel limit 200 target 1ms interval 10ms ecn",
        "fq_codel limit 200 target 1ms interval 10ms",
        "cobalt target 1ms interval 10ms",
        "tbf rate 4mbit burst 15k codel",
        "drr class 1:1 fq_codel class 1:2 codel",
    ] {
        let mut reset = Run::new(words, START);
        reset.load(3_000, 9);
        let now = reset.now + Span::from_secs(1);
        let mut fresh = Run::new(words, now);
        // What is queued goes as well.
        reset.put(&Packet::new(1, 1000));
        reset.qdisc.reset(&mut reset.ends);
        assert_eq!(reset.qdisc.backlog().packets, 0, "{words}");
        reset.ends.0.clear();
        reset.now = now;
        reset.load(2_000, 4);
        fresh.load(2_000, 4);
        assert!(reset.ends.0 == fresh.ends.0, "{words}");
    }
    for (words, keys) in [
        ("pie", ["prob", "delay"]),
        ("blue limit 50", ["prob", "prob"]),
        ("dualpi2", ["prob", "prob"]),
        ("sfb", ["maxprob", "avgprob"]),
    ] {
        let mut run = Run::new(words, START);
        run.load(3_000, 9);
        assert!(run.own()[keys[0]].as_f64() > Some(0.0), "{words}");
        run.qdisc.reset(&mut run.ends);
        assert!(keys.iter().all(|key| run.own()[*key].as_f64() == Some(0.0)), "{words}");
    }
}

#[test]
fn a_reset_gives_up_all_that_is_queued_and_lets_others_pass() {
    for words in CHANGES.iter().flatten().chain(OTHERS) {
        let mut run = Run::new(words, START);
        let mut packet = Packet::new(0, 1000);
        packet.flags = Flags::IPV4;
        for n in 0..8 {
            (packet.handle, packet.flow, packet.class) = (n, n << 29, 1 + n as u32 % 2);
            run.put(&packet);
        }
        run.take();
        let waiting = u64::from(run.qdisc.backlog().packets);
        let before = run.qdisc.snapshot().totals;
        run.qdisc.reset(&mut run.ends);
        assert_eq!(run.qdisc.backlog(), Backlog::default(), "{words}");
        assert_eq!(run.qdisc.next_event(), None, "{words}");
        let mut after = run.qdisc.snapshot().totals;
        assert_eq!(run.seen(Drops(DropReason::Reset)), waiting, "{words}");
        assert_eq!(core::mem::take(&mut after.dropped[DropReason::Reset as usize]), waiting);
        assert_eq!(after, before, "{words}");
        run.now += Span::from_secs(1);
        run.put(&packet);
        while let Some(due) = run.qdisc.next_event() {
            run.now = run.now.max(due);
            run.take();
        }
        assert!(matches!(run.ends.0.last(), Some(End::Sent { handle: 7, .. })), "{words}");
    }
}

#[test]
fn marks_and_waiting_below_are_known_above() {
    for above in ["", "tbf rate 4mbit burst 15k", "htb rate 4mbit burst 15k", "drr class 1:1"] {
        let words = format!("{above} fq_codel target 1ms interval 10ms");
        let mut run = Run::new(words.trim(), START);
        run.load(2_000, 3);
        let totals = run.qdisc.snapshot().totals;
        let marks = run.seen(Marks);
        assert!(marks > 0, "{words}");
        assert_eq!((run.qdisc.marked(), totals.marked), (marks, marks), "{words}");
        // A shaper that had to wait says so.
        assert_eq!(totals.overlimits > 0, above.contains("rate"), "{words}");
    }
}

/// Something that an onlooker counts.
#[derive(Clone, Copy)]
enum Seen {
    Drops(DropReason),
    /// Packets that bear a mark at their end.
    Marks,
    /// Packets that were queued.
    Queued,
    /// Most packets that were queued before one more came.
    Most,
}

/// Counters whose sum is the sum of what is seen.
type Sums = &'static [(&'static [&'static str], &'static [Seen])];

const COUNTERS: &[(&str, Sums)] = &[
    (
        "codel limit 30 target 1ms interval 10ms ecn",
        &[(&["drop_overlimit"], &[Drops(Overlimit)]), (&["ecn_mark"], &[Marks])],
    ),
    ("codel limit 60 ce_threshold 2ms", &[(&["ce_mark"], &[Marks])]),
    (
        "pie limit 20 target 1ms tupdate 3ms alpha 4 beta 9",
        &[
            (&["overlimit"], &[Drops(Overlimit)]),
            (&["dropped"], &[Drops(Overlimit), Drops(Congested)]),
            (&["pkts_in"], &[Queued]),
            (&["maxq"], &[Most]),
        ],
    ),
    ("pie ecn", &[(&["ecn_mark"], &[Marks])]),
    (
        "red limit 30kb min 5kb max 25kb avpkt 500 probability 0.05",
        &[(&["early"], &[Drops(Congested)]), (&["pdrop"], &[Drops(Overlimit)])],
    ),
    ("red limit 90kb min 5kb max 25kb avpkt 500 ecn", &[(&["marked"], &[Marks])]),
    (
        "blue limit 60 increment 0.001 ecn",
        &[
            (&["dropped"], &[Drops(Congested)]),
            (&["overlimit"], &[Drops(Overlimit)]),
            (&["ecn_mark"], &[Marks]),
        ],
    ),
    (
        "cobalt limit 60",
        &[
            (&["dropped"], &[Drops(Congested)]),
            (&["flooded"], &[Drops(Flood)]),
            (&["overlimit"], &[Drops(Overlimit)]),
            (&["ecn_mark"], &[Marks]),
        ],
    ),
    (
        "dualpi2 limit 60 any_ect step_thresh 3p overflow",
        &[(&["drops_c", "drops_l"], &[Drops(Congested)]), (&["overlimit"], &[Drops(Overlimit)])],
    ),
    (
        "sfb limit 50 target 9 max 15 increment 0.1 decrement 0.01 penalty_rate 9",
        &[
            (&["earlydrop", "bucketdrop"], &[Drops(Congested)]),
            (&["penaltydrop"], &[Drops(Flood)]),
            (&["queuedrop"], &[Drops(Overlimit)]),
            (&["marked"], &[Marks]),
        ],
    ),
    ("fq_codel limit 60 target 1s", &[(&["drop_overlimit"], &[Drops(Overlimit)])]),
    ("fq_codel target 1ms interval 10ms", &[(&["ecn_mark"], &[Marks])]),
    ("fq_codel ce_threshold 2ms noecn", &[(&["ce_mark"], &[Marks])]),
    (
        "fq_pie limit 20 target 1ms tupdate 3ms",
        &[
            (&["overlimit"], &[Drops(Overlimit)]),
            (&["dropped"], &[Drops(Overlimit), Drops(Congested)]),
            (&["pkts_in"], &[Queued]),
        ],
    ),
    ("fq_pie ecn ecn_prob 90", &[(&["ecn_mark"], &[Marks])]),
];

#[test]
fn counters_tell_what_an_onlooker_counts() {
    for (words, sums) in COUNTERS {
        let mut run = Run::new(words, START);
        // All of the line, and then more.
        run.load_with(2, 4_000, 8);
        run.load(4_000, 9);
        let own = run.own();
        for (keys, seen) in *sums {
            let counted: u64 = keys.iter().map(|key| own[*key].as_u64().expect(key)).sum();
            let expected: u64 = seen.iter().map(|seen| run.seen(*seen)).sum();
            assert!(expected > 0, "{words}: {keys:?} {own:?}");
            assert_eq!(counted, expected, "{words}: {keys:?}");
        }
    }
    for words in CHANGES.iter().flatten().chain(OTHERS) {
        let mut run = Run::new(words, START);
        run.load(1_000, 3);
        let totals = run.qdisc.snapshot().totals;
        assert_eq!(run.qdisc.marked(), totals.marked, "{words}");
        assert_eq!(totals.enqueued_packets as usize, run.ends.0.len(), "{words}");
        let sent = (totals.sent_packets, totals.sent_bytes);
        assert_eq!(sent, (run.seen(Queued), run.ends.2), "{words}");
        for reason in DropReason::ALL {
            assert_eq!(totals.dropped[reason as usize], run.seen(Drops(reason)), "{words}");
        }
        // Only cake has tins and queues that are told of each packet.
        assert_eq!(run.qdisc.placement().is_some(), words.starts_with("cake"), "{words}");
    }
}

fn fresh(words: &str) -> Box<dyn Managed + Send> {
    build(&qdisc::parse(words).unwrap(), &Device::default()).unwrap()
}

#[test]
fn by_themselves_owners_and_disciplines_know_nothing() {
    let packet = Packet::new(1, 1000);
    assert_eq!(Discard.keyed_hash(&packet, [1, 2]), None);
    assert_eq!(Discard.ack_view(&packet), None);
    for words in ["pfifo", "blue", "tbf rate 1mbit burst 15k limit 30k", "delay 5ms"] {
        assert_eq!(fresh(words).queue_of(&packet), None, "{words}");
    }
    for (words, rests) in
        [("blue", false), ("codel", false), ("tbf rate 1mbit burst 15k pie", false), ("pie", true)]
    {
        assert_eq!(fresh(words).is_at_rest(), rests, "{words}");
    }
    // Who decides at arrival only can show the next packet.
    for (words, is_seen) in [("blue", true), ("sfb", true), ("codel", false), ("pie", false)] {
        let mut qdisc = fresh(words);
        qdisc.enqueue(&packet, Time(1), &mut Discard);
        assert_eq!(qdisc.peek().is_some(), is_seen, "{words}");
    }
}

#[test]
fn reasons_have_names_of_their_own() {
    let names = DropReason::ALL.map(DropReason::name);
    assert_eq!(names[0], "overlimit");
    for (n, name) in names.iter().enumerate() {
        assert!(name.len() > 4 && !names[..n].contains(name), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
    }
}

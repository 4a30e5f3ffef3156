//! The harness against a trivial discipline and miniature recordings written by hand.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::Path;

use flate2::write::GzEncoder;
use simnel_core::qdisc::{
    Backlog, Config, ConfigError, Detail, Device, DropReason, PacketOwner, Qdisc, Snapshot, Totals,
};
use simnel_core::{Packet, Span, Time};

use super::*;

/// A FIFO of `limit` packets that lets one packet out every `gap`, and marks packet `mark`.
struct Gap {
    queue: VecDeque<Packet>,
    sent: Packet,
    limit: usize,
    gap: Span,
    next: Time,
    mark: u64,
    /// A fault: the watchdog stays due.
    stuck: bool,
}

impl Qdisc for Gap {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        if let Some(view) = owner.ack_view(packet) {
            if !view.has_payload && view.sack_count == 1 {
                return owner.dropped(*packet, DropReason::AckFilter);
            }
        }
        if self.queue.is_empty() && self.next < now {
            self.next = now;
        }
        self.queue.push_back(*packet);
        if self.queue.len() > self.limit {
            let oldest = self.queue.pop_front().unwrap();
            owner.dropped(oldest, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if now < self.next || self.stuck {
            return None;
        }
        let mut packet = self.queue.pop_front()?;
        if packet.len == 666 {
            owner.dropped(packet, DropReason::Congested);
            packet = self.queue.pop_front()?;
        }
        self.next = now + self.gap;
        if packet.handle == self.mark {
            packet.mark_ce();
        }
        self.sent = packet;
        Some(&mut self.sent)
    }

    fn next_event(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(if self.stuck { Time::ZERO } else { self.next })
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.queue.len() as u32, bytes: 0 }
    }

    fn reset(&mut self, _: &mut dyn PacketOwner) {}
}

/// Settings and statistics of a discipline that has none.
macro_rules! unmanaged {
    ($discipline:ident) => {
        impl Managed for $discipline {
            fn snapshot(&self) -> Snapshot {
                let (totals, backlog) = (Totals::default(), self.backlog());
                Snapshot { totals, backlog, detail: Detail::Fifo(()) }
            }

            fn config(&self) -> Config {
                qdisc::parse("pfifo").unwrap()
            }

            fn prepare(&self, _: &Config, _: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
                Err(ConfigError::OtherDiscipline)
            }

            fn adopt(&mut self, _: &mut dyn Managed, _: Time, _: &mut dyn PacketOwner) {}
        }
    };
}

unmanaged!(Gap);
unmanaged!(ShapedFifo);

/// `gap NS mark ID`, `stuck`.
fn gap(words: &[String], _: &Device) -> Result<Box<dyn Managed + Send>, String> {
    let number = |n: usize| words.get(n).and_then(|word| word.parse().ok());
    if words.first().map(String::as_str) != Some("gap") {
        return Err(format!("`{}` is not known here", words.join(" ")));
    }
    Ok(Box::new(Gap {
        sent: Packet::new(0, 0),
        queue: VecDeque::new(),
        limit: 2,
        gap: Span(number(1).unwrap_or(0)),
        next: Time::ZERO,
        mark: number(3).unwrap_or(u64::MAX),
        stuck: words[1] == "stuck",
    }))
}

const FLOWS: &str = "\
# flow 10.0.0.1,10.0.0.2,1,2,17 hash=7 srchash=8 dsthash=9
# flow fd00::1,fd00::2,3,4,6 hash=17 srchash=18 dsthash=19 bucket=5
";

fn write(directory: &Path, args: &str, tc: &str, csv: &str, out: &str) -> std::path::PathBuf {
    let path = directory.join("group").join("tiny");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let zip = |suffix: &str, text: &str| {
        let file = std::fs::File::create(format!("{}{suffix}", path.display())).unwrap();
        let mut gz = GzEncoder::new(file, flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
    };
    zip(".csv.gz", csv);
    zip(".out.gz", &format!("{FLOWS}{out}"));
    let packets = csv.lines().filter(|line| line.contains("enq+")).count();
    std::fs::write(
        path.with_extension("json"),
        format!(
            r#"{{"name": "tiny", "group": "group", "tc": "{tc}", "packets": {packets},
            "args": ["seed=5", "t0=1000"{args}]}}"#
        ),
    )
    .unwrap();
    path
}

/// Replays the miniature; the events as text, and the outcome.
fn play(args: &str, tc: &str, csv: &str, out: &str, ledger: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), args, tc, csv, out);
    let ledger = Ledger::parse(ledger).unwrap();
    let mut outcomes = run_directory(directory.path(), "*", &gap, &ledger).unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

const CSV: &str = "\
1000,enq+,0,100,10.0.0.1,10.0.0.2,1,2,17,0,2
1010,enq+,1,100,10.0.0.1,10.0.0.2,1,2,17,0,2
1020,enq+,2,100,10.0.0.1,10.0.0.2,1,2,17,0,2
1030,enq+,3,100,10.0.0.1,10.0.0.2,1,2,17,0,2
2000,run
";

#[test]
fn an_infinitely_fast_device_follows_the_watchdog() {
    // A packet every 100 ns, two in the queue: the oldest goes when the third comes.
    let out = "\
1000 deq 0 tin=0 flow=5 adj=100
1030 enq-ret 3 2
1030 drop-enq 1
1100 deq 2 tin=0 flow=5 adj=100
1200 deq 3 tin=0 flow=5 adj=100 CE
1200 state qlen=0
# gap total=4
";
    let outcome = play("", "gap 100 mark 3", CSV, out, "");
    assert!(outcome.equal(), "{outcome}");
    assert_eq!(outcome.equal_events, 4);
    let counts = Counts { sent: 3, marked: 1, dropped: 0, dropped_at_enqueue: 1, ack_filtered: 0 };
    assert_eq!(outcome.expected, counts);
}

#[test]
fn a_link_sends_one_packet_at_a_time_and_rounds_down() {
    // 100 bytes take 250 ns.
    let out = "1000 deq 0\n1030 drop-enq 1\n1250 deq 2\n1500 deq 3\n";
    assert!(play(r#", "link=3200000000""#, "gap 0", CSV, out, "").equal());
    // 114.28 ns.
    let out = "1000 deq 0\n1030 drop-enq 1\n1114 deq 2\n1228 deq 3\n";
    assert!(play(r#", "link=7000000000""#, "gap 0", CSV, out, "").equal());
    // An arrival at the very time at which the link is free finds it already taking a packet.
    let csv = "\
1000,enq+,0,100,10.0.0.1,10.0.0.2,1,2,17,0,0
1100,enq+,1,100,10.0.0.1,10.0.0.2,1,2,17,0,0
1250,enq+,2,100,10.0.0.1,10.0.0.2,1,2,17,0,0
1500,run
";
    let out = "1000 deq 0\n1250 deq 1\n1500 deq 2\n";
    assert!(play(r#", "link=3200000000""#, "gap 0", csv, out, "").equal());
}

#[test]
fn drops_are_told_apart_by_when_and_why() {
    let csv = "\
1000,enq+,0,100,10.0.0.1,10.0.0.2,1,2,17,0,0
1001,enq+,1,666,10.0.0.1,10.0.0.2,1,2,17,0,0
1002,enq+,2,106,fd00::1,fd00::2,3,4,6,0,0,0x10,1,2,3,4
1003,enq+,3,98,fd00::1,fd00::2,3,4,6,0,0,0x10,1,2,,,5-6
1004,enq+,4,99,fd00::1,fd00::2,3,4,6,0,0,0x10,1,2,,,5-6
1200,run
";
    // Headers of packet 3 take 14 + 40 + 20 + 12 = 86 bytes, so twelve of its 98 are payload.
    let out = "1000 deq 0\n1003 drop-enq 1\n1004 drop-enq 2\n1100 deq 3\n1200 deq 4\n";
    assert!(play("", "gap 100", csv, out, "").equal());
    let csv = csv.replace(",3,98,", ",3,86,");
    let out = "1000 deq 0\n1003 ackfilt 3\n1004 drop-enq 1\n1100 deq 2\n1200 deq 4\n";
    assert!(play("", "gap 100", &csv, out, "").equal());
    let csv = csv.lines().take(3).chain(["1200,run"]).collect::<Vec<_>>().join("\n");
    let out = "1000 deq 0\n1100 drop 1\n1100 deq 2\n";
    assert!(play("", "gap 100", &csv, out, "").equal());
}

#[test]
fn each_kind_of_difference_is_found_and_shown() {
    let good = "1000 deq 0 adj=100\n1030 drop-enq 1\n1100 deq 2\n1200 deq 3 CE\n";
    assert!(play("", "gap 100 mark 3", CSV, good, "").equal());
    for (from, to, kind, equal) in [
        ("1100 deq", "1101 deq", Kind::Time, 2),
        (" CE", "", Kind::Mark, 3),
        ("adj=100", "adj=101", Kind::Size, 0),
        ("1100 deq 2", "1100 deq 3", Kind::Order, 2),
        ("drop-enq 1", "deq 1", Kind::Drop, 1),
        ("1030 drop-enq 1", "1030 ackfilt 1", Kind::AckFilter, 1),
        ("1200 deq 3 CE\n", "", Kind::End, 3),
    ] {
        let outcome = play("", "gap 100 mark 3", CSV, &good.replace(from, to), "");
        let difference = outcome.first_difference.clone().expect(to);
        assert_eq!((difference.kind, outcome.equal_events), (kind, equal), "{outcome}");
        assert!(!outcome.accepted());
        assert!(difference.text.contains("recorded ") && difference.text.contains("ours "));
    }
}

#[test]
fn the_ledger_covers_what_it_names_and_nothing_else() {
    let bad = "1000 deq 0\n1030 drop-enq 1\n1101 deq 2\n1200 deq 3\n";
    let entry = |recording: &str, what: &str, equal: u32| {
        format!(
            "[[deviation]]\nrecording = \"{recording}\"\nwhat = \"{what}\"\n\
             equal-events = {equal}\nreason = \"because\"\n"
        )
    };
    for (ledger, accepted, exist) in [
        (entry("group/tiny", "time", 2), true, true),
        (entry("gr*/*", "time", 0), true, true),
        (entry("group/tiny", "mark", 0), false, true),
        (entry("group/tiny", "time", 3), false, true),
        (entry("group/huge", "time", 0), false, false),
    ] {
        let outcome = play("", "gap 100", CSV, bad, &ledger);
        assert_eq!(outcome.accepted(), accepted, "{ledger}");
        let stale = Ledger::parse(&ledger).unwrap().stale(&[outcome]);
        assert_eq!(stale.is_empty(), accepted);
        assert!(stale.iter().all(|stale| stale.recordings_exist == exist));
    }
    assert!(Ledger::parse("[[deviation]]\nrecording = \"a\"\nwhat = \"time\"\nreason = \" \"\n")
        .is_err());
    assert!(Ledger::parse("[[deviation]]\nrecording = \"a\"\nwhat = \"time\"\n").is_err());
}

#[test]
fn what_cannot_be_replayed_is_a_difference_that_nobody_can_choose() {
    for tc in ["gap stuck", "cake bandwidth 1mbit"] {
        let outcome = play("", tc, CSV, "", "");
        assert_eq!(outcome.first_difference.unwrap().kind, Kind::Failed);
    }
}

#[test]
fn errors_name_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let error = |csv: &str, out: &str| {
        let path = write(directory.path(), "", "gap 1", csv, out);
        Recording::read(&path).unwrap_err().to_string()
    };
    let broken = CSV.replace("1020,enq+,2,100", "1005,enq+,2,100");
    assert!(error(&broken, "").contains("tiny.csv.gz:3: time goes back"));
    assert!(error(&CSV.replace("10.0.0.2,1,2", "10.0.0.2,1,3"), "").contains("no flow line for"));
    assert!(error(&CSV.replace("enq+,2", "enq+,5"), "").contains("tiny.csv.gz:3: packet 5"));
    assert!(error(CSV, "1000 vanished 1\n").contains("tiny.out.gz:3: unknown event `vanished`"));
    assert!(error(CSV, "1000 deq 9\n").contains("no packet arrived as `1000 deq 9`"));
    let missing = Recording::read(&directory.path().join("group/none")).unwrap_err();
    assert!(missing.to_string().contains("none.json"));
}

#[test]
fn descriptors_carry_the_recorded_hashes() {
    let directory = tempfile::tempdir().unwrap();
    let csv = "\
1000,enq+,0,1514,10.0.0.1,10.0.0.2,1,2,17,46,1,,,,,,,1:1a
1000,enq+,1,86,fd00::1,fd00::2,3,4,6,0,0,0x10
";
    let recording = Recording::read(&write(directory.path(), "", "gap 1", csv, "")).unwrap();
    let (udp, tcp) = (descriptor(&recording, 0), descriptor(&recording, 1));
    assert_eq!((udp.flow as u32, udp.src_host, udp.dst_host), (7, 8, 9));
    assert_eq!((tcp.flow as u32, tcp.src_host, tcp.dst_host), (17, 18, 19));
    assert_ne!(udp.flow >> 32, tcp.flow >> 32);
    assert_eq!((udp.dscp(), udp.tos & 3, udp.class, udp.truesize), (46, 1, 0x8001_001a, 2304));
    use simnel_core::packet::Flags;
    assert_eq!((udp.flags, tcp.flags), (Flags::IPV4, Flags::IPV6 | Flags::TCP));
    assert_eq!(recording.flows[1].values[0]["bucket"], "5");
}

/// A FIFO behind CAKE's global shaper: all that is left of CAKE with one tier, one queue and an RTT
/// of 1000 s. Proof that the harness reproduces real recordings, whatever the disciplines do.
struct ShapedFifo {
    queue: VecDeque<Packet>,
    sent: Packet,
    time: simnel_core::rate::ByteTime,
    framing: simnel_core::framing::Framing,
    next: Time,
}

impl Qdisc for ShapedFifo {
    fn enqueue(&mut self, packet: &Packet, now: Time, _: &mut dyn PacketOwner) {
        let mut packet = *packet;
        packet.adj_len = self.framing.charge(&packet);
        if self.queue.is_empty() {
            self.next = self.next.max(now);
        }
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if now < self.next {
            return None;
        }
        self.sent = self.queue.pop_front()?;
        self.next += self.time.of(self.sent.adj_len);
        Some(&mut self.sent)
    }

    fn next_event(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.next)
    }

    fn backlog(&self) -> Backlog {
        Backlog::default()
    }

    fn reset(&mut self, _: &mut dyn PacketOwner) {}
}

#[test]
fn real_recordings_are_reproduced_to_the_nanosecond() {
    use simnel_core::framing::{Cells, Framing};
    use simnel_core::rate::{ByteTime, Rate};
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/golden");
    let overhead = |overhead, mpu, cells| Framing { compensate: true, overhead, mpu, cells };
    for (name, mbit, framing) in [
        ("raw-20mbit", 20.0, Framing::default()),
        ("docsis-64kbit", 0.064, overhead(18, 64, Cells::None)),
        ("conservative-1mbit", 1.0, overhead(48, 0, Cells::Atm)),
        ("pppoe-ptm-20mbit", 20.0, overhead(30, 0, Cells::Ptm)),
        ("overhead_44_mpu_84_noatm-1gbit", 1000.0, overhead(44, 84, Cells::None)),
    ] {
        let factory = |_: &[String], device: &Device| -> Result<Box<dyn Managed + Send>, String> {
            let rate = Rate::from_bits((mbit * 1e6) as u64);
            Ok(Box::new(ShapedFifo {
                sent: Packet::new(0, 0),
                queue: VecDeque::new(),
                time: ByteTime::new(rate, device.arithmetic),
                framing,
                next: Time::ZERO,
            }))
        };
        let path = directory.join("cake-overhead").join(name);
        let outcome = run(&path, &factory, &Ledger::default()).unwrap();
        assert!(outcome.equal() && outcome.equal_events > 1000, "{outcome}");
    }
}

/// Plays an arrival at a discipline of ours, and commands.
fn command(tc: &str, commands: &str, out: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let csv = CSV.replace("2000,run", &format!("{commands}2000,run"));
    let out = format!("1000 deq 0\n{out}1250 deq 1\n");
    write(directory.path(), r#", "link=3200000000""#, tc, &csv, &out);
    let factory = |words: &[String], device: &Device| build(words, device);
    let mut outcomes = run_directory(directory.path(), "*", &factory, &Ledger::default()).unwrap();
    outcomes.remove(0)
}

#[test]
fn settings_change_as_bytes_or_as_words() {
    // TCA_PIE_LIMIT is attribute 2: of the three that wait the oldest two go.
    for (tc, change) in [("pie", "0800020001000000"), ("pfifo", ",pfifo limit 1")] {
        let outcome = command(tc, &format!("1030,change,{change}\n"), "");
        assert_eq!(outcome.equal_events, 1, "{outcome}");
        let text = outcome.first_difference.unwrap().text;
        assert!(text.contains("ours     1030 drop 1\n    ours     1030 drop 2"), "{text}");
    }
    // The number of queues is fixed while it runs.
    let flows = "1030,change,0800050008000000\n";
    let refused = command("fq_codel", flows, "").first_difference.unwrap();
    assert!(refused.kind == Kind::Failed && refused.text.contains("refused"), "{}", refused.text);
}

#[test]
fn a_reset_empties_in_any_order() {
    let csv = "1030,reset\n";
    let outcome = command("pfifo", csv, "1030 drop 3\n1030 drop 1\n1030 drop 2\n");
    assert_eq!(outcome.equal_events, 4, "{outcome}");
}

#[test]
fn statistics_that_differ_are_named() {
    let words = |words: &[u32]| -> String {
        words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
    };
    let pie = [0, 0, 0, 0, 0, 4, 0, 0, 2, 0];
    let looked = |drops: u32, app: &[u32]| {
        let directory = tempfile::tempdir().unwrap();
        let csv = CSV.replace("2000,run", "1030,stats\n2000,run");
        let out = format!(
            "1000 deq 0\n1030 stats 0 packets=1 bytes=100 drops={drops} qlen=3 app={}\n\
             1250 deq 1\n1500 deq 2\n1750 deq 3\n",
            words(app)
        );
        write(directory.path(), r#", "link=3200000000""#, "pie", &csv, &out);
        let factory = |words: &[String], device: &Device| build(words, device);
        let outcomes = run_directory(directory.path(), "*", &factory, &Ledger::default());
        outcomes.unwrap().remove(0).first_difference
    };
    assert_eq!(looked(0, &pie), None);
    let mut other = pie;
    other[8] = 7;
    let difference = looked(1, &other).unwrap();
    assert_eq!(difference.kind, Kind::Statistics);
    assert!(difference.text.contains("maxq 7, ours 2;"), "{}", difference.text);
    assert!(difference.text.contains("drops 1, ours 0;"), "{}", difference.text);
}

#![allow(dead_code)]
//! A small language for exchanges of segments, in the spirit of packetdrill.
//!
//! One endpoint is under test; the script is its peer. Each line has a time in milliseconds and
//! what happens then; `#` starts a comment. Data is counted in full segments: segment 0 is the
//! first after the handshake, `3..5` means 3 and 4.
//!
//! ```text
//! 50 write 10                  the application writes ten segments (`write 100b`: bytes)
//! 50 > data 0..10 [cwr] [fin]  the endpoint has sent these, at this time, and nothing else before
//! 100 < ack 2 [sack 3..5 7..8] [ece] [ecr 50] [win 1000]
//! 100 < data 0..2 [ce] [cwr]   the peer sends
//! 100 > ack 2 [sack 3..4] [ece]
//! 100 > nothing                nothing was sent up to now
//! 100 < rest                   time passes; what is sent meanwhile may be anything
//! 100 = cwnd 12                any name of `value` below
//! ```
//!
//! Times of `>` may be off by `slack`. Whatever is sent and not expected fails the script.

use std::collections::VecDeque;

use simnel_core::packet::Ecn;
use simnel_core::time::{Span, Time};
use simnel_tcp::{Config, EcnMode, Endpoint, Segment, TcpFlags};

/// Round-trip time of the handshake; scripts begin then.
pub const RTT_MS: u64 = 50;

pub struct Script {
    pub endpoint: Endpoint,
    mss: u64,
    now: Time,
    sent: VecDeque<(Time, Segment)>,
    ect: bool,
    timestamps: bool,
    last_window: u32,
    /// The peer's next sequence number.
    next: u64,
    /// By how much times of `>` may be off.
    pub slack: Span,
}

/// Exact timers, no timestamps unless asked for: a script says all that matters.
pub fn plain() -> Config {
    Config { tick: Span::ZERO, timestamps: false, ..Config::default() }
}

impl Script {
    /// A connection that the endpoint has opened.
    pub fn new(config: &Config) -> Script {
        let mut script = Script {
            endpoint: Endpoint::new(config),
            mss: if config.timestamps { 1448 } else { 1460 },
            now: Time::ZERO,
            sent: VecDeque::new(),
            ect: matches!(config.ecn, EcnMode::On | EcnMode::Accurate),
            timestamps: config.timestamps,
            last_window: 0,
            next: 1,
            slack: Span::from_millis(1),
        };
        script.endpoint.connect(Time::ZERO);
        script.drain();
        let syn = script.sent.pop_front().expect("a SYN").1;
        assert!(syn.flags.has(TcpFlags::SYN) && !syn.flags.has(TcpFlags::ACK));
        script.now = Time(RTT_MS * 1_000_000);
        let mut answer = Segment::new(TcpFlags::SYN | TcpFlags::ACK, 0, 1);
        answer.mss = 1460;
        answer.window = 1 << 20;
        answer.sack_permitted = true;
        answer.window_scale = 8;
        answer.timestamps = script.timestamps;
        answer.ts_val = 1;
        answer.ts_echo = syn.ts_val;
        if script.ect {
            answer.flags.set(TcpFlags::ECE);
        }
        script.endpoint.on_segment(&answer, script.now);
        script.drain();
        let ack = script.sent.pop_front().expect("the last of the handshake").1;
        assert_eq!((ack.ack, ack.len), (1, 0));
        script
    }

    /// Plays `text`; panics with the line that failed.
    pub fn play(&mut self, text: &str) -> &mut Script {
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                self.line(line);
            }
        }
        self
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let time: f64 = words.next().and_then(|w| w.parse().ok()).expect("a time");
        self.advance(Time((time * 1e6) as u64));
        // The test may have called the endpoint itself.
        self.drain();
        let verb = words.next().expect("a verb");
        let words: Vec<&str> = words.collect();
        match verb {
            ">" => self.expect(line, &words),
            "=" => {
                let expected: u64 = words[1].parse().expect("a number");
                assert_eq!(self.value(words[0]), expected, "{line}; {:?}", self.endpoint.stats());
            }
            _ => {
                if words != ["rest"] {
                    self.nothing_left(line);
                }
                self.act(line, verb, &words);
                self.drain();
            }
        }
    }

    fn act(&mut self, line: &str, verb: &str, words: &[&str]) {
        match (verb, words) {
            ("write", [amount]) => match amount.strip_suffix('b') {
                Some(bytes) => self.endpoint.write(bytes.parse().expect("bytes")),
                None => self.endpoint.write(amount.parse::<u64>().expect("a count") * self.mss),
            },
            ("<", ["rest"]) => {}
            ("close", []) => self.endpoint.close(),
            ("<", ["ack", number, options @ ..]) => {
                let ack = self.segment(TcpFlags::ACK, self.next, self.seq(number), options);
                self.endpoint.on_segment(&ack, self.now);
            }
            ("<", ["data", range, options @ ..]) => {
                let (from, to) = self.range(range);
                let mut seq = from;
                while seq < to {
                    let mut data = self.segment(TcpFlags::ACK, seq, 1, options);
                    data.len = (to - seq).min(self.mss) as u32;
                    if self.ect && data.ecn == Ecn::NotEct {
                        data.ecn = Ecn::Ect0;
                    }
                    seq += u64::from(data.len);
                    self.next = self.next.max(seq);
                    self.endpoint.on_segment(&data, self.now);
                    self.drain();
                }
            }
            ("<", ["fin", number]) => {
                let fin = self.segment(TcpFlags::ACK | TcpFlags::FIN, self.seq(number), 1, &[]);
                self.endpoint.on_segment(&fin, self.now);
            }
            ("<", ["rst"]) => {
                let rst = self.segment(TcpFlags::RST, 1, 0, &[]);
                self.endpoint.on_segment(&rst, self.now);
            }
            _ => panic!("what is this? {line}"),
        }
    }

    fn segment(&self, flags: TcpFlags, seq: u64, ack: u64, options: &[&str]) -> Segment {
        let mut segment = Segment::new(flags, seq.max(1), ack);
        segment.window = 1 << 20;
        segment.timestamps = self.timestamps;
        segment.ts_val = (self.now.0 / 1_000_000) as u32;
        let mut options = options.iter().peekable();
        while let Some(option) = options.next() {
            match *option {
                "sack" => {
                    while options.peek().is_some_and(|next| next.contains("..")) {
                        let (left, right) = self.range(options.next().expect("a range"));
                        let slot = usize::from(segment.sack_count);
                        segment.sack[slot] = (left as u32, right as u32);
                        segment.sack_count += 1;
                    }
                }
                "ece" => segment.flags.set(TcpFlags::ECE),
                "cwr" => segment.flags.set(TcpFlags::CWR),
                "psh" => segment.flags.set(TcpFlags::PSH),
                "ce" => segment.ecn = Ecn::Ce,
                "win" => segment.window = options.next().and_then(|w| w.parse().ok()).expect("win"),
                "ecr" => {
                    let ms: u32 = options.next().and_then(|w| w.parse().ok()).expect("a time");
                    // The endpoint's timestamps count from one.
                    segment.ts_echo = ms + 1;
                }
                other => panic!("what is this option? {other}"),
            }
        }
        segment
    }

    fn expect(&mut self, line: &str, words: &[&str]) {
        if words == ["nothing"] {
            return self.nothing_left(line);
        }
        let (kind, what, options) = (words[0], words[1], &words[2..]);
        if kind == "ack" {
            let (time, got) = self.take(line);
            let wanted = self.segment(TcpFlags::ACK, 0, self.seq(what), options);
            assert!(got.len == 0, "{line}: data came: {got:?}");
            assert_eq!(got.ack, wanted.ack, "{line}: at {time:?} {got:?}");
            assert!(
                got.sack_blocks().eq(wanted.sack_blocks()),
                "{line}: {:?}",
                got.sack_blocks().collect::<Vec<_>>()
            );
            let echo = (got.flags.has(TcpFlags::ECE), wanted.flags.has(TcpFlags::ECE));
            assert_eq!(echo.0, echo.1, "{line}: echo");
            return;
        }
        assert_eq!(kind, "data", "{line}");
        let (from, to) = self.range(what);
        let mut seq = from;
        while seq < to {
            let (_, got) = self.take(line);
            let len = (to - seq).min(self.mss);
            assert_eq!((got.seq, u64::from(got.len)), (seq, len), "{line}: {}", self.name(&got));
            let first = seq == from;
            let cwr = options.contains(&"cwr") && first;
            assert_eq!(got.flags.has(TcpFlags::CWR), cwr, "{line}: CWR");
            seq += len;
            let fin = options.contains(&"fin") && seq == to;
            assert_eq!(got.flags.has(TcpFlags::FIN), fin, "{line}: FIN");
        }
    }

    fn name(&self, segment: &Segment) -> String {
        let first = (segment.seq - 1) as f64 / self.mss as f64;
        format!("segment {first}, {} bytes, ack {}", segment.len, segment.ack)
    }

    /// The next segment sent, which must have left now.
    fn take(&mut self, line: &str) -> (Time, Segment) {
        let Some((time, segment)) = self.sent.pop_front() else {
            panic!("{line}: nothing was sent; {:?}", self.endpoint.stats());
        };
        let off = self.now.since(time).max(time.since(self.now));
        assert!(off <= self.slack, "{line}: sent at {time:?}: {}", self.name(&segment));
        (time, segment)
    }

    fn nothing_left(&self, line: &str) {
        if let Some((time, segment)) = self.sent.front() {
            panic!("before {line}: at {time:?} came {} {segment:?}", self.name(segment));
        }
    }

    fn value(&self, name: &str) -> u64 {
        let stats = self.endpoint.stats();
        match name {
            "cwnd" => u64::from(stats.cwnd),
            "ssthresh" => u64::from(stats.ssthresh),
            "in_flight" => u64::from(stats.in_flight),
            "timeouts" => stats.timeouts,
            "resent" => stats.retransmits,
            "probes" => stats.probes,
            "undos" => stats.undos,
            "reductions" => stats.reductions,
            "received" => stats.bytes_received / self.mss,
            "rto" => stats.rto.as_micros() / 1_000,
            other => panic!("what is {other}?"),
        }
    }

    /// Drops what was sent and not looked at.
    pub fn forget(&mut self) {
        self.sent.clear();
    }

    /// The window of the last segment sent.
    pub fn last_window(&self) -> u32 {
        self.last_window
    }

    /// `3`: segment 3; `100b`: byte 100; `100b_fin`: after a FIN there.
    fn seq(&self, number: &str) -> u64 {
        if let Some(before) = number.strip_suffix("_fin") {
            return self.seq(before) + 1;
        }
        match number.strip_suffix('b') {
            Some(bytes) => 1 + bytes.parse::<u64>().expect("bytes"),
            None => 1 + number.parse::<u64>().expect("a segment") * self.mss,
        }
    }

    fn range(&self, range: &str) -> (u64, u64) {
        let (from, to) = range.split_once("..").expect("a range");
        (self.seq(from), self.seq(to))
    }

    fn advance(&mut self, to: Time) {
        assert!(to >= self.now, "time runs forward");
        // What leaves within the slack after `to` belongs to it as well.
        while let Some(timer) = self.endpoint.next_timer().filter(|timer| *timer <= to) {
            self.now = self.now.max(timer);
            self.endpoint.on_timer(self.now);
            self.drain();
        }
        self.now = to;
    }

    fn drain(&mut self) {
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            self.last_window = segment.window;
            self.sent.push_back((self.now, segment));
        }
    }
}

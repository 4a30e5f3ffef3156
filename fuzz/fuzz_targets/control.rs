//! Requests to the daemon: JSON lines, and sequences of them.
//!
//! Each line is a request. `change` is done to a discipline as the gateway does it. The short way
//! of `simnel change` (a rate and some words) goes through `words::changed`. Between two lines
//! packets come and go. A change loses none and makes none, and what runs is what was asked for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_core::qdisc::{build, ConfigError, Device, DropReason, Managed, PacketOwner};
use simnel_core::{qdisc, Packet, Span, Time};
use simnel_fuzz::seeds;
use simnel_gateway::control::Request;
use simnel_gateway::words::{changed, settings_of};
use simnel_gateway::Direction;

fuzz_target!(init: seeds::write(seeds::requests()), |bytes: &[u8]| {
    let mut daemon = Daemon::new();
    for line in bytes.split(|byte| *byte == b'\n').take(32) {
        match serde_json::from_slice::<Request>(line) {
            Ok(request) => {
                let said = serde_json::to_vec(&request).expect("a request is JSON");
                assert_eq!(serde_json::from_slice::<Request>(&said).expect("our own"), request);
                daemon.answer(request);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                if let Ok(words) = std::str::from_utf8(line) {
                    daemon.change_in_short(words);
                }
            }
        }
        daemon.serve_packets(line.len() as u64);
    }
    daemon.end();
});

/// Packets that came back.
#[derive(Default)]
struct Dropped {
    changing: bool,
    packets: u64,
}

impl PacketOwner for Dropped {
    fn dropped(&mut self, _: Packet, reason: DropReason) {
        // A smaller limit, or a class that is gone.
        let allowed = [DropReason::Overlimit, DropReason::Unclassified, DropReason::Reset];
        assert!(!self.changing || allowed.contains(&reason), "a change drops for {reason:?}");
        self.packets += 1;
    }
}

/// One direction of an interface.
struct Daemon {
    qdisc: Box<dyn Managed + Send>,
    now: Time,
    came: u64,
    left: u64,
    dropped: Dropped,
}

impl Daemon {
    fn new() -> Daemon {
        let config = qdisc::parse("cake bandwidth 10mbit").expect("words");
        Daemon {
            qdisc: build(&config, &Device::default()).expect("a discipline"),
            now: Time(100_000_000_000),
            came: 0,
            left: 0,
            dropped: Dropped::default(),
        }
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Show {} => drop(self.qdisc.snapshot()),
            Request::Change { words, .. } | Request::Trial { words, .. } => {
                if let Ok(config) = qdisc::parse(&words) {
                    self.change(&config);
                }
            }
            Request::Down {} => self.let_go(),
            // Looks, and what stands above the discipline.
            _ => {}
        }
    }

    /// A rate and words: as `simnel change` makes settings of what runs, and `simnel up` of
    /// nothing.
    fn change_in_short(&mut self, words: &str) {
        let (rate, words) = words.split_once(' ').unwrap_or((words, ""));
        let present = self.qdisc.config().to_string();
        for rate in [Some(rate), None] {
            if let Ok(config) = changed(Direction::Upload, &present, rate, words) {
                self.change(&config);
            }
        }
        let _ =
            settings_of(Direction::Download, Some(rate), words).map(|config| self.change(&config));
    }

    fn change(&mut self, config: &qdisc::Config) {
        let before = self.qdisc.config();
        self.dropped.changing = true;
        match self.qdisc.configure(config, self.now, &mut self.dropped) {
            Err(ConfigError::OtherDiscipline) => {
                let device = Device { now: self.now, ..Device::default() };
                if let Ok(fresh) = build(config, &device) {
                    self.let_go();
                    self.qdisc = fresh;
                }
            }
            Err(_) => assert_eq!(self.qdisc.config(), before, "an error changed something"),
            Ok(()) => assert_eq!(self.qdisc.config(), *config, "not what was asked for"),
        }
        self.dropped.changing = false;
        self.check();
    }

    /// Gives back all that waits, as when another discipline takes its place.
    fn let_go(&mut self) {
        self.qdisc.reset(&mut self.dropped);
        assert_eq!(self.qdisc.backlog().packets, 0);
    }

    /// Forty packets come, and a time passes in which some leave.
    fn serve_packets(&mut self, seed: u64) {
        for n in 0..40 {
            let mut packet = Packet::new(self.came, 60 + (n * 97 + seed as u32 * 31) % 1_455);
            packet.flow = u64::from(n % 7) * 8;
            packet.tos = (seed as u8).wrapping_mul(n as u8) & 0xfc;
            self.qdisc.enqueue(&packet, self.now, &mut self.dropped);
            self.came += 1;
        }
        for _ in 0..50 {
            let Some(next) = self.qdisc.next_event() else { break };
            self.now = self.now.max(next).min(self.now + Span::from_millis(2));
            self.left += u64::from(self.qdisc.dequeue(self.now, &mut self.dropped).is_some());
        }
        self.check();
    }

    fn check(&self) {
        let waiting = u64::from(self.qdisc.backlog().packets);
        assert_eq!(self.came, self.left + self.dropped.packets + waiting, "a packet was lost");
    }

    fn end(mut self) {
        self.let_go();
        self.check();
    }
}

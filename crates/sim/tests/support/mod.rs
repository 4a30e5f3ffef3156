//! A home and the Internet, 50 ms apart there and back, for the tests beside this.

// Each of the test binaries that include this uses a part of it.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};

use simnel_core::qdisc;
use simnel_core::{Rate, Span, Time};
use simnel_sim::capture::Capture;
use simnel_sim::setup::{Access, Host, LineSetup, Recording};
use simnel_sim::{Direction, Kind, Outcome, Results, Run, Setup, Traffic};

/// Ten seconds, of which the first is not measured, over wires of `rate` bits a second.
pub fn setup(qdisc: &str, rate: u64, traffic: Vec<Traffic>) -> Setup {
    let config = qdisc::parse(qdisc).expect("words");
    let line = LineSetup::wire(config, Some(Rate::from_bits(rate)));
    let half = Access { delay: Span::from_millis(25), rate: None };
    Setup {
        duration: Span::from_secs(10),
        warmup: Span::from_secs(1),
        lines: [line.clone(), line],
        hosts: vec![
            Host {
                address: [10, 0, 1, 1],
                home: true,
                egress: Access::default(),
                ingress: Access::default(),
            },
            Host { address: [10, 0, 2, 1], home: false, egress: half, ingress: half },
        ],
        traffic,
        recording: Recording::default(),
    }
}

/// The same, measured from the beginning.
pub fn whole(qdisc: &str, rate: u64, traffic: Vec<Traffic>) -> Setup {
    Setup { warmup: Span::ZERO, ..setup(qdisc, rate, traffic) }
}

pub fn traffic(kind: Kind, direction: Direction) -> Traffic {
    Traffic::one("it", kind, direction)
}

pub fn ping() -> Traffic {
    let kind = Kind::Ping { size: 64, interval: Span::from_millis(100), icmp: false };
    traffic(kind, Direction::Up)
}

pub fn kind_rr() -> Kind {
    Kind::RequestResponse { size: 1 }
}

pub fn cbr(size: u32, micros: u64) -> Traffic {
    traffic(Kind::Datagrams { size, interval: Span::from_micros(micros), ports: 1 }, Direction::Up)
}

pub fn bulk(size: Option<u64>) -> Traffic {
    traffic(Kind::Bulk { size }, Direction::Up)
}

pub fn run(setup: &Setup, seed: u64) -> Results {
    let results = Run::new(setup, seed).expect("a good set-up").finish();
    assert!(results.conservation.holds(), "{:?}", results.conservation);
    results
}

/// The outcome of the first flow.
pub fn outcome(setup: &Setup) -> Outcome {
    run(setup, 1).flows.swap_remove(0).outcome
}

/// The frames that left each line, with their times.
#[derive(Clone, Default)]
pub struct Frames(Arc<Mutex<Vec<Frame>>>);

pub type Frame = (Direction, Time, Vec<u8>);

impl Capture for Frames {
    fn frame(&mut self, direction: Direction, now: Time, frame: &[u8]) {
        self.0.lock().unwrap().push((direction, now, frame.to_vec()));
    }
}

impl Frames {
    pub fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// All frames of a run.
pub fn frames(setup: &Setup) -> Vec<Frame> {
    let mut run = Run::new(setup, 1).expect("a good set-up");
    let frames = Frames::default();
    run.capture(Box::new(frames.clone()));
    drop(run.finish());
    frames.take()
}

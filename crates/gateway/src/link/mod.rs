//! An emulated line between two network interfaces: what `simnel link A B rate 20mbit delay 45ms`
//! runs.
//!
//! Ethernet frames that arrive at one interface leave by the other after a line's queue,
//! serialisation and delay. Each direction has a line of its own. The whole is a bridge with an
//! Internet line inside, for trying a gateway out where no slow line is at hand. Veth and most LANs
//! have no rate that matters. Super-packets pass as they are (`frames`), charged to the line
//! segment by segment, unless the other device does not cut them.
//!
//! One thread and one pool of buffers for each direction (`link/direction.rs`); nothing is shared
//! between them but two sockets. Memory is bounded by the lines' limits. Every frame received is
//! delivered, dropped by its line, refused by the other device, truncated, or still inside, and all
//! of that is counted. What the kernel could not hand over is counted too ([`DirectionStats`]).
//!
//! The interfaces should carry no addresses of their own (the kernel would answer, too) and be in
//! no bridge. Needs CAP_NET_RAW; with CAP_SYS_NICE the threads run under SCHED_FIFO, which shortens
//! wake-ups.
//!
//! On one interface, a line is a discipline of the gateway's own data path instead.
//!
//! # The command line that this module expects
//!
//! ```text
//! simnel link A B WORDS [reverse WORDS]
//! WORDS := the words of the discipline `line`
//! ```
//! Words before `reverse` describe both directions; those after it override them from B to A:
//! `simnel link eth1 eth2 rate 3mbit delay 15ms fifo 1000p reverse rate 20mbit`.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use simnel_core::qdisc::{self, Config, Device, Managed};

use crate::frames::{Pool, CHUNKS_PER_FRAME, CHUNK_BYTES};
use crate::{privileges, sys};

mod direction;
mod error;
mod moment;
mod port;

pub use direction::DirectionStats;
pub use error::LinkError;

use direction::{Counters, Direction};
use port::Port;

/// Ends and directions of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Name of one interface.
    pub a: String,
    /// Name of the other.
    pub b: String,
    /// Discipline from `a` to `b`: a `line`, `delay` or FIFO.
    pub a_to_b: Config,
    /// Discipline from `b` to `a`.
    pub b_to_a: Config,
}

/// An emulated line between two interfaces.
#[derive(Debug)]
pub struct Link {
    settings: LinkSettings,
    ports: [Port; 2],
    counters: [Counters; 2],
}

impl Link {
    /// Opens both interfaces. Frames are held (in the kernel, within its socket buffers) until
    /// `run`.
    pub fn new(settings: LinkSettings) -> Result<Link, LinkError> {
        if settings.a == settings.b {
            return Err(LinkError::SameInterface { interface: settings.a });
        }
        for config in [&settings.a_to_b, &settings.b_to_a] {
            build(config, &Device::default())?;
        }
        let ports = [Port::open(&settings.a)?, Port::open(&settings.b)?];
        Ok(Link { settings, ports, counters: Default::default() })
    }

    /// Forwards in both directions until `stop` is set (noticed within 100 ms) or an interface goes
    /// away for good. What is under way then is dropped, and counted.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), LinkError> {
        // The sockets are open. Without it everything works, too.
        let _ = privileges::keep_for_link();
        let [mut forth, mut back] = [self.direction(0)?, self.direction(1)?];
        let ended = AtomicBool::new(false);
        let run = |direction: &mut Direction| {
            let stopped = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
            let result = direction.run(stopped);
            // One direction alone is no line: take the other along.
            ended.store(true, Ordering::Relaxed);
            result
        };
        thread::scope(|scope| {
            let threads = [scope.spawn(|| run(&mut forth)), scope.spawn(|| run(&mut back))];
            for result in threads.map(|thread| thread.join()) {
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(())
        })
    }

    /// Direction 0 is from a to b, 1 from b to a.
    fn direction(&self, number: usize) -> Result<Direction<'_>, LinkError> {
        let [from, to] = [&self.ports[number], &self.ports[1 - number]];
        let config = [&self.settings.a_to_b, &self.settings.b_to_a][number];
        let device = Device {
            mtu: to.mtu,
            tx_queue_len: to.tx_queue_len,
            seed: number as u64,
            now: sys::now(),
            ..Device::default()
        };
        let pool = Pool::new(chunks_for(config, &device))?;
        Ok(Direction::new(from, to, build(config, &device)?, pool, &self.counters[number]))
    }

    /// Counters from a to b and from b to a. May be called from any thread at any time.
    pub fn stats(&self) -> [DirectionStats; 2] {
        let [a, b] = &self.ports;
        [self.counters[0].read(a), self.counters[1].read(b)]
    }
}

/// A flag that SIGINT and SIGTERM set, for [`Link::run`]. Call it before any thread is started: it
/// blocks both for all threads to come.
pub fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    stop_on(&[libc::SIGINT, libc::SIGTERM])
}

/// The same for what draws on a terminal, and ends with it: SIGHUP as well.
pub fn stop_on_hangup() -> io::Result<Arc<AtomicBool>> {
    stop_on(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
}

fn stop_on(signals: &[libc::c_int]) -> io::Result<Arc<AtomicBool>> {
    let signals = sys::signal_descriptor(signals)?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    thread::Builder::new().name("signals".into()).spawn(move || {
        // It only waits.
        let _ = privileges::keep_for_link();
        sys::wait(&[signals.as_fd()], None);
        flag.store(true, Ordering::Relaxed);
    })?;
    Ok(stop)
}

fn build(config: &Config, device: &Device) -> Result<Box<dyn Managed + Send>, LinkError> {
    match config {
        Config::Line(_) | Config::Delay(_) | Config::Fifo(_) => Ok(qdisc::build(config, device)?),
        _ => Err(LinkError::Unsupported),
    }
}

/// Buffer chunks that the discipline's limits can ever fill, up to the most that a pool has.
fn chunks_for(config: &Config, device: &Device) -> usize {
    let queue = |params: &qdisc::fifo::Params| {
        let packets = params.max_packets(device) as usize;
        let worst = packets * CHUNKS_PER_FRAME;
        match params.kind {
            qdisc::fifo::Kind::Bfifo => {
                // Each packet's last chunk may be almost empty.
                worst.min(packets + params.effective_limit(device) as usize / CHUNK_BYTES)
            }
            _ => worst,
        }
    };
    let way = |params: &qdisc::delay::Params| params.limit as usize * CHUNKS_PER_FRAME;
    match config {
        Config::Fifo(params) => queue(params),
        Config::Delay(params) => way(params),
        Config::Line(params) => queue(&params.fifo) + way(&params.delay),
        _ => 0,
    }
}

//! A discipline that is written in Python, driven as ours are: some microseconds a call.
//!
//! Python sees packets as objects ([`Packet`]) and keeps them in an order of its own. Descriptors
//! stay here, by number. What Python says of a packet, to drop or to mark it, is noted while it
//! runs and done when its call has returned. So no call of Python holds anything of the core.
//!
//! An exception ends the run: it is kept ([`Fault`]), packets that arrive after it are dropped, and
//! whoever drives the run looks for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use simnel_core::qdisc::{
    self, Backlog, Config, ConfigError, Detail, DropReason, Managed, PacketOwner, Qdisc, Snapshot,
    Totals,
};
use simnel_core::{Packet as Descriptor, Span, Time};

use crate::error::Error;

/// Time after which a discipline is asked again that gives nothing although something is queued,
/// and does not say when it will.
const PATIENCE: Span = Span::from_millis(1);

/// The first exception of a discipline.
pub type Fault = Arc<Mutex<Option<PyErr>>>;

/// Python's orders for packets during one call.
#[derive(Default)]
struct Orders {
    drops: Vec<u64>,
    marks: Vec<u64>,
}

/// One packet, as Python sees it: what it asks of a descriptor, which itself needs more alignment
/// than Python's memory has.
#[pyclass(frozen, module = "simnel._simnel")]
pub struct Packet {
    number: u64,
    #[pyo3(get)]
    size: u32,
    #[pyo3(get)]
    flow: u64,
    #[pyo3(get)]
    source: u32,
    #[pyo3(get)]
    destination: u32,
    #[pyo3(get)]
    dscp: u8,
    #[pyo3(get)]
    enqueued: f64,
    #[pyo3(get)]
    is_markable: bool,
    orders: Arc<Mutex<Orders>>,
}

const _: () = assert!(align_of::<Packet>() <= align_of::<u64>());

impl Packet {
    fn new(number: u64, of: &Descriptor, orders: &Arc<Mutex<Orders>>) -> Packet {
        Packet {
            number,
            size: of.len,
            flow: of.flow,
            source: of.src_host,
            destination: of.dst_host,
            dscp: of.dscp(),
            enqueued: seconds(of.enqueued),
            is_markable: of.is_markable(),
            orders: Arc::clone(orders),
        }
    }
}

#[pymethods]
impl Packet {
    /// True if its transport understands marks.
    fn mark(&self) -> bool {
        if self.is_markable {
            lock(&self.orders).marks.push(self.number);
        }
        self.is_markable
    }

    fn drop(&self) {
        lock(&self.orders).drops.push(self.number);
    }

    fn __repr__(&self) -> String {
        format!("<simnel.Packet {}: {} bytes of flow {:x}>", self.number, self.size, self.flow)
    }
}

/// The discipline.
pub struct Own {
    object: Py<PyAny>,
    /// True if it says when it is to be asked again.
    has_times: bool,
    queued: BTreeMap<u64, Descriptor>,
    arrivals: u64,
    bytes: u64,
    totals: Totals,
    orders: Arc<Mutex<Orders>>,
    fault: Fault,
    next: Option<Time>,
    /// The last time at which it gave nothing and named no later one.
    futile: Option<Time>,
    out: Descriptor,
    /// The settings that it shows: none are its own.
    config: Config,
}

impl Own {
    /// The discipline that `make` makes.
    pub fn new(make: &Bound<'_, PyAny>, fault: Fault) -> PyResult<Own> {
        let fix = "expected a class with enqueue(packet, now) and dequeue(now)";
        if !make.is_callable() {
            let class = make.get_type().name()?;
            return Err(Error::new_err(format!(
                "an object of `{class}` makes no discipline; {fix}"
            )));
        }
        let object = make.call0()?;
        for method in ["enqueue", "dequeue"] {
            if !object.hasattr(method)? {
                let class = object.get_type().name()?;
                return Err(Error::new_err(format!("`{class}` has no {method}; {fix}")));
            }
        }
        let config = qdisc::parse("pfifo").map_err(|error| Error::new_err(error.to_string()))?;
        Ok(Own {
            has_times: object.hasattr("next_event")?,
            object: object.unbind(),
            queued: BTreeMap::new(),
            arrivals: 0,
            bytes: 0,
            totals: Totals::default(),
            orders: Arc::default(),
            fault,
            next: None,
            futile: None,
            out: Descriptor::new(0, 0),
            config,
        })
    }

    fn is_broken(&self) -> bool {
        lock(&self.fault).is_some()
    }

    fn broke(&mut self, error: PyErr) {
        lock(&self.fault).get_or_insert(error);
        self.next = None;
    }

    /// Gives packet `number` up.
    fn give_up(&mut self, number: u64, reason: DropReason, owner: &mut dyn PacketOwner) {
        let Some(packet) = self.queued.remove(&number) else {
            let what = "a packet was dropped that is not queued; expected one that is";
            return self.broke(Error::new_err(what));
        };
        self.bytes -= u64::from(packet.len);
        self.totals.dropped[reason as usize] += 1;
        owner.dropped(packet, reason);
    }

    /// Does what was said during a call.
    fn obey(&mut self, owner: &mut dyn PacketOwner) {
        let Orders { drops, marks } = std::mem::take(&mut *lock(&self.orders));
        for number in marks {
            if self.queued.get_mut(&number).is_some_and(Descriptor::mark_ce) {
                self.totals.marked += 1;
            }
        }
        for number in drops {
            self.give_up(number, DropReason::Congested, owner);
        }
    }

    /// Plans when it is next asked, after a call at `now` that gave something or not.
    fn plan(&mut self, now: Time, gave: bool) {
        self.next = match (self.queued.is_empty(), self.has_times) {
            (true, _) => None,
            (false, false) => Some(if gave { now } else { now + PATIENCE }),
            (false, true) => match Python::attach(|py| {
                let at = self.object.call_method1(py, "next_event", (seconds(now),))?;
                at.extract::<Option<f64>>(py)
            }) {
                Ok(at) => at.map(|at| {
                    let at = Time((at.max(0.0) * 1e9).round() as u64);
                    if gave || at > now {
                        at
                    } else {
                        self.ask_again(now)
                    }
                }),
                Err(error) => return self.broke(error),
            },
        };
    }
}

impl Own {
    /// Time at which it is asked again after it gave nothing although its time had come. That is a
    /// nanosecond later, since seconds are rounded to that. From the second such time on, it is
    /// `PATIENCE` later.
    fn ask_again(&mut self, now: Time) -> Time {
        const ROUNDING: Span = Span(1);
        let is_second = self.futile.is_some_and(|last| now.since(last) <= ROUNDING);
        self.futile = Some(now);
        now + if is_second { PATIENCE } else { ROUNDING }
    }
}

impl Qdisc for Own {
    fn enqueue(&mut self, packet: &Descriptor, now: Time, owner: &mut dyn PacketOwner) {
        let (number, mut descriptor) = (self.arrivals, *packet);
        descriptor.enqueued = now;
        self.arrivals += 1;
        self.totals.enqueued_packets += 1;
        self.bytes += u64::from(packet.len);
        self.queued.insert(number, descriptor);
        if self.is_broken() {
            return self.give_up(number, DropReason::Overlimit, owner);
        }
        let taken = Python::attach(|py| {
            let packet = Packet::new(number, &descriptor, &self.orders);
            let said = self.object.call_method1(py, "enqueue", (packet, seconds(now)))?;
            said.extract::<Option<bool>>(py)
        });
        self.obey(owner);
        match taken {
            Ok(Some(false)) => self.give_up(number, DropReason::Overlimit, owner),
            Ok(_) => {}
            Err(error) => return self.broke(error),
        }
        self.plan(now, true);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Descriptor> {
        if self.queued.is_empty() || self.is_broken() {
            return None;
        }
        let given = Python::attach(|py| {
            let given = self.object.call_method1(py, "dequeue", (seconds(now),))?;
            let packet = given.extract::<Option<PyRef<'_, Packet>>>(py)?;
            let Some(packet) = packet else { return Ok(None) };
            // Numbers are of one discipline; there may be two objects with one queue.
            if !Arc::ptr_eq(&packet.orders, &self.orders) {
                let what = "dequeue gave a packet that came to another object";
                let fix = "expected one of its own: a queue that __init__ makes for each";
                return Err(Error::new_err(format!("{what}; {fix}")));
            }
            Ok(Some(packet.number))
        });
        self.obey(owner);
        let number = match given {
            Ok(number) => number,
            Err(error) => {
                self.broke(error);
                return None;
            }
        };
        if let Some(number) = number {
            let Some(packet) = self.queued.remove(&number) else {
                let what = "dequeue gave a packet that is not queued; expected one that is";
                self.broke(Error::new_err(what));
                return None;
            };
            self.out = packet;
            self.bytes -= u64::from(packet.len);
            self.totals.sent_packets += 1;
            self.totals.sent_bytes += u64::from(packet.len);
        }
        self.plan(now, number.is_some());
        number.map(|_| &mut self.out)
    }

    fn next_event(&self) -> Option<Time> {
        self.next
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.queued.len() as u32, bytes: self.bytes }
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        for (_, packet) in std::mem::take(&mut self.queued) {
            self.totals.dropped[DropReason::Reset as usize] += 1;
            owner.dropped(packet, DropReason::Reset);
        }
        (self.bytes, self.next) = (0, None);
    }
}

/// It has no settings that words could change.
impl Managed for Own {
    fn snapshot(&self) -> Snapshot {
        Snapshot { totals: self.totals, backlog: self.backlog(), detail: Detail::Fifo(()) }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn prepare(&self, _: &Config, _: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Err(ConfigError::OtherDiscipline)
    }

    fn adopt(&mut self, _: &mut dyn Managed, _: Time, _: &mut dyn PacketOwner) {}
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

/// The value behind `mutex`, which no panic leaves half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

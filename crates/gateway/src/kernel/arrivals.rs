//! Arrivals at disciplines of the kernel, for a recording.
//!
//! ```text
//! device of the discipline    filter in front of it: each packet goes on, a copy leaves by
//! tap                         a device that is there as long as whoever records, and sends nowhere
//! packet socket of the tap    headers, lengths, segments, times
//! ```
//!
//! A packet socket of the interface itself would see what leaves behind the discipline. What
//! arrives comes to its discipline as it leaves by an `ifb` device (`redirect.rs`), so both
//! directions are the same here. Whoever records needs CAP_NET_ADMIN and CAP_NET_RAW; no daemon
//! takes part. If the process is killed, its tap goes, and copies with it. The filter, which has
//! nobody to send to then, is removed by the next recording or `down`.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use simnel_core::flow::FlowHasher;
use simnel_core::wire::Classifier;
use simnel_core::{Span, Time};

use super::qdiscs::Qdiscs;
use super::redirect;
use super::shaped::{shaped, Shaped};
use crate::classify;
use crate::direction::Direction;
use crate::error::Error;
use crate::frames::{Calendar, Heard, Listener};
use crate::links;
use crate::nfqueue::Queued;
use crate::record::{self, Recorded, Recorder};
use crate::segments::describe_segments;
use crate::sys::{self, Query};

/// Time between two looks at what others have done.
const LOOK: Span = Span::from_secs(1);
/// Looks without a discipline after which there will be none: a daemon makes anew what was taken.
const PATIENCE: u32 = 3;

/// Copies of what arrives at the disciplines of one interface, for the calling process.
pub struct Arrivals {
    interface: String,
    kernel: Qdiscs,
    classifier: Classifier,
    ways: Vec<Way>,
    calendar: Calendar,
    looked: Time,
    /// Looks at which a discipline was missing, one after the other.
    absent: u32,
    missed: Span,
}

impl Arrivals {
    /// Begins with those of `directions`.
    ///
    /// # Errors
    /// The kernel does not shape one of them, or somebody records it; the kernel lacks a part; the
    /// process may not.
    pub fn open(interface: &str, directions: &[Direction]) -> Result<Arrivals, Error> {
        let kernel = Qdiscs::open()?;
        let key = classify::random_key().map_err(|e| Error::system("drawing a key", e))?;
        let mut arrivals = Arrivals {
            interface: interface.to_owned(),
            kernel,
            classifier: Classifier::new(FlowHasher::of_flows(key)),
            ways: Vec::new(),
            calendar: Calendar::new(),
            looked: sys::now(),
            absent: 0,
            missed: Span::ZERO,
        };
        let present = shaped(Some(interface))?;
        for direction in directions {
            let interface = interface.to_owned();
            let shaped = Shaped::find(&present, *direction)
                .ok_or(Error::NoDirection { interface, direction: *direction })?;
            let way = Way::open(&arrivals.kernel, shaped)?;
            arrivals.ways.push(way);
        }
        Ok(arrivals)
    }

    /// Packets that came to the discipline of `direction` since the last call.
    ///
    /// # Errors
    /// The direction is none of those; the kernel does not shape it any more.
    pub fn record(&mut self, direction: Direction) -> Result<Recorded, Error> {
        let now = sys::now();
        if now >= self.looked + LOOK {
            self.look(now)?;
        }
        self.calendar.follow();
        let interface = || self.interface.clone();
        let way = self.ways.iter_mut().find(|way| way.direction == direction);
        let way = way.ok_or_else(|| Error::NoDirection { interface: interface(), direction })?;
        let (mut recorder, mut lost) = (Recorder::new(record::room(1)), way.listener.take_drops());
        while recorder.has_room(Listener::BATCH) {
            let Ok(count) = way.listener.receive() else {
                // The tap was taken away, as the next look finds; or a packet is beyond words.
                lost += 1;
                break;
            };
            for heard in (0..count).filter_map(|index| way.listener.get(index)) {
                let time = self.calendar.time(heard.stamp).max(way.last);
                way.last = time;
                keep(&mut recorder, &self.classifier, &heard, time);
            }
            if count < Listener::BATCH {
                break;
            }
        }
        let recorded = recorder.finish();
        Ok(Recorded { lost: recorded.lost + lost, ..recorded })
    }

    /// Time in which others had taken the copies away, or the disciplines: from look to look.
    pub fn missed(&self) -> Duration {
        Duration::from_nanos(self.missed.0)
    }

    /// Finds what others have done.
    fn look(&mut self, now: Time) -> Result<(), Error> {
        let since = now.since(std::mem::replace(&mut self.looked, now));
        let present = shaped(Some(&self.interface))?;
        let (mut absent, mut is_broken) = (false, false);
        for way in &mut self.ways {
            let Some(shaped) = Shaped::find(&present, way.direction) else {
                absent = true;
                continue;
            };
            if !way.is_whole(&self.kernel, shaped) {
                is_broken = true;
                way.mend(&self.kernel, shaped)?;
            }
        }
        self.absent = if absent { self.absent + 1 } else { 0 };
        if absent || is_broken {
            self.missed += since;
        }
        match self.absent >= PATIENCE {
            true => Err(Error::TakenAway(self.interface.clone())),
            false => Ok(()),
        }
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        for way in &self.ways {
            // What is gone already needs nothing.
            let _ = redirect::end_copies(&self.kernel, &way.device, way.number);
        }
    }
}

/// One direction.
struct Way {
    direction: Direction,
    /// Device at which its discipline stands.
    device: String,
    number: u32,
    tap: Tap,
    listener: Listener,
    /// Time of the last packet: processors' clocks differ, and a recording is in order.
    last: Time,
}

impl Way {
    fn open(kernel: &Qdiscs, shaped: &Shaped) -> Result<Way, Error> {
        let (direction, device) = (shaped.direction, shaped.listed.device.clone());
        let number = number(&device)?;
        let tap = Tap::open(kernel, number, shaped)?;
        let listener = Listener::open(&tap.name)?;
        redirect::begin_copies(kernel, &device, number, tap.number)
            .inspect_err(|_| drop(redirect::end_copies(kernel, &device, number)))?;
        Ok(Way { direction, device, number, tap, listener, last: Time(0) })
    }

    /// True while copies of what comes to the discipline come here.
    fn is_whole(&self, kernel: &Qdiscs, shaped: &Shaped) -> bool {
        shaped.listed.device == self.device
            && sys::interface(&self.device, Query::Index).is_ok_and(|number| number == self.number)
            && redirect::has_copies(kernel, self.number)
            && !sys::is_no_interface(self.tap.number)
    }

    fn mend(&mut self, kernel: &Qdiscs, shaped: &Shaped) -> Result<(), Error> {
        if sys::is_no_interface(self.tap.number) {
            let last = self.last;
            *self = Way { last, ..Way::open(kernel, shaped)? };
            return Ok(());
        }
        self.device.clone_from(&shaped.listed.device);
        self.number = number(&self.device)?;
        redirect::begin_copies(kernel, &self.device, self.number, self.tap.number)
    }
}

/// The device to which copies go; it ends with the descriptor.
struct Tap {
    name: String,
    number: u32,
    _descriptor: OwnedFd,
}

impl Tap {
    /// One for the discipline at device number `number`: another one of its name is somebody's who
    /// records already.
    fn open(kernel: &Qdiscs, number: u32, shaped: &Shaped) -> Result<Tap, Error> {
        let name = redirect::tap_name(number);
        let descriptor = sys::tap(&name).map_err(|error| refused(&error, shaped))?;
        let number = self::number(&name)?;
        let up = kernel.ask(&links::small_and_up(number));
        up.map_err(|refusal| Error::system("setting up the tap", refusal.error))?;
        Ok(Tap { name, number, _descriptor: descriptor })
    }
}

fn number(device: &str) -> Result<u32, Error> {
    sys::interface(device, Query::Index).map_err(|_| Error::NoInterface(device.to_owned()))
}

/// The error that there is no tap.
fn refused(error: &io::Error, shaped: &Shaped) -> Error {
    match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => {
            Error::Recorded { interface: shaped.interface.clone(), direction: shaped.direction }
        }
        Some(libc::EPERM | libc::EACCES) => Error::Privilege,
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Error::KernelLacks {
            what: "tap devices (/dev/net/tun), to which copies for a recording go",
            fix: "`modprobe tun` (OpenWrt: the package kmod-tun)",
        },
        code => {
            let error = code.map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
            Error::system("making a tap for the recording", error)
        }
    }
}

/// Keeps the headers of a packet that was heard.
fn keep(recorder: &mut Recorder, classifier: &Classifier, heard: &Heard<'_>, time: Time) {
    let Heard { protocol, bytes, len, segment, .. } = *heard;
    let (link, headers, skipped) = classify::network(protocol, bytes);
    let mut packet = classifier.classify(link, headers, len.saturating_sub(skipped), 0);
    if segment > 0 {
        describe_segments(&mut packet, segment);
    }
    recorder.arrived(&packet, &Queued { protocol, bytes, len, segment, ..Queued::default() }, time);
}

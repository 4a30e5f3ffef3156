//! One discipline as the kernel holds it, and the functions that the C side calls.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::null_mut;

use simnel_core::flow::HashKey;
use simnel_core::memory::Memory;
use simnel_core::packet::{Flags, Packet};
use simnel_core::qdisc::netlink::{write_class, write_options, write_statistics, Full};
use simnel_core::qdisc::{
    build, Backlog, Class, Config, ConfigError, Detail, Device, Managed, Snapshot,
};
use simnel_core::rate::{Arithmetic, ByteTime};
use simnel_core::sojourns::Sojourns;
use simnel_core::tick::Tick;
use simnel_core::time::{Span, Time};

use crate::arrival::{Arrival, Reader, Unusual};
use crate::host::Host;
use crate::settings::{wanted, Form, Refusal, Request, EINVAL, ENOMEM};
use crate::shown;
use crate::waits::Waits;

/// A discipline with what makes descriptors for it.
pub struct Line {
    pub(crate) arrival: Arrival,
    pub(crate) qdisc: Box<dyn Managed + Send>,
    pub(crate) owner: Host,
    derived: Derived,
    key: [u64; 2],
    form: Form,
    device: Device,
    waits: Waits,
    /// `overlimits` of disciplines that others have taken the place of.
    inherited: u32,
}

impl Line {
    pub(crate) fn new(
        qdisc: Box<dyn Managed + Send>,
        form: Form,
        device: &Device,
        surroundings: &Surroundings,
    ) -> Line {
        let key = surroundings.key;
        let derived = Derived::of(&qdisc.config(), form, device, key);
        let owner = Host { context: surroundings.context, is_recorded: surroundings.hz != 0 };
        Line {
            arrival: Arrival::EMPTY,
            qdisc,
            owner,
            derived,
            key,
            form,
            device: *device,
            waits: Waits::new(surroundings.seed),
            inherited: 0,
        }
    }

    /// Completes the descriptor of the packet that arrives.
    ///
    /// # Safety
    /// As [`Arrival::describe_unusual`].
    #[inline(always)]
    pub(crate) unsafe fn describe(&mut self, unusual: Option<&Unusual>) {
        // SAFETY: the caller's promise.
        unsafe {
            match unusual {
                None => self.arrival.describe(&self.derived.reader),
                Some(unusual) => self.arrival.describe_unusual(unusual, &self.derived.reader),
            }
        }
    }
}

/// Facts that follow from a discipline's settings.
struct Derived {
    reader: Reader,
    wants: u32,
    name: &'static str,
}

impl Derived {
    fn of(config: &Config, form: Form, device: &Device, key: [u64; 2]) -> Derived {
        Derived {
            reader: Reader::of(config, device, HashKey::new(key[0], key[1])),
            wants: wanted(config, form, device),
            name: config.name(),
        }
    }
}

/// Properties that the kernel decides (`struct simnel_surroundings`).
#[repr(C)]
#[derive(Debug)]
pub struct Surroundings {
    /// C's own pointer, which it gets back with each call of its functions.
    pub context: *mut c_void,
    /// The discipline's handle.
    pub handle: u32,
    /// Recordings of Linux only: its ticks a second, and its arithmetic; 0: both are exact.
    pub hz: u32,
    /// Recordings of Linux only: its timers have the granules of its timer wheel.
    pub wheel: u32,
    /// Present time.
    pub now: u64,
    /// Seed of random decisions.
    pub seed: u64,
    /// Key of the flow hash.
    pub key: [u64; 2],
}

/// Text for the system call's answer (`struct simnel_message`).
#[repr(C)]
pub struct Message {
    text: [u8; Message::BYTES],
    errno: i32,
}

impl Message {
    const BYTES: usize = 160;
    #[cfg(test)]
    pub(crate) const EMPTY: Message = Message { text: [0; Message::BYTES], errno: 0 };

    /// Takes over as much of a refusal as fits; the last byte stays zero, as C wants it.
    pub(crate) fn tell(&mut self, refusal: &Refusal) {
        self.errno = refusal.errno;
        self.text = [0; Message::BYTES];
        for (to, from) in self.text.iter_mut().take(Message::BYTES - 1).zip(refusal.text.bytes()) {
            *to = from;
        }
    }
}

#[cfg(test)]
impl core::fmt::Display for Message {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = core::ffi::CStr::from_bytes_until_nul(&self.text).unwrap_or(c"(no end)");
        f.write_str(&text.to_string_lossy())
    }
}

impl Surroundings {
    pub(crate) fn device(&self, request: &Request) -> Device {
        let Surroundings { handle, hz, wheel, now, seed, .. } = *self;
        let (arithmetic, tick) = match hz {
            0 => (Arithmetic::Exact, Tick::Exact),
            hz => (Arithmetic::LINUX, Tick::Jiffies { hz, wheel: wheel != 0 }),
        };
        let (now, memory) = (Time(now), Memory::AsNeeded);
        let Request { mtu, tx_queue_len, .. } = *request;
        Device { mtu, tx_queue_len, seed, handle, arithmetic, now, tick, memory }
    }
}

/// Refusal of a discipline that cannot be built.
pub(crate) fn refused(error: &ConfigError) -> Refusal {
    let errno = if *error == ConfigError::NoMemory { ENOMEM } else { EINVAL };
    Refusal::new(errno, error)
}

/// A discipline as a request asks for it; null with a message if it cannot be. May wait for memory:
/// not under a lock.
///
/// # Safety
/// The request's pointers must be to what it says.
#[no_mangle]
pub unsafe extern "C" fn simnel_create(
    request: &Request,
    surroundings: &Surroundings,
    message: &mut Message,
) -> *mut Line {
    let device = surroundings.device(request);
    // SAFETY: the caller's promise.
    let made = unsafe { request.read(None, &device) }.and_then(|(config, form)| {
        Ok((build(&config, &device).map_err(|error| refused(&error))?, form))
    });
    match made {
        Ok((qdisc, form)) => boxed(qdisc, form, &device, surroundings),
        Err(refusal) => {
            message.tell(&refusal);
            null_mut()
        }
    }
}

/// A line for C. Apart from what makes the discipline, which needs the stack.
#[inline(never)]
fn boxed(
    qdisc: Box<dyn Managed + Send>,
    form: Form,
    device: &Device,
    surroundings: &Surroundings,
) -> *mut Line {
    Box::into_raw(Box::new(Line::new(qdisc, form, device, surroundings)))
}

/// Frees a discipline, which must be empty. Not under a lock.
///
/// # Safety
/// `line` must be null or come from [`simnel_create`], and not be used again.
#[no_mangle]
pub unsafe extern "C" fn simnel_destroy(line: *mut Line) {
    if !line.is_null() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(line) });
    }
}

/// Address at which C describes the packet that [`simnel_enqueue`] is to take in, as long as the
/// line lives.
#[no_mangle]
pub extern "C" fn simnel_arrival(line: &mut Line) -> *mut Arrival {
    &raw mut line.arrival
}

/// Takes the packet in that C has described in the line, at `now`. Packets that leave otherwise
/// than by dequeuing, this one too, go back through `simnel_host_dropped`.
///
/// # Safety
/// The arrival must describe a packet that C holds until it is given back. Without `unusual`, it is
/// one of IP whose bytes all lie in one piece, and no super-packet.
#[no_mangle]
pub unsafe extern "C" fn simnel_enqueue(line: &mut Line, unusual: Option<&Unusual>, now: u64) {
    // SAFETY: the caller's promise.
    unsafe { line.describe(unusual) };
    line.qdisc.enqueue(&line.arrival.packet, Time(now), &mut line.owner);
}

/// The next packet to send at `now`, or null; it lies there until the line is called again. Its
/// length is that of the arrival, within 1 and [`ByteTime::MOST_BYTES`].
#[no_mangle]
pub extern "C" fn simnel_dequeue(line: &mut Line, now: u64) -> Option<&Packet> {
    line.qdisc.dequeue(Time(now), &mut line.owner).map(|packet| &*packet)
}

const _: () = {
    assert!(Flags::IPV4.0 == 1, "as in simnel.h");
    assert!(Flags::MARKED.0 == 16 && Flags::WASHED.0 == 32, "as in simnel.h");
    assert!(ByteTime::MOST_BYTES == 1 << 19, "as in simnel.h");
};

/// Counts the packet that leaves at `now`, and those before it since the last one that was looked
/// at: they have `waited` so long. Number of the packet, counted from this one, that is looked at
/// next. This one still lies where it did.
#[no_mangle]
pub extern "C" fn simnel_look(line: &mut Line, waited: u64, now: u64) -> u32 {
    line.waits.look(Span(waited), Time(now))
}

/// The packet that [`simnel_dequeue`] would give, where it is known without being taken out.
#[no_mangle]
pub extern "C" fn simnel_peek(line: &Line) -> Option<&Packet> {
    line.qdisc.peek()
}

/// Notes what the parent has taken out only to look at: it counts against limits as if queued here.
#[no_mangle]
pub extern "C" fn simnel_lend(line: &mut Line, packets: u32, bytes: u32, now: u64) {
    line.qdisc.lend(Backlog { packets, bytes: bytes.into() }, Time(now));
}

/// Time at which [`simnel_dequeue`] may next give a packet; `u64::MAX` if none is queued.
#[no_mangle]
pub extern "C" fn simnel_next_event(line: &Line) -> u64 {
    line.qdisc.next_event().map_or(u64::MAX, |time| time.0)
}

/// Not 0 while packets may go past the discipline, which has none.
#[no_mangle]
pub extern "C" fn simnel_is_at_rest(line: &Line) -> u32 {
    line.qdisc.is_at_rest().into()
}

/// Gives all packets back through `simnel_host_dropped` and forgets what was learnt.
#[no_mangle]
pub extern "C" fn simnel_reset(line: &mut Line) {
    line.qdisc.reset(&mut line.owner);
}

/// Bits of what the settings want of the C side.
#[no_mangle]
pub extern "C" fn simnel_wants(line: &Line) -> u32 {
    line.derived.wants
}

/// Queues that are chosen by numbers from 1; zero if filters choose a class.
#[no_mangle]
pub extern "C" fn simnel_queues(line: &Line) -> u32 {
    line.derived.reader.chooser.queues()
}

/// A discipline with the settings that are to be put in place, and with all memory for that.
pub struct Change {
    spare: Box<dyn Managed + Send>,
    /// The spare is another discipline, to stand in place of the present one.
    is_other: bool,
    derived: Derived,
}

/// Prepares a change; null with a message if it cannot be. May wait for memory: not under a lock.
///
/// # Safety
/// The request's pointers must be to what it says.
#[no_mangle]
pub unsafe extern "C" fn simnel_prepare(
    line: &Line,
    request: &Request,
    now: u64,
    message: &mut Message,
) -> *mut Change {
    let old = line.qdisc.config();
    let Request { mtu, tx_queue_len, .. } = *request;
    let device = Device { mtu, tx_queue_len, now: Time(now), ..line.device };
    // SAFETY: the caller's promise.
    let read = unsafe { request.read(Some((&old, line.form)), &device) };
    let ready = read.and_then(|(config, _)| {
        let is_other = config.name() != old.name();
        let spare = match is_other {
            true => build(&config, &device),
            false => line.qdisc.prepare_on(&config, &device),
        };
        let spare = spare.map_err(|error| refused(&error))?;
        Ok(Change { spare, is_other, derived: Derived::of(&config, line.form, &device, line.key) })
    });
    match ready {
        Ok(change) => Box::into_raw(Box::new(change)),
        Err(refusal) => {
            message.tell(&refusal);
            null_mut()
        }
    }
}

/// Puts a change in place, under the lock. Another discipline starts empty: what is queued is given
/// back. Afterwards the change holds what is no longer needed; [`simnel_inherit`] comes next.
#[no_mangle]
pub extern "C" fn simnel_apply(line: &mut Line, change: &mut Change, now: u64) {
    if change.is_other {
        line.qdisc.reset(&mut line.owner);
        core::mem::swap(&mut line.qdisc, &mut change.spare);
    } else {
        line.qdisc.adopt(change.spare.as_mut(), Time(now), &mut line.owner);
    }
    core::mem::swap(&mut line.derived, &mut change.derived);
    line.arrival = Arrival::EMPTY;
}

/// Keeps the `overlimits` of a discipline whose place another one has taken, under the lock: the
/// kernel's own counters outlive a change. Apart from [`simnel_apply`], as a snapshot needs the
/// stack.
#[no_mangle]
pub extern "C" fn simnel_inherit(line: &mut Line, change: &Change) {
    if change.is_other {
        let past = change.spare.snapshot().totals.overlimits as u32;
        line.inherited = line.inherited.wrapping_add(past);
    }
}

/// Frees a change. Not under a lock.
///
/// # Safety
/// `change` must be null or come from [`simnel_prepare`], and not be used again.
#[no_mangle]
pub unsafe extern "C" fn simnel_forget(change: *mut Change) {
    if !change.is_null() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(change) });
    }
}

/// Counters at one moment; no snapshot before they are read.
#[derive(Default)]
pub struct Counters {
    snapshot: Option<Snapshot>,
    sojourns: Sojourns,
}

/// Room for counters. Not under a lock.
#[no_mangle]
pub extern "C" fn simnel_counters() -> *mut Counters {
    Box::into_raw(Box::new(Counters::default()))
}

/// Reads the counters, under the lock. Where some were read of another of several parallel queues,
/// they are added. Returns how often the line's disciplines were above a limit in Linux's sense
/// (`overlimits`), of this line alone.
#[no_mangle]
pub extern "C" fn simnel_read(line: &Line, counters: &mut Counters) -> u32 {
    let snapshot = line.qdisc.snapshot();
    // C's counter has as many bits.
    let overlimits = line.inherited.wrapping_add(snapshot.totals.overlimits as u32);
    counters.sojourns.join(&line.waits.sojourns);
    match &mut counters.snapshot {
        None => counters.snapshot = Some(snapshot),
        Some(Snapshot { detail: Detail::Cake(all), .. }) => {
            if let Detail::Cake(stats) = &snapshot.detail {
                all.join(stats);
            }
        }
        Some(_) => {}
    }
    overlimits
}

/// Frees counters. Not under a lock.
///
/// # Safety
/// `counters` must be null or come from [`simnel_counters`], and not be used again.
#[no_mangle]
pub unsafe extern "C" fn simnel_counters_free(counters: *mut Counters) {
    if !counters.is_null() {
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(counters) });
    }
}

/// One of the queues, as `tc class show` shows it (`struct simnel_class`).
#[repr(C)]
#[derive(Debug)]
pub struct Shown {
    /// Packets queued.
    pub packets: u32,
    /// Bytes queued.
    pub bytes: u32,
    /// A flow uses it.
    pub is_used: u32,
    /// Bytes of `statistics`.
    pub length: u32,
    /// Contents of `TCA_STATS_APP`.
    pub statistics: [u8; Shown::BYTES],
}

impl Shown {
    const BYTES: usize = 256;
}

/// Reads the `n`-th queue at `now`, under the lock; 0 if there are not so many.
#[no_mangle]
pub extern "C" fn simnel_class(line: &Line, n: u32, now: u64, shown: &mut Shown) -> u32 {
    // Linux's red shows the queue below it as a class.
    let whole = || Class { backlog: line.qdisc.backlog(), is_used: true, ..Class::default() };
    let only = || (line.derived.name == "red" && n == 0).then(whole);
    let Some(class) = line.qdisc.class(n).or_else(only) else { return 0 };
    shown.packets = class.backlog.packets;
    shown.bytes = class.backlog.bytes as u32;
    shown.is_used = class.is_used.into();
    let written = match line.form {
        Form::Linux => write_class(line.derived.name, &class, Time(now), &mut shown.statistics),
        Form::Words | Form::Parallel => Ok(0),
    };
    shown.length = written.map_or(0, |length| length as u32);
    1
}

/// Writes what `TCA_OPTIONS` holds to `out`: the number of bytes, or more than `size` if there is
/// no room for them.
///
/// # Safety
/// `out` must have room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn simnel_options(line: &Line, out: *mut u8, size: u32) -> u32 {
    // SAFETY: the caller's promise.
    let out = unsafe { core::slice::from_raw_parts_mut(out, size as usize) };
    let config = line.qdisc.config();
    length(match line.form {
        Form::Linux => write_options(&config, None, out),
        form => shown::options(&config, form, out),
    })
}

/// Writes what `TCA_STATS_APP` holds to `out`, as [`simnel_options`] does.
///
/// # Safety
/// `out` must have room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn simnel_statistics(
    line: &Line,
    counters: &Counters,
    out: *mut u8,
    size: u32,
) -> u32 {
    // SAFETY: the caller's promise.
    let out = unsafe { core::slice::from_raw_parts_mut(out, size as usize) };
    let Some(snapshot) = &counters.snapshot else { return 0 };
    length(match line.form {
        Form::Linux => write_statistics(snapshot, out),
        Form::Words | Form::Parallel => shown::statistics(snapshot, &counters.sojourns, out),
    })
}

fn length(written: Result<usize, Full>) -> u32 {
    written.map_or(u32::MAX, |length| length as u32)
}

//! Settings as C hands them over, and what C must know of them.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Display, Write};
use core::ops::RangeInclusive;

use simnel_core::netlink::{Attributes, Options};
use simnel_core::packet::Packet;
use simnel_core::qdisc::{amend, discipline, netlink, parse, Bypass, Choice, Config, Device};

use crate::host::bytes;

/// Error numbers of the system calls.
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOMEM: i32 = 12;

/// The name whose settings are words; all others have Linux's attributes.
const OWN_NAME: &str = "simnel";
/// Number of the attribute that holds the words, with or without a zero at the end.
pub(crate) const WORDS: u16 = 1;
/// Most bytes of words that settings are said and shown in. So a message has room for them
/// (`SETTINGS_ROOM` in kernel/netlink.c, with space for numbers that grow).
const MOST_WORDS: usize = 18_000;
/// Most words of a request and of what it changes. Neither their places, nor as many classes as
/// they can name, then take more memory in one piece than is waited for (`WAITED` in
/// kernel/host.c).
const MOST_COUNT: usize = 4_096;
/// Settings where a request says nothing.
const DEFAULT: &str = "cake";
/// Numbers by which a filter of `cake` names a queue (minor) or a host (major), as Linux has them.
/// Others name none: the major number is mostly the discipline's own handle.
const CAKE_NUMBERS: RangeInclusive<u32> = 1..=1024;
/// Word before those of parallel queues.
pub(crate) const PARALLEL: &str = "mq";

/// A request for a discipline, or to change one (`struct simnel_request`).
#[repr(C)]
pub struct Request {
    kind: *const u8,
    options: *const u8,
    kind_length: u32,
    length: u32,
    is_nested: u32,
    /// Largest frame of the device in bytes (`psched_mtu`), as of now.
    pub(crate) mtu: u32,
    /// The device's queue length in packets, as of now.
    pub(crate) tx_queue_len: u32,
}

/// Form of a discipline's settings and statistics in netlink.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As text, in attributes of our own.
    Words,
    /// The same, of parallel queues.
    Parallel,
    /// As Linux's discipline of this name has them.
    Linux,
}

/// Reason why settings were refused.
pub(crate) struct Refusal {
    /// Error number for the system call.
    pub(crate) errno: i32,
    /// One line.
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(errno: i32, error: &dyn Display) -> Refusal {
        Refusal { errno, text: format!("simnel: {error}") }
    }
}

impl Request {
    #[cfg(test)]
    pub(crate) fn new(kind: &str, options: &[u8]) -> Request {
        Request {
            kind: kind.as_ptr(),
            options: options.as_ptr(),
            kind_length: kind.len() as u32,
            length: options.len() as u32,
            is_nested: 1,
            mtu: 1514,
            tx_queue_len: 1000,
        }
    }

    #[cfg(test)]
    pub(crate) fn on(self, mtu: u32, tx_queue_len: u32) -> Request {
        Request { mtu, tx_queue_len, ..self }
    }

    /// # Safety
    /// The pointers must be null or to as many bytes as stated.
    unsafe fn parts(&self) -> Result<(&str, Option<Options<'_>>), Refusal> {
        // SAFETY: the caller's promise.
        let (kind, payload) =
            unsafe { (bytes(self.kind, self.kind_length), bytes(self.options, self.length)) };
        let kind = text(kind.unwrap_or(&[]))?;
        let is_nested = self.is_nested != 0;
        Ok((kind, payload.map(|payload| Options { payload, is_nested })))
    }

    /// The settings asked for; where there are some already, as a change of these, unless words
    /// start with the name of a discipline. These have the form `form`.
    ///
    /// # Safety
    /// The pointers must be null or to as many bytes as stated.
    pub(crate) unsafe fn read(
        &self,
        old: Option<(&Config, Form)>,
        device: &Device,
    ) -> Result<(Config, Form), Refusal> {
        // SAFETY: the caller's promise.
        let (kind, options) = unsafe { self.parts() }?;
        if kind != OWN_NAME {
            let config = netlink::parse(kind, options, old.map(|(config, _)| config), device)
                .map_err(|error| Refusal::new(error.errno() as i32, &error))?;
            return Ok((config, Form::Linux));
        }
        let words = words(options)?;
        let first = words.split_whitespace().next().unwrap_or_default();
        let asked = if first == PARALLEL { Form::Parallel } else { Form::Words };
        let is_whole = first == PARALLEL || discipline(first).is_some();
        if let Some((_, form)) = old.filter(|&(_, form)| is_whole && form != asked) {
            return Err(replaces(first, form));
        }
        at_most(MOST_WORDS, words.len(), "bytes of words")?;
        let changed = old.filter(|_| !is_whole).map(|(old, _)| old.to_string());
        let count = |text: &str| text.split_whitespace().count();
        let running = changed.as_deref().map_or(0, count);
        at_most(MOST_COUNT, running + count(words), "words")?;
        let config = match &changed {
            Some(changed) => amend(changed, words),
            None if words.is_empty() => parse(DEFAULT),
            _ if first == PARALLEL => parse(&parallel(words)?),
            _ => parse(words),
        };
        let config = config.map_err(|mut error| {
            let Some(index) = error.index.checked_sub(running) else {
                return Refusal::new(EINVAL, &format_args!("in what runs, {error}"));
            };
            error.index = index;
            Refusal::new(EINVAL, &error)
        })?;
        at_most(MOST_WORDS, shown_length(&config), "bytes of words")?;
        // Each takes some 3 KB of it while it is made.
        let below = config.children();
        if below.iter().any(|(_, child)| !child.children().is_empty()) {
            let text = "only one discipline stands below another: the kernel's stack is small";
            return Err(Refusal::new(EINVAL, &text));
        }
        Ok((config, old.map_or(asked, |(_, form)| form)))
    }

    /// True if parallel queues are asked for.
    ///
    /// # Safety
    /// As [`Request::read`].
    pub(crate) unsafe fn is_parallel(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.parts() }.is_ok_and(|(kind, options)| {
            let words = words(options).unwrap_or_default();
            kind == OWN_NAME && words.split_whitespace().next() == Some(PARALLEL)
        })
    }
}

/// A refusal if `count` of `what` are more than `most`.
fn at_most(most: usize, count: usize, what: &str) -> Result<(), Refusal> {
    if count <= most {
        return Ok(());
    }
    Err(Refusal::new(EINVAL, &format_args!("{count} {what} are too many: at most {most}")))
}

/// Bytes of the words that settings are shown in.
fn shown_length(config: &Config) -> usize {
    struct Count(usize);

    impl Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail.
    let _ = write!(count, "{config}");
    count.0
}

/// The words among the options of our own name.
fn words(options: Option<Options<'_>>) -> Result<&str, Refusal> {
    let words = options.and_then(|options| {
        Attributes::new(options.payload).find(|attribute| attribute.number == WORDS)
    });
    words.map_or(Ok(""), |words| text(words.payload))
}

/// `mq cake ...` as the settings of a queue. `besteffort` stands in the place of a word, so that
/// errors count words right.
fn parallel(words: &str) -> Result<String, Refusal> {
    let mut words = words.split_whitespace().skip(1);
    match words.next() {
        Some(DEFAULT) => {
            Ok(words.fold(format!("{DEFAULT} besteffort"), |all, word| all + " " + word))
        }
        other => {
            let found = other.unwrap_or("nothing");
            let wanted = "`mq cake bandwidth RATE` is what runs on parallel queues";
            Err(Refusal::new(EINVAL, &format!("`{found}` (word 2) after `mq`: {wanted}")))
        }
    }
}

/// The refusal of a root discipline in place of one of `form`.
fn replaces(first: &str, form: Form) -> Refusal {
    let (what, words) = match form {
        Form::Parallel => ("parallel queues run", "`mq cake ...`"),
        _ => ("one queue runs", "words without `mq`"),
    };
    Refusal::new(
        EINVAL,
        &format!("`{first}` (word 1): {what} here; say {words}, or `del` it first"),
    )
}

/// Text up to a zero or the end.
fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or(&[]);
    core::str::from_utf8(text).map_err(|error| {
        let byte = error.valid_up_to() + 1;
        Refusal::new(EINVAL, &format_args!("the words are not UTF-8 (byte {byte})"))
    })
}

/// A discipline's needs of the C side beyond packets, one bit each (`SIMNEL_WANTS_...`).
pub(crate) mod wants {
    /// Connections before address translation.
    pub const TRANSLATION: u32 = 1;
    /// Super-packets in pieces.
    pub const SPLIT: u32 = 2;
    /// Statistics that are attributes, not a structure.
    pub const NEST: u32 = 4;
    /// While nothing is queued, packets go past the discipline, straight to the device.
    pub const BYPASS: u32 = 8;
    /// To be asked for packets also while there is none.
    pub const EMPTY: u32 = 16;
    /// As `BYPASS`, but only while the discipline is at rest (`simnel_is_at_rest`).
    pub const REST: u32 = 32;
    /// Packets dropped for which no filter chooses.
    pub const CHOICE: u32 = 64;
}

/// The C side's duties for `config`.
pub(crate) fn wanted(config: &Config, form: Form, device: &Device) -> u32 {
    let needs = config.needs(device);
    let is_nested = form != Form::Linux || config.has_nested_statistics();
    let bits = [
        (needs.translation, wants::TRANSLATION),
        (needs.pieces, wants::SPLIT),
        (is_nested, wants::NEST),
        (needs.bypass == Bypass::Empty, wants::BYPASS),
        (needs.vain_calls, wants::EMPTY),
        (needs.bypass == Bypass::AtRest, wants::REST),
        (matches!(needs.choice, Choice::Queue(_) | Choice::Flow), wants::CHOICE),
    ];
    bits.into_iter().map(|(is_wanted, bit)| if is_wanted { bit } else { 0 }).sum()
}

/// A filter's choice of a class, as the discipline `handle` understands it.
#[derive(Clone, Copy)]
pub(crate) struct Chooser {
    choice: Choice,
    handle: u32,
}

impl Chooser {
    pub(crate) fn of(config: &Config, device: &Device) -> Chooser {
        Chooser { choice: config.needs(device).choice, handle: device.handle }
    }

    /// Classes that have numbers from 1, of which priorities choose one before filters do; zero if
    /// these choose something else.
    pub(crate) fn queues(self) -> u32 {
        match self.choice {
            Choice::Queue(queues) | Choice::Small(queues) => queues,
            _ => 0,
        }
    }

    /// Gives `packet` what leads it where `class` says. A queue's number replaces only the half of
    /// the flow's hash that picks the queue: the packet stays one of its connection.
    #[cold]
    pub(crate) fn apply(self, class: u32, packet: &mut Packet) {
        let (major, minor) = (class >> 16, class & 0xffff);
        match self.choice {
            Choice::Class => packet.class = class,
            Choice::Queue(_) => packet.class = self.handle & 0xffff_0000 | minor,
            Choice::Small(most) => {
                let known = if minor <= most { minor } else { 0 };
                packet.class = self.handle & 0xffff_0000 | known;
            }
            Choice::Flow => packet.flow = minor.into(),
            Choice::QueueAndHost => {
                if CAKE_NUMBERS.contains(&minor) {
                    packet.flow = packet.flow & !0xffff_ffff | u64::from(minor - 1);
                }
                if CAKE_NUMBERS.contains(&major) {
                    (packet.src_host, packet.dst_host) = (major, major);
                }
            }
        }
    }
}

//! Requests for disciplines, and the list of those that run (linux/rtnetlink.h,
//! linux/pkt_sched.h).
//!
//! A message's fixed part is a `tcmsg`: family, padding, interface, handle, parent and info, 20
//! bytes. Attributes follow: the kind, the options in the kind's own form, and in answers the
//! statistics.

use std::path::Path;

use simnel_core::qdisc::{Backlog, Common, Handle};

use crate::error::Error;
use crate::links::check_name;
use crate::netlink::{attribute, attributes, text, Message, Refusal, Socket, Writer};
use crate::sys::{self, Query};

/// The module's name of all its disciplines.
pub const OWN_KIND: &str = "simnel";
/// Parent of the discipline at the device itself.
pub const ROOT: u32 = 0xffff_ffff;
/// Parent of what looks at arriving packets.
pub const INGRESS: u32 = 0xffff_fff1;

/// Bytes of a `tcmsg`.
const FIXED: usize = 20;

const TCA_KIND: i32 = 1;
const TCA_OPTIONS: i32 = 2;
const TCA_STATS2: i32 = 7;

/// Attributes of the module: words among the options, text and JSON among the statistics.
const WORDS: i32 = 1;
const TEXT: i32 = 2;
const JSON: i32 = 3;

/// Operations on a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A new one where there is none.
    Add,
    /// Other settings for the one that is there.
    Change,
    /// A new one, in place of another if there is one; of the same kind, other settings.
    Replace,
    /// None any more.
    Delete,
}

impl Verb {
    /// As `tc` says it.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Add => "add",
            Verb::Change => "change",
            Verb::Replace => "replace",
            Verb::Delete => "del",
        }
    }

    /// Type and flags of the message.
    fn message(self) -> (i32, i32) {
        match self {
            Verb::Add => (libc::RTM_NEWQDISC.into(), libc::NLM_F_CREATE | libc::NLM_F_EXCL),
            Verb::Change => (libc::RTM_NEWQDISC.into(), 0),
            Verb::Replace => (libc::RTM_NEWQDISC.into(), libc::NLM_F_CREATE | libc::NLM_F_REPLACE),
            Verb::Delete => (libc::RTM_DELQDISC.into(), 0),
        }
    }

    fn creates(self) -> bool {
        matches!(self, Verb::Add | Verb::Replace)
    }
}

/// Place of a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The interface.
    pub device: &'a str,
    /// [`ROOT`], or the class above.
    pub parent: u32,
    /// Its handle; zero lets the kernel choose, or means any.
    pub handle: u32,
}

/// Settings of a discipline, as they travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings<'a> {
    /// None.
    None,
    /// Words, of the module's own kind.
    Words(&'a str),
    /// The payload of the options, of a kind that Linux has.
    Attributes(&'a [u8]),
}

/// A discipline that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The interface.
    pub device: String,
    /// Its name there: [`OWN_KIND`] or one that Linux has.
    pub kind: String,
    /// Its handle: major number in the upper 16 bits.
    pub handle: u32,
    /// [`ROOT`], [`INGRESS`], or the class above.
    pub parent: u32,
    /// References to it.
    pub refcnt: u32,
    /// Payload of its options.
    pub options: Vec<u8>,
    /// Counters that all disciplines have.
    pub common: Common,
    /// Payload of the statistics of its own.
    pub own: Vec<u8>,
}

impl Listed {
    /// True if it is the module's, under the module's own name.
    pub fn is_ours(&self) -> bool {
        self.kind == OWN_KIND
    }

    /// Words that make the same settings again, of a discipline of ours.
    pub fn words(&self) -> String {
        self.member(&self.options, WORDS)
    }

    /// The lines of statistics that are its own, of a discipline of ours.
    pub fn text(&self) -> String {
        self.member(&self.own, TEXT)
    }

    /// The same as a JSON object.
    pub fn json(&self) -> String {
        self.member(&self.own, JSON)
    }

    fn member(&self, all: &[u8], wanted: i32) -> String {
        // The numbers mean something else in the attributes of others.
        let all = if self.is_ours() { all } else { &[] };
        attribute(all, wanted).map(text).unwrap_or_default()
    }
}

/// The kernel's traffic control.
pub struct Qdiscs(Socket);

impl Qdiscs {
    /// Opens a socket.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn open() -> Result<Qdiscs, Error> {
        let socket = Socket::open_routing();
        socket.map(Qdiscs).map_err(|e| Error::system("opening a socket for traffic control", e))
    }

    /// In place of a kernel, what does all that is asked; the requests, once this is dropped.
    #[cfg(test)]
    pub(super) fn of_willing_kernel() -> (Qdiscs, std::thread::JoinHandle<Vec<Vec<u8>>>) {
        use rustix::net::{send, socketpair, AddressFamily, SendFlags, SocketFlags, SocketType};
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, kernels) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let answer = move || {
            let (mut requests, mut buffer) = (Vec::new(), vec![0; 8192]);
            while let Ok(length @ 1..) = sys::receive(&kernels, &mut buffer) {
                requests.push(buffer[..length].to_vec());
                // No error, in the kernel's form (netlink(7)), about the request of that head.
                let mut done = Writer::default();
                let head: &[u8; 16] = buffer.first_chunk().unwrap();
                let seq = u32::from_ne_bytes(head[8..12].try_into().unwrap());
                done.begin_with(libc::NLMSG_ERROR, 0, seq, &[&[0; 4], &head[..]].concat());
                done.finish();
                send(&kernels, done.bytes(), SendFlags::NOSIGNAL).unwrap();
            }
            requests
        };
        (Qdiscs(Socket::to(ours)), std::thread::spawn(answer))
    }

    /// Does `verb` at `place`.
    ///
    /// # Errors
    /// There is no such interface; the module is missing; or what the kernel says against it.
    pub fn request(
        &self,
        verb: Verb,
        place: Place<'_>,
        kind: &str,
        settings: Settings<'_>,
    ) -> Result<(), Error> {
        check_name(place.device)?;
        let device = sys::interface(place.device, Query::Index)
            .map_err(|_| Error::NoInterface(place.device.to_owned()))?;
        let writer = message(verb, device, place, kind, settings);
        self.0.request(&writer).map_err(|refusal| refused(verb, place, kind, refusal, is_loaded()))
    }

    /// Sends a request of any kind.
    pub(super) fn ask(&self, request: &Writer) -> Result<(), Refusal> {
        self.0.request(request)
    }

    /// Sends a question whose answer is many messages.
    pub(super) fn dump(
        &self,
        question: &Writer,
        each: impl FnMut(Message<'_>),
    ) -> std::io::Result<()> {
        self.0.dump(question, each)
    }

    /// Tells `each` the interface's number and the counters of all disciplines at a root that have
    /// this handle.
    ///
    /// # Errors
    /// A system call failed.
    pub(super) fn count(
        &self,
        handle: u32,
        mut each: impl FnMut(u32, Common),
    ) -> Result<(), Error> {
        self.dump(&all(), |message| {
            if let Some((index, common)) = counted(&message, handle) {
                each(index, common);
            }
        })
        .map_err(|e| Error::system("asking for the kernel's counters", e))
    }

    /// All disciplines, each before those below it.
    ///
    /// # Errors
    /// A system call failed.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut found = Vec::new();
        self.0
            .dump(&all(), |message| found.extend(listed(&message, sys::interface_name)))
            .map_err(|e| Error::system("listing the kernel's disciplines", e))?;
        Ok(found)
    }
}

/// The question for all disciplines.
fn all() -> Writer {
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_GETQDISC.into(), libc::NLM_F_DUMP, 1, &[0; FIXED]);
    writer.finish();
    writer
}

/// A `tcmsg`.
pub(super) fn fixed_part(device: u32, handle: u32, parent: u32, info: u32) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    for (at, number) in [(4, device), (8, handle), (12, parent), (16, info)] {
        fixed[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    fixed
}

/// The request `verb` for a discipline at the interface with the number `device`.
fn message(
    verb: Verb,
    device: u32,
    place: Place<'_>,
    kind: &str,
    settings: Settings<'_>,
) -> Writer {
    let fixed = fixed_part(device, place.handle, place.parent, 0);
    let (number, flags) = verb.message();
    let mut writer = Writer::default();
    writer.begin_with(number, flags | libc::NLM_F_ACK, 1, &fixed);
    if !kind.is_empty() {
        writer.string(TCA_KIND, kind);
    }
    match settings {
        Settings::None => {}
        Settings::Words(words) => {
            let options = writer.start(TCA_OPTIONS);
            writer.string(WORDS, words);
            writer.end(options);
        }
        Settings::Attributes(payload) => {
            writer.attribute(TCA_OPTIONS | libc::NLA_F_NESTED, payload)
        }
    }
    writer.finish();
    writer
}

/// The error for the user. The module may be in the kernel.
fn refused(verb: Verb, place: Place<'_>, kind: &str, refusal: Refusal, is_loaded: bool) -> Error {
    let Refusal { error, explanation } = refusal;
    let parent = match place.parent {
        ROOT => String::from("root"),
        parent => format!("parent {}", Handle(parent)),
    };
    let kind = if kind.is_empty() { "qdisc" } else { kind };
    let doing = format!("{} {kind} at {} {parent}", verb.name(), place.device);
    let code = error.raw_os_error().unwrap_or(0);
    match code {
        libc::EPERM => return Error::Privilege,
        libc::ENOENT if verb.creates() && kind == "clsact" => {
            let fix = "`modprobe sch_ingress`, or `--backend userspace`";
            return Error::KernelLacks { what: "the qdisc `clsact`", fix };
        }
        // Nothing but the kind can be missing at a root; elsewhere the module's directory is the
        // witness, since the texts differ between versions of Linux.
        libc::ENOENT if verb.creates() && (place.parent == ROOT || !is_loaded) => {
            return Error::NoModule;
        }
        _ => {}
    }
    let hint = match (verb, code) {
        (Verb::Add, libc::EEXIST) => ": `replace` puts it in place of what is there",
        (Verb::Change | Verb::Delete, libc::ENOENT | libc::EINVAL) if explanation.is_none() => {
            ": nothing like it is there"
        }
        _ => "",
    };
    let reason = explanation.unwrap_or_else(|| error.to_string());
    let reason = reason.strip_prefix("simnel: ").unwrap_or(&reason);
    Error::Refused { doing, reason: format!("{reason}{hint}") }
}

/// True if the module is in the kernel.
fn is_loaded() -> bool {
    Path::new("/sys/module/simnel").exists()
}

/// The interface and the counters of a message about the root discipline with this handle.
fn counted(message: &Message<'_>, handle: u32) -> Option<(u32, Common)> {
    let fixed: &[u8; FIXED] = message.body.first_chunk()?;
    let is_it = message.kind == i32::from(libc::RTM_NEWQDISC)
        && (number(&fixed[8..]), number(&fixed[12..])) == (Some(handle), Some(ROOT));
    let (_, payload) =
        message.attributes_after(FIXED).find(|(kind, _)| is_it && *kind == TCA_STATS2)?;
    Some((number(&fixed[4..])?, statistics(payload).0))
}

/// The discipline of a message, if it tells of one.
fn listed(message: &Message<'_>, name: impl Fn(u32) -> Option<String>) -> Option<Listed> {
    if message.kind != i32::from(libc::RTM_NEWQDISC) {
        return None;
    }
    let fixed: &[u8; FIXED] = message.body.first_chunk()?;
    let index = number(&fixed[4..])?;
    let mut found = Listed {
        device: name(index).unwrap_or_else(|| format!("if{index}")),
        kind: String::new(),
        handle: number(&fixed[8..])?,
        parent: number(&fixed[12..])?,
        refcnt: number(&fixed[16..])?,
        options: Vec::new(),
        common: Common::default(),
        own: Vec::new(),
    };
    for (kind, data) in message.attributes_after(FIXED) {
        match kind {
            TCA_KIND => found.kind = text(data),
            TCA_OPTIONS => found.options = data.to_vec(),
            TCA_STATS2 => (found.common, found.own) = statistics(data),
            _ => {}
        }
    }
    Some(found)
}

/// Counters of all disciplines, and the payload of those that are a discipline's own
/// (linux/gen_stats.h).
fn statistics(payload: &[u8]) -> (Common, Vec<u8>) {
    const BASIC: i32 = 1;
    const QUEUE: i32 = 3;
    const APP: i32 = 4;
    const PACKETS: i32 = 8;
    let (mut common, mut own) = (Common::default(), Vec::new());
    let long = |data: &[u8]| data.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let mut all_packets = None;
    for (kind, data) in attributes(payload) {
        let count = |at: usize| data.get(at..).and_then(number).unwrap_or(0);
        match kind {
            BASIC => {
                common.sent_bytes = long(data).unwrap_or(0);
                common.sent_packets = count(8).into();
            }
            QUEUE => {
                common.backlog = Backlog { packets: count(0), bytes: count(4).into() };
                common.drops = count(8).into();
                common.requeues = count(12).into();
                common.overlimits = count(16).into();
            }
            APP => own = data.to_vec(),
            // Beyond 32 bits.
            PACKETS => all_packets = long(data),
            _ => {}
        }
    }
    common.sent_packets = all_packets.unwrap_or(common.sent_packets);
    (common, own)
}

pub(super) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    const PLACE: Place<'_> = Place { device: "eth0", parent: ROOT, handle: 0x10000 };

    #[test]
    fn a_request_has_the_bytes_that_the_kernel_expects() {
        if cfg!(target_endian = "big") {
            return;
        }
        let writer = message(Verb::Replace, 5, PLACE, OWN_KIND, Settings::Words("pie"));
        let expected = [
            // Length, RTM_NEWQDISC, REQUEST | ACK | REPLACE | CREATE, sequence, port.
            &[60, 0, 0, 0, 36, 0, 0x05, 0x05, 1, 0, 0, 0, 0, 0, 0, 0][..],
            &[0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 1, 0, 255, 255, 255, 255, 0, 0, 0, 0],
            &[11, 0, 1, 0],
            b"simnel\0\0",
            // Nested.
            &[12, 0, 2, 0x80, 8, 0, 1, 0],
            b"pie\0",
        ];
        assert_eq!(writer.bytes(), expected.concat());
        let writer = message(Verb::Delete, 5, PLACE, "", Settings::None);
        assert_eq!(writer.bytes()[..8], [36, 0, 0, 0, 37, 0, 0x05, 0]);
    }

    /// A message of the kernel's list, as it is sent.
    fn told() -> Writer {
        let fixed = fixed_part(5, 0x8001_0000, ROOT, 2);
        let mut writer = Writer::default();
        writer.begin_with(libc::RTM_NEWQDISC.into(), 0, 1, &fixed);
        writer.string(TCA_KIND, "simnel");
        let options = writer.start(TCA_OPTIONS);
        writer.string(WORDS, "pie limit 10");
        writer.end(options);
        let stats = writer.start(TCA_STATS2);
        writer.attribute(1, &[&3000u64.to_ne_bytes()[..], &[2, 0, 0, 0, 0, 0, 0, 0]].concat());
        let queue = [1u32, 1500, 7, 8, 9].map(u32::to_ne_bytes).concat();
        writer.attribute(3, &queue);
        let own = writer.start(4);
        writer.string(TEXT, "  prob 0\n");
        writer.string(JSON, "{\"prob\":0}");
        writer.end(own);
        writer.attribute(8, &(1u64 << 33).to_ne_bytes());
        writer.end(stats);
        writer.finish();
        writer
    }

    #[test]
    fn what_the_kernel_tells_of_a_discipline_is_read() {
        let writer = told();
        let message = Messages(writer.bytes()).next().unwrap();
        let found = listed(&message, |index| Some(format!("eth{index}"))).unwrap();
        assert_eq!((found.device.as_str(), found.kind.as_str()), ("eth5", "simnel"));
        assert_eq!((found.handle, found.parent, found.refcnt), (0x8001_0000, ROOT, 2));
        let common = Common {
            sent_bytes: 3000,
            sent_packets: 1 << 33,
            drops: 7,
            overlimits: 9,
            requeues: 8,
            backlog: Backlog { packets: 1, bytes: 1500 },
        };
        assert_eq!(found.common, common);
        assert_eq!(counted(&message, 0x8001_0000), Some((5, common)));
        assert_eq!(counted(&message, 0x8002_0000), None, "another handle");
        assert_eq!(found.words(), "pie limit 10");
        assert_eq!((found.text().as_str(), found.json().as_str()), ("  prob 0\n", "{\"prob\":0}"));
    }

    #[test]
    fn a_message_that_is_cut_short_is_no_harm() {
        let writer = told();
        for length in 0..writer.bytes().len() {
            for message in Messages(&writer.bytes()[..length]) {
                listed(&message, |_| None);
                counted(&message, 0x8001_0000);
            }
        }
    }

    #[test]
    fn refusals_name_the_place_and_the_words() {
        let refusal = |code, text: &str| Refusal {
            error: std::io::Error::from_raw_os_error(code),
            explanation: (!text.is_empty()).then(|| text.into()),
        };
        let refused = |verb, place, kind: &str, refusal| refused(verb, place, kind, refusal, true);
        let error = refused(Verb::Add, PLACE, OWN_KIND, refusal(libc::EINVAL, "simnel: `x`: no"));
        assert_eq!(error.to_string(), "add simnel at eth0 root: `x`: no");
        let error = refused(Verb::Add, PLACE, OWN_KIND, refusal(libc::EEXIST, "Exclusivity"));
        assert!(error
            .to_string()
            .ends_with("Exclusivity: `replace` puts it in place of what is there"));
        let error = refused(Verb::Delete, PLACE, OWN_KIND, refusal(libc::EPERM, ""));
        assert!(matches!(error, Error::Privilege), "{error}");
        // The kind is what is not there when something is made.
        for (verb, kind, text, expected) in [
            (Verb::Add, OWN_KIND, "", Error::NoModule.to_string()),
            (
                Verb::Replace,
                OWN_KIND,
                "Specified qdisc kind is unknown",
                Error::NoModule.to_string(),
            ),
            (Verb::Add, "clsact", "", "this kernel lacks the qdisc `clsact`".into()),
            (Verb::Change, OWN_KIND, "", "nothing like it is there".into()),
            (Verb::Delete, "ingress", "", "nothing like it is there".into()),
            (Verb::Delete, OWN_KIND, "Failed to find qdisc", "Failed to find qdisc".into()),
        ] {
            let error = refused(verb, PLACE, kind, refusal(libc::ENOENT, text)).to_string();
            assert!(error.contains(&expected), "{error}");
            assert_eq!(error.contains("nothing like it"), expected.contains("nothing"), "{error}");
        }
        let error = refused(Verb::Change, PLACE, "", refusal(libc::EINVAL, "")).to_string();
        assert!(
            error.starts_with("change qdisc at eth0 root: ") && error.ends_with("is there"),
            "{error}"
        );
    }

    /// Below a class the kernel says ENOENT also where the class is missing.
    #[test]
    fn a_missing_module_is_told_from_a_missing_class() {
        let below = Place { parent: 0x1_0002, ..PLACE };
        let said = |verb, place, is_loaded| {
            let error = std::io::Error::from_raw_os_error(libc::ENOENT);
            let refusal = Refusal { error, explanation: Some("no such class".into()) };
            refused(verb, place, OWN_KIND, refusal, is_loaded).to_string()
        };
        let missing = Error::NoModule.to_string();
        assert_eq!(said(Verb::Add, PLACE, true), missing);
        assert_eq!(said(Verb::Replace, below, false), missing);
        assert_eq!(said(Verb::Add, below, true), "add simnel at eth0 parent 1:2: no such class");
        assert_eq!(
            said(Verb::Delete, below, false),
            "del simnel at eth0 parent 1:2: no such class"
        );
    }

    /// With a discipline that every kernel has.
    #[test]
    fn the_kernel_does_what_is_asked() {
        crate::apart::apart("the_kernel_does_what_is_asked", || {
            let kernel = Qdiscs::open().unwrap();
            let place = Place { device: "lo", parent: ROOT, handle: 0x1_0000 };
            let pfifo = |verb, limit: u32| {
                let settings = limit.to_ne_bytes();
                kernel.request(verb, place, "pfifo", Settings::Attributes(&settings))
            };
            let there = || {
                let all = kernel.list().unwrap();
                let found = all.into_iter().find(|one| one.device == "lo" && one.kind == "pfifo");
                found.map(|one| (one.parent, one.handle, one.options))
            };
            let with = |limit: u32| Some((ROOT, 0x1_0000, limit.to_ne_bytes().to_vec()));
            assert_eq!(there(), None);
            pfifo(Verb::Add, 7).unwrap();
            assert_eq!(there(), with(7));
            let error = pfifo(Verb::Add, 8).unwrap_err().to_string();
            assert!(error.starts_with("add pfifo at lo root: "), "{error}");
            assert!(error.ends_with(": `replace` puts it in place of what is there"), "{error}");
            pfifo(Verb::Change, 9).unwrap();
            assert_eq!(there(), with(9));
            let mut counts = Vec::new();
            kernel.count(0x1_0000, |index, common| counts.push((index, common))).unwrap();
            let loopback = sys::interface("lo", Query::Index).unwrap();
            assert_eq!(counts, [(loopback, Common::default())]);
            kernel.count(0x2_0000, |_, _| panic!("another handle")).unwrap();
            pfifo(Verb::Replace, 10).unwrap();
            assert_eq!(there(), with(10));
            let elsewhere = Place { device: "no-such-device", ..place };
            let error = kernel.request(Verb::Delete, elsewhere, "", Settings::None).unwrap_err();
            assert!(matches!(error, Error::NoInterface(_)), "{error}");
            // The same by what other requests are sent with.
            let index = sys::interface("lo", Query::Index).unwrap();
            kernel.ask(&message(Verb::Delete, index, place, "", Settings::None)).unwrap();
            assert_eq!(there(), None);
            assert!(kernel.ask(&message(Verb::Delete, index, place, "", Settings::None)).is_err());
            let mut question = Writer::default();
            question.begin_with(libc::RTM_GETQDISC.into(), libc::NLM_F_DUMP, 1, &[0; FIXED]);
            question.finish();
            let mut answers = 0;
            kernel.dump(&question, |_| answers += 1).unwrap();
            assert!(answers > 0, "loopback has one of the kernel's own");
        });
    }
}

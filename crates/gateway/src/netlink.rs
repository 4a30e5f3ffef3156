//! Netlink messages: a writer for what we send, a bounds-checked reader for what comes back.
//!
//! Layout (linux/netlink.h): a 16-byte header `len, type, flags, seq, port` in host order, then a
//! fixed part, then attributes `len, type, data`, all padded to 4 bytes. Netfilter's fixed part is
//! 4 bytes: `family, version, resource id (network order)`. The reader never trusts a length: any
//! bytes give some attributes or none.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::sys;

/// Bytes of a netlink header and netfilter's after it.
pub(crate) const HEADER: usize = 20;

/// Number of the message that begins a batch; errors that bear it are the whole batch's.
pub(crate) const BEGIN: u32 = 0;

/// Longest wait for the kernel's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Offset of an attribute that nests others, to be closed by [`Writer::end`].
#[must_use]
pub(crate) struct Open(usize);

/// Builds one or several messages one after the other.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    message: usize,
}

impl Writer {
    /// Begins a message of netfilter; [`Writer::finish`] ends it.
    pub(crate) fn begin(&mut self, kind: i32, flags: i32, seq: u32, family: u8, resource: u16) {
        let [high, low] = resource.to_be_bytes();
        self.begin_with(kind, flags, seq, &[family, 0, high, low]);
    }

    /// Begins a message whose fixed part is `fixed`.
    pub(crate) fn begin_with(&mut self, kind: i32, flags: i32, seq: u32, fixed: &[u8]) {
        self.message = self.bytes.len();
        self.bytes.extend(0u32.to_ne_bytes());
        self.bytes.extend((kind as u16).to_ne_bytes());
        self.bytes.extend((flags as u16 | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        self.bytes.extend(seq.to_ne_bytes());
        self.bytes.extend(0u32.to_ne_bytes());
        self.bytes.extend(fixed);
    }

    /// Writes the length of the message that was begun last.
    pub(crate) fn finish(&mut self) {
        let length = (self.bytes.len() - self.message) as u32;
        self.bytes[self.message..self.message + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// Asks for an answer to the message that was begun last.
    pub(crate) fn ask(&mut self) {
        let flags = &mut self.bytes[self.message + 6..self.message + 8];
        let asked = u16::from_ne_bytes([flags[0], flags[1]]) | libc::NLM_F_ACK as u16;
        flags.copy_from_slice(&asked.to_ne_bytes());
    }

    /// Adds an attribute.
    pub(crate) fn attribute(&mut self, kind: i32, data: &[u8]) {
        self.bytes.extend((data.len() as u16 + 4).to_ne_bytes());
        self.bytes.extend((kind as u16).to_ne_bytes());
        self.bytes.extend(data);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Adds a number in network order.
    pub(crate) fn number(&mut self, kind: i32, value: i32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    /// Adds a string with its final zero.
    pub(crate) fn string(&mut self, kind: i32, value: &str) {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes);
    }

    /// Opens nested attributes.
    pub(crate) fn start(&mut self, kind: i32) -> Open {
        let at = self.bytes.len();
        self.bytes.extend(0u16.to_ne_bytes());
        self.bytes.extend(((kind | libc::NLA_F_NESTED) as u16).to_ne_bytes());
        Open(at)
    }

    /// Closes nested attributes.
    pub(crate) fn end(&mut self, open: Open) {
        let length = (self.bytes.len() - open.0) as u16;
        self.bytes[open.0..open.0 + 2].copy_from_slice(&length.to_ne_bytes());
    }

    /// All messages.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: i32,
    pub(crate) flags: u16,
    pub(crate) seq: u32,
    /// Payload after the 16-byte header.
    pub(crate) body: &'a [u8],
}

/// The messages of one datagram. A message that claims more bytes than there are ends with the
/// bytes.
pub(crate) struct Messages<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let header: &[u8; 16] = self.0.first_chunk()?;
        let length = u32_at(header, 0)? as usize;
        let kind = i32::from(u16::from_ne_bytes([header[4], header[5]]));
        let flags = u16::from_ne_bytes([header[6], header[7]]);
        let seq = u32_at(header, 8)?;
        if length < 16 {
            self.0 = &[];
            return None;
        }
        let end = length.min(self.0.len());
        let body = &self.0[16..end];
        self.0 = &self.0[length.next_multiple_of(4).min(self.0.len())..];
        Some(Message { kind, flags, seq, body })
    }
}

impl<'a> Message<'a> {
    /// The error number of an ERROR message; 0 is an acknowledgement.
    pub(crate) fn error(&self) -> Option<i32> {
        (self.kind == libc::NLMSG_ERROR).then(|| u32_at(self.body, 0).unwrap_or(0) as i32)
    }

    /// The kernel's words about an error.
    fn explanation(&self) -> Option<String> {
        /// NLMSGERR_ATTR_MSG.
        const TEXT: i32 = 1;
        self.explained(TEXT).map(text)
    }

    /// Place of the attribute at fault in the message that was refused, from its beginning.
    fn fault(&self) -> Option<usize> {
        /// NLMSGERR_ATTR_OFFS.
        const OFFSET: i32 = 2;
        Some(u32_at(self.explained(OFFSET)?, 0)? as usize)
    }

    /// One of the attributes behind an error.
    fn explained(&self, wanted: i32) -> Option<&'a [u8]> {
        /// NLM_F_CAPPED and NLM_F_ACK_TLVS: of the request only its header is repeated, and
        /// attributes follow it.
        const EXPLAINED: u16 = 0x100 | 0x200;
        let rest = self.body.get(HEADER..).filter(|_| self.flags & EXPLAINED == EXPLAINED)?;
        attribute(rest, wanted)
    }

    /// The attributes after netfilter's own header.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (i32, &'a [u8])> {
        self.attributes_after(4)
    }

    /// The first attribute of a type after netfilter's own header.
    pub(crate) fn attribute(&self, wanted: i32) -> Option<&'a [u8]> {
        attribute(self.body.get(4..)?, wanted)
    }

    /// The attributes after a fixed part of so many bytes.
    pub(crate) fn attributes_after(&self, fixed: usize) -> impl Iterator<Item = (i32, &'a [u8])> {
        attributes(self.body.get(fixed..).unwrap_or(&[]))
    }
}

/// Attributes as (type without flags, data).
#[inline]
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (i32, &[u8])> {
    simnel_core::netlink::Attributes::new(bytes)
        .map(|attribute| (i32::from(attribute.number), attribute.payload))
}

/// The first attribute of a type.
pub(crate) fn attribute(bytes: &[u8], wanted: i32) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, data)| data)
}

/// A string up to its final zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The error that an ERROR message's number stands for.
fn system_error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number.saturating_neg())
}

/// A message of a transaction that the kernel refused.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The message's number.
    pub(crate) sequence: u32,
    pub(crate) error: io::Error,
    /// Place of the attribute at fault, from the message's beginning, if the kernel told it.
    pub(crate) fault: Option<usize>,
}

impl Failure {
    fn of(sequence: u32, error: io::Error) -> Failure {
        Failure { sequence, error, fault: None }
    }
}

/// The kernel's answers to messages that ask for an acknowledgement, and errors of others.
pub(crate) struct Answers {
    sequence: RangeInclusive<u32>,
    /// Messages without an answer.
    pub(crate) outstanding: usize,
    /// The first error.
    pub(crate) failure: Option<Failure>,
}

impl Answers {
    /// None has come of those to the messages with the numbers `sequence`.
    pub(crate) fn new(sequence: RangeInclusive<u32>) -> Answers {
        Answers { outstanding: sequence.clone().count(), sequence, failure: None }
    }

    /// Takes the messages of one datagram.
    pub(crate) fn take(&mut self, datagram: &[u8]) {
        for message in Messages(datagram) {
            let Some(error) = message.error() else { continue };
            if error != 0 && self.failure.is_none() {
                let fault = message.fault();
                let (sequence, error) = (message.seq, system_error(error));
                self.failure = Some(Failure { sequence, error, fault });
            }
            if self.sequence.contains(&message.seq) {
                self.outstanding = self.outstanding.saturating_sub(1);
            } else if error != 0 && message.seq == BEGIN {
                // Nothing else will come.
                self.outstanding = 0;
            }
        }
    }
}

/// A request that the kernel refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: io::Error,
    /// In the kernel's words, if it had any.
    pub(crate) explanation: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, explanation: None }
    }
}

/// A blocking netfilter socket for requests and their answers.
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Opens the socket; the kernel answers within two seconds or it is an error. Errors do not
    /// repeat what was sent, and are explained.
    pub(crate) fn open() -> io::Result<Socket> {
        Socket::explained(Some(rustix::net::netlink::NETFILTER))
    }

    /// The same for routing, interfaces and traffic control.
    pub(crate) fn open_routing() -> io::Result<Socket> {
        // Protocol 0.
        Socket::explained(None)
    }

    fn explained(protocol: Option<rustix::net::Protocol>) -> io::Result<Socket> {
        let socket = sys::netlink_socket(protocol, PATIENCE)?;
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            sys::set_option(&socket, libc::SOL_NETLINK, option, 1i32)?;
        }
        Ok(Socket(socket))
    }

    /// One end of a pair, whose other end answers in the kernel's place.
    #[cfg(test)]
    pub(crate) fn to(stand_in: OwnedFd) -> Socket {
        Socket(stand_in)
    }

    /// The same socket, whose dumps keep to what a request's fixed part says.
    pub(crate) fn filtered(self) -> io::Result<Socket> {
        sys::set_option(&self.0, libc::SOL_NETLINK, libc::NETLINK_GET_STRICT_CHK, 1i32)?;
        Ok(self)
    }

    /// The descriptor, for a socket that goes on to other work.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Makes room for what a long batch takes, and as many errors as it has messages: otherwise the
    /// kernel has some 200 KB each way.
    fn make_room(&self, writer: &Writer) -> io::Result<()> {
        /// Bytes of messages that need no more room.
        const SHORT: usize = 64 * 1024;
        /// Half of the memory that an answer takes: the kernel doubles it.
        const ANSWER: usize = 512;
        let bytes = writer.bytes().len();
        if bytes <= SHORT {
            return Ok(());
        }
        let messages = Messages(writer.bytes()).count();
        let sizes =
            [(libc::SO_SNDBUFFORCE, bytes), (libc::SO_RCVBUFFORCE, messages.max(256) * ANSWER)];
        sizes.into_iter().try_for_each(|(option, size)| {
            sys::set_option(&self.0, libc::SOL_SOCKET, option, size.min(i32::MAX as usize) as i32)
        })
    }

    /// Sends `writer`'s messages and waits until each of `sequence` is acknowledged, as they asked.
    /// The first error of any message is returned.
    pub(crate) fn transact(
        &self,
        writer: &Writer,
        sequence: RangeInclusive<u32>,
    ) -> Result<(), Failure> {
        let first = *sequence.start();
        self.make_room(writer).map_err(|e| Failure::of(first, e))?;
        sys::send(&self.0, writer.bytes()).map_err(|e| Failure::of(first, e))?;
        let mut answers = Answers::new(sequence);
        let mut buffer = vec![0; 32 * 1024];
        while answers.outstanding > 0 {
            match sys::receive(&self.0, &mut buffer) {
                Ok(n) => answers.take(&buffer[..n]),
                Err(e) => return Err(answers.failure.unwrap_or_else(|| Failure::of(first, e))),
            }
        }
        answers.failure.map_or(Ok(()), Err)
    }

    /// Sends one request that asks for an acknowledgement, and waits for that.
    pub(crate) fn request(&self, writer: &Writer) -> Result<(), Refusal> {
        self.question(writer, |_| {})
    }

    /// The same of one that is answered: `each` is called for the messages before that.
    pub(crate) fn question(
        &self,
        writer: &Writer,
        mut each: impl FnMut(Message<'_>),
    ) -> Result<(), Refusal> {
        sys::send(&self.0, writer.bytes())?;
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let n = sys::receive(&self.0, &mut buffer)?;
            for message in Messages(&buffer[..n]) {
                match message.error() {
                    Some(0) => return Ok(()),
                    Some(error) => {
                        let explanation = message.explanation();
                        return Err(Refusal { error: system_error(error), explanation });
                    }
                    None => each(message),
                }
            }
        }
    }

    /// Sends a dump request and calls `each` for every message of the answer.
    pub(crate) fn dump(
        &self,
        writer: &Writer,
        mut each: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        sys::send(&self.0, writer.bytes())?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let n = sys::receive(&self.0, &mut buffer)?;
            for message in Messages(&buffer[..n]) {
                match message.error() {
                    Some(0) => {}
                    Some(error) => return Err(system_error(error)),
                    None if message.kind == libc::NLMSG_DONE => return Ok(()),
                    None => each(message),
                }
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let mut writer = Writer::default();
        writer.begin(0x0a03, 0, 7, 1, 10);
        writer.string(1, "abc");
        let open = writer.start(2);
        writer.number(3, 0x01020304);
        writer.end(open);
        writer.finish();
        let message = Messages(writer.bytes()).next().unwrap();
        assert_eq!((message.kind, message.seq), (0x0a03, 7));
        let attributes: Vec<_> = message.attributes().collect();
        assert_eq!(attributes[0], (1, &b"abc\0"[..]));
        let inner: Vec<_> = super::attributes(attributes[1].1).collect();
        assert_eq!(inner, [(3, &[1, 2, 3, 4][..])]);
    }

    /// An answer to message `seq`: 0 is an acknowledgement.
    fn answer(seq: u32, error: i32) -> Vec<u8> {
        let mut bytes = 20u32.to_ne_bytes().to_vec();
        bytes.extend((libc::NLMSG_ERROR as u16).to_ne_bytes());
        bytes.extend([0; 2]);
        [&bytes[..], &seq.to_ne_bytes(), &[0; 4], &error.to_ne_bytes()].concat()
    }

    #[test]
    fn the_kernels_words_about_an_error_are_found() {
        let mut writer = Writer::default();
        // The error, and the header of the refused request.
        let fixed = [&(-22i32).to_ne_bytes()[..], &[0; 16]].concat();
        writer.begin_with(libc::NLMSG_ERROR, 0x300, 1, &fixed);
        writer.string(1, "no such word");
        writer.attribute(2, &36u32.to_ne_bytes());
        writer.finish();
        let message = Messages(writer.bytes()).next().unwrap();
        assert_eq!(message.error(), Some(-22));
        assert_eq!(message.explanation().as_deref(), Some("no such word"));
        assert_eq!(message.fault(), Some(36));
        let silent = Message { flags: 0x100, ..message };
        assert_eq!((silent.explanation(), silent.fault()), (None, None));
    }

    #[test]
    fn answers_that_come_twice_or_make_no_sense_do_no_harm() {
        let mut answers = Answers::new(1..=2);
        answers.take(&answer(1, 0));
        assert_eq!((answers.outstanding, answers.failure.is_some()), (1, false));
        answers.take(&[answer(1, 0), answer(1, 0), answer(2, i32::MIN)].concat());
        assert_eq!(answers.outstanding, 0);
        assert_eq!(answers.failure.expect("an error").sequence, 2);
    }

    #[test]
    fn errors_of_messages_that_did_not_ask_are_named_and_the_rest_is_waited_for() {
        let mut writer = Writer::default();
        for seq in 1..=3 {
            writer.begin(0x0a03, 0, seq, 1, 10);
            writer.finish();
        }
        writer.ask();
        let asks = |message: Message<'_>| i32::from(message.flags) & libc::NLM_F_ACK != 0;
        assert_eq!(Messages(writer.bytes()).map(asks).collect::<Vec<_>>(), [false, false, true]);
        let mut answers = Answers::new(3..=3);
        answers.take(&[answer(1, -2), answer(2, -17)].concat());
        assert_eq!(answers.outstanding, 1);
        answers.take(&answer(3, 0));
        assert_eq!(answers.outstanding, 0);
        let Failure { sequence: seq, error, .. } = answers.failure.expect("an error");
        assert_eq!((seq, error.raw_os_error()), (1, Some(2)));
        // The batch as a whole: no message of it will be answered.
        let mut answers = Answers::new(3..=3);
        answers.take(&answer(BEGIN, -1));
        assert_eq!((answers.outstanding, answers.failure.expect("an error").sequence), (0, BEGIN));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic_and_to_an_end() {
        let mut random = simnel_core::random::Random::new(11);
        for _ in 0..20_000 {
            let length = random.below(200) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| random.u32() as u8).collect();
            // Half of them with small lengths, so that the inner layers are reached.
            if length > 24 && random.below(2) == 0 {
                bytes[..4].copy_from_slice(&(random.below(256)).to_ne_bytes());
                bytes[20..22].copy_from_slice(&(random.below(64) as u16).to_ne_bytes());
            }
            let total: usize =
                Messages(&bytes).map(|m| m.attributes().map(|(_, d)| d.len()).sum::<usize>()).sum();
            assert!(total <= length);
        }
    }

    /// A header alone is a message, and an attribute may be a flag without data.
    #[test]
    fn messages_and_attributes_may_be_empty() {
        let mut writer = Writer::default();
        writer.begin_with(7, 0, 1, &[]);
        writer.finish();
        writer.begin_with(8, 0, 2, &[]);
        writer.attribute(3, &[]);
        writer.attribute(4, &[9]);
        writer.finish();
        let read: Vec<_> = Messages(writer.bytes())
            .map(|message| (message.kind, message.attributes_after(0).collect::<Vec<_>>()))
            .collect();
        assert_eq!(read, [(7, vec![]), (8, vec![(3, &[][..]), (4, &[9])])]);
    }
}

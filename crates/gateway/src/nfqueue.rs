//! One NFQUEUE: packets' headers in, verdicts out (linux/netfilter/nfnetlink_queue.h).
//!
//! Packets stay in the kernel until their verdict; only the first bytes are copied. Super-packets
//! are split by the kernel, unless they are asked for (NFQA_CFG_F_GSO). Fail-open thrice: the rule
//! has `bypass`, the queue has NFQA_CFG_F_FAIL_OPEN for when it or the socket is full, and a closed
//! socket removes the queue.
//!
//! Verdicts are separate messages, many in one send, because a discipline's order is not the order
//! of arrival. NFQNL_MSG_VERDICT_BATCH ("all up to this number") serves only to let everything go.
//! Verdicts that the kernel does not take, for lack of memory, are kept and sent again.
//!
//! Nothing allocates after construction.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::error::Error;
use crate::netlink::{Messages, Socket, Writer, HEADER};
use crate::sys::{self, Datagrams};

const SUBSYSTEM: i32 = libc::NFNL_SUBSYS_QUEUE << 8;
const PACKET: i32 = SUBSYSTEM | libc::NFQNL_MSG_PACKET;
const VERDICT: i32 = SUBSYSTEM | libc::NFQNL_MSG_VERDICT;
const CONFIG: i32 = SUBSYSTEM | libc::NFQNL_MSG_CONFIG;
const VERDICT_BATCH: i32 = SUBSYSTEM | libc::NFQNL_MSG_VERDICT_BATCH;

/// Queue numbers that we use: out of the way of the small numbers that people choose by hand.
pub(crate) const QUEUE_NUMBERS: std::ops::RangeInclusive<u16> = 0x51a0..=0x51ff;
/// Bytes of each packet that are copied. IPv6 with two extension headers and TCP with all options
/// is 40 + 2 × 24 + 60; 6in4 takes 20 more.
const COPY_RANGE: u32 = 168;
/// Bytes of a packet message: headers and all attributes that the kernel may add, and the copy.
pub(crate) const MESSAGE_SIZE: usize = 768;
/// Messages of one receive call.
pub(crate) const BATCH: usize = 64;
/// Verdicts of one send call. At 200 Mbit/s and more, some 6 to 60 are due at once.
const VERDICTS: usize = 64;
/// Packets of the longest queue that fits a rate, to which a change of the rate may lead.
pub(crate) const LONGEST: u32 = 32_768;
/// A header, the verdict attribute and the mark attribute.
const VERDICT_SIZE: usize = HEADER + 12 + 8;
/// Bytes of one send call.
const SEND: usize = VERDICTS * VERDICT_SIZE;
/// Receive buffer asked for: some 10,000 messages, each charged about 1 KB.
const RECEIVE_BUFFER: i32 = 16 << 20;

/// A packet as the kernel describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queued<'a> {
    /// The kernel's number for it, for the verdict.
    pub(crate) id: u32,
    /// Its EtherType.
    pub(crate) protocol: u16,
    /// Its first bytes, from the network header on.
    pub(crate) bytes: &'a [u8],
    /// Its length in bytes from the network header on.
    pub(crate) len: u32,
    /// The firewall mark.
    pub(crate) mark: u32,
    /// `skb->priority`.
    pub(crate) priority: u32,
    /// It is several segments in one.
    pub(crate) is_super: bool,
    /// Payload of each of them, where that is known; else 0.
    pub(crate) segment: u16,
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// A packet awaits its verdict.
    Packet(Queued<'a>),
    /// A verdict was for a packet that the kernel no longer has (a hook was removed meanwhile).
    Stale,
    /// Nothing that we know.
    Unknown,
}

/// The kernel's queue, by its socket.
pub(crate) struct Queue {
    socket: Arc<OwnedFd>,
    datagrams: Datagrams,
}

/// Collects verdicts.
pub(crate) struct Verdicts {
    queue: u16,
    /// Room for a verdict on every packet that the kernel can hold for us: never full.
    bytes: Box<[u8]>,
    used: usize,
    /// Sends that the kernel refused; their verdicts were sent again.
    pub(crate) errors: u64,
}

/// Binds to `count` free queue numbers that follow each other, as [`open`] to one.
pub(crate) fn open_all(
    numbers: std::ops::RangeInclusive<u16>,
    count: usize,
    length: u32,
) -> Result<Vec<(u16, Queue, Verdicts)>, Error> {
    let mut all: Vec<(u16, Queue, Verdicts)> = Vec::with_capacity(count);
    let mut next = *numbers.start();
    while all.len() < count {
        let one = open(next..=*numbers.end(), length)?;
        next = one.0 + 1;
        if all.last().is_some_and(|last| last.0 + 1 != one.0) {
            all.clear();
        }
        all.push(one);
    }
    Ok(all)
}

/// Binds to the first free queue number in `numbers` with room for `length` packets.
pub(crate) fn open(
    numbers: std::ops::RangeInclusive<u16>,
    length: u32,
) -> Result<(u16, Queue, Verdicts), Error> {
    let lacks = Error::KernelLacks {
        what: "NFQUEUE (nfnetlink_queue)",
        fix: "`modprobe nfnetlink_queue` (OpenWrt: the package kmod-nfnetlink-queue)",
    };
    let (first, last) = (*numbers.start(), *numbers.end());
    let bound = first_free(numbers, lacks, |socket, number| bind(socket, number, length))?;
    let (number, socket) = bound.ok_or(Error::NoQueueNumber { first, last })?;
    let socket = Arc::new(tune(socket)?);
    let datagrams = Datagrams::new(BATCH, MESSAGE_SIZE);
    Ok((number, Queue { socket, datagrams }, Verdicts::new(number, length)))
}

/// The first of `numbers` to which `bind` gets a socket, with it; None if others have them all.
///
/// # Errors
/// A privilege is missing; or the kernel `lacks` what it takes.
pub(crate) fn first_free(
    numbers: std::ops::RangeInclusive<u16>,
    lacks: Error,
    bind: impl Fn(&Socket, u16) -> io::Result<()>,
) -> Result<Option<(u16, OwnedFd)>, Error> {
    for number in numbers {
        // A fresh socket for each attempt: errors of the last would still be waiting in it.
        let socket = Socket::open().map_err(|e| Error::system("opening a netlink socket", e))?;
        let Err(error) = bind(&socket, number) else {
            return Ok(Some((number, socket.into_fd())));
        };
        match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => {}
            // Also the answer for a number that another socket has.
            Some(libc::EPERM) if has_net_admin() => {}
            Some(libc::EPERM) => return Err(Error::Privilege),
            Some(libc::EINVAL | libc::EOPNOTSUPP) => return Err(lacks),
            _ => return Err(Error::system(format!("binding to netfilter's {number}"), error)),
        }
    }
    Ok(None)
}

fn bind(socket: &Socket, number: u16, length: u32) -> io::Result<()> {
    let mut writer = Writer::default();
    let mut sequence = 0;
    let mut message = |attributes: &dyn Fn(&mut Writer)| {
        sequence += 1;
        writer.begin(CONFIG, libc::NLM_F_ACK, sequence, 0, number);
        attributes(&mut writer);
        writer.finish();
    };
    message(&|w| command(w, libc::NFQNL_CFG_CMD_BIND));
    message(&|w| {
        let mut parameters = [0; 5];
        parameters[..4].copy_from_slice(&COPY_RANGE.to_be_bytes());
        parameters[4] = libc::NFQNL_COPY_PACKET as u8;
        w.attribute(libc::NFQA_CFG_PARAMS, &parameters);
    });
    message(&|w| w.number(libc::NFQA_CFG_QUEUE_MAXLEN, length as i32));
    message(&|w| {
        w.number(libc::NFQA_CFG_MASK, libc::NFQA_CFG_F_FAIL_OPEN | libc::NFQA_CFG_F_GSO);
        w.number(libc::NFQA_CFG_FLAGS, libc::NFQA_CFG_F_FAIL_OPEN);
    });
    socket.transact(&writer, 1..=sequence).map_err(|failure| failure.error)
}

/// A command, and no family: padded to a `struct nfqnl_msg_config_cmd`.
fn command(writer: &mut Writer, command: i32) {
    writer.attribute(libc::NFQA_CFG_CMD, &[command as u8, 0, 0, 0]);
}

fn tune(fd: OwnedFd) -> Result<OwnedFd, Error> {
    let set = |level, name, value: i32| {
        sys::set_option(&fd, level, name, value)
            .map_err(|e| Error::system("setting up the NFQUEUE socket", e))
    };
    set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
    set(libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1)?;
    Ok(fd)
}

/// True if the calling thread has CAP_NET_ADMIN.
pub fn has_net_admin() -> bool {
    const CAP_NET_ADMIN: u32 = 12;
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_none_or(|bits| bits >> CAP_NET_ADMIN & 1 == 1)
}

impl Queue {
    /// Receives what is there, without waiting: how many messages, and whether there may be more.
    pub(crate) fn receive(&mut self) -> io::Result<(usize, bool)> {
        let n = self.datagrams.receive(&self.socket)?;
        Ok((n, n == self.datagrams.capacity()))
    }

    /// Message `index` of the last receive call.
    #[inline]
    pub(crate) fn event(&self, index: usize) -> Event<'_> {
        parse(self.datagrams.get(index))
    }

    /// Sends verdicts; the kernel acts on them before this returns.
    pub(crate) fn send(&mut self, verdicts: &[u8]) -> io::Result<()> {
        sys::send(&self.socket, verdicts)
    }

    /// The socket, for whoever must be able to let packets go without the loop.
    pub(crate) fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads one datagram from the queue. Any bytes give an event; a packet is one as soon as its
/// number is known, because then it needs a verdict.
pub(crate) fn parse(datagram: &[u8]) -> Event<'_> {
    let Some(message) = Messages(datagram).next() else { return Event::Unknown };
    match message.error() {
        Some(0) => return Event::Unknown,
        Some(_) => return Event::Stale,
        None if message.kind != PACKET => return Event::Unknown,
        None => {}
    }
    let mut id = None;
    let mut packet = Queued::default();
    let mut whole_length = None;
    for (kind, data) in message.attributes() {
        let number = data.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        match kind {
            libc::NFQA_PACKET_HDR => {
                id = number;
                let protocol = data.get(4..).and_then(<[u8]>::first_chunk);
                packet.protocol = protocol.map_or(0, |bytes| u16::from_be_bytes(*bytes));
            }
            libc::NFQA_MARK => packet.mark = number.unwrap_or(0),
            libc::NFQA_PAYLOAD => packet.bytes = data,
            libc::NFQA_CAP_LEN => whole_length = number,
            libc::NFQA_PRIORITY => packet.priority = number.unwrap_or(0),
            libc::NFQA_SKB_INFO => {
                packet.is_super = number.unwrap_or(0) & libc::NFQA_SKB_GSO as u32 != 0;
            }
            _ => {}
        }
    }
    let Some(id) = id else { return Event::Unknown };
    packet.id = id;
    packet.len = whole_length.unwrap_or(packet.bytes.len() as u32);
    Event::Packet(packet)
}

impl Verdicts {
    /// Room for verdicts on the packets of `queue`, which holds `length` at most.
    pub(crate) fn new(queue: u16, length: u32) -> Verdicts {
        let room = length.max(LONGEST) as usize + VERDICTS;
        Verdicts {
            queue,
            bytes: vec![0; room * VERDICT_SIZE].into_boxed_slice(),
            used: 0,
            errors: 0,
        }
    }

    /// Lets packet `id` go, with `mark` as its new firewall mark if given.
    #[inline]
    pub(crate) fn accept(&mut self, id: u32, mark: Option<u32>) {
        self.push(id, libc::NF_ACCEPT, mark);
    }

    /// Drops packet `id`.
    #[inline]
    pub(crate) fn drop(&mut self, id: u32) {
        self.push(id, libc::NF_DROP, None);
    }

    fn push(&mut self, id: u32, verdict: i32, mark: Option<u32>) {
        if self.used + VERDICT_SIZE > self.bytes.len() {
            // More verdicts than packets: only what was said twice can be in excess.
            self.errors += 1;
            return;
        }
        let message = verdict_message(VERDICT, self.queue, id, verdict, mark);
        let length = message.len() - if mark.is_some() { 0 } else { 8 };
        self.bytes[self.used..self.used + length].copy_from_slice(&message[..length]);
        self.used += length;
    }

    /// Sends what was collected, in order. What is refused stays for the next time.
    pub(crate) fn flush(&mut self, mut send: impl FnMut(&[u8]) -> io::Result<()>) {
        let mut sent = 0;
        while sent < self.used {
            let end = self.end_of_send(sent);
            if send(&self.bytes[sent..end]).is_err() {
                self.errors += 1;
                break;
            }
            sent = end;
        }
        self.bytes.copy_within(sent..self.used, 0);
        self.used -= sent;
    }

    /// End of a send that begins at `from`: whole messages, as many as fit.
    fn end_of_send(&self, from: usize) -> usize {
        if self.used - from <= SEND {
            return self.used;
        }
        let mut end = from;
        while let Some(length) = self.bytes[end..self.used].first_chunk() {
            let next = end + u32::from_ne_bytes(*length) as usize;
            if next - from > SEND {
                break;
            }
            end = next;
        }
        end
    }

    /// True if verdicts wait to be sent again.
    pub(crate) fn waiting(&self) -> bool {
        self.used > 0
    }
}

/// A verdict; the last eight bytes are for the mark alone.
fn verdict_message(
    kind: i32,
    queue: u16,
    id: u32,
    verdict: i32,
    mark: Option<u32>,
) -> [u8; VERDICT_SIZE] {
    let mut to = [0; VERDICT_SIZE];
    let length = VERDICT_SIZE - if mark.is_some() { 0 } else { 8 };
    to[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
    to[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
    to[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Sequence number, port, family and version are zero.
    to[18..20].copy_from_slice(&queue.to_be_bytes());
    to[20..22].copy_from_slice(&12u16.to_ne_bytes());
    to[22..24].copy_from_slice(&(libc::NFQA_VERDICT_HDR as u16).to_ne_bytes());
    to[24..28].copy_from_slice(&verdict.to_be_bytes());
    to[28..32].copy_from_slice(&id.to_be_bytes());
    if let Some(mark) = mark {
        to[32..34].copy_from_slice(&8u16.to_ne_bytes());
        to[34..36].copy_from_slice(&(libc::NFQA_MARK as u16).to_ne_bytes());
        to[36..40].copy_from_slice(&mark.to_be_bytes());
    }
    to
}

/// A verdict, as [`Verdicts`] writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Number of the packet.
    pub(crate) id: u32,
    /// It goes on, and is not dropped.
    pub(crate) accepts: bool,
    /// Its new firewall mark.
    pub(crate) mark: Option<u32>,
}

/// The verdicts in what [`Verdicts::flush`] sends, for whoever stands in the kernel's place.
pub(crate) fn verdicts(sent: &[u8]) -> impl Iterator<Item = Verdict> + '_ {
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    Messages(sent).filter_map(move |message| {
        let (mut verdict, mut mark) = (None, None);
        for (kind, data) in message.attributes() {
            match kind {
                libc::NFQA_VERDICT_HDR => verdict = number(data).zip(number(data.get(4..)?)),
                libc::NFQA_MARK => mark = number(data),
                _ => {}
            }
        }
        let (verdict, id) = verdict?;
        Some(Verdict { id, accepts: verdict == libc::NF_ACCEPT as u32, mark })
    })
}

/// Lets all go that the kernel holds for `queue`, in the order in which it came. `last_id` is about
/// the number of the last packet; numbers wrap round, so half of them are later than it.
pub(crate) fn accept_all(socket: BorrowedFd<'_>, queue: u16, last_id: u32) -> io::Result<()> {
    let latest = last_id.wrapping_add(1 << 30);
    let message = verdict_message(VERDICT_BATCH, queue, latest, libc::NF_ACCEPT, None);
    sys::send(socket, &message[..VERDICT_SIZE - 8])
}

/// Changes how many packets the kernel keeps at most.
pub(crate) fn set_length(socket: BorrowedFd<'_>, queue: u16, length: u32) -> io::Result<()> {
    let mut writer = Writer::default();
    writer.begin(CONFIG, 0, 0, 0, queue);
    writer.number(libc::NFQA_CFG_QUEUE_MAXLEN, length as i32);
    writer.finish();
    sys::send(socket, writer.bytes())
}

/// Asks for super-packets whole, or split.
pub(crate) fn set_whole(socket: BorrowedFd<'_>, queue: u16, whole: bool) -> io::Result<()> {
    let mut writer = Writer::default();
    writer.begin(CONFIG, 0, 0, 0, queue);
    writer.number(libc::NFQA_CFG_MASK, libc::NFQA_CFG_F_GSO);
    writer.number(libc::NFQA_CFG_FLAGS, if whole { libc::NFQA_CFG_F_GSO } else { 0 });
    writer.finish();
    sys::send(socket, writer.bytes())
}

/// Takes a queue from its socket, also where another process has the socket, too.
pub(crate) fn unbind(socket: BorrowedFd<'_>, queue: u16) -> io::Result<()> {
    let mut writer = Writer::default();
    writer.begin(CONFIG, 0, 0, 0, queue);
    command(&mut writer, libc::NFQNL_CFG_CMD_UNBIND);
    writer.finish();
    sys::send(socket, writer.bytes())
}

/// The kernel's counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KernelCounters {
    /// Packets that await a verdict.
    pub waiting: u32,
    /// Packets dropped, or passed unshaped under fail-open, because the queue was full.
    pub queue_dropped: u64,
    /// Packets dropped because our socket was full.
    pub user_dropped: u64,
    /// Packets that were ever queued.
    pub id_sequence: u64,
}

impl KernelCounters {
    /// Adds another queue's.
    pub(crate) fn join(&mut self, other: &KernelCounters) {
        self.waiting += other.waiting;
        self.queue_dropped += other.queue_dropped;
        self.user_dropped += other.user_dropped;
        self.id_sequence += other.id_sequence;
    }
}

/// The counters of queue `number` in the kernel's list. Each queue has a line: its number, its
/// owner's port, packets that wait, what is copied and how much, drops of both kinds, last number.
pub(crate) fn counters_in(text: &str, number: u16) -> Option<KernelCounters> {
    text.lines().find_map(|line| {
        let fields: Vec<u64> = line.split_whitespace().map_while(|f| f.parse().ok()).collect();
        match fields[..] {
            [queue, _, waiting, _, _, queue_dropped, user_dropped, id_sequence, ..]
                if queue == u64::from(number) =>
            {
                Some(KernelCounters {
                    waiting: waiting as u32,
                    queue_dropped,
                    user_dropped,
                    id_sequence,
                })
            }
            _ => None,
        }
    })
}

/// A queue on a stream, in the place of the kernel's socket.
#[cfg(test)]
pub(crate) fn on_stream(stream: std::os::unix::net::UnixStream) -> (Queue, Verdicts) {
    let datagrams = Datagrams::new(BATCH, MESSAGE_SIZE);
    (Queue { socket: Arc::new(stream.into()), datagrams }, Verdicts::new(5, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_that_the_kernel_refuses_are_sent_again_in_order() {
        use std::os::unix::net::UnixDatagram;
        const PACKETS: u32 = 5_000;
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        kernel.set_nonblocking(true).unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut verdicts = Verdicts::new(7, PACKETS);
        let send = |bytes: &[u8]| ours.send(bytes).map(drop);
        // Nobody reads: after a few sends there is no room.
        for id in 0..PACKETS {
            let mark = (id % 3 == 0).then_some(id);
            verdicts.accept(id, mark);
        }
        verdicts.flush(send);
        assert!(verdicts.errors > 0 && verdicts.waiting());
        let mut seen = 0;
        let mut buffer = [0; 64 * 1024];
        while seen < PACKETS {
            let Ok(n) = kernel.recv(&mut buffer) else {
                assert!(verdicts.waiting(), "only {seen} verdicts came");
                verdicts.flush(send);
                continue;
            };
            assert!(n <= SEND);
            for message in Messages(&buffer[..n]) {
                let attributes: Vec<_> = message.attributes().collect();
                assert_eq!(message.kind, VERDICT);
                let header = [libc::NF_ACCEPT.to_be_bytes(), seen.to_be_bytes()].concat();
                assert_eq!(attributes[0], (2, &header[..]));
                let mark = attributes.get(1).map(|(_, mark)| mark.to_vec());
                assert_eq!(mark, (seen % 3 == 0).then(|| seen.to_be_bytes().to_vec()));
                seen += 1;
            }
        }
        assert!(!verdicts.waiting());
    }

    #[test]
    fn a_packet_message_is_understood_and_any_cut_of_it_is_harmless() {
        let mut writer = Writer::default();
        writer.begin(PACKET, 0, 0, 2, 5);
        writer.attribute(1, &[0, 0, 0, 42, 8, 0, 3]);
        writer.number(3, 0xabcd);
        writer.number(13, 1500);
        writer.number(14, libc::NFQA_SKB_GSO | libc::NFQA_SKB_CSUMNOTREADY);
        writer.attribute(10, &[0x45; 60]);
        writer.number(libc::NFQA_PRIORITY, 0x1_0003);
        writer.finish();
        let expected = Queued {
            id: 42,
            protocol: 0x0800,
            bytes: &[0x45; 60],
            len: 1500,
            mark: 0xabcd,
            priority: 0x1_0003,
            is_super: true,
            segment: 0,
        };
        assert_eq!(parse(writer.bytes()), Event::Packet(expected));
        for cut in 0..writer.bytes().len() {
            if let Event::Packet(packet) = parse(&writer.bytes()[..cut]) {
                assert_eq!(packet.id, 42);
            }
        }
        let mut random = simnel_core::random::Random::new(3);
        for _ in 0..20_000 {
            let mut bytes = writer.bytes().to_vec();
            let at = random.below(bytes.len() as u32) as usize;
            bytes[at] = random.u32() as u8;
            parse(&bytes);
        }
    }

    #[test]
    fn counters_of_a_queue_are_its_own_and_those_of_several_are_added() {
        let text = "    5   4711     3 2   168     7     8      900  1\n\
                    \x20   6   4711 70000 2   168 5000000000 80 9000  1\n";
        let one =
            KernelCounters { waiting: 3, queue_dropped: 7, user_dropped: 8, id_sequence: 900 };
        assert_eq!(counters_in(text, 5), Some(one));
        let mut both = counters_in(text, 6).expect("the second");
        assert_eq!((both.waiting, both.queue_dropped), (70_000, 5_000_000_000));
        both.join(&one);
        let expected = KernelCounters {
            waiting: 70_003,
            queue_dropped: 5_000_000_007,
            user_dropped: 88,
            id_sequence: 9_900,
        };
        assert_eq!((both, counters_in(text, 4)), (expected, None));
    }

    #[test]
    fn a_packet_that_is_none_of_several_segments_says_so() {
        let is_super = |flags| {
            let mut writer = Writer::default();
            writer.begin(PACKET, 0, 0, 2, 5);
            writer.attribute(1, &[0, 0, 0, 42, 8, 0, 3]);
            writer.number(14, flags);
            writer.finish();
            let Event::Packet(packet) = parse(writer.bytes()) else { panic!("a packet") };
            packet.is_super
        };
        assert!(is_super(libc::NFQA_SKB_GSO));
        let mut other = Writer::default();
        other.begin(VERDICT, 0, 0, 2, 5);
        other.attribute(1, &[0, 0, 0, 42, 8, 0, 3]);
        other.finish();
        assert_eq!(parse(other.bytes()), Event::Unknown);
        assert!(!is_super(libc::NFQA_SKB_CSUMNOTREADY | libc::NFQA_SKB_CSUM_NOTVERIFIED));
    }

    #[test]
    fn what_is_in_excess_is_counted_and_sends_are_as_long_as_may_be() {
        let mut verdicts = Verdicts::new(7, 0);
        let room = (LONGEST as usize + VERDICTS) as u32;
        (0..room).for_each(|id| verdicts.accept(id, Some(id)));
        assert_eq!(verdicts.errors, 0);
        verdicts.accept(room, None);
        assert_eq!(verdicts.errors, 1);
        let mut sends = Vec::new();
        verdicts.flush(|bytes| {
            sends.push(bytes.len());
            Ok(())
        });
        assert_eq!(sends.len(), room as usize / VERDICTS);
        assert!(sends.iter().all(|length| *length == SEND) && !verdicts.waiting());
    }
}

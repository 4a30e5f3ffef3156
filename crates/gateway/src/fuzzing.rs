//! The readers of what the kernel sends, for the fuzz targets: nobody else may call them.

use crate::names;
use crate::netlink::{Answers, Messages};
use crate::nfqueue::{parse, Event};

/// A packet that a message of the queue tells of: its number, bytes of it that are there, length.
pub fn queued(datagram: &[u8]) -> Option<(u32, &[u8], u32)> {
    match parse(datagram) {
        Event::Packet(packet) => Some((packet.id, packet.bytes, packet.len)),
        Event::Stale | Event::Unknown => None,
    }
}

/// Bytes of all attributes of all messages of a datagram.
pub fn attributes(datagram: &[u8]) -> usize {
    let length = |(_, data): (i32, &[u8])| data.len();
    Messages(datagram).flat_map(|message| message.attributes().map(length)).sum()
}

/// True if a logged packet, or a packet, holds a message of DNS.
pub fn dns(bytes: &[u8]) -> bool {
    names::reads(bytes)
}

/// Of `messages` numbered from 1, those that `datagrams` leave without an answer, and whether one
/// was refused.
pub fn unanswered<'a>(messages: u32, datagrams: impl Iterator<Item = &'a [u8]>) -> (usize, bool) {
    let mut answers = Answers::new(1..=messages);
    datagrams.for_each(|datagram| answers.take(datagram));
    (answers.outstanding, answers.failure.is_some())
}

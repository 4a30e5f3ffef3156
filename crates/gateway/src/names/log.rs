//! Copies of packets that rules of ours log: NFLOG (linux/netfilter/nfnetlink_log.h).

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::Error;
use crate::netlink::{Messages, Socket, Writer};
use crate::nfqueue::first_free;
use crate::sys::{self, Datagrams};

const CONFIG: i32 = libc::NFNL_SUBSYS_ULOG << 8 | libc::NFULNL_MSG_CONFIG;
const PACKET: i32 = libc::NFNL_SUBSYS_ULOG << 8 | libc::NFULNL_MSG_PACKET;
/// Bytes of each packet that are copied: answers over UDP have no more, as resolvers ask for.
pub(crate) const COPY_RANGE: u32 = 4_096;
/// The copy, and the attributes before it.
const MESSAGE_SIZE: usize = 4_096 + 512;
/// Receive buffer asked for: some 500 copies.
const RECEIVE_BUFFER: i32 = 1 << 20;
/// Messages that are read at a time.
const BATCH: usize = 32;

/// A packet that was logged.
pub(crate) struct Logged<'a> {
    /// By a rule at the hook behind routing.
    pub(crate) leaves: bool,
    /// From the network header on.
    pub(crate) bytes: &'a [u8],
}

/// A log group that is ours.
pub(crate) struct Log {
    pub(crate) group: u16,
    socket: OwnedFd,
    datagrams: Datagrams,
}

impl Log {
    /// Takes the first free group of `numbers`.
    pub(crate) fn open(numbers: RangeInclusive<u16>) -> Result<Log, Error> {
        let (first, last) = (*numbers.start(), *numbers.end());
        let bound = first_free(numbers, LACKS, bind)?;
        let (group, socket) = bound.ok_or(Error::NoLogGroup { first, last })?;
        let socket = tune(socket).map_err(|e| Error::system("setting up the log's socket", e))?;
        Ok(Log { group, socket, datagrams: Datagrams::new(BATCH, MESSAGE_SIZE) })
    }

    /// One of what `socket` tells.
    #[cfg(test)]
    pub(crate) fn of(group: u16, socket: OwnedFd) -> Log {
        Log { group, socket, datagrams: Datagrams::new(BATCH, MESSAGE_SIZE) }
    }

    /// Receives what is there, without waiting: how many messages, and whether there may be more.
    pub(crate) fn receive(&mut self) -> (usize, bool) {
        let read = self.datagrams.receive(&self.socket).unwrap_or(0);
        (read, read == self.datagrams.capacity())
    }

    /// The packet of message `index` of the last call.
    pub(crate) fn packet(&self, index: usize) -> Option<Logged<'_>> {
        parse(self.datagrams.get(index))
    }
}

impl AsFd for Log {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// No logging by netlink.
pub(crate) const LACKS: Error = Error::KernelLacks {
    what: "NFLOG (nft_log and nfnetlink_log), by which rules with `host` see answers of DNS",
    fix: "`modprobe nft_log nfnetlink_log` (OpenWrt: the package kmod-nfnetlink-log), or rules \
          with `address`",
};

fn tune(socket: OwnedFd) -> io::Result<OwnedFd> {
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
    // What is lost in a flood is a copy.
    sys::set_option(&socket, libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1i32)?;
    Ok(socket)
}

fn bind(socket: &Socket, group: u16) -> io::Result<()> {
    let mut writer = Writer::default();
    let mut sequence = 0;
    let mut message = |kind: i32, data: &[u8]| {
        sequence += 1;
        writer.begin(CONFIG, libc::NLM_F_ACK, sequence, 0, group);
        writer.attribute(kind, data);
        writer.finish();
    };
    message(libc::NFULA_CFG_CMD, &[libc::NFULNL_CFG_CMD_BIND as u8]);
    // Range, mode, padding.
    let mut mode = [0; 6];
    mode[..4].copy_from_slice(&COPY_RANGE.to_be_bytes());
    mode[4] = libc::NFULNL_COPY_PACKET as u8;
    message(libc::NFULA_CFG_MODE, &mode);
    // Each packet at once: a client connects as soon as it has the answer.
    message(libc::NFULA_CFG_QTHRESH, &1u32.to_be_bytes());
    socket.transact(&writer, 1..=sequence).map_err(|failure| failure.error)
}

/// The packet of a datagram; any bytes give one or none.
pub(crate) fn parse(datagram: &[u8]) -> Option<Logged<'_>> {
    let message = Messages(datagram).find(|message| message.kind == PACKET)?;
    let (mut leaves, mut bytes) = (None, None);
    for (kind, data) in message.attributes() {
        match kind {
            // EtherType, hook.
            libc::NFULA_PACKET_HDR => {
                leaves = data.get(2).map(|hook| i32::from(*hook) == libc::NF_INET_POST_ROUTING);
            }
            libc::NFULA_PAYLOAD => bytes = Some(data),
            _ => {}
        }
    }
    Some(Logged { leaves: leaves?, bytes: bytes? })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A packet that leaves or arrives, as Linux logs it.
    pub(in super::super) fn copied(leaves: bool, packet: &[u8]) -> Vec<u8> {
        let hook = if leaves { libc::NF_INET_POST_ROUTING } else { libc::NF_INET_PRE_ROUTING };
        let mut writer = Writer::default();
        writer.begin(PACKET, 0, 0, 2, 7);
        writer.attribute(libc::NFULA_PACKET_HDR, &[8, 0, hook as u8, 0]);
        writer.attribute(libc::NFULA_PAYLOAD, packet);
        writer.finish();
        writer.bytes().to_vec()
    }

    /// A packet as Linux logs it: its number and hook, then the copy.
    fn logged(kind: i32, hook: i32, parts: &[i32]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.begin(kind, 0, 0, 2, 7);
        for part in parts {
            match *part {
                libc::NFULA_PACKET_HDR => writer.attribute(*part, &[8, 0, hook as u8, 0]),
                part => writer.attribute(part, b"copy"),
            }
        }
        writer.finish();
        writer.bytes().to_vec()
    }

    #[test]
    fn copies_say_at_which_hook_they_were_made() {
        let parts = [libc::NFULA_PACKET_HDR, libc::NFULA_PREFIX, libc::NFULA_PAYLOAD];
        let read = |bytes: &[u8]| parse(bytes).map(|one| (one.leaves, one.bytes.to_vec()));
        let copy = b"copy".to_vec();
        for (hook, leaves) in
            [(libc::NF_INET_POST_ROUTING, true), (libc::NF_INET_PRE_ROUTING, false)]
        {
            assert_eq!(read(&logged(PACKET, hook, &parts)), Some((leaves, copy.clone())));
        }
        assert_eq!(read(&logged(CONFIG, 0, &parts)), None);
        assert_eq!(read(&logged(PACKET, 0, &parts[..2])), None);
        assert_eq!(read(&logged(PACKET, 0, &parts[1..])), None);
        let whole = logged(PACKET, 4, &parts);
        for length in 0..whole.len() {
            let _ = parse(&whole[..length]);
        }
    }
}

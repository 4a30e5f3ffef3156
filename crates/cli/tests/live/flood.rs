//! Attackers' traffic: whole IPv4 packets through a raw socket, so that a host can have any number
//! of flows without a socket for each.
//!
//! Packets leave every fraction of a millisecond, up to 64 by one sendmmsg, and count once sent.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::IoSlice;
use rustix::net::{
    connect, sendmmsg, socket, AddressFamily, MMsgHdr, Protocol, RawProtocol, SendAncillaryBuffer,
    SendFlags, SocketType,
};
use simnel_testbed::Namespace;

/// A flood from one host.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Address that it is sent to.
    pub to: Ipv4Addr,
    /// Kind of its packets.
    pub packets: Packets,
    /// Packets a second.
    pub rate: u32,
}

/// Kinds of packets in an attack.
#[derive(Clone, Copy, Debug)]
pub enum Packets {
    /// UDP of so many bytes with the IP header, over so many flows in turn.
    Udp { length: u16, flows: u32 },
    /// Acknowledgements of one TCP connection, each of less than the one before.
    FallingAcks,
}

/// An attack under way; it ends when this is dropped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// Packets in one call.
const BURST: usize = 64;
/// Packets a second of one thread, the way to the gateway included, also on a busy processor.
const PACKETS_A_THREAD: u32 = 50_000;
/// A sleep when all that is due has been sent.
const STEP: Duration = Duration::from_micros(200);
/// Flows by source port; further ones have another destination port.
const SOURCE_PORTS: u32 = 50_000;
const IP_HEADER: usize = 20;
const UDP: u8 = 17;
const TCP: u8 = 6;

impl Flood {
    /// Starts to send.
    pub fn start(from: &Namespace, attack: Attack) -> Flood {
        let open = || {
            // IPPROTO_RAW: we write the IP header, but for source, length and checksum.
            let protocol = Protocol::from_raw(RawProtocol::new(255).unwrap());
            let socket = socket(AddressFamily::INET, SocketType::RAW, Some(protocol))?;
            connect(&socket, &SocketAddrV4::new(attack.to, 0))?;
            rustix::io::Result::Ok(socket)
        };
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(AtomicU64::new(0));
        let threads = attack.rate.div_ceil(PACKETS_A_THREAD);
        let spawn = |first| {
            let socket = from.enter(open).unwrap().expect("a raw socket");
            let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
            let part = Attack { rate: attack.rate / threads, ..attack };
            thread::spawn(move || {
                part.run(&socket, u64::from(first), u64::from(threads), &stop, &sent)
            })
        };
        Flood { threads: (0..threads).map(spawn).collect(), stop, sent }
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Attack {
    /// Sends packet number `first`, and from then on each `step`-th.
    fn run(&self, socket: &OwnedFd, first: u64, step: u64, stop: &AtomicBool, count: &AtomicU64) {
        let start = Instant::now();
        let mut packets = vec![self.template(); BURST];
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * f64::from(self.rate)) as u64;
            // What a busy machine kept from being sent is made up for, but not all at once.
            sent = sent.max(due.saturating_sub(u64::from(self.rate) / 50));
            let burst = (due - sent).min(BURST as u64) as usize;
            for (number, packet) in (sent..).zip(&mut packets[..burst]) {
                self.number(packet, first + number * step);
            }
            let parts: Vec<[IoSlice<'_>; 1]> =
                packets[..burst].iter().map(|packet| [IoSlice::new(packet)]).collect();
            let mut control: Vec<_> =
                parts.iter().map(|_| SendAncillaryBuffer::default()).collect();
            let mut messages: Vec<_> = parts
                .iter()
                .zip(&mut control)
                .map(|(part, none)| MMsgHdr::new(part, none))
                .collect();
            // ENOBUFS and the like: not sent, not counted.
            if let Ok(number) = sendmmsg(socket, &mut messages, SendFlags::empty()) {
                count.fetch_add(number as u64, Ordering::Relaxed);
            }
            sent += burst as u64;
            if sent == due {
                thread::sleep(STEP);
            }
        }
    }

    /// A packet but for what tells it from the next.
    fn template(&self) -> Vec<u8> {
        let (length, protocol) = match self.packets {
            Packets::Udp { length, .. } => (usize::from(length), UDP),
            Packets::FallingAcks => (IP_HEADER + 20, TCP),
        };
        let mut packet = vec![0; length];
        packet[0] = 0x45;
        packet[8] = 64;
        packet[9] = protocol;
        packet[16..20].copy_from_slice(&self.to.octets());
        let transport = &mut packet[IP_HEADER..];
        match self.packets {
            Packets::Udp { length, .. } => {
                // No checksum.
                transport[4..6].copy_from_slice(&(length - IP_HEADER as u16).to_be_bytes());
            }
            Packets::FallingAcks => {
                transport[..2].copy_from_slice(&40_000u16.to_be_bytes());
                transport[2..4].copy_from_slice(&443u16.to_be_bytes());
                // Five words of header, ACK alone.
                transport[12..14].copy_from_slice(&[0x50, 0x10]);
                transport[14..16].copy_from_slice(&1000u16.to_be_bytes());
            }
        }
        packet
    }

    fn number(&self, packet: &mut [u8], number: u64) {
        let transport = &mut packet[IP_HEADER..];
        match self.packets {
            Packets::Udp { flows, .. } => {
                let flow = (number % u64::from(flows)) as u32;
                let source = 10_000 + (flow % SOURCE_PORTS) as u16;
                let destination = 9_000 + (flow / SOURCE_PORTS) as u16;
                transport[..2].copy_from_slice(&source.to_be_bytes());
                transport[2..4].copy_from_slice(&destination.to_be_bytes());
            }
            Packets::FallingAcks => {
                let acknowledged = u32::MAX.wrapping_sub((number as u32).wrapping_mul(1448));
                transport[8..12].copy_from_slice(&acknowledged.to_be_bytes());
            }
        }
    }
}

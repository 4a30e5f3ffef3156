//! Recordings as plans for the kernel module's driver (`kernel/test/replay`): whole packets instead
//! of descriptors.
//!
//! A plan is a line with the discipline's words, and then, little-endian, what `struct plan` and
//! `struct arrival` of `replay.c` say.

use std::net::IpAddr;

use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement, Timestamp};
use etherparse::{
    IpDscp, IpEcn, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header,
    PacketBuilder, TcpHeader, UdpHeader,
};
use simnel_core::tick::Tick;
use simnel_core::Packet;

use super::format::{FlowKeys, FormatError, Link, Recording};
use super::linux_device;
use super::owner::{descriptor, LINK_HEADER};
use super::row::{Arrival, Tcp};

/// Window of all TCP headers in the recordings.
const WINDOW: u16 = 501;
/// As Linux sends.
const HOPS: u8 = 64;

/// The plan of `recording`, or why there is none.
pub fn plan(recording: &Recording) -> Result<Vec<u8>, FormatError> {
    let device = linux_device(recording)?;
    let (hz, wheel) = match device.tick {
        Tick::Exact => (0, false),
        Tick::Jiffies { hz, wheel } => (hz, wheel),
    };
    let rate = match recording.link {
        Link::InfinitelyFast => 0,
        Link::BitsPerSecond(rate) => rate,
    };
    let mut plan = format!("{}\n", recording.words.join(" ")).into_bytes();
    for number in [device.seed, recording.start.0, recording.end.0, rate] {
        plan.extend(number.to_le_bytes());
    }
    for number in [hz, wheel.into(), recording.arrivals.len() as u32, 0] {
        plan.extend(number.to_le_bytes());
    }
    for (id, arrival) in recording.arrivals.iter().enumerate() {
        let headers = headers(arrival, &recording.flows[arrival.flow]).map_err(|problem| {
            FormatError::whole(recording.full_name().as_ref(), format!("packet {id}: {problem}"))
        })?;
        let Packet { flow, src_host, dst_host, len, truesize, class, .. } =
            descriptor(recording, id);
        plan.extend(arrival.time.0.to_le_bytes());
        plan.extend(flow.to_le_bytes());
        for number in [src_host, dst_host, len, truesize, class, headers.len() as u32] {
            plan.extend(number.to_le_bytes());
        }
        let padding = headers.len().next_multiple_of(8) - headers.len();
        plan.extend(headers);
        plan.extend(&[0; 8][..padding]);
    }
    Ok(plan)
}

/// The packet's headers, from Ethernet's to that of TCP or UDP, as they stand before zeros only.
fn headers(arrival: &Arrival, flow: &FlowKeys) -> Result<Vec<u8>, String> {
    let (protocol, [source, destination]) =
        flow.ends().ok_or_else(|| format!("`{}` is no five-tuple", flow.tuple))?;
    let ip = ip_header(arrival.tos, IpNumber(protocol), [source.0, destination.0])?;
    let transport = arrival.tcp.map_or(UdpHeader::LEN, |tcp| tcp.header_len() as usize);
    let length = LINK_HEADER as usize + ip.header_len() + transport;
    let payload = (arrival.len as usize)
        .checked_sub(length)
        .ok_or_else(|| format!("{} bytes, but {length} of headers", arrival.len))?;
    let (mut bytes, payload) = (Vec::new(), vec![0; payload]);
    let packet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ip(ip);
    let written = match arrival.tcp {
        Some(tcp) => {
            let header = tcp_header(&tcp, [source.1, destination.1])?;
            packet.tcp_header(header).write(&mut bytes, &payload)
        }
        None => packet.udp(source.1, destination.1).write(&mut bytes, &payload),
    };
    written.map_err(|error| error.to_string())?;
    bytes.truncate(length);
    Ok(bytes)
}

fn ip_header(tos: u8, protocol: IpNumber, ends: [IpAddr; 2]) -> Result<IpHeaders, String> {
    match ends {
        [IpAddr::V4(source), IpAddr::V4(destination)] => {
            let (source, destination) = (source.octets(), destination.octets());
            let header = Ipv4Header::new(0, HOPS, protocol, source, destination);
            let mut header = header.map_err(|error| error.to_string())?;
            header.dscp = IpDscp::try_new(tos >> 2).map_err(|error| error.to_string())?;
            header.ecn = IpEcn::try_new(tos & 3).map_err(|error| error.to_string())?;
            Ok(IpHeaders::Ipv4(header, Ipv4Extensions::default()))
        }
        [IpAddr::V6(source), IpAddr::V6(destination)] => {
            let header = Ipv6Header {
                traffic_class: tos,
                next_header: protocol,
                hop_limit: HOPS,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            Ok(IpHeaders::Ipv6(header, Ipv6Extensions::default()))
        }
        [source, destination] => Err(format!("{source} and {destination} are of two families")),
    }
}

fn tcp_header(tcp: &Tcp, [source, destination]: [u16; 2]) -> Result<TcpHeader, String> {
    let mut header = TcpHeader::new(source, destination, tcp.seq, WINDOW);
    header.acknowledgment_number = tcp.ack;
    let flags = [
        &mut header.fin,
        &mut header.syn,
        &mut header.rst,
        &mut header.psh,
        &mut header.ack,
        &mut header.urg,
        &mut header.ece,
        &mut header.cwr,
    ];
    for (bit, flag) in flags.into_iter().enumerate() {
        *flag = tcp.flags >> bit & 1 != 0;
    }
    let mut options = Vec::new();
    if let Some((value, echo)) = tcp.timestamp {
        options.extend([Noop, Noop, Timestamp(value, echo)]);
    }
    let blocks = &tcp.sack[..usize::from(tcp.sack_count)];
    if let [first, rest @ ..] = blocks {
        let mut others = [None; 3];
        others.iter_mut().zip(rest).for_each(|(other, block)| *other = Some(*block));
        options.extend([Noop, Noop, SelectiveAcknowledgement(*first, others)]);
    }
    header.set_options(&options).map_err(|error| error.to_string())?;
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use simnel_core::flow::{FlowHasher, HashKey};
    use simnel_core::wire::{ack_view, Classifier, LinkLayer};

    use super::*;

    /// The parser finds in the headers what the recording's descriptors say.
    #[test]
    fn headers_say_what_was_recorded() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/golden");
        let classifier = Classifier::new(FlowHasher::new(HashKey::new(1, 2), 128));
        for name in ["cake-ackfilter/sack-aggressive", "cake-fairness/hosts-24flows"] {
            let recording = Recording::read(&golden.join(name)).unwrap();
            assert!(!recording.arrivals.is_empty(), "{name}");
            for (id, arrival) in recording.arrivals.iter().enumerate() {
                let flow = &recording.flows[arrival.flow];
                let headers = headers(arrival, flow).unwrap();
                let view = ack_view(LinkLayer::Ethernet, &headers);
                assert_eq!(view, arrival.ack_view(flow.ipv6), "{name}, packet {id}");
                let found = classifier.classify(LinkLayer::Ethernet, &headers, arrival.len, 0);
                let described = descriptor(&recording, id);
                assert_eq!(found.len, described.len, "{name}, packet {id}");
                assert_eq!(found.tos, described.tos, "{name}, packet {id}");
                assert_eq!(found.flags, described.flags, "{name}, packet {id}");
                assert_eq!(found.truesize, described.truesize, "{name}, packet {id}");
            }
        }
    }
}

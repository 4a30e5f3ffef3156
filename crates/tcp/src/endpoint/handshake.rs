//! The handshake (RFC 9293, section 3.5), and the options that both ends agree upon in it.

use super::{work, Endpoint};
use crate::clock::Now;
use crate::config::{Config, EcnMode};
use crate::segment::{Segment, TcpFlags};
use crate::state::State;

/// The MSS of a peer that does not say (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Largest buffer that an application may ask for on Linux (`net.core.rmem_max`): a window of that
/// can be stated, whatever autotuning may do.
const RMEM_MAX: u32 = 212_992;
/// Bytes of timestamps with their padding.
const TIMESTAMPS_LEN: u32 = 12;

/// Options: what this side wants until the handshake, what both do after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Negotiated {
    mss: u16,
    sack: bool,
    pub(super) timestamps: bool,
    /// Window scale, plus one; zero for none.
    pub(super) scale: u8,
    ecn: EcnMode,
    peer_mss: u16,
}

impl Negotiated {
    /// The wishes of an end with the settings `config`.
    pub(super) fn wanted(config: &Config) -> Negotiated {
        let largest = config.rcvbuf_max.max(config.rcvbuf / 2).max(RMEM_MAX);
        Negotiated {
            mss: config.advertised_mss(),
            sack: config.sack,
            timestamps: config.timestamps,
            scale: if config.window_scaling { window_scale(largest) + 1 } else { 0 },
            ecn: config.ecn,
            peer_mss: DEFAULT_MSS,
        }
    }
}

impl Endpoint {
    /// Before the connection stands. True if the segment is to be looked at further.
    #[cold]
    pub(super) fn take_handshake(&mut self, segment: &Segment, now: &Now) -> bool {
        let (syn, ack) = (segment.flags.has(TcpFlags::SYN), segment.flags.has(TcpFlags::ACK));
        match self.state {
            State::Listen if syn && !ack => {
                self.negotiate(segment);
                self.state = State::SynReceived;
                self.sender.open();
                self.work |= work::SEND;
                false
            }
            State::SynSent if segment.flags.has(TcpFlags::RST) => {
                self.die();
                false
            }
            State::SynSent if syn && ack && segment.ack == 1 => {
                self.negotiate(segment);
                self.establish(segment, now);
                self.work |= work::HANDSHAKE;
                false
            }
            State::SynReceived if segment.flags.has(TcpFlags::RST) => {
                self.die();
                false
            }
            State::SynReceived if syn => {
                self.sender.repeat_head();
                self.work |= work::SEND;
                false
            }
            State::SynReceived if ack && segment.ack >= 1 => {
                self.establish(segment, now);
                true
            }
            _ => false,
        }
    }

    /// Settles the options by the other side's SYN.
    fn negotiate(&mut self, syn: &Segment) {
        let mine = &mut self.negotiated;
        mine.sack &= syn.sack_permitted;
        mine.timestamps &= syn.timestamps;
        if syn.window_scale == 0 {
            mine.scale = 0;
            self.receiver.window.disable_scaling();
        }
        self.receiver.window.scale_by(mine.scale.saturating_sub(1));
        mine.peer_mss = if syn.mss == 0 { DEFAULT_MSS } else { syn.mss };
        let asked = syn.flags.has(TcpFlags::ECE);
        let agreed = if syn.flags.has(TcpFlags::ACK) {
            asked
                && !syn.flags.has(TcpFlags::CWR)
                && mine.ecn != EcnMode::Off
                && mine.ecn != EcnMode::Passive
        } else {
            asked && syn.flags.has(TcpFlags::CWR) && mine.ecn != EcnMode::Off
        };
        self.sender.ecn = agreed;
        self.sender.sack = mine.sack;
        self.receiver.negotiate_sack(mine.sack);
        self.receiver.nxt = syn.end_seq();
        self.receiver.window.acked = self.receiver.nxt;
        self.receiver.ts_recent = syn.ts_val;
        let options = if mine.timestamps { TIMESTAMPS_LEN } else { 0 };
        let answer = !syn.flags.has(TcpFlags::ACK);
        self.receiver.start(u32::from(mine.peer_mss), options, agreed, answer);
    }

    /// The other side has acknowledged our SYN.
    fn establish(&mut self, segment: &Segment, now: &Now) {
        self.state = State::Established;
        self.events.connected = true;
        self.receiver.window.start_measuring(now);
        let lost_no_syn = self.sender.answers_first_syn(segment);
        self.sender.on_ack(segment, now);
        let options = if self.negotiated.timestamps { TIMESTAMPS_LEN } else { 0 };
        let mss = u32::from(self.negotiated.mss.min(self.negotiated.peer_mss));
        self.sender.start(mss.saturating_sub(options).max(1), lost_no_syn, now);
        self.work |= work::SEND;
        self.settle_state();
    }

    #[cold]
    pub(super) fn compose_syn(&mut self, now: &Now) -> Segment {
        let answer = self.state == State::SynReceived;
        let mut segment = self.blank(TcpFlags::SYN, now);
        segment.mss = self.negotiated.mss;
        segment.sack_permitted = self.negotiated.sack;
        // RFC 7323, section 2.2: a window beside SYN is not scaled, and no multiple of the unit.
        segment.window = self.receiver.window.offered;
        if answer {
            segment.flags.set(TcpFlags::ACK);
            segment.ack = self.receiver.nxt;
            segment.ts_echo = self.receiver.ts_recent;
            if self.sender.ecn {
                segment.flags.set(TcpFlags::ECE);
            }
        } else if matches!(self.negotiated.ecn, EcnMode::On | EcnMode::Accurate) {
            segment.flags.set(TcpFlags::ECE | TcpFlags::CWR);
        }
        segment
    }
}

/// The least shift that lets 16 bits state a window of `buffer` bytes (RFC 7323, at most 14).
fn window_scale(buffer: u32) -> u8 {
    let mut scale = 0;
    while scale < 14 && (buffer >> scale) > 65_535 {
        scale += 1;
    }
    scale
}

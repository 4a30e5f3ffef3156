//! A packet socket for copies of the headers of passing TCP.
//!
//! A filter leaves out what has no timestamp where everybody writes it. At most [`ROOM`] bytes of
//! copies wait.

use libc::sock_filter;

use crate::frames::{FrameError, PacketSocket};
use crate::sys;

/// Half the bytes that copies may fill, as the kernel counts them: some 450 packets, or 15
/// super-packets.
const ROOM: libc::c_int = 512 << 10;

const LOAD: u32 = libc::BPF_LD;
const BYTE: u32 = libc::BPF_B;
const HALF: u32 = libc::BPF_H;
const WORD: u32 = libc::BPF_W;
/// SKF_NET_OFF of linux/filter.h: from the network header on.
const NETWORK: u32 = -0x10_0000i32 as u32;
/// SKF_AD_OFF and SKF_AD_PROTOCOL of the same: the EtherType.
const ETHER_TYPE: u32 = -0x1000i32 as u32;
const TCP: u32 = 6;
/// Two fillers, kind and length of the timestamps (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 0x0101_080a;

const fn load(size: u32, at: u32) -> sock_filter {
    instruction(LOAD | size | libc::BPF_ABS, at, 0, 0)
}

/// Loads from the TCP header, which begins at the index register.
const fn of_tcp(size: u32, at: u32) -> sock_filter {
    instruction(LOAD | size | libc::BPF_IND, NETWORK.wrapping_add(at), 0, 0)
}

const fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

const fn equal(k: u32, jt: u8, jf: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, jt, jf)
}

/// TCP over IPv4, of no later fragment, or over IPv6 without extension headers, with timestamps as
/// the first options. Jumps count instructions from the next one on.
const FILTER: [sock_filter; 19] = [
    load(HALF, ETHER_TYPE),
    equal(0x86dd, 8, 0),
    equal(0x0800, 0, 15),
    load(BYTE, NETWORK + 9),
    equal(TCP, 0, 13),
    load(HALF, NETWORK + 6),
    instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0x1fff, 11, 0),
    load(BYTE, NETWORK),
    instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0x0f, 0, 0),
    instruction(libc::BPF_JMP | libc::BPF_JA, 3, 0, 0),
    load(BYTE, NETWORK + 6),
    equal(TCP, 0, 6),
    instruction(LOAD | libc::BPF_IMM, 40 / 4, 0, 0),
    instruction(libc::BPF_ALU | libc::BPF_LSH | libc::BPF_K, 2, 0, 0),
    instruction(libc::BPF_MISC | libc::BPF_TAX, 0, 0, 0),
    of_tcp(WORD, 20),
    equal(TIMESTAMPS, 0, 1),
    // All of it: to cut a copy off, the kernel would make another one.
    instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0, 0),
    sys::NOTHING,
];

/// A socket for all this, of no interface yet. Needs CAP_NET_RAW.
pub(crate) fn copies() -> Result<PacketSocket, FrameError> {
    PacketSocket::overhearing(&mut FILTER.clone(), ROOM)
}

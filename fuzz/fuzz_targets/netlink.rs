//! Messages of the kernel: none panics, and none gives more bytes than it has.
//!
//! The first byte is a number of messages that wait for their acknowledgement.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_fuzz::seeds;
use simnel_gateway::fuzzing::{attributes, queued, unanswered};

/// Longest datagram that is taken for one of several.
const DATAGRAM: usize = 64;

fuzz_target!(init: seeds::write(seeds::netlink()), |bytes: &[u8]| {
    let Some((messages, datagram)) = bytes.split_first() else { return };
    if let Some((_, packet, _)) = queued(datagram) {
        assert!(packet.len() < datagram.len());
    }
    assert!(attributes(datagram) <= datagram.len());
    let messages = u32::from(*messages);
    let (left, _) = unanswered(messages, datagram.chunks(DATAGRAM));
    assert!(left <= messages as usize);
});

//! A target that must fail: it shows that the set-up finds what there is to find.
//!
//! It claims that no input is an IPv6 packet with a TCP header in it. That is false only for inputs
//! that get three comparisons in the parser right. Blind luck does not within the runs given.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::packet::Flags;
use simnel_core::wire::{Classifier, LinkLayer};

fuzz_target!(|bytes: &[u8]| {
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(1, 2), 128));
    let packet = classifier.classify(LinkLayer::Ethernet, bytes, 1514, 0);
    assert!(!packet.flags.has(Flags::IPV6 | Flags::TCP), "the canary has been found");
});

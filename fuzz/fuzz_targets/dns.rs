//! Messages of DNS in logged packets, and packets themselves: none panics, and all come to an end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_fuzz::seeds;
use simnel_gateway::fuzzing::dns;

fuzz_target!(init: seeds::write(seeds::dns()), |bytes: &[u8]| {
    dns(bytes);
});

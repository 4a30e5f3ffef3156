//! The contract of every discipline, under random operations. See `simnel_fuzz::contract`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    simnel_fuzz::contract::exercise(simnel_fuzz::disciplines::build, bytes);
});

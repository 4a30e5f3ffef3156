//! The contract of every discipline, under random operations. See `support::contract`. The first
//! byte chooses the discipline.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_fuzz::seeds;
use simnel_fuzz::support::contract::exercise;
use simnel_fuzz::support::table::{make, DISCIPLINES};

fuzz_target!(init: seeds::write(seeds::disciplines()), |bytes: &[u8]| {
    let Some((choice, operations)) = bytes.split_first() else { return };
    let (words, _) = DISCIPLINES[usize::from(*choice) % DISCIPLINES.len()];
    exercise(make(words), operations);
});

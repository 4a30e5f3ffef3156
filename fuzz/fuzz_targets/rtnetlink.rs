//! Netlink options of any bytes for each discipline that has them. They give an error that names
//! the attribute, or settings with which the discipline keeps the contract. See `support::netlink`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_fuzz::seeds;
use simnel_fuzz::support::netlink::check;

fuzz_target!(init: seeds::write(seeds::requests_for_disciplines()), |bytes: &[u8]| check(bytes));

//! Checks of every discipline, in one place. There are a table of disciplines, random operations
//! decoded from bytes, the contract that must hold whatever happens, and a saturated line.
//!
//! Included by the property tests beside it and by the fuzz targets, which feed the same driver.
//! proptest and libFuzzer both make bytes, and both shrink them. Every discipline is under all of
//! it; what one promises beyond the contract is a line in [`table`].

// Each of the test binaries that include this uses a part of it.
#![allow(dead_code)]

pub mod contract;
pub mod input;
pub mod netlink;
pub mod packets;
pub mod saturation;
pub mod table;

//! 1/sqrt(count), by which CoDel's family spaces its signals (RFC 8289, section 5), in Q0.32.
//!
//! [`Arithmetic::Exact`] computes it by an integer square root: right to the last bit for every
//! count. [`Arithmetic::Linux`] does as Linux's cake. For counts below 16 there is a table; from 16
//! on it takes one Newton step from the last value, `x' = x * (3 - count * x^2) / 2`. That is
//! 0.16 % off at 16, 0.001 % at 200, and loses bits again above 10^5. Linux up to 6.11 filled the
//! table by four Newton steps from each entry to the next, which leaves 1/sqrt(2) short by 0.06 %.
//! Since 6.12 the table is right to the last bits.

use crate::rate::{Arithmetic, Release};

/// Roots of counts below 16 in Linux.
const TABLE: [u32; 16] = table(4);
/// The same since 6.12.
const TABLE_6_12: [u32; 16] = {
    let mut table = table(8);
    // Written down in Linux, where this one is rounded up.
    table[10] += 1;
    table
};

/// Roots of counts below 16 by so many Newton steps from each to the next.
const fn table(steps: u32) -> [u32; 16] {
    let mut table = [u32::MAX; 16];
    let mut count = 1;
    while count < table.len() {
        let mut x = table[count - 1];
        let mut step = 0;
        while step < steps {
            x = newton_step(x, count as u32);
            step += 1;
        }
        table[count] = x;
        count += 1;
    }
    table
}

/// The root for `count`, given that of a neighbouring count. Saturates for 0 and 1.
#[inline]
pub fn next(arithmetic: Arithmetic, previous: u32, count: u32) -> u32 {
    match arithmetic {
        // 2^32 / sqrt(count) = sqrt(2^64 / count).
        Arithmetic::Exact => (u64::MAX / u64::from(count.max(1))).isqrt() as u32,
        Arithmetic::Linux(release) => {
            let table = if release >= Release::V6_12 { &TABLE_6_12 } else { &TABLE };
            match table.get(count as usize) {
                Some(&root) => root,
                None => newton_step(previous, count),
            }
        }
    }
}

/// As [`next`] for CoDel proper, of whose root Linux keeps the upper 16 bits, without a table. The
/// root is 1.5 % off at 2 (the first step from 1), less than 0.2 % from 5 on.
#[inline]
pub fn next_short(arithmetic: Arithmetic, previous: u32, count: u32) -> u32 {
    match arithmetic {
        Arithmetic::Exact => next(arithmetic, previous, count),
        Arithmetic::Linux(_) => newton_step(previous, count) & !0xffff,
    }
}

const fn newton_step(x: u32, count: u32) -> u32 {
    let x = x as u64;
    let square = (x * x) >> 32;
    // Two bits are given up before the second multiplication, so that it fits 64 bits.
    let correction = (3u64 << 32).wrapping_sub(count as u64 * square) >> 2;
    (correction.wrapping_mul(x) >> 31) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative error of `x` as 1/sqrt(count), in units of 2^-32 (to first order).
    fn error(x: u32, count: u32) -> u64 {
        let product = (u128::from(x) * u128::from(x) * u128::from(count)) >> 32;
        (product.abs_diff(1 << 32) / 2) as u64
    }

    #[test]
    fn exact_roots_are_within_a_65536th_up_to_a_million() {
        for count in 1..=1_000_000 {
            let x = next(Arithmetic::Exact, 0, count);
            assert!(error(x, count) < 1 << 16, "count {count}: {x}");
        }
    }

    #[test]
    fn short_roots_as_recorded() {
        // `rec_inv_sqrt` in codel/default-overload: counts 5 and 10 of a spell from 1.
        let mut x = 0xffff_0000;
        let roots: std::vec::Vec<u32> = (2..=10)
            .map(|count| {
                x = next_short(Arithmetic::LINUX, x, count);
                x >> 16
            })
            .collect();
        assert_eq!((roots[3], roots[8]), (28_935, 20_647));
    }

    #[test]
    fn roots_of_small_counts_are_right_since_6_12() {
        for count in 1..16 {
            let root = next(Arithmetic::Linux(Release::V6_12), 0, count);
            assert!(root.abs_diff(next(Arithmetic::Exact, 0, count)) <= 1, "count {count}: {root}");
        }
    }

    #[test]
    fn linux_roots_as_recorded_and_never_far_off() {
        // `rec_inv_sqrt` at count 2 in recordings of Linux 6.1.
        assert_eq!(next(Arithmetic::LINUX, 0, 2), 3_035_289_760);
        let mut x = 0;
        for count in (1..=1_000_000).chain((1..1_000_000).rev()) {
            x = next(Arithmetic::LINUX, x, count);
            let bound = if count < 400 { 1 << 23 } else { 1 << 19 };
            assert!(error(x, count) < bound, "count {count}: {x} is off by {}", error(x, count));
        }
    }
}

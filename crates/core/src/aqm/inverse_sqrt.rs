//! 1/sqrt(count) as CoDel's family keeps it: one Newton step a change, an exact table for small counts.
//!
//! The spacing of drops shrinks with the square root of their count (RFC 8289, section 5.3). Between
//! two neighbouring counts the root changes little, so one Newton step from the last value suffices:
//! `x' = x * (3 - count * x^2) / 2`. Below 16 the step from one count to the next is too large for
//! that, in particular between 1 and 2, and the value is looked up.

/// Counts below this are looked up.
const TABLE_LEN: usize = 16;

/// 2^32 / sqrt(count), as Linux's cake holds it since 2024; the first two saturate.
const TABLE: [u32; TABLE_LEN] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

/// 1/sqrt(`count`) in Q0.32, given that of a neighbouring count.
#[inline]
pub fn next(previous: u32, count: u32) -> u32 {
    match TABLE.get(count as usize) {
        Some(&exact) => exact,
        None => newton_step(previous, count),
    }
}

#[inline]
fn newton_step(x: u32, count: u32) -> u32 {
    let x = u64::from(x);
    let square = (x * x) >> 32;
    // Two bits are given up before the second multiplication, so that it fits 64 bits.
    let correction = (3u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
    (correction.wrapping_mul(x) >> 31) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_close_to_the_root_up_to_a_million_and_back() {
        let mut x = 0;
        let check = |x: u32, count: u32| {
            // |x^2 * count - 1| < 2 * 2^-16, in integers.
            let product = (u128::from(x) * u128::from(x) * u128::from(count)) >> 32;
            let error = product.abs_diff(1 << 32);
            assert!(error < 1 << 17, "count {count}: x {x} is off by {error} / 2^32");
        };
        for count in 1..=1_000_000 {
            x = next(x, count);
            check(x, count);
        }
        for count in (1..1_000_000).rev() {
            x = next(x, count);
            check(x, count);
        }
    }
}

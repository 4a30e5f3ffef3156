//! Division of what 64 bits do not hold, by divisions of 64 bits: a kernel has no other.
//!
//! Compilers make a call of `__udivti3` of what is written as `/`. In the data path of a kernel
//! module that is foreign code, which `kernel/check` does not let pass.

use core::num::NonZeroU64;

/// The whole part of `n / by`; nothing is divided by zero, which counts as one.
#[inline]
pub(crate) fn quotient(n: u128, by: u64) -> u128 {
    let by = NonZeroU64::new(by).unwrap_or(NonZeroU64::MIN);
    match n >> 64 {
        0 => (n as u64 / by).into(),
        _ => long(n, by),
    }
}

/// As [`quotient`], rounded up.
#[inline]
pub(crate) fn quotient_up(n: u128, by: u64) -> u128 {
    quotient(n.saturating_add(by.saturating_sub(1) as u128), by)
}

/// Long division: with digits of 32 bits where the divisor has one, else with binary ones.
#[cold]
#[inline(never)]
fn long(n: u128, by: NonZeroU64) -> u128 {
    let (high, mut low) = ((n >> 64) as u64, n as u64);
    let (first, mut rest) = (high / by, high % by);
    if by.get() >> 32 == 0 {
        let middle = (rest << 32) | (low >> 32);
        let last = ((middle % by) << 32) | (low & 0xffff_ffff);
        return (u128::from(first) << 64) | u128::from(((middle / by) << 32) | (last / by));
    }
    for _ in 0..u64::BITS {
        let overflows = rest >> 63 == 1;
        (rest, low) = ((rest << 1) | (low >> 63), low << 1);
        if overflows || rest >= by.get() {
            (rest, low) = (rest.wrapping_sub(by.get()), low | 1);
        }
    }
    (u128::from(first) << 64) | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The quotients are those of the compiler's division.
    fn check(n: u128, by: u64) {
        assert_eq!(quotient(n, by), n / u128::from(by), "{n} / {by}");
        let up = n.checked_add(u128::from(by) - 1).map(|_| n.div_ceil(u128::from(by)));
        assert!(up.is_none_or(|up| quotient_up(n, by) == up), "{n} / {by}, up");
    }

    #[test]
    fn powers_of_two_and_their_neighbours() {
        let edges = |bits: u32| [(1u128 << bits) - 1, 1 << bits, (1 << bits) + 1];
        let edges: std::vec::Vec<u128> = [0, 1, 30, 31, 32, 33, 62, 63, 64, 65, 95, 96, 126, 127]
            .into_iter()
            .flat_map(edges)
            .collect();
        for (&n, &by) in edges.iter().flat_map(|n| edges.iter().map(move |by| (n, by))) {
            if by > 0 && by <= u64::MAX.into() {
                check(n, by as u64);
            }
        }
        for by in [1, 2, 1_000_000_000, u64::MAX] {
            check(u128::MAX, by);
        }
    }

    #[test]
    fn all_lengths_of_both_alike() {
        let mut random = Random::new(9);
        for _ in 0..1_000_000 {
            let n =
                ((u128::from(random.u64()) << 64) | u128::from(random.u64())) >> random.below(128);
            check(n, (random.u64() >> random.below(64)).max(1));
        }
    }
}

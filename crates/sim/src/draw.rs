//! Random draws from the distributions of traffic models, without floats.
//!
//! Logarithm and power of two are in fixed point (Q32: 32 fractional bits), by repeated squaring
//! and by a table of square roots. They are accurate to about 2^-30, and the same on every machine.
//! Inverse transforms (Devroye 1986, chapter 2) make the rest of them.

use simnel_core::random::Random;

/// One in Q32.
const ONE: u64 = 1 << 32;
/// ln 2 in Q32.
const LN_2: u64 = 2_977_044_472;
/// 1 / ln 2 in Q32.
const LOG2_E: u64 = 6_196_328_019;

/// 2^(2^-k) in Q62 for k = 1..=32, each the root of the one before.
const ROOTS: [u64; 32] = roots();

const fn roots() -> [u64; 32] {
    let mut roots = [0; 32];
    let mut square: u128 = 2 << 62;
    let mut k = 0;
    while k < 32 {
        square = root(square << 62);
        roots[k] = square as u64;
        k += 1;
    }
    roots
}

const fn root(n: u128) -> u128 {
    let mut low = 0u128;
    let mut high = 1u128 << 64;
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle * middle <= n {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// log2(n) in Q32; `n` in whole numbers, not zero.
fn log2(n: u64) -> u64 {
    let whole = 63 - n.leading_zeros();
    let mut fraction = 0;
    // 1 <= x < 2 in Q63.
    let mut x = u128::from(n) << (63 - whole);
    let mut bit = ONE >> 1;
    while bit > 0 {
        x = (x * x) >> 63;
        if x >> 64 != 0 {
            x >>= 1;
            fraction |= bit;
        }
        bit >>= 1;
    }
    u64::from(whole) << 32 | fraction
}

/// 2^(x) for x in Q32, in Q32; at most 2^31.
fn exp2(x: u64) -> u64 {
    let whole = (x >> 32).min(31);
    let mut value: u128 = 1 << 62;
    for (k, root) in ROOTS.iter().enumerate() {
        if x >> (31 - k) & 1 == 1 {
            value = (value * u128::from(*root)) >> 62;
        }
    }
    ((value << whole) >> 30) as u64
}

/// -log2(u) in Q32 for an evenly drawn u in (0, 1].
fn minus_log2(random: &mut Random) -> u64 {
    let drawn = (random.u64() >> 32).max(1);
    (32 << 32) - log2(drawn)
}

/// An exponentially distributed number with this mean: at most 22 times it.
pub(crate) fn exponential(random: &mut Random, mean: u64) -> u64 {
    let nats = (u128::from(minus_log2(random)) * u128::from(LN_2)) >> 32;
    ((u128::from(mean) * nats) >> 32) as u64
}

/// A Pareto distributed number: at least `least`, with shape `numerator / denominator`, and at
/// most `most`.
pub(crate) fn pareto(
    random: &mut Random,
    least: u64,
    (numerator, denominator): (u64, u64),
    most: u64,
) -> u64 {
    let power = u128::from(minus_log2(random)) * u128::from(denominator) / u128::from(numerator);
    let factor = exp2(power.min(31 << 32) as u64);
    ((u128::from(least) * u128::from(factor)) >> 32).min(u128::from(most)) as u64
}

/// A log-normally distributed number: its median, and its standard deviation in thousandths of a
/// nat. The normal is the sum of twelve even draws (Irwin-Hall), cut at six deviations.
pub(crate) fn log_normal(random: &mut Random, median: u64, sigma_milli: u64) -> u64 {
    let sum: u64 = (0..12).map(|_| random.u64() >> 32).sum();
    // In Q32: the deviation from the mean of six.
    let (distance, above) = (sum.abs_diff(6 << 32), sum > 6 << 32);
    let nats = u128::from(distance) * u128::from(sigma_milli) / 1000;
    let factor = exp2(((nats * u128::from(LOG2_E)) >> 32).min(31 << 32) as u64).max(ONE);
    if above {
        ((u128::from(median) * u128::from(factor)) >> 32) as u64
    } else {
        ((u128::from(median) << 32) / u128::from(factor)) as u64
    }
}

/// A number between `low` and `high`, both included, all equally likely.
pub(crate) fn between(random: &mut Random, (low, high): (u64, u64)) -> u64 {
    let width = u128::from(high.saturating_sub(low)) + 1;
    low + ((u128::from(random.u64()) * width) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_power_agree_with_floats() {
        for n in [1u64, 2, 3, 10, 1000, 123_456_789, u32::MAX as u64] {
            let exact = (n as f64).log2();
            assert!((log2(n) as f64 / ONE as f64 - exact).abs() < 1e-8, "{n}");
        }
        for x in [0.0, 0.25, 1.0, 3.7, 20.123, 30.99] {
            let got = exp2((x * ONE as f64) as u64) as f64 / ONE as f64;
            assert!((got / x.exp2() - 1.0).abs() < 1e-7, "{x}: {got}");
        }
    }

    /// Both ends included, each as likely.
    #[test]
    fn even_draws_reach_both_ends() {
        let mut random = Random::new(3);
        let mut seen = [0; 4];
        for _ in 0..4_000 {
            seen[between(&mut random, (7, 10)) as usize - 7] += 1;
        }
        assert!(seen.iter().all(|count| (900..1_100).contains(count)), "{seen:?}");
        assert_eq!(between(&mut random, (5, 5)), 5);
        assert_eq!(between(&mut random, (5, 3)), 5);
        let all: Vec<u64> = (0..100).map(|_| between(&mut random, (0, u64::MAX))).collect();
        assert!(all.iter().any(|n| *n > u64::MAX / 2) && all.iter().any(|n| *n < u64::MAX / 2));
    }

    #[test]
    fn means_and_medians_are_as_asked() {
        let mut random = Random::new(5);
        let n = 200_000u64;
        let mean: u64 = (0..n).map(|_| exponential(&mut random, 1_000_000)).sum::<u64>() / n;
        assert!(mean.abs_diff(1_000_000) < 10_000, "{mean}");
        let mut sizes: Vec<u64> = (0..n).map(|_| log_normal(&mut random, 5000, 1500)).collect();
        sizes.sort_unstable();
        assert!(sizes[n as usize / 2].abs_diff(5000) < 100);
        // 84 % lie below one deviation above.
        let deviation = (5000.0 * 1.5f64.exp()) as u64;
        assert!(sizes[n as usize * 8413 / 10_000].abs_diff(deviation) < deviation / 40);
        let mut tail: Vec<u64> =
            (0..n).map(|_| pareto(&mut random, 1000, (6, 5), u64::MAX)).collect();
        tail.sort_unstable();
        assert!(tail[0] >= 1000 && tail[0] < 1005);
        let median = (1000.0 * 2f64.powf(5.0 / 6.0)) as u64;
        assert!(tail[n as usize / 2].abs_diff(median) < median / 50);
    }
}

//! Rates, and the time that bytes take at a rate.
//!
//! A [`Rate`] is in bytes per second, the unit in which `tc` and netlink speak. [`ByteTime`] turns
//! bytes into nanoseconds by one multiplication and one shift: `ns = bytes * mult >> shift`. What
//! the shift cuts off is carried to the next call by [`ByteTime::charge`]. So a clock driven by it
//! neither gains nor loses over hours, from 64 bit/s to beyond 100 Gbit/s.
//!
//! Linux's cake keeps a 34-bit `mult` and drops what the shift cuts off, up to 1 ns a packet. Of
//! the 5.12 ns of 64 bytes at 100 Gbit/s that is 0.12 ns. [`Arithmetic::Linux`] reproduces it for
//! comparison with recordings; only the numbers in [`ByteTime`] differ, never the code path.

use crate::time::Span;
use crate::wide::quotient;

/// A data rate in bytes per second; zero stands for "unlimited" where a rate is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate(pub u64);

impl Rate {
    /// A rate given in bits per second, rounded down to whole bytes per second.
    pub const fn from_bits(bits_per_second: u64) -> Rate {
        Rate(bits_per_second / 8)
    }
    /// Bytes per second.
    pub const fn bytes(self) -> u64 {
        self.0
    }
    /// Bits per second.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
    /// True for the zero rate, which stands for "no limit".
    pub const fn is_unlimited(self) -> bool {
        self.0 == 0
    }
}

/// Rounding of numbers that are not whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// The remainder of a packet's time is carried: no drift. Roots are exact.
    #[default]
    Exact,
    /// As Linux, for comparison with its recordings. The reciprocal of a rate has 34 bits, and each
    /// packet's time is cut to whole nanoseconds. What else a release computes in its own way is
    /// computed so, too.
    Linux(Release),
}

/// Releases of Linux between which decisions differ. One that is not named here decides as the last
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 6.1.
    V6_1,
    /// 6.12: COBALT's roots of counts below 16 are right to the last bits, by a table.
    V6_12,
    /// 7.3: CoDel sends no two signals at one time and 256 in one call at most. BLUE asks the dice
    /// for no packet that COBALT drops already. cake's `autorate-ingress` pauses between two rates.
    V7_3,
}

impl Arithmetic {
    /// As Linux 6.1.
    pub const LINUX: Arithmetic = Arithmetic::Linux(Release::V6_1);

    /// True if it is that of Linux since `release`.
    #[inline]
    pub fn is_since(self, release: Release) -> bool {
        matches!(self, Arithmetic::Linux(own) if own >= release)
    }
}

/// Converts bytes to time at a fixed rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteTime {
    /// Nanoseconds a byte, scaled by 2^shift.
    mult: u64,
    shift: u32,
    /// Bits of the fraction that are carried to the next packet: all (exact) or none (Linux).
    carry: u64,
}

impl ByteTime {
    /// Linux refuses to compute with less (facts A.3): 64 bytes a second.
    pub const MIN_RATE: u64 = 64;
    /// Longest packet: the 512 KiB of Linux's largest super-packets. On the line it may be longer:
    /// each of its segments has headers, and cells, of its own.
    pub const MOST_BYTES: u32 = 1 << 19;
    /// Bits of `mult` that leave room for [`ByteTime::MOST_BYTES`] and a remainder in 64 bits; what
    /// is longer takes 128.
    const EXACT_BITS: u32 = 44;
    /// Bits of `mult` in Linux's cake.
    const LINUX_BITS: u32 = 34;

    /// The conversion for `rate`; an unlimited rate takes no time.
    pub fn new(rate: Rate, arithmetic: Arithmetic) -> ByteTime {
        if rate.is_unlimited() {
            return ByteTime::default();
        }
        let rate = rate.0.max(Self::MIN_RATE);
        match arithmetic {
            Arithmetic::Exact => ByteTime::exact(rate),
            Arithmetic::Linux(_) => {
                let mut mult = (1_000_000_000u64 << Self::LINUX_BITS) / rate;
                let mut shift = Self::LINUX_BITS;
                while mult >> Self::LINUX_BITS != 0 {
                    mult >>= 1;
                    shift -= 1;
                }
                ByteTime { mult, shift, carry: 0 }
            }
        }
    }

    fn exact(rate: u64) -> ByteTime {
        let mut shift = 63;
        let scaled = |shift| quotient((1_000_000_000u128 << shift) + u128::from(rate / 2), rate);
        while scaled(shift) >> Self::EXACT_BITS != 0 {
            shift -= 1;
        }
        ByteTime { mult: scaled(shift) as u64, shift, carry: (1 << shift) - 1 }
    }

    /// As [`ByteTime::new`], for the shapers of Linux that have a rate table (`tbf`, `htb`). Their
    /// reciprocals have 32 bits, and there is no lowest rate but one byte a second.
    pub fn of_bucket(rate: Rate, arithmetic: Arithmetic) -> ByteTime {
        let rate = rate.0.max(1);
        match arithmetic {
            Arithmetic::Exact => ByteTime::exact(rate),
            Arithmetic::Linux(_) => {
                let scaled = |shift: u32| quotient(1_000_000_000u128 << shift, rate);
                let full = |shift: &u32| scaled(*shift) >> 31 != 0;
                let shift = (0..34).find(full).unwrap_or(34);
                ByteTime { mult: scaled(shift) as u64, shift, carry: 0 }
            }
        }
    }

    /// Time of `bytes`, rounded down.
    #[inline]
    pub fn of(&self, bytes: u32) -> Span {
        self.charge(bytes, &mut 0)
    }

    /// Time of `bytes` for a clock that keeps `remainder` between calls. Start it at zero, and
    /// again when the rate changes.
    #[inline]
    pub fn charge(&self, bytes: u32, remainder: &mut u64) -> Span {
        if bytes > Self::MOST_BYTES {
            return self.charge_long(bytes, remainder);
        }
        let scaled = u64::from(bytes) * self.mult + *remainder;
        *remainder = scaled & self.carry;
        Span(scaled >> self.shift)
    }

    /// As [`ByteTime::charge`], for any number of bytes.
    #[cold]
    fn charge_long(&self, bytes: u32, remainder: &mut u64) -> Span {
        let scaled = u128::from(bytes) * u128::from(self.mult) + u128::from(*remainder);
        *remainder = scaled as u64 & self.carry;
        Span((scaled >> self.shift) as u64)
    }

    /// True if it rounds nothing away.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.carry != 0
    }

    /// `(mult, shift)`: nanoseconds a byte times 2^shift.
    pub fn reciprocal(&self) -> (u64, u32) {
        (self.mult, self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_eight_to_a_byte_as_far_as_they_can_be_counted() {
        for (rate, bits) in [(0, 0), (1, 8), (125_000, 1_000_000), (u64::MAX / 4, u64::MAX)] {
            assert_eq!(Rate(rate).bits(), bits);
        }
        assert_eq!(Rate::from_bits(1_000_007), Rate(125_000));
        // Only Linux's arithmetic cuts off, where there is anything to cut off.
        for (arithmetic, exact) in [(Arithmetic::Exact, true), (Arithmetic::LINUX, false)] {
            assert_eq!(ByteTime::new(Rate(7), arithmetic).is_exact(), exact);
            assert_eq!(ByteTime::of_bucket(Rate(7), arithmetic).is_exact(), exact);
        }
    }

    #[test]
    fn linux_reciprocals_as_recorded() {
        // rate_Bps, rate_ns, rate_shft of recordings.
        for (rate, mult, shift) in [
            (75_000, 13_981_013_333, 20),
            (1_250_000, 13_421_772_800, 24),
            (2_500_000, 13_421_772_800, 25),
        ] {
            assert_eq!(ByteTime::new(Rate(rate), Arithmetic::LINUX).reciprocal(), (mult, shift));
        }
    }

    #[test]
    fn reciprocals_of_buckets_as_recorded() {
        // rate, mult, shift of golden/tbf and golden/htb.
        for (rate, mult, shift) in [
            (625_000, 3_355_443_200, 21),
            (750_000, 2_796_202_666, 21),
            (250_000, 4_194_304_000, 20),
            (375_000, 2_796_202_666, 20),
            (1_250_000, 3_355_443_200, 22),
        ] {
            let conversion = ByteTime::of_bucket(Rate(rate), Arithmetic::LINUX);
            assert_eq!(conversion.reciprocal(), (mult, shift));
        }
        let slow = ByteTime::of_bucket(Rate(1), Arithmetic::Exact);
        assert_eq!(slow.of(3), Span(3_000_000_000));
    }

    #[test]
    fn an_exact_clock_does_not_drift() {
        // 64 kbit .. 100 Gbit, an hour of packets of awkward sizes: at most 1 ns off the quotient.
        for bits in [64_000, 600_000, 9_999_999, 1_000_000_007, 100_000_000_000u64] {
            let rate = Rate::from_bits(bits);
            let conversion = ByteTime::new(rate, Arithmetic::Exact);
            let (mut clock, mut remainder, mut bytes) = (0u64, 0u64, 0u64);
            let mut size = 64;
            for _ in 0..2_000_000u32 {
                clock += conversion.charge(size, &mut remainder).0;
                bytes += u64::from(size);
                size = 64 + (size * 7 + 13) % 1451;
            }
            let ideal = (u128::from(bytes) * 1_000_000_000 / u128::from(rate.0)) as u64;
            // The reciprocal has 43 significant bits at least.
            assert!(clock.abs_diff(ideal) <= 1 + (ideal >> 43), "{bits}: {clock} against {ideal}");
        }
    }

    #[test]
    fn any_length_takes_its_time_at_any_rate() {
        const MOST: u32 = ByteTime::MOST_BYTES;
        for rate in (0..64).map(|shift| u64::MAX >> shift).chain([1, 64, 8_000, 12_500_000_000]) {
            let conversion = ByteTime::new(Rate(rate), Arithmetic::Exact);
            let (mut clock, mut remainder, mut bytes) = (0u64, 0, 0u64);
            for length in [0, 1, MOST - 1, MOST, MOST + 1, 2 * MOST, 41 << 20, u32::MAX] {
                let before = clock;
                clock += conversion.charge(length, &mut remainder).0;
                bytes += u64::from(length);
                let least = u128::from(length) * 1_000_000_000 / u128::from(rate.max(64));
                assert!(clock - before >= (least - (least >> 43)).saturating_sub(1) as u64);
                assert!((clock - before).abs_diff(conversion.of(length).0) <= 1);
            }
            let ideal = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(64));
            let off = u128::from(clock).abs_diff(ideal);
            assert!(off <= 1 + (ideal >> 43), "{rate}: {clock} against {ideal}");
            ByteTime::new(Rate(rate), Arithmetic::LINUX).of(u32::MAX);
        }
    }

    #[test]
    fn unlimited_takes_no_time() {
        let conversion = ByteTime::new(Rate(0), Arithmetic::Exact);
        assert_eq!(conversion.of(1514), Span::ZERO);
    }
}

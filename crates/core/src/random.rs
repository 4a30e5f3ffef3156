//! Seeded pseudo-random numbers: xorshift64 (Marsaglia 2003, triple 13, 7, 17).
//!
//! One generator a component, each seeded from the root seed, so that runs repeat bit for bit.
//! Narrow numbers are the *high* bits of one step. The golden recordings draw theirs in the same
//! way, so seeding this generator with a recording's seed is all the injection that they need.

/// A xorshift64 generator: 64 bits of state, period 2^64 - 1. Not for secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that starts at `seed`. Zero, from which xorshift never leaves, is replaced.
    pub const fn new(seed: u64) -> Random {
        Random { state: if seed == 0 { 0x9e37_79b9_7f4a_7c15 } else { seed } }
    }

    /// The seed of component number `stream` under the root seed `root` (splitmix64's mixer).
    pub const fn derive(root: u64, stream: u64) -> Random {
        let mut z = root.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random::new(z ^ (z >> 31))
    }

    /// The seed of a generator that goes on where this one is.
    pub const fn seed(&self) -> u64 {
        self.state
    }

    /// One step: all 64 bits.
    #[inline]
    pub fn u64(&mut self) -> u64 {
        let mut s = self.state;
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        self.state = s;
        s
    }

    /// The high 32 bits of one step.
    #[inline]
    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    /// The high 16 bits of one step.
    #[inline]
    pub fn u16(&mut self) -> u16 {
        (self.u64() >> 48) as u16
    }

    /// A key of sixteen bytes, drawn as Linux draws one: four bytes a step.
    pub fn key(&mut self) -> [u64; 2] {
        let mut word = || u64::from(self.u32()) | u64::from(self.u32()) << 32;
        [word(), word()]
    }

    /// A number in `0..bound` by one step (bias below 2^-32; `bound` must not be zero).
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mixer's first numbers from a seed of zero (Steele, Lea and Flood 2014).
    #[test]
    fn seeds_of_components_are_those_of_splitmix64() {
        let first = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        for (stream, seed) in (0..).zip(first) {
            assert_eq!(Random::derive(0, stream), Random::new(seed));
        }
    }

    #[test]
    fn streams_differ_and_zero_is_usable() {
        assert_ne!(Random::derive(1, 0).u64(), Random::derive(1, 1).u64());
        assert_ne!(Random::new(0).u64(), 0);
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.below(10) < 10));
    }
}

//! Tiers: which of them each code point falls into (facts A.2).
//!
//! The maps are those of Linux's cake: per mode a short list of the code points that leave the
//! default tier, from which the 64-entry tables are built at compile time. Invariants: every entry
//! is below the tier count; `order` is a permutation of the tiers.

/// Tiers and their code points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffservMode {
    /// Bulk, Best Effort, Voice.
    #[default]
    Diffserv3,
    /// Bulk, Best Effort, Video, Voice.
    Diffserv4,
    /// Eight tiers by purpose.
    Diffserv8,
    /// One tier.
    Besteffort,
    /// Eight tiers by the three precedence bits.
    Precedence,
}

/// The tiers of one [`DiffservMode`].
#[derive(Debug, PartialEq, Eq)]
pub struct Tiers {
    /// Tier of each code point, by *internal index*: the higher one wins while within its rate.
    pub tin_of: [u8; 64],
    /// Internal indices in the order in which statistics list the tiers (and in which firewall
    /// marks and classes count them, from 1).
    pub order: &'static [u8],
}

impl Tiers {
    /// Number of tiers, 1..=8.
    pub const fn count(&self) -> usize {
        self.order.len()
    }
}

/// Which code points go to which tier.
pub const fn tiers(mode: DiffservMode) -> &'static Tiers {
    match mode {
        DiffservMode::Diffserv3 => &DIFFSERV3,
        DiffservMode::Diffserv4 => &DIFFSERV4,
        DiffservMode::Diffserv8 => &DIFFSERV8,
        DiffservMode::Besteffort => &BESTEFFORT,
        DiffservMode::Precedence => &PRECEDENCE,
    }
}

/// The tier that a code point falls into, as a place in the order of statistics.
pub fn listed_tin(mode: DiffservMode, dscp: u8) -> usize {
    let tiers = tiers(mode);
    let internal = tiers.tin_of[usize::from(dscp & 63)];
    tiers.order.iter().position(|&tin| tin == internal).unwrap_or(0)
}

/// Best Effort has index 0 so that Bulk, index 1, outranks it while below its sixteenth of the
/// rate; statistics put Bulk first.
const BULK_FIRST: [u8; 4] = [1, 0, 2, 3];
const ASCENDING: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

static DIFFSERV3: Tiers = Tiers {
    // Bulk: LE, CS1. Voice: the old TOS "low delay" (4), VA, EF, CS6, CS7.
    tin_of: table(0, &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])]),
    order: BULK_FIRST.split_at(3).0,
};

static DIFFSERV4: Tiers = Tiers {
    // Bulk: LE, CS1. Video: TOS 4, CS2, AF2x, CS3, AF3x, AF4x. Voice: CS4, CS5, VA, EF, CS6, CS7.
    tin_of: table(
        0,
        &[
            (1, &[1, 8]),
            (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
            (3, &[32, 40, 44, 46, 48, 56]),
        ],
    ),
    order: &BULK_FIRST,
};

static DIFFSERV8: Tiers = Tiers {
    // LE; high throughput (TOS 2, CS1, AF1x); the rest; streaming (CS3, AF3x, AF4x); transactions
    // (TOS 4, AF2x); shells (CS2); least latency (CS4, CS5, VA, EF); network control (CS6, CS7).
    tin_of: table(
        2,
        &[
            (0, &[1]),
            (1, &[2, 8, 10, 12, 14]),
            (3, &[24, 26, 28, 30, 34, 36, 38]),
            (4, &[4, 18, 20, 22]),
            (5, &[16]),
            (6, &[32, 40, 44, 46]),
            (7, &[48, 56]),
        ],
    ),
    order: &ASCENDING,
};

static BESTEFFORT: Tiers = Tiers { tin_of: table(0, &[]), order: ASCENDING.split_at(1).0 };

static PRECEDENCE: Tiers = Tiers { tin_of: by_precedence(), order: &ASCENDING };

/// All code points in tier `rest`, except those listed.
const fn table(rest: u8, listed: &[(u8, &[u8])]) -> [u8; 64] {
    let mut table = [rest; 64];
    let mut list = 0;
    while list < listed.len() {
        let (tin, dscps) = listed[list];
        let mut i = 0;
        while i < dscps.len() {
            table[dscps[i] as usize] = tin;
            i += 1;
        }
        list += 1;
    }
    table
}

/// The upper three bits: IP precedence (RFC 791).
const fn by_precedence() -> [u8; 64] {
    let mut table = [0; 64];
    let mut dscp = 0;
    while dscp < 64 {
        table[dscp] = (dscp >> 3) as u8;
        dscp += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const MODES: [DiffservMode; 5] = [
        DiffservMode::Diffserv3,
        DiffservMode::Diffserv4,
        DiffservMode::Diffserv8,
        DiffservMode::Besteffort,
        DiffservMode::Precedence,
    ];

    /// Code points that went to tier `tin`.
    fn members(mode: DiffservMode, tin: u8) -> Vec<u8> {
        (0..64).filter(|dscp| tiers(mode).tin_of[*dscp as usize] == tin).collect()
    }

    /// One character a code point, 0 to 63: the tier in which Linux 6.1 put it (golden recordings
    /// cake-tins/map-*: three packets of each code point at each of three rates).
    #[test]
    fn all_code_points_go_where_linux_puts_them() {
        let recorded = [
            "0100200010000000000000000000000000000000000020202000000020000000",
            "0100200010000000202020202020202030202020300030303000000030000000",
            "2012422212121212524242423232323262323232622262627222222272222222",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000011111111222222223333333344444444555555556666666677777777",
        ];
        for (mode, tins) in MODES.into_iter().zip(recorded) {
            let expected: Vec<u8> = tins.bytes().map(|digit| digit - b'0').collect();
            assert_eq!(tiers(mode).tin_of.as_slice(), expected, "{mode:?}");
        }
    }

    #[test]
    fn orders_are_permutations() {
        for mode in MODES {
            let tiers = tiers(mode);
            let mut order = tiers.order.to_vec();
            order.sort_unstable();
            assert_eq!(order, (0..tiers.count() as u8).collect::<Vec<u8>>());
            assert!(tiers.tin_of.iter().all(|tin| usize::from(*tin) < tiers.count()));
        }
        // Bulk is listed first, Voice last.
        let order = tiers(DiffservMode::Diffserv4).order;
        assert_eq!(members(DiffservMode::Diffserv4, order[0]), [1, 8]);
        assert_eq!(members(DiffservMode::Diffserv4, order[3]), [32, 40, 44, 46, 48, 56]);
        let listed = [8, 0, 34, 46].map(|dscp| listed_tin(DiffservMode::Diffserv4, dscp));
        assert_eq!(listed, [0, 1, 2, 3]);
    }
}

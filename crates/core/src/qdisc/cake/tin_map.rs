//! The maps from code points to tins (facts A.2).
//!
//! The maps are those of Linux's cake. Each mode has a short list of the code points that leave the
//! default tin; the 64-entry tables are built from these at compile time. Invariants: every entry
//! is below the tin count; `order` is a permutation of the tins.

/// Tins and their code points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffservMode {
    /// Bulk, Best Effort, Voice.
    #[default]
    Diffserv3,
    /// Bulk, Best Effort, Video, Voice.
    Diffserv4,
    /// Eight tins by purpose.
    Diffserv8,
    /// One tin.
    Besteffort,
    /// Eight tins by the three precedence bits.
    Precedence,
}

/// The tins of one [`DiffservMode`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TinMap {
    /// Index of each code point's tin: the higher one wins while within its rate.
    tin_of: [u8; 64],
    /// Indices in the order in which statistics list the tins (and in which firewall marks and
    /// classes count them, from 1).
    order: &'static [u8],
}

impl TinMap {
    /// Number of tins, 1..=8.
    pub(super) const fn count(&self) -> usize {
        self.order.len()
    }

    /// Index of the tin that a code point falls into.
    #[inline(always)]
    pub(super) fn tin_index_of(&self, dscp: u8) -> usize {
        usize::from(self.tin_of[usize::from(dscp & 63)])
    }

    /// Index of the tin that statistics list at `place`, if there is one.
    pub(super) fn listed(&self, place: usize) -> Option<usize> {
        self.order.get(place).map(|&tin_index| usize::from(tin_index))
    }

    /// Index of the `number`th tin of statistics, if there is one: the first is 1.
    pub(super) fn numbered(&self, number: u32) -> Option<usize> {
        self.listed((number as usize).checked_sub(1)?)
    }

    /// Index of the tin that the bits `mask` of a firewall mark ask for.
    pub(super) fn marked(&self, mask: u32, mark: u32) -> Option<usize> {
        if mask == 0 {
            return None;
        }
        self.numbered((mark & mask) >> mask.trailing_zeros())
    }

    /// Place at which statistics list the tin.
    pub(super) fn place(&self, tin_index: usize) -> usize {
        self.order.iter().position(|&other| usize::from(other) == tin_index).unwrap_or(0)
    }
}

/// The map of `mode` from code points to tins.
pub(super) const fn tin_map(mode: DiffservMode) -> &'static TinMap {
    match mode {
        DiffservMode::Diffserv3 => &DIFFSERV3,
        DiffservMode::Diffserv4 => &DIFFSERV4,
        DiffservMode::Diffserv8 => &DIFFSERV8,
        DiffservMode::Besteffort => &BESTEFFORT,
        DiffservMode::Precedence => &PRECEDENCE,
    }
}

/// Best Effort has index 0 so that Bulk, index 1, outranks it while below its sixteenth of the
/// rate; statistics put Bulk first.
const BULK_FIRST: [u8; 4] = [1, 0, 2, 3];
const ASCENDING: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

static DIFFSERV3: TinMap = TinMap {
    // Bulk: LE, CS1. Voice: the old TOS "low delay" (4), VA, EF, CS6, CS7.
    tin_of: table(0, &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])]),
    order: BULK_FIRST.split_at(3).0,
};

static DIFFSERV4: TinMap = TinMap {
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

static DIFFSERV8: TinMap = TinMap {
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

static BESTEFFORT: TinMap = TinMap { tin_of: table(0, &[]), order: ASCENDING.split_at(1).0 };

static PRECEDENCE: TinMap = TinMap { tin_of: by_precedence(), order: &ASCENDING };

/// All code points in tin `rest`, except those listed.
const fn table(rest: u8, listed: &[(u8, &[u8])]) -> [u8; 64] {
    let mut table = [rest; 64];
    let mut list = 0;
    while list < listed.len() {
        let (tin_index, dscps) = listed[list];
        let mut i = 0;
        while i < dscps.len() {
            table[dscps[i] as usize] = tin_index;
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

    /// Code points of a tin.
    fn members(mode: DiffservMode, tin_index: u8) -> Vec<u8> {
        (0..64).filter(|dscp| tin_map(mode).tin_of[*dscp as usize] == tin_index).collect()
    }

    /// One character a code point, 0 to 63: the tin in which Linux 6.1 put it. (Golden recordings
    /// cake-tins/map-*: three packets of each code point at each of three rates.)
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
            assert_eq!(tin_map(mode).tin_of.as_slice(), expected, "{mode:?}");
        }
    }

    #[test]
    fn orders_are_permutations() {
        for mode in MODES {
            let map = tin_map(mode);
            let mut order = map.order.to_vec();
            order.sort_unstable();
            assert_eq!(order, (0..map.count() as u8).collect::<Vec<u8>>());
            assert!(map.tin_of.iter().all(|index| usize::from(*index) < map.count()));
        }
        // Bulk is listed first, Voice last.
        let order = tin_map(DiffservMode::Diffserv4).order;
        assert_eq!(members(DiffservMode::Diffserv4, order[0]), [1, 8]);
        assert_eq!(members(DiffservMode::Diffserv4, order[3]), [32, 40, 44, 46, 48, 56]);
        let map = tin_map(DiffservMode::Diffserv4);
        assert_eq!([8, 0, 34, 46].map(|dscp| map.place(map.tin_index_of(dscp))), [0, 1, 2, 3]);
        // A mark's bits count them from 1.
        let places = [0x00, 0x1f, 0x42, 0x5f].map(|mark| map.marked(0xf0, mark));
        assert_eq!(places, [None, map.listed(0), map.listed(3), None]);
        assert_eq!(map.marked(0, 1), None);
    }
}

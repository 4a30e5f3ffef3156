//! Differentiated services code points and the tiers that CAKE gives them (facts A.2).

use crate::qdisc::cake::DiffservMode;

/// The tier of each code point, by the tier's internal index.
pub type TinMap = [u8; 64];

/// CS6, CS7: network control; ARP is treated like it.
pub const CS7: u8 = 56;

const fn map(default: u8, tiers: &[(u8, &[u8])]) -> TinMap {
    let mut map = [default; 64];
    let mut tier = 0;
    while tier < tiers.len() {
        let (index, code_points) = tiers[tier];
        let mut i = 0;
        while i < code_points.len() {
            map[code_points[i] as usize] = index;
            i += 1;
        }
        tier += 1;
    }
    map
}

const BESTEFFORT: TinMap = [0; 64];
const DIFFSERV3: TinMap = map(0, &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])]);
const DIFFSERV4: TinMap = map(
    0,
    &[
        (1, &[1, 8]),
        (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
        (3, &[32, 40, 44, 46, 48, 56]),
    ],
);
const DIFFSERV8: TinMap = map(
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
);
const PRECEDENCE: TinMap = {
    let mut map = [0; 64];
    let mut dscp = 0;
    while dscp < 64 {
        map[dscp] = (dscp >> 3) as u8;
        dscp += 1;
    }
    map
};

/// The tier map of a mode.
pub const fn tin_map(mode: DiffservMode) -> &'static TinMap {
    match mode {
        DiffservMode::Besteffort => &BESTEFFORT,
        DiffservMode::Diffserv3 => &DIFFSERV3,
        DiffservMode::Diffserv4 => &DIFFSERV4,
        DiffservMode::Diffserv8 => &DIFFSERV8,
        DiffservMode::Precedence => &PRECEDENCE,
    }
}

/// Internal indices in the order in which statistics show the tiers.
pub const fn tin_order(mode: DiffservMode) -> &'static [u8] {
    match mode {
        DiffservMode::Besteffort => &[0],
        DiffservMode::Diffserv3 => &[1, 0, 2],
        DiffservMode::Diffserv4 => &[1, 0, 2, 3],
        DiffservMode::Diffserv8 | DiffservMode::Precedence => &[0, 1, 2, 3, 4, 5, 6, 7],
    }
}

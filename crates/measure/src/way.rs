//! Directions of loads.

use serde::{Deserialize, Serialize};

/// Direction of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// To us.
    #[serde(rename = "download")]
    Down,
    /// From us.
    #[serde(rename = "upload")]
    Up,
    /// Both at once.
    #[serde(rename = "both")]
    Both,
}

impl Way {
    /// All loads, in the order in which they are tried.
    pub const ALL: [Way; 3] = [Way::Down, Way::Up, Way::Both];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Way::Down => "download",
            Way::Up => "upload",
            Way::Both => "both",
        }
    }

    /// The directions that it is made of.
    pub(crate) fn each(self) -> &'static [Way] {
        match self {
            Way::Down => &[Way::Down],
            Way::Up => &[Way::Up],
            Way::Both => &[Way::Up, Way::Down],
        }
    }
}

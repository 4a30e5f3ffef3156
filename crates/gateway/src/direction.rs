//! The two ways through an interface.

use std::fmt;

/// One way through the interface.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Packets that leave by the interface.
    Upload,
    /// Packets that arrive by the interface.
    Download,
}

impl Direction {
    /// Upload first.
    pub const BOTH: [Direction; 2] = [Direction::Upload, Direction::Download];

    /// `upload` or `download`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Upload => "upload",
            Direction::Download => "download",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

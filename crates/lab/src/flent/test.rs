//! Flent's test that a run is: it decides how the run's series are called, and which plots flent
//! offers.

use simnel_sim::{Direction, FlowResult, Kind, Traffic};

/// A test of flent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Four transfers each way in four classes; also what fits no other test.
    Rrul,
    /// Four each way in one class.
    RrulBe,
    /// Fifty up, one down.
    Rrul50Up,
    /// One down.
    TcpDownload,
    /// One up.
    TcpUpload,
    /// One each way.
    TcpBidirectional,
    /// Several up.
    TcpNup,
    /// Several down.
    TcpNdown,
}

impl Test {
    /// The test that has such transfers: their directions and classes.
    pub fn of(transfers: &[(Direction, String)]) -> Test {
        let of = |direction| {
            let there = transfers.iter().filter(|(way, _)| *way == direction);
            there.map(|(_, class)| class.as_str()).collect::<Vec<_>>()
        };
        let (up, down) = (of(Direction::Up), of(Direction::Down));
        let plain = up.iter().chain(&down).all(|class| *class == "BE");
        match (up.len(), down.len()) {
            (0, 1) => Test::TcpDownload,
            (1, 0) => Test::TcpUpload,
            (1, 1) => Test::TcpBidirectional,
            (0, 2..) => Test::TcpNdown,
            (2.., 0) => Test::TcpNup,
            (4, 4) if plain => Test::RrulBe,
            (50, 1) if plain => Test::Rrul50Up,
            _ => Test::Rrul,
        }
    }

    /// flent's name.
    pub const fn name(self) -> &'static str {
        match self {
            Test::Rrul => "rrul",
            Test::RrulBe => "rrul_be",
            Test::Rrul50Up => "rrul_50_up",
            Test::TcpDownload => "tcp_download",
            Test::TcpUpload => "tcp_upload",
            Test::TcpBidirectional => "tcp_bidirectional",
            Test::TcpNup => "tcp_nup",
            Test::TcpNdown => "tcp_ndown",
        }
    }

    /// flent's parameters of the test with so many transfers.
    pub fn parameters(self, transfers: usize) -> serde_json::Value {
        match self {
            Test::TcpNup => serde_json::json!({"upload_streams": transfers.to_string()}),
            Test::TcpNdown => serde_json::json!({"download_streams": transfers.to_string()}),
            _ => serde_json::json!({}),
        }
    }

    /// The series of a transfer, the `number`th (from 1) of its direction and class.
    pub fn transfer(self, direction: Direction, class: &str, number: usize) -> String {
        let way = way(direction);
        match (self, direction) {
            (Test::TcpDownload | Test::TcpUpload | Test::TcpBidirectional, _) => {
                format!("TCP {way}")
            }
            (Test::TcpNup | Test::TcpNdown, _) => format!("TCP {way}::{number}"),
            (Test::Rrul50Up, Direction::Up) => format!("TCP {way} {class}::{number}"),
            _ if number > 1 => format!("TCP {way} {class}{number}"),
            _ => format!("TCP {way} {class}"),
        }
    }

    /// The series of a UDP probe, the `number`th of its class.
    pub fn probe(self, class: &str, number: usize) -> String {
        match self {
            Test::RrulBe | Test::Rrul50Up => format!("Ping (ms) UDP {class}{number}"),
            _ if number > 1 => format!("Ping (ms) UDP {class}{number}"),
            _ => format!("Ping (ms) UDP {class}"),
        }
    }
}

/// flent's word for a direction.
pub(super) fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
    }
}

/// True if the flow is a TCP transfer without end, which is what flent's tests are made of.
pub(super) fn is_transfer(flow: &FlowResult, traffic: &[Traffic]) -> bool {
    matches!(traffic[flow.group as usize].kind, Kind::Bulk { size: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_by_their_transfers() {
        let many = |n: usize, direction, class: &str| vec![(direction, class.to_string()); n];
        let (up, down) = (Direction::Up, Direction::Down);
        let test = |parts: &[Vec<(Direction, String)>]| Test::of(&parts.concat()).name();
        assert_eq!(test(&[many(1, down, "BE")]), "tcp_download");
        assert_eq!(test(&[many(1, down, "BE"), many(1, up, "EF")]), "tcp_bidirectional");
        assert_eq!(test(&[many(6, up, "BE")]), "tcp_nup");
        assert_eq!(test(&[many(4, up, "BE"), many(4, down, "BE")]), "rrul_be");
        assert_eq!(test(&[many(4, up, "EF"), many(4, down, "BE")]), "rrul");
        assert_eq!(test(&[many(50, up, "BE"), many(1, down, "BE")]), "rrul_50_up");
        assert_eq!(test(&[]), "rrul");
    }

    #[test]
    fn series_are_called_as_flent_calls_them() {
        let (up, down) = (Direction::Up, Direction::Down);
        assert_eq!(Test::Rrul.transfer(up, "CS5", 1), "TCP upload CS5");
        assert_eq!(Test::RrulBe.transfer(down, "BE", 3), "TCP download BE3");
        assert_eq!(Test::RrulBe.probe("BE", 1), "Ping (ms) UDP BE1");
        assert_eq!(Test::Rrul50Up.transfer(up, "BE", 50), "TCP upload BE::50");
        assert_eq!(Test::Rrul50Up.transfer(down, "BE", 1), "TCP download BE");
        assert_eq!(Test::TcpNup.transfer(up, "BE", 6), "TCP upload::6");
        assert_eq!(Test::TcpDownload.transfer(down, "BE", 1), "TCP download");
    }
}

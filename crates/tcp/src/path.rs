//! A host's memory of a path from one connection to the next (Linux's `tcp_metrics`).
//!
//! When a connection ends, its host keeps what it found: the slow-start threshold, the RTT and how
//! far segments overtake each other. The next connection to the same destination begins with that.
//! It leaves slow start at the remembered threshold instead of at a loss. So tests that run one
//! after another between the same hosts lack the first one's overshoot. Linux kept thresholds until
//! 5.5; from 5.6 on it forgets them unless told otherwise (`tcp_no_ssthresh_metrics_save`,
//! Documentation/networking/ip-sysctl.rst). A fresh boot knows nothing.

/// Findings about a path; the default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Slow-start threshold in segments; zero if unknown.
    pub ssthresh: u32,
    /// Smoothed RTT in 1/8 µs; zero if unknown.
    pub srtt8_us: u32,
    /// Segments by which a segment was overtaken; zero for the usual three.
    pub reordering: u32,
}

/// Findings of one connection at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experience {
    /// Smoothed RTT in 1/8 µs; zero if there was no sample since the last timeout.
    pub srtt8_us: u32,
    pub cwnd: u32,
    /// None before the first reduction.
    pub ssthresh: Option<u32>,
    /// Nothing was dubious when it ended.
    pub open: bool,
    /// None if nothing beyond the usual was overtaken.
    pub reordering: Option<u32>,
}

impl Path {
    /// Takes in what a connection has found.
    pub(crate) fn learn(&mut self, found: &Experience) {
        if found.srtt8_us == 0 {
            self.srtt8_us = 0;
            return;
        }
        // Overestimates are kept for long: a timeout too late costs less than one too early.
        let excess = self.srtt8_us.saturating_sub(found.srtt8_us);
        self.srtt8_us = found.srtt8_us.max(self.srtt8_us - (excess >> 3));
        let half = found.cwnd / 2;
        match found.ssthresh {
            // Still in the first slow start: a lower bound, if there is something to compare with.
            None if self.ssthresh > 0 => self.ssthresh = self.ssthresh.max(half),
            None => {}
            Some(ssthresh) if found.cwnd >= ssthresh && found.open => {
                self.ssthresh = half.max(ssthresh);
            }
            Some(ssthresh) => {
                if self.ssthresh > 0 {
                    self.ssthresh = self.ssthresh.max(ssthresh);
                }
                self.reordering = self.reordering.max(found.reordering.unwrap_or(0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: Experience =
        Experience { srtt8_us: 800, cwnd: 100, ssthresh: None, open: true, reordering: None };

    #[test]
    fn a_threshold_is_kept_once_it_was_found() {
        let mut path = Path::default();
        path.learn(&FOUND);
        assert_eq!(path, Path { srtt8_us: 800, ..Path::default() });
        // Nor in the midst of a recovery: there is nothing to compare with.
        path.learn(&Experience { ssthresh: Some(30), open: false, ..FOUND });
        assert_eq!(path.ssthresh, 0);
        path.learn(&Experience { ssthresh: Some(70), ..FOUND });
        assert_eq!(path.ssthresh, 70);
        // Congestion avoidance beyond twice the threshold: half of the window is as safe.
        path.learn(&Experience { ssthresh: Some(40), cwnd: 90, ..FOUND });
        assert_eq!(path.ssthresh, 45);
        // In the midst of a recovery only more is believed.
        let recovering = Experience { ssthresh: Some(30), open: false, ..FOUND };
        path.learn(&recovering);
        assert_eq!((path.ssthresh, path.reordering), (45, 0));
        path.learn(&Experience { ssthresh: Some(60), reordering: Some(9), ..recovering });
        assert_eq!((path.ssthresh, path.reordering), (60, 9));
        path.learn(&Experience { cwnd: 200, ..FOUND });
        assert_eq!(path.ssthresh, 100);
    }

    #[test]
    fn rtts_rise_at_once_and_fall_slowly() {
        let mut path = Path { srtt8_us: 800, ..Path::default() };
        path.learn(&Experience { srtt8_us: 1_600, ..FOUND });
        assert_eq!(path.srtt8_us, 1_600);
        path.learn(&FOUND);
        assert_eq!(path.srtt8_us, 1_500);
        path.learn(&Experience { srtt8_us: 0, ..FOUND });
        assert_eq!(path.srtt8_us, 0);
    }
}

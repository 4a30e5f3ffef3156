//! A run to be watched: what waits in both disciplines, frame by frame.
//!
//! Frames are looks at a run between two pieces of it: they change nothing in its results. What is
//! drawn has few rows: one a flow, or where these are too many one a kind of traffic.

use serde::Serialize;
use simnel_core::qdisc::cake::{tin_name, DiffservMode, Params};
use simnel_core::qdisc::{Config, Detail};
use simnel_core::{Span, Time};
use simnel_sim::{Direction, Run, Setup, Waiting};

use crate::{advance, Beat, Finished, ScenarioError, Simulation};

/// The shortest time between two frames.
const SHORTEST: Span = Span::from_millis(20);
/// Frames of a longer run are further apart.
const MOST_FRAMES: u64 = 1500;
/// More flows than this are not told apart.
const MOST_ROWS: usize = 24;

/// The frames of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Frames {
    /// Seconds from frame to frame; the first is at time zero.
    pub interval_s: f64,
    /// The rows of each frame.
    pub rows: Vec<Row>,
    /// Names of the tiers, up and down; empty if there are none to be told apart.
    pub tiers: [Vec<String>; 2],
    /// True if flows have queues of their own, up and down.
    pub has_queues: [bool; 2],
    /// Four counts for each frame, direction (up, down) and row: packets waiting in sparse queues,
    /// packets in all others, packets dropped and packets marked. The last two count from the run's
    /// beginning.
    #[serde(skip)]
    pub cells: Vec<[u32; 4]>,
    /// For each frame and row: congestion windows in segments, zero where there are none.
    #[serde(skip)]
    pub windows: Vec<u32>,
}

/// A flow, or all flows of a kind of traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The traffic's name.
    pub name: String,
    /// The flow's number within it, from 1; None if it stands for all of them or is the only one.
    pub number: Option<u32>,
    /// The way of the payload.
    pub direction: &'static str,
    /// True if it has congestion windows.
    pub has_windows: bool,
    /// The tier of its packets, up and down; None if there are none to be told apart.
    pub tiers: [Option<usize>; 2],
}

impl Simulation {
    /// A whole run with `seed`, and its frames.
    pub fn film(&self, seed: u64, beat: Beat) -> Result<(Finished, Frames), ScenarioError> {
        let mut run = self.begin(seed)?;
        let frames = Frames::of(&mut run, self.setup(), beat);
        advance(&mut run, Time::MAX, beat);
        Ok((self.drive(run, &mut |_| std::ops::ControlFlow::Continue(())), frames))
    }
}

impl Frames {
    /// Carries `run` through the duration, with a look at each frame's time.
    fn of(run: &mut Run, setup: &Setup, beat: Beat) -> Frames {
        let interval = SHORTEST.max(Span(setup.duration.0.div_ceil(MOST_FRAMES)));
        let (rows, row_of) = rows(setup);
        let mut frames = Frames {
            interval_s: interval.0 as f64 / 1e9,
            rows,
            tiers: Direction::BOTH.map(|direction| tiers(run, direction)),
            has_queues: Direction::BOTH.map(|direction| run.has_queues(direction)),
            ..Frames::default()
        };
        for frame in 0..=setup.duration.0 / interval.0 {
            advance(run, Time::ZERO + Span(interval.0 * frame), beat);
            frames.look(run, &row_of);
        }
        frames
    }

    fn look(&mut self, run: &Run, row_of: &[usize]) {
        let rows = self.rows.len();
        let first = self.cells.len();
        self.cells.resize(first + 2 * rows, [0; 4]);
        for (flow, &row) in run.waiting().iter().zip(row_of) {
            for (way, waiting) in flow.iter().enumerate() {
                let Waiting { sparse, bulk, dropped, marked, .. } = *waiting;
                let cell = &mut self.cells[first + way * rows + row];
                let more = [sparse, bulk, dropped as u32, marked as u32];
                cell.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        }
        let first = self.windows.len();
        self.windows.resize(first + rows, 0);
        for (window, &row) in run.windows().into_iter().zip(row_of) {
            self.rows[row].has_windows |= window.is_some();
            self.windows[first + row] += window.unwrap_or(0);
        }
    }
}

/// Rows, and that of each flow.
fn rows(setup: &Setup) -> (Vec<Row>, Vec<usize>) {
    let flows = setup.traffic.iter().map(|traffic| traffic.count as usize).sum::<usize>();
    let (mut rows, mut row_of) = (Vec::new(), Vec::new());
    for traffic in &setup.traffic {
        let row = |number| Row {
            name: traffic.name.clone(),
            number,
            direction: traffic.direction.name(),
            has_windows: false,
            tiers: Direction::BOTH.map(|way| match &setup.lines[way as usize].qdisc {
                Config::Cake(Params { diffserv: DiffservMode::Besteffort, .. }) => None,
                Config::Cake(params) => Some(params.listed_tin(traffic.dscp, 0)),
                _ => None,
            }),
        };
        if flows > MOST_ROWS || traffic.count == 1 {
            row_of.extend((0..traffic.count).map(|_| rows.len()));
            rows.push(row(None));
        } else {
            row_of.extend((0..traffic.count as usize).map(|flow| rows.len() + flow));
            rows.extend((1..=traffic.count).map(|number| row(Some(number))));
        }
    }
    (rows, row_of)
}

fn tiers(run: &Run, direction: Direction) -> Vec<String> {
    let Detail::Cake(stats) = run.snapshot(direction).detail else { return Vec::new() };
    let count = usize::from(stats.tin_count);
    let name = |n| tin_name(count, n).map_or_else(|| format!("Tin {n}"), str::to_owned);
    if count > 1 {
        (0..count).map(name).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{no_files, Scenario};

    const TEXT: &str = "duration = \"6s\"\n[line]\nup = \"3mbit\"\ndown = \"20mbit\"\n\
                        [[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n\
                        count = 2\n[[traffic]]\nname = \"call\"\nkind = \"voip\"\ndscp = \"EF\"\n";

    fn film(words: &str) -> (Finished, Frames) {
        let scenario = Scenario::parse(TEXT, "watched", &no_files).expect("a scenario");
        let simulation = scenario.simulation(Some(words)).expect("a discipline");
        let mut beats = 0;
        let (finished, frames) = simulation.film(3, &mut || beats += 1).expect("a run");
        assert!(beats >= 300, "a beat a frame: {beats}");
        let unwatched = simulation.finish(3).expect("a run");
        assert_eq!(finished.results.hash, unwatched.results.hash, "{words}: watching changes it");
        (finished, frames)
    }

    #[test]
    fn frames_tell_sparse_from_bulk_and_tier_from_tier() {
        let (finished, frames) = film("cake bandwidth {rate}");
        assert_eq!(frames.cells.len(), 301 * 2 * frames.rows.len());
        assert_eq!(frames.windows.len(), 301 * frames.rows.len());
        assert_eq!(frames.tiers[0], ["Bulk", "Best Effort", "Voice"]);
        assert_eq!((frames.has_queues, frames.rows[0].number), ([true; 2], Some(1)));
        assert_eq!((frames.rows[0].tiers[0], frames.rows[0].has_windows), (Some(1), true));
        let rows = frames.rows.len();
        let sums = |row: usize| {
            let cells = frames.cells.chunks(2 * rows).map(|frame| frame[row]);
            cells.fold([0u64; 2], |sum, cell| [0, 1].map(|n| sum[n] + u64::from(cell[n])))
        };
        let [sparse, bulk] = sums(0);
        assert!(bulk > 4 * sparse, "an upload is bulk: {sparse} and {bulk}");
        let call = frames.rows.iter().position(|row| row.name.starts_with("call"));
        let call = call.expect("a call");
        assert_eq!(frames.rows[call].tiers[0], Some(2), "in the tier for voice");
        let [_, bulk] = sums(call);
        assert_eq!(bulk, 0, "a call is sparse");
        let dropped: u64 = finished.results.lines[0].at_end.totals.drops();
        let last = &frames.cells[frames.cells.len() - 2 * rows..][..rows];
        assert_eq!(last.iter().map(|cell| u64::from(cell[2])).sum::<u64>(), dropped);
    }

    #[test]
    fn a_fifo_has_no_queues_of_flows() {
        let (_, frames) = film("pfifo limit 100");
        assert_eq!((frames.has_queues, frames.tiers.concat().len()), ([false; 2], 0));
        assert!(frames.cells.iter().any(|cell| cell[1] > 30 && cell[2] > 0));
        assert!(frames.cells.iter().all(|cell| cell[0] == 0));
    }
}

//! Packets that wait, over time: what a summary does not have.

use simnel_core::{Span, Time};
use simnel_scenario::{advance, Beat};
use simnel_sim::{Direction, Run, Setup};

/// Points of a curve of the queue: more are not told apart on a screen.
const MOST_LOOKS: u64 = 4000;

/// Packets queued at the end of each interval, up and down.
#[derive(Default)]
pub struct Queues(pub [Vec<f64>; 2]);

impl Queues {
    /// Carries `run` through the duration, and looks at both queues after each interval; the last
    /// ends with it. How a run is cut into pieces changes nothing in its results.
    pub fn watch(run: &mut Run, setup: &Setup, beat: Beat) -> Queues {
        let mut queues = Queues::default();
        let interval = setup.recording.interval;
        let looks = setup.duration.0.div_ceil(interval.0.max(1)).min(MOST_LOOKS);
        for look in 1..=looks {
            advance(run, Time::ZERO + Span(interval.0 * look), beat);
            for direction in Direction::BOTH {
                let packets = run.snapshot(direction).backlog.packets;
                queues.0[direction as usize].push(packets as f64);
            }
        }
        advance(run, Time::MAX, beat);
        queues
    }
}

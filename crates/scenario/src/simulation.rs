//! A scenario with its disciplines, driven to its end: what the command line, Python and the
//! browser share.
//!
//! A run goes on in steps of simulated time, and in bounded numbers of events between them. After
//! each of these its watcher hears how far it is and may stop it. What was recorded until then is
//! the result, marked as incomplete. How a run is cut into steps changes nothing in its results.
//!
//! Who only wants to know that a run goes on hears a [`Beat`] as simulated time does.
//!
//! A run may also be taken from [`Simulation::begin`], for instance to add a capture or a
//! discipline that no words describe. It is then given back to [`Simulation::drive`].

use std::ops::ControlFlow;

use simnel_core::Time;
use simnel_sim::{Results, Run, Setup};

use crate::{Finished, Scenario, ScenarioError};

/// Steps of simulated time of which a watcher hears.
pub const STEPS: u64 = 1000;

/// Events after which a watcher is asked at the latest: milliseconds.
const EVENTS: u64 = 50_000;

/// Hears how many of [`STEPS`] are done, and says whether to go on.
pub type Watcher<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// Called again and again while simulated time goes on, and not while it stands still.
pub type Beat<'a> = &'a mut dyn FnMut();

/// Carries `run` to `until`, or the end of the duration if that comes first.
pub fn advance(run: &mut Run, until: Time, beat: Beat) {
    loop {
        let before = run.now();
        let is_there = run.advance_by(until, EVENTS);
        // Events without end at one time are no progress.
        if run.now() > before {
            beat();
        }
        if is_there {
            return;
        }
    }
}

/// A set-up that is ready to run with any seed, on any thread.
#[derive(Clone, Debug)]
pub struct Simulation {
    setup: Setup,
    qdisc: [String; 2],
}

impl Scenario {
    /// The scenario with the file's disciplines, or with `qdisc` in both directions.
    pub fn simulation(&self, qdisc: Option<&str>) -> Result<Simulation, ScenarioError> {
        let (setup, qdisc) = self.setup(qdisc)?;
        Ok(Simulation { setup, qdisc })
    }
}

impl Simulation {
    /// The set-up.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The disciplines' words, up and down.
    pub fn qdisc(&self) -> &[String; 2] {
        &self.qdisc
    }

    /// A whole run with `seed`, or until `watcher` stops it.
    pub fn run(&self, seed: u64, watcher: Watcher) -> Result<Finished, ScenarioError> {
        Ok(self.drive(self.begin(seed)?, watcher))
    }

    /// A whole run that nobody watches.
    pub fn finish(&self, seed: u64) -> Result<Finished, ScenarioError> {
        Ok(self.finished(self.begin(seed)?.finish()))
    }

    /// A run at time zero.
    pub fn begin(&self, seed: u64) -> Result<Run, ScenarioError> {
        Run::new(&self.setup, seed).map_err(|error| {
            ScenarioError::whole(error.to_string(), "a set-up that can be simulated")
        })
    }

    /// The rest of `run`, which [`Simulation::begin`] has made.
    pub fn drive(&self, mut run: Run, watcher: Watcher) -> Finished {
        let duration = u128::from(self.setup.duration.0);
        let mut step = 0;
        while step < STEPS && watcher(step).is_continue() {
            let until = duration * u128::from(step + 1) / u128::from(STEPS);
            if run.advance_by(Time(until as u64), EVENTS) {
                step += 1;
            }
        }
        if step == STEPS {
            // Nothing is left to stop.
            let _ = watcher(step);
        }
        self.finished(run.results())
    }

    fn finished(&self, results: Results) -> Finished {
        Finished { qdisc: self.qdisc.clone(), setup: self.setup.clone(), results }
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::Span;

    use super::*;
    use crate::no_files;

    fn simulation(words: Option<&str>) -> Result<Simulation, ScenarioError> {
        let text = "duration = \"3s\"\n[line]\nup = \"3mbit\"\ndown = \"20mbit\"\n\
                    [[traffic]]\nkind = \"bulk\"\ndirection = \"both\"\n";
        Scenario::parse(text, "both ways", &no_files)?.simulation(words)
    }

    #[test]
    fn steps_change_nothing() {
        let simulation = simulation(Some("cake bandwidth {rate}")).expect("a simulation");
        let mut heard = Vec::new();
        let watched = simulation.run(7, &mut |step| {
            heard.push(step);
            ControlFlow::Continue(())
        });
        let (watched, alone) = (watched.expect("a run"), simulation.finish(7).expect("a run"));
        assert!(watched.results.complete && watched.results.conservation.holds());
        assert_eq!(watched.results.hash, alone.results.hash);
        assert_eq!(watched.qdisc, ["cake bandwidth 3mbit", "cake bandwidth 20mbit"]);
        assert!(heard.is_sorted());
        heard.dedup();
        assert_eq!(heard, (0..=STEPS).collect::<Vec<_>>());
    }

    #[test]
    fn a_beat_is_heard_as_time_goes_on() {
        let simulation = simulation(Some("cake bandwidth {rate}")).expect("a simulation");
        let mut run = simulation.begin(7).expect("a run");
        let mut beats = 0;
        for second in 1..=3 {
            advance(&mut run, Time::ZERO + Span::from_secs(second), &mut || beats += 1);
            advance(&mut run, Time::ZERO, &mut || panic!("time stands still"));
        }
        let results = run.results();
        assert!(results.complete && beats >= (results.events / EVENTS).max(3), "{beats}");
        assert_eq!(results.hash, simulation.finish(7).expect("a run").results.hash);
    }

    #[test]
    fn a_run_that_is_stopped_keeps_what_it_has() {
        let simulation = simulation(None).expect("a simulation");
        let until = |last: u64| {
            let mut watcher = |step| match step >= last {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            simulation.run(1, &mut watcher).expect("a run").results
        };
        let half = until(STEPS / 2);
        assert!(!half.complete && half.conservation.holds());
        assert_eq!(half.simulated.0, simulation.setup().duration.0 / 2);
        assert_eq!((until(0).events, until(0).complete), (0, false));
        assert!(until(STEPS).complete, "what is done cannot be stopped");
    }

    #[test]
    fn wrong_words_are_refused_before_anything_runs() {
        let error = simulation(Some("caek")).expect_err("no such discipline");
        assert!(error.what.contains("caek"), "{error:?}");
    }
}

//! `--live` and `--linux`: the experiments on other arms than the simulator.

use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use miette::{miette, IntoDiagnostic};
use simnel_lab::experiments::paper::arms::{self, ArmError, Kind, Options, Reading, Watch};
use simnel_lab::experiments::paper::Experiment;
use simnel_testbed::TestbedError;

use super::super::misuse_with_help;

/// The options.
#[derive(clap::Args)]
pub struct ArmArgs {
    /// Also run on the gateway, in network namespaces, in real time (needs root).
    #[arg(long)]
    live: bool,
    /// Also run on Linux's own qdiscs, in user-mode Linux, in real time.
    #[arg(long)]
    linux: bool,
    /// Longest real time for each contender of --live and --linux.
    #[arg(long, value_name = "N", default_value_t = 65,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Only these contenders on --live and --linux (cake; may be given several times).
    #[arg(long = "contender", value_name = "NAME")]
    contenders: Vec<String>,
}

impl ArmArgs {
    fn kinds(&self) -> Vec<Kind> {
        let asked = [(self.live, Kind::Live), (self.linux, Kind::Linux)];
        asked.into_iter().filter_map(|(asked, kind)| asked.then_some(kind)).collect()
    }

    /// Refuses, before anything is run, what the arms cannot do.
    pub fn check(&self, experiments: &[&'static Experiment]) -> miette::Result<()> {
        for kind in self.kinds() {
            let able = |experiment: &&&Experiment| arms::EXPERIMENTS.contains(&experiment.id);
            if !experiments.iter().any(|experiment| able(&experiment)) {
                let help = format!("these run on other arms: {}", arms::EXPERIMENTS.join(", "));
                let option = match kind {
                    Kind::Live => "--live",
                    Kind::Linux => "--linux",
                };
                let ids: Vec<&str> = experiments.iter().map(|experiment| experiment.id).collect();
                let what = format!("{option} cannot run {}", ids.join(", "));
                return Err(misuse_with_help(what, help));
            }
            arms::check(kind).map_err(explained)?;
        }
        let known = |name: &String| {
            let mut arms = experiments.iter().flat_map(|experiment| (experiment.arms)());
            arms.any(|arm| arm.name == *name)
        };
        if let Some(name) = self.contenders.iter().find(|name| !known(name)) {
            let mut names: Vec<String> = Vec::new();
            for arm in experiments.iter().flat_map(|experiment| (experiment.arms)()) {
                if !names.contains(&arm.name) {
                    names.push(arm.name);
                }
            }
            let help = format!("one of `{}`", names.join("`, `"));
            return Err(misuse_with_help(format!("no such contender: `{name}`"), help));
        }
        Ok(())
    }

    /// Runs those of `experiments` that are meant for it on every arm that was asked for.
    pub fn run(
        &self,
        experiments: &[&'static Experiment],
        stop: &AtomicBool,
    ) -> miette::Result<Vec<Reading>> {
        let mut readings = Vec::new();
        for kind in self.kinds() {
            let options = Options {
                kind,
                simnel: std::env::current_exe().into_diagnostic()?,
                means: crate::commands::lab::guest::MEANS,
                longest: Duration::from_secs(self.seconds),
                contenders: self.contenders.clone(),
            };
            for experiment in experiments {
                if !arms::EXPERIMENTS.contains(&experiment.id) {
                    crate::say!("{}: not run on the {} arm", experiment.id, kind.name());
                    continue;
                }
                let terminal = std::io::stderr().is_terminal();
                let mut step = |title: &str, at: Duration, of: Duration| {
                    if terminal {
                        eprint!("\r\x1b[K{title}: {} of {} s", at.as_secs(), of.as_secs());
                    }
                };
                let mut watch = Watch { stop, step: &mut step };
                let reading = arms::run(experiment, &options, &mut watch);
                if terminal {
                    eprint!("\r\x1b[K");
                }
                for (arm, reason) in &reading.refused {
                    let (id, kind) = (experiment.id, kind.name());
                    crate::say!("{id} {arm}: not run on the {kind} arm: {reason}");
                }
                readings.push(reading);
            }
        }
        Ok(readings)
    }
}

/// With what to do about it.
fn explained(error: ArmError) -> miette::Report {
    let help = match &error {
        ArmError::Testbed(TestbedError::NotRoot) => "without --live, only the simulator runs",
        _ => "the same without --live and --linux runs the simulator alone",
    };
    miette!(help = help, "{error}")
}

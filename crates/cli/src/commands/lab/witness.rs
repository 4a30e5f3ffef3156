//! `simnel witness`: records what Linux does in published experiments, in virtual time.
//!
//! For the files of conformance/papers, which `simnel paper` shows beside its own figures.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use miette::{miette, IntoDiagnostic};
use simnel_lab::experiments::paper::arms::record::{record, Options, Watch};
use simnel_lab::experiments::paper::arms::Kernel;
use simnel_lab::experiments::paper::{self, witness::cannot};
use simnel_lab::files;

use super::interrupt::{Interrupt, INTERRUPTED};
use super::{misuse, misuse_with_help, output_failed};

/// Record published experiments on Linux in virtual time (conformance/papers).
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    conformance/build-linux.sh /var/tmp/linux BRIDGE MAGIC_SYSRQ NET_CLS_U32 WLAN NET_IPIP\n  \
    simnel witness /var/tmp/linux/linux A B\n\n\
Goes on where it was left: single runs are files in --runs. Each run keeps to one processor.\n\
Needs no root.")]
pub struct Args {
    /// A kernel that conformance/build-linux.sh has built.
    #[arg(value_name = "KERNEL")]
    kernel: PathBuf,
    /// Experiments (A3), papers (A), or `all`.
    #[arg(value_name = "EXPERIMENT", required = true)]
    experiments: Vec<String>,
    /// Figures are written here.
    #[arg(long, value_name = "DIR", default_value = "conformance/papers")]
    out: PathBuf,
    /// Directory that keeps the records of single runs.
    #[arg(long, value_name = "DIR", default_value = "target/witness")]
    runs: PathBuf,
    /// Repetitions instead of the papers' own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Runs at once; one a processor by default.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Records.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let experiments = paper::select(&args.experiments).map_err(|word| {
        let help = "`simnel paper` lists them";
        misuse_with_help(format!("no such experiment: `{word}`"), help)
    })?;
    let kernel = args.kernel.canonicalize().map_err(|error| {
        let help = "conformance/build-linux.sh builds one";
        misuse_with_help(format!("no kernel {}: {error}", args.kernel.display()), help)
    })?;
    for directory in [&args.out, &args.runs] {
        std::fs::create_dir_all(directory)
            .map_err(|error| misuse(format!("cannot create {}: {error}", directory.display())))?;
    }
    let options = Options {
        kernel: Kernel::in_virtual_time(kernel),
        simnel: std::env::current_exe().into_diagnostic()?,
        runs: args.runs.clone(),
        repetitions: args.repetitions,
        jobs: args.jobs.map(usize::from),
    };
    let interrupt = Interrupt::new()?;
    let mut failed = false;
    for experiment in experiments {
        if let Some(reason) = cannot(experiment) {
            crate::say!("{}: not recorded: {reason}", experiment.id);
            continue;
        }
        let began = Instant::now();
        let mut step = |title: &str, done: usize, all: usize| {
            crate::say!(
                "{title}: run {} of {all}, {:.0} s",
                done + 1,
                began.elapsed().as_secs_f64()
            );
        };
        let mut watch = Watch { stop: interrupt.flag(), step: &mut step };
        match record(experiment, &options, &mut watch) {
            Ok(Some(recording)) => {
                let path = args.out.join(format!("{}.json", experiment.id));
                files::put(&path, recording.text().as_bytes())
                    .map_err(|error| miette!("cannot write {}: {error}", path.display()))?;
                writeln!(out, "{}", path.display()).map_err(output_failed)?;
                for (arm, reason) in &recording.refused {
                    writeln!(out, "  {arm}: not run: {reason}").map_err(output_failed)?;
                }
            }
            Ok(None) => {
                crate::say!("stopped: the same command goes on from here");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            // One experiment that fails takes nothing from the others.
            Err(error) => {
                failed = true;
                crate::say!("{}: {error}", experiment.id);
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

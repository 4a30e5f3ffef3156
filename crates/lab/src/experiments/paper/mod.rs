//! The published experiments, run again and judged.
//!
//! An [`Experiment`] is a question, the paper's set-up as arms, and what to measure of a run. Arms
//! are scenarios of the simulator, or direct work on a discipline. [`run`] carries arms and seeds
//! out on all cores; a [`Sample`] is what one run showed, [`Measures`] is what all showed. Only
//! then the [`claim::Judge`] compares with what the paper states. That is written in `stated` and
//! read by nobody else: no number of a paper's results can enter a simulation.
//!
//! To add an experiment: an entry in its paper's file here, its quantities in the list there, its
//! claims in `stated`.

use std::fmt::Display;

use simnel_core::{Rate, Span};
use simnel_scenario::{no_files, File, Scenario};
use simnel_sim::Setup;

/// A paper's experiments, a row each: identifier, title, question; set-up, repetitions; arms,
/// measure, figures.
macro_rules! experiments {
    ($paper:expr; $($id:literal: $title:literal, $question:literal; $setup:expr, $repetitions:expr;
        $arms:expr, $measure:expr, $figures:expr;)+) => {
        /// The experiments.
        pub const EXPERIMENTS: &[Experiment] = &[$(Experiment {
            id: $id,
            paper: $paper,
            title: $title,
            question: $question,
            setup: $setup,
            repetitions: $repetitions,
            arms: $arms,
            measure: $measure,
            figures: $figures,
        }),+];
    };
}

mod autorate;
mod codel;
mod direct;
mod iot;
pub(crate) mod measure;
mod performance;
mod plots;
mod run;
mod savings;
mod series;
mod stated;

pub mod arms;
pub mod cake;
pub mod claim;
pub mod contenders;
pub mod findings;
pub mod recording;
pub mod witness;

pub use claim::{Claim, Verdict};
pub use measure::{of, Measure, Measured, Measures, Sample, View};
pub use run::{count, run, sample, ArmOutcome, Options, Outcome, Watch};

/// The five papers, and experiments of our own in the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// Høiland-Jørgensen, Täht, Morton: Piece of CAKE, LANMAN 2018.
    PieceOfCake,
    /// Morton: CAKE Packet Scheduler, Performance Evaluation, 2017.
    CakePerformance,
    /// Nichols, Jacobson: Controlling Queue Delay, ACM Queue 2012.
    QueueDelay,
    /// Menth, Mehl, Veith: Deficit Round Robin with Limited Deficit Savings, 2018.
    DeficitSavings,
    /// Kua, Nguyen, Armitage, Branch: AQM for IoT flows in home gateways, IEEE IoT Journal 2017.
    Iot,
    /// No paper: shaper rates on lines that change.
    Autorate,
}

impl Paper {
    /// All, in the order of their letters.
    pub const ALL: [Paper; 6] = [
        Paper::PieceOfCake,
        Paper::CakePerformance,
        Paper::QueueDelay,
        Paper::DeficitSavings,
        Paper::Iot,
        Paper::Autorate,
    ];

    /// The letter that its experiments begin with.
    pub const fn letter(self) -> char {
        match self {
            Paper::PieceOfCake => 'A',
            Paper::CakePerformance => 'B',
            Paper::QueueDelay => 'C',
            Paper::DeficitSavings => 'D',
            Paper::Iot => 'E',
            Paper::Autorate => 'F',
        }
    }

    /// True if its quantities are times in the queue: of a real network, its packets are watched.
    #[cfg(not(target_family = "wasm"))]
    const fn looks_into_queues(self) -> bool {
        matches!(self, Paper::QueueDelay | Paper::DeficitSavings | Paper::Iot)
    }

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Paper::PieceOfCake => "Piece of CAKE",
            Paper::CakePerformance => "CAKE performance evaluation",
            Paper::QueueDelay => "Controlling queue delay",
            Paper::DeficitSavings => "DRR with limited deficit savings",
            Paper::Iot => "IoT flows at the home gateway",
            Paper::Autorate => "Lines that change",
        }
    }

    /// The publication: authors, title and place, and its DOI where it is known; None for ours.
    pub const fn publication(self) -> Option<(&'static str, Option<&'static str>)> {
        Some(match self {
            Paper::PieceOfCake => (
                "T. Høiland-Jørgensen, D. Täht, J. Morton: Piece of CAKE: A Comprehensive Queue \
                 Management Solution for Home Gateways. LANMAN 2018",
                Some("10.1109/LANMAN.2018.8475045"),
            ),
            Paper::CakePerformance => (
                "J. Morton: CAKE Packet Scheduler - Performance Evaluation. bufferbloat.net, 2017",
                None,
            ),
            Paper::QueueDelay => (
                "K. Nichols, V. Jacobson: Controlling Queue Delay. ACM Queue 10(5), 2012",
                Some("10.1145/2208917.2209336"),
            ),
            Paper::DeficitSavings => (
                "M. Menth, M. Mehl, S. Veith: Deficit Round Robin with Limited Deficit Savings \
                 (DRR-LDS) for Fairness among TCP Users. MMB 2018, LNCS 10740",
                Some("10.1007/978-3-319-74947-1_13"),
            ),
            Paper::Iot => (
                "J. Kua, S. H. Nguyen, G. Armitage, P. Branch: Using Active Queue Management to \
                 Assist IoT Application Flows in Home Broadband Networks. IEEE Internet of Things \
                 Journal 4(5), 2017",
                None,
            ),
            Paper::Autorate => return None,
        })
    }
}

/// Work of an arm.
pub enum Work {
    /// Runs a scenario.
    Scenario(Box<File>),
    /// Drives a discipline without a network: the names of what it measures, and the work, whose
    /// argument is the seed.
    Direct(Vec<String>, Box<dyn Fn(u64) -> Sample + Send + Sync>),
}

/// One thing to run: a discipline, or a setting, under the experiment's conditions.
pub struct Arm {
    /// First part of its measures' names.
    pub name: String,
    /// Its work.
    pub work: Work,
    /// End when every transfer of limited size is complete: nothing else is measured.
    pub until_done: bool,
}

impl Arm {
    /// An arm that runs a scenario.
    pub fn scenario(name: impl Display, file: File) -> Arm {
        let work = Work::Scenario(Box::new(file));
        Arm { name: name.to_string(), work, until_done: false }
    }

    /// An arm that drives a discipline itself, from a seed, and measures `measured`.
    pub fn direct(
        name: impl Display,
        measured: impl IntoIterator<Item: Measured>,
        work: impl Fn(u64) -> Sample + Send + Sync + 'static,
    ) -> Arm {
        let measured = measured.into_iter().map(|quantity| quantity.to_string()).collect();
        let work = Work::Direct(measured, Box::new(work));
        Arm { name: name.to_string(), work, until_done: false }
    }

    /// The scenario as a file has it; empty if there is none.
    pub fn text(&self) -> String {
        match &self.work {
            Work::Scenario(file) => file.to_string(),
            Work::Direct(..) => String::new(),
        }
    }
}

/// A published experiment.
pub struct Experiment {
    /// Letter of the paper and number.
    pub id: &'static str,
    /// Paper in which it was published.
    pub paper: Paper,
    /// In one line.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// The conditions, in words.
    pub setup: &'static str,
    /// Repetitions: the paper's, or ten where it does not say.
    pub repetitions: u32,
    /// The runs.
    pub arms: fn() -> Vec<Arm>,
    /// Measures taken from a run of a scenario.
    pub measure: fn(&View<'_>) -> Sample,
    /// The figures.
    pub figures: fn(&Measures) -> Vec<crate::figures::Figure>,
}

/// All experiments, in order.
pub fn experiments() -> Vec<&'static Experiment> {
    let papers: [&'static [Experiment]; 6] = [
        cake::EXPERIMENTS,
        performance::EXPERIMENTS,
        codel::EXPERIMENTS,
        savings::EXPERIMENTS,
        iot::EXPERIMENTS,
        autorate::EXPERIMENTS,
    ];
    papers.into_iter().flatten().collect()
}

/// The experiments that `words` name: an identifier (`A3`), a paper's letter (`A`), `autorate` for
/// those on lines that change (as `F`), or `all`. The
/// error is the first word that names none.
pub fn select(words: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let all = experiments();
    let names = |word: &str, experiment: &Experiment| {
        word.eq_ignore_ascii_case("all")
            || word.eq_ignore_ascii_case(experiment.id)
            || word.eq_ignore_ascii_case(&experiment.paper.letter().to_string())
            || (word == "autorate" && experiment.paper == Paper::Autorate)
    };
    if let Some(word) = words.iter().find(|word| !all.iter().any(|e| names(word, e))) {
        return Err(word.clone());
    }
    Ok(all.into_iter().filter(|e| words.iter().any(|word| names(word, e))).collect())
}

/// The set-up of an experiment's own file, and the disciplines' words.
///
/// # Panics
///
/// If the file is no scenario.
fn set_up(name: &str, file: &File) -> (Setup, [String; 2]) {
    let scenario = Scenario::new(file, name, &no_files);
    let made = scenario.and_then(|scenario| scenario.setup(None));
    made.unwrap_or_else(|error| panic!("{name}: {error}; expected {}\n{file}", error.expected))
}

const fn kbit(number: u64) -> Rate {
    Rate::from_bits(number * 1_000)
}

const fn mbit(number: u64) -> Rate {
    kbit(number * 1_000)
}

const fn secs(number: u64) -> Span {
    Span::from_secs(number)
}

const fn ms(number: u64) -> Span {
    Span::from_millis(number)
}

/// The paper's statements about an experiment.
pub fn claims(id: &str) -> Vec<Claim> {
    stated::claims(id)
}

#[cfg(test)]
mod tests;

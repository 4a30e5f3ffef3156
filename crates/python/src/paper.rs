//! The published experiments, run again and judged, as `simnel paper` does it.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use simnel_lab::experiments::paper::{self as lab, Experiment, Options, Outcome, Work};
use simnel_lab::figures::svg;

use crate::error::Error;
use crate::table::{Columns, Table};
use crate::work::{interruptible, Watch};

/// An experiment that was run.
#[derive(IntoPyObject)]
pub struct Paper {
    claims: Table,
    /// The lab's figures as SVG, with their titles.
    figures: Vec<(String, String)>,
}

/// An experiment before it is run.
#[derive(IntoPyObject)]
pub struct About {
    paper: &'static str,
    title: &'static str,
    question: &'static str,
    setup: &'static str,
    /// The arms' names, and their scenarios where they are such.
    scenarios: Vec<(String, Option<String>)>,
}

fn find(id: &str) -> PyResult<&'static Experiment> {
    let all = lab::experiments();
    let found = all.iter().find(|experiment| experiment.id.eq_ignore_ascii_case(id));
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|experiment| experiment.id).collect();
        let known = known.join(", ");
        Error::new_err(format!("no such experiment: `{id}`; expected one of {known}"))
    })
}

fn options(repetitions: Option<u32>) -> Options {
    Options { repetitions, keep: false, series: false }
}

/// The identifiers of all experiments.
#[pyfunction]
pub fn papers() -> Vec<&'static str> {
    lab::experiments().iter().map(|experiment| experiment.id).collect()
}

/// The question and set-up of `id`.
#[pyfunction]
pub fn about_paper(id: &str) -> PyResult<About> {
    let experiment = find(id)?;
    let arms = (experiment.arms)().into_iter().map(|arm| match arm.work {
        Work::Scenario(file) => (arm.name, Some(file.to_string())),
        Work::Direct(..) => (arm.name, None),
    });
    Ok(About {
        paper: experiment.paper.title(),
        title: experiment.title,
        question: experiment.question,
        setup: experiment.setup,
        scenarios: arms.collect(),
    })
}

/// Runs of `id`.
#[pyfunction]
#[pyo3(signature = (id, repetitions = None))]
pub fn paper_runs(id: &str, repetitions: Option<u32>) -> PyResult<usize> {
    Ok(lab::count(&[find(id)?], &options(repetitions)))
}

/// Runs `id`.
#[pyfunction]
#[pyo3(signature = (id, repetitions = None, progress = None))]
pub fn paper(
    py: Python<'_>,
    id: &str,
    repetitions: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Paper> {
    let experiment = find(id)?;
    let work = |watch: &Watch<'_>| {
        let step = &|| {
            watch.steps.fetch_add(1, Ordering::Relaxed);
        };
        lab::run(&[experiment], &options(repetitions), &lab::Watch { stop: watch.stop, step })
    };
    let outcomes = interruptible(py, progress.as_ref(), work)?;
    let outcome = outcomes.first().ok_or_else(|| Error::new_err("nothing was run"))?;
    let figures = (experiment.figures)(&outcome.measures);
    let figures = figures
        .iter()
        .filter_map(|figure| Some((figure.title.clone(), svg::draw(figure, true)?.into_string())));
    Ok(Paper { claims: claims(outcome)?, figures: figures.collect() })
}

/// A row for each measure of each claim; of a claim of which nothing was measured, one.
fn claims(outcome: &Outcome) -> PyResult<Table> {
    let each = || {
        outcome.verdicts.iter().flat_map(|verdict| {
            let simulated = verdict.simulated.iter().map(Some);
            let none = verdict.simulated.is_empty().then_some(None);
            simulated.chain(none).map(move |simulated| (verdict, simulated))
        })
    };
    let mut columns = Columns::default();
    columns.words("id", each().map(|(verdict, _)| Some(&verdict.claim.id)));
    columns.words("claim", each().map(|(verdict, _)| Some(&verdict.claim.text)));
    columns.words("stated", each().map(|(verdict, _)| Some(&verdict.claim.stated)));
    columns.words(
        "holds",
        each().map(|(verdict, _)| verdict.holds.map(|holds| if holds { "yes" } else { "no" })),
    );
    columns.words("arm", each().map(|(_, one)| Some(&one?.0.arm)));
    columns.words("measure", each().map(|(_, one)| Some(&one?.0.quantity)));
    columns.numbers("mean", each().map(|(_, one)| Some(one?.1.mean)));
    columns.numbers("half_width", each().map(|(_, one)| one?.1.half_width));
    columns.whole("n", each().map(|(_, one)| Some(one?.1.n as i64)));
    columns.table()
}

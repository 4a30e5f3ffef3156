//! The lab's comparison of disciplines on one line.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use simnel_lab::experiments::compare::{self as lab, Question};

use crate::error::in_scenario;
use crate::table::{Columns, Table};
use crate::work::{interruptible, Watch};

/// Runs of a comparison.
#[pyfunction]
pub fn compare_runs(contenders: Vec<String>, repetitions: u32) -> usize {
    let (line, rtt) = Default::default();
    lab::runs(&Question { contenders, line, rtt, repetitions })
}

/// The verdict, sentence by sentence, and a row for each measure and contender.
#[pyfunction]
#[pyo3(signature = (contenders, down, up, rtt, repetitions, progress = None))]
pub fn compare(
    py: Python<'_>,
    contenders: Vec<String>,
    down: String,
    up: String,
    rtt: String,
    repetitions: u32,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<String>, Table)> {
    let question = Question { contenders, line: (down, up), rtt, repetitions };
    let work = |watch: &Watch<'_>| {
        lab::compare(&question, watch.stop, &|| {
            watch.steps.fetch_add(1, Ordering::Relaxed);
        })
    };
    let done = interruptible(py, progress.as_ref(), work)?;
    let rows = done.map_err(|error| in_scenario(error, ""))?.rows;
    let said = lab::verdict(&rows, &question.contenders);
    let verdict = said.into_iter().map(|sentence| sentence.text).collect();
    let each = || {
        let contenders = question.contenders.iter();
        rows.iter().flat_map(move |row| contenders.clone().zip(&row.values).map(move |c| (row, c)))
    };
    let mut columns = Columns::default();
    columns.words("workload", each().map(|(row, _)| Some(row.workload)));
    columns.words("measure", each().map(|(row, _)| Some(row.measure.to_string())));
    columns.words(
        "better",
        each().map(|(row, _)| Some(if row.measure.less() { "less" } else { "more" })),
    );
    columns.words("qdisc", each().map(|(_, (words, _))| Some(words)));
    columns.numbers("mean", each().map(|(_, (_, value))| Some(value.as_ref()?.mean)));
    columns.numbers("half_width", each().map(|(_, (_, value))| value.as_ref()?.half_width));
    columns.whole("n", each().map(|(_, (_, value))| Some(value.as_ref()?.n as i64)));
    columns.words("shown", each().map(|(_, (_, value))| Some(value.as_ref()?.to_string())));
    Ok((verdict, columns.table()?))
}

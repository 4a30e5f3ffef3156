//! Results as data in a page, which the front end draws: what `simnel sim` and `compare` write.

use maud::{html, PreEscaped};
use serde::Serialize;
use simnel_scenario::summary::{Application, Summary};

use super::page;
use crate::experiments::compare::Sentence;
use crate::experiments::scenario::Case;

/// Runs of a discipline whose series the page of one scenario has; of others it has the figures.
const WITH_SERIES: usize = 8;

/// A result; `site/src/report.ts` reads it.
#[derive(Debug, Default, Serialize)]
pub struct Result<'a> {
    /// The question, in words.
    pub question: &'a str,
    /// Reason why not all runs are there; empty if they are.
    pub partial: String,
    /// Names of the disciplines in prose.
    pub names: Vec<String>,
    /// Their words.
    pub words: Vec<String>,
    /// Scenarios, each with its runs.
    pub cases: Vec<Case>,
    /// Sentences that the figures alone do not give, the most important one first. Those that do
    /// not decide are folded.
    pub said: Vec<Sentence>,
    /// The scenario's text, so that anybody can run it again.
    pub scenario: &'a str,
}

impl Result<'_> {
    /// The page, in one file.
    pub fn page(mut self, title: &str) -> serde_json::Result<String> {
        // The page has curves of one scenario only: of several they would be too many.
        let with_series = if self.cases.len() == 1 { WITH_SERIES } else { 0 };
        for case in &mut self.cases {
            for (n, run) in case.runs.iter_mut().flat_map(|runs| runs.iter_mut().enumerate()) {
                trim(run, n < with_series);
            }
        }
        // No text of anybody ends the element.
        let json = serde_json::to_string(&self)?.replace('<', "\\u003c");
        let body = html! {
            script #result type="application/json" { (PreEscaped(json)) }
            noscript { p .note { "The figures of this page need JavaScript." } }
        };
        Ok(page::frame(title, &body))
    }
}

/// Leaves out what the page does not show; `series`: what is told over time and by shares stays.
fn trim(run: &mut Summary, series: bool) {
    fn keep<T>(points: &mut Vec<T>, all: bool) {
        points.retain(|_| all);
    }
    run.lines.iter_mut().for_each(|line| line.sojourn_cdf.clear());
    for group in &mut run.groups {
        group.each.clear();
        group.windows.clear();
        keep(&mut group.series_mbps, series);
        keep(&mut group.sojourn_cdf, series);
        if let Some(
            Application::Ping { added_cdf, added_series_ms, .. }
            | Application::Datagrams { added_cdf, added_series_ms, .. },
        ) = &mut group.application
        {
            keep(added_cdf, series);
            keep(added_series_ms, series);
        }
    }
}

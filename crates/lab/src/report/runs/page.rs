//! The report as one HTML page: no network, no script, readable on a phone, light and dark.

use std::fmt::Write;

use simnel_sim::Outcome;

use super::svg::{chart, Series};
use super::{contenders, rows, Contender, COLUMNS};
use crate::figures::svg::escape;
use simnel_scenario::summary::{millis, Summary};
use simnel_scenario::Finished;
use simnel_scenario::Scenario;

const STYLE: &str = "
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #8884;white-space:nowrap}
th:first-child,td:first-child,td:last-child{text-align:left}
svg{width:100%;height:auto;font-size:11px}svg text{fill:currentColor}
.grid{stroke:#8884}polyline{stroke-width:1.6}
.legend span{margin-right:1em;white-space:nowrap}
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}
.partial{background:#d55e00;color:#fff;padding:.5rem 1rem}
pre{overflow-x:auto;background:#8882;padding:.6rem}
";

/// The page. `text` is the scenario's file, so that anybody can run it again.
pub fn page(scenario: &Scenario, text: &str, runs: &[Finished], summaries: &[Summary]) -> String {
    let mut out = String::new();
    let name = escape(&scenario.name);
    let _ = write!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content='width=device-width,initial-scale=1'>\
         <title>{name}</title><style>{STYLE}</style><h1>{name}</h1><p>{}</p>",
        escape(&scenario.question)
    );
    let stopped = summaries.iter().filter(|summary| !summary.complete).count();
    if stopped > 0 {
        let _ = write!(
            out,
            "<p class=partial>Partial report: {stopped} of {} runs were stopped before their end.",
            summaries.len()
        );
    }
    for contender in contenders(summaries) {
        section(&contender, runs, summaries, &mut out);
    }
    let _ = write!(out, "<h2>The scenario</h2><pre>{}</pre></html>", escape(text));
    out
}

fn section(contender: &Contender<'_>, runs: &[Finished], summaries: &[Summary], out: &mut String) {
    let _ =
        write!(out, "<h2>{}</h2><div class=wide><table><tr><th>traffic", escape(&contender.words));
    for column in COLUMNS {
        let _ = write!(out, "<th>{column}");
    }
    out.push_str("<th></tr>");
    for row in rows(contender) {
        let _ = write!(out, "<tr><td>{}", escape(&row.name));
        row.cells.iter().for_each(|cell| {
            let _ = write!(out, "<td>{cell}");
        });
        let _ = write!(out, "<td>{}</tr>", escape(&row.remark));
    }
    out.push_str("</table></div>");
    let Some(first) = contender.runs.first() else { return };
    let at = summaries.iter().position(|summary| std::ptr::eq(summary, *first));
    let Some(run) = at.and_then(|at| runs.get(at)) else { return };
    let interval = run.results.interval.0 as f64 / 1e9;
    let goodput: Vec<Series> = first
        .groups
        .iter()
        .filter(|group| group.series_mbps.iter().any(|mbps| *mbps > 0.0))
        .map(|group| Series {
            name: group.name.clone(),
            points: (1..)
                .map(|n| f64::from(n) * interval)
                .zip(group.series_mbps.iter().copied())
                .collect(),
        })
        .collect();
    out.push_str("<h3>Goodput over time</h3>");
    out.push_str(&chart(&goodput, "seconds", "Mbit/s", false));
    let delays = delays(run);
    if !delays.is_empty() {
        out.push_str("<h3>Delay beyond propagation, share of packets below</h3>");
        out.push_str(&chart(&delays, "milliseconds", "%", true));
    }
}

/// Cumulative distributions of what each kind of traffic felt.
fn delays(run: &Finished) -> Vec<Series> {
    let mut series = Vec::new();
    for (group, name) in run.results.groups.iter().enumerate() {
        let first = run.results.flows.iter().find(|flow| flow.group as usize == group);
        let Some(flow) = first else { continue };
        let distribution = match &flow.outcome {
            Outcome::Ping { added_rtt, .. } => added_rtt,
            Outcome::Datagrams { added_delay, .. } => added_delay,
            _ => &run.results.lines[flow.direction as usize].sojourn[group],
        };
        let count = distribution.count() as f64;
        if count == 0.0 {
            continue;
        }
        let points = distribution
            .cumulative()
            .into_iter()
            .map(|(span, seen)| (millis(span), seen as f64 / count * 100.0))
            .collect();
        series.push(Series { name: name.clone(), points });
    }
    series
}

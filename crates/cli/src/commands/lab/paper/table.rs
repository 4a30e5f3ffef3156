//! Output of `simnel paper`: a table of claims for people, a line a claim for programs.

use std::io::{self, Write};

use simnel_lab::experiments::paper::arms::Reading;
use simnel_lab::experiments::paper::witness::{self, Judgement};
use simnel_lab::experiments::paper::{Outcome, Verdict};
use simnel_lab::report::text;
use simnel_lab::statistics::number;

use crate::terminal;

/// The readings of an experiment, in the order of the arms.
fn of<'a>(outcome: &Outcome, readings: &'a [Reading]) -> Vec<&'a Reading> {
    readings.iter().filter(|reading| reading.id == outcome.experiment.id).collect()
}

/// One JSON object a claim: that of the simulator, and what Linux says of it. Each arm adds `live`
/// or `linux_now`, and the same name with `_holds`. `differ` has the measures of the claim that are
/// too far apart.
pub fn json(outcome: &Outcome, readings: &[Reading], out: &mut dyn Write) -> io::Result<()> {
    let readings = of(outcome, readings);
    let differences = outcome.differences(&readings);
    let paper = outcome.experiment.paper;
    for (n, verdict) in outcome.measured(&readings) {
        let mut line = serde_json::to_value(verdict.json(paper))?;
        let linux = serde_json::to_value(outcome.witness.verdicts[n].json(paper))?;
        line["linux"] = linux["simulated"].clone();
        line["linux_ci95"] = linux["ci95"].clone();
        line["linux_holds"] = linux["holds"].clone();
        line["verdict"] = outcome.judgement(n).map(Judgement::words).into();
        for reading in &readings {
            let name = reading.kind.name();
            let arm = serde_json::to_value(reading.verdicts[n].json(paper))?;
            line[name] = arm["simulated"].clone();
            line[format!("{name}_holds")] = arm["holds"].clone();
        }
        let measures = verdict.claim.judge.measures();
        let differ = differences.iter().map(|one| &one.measure);
        let differ = differ.filter(|name| measures.contains(name));
        line["differ"] = differ.map(ToString::to_string).collect();
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

/// The table.
pub fn write(outcome: &Outcome, readings: &[Reading], out: &mut dyn Write) -> io::Result<()> {
    let experiment = outcome.experiment;
    let readings = of(outcome, readings);
    let runs: usize = outcome.arms.iter().map(|arm| arm.runs).sum();
    writeln!(out, "{}  {}", experiment.id, experiment.title)?;
    writeln!(out, "    {}", experiment.question)?;
    writeln!(out, "    {runs} runs\n")?;
    let names = readings.iter().map(|reading| reading.kind.name());
    let head = ["claim", "stated", "simulated", witness::NAME];
    let head = head.into_iter().chain(names).chain(["verdict"]);
    let mut rows: Vec<Vec<String>> = vec![head.map(String::from).collect()];
    for (n, verdict) in outcome.measured(&readings) {
        let mut row = vec![verdict.claim.text.clone(), verdict.claim.stated.clone()];
        row.push(verdict.simulated_text());
        row.push(cell(&outcome.witness.verdicts[n]));
        row.extend(readings.iter().map(|reading| cell(&reading.verdicts[n])));
        row.push(match outcome.judgement(n) {
            Some(Judgement::OursDiffers) => "OURS DIFFERS".into(),
            Some(judgement) => judgement.words().into(),
            None => "not judged".into(),
        });
        rows.push(row);
    }
    write!(out, "{}", text::table(&rows, 0..0, terminal::width()))?;
    writeln!(out, "  {}", witness::counts(rows.len() - 1, outcome.judgements()))?;
    for (claims, reason) in outcome.reasons() {
        writeln!(out, "  why {} not: {reason}", claims.join(", "))?;
    }
    for (claims, reason) in outcome.lacks() {
        writeln!(out, "  no witness of {}: {reason}", claims.join(", "))?;
    }
    for reading in &readings {
        let held = reading.verdicts.iter().filter(|verdict| verdict.holds == Some(true)).count();
        writeln!(out, "  {}: {held} hold; {}", reading.kind.name(), reading.quality())?;
    }
    for one in outcome.differences(&readings) {
        let values: Vec<String> = one
            .values
            .iter()
            .map(|(column, value)| format!("{column} {}", number(*value)))
            .collect();
        let (name, allowed) = (&one.measure, number(one.allowed));
        writeln!(out, "  THE ARMS DIFFER: {name}: {} (by {allowed} allowed)", values.join(", "))?;
        if let Some(reason) = one.reason {
            writeln!(out, "    known: {reason}")?;
        }
    }
    writeln!(out)
}

/// The sum over all experiments, after several.
pub fn summary(outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let claims: usize = outcomes.iter().map(|outcome| outcome.verdicts.len()).sum();
    let counts = witness::counts(claims, outcomes.iter().flat_map(Outcome::judgements));
    writeln!(out, "{} experiments, {counts}", outcomes.len())
}

/// A value beside the simulator's for a claim.
fn cell(verdict: &Verdict) -> String {
    if verdict.simulated.is_empty() {
        return String::new();
    }
    let text = verdict.simulated_text();
    match verdict.holds {
        Some(true) => format!("{text} ✓"),
        Some(false) => format!("{text} ✗"),
        None => text,
    }
}

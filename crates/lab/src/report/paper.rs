//! The page of published experiments: figures, claims, what other arms showed, scenarios.

use maud::{html, Markup};

use super::page::{figures, frame, partial};
use super::terms::Terms;
use crate::experiments::paper::arms::{Difference, Kind, Ledger, Reading};
use crate::experiments::paper::claim::Verdict;
use crate::experiments::paper::{Measure, Outcome, Paper};
use crate::figures::Figure;
use crate::flent::slug;
use crate::statistics::{number, Estimate};

/// Claims up to which the table is open.
const OPEN: usize = 30;
/// Scenarios that the page shows; all are in files.
const SHOWN: usize = 12;

/// Results of another arm for an experiment, and its figures.
pub type Other<'a> = (&'a Reading, Vec<Figure>);

/// The report of `outcomes`; `all` are the figures of each, `others` what other arms showed.
pub fn page(
    outcomes: &[Outcome],
    all: &[Vec<Figure>],
    others: &[Other<'_>],
    stopped: bool,
) -> String {
    let verdicts = || outcomes.iter().flat_map(|outcome| &outcome.verdicts);
    let of_paper = |paper: Paper| {
        let both = outcomes.iter().zip(all);
        both.filter(move |(outcome, _)| outcome.experiment.paper == paper)
    };
    let mut terms = Terms::default();
    let body = html! {
        @if stopped { (partial("the runs were")) }
        p .lead {
            (outcomes.len()) " experiment" @if outcomes.len() != 1 { "s" } ", "
            (verdicts().count()) " claims: " (counts(verdicts())) ". What does not hold is a "
            "finding and stays here; what could not be measured is not judged. A dot is a "
            "run, a line the median; a band is what a paper states with its tolerance, a "
            "black tick the stated value. Intervals (±) are 95 % confidence over "
            "repetitions. \u{201c}Up\u{201d} is from the home to the Internet, "
            "\u{201c}down\u{201d} the other way."
        }
        @for paper in Paper::ALL { (contents(paper, of_paper(paper).map(|(one, _)| one))) }
        @for paper in Paper::ALL {
            @if of_paper(paper).next().is_some() {
                h2 { (paper.letter()) " · " (paper.title()) }
                @if let Some((what, doi)) = paper.publication() {
                    p .setup {
                        (what) ". "
                        @if let Some(doi) = doi {
                            a href={ "https://doi.org/" (doi) } { "doi:" (doi) }
                        }
                    }
                }
            }
            @for (outcome, figures) in of_paper(paper) {
                (section(outcome, figures, others, &mut terms))
            }
        }
    };
    frame("Published experiments, run again", &body)
}

/// A line of the contents: a paper, how much of it holds, and its experiments.
fn contents<'a>(paper: Paper, outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Markup {
    let verdicts = || outcomes.clone().flat_map(|outcome| &outcome.verdicts);
    let all = verdicts().count();
    let held = verdicts().filter(|verdict| verdict.holds == Some(true)).count();
    let fails = |one: &Outcome| one.verdicts.iter().any(|verdict| verdict.holds == Some(false));
    html! {
        @if all > 0 {
            nav {
                span .paper { (paper.title()) }
                svg .bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                    rect width=(format!("{:.0}", 100.0 * held as f64 / all as f64)) height="8" {}
                }
                span .count { (held) "/" (all) } " "
                @for one in outcomes {
                    a href={ "#" (one.experiment.id) } title=(one.experiment.title)
                        class=(if fails(one) { "bad" } else { "good" }) { (one.experiment.id) }
                }
            }
        }
    }
}

fn counts<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let mut counts = [0; 3];
    for verdict in verdicts {
        counts[match verdict.holds {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        }] += 1;
    }
    let mut text = format!("{} hold, {} do not", counts[0], counts[1]);
    if counts[2] > 0 {
        text += &format!(", {} not judged", counts[2]);
    }
    text
}

fn section(outcome: &Outcome, own: &[Figure], others: &[Other<'_>], terms: &mut Terms) -> Markup {
    let experiment = outcome.experiment;
    let runs: usize = outcome.arms.iter().map(|arm| arm.runs).sum();
    let others = || others.iter().filter(|(reading, _)| reading.id == experiment.id);
    let readings: Vec<&Reading> = others().map(|(reading, _)| *reading).collect();
    html! {
        section id=(experiment.id) {
            h3 { span .id { (experiment.id) } (experiment.title) }
            p .question { (experiment.question) }
            p .setup { (experiment.setup) " " (runs) " runs." }
            (terms.new_in(&text_of(outcome, own)))
            (figures(own, true))
            @if !readings.is_empty() { (disagreement(outcome, &readings)) }
            (claims(outcome, &readings))
            (reasons(outcome))
            @for (reading, theirs) in others() {
                details {
                    summary { "The figures of the " (reading.kind.name()) " arm" }
                    (figures(theirs, true))
                }
            }
            (scenarios(outcome, &readings))
        }
    }
}

/// All words of a section in which terms may occur.
fn text_of(outcome: &Outcome, figures: &[Figure]) -> String {
    let Outcome { experiment, verdicts, .. } = outcome;
    let mut text = format!("{} {} {}", experiment.title, experiment.question, experiment.setup);
    for verdict in verdicts {
        text += &format!(" {} {}", verdict.claim.text, verdict.claim.stated);
    }
    for figure in figures {
        let names = crate::figures::svg::series(figure).join(" ");
        text += &format!(" {} {} {} {names}", figure.title, figure.x.label, figure.y.label);
    }
    text
}

/// The other arms, and in what they differ from the simulator and from each other.
fn disagreement(outcome: &Outcome, readings: &[&Reading]) -> Markup {
    let Outcome { experiment, verdicts, measures, .. } = outcome;
    let ledger = Ledger::of_this_program();
    let differences = ledger.differences(experiment.id, verdicts, measures, readings);
    let about = |kind: Kind| match kind {
        Kind::Live => "the gateway itself with Linux's TCP",
        Kind::Linux => "Linux's own disciplines and TCP",
    };
    let values = |one: &Difference| {
        let each = one.values.iter().map(|(name, value)| format!("{name} {}", number(*value)));
        each.collect::<Vec<_>>().join(", ")
    };
    html! {
        p .setup {
            @for reading in readings {
                b { (reading.kind.name()) } ": " (about(reading.kind)) "; " (reading.quality()) ". "
            }
        }
        @for reading in readings {
            @for (arm, reason) in &reading.refused {
                p .note { (arm) " was not run " (reading.kind.name()) ": " (reason) }
            }
        }
        @if differences.is_empty() {
            p .setup { "The arms agree within the ledger's tolerances." }
        } @else {
            div .note {
                b { "The arms disagree" } " by more than the ledger allows:"
                ul {
                    @for one in &differences {
                        li {
                            (one.measure) ": " (values(one)) " (" (number(one.allowed)) " allowed)."
                            @if let Some(reason) = &one.reason { " Known: " (reason) }
                        }
                    }
                }
            }
        }
    }
}

fn claims(outcome: &Outcome, readings: &[&Reading]) -> Markup {
    let all: Vec<_> = outcome.measured(readings).collect();
    html! {
        details open[all.len() <= OPEN] {
            summary { (all.len()) " claims: " (counts(all.iter().map(|(_, verdict)| *verdict))) }
            table {
                thead {
                    tr {
                        th { "claim" } th { "stated" } th { "simulated" }
                        @for reading in readings { th { (reading.kind.name()) } }
                        th { "holds?" }
                    }
                }
                tbody {
                    @for (n, verdict) in all {
                        @let (class, sign, word) = judged(verdict.holds);
                        tr {
                            td .claim {
                                span .small { (verdict.claim.id) } " " (verdict.claim.text)
                            }
                            td data-h="stated" { (verdict.claim.stated) }
                            td data-h="simulated" title=(detail(verdict)) {
                                (verdict.simulated_text())
                            }
                            @for reading in readings {
                                @let theirs = &reading.verdicts[n];
                                @let (class, sign, word) = judged(theirs.holds);
                                td data-h=(reading.kind.name()) title=(detail(theirs)) {
                                    (theirs.simulated_text()) " "
                                    span class=(class) title=(word) { (sign) }
                                }
                            }
                            td class=(class) { (sign) " " (word) }
                        }
                    }
                }
            }
        }
    }
}

/// Class, sign and words of a judgement.
fn judged(holds: Option<bool>) -> (&'static str, &'static str, &'static str) {
    match holds {
        Some(true) => ("good", "✓", "holds"),
        Some(false) => ("bad", "✗", "does not"),
        None => ("none", "–", "not judged"),
    }
}

/// Why claims do not hold.
fn reasons(outcome: &Outcome) -> Markup {
    let reasons = outcome.reasons();
    html! {
        @if !reasons.is_empty() {
            p { "Why some do not hold:" }
            ul {
                @for (claims, reason) in reasons {
                    li { (reason) " " span .small { (claims.join(", ")) } }
                }
            }
        }
    }
}

/// All simulated values, for those who point at the cell.
fn detail(verdict: &Verdict) -> String {
    const MOST: usize = 12;
    let one = |(name, estimate): &(Measure, Estimate)| format!("{name}: {}", number(estimate.mean));
    let mut lines: Vec<String> = verdict.simulated.iter().take(MOST).map(one).collect();
    if verdict.simulated.len() > MOST {
        lines.push(format!("and {} more", verdict.simulated.len() - MOST));
    }
    lines.join("\n")
}

fn scenarios(outcome: &Outcome, readings: &[&Reading]) -> Markup {
    let arms: Vec<_> = outcome.arms.iter().filter(|arm| !arm.scenario.is_empty()).collect();
    let title = |name: &str| format!("{} {name}", outcome.experiment.id);
    let data = |title: &str| format!("data/{}.flent.gz", slug(title));
    html! {
        @if !arms.is_empty() {
            details {
                summary { "To run it again: " (arms.len()) " scenarios" }
                p .small {
                    "Save one as a file, then " code { "simnel sim FILE" } ". They are in "
                    code { "scenarios/" } " beside this page, the data of their first repetition "
                    "in flent's format in " code { "data/" } "."
                }
                @for arm in arms.iter().take(SHOWN) {
                    details {
                        summary { (arm.name) }
                        p .files {
                            @if arm.flent.is_some() {
                                a href=(data(&title(&arm.name))) { "flent" } " "
                            }
                            @for reading in readings {
                                @let kind = reading.kind.name();
                                @let title = format!("{} {kind}", title(&arm.name));
                                @if reading.flent.iter().any(|(known, _)| *known == title) {
                                    a href=(data(&title)) { "flent, " (kind) } " "
                                }
                            }
                        }
                        pre { (arm.scenario) }
                    }
                }
            }
        }
    }
}

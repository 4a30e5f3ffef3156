//! The page of published experiments: figures, claims, what other arms showed, scenarios.

use maud::{html, Markup};

use super::page::{figures, frame, partial};
use super::terms::Terms;
use crate::experiments::paper::arms::{Difference, Kind, Reading};
use crate::experiments::paper::claim::Verdict;
use crate::experiments::paper::witness::{self, Judgement};
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
            (witness::counts(verdicts().count(), outcomes.iter().flat_map(Outcome::judgements)))
            ". What does not "
            "hold is a finding and stays here, beside what Linux 6.1 did in the same test, where "
            "it could be asked; what could not be measured is not judged. A dot is a "
            "run, a line the median; a band is what a paper states with its tolerance, a "
            "black tick the stated value; a dashed band is where a claim that compares puts it, by "
            "the other runs. Intervals (±) are 95 % confidence over "
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
            (disagreement(outcome, &readings))
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
    let differences = outcome.differences(readings);
    let about = |kind: Kind| match kind {
        Kind::Live => "the gateway itself with Linux's TCP",
        Kind::Linux => "Linux's own disciplines and TCP",
    };
    let values = |one: &Difference| {
        let each = one.values.iter().map(|(name, value)| format!("{name} {}", number(*value)));
        each.collect::<Vec<_>>().join(", ")
    };
    html! {
        @for reading in readings {
            p .setup {
                b { (reading.kind.name()) } ": " (about(reading.kind)) "; " (reading.quality()) "."
            }
        }
        @for reading in readings {
            @for (arm, reason) in &reading.refused {
                p .note { (arm) " was not run " (reading.kind.name()) ": " (reason) }
            }
        }
        @if differences.is_empty() {
            @if !readings.is_empty() || !outcome.witness.measures.arms.is_empty() {
                p .setup { "The arms agree within the ledger's tolerances." }
            }
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
            summary { (witness::counts(all.len(), outcome.judgements())) }
            table {
                thead {
                    tr {
                        th { "claim" } th { "stated" } th { "simulated" } th { (witness::NAME) }
                        @for reading in readings { th { (reading.kind.name()) } }
                        th { "verdict" }
                    }
                }
                tbody {
                    @for (n, verdict) in all {
                        @let (class, sign, word) = verdict_of(outcome.judgement(n));
                        @let linux = &outcome.witness.verdicts[n];
                        tr {
                            td .claim {
                                span .small { (verdict.claim.id) } " " (verdict.claim.text)
                            }
                            td data-h="stated" { (verdict.claim.stated) }
                            td data-h="simulated" title=(detail(verdict)) {
                                (verdict.simulated_text())
                            }
                            (beside(witness::NAME, linux))
                            @for reading in readings {
                                (beside(reading.kind.name(), &reading.verdicts[n]))
                            }
                            td class=(class) { (sign) " " (word) }
                        }
                    }
                }
            }
        }
    }
}

/// The cell of a column beside the simulator's; empty if that did not measure it.
fn beside(column: &str, theirs: &Verdict) -> Markup {
    let (class, sign, word) = judged(theirs.holds);
    html! {
        td data-h=(column) title=(detail(theirs)) {
            @if !theirs.simulated.is_empty() {
                (theirs.simulated_text()) " "
                span class=(class) title=(word) { (sign) }
            }
        }
    }
}

/// Class, sign and words of a claim's verdict.
fn verdict_of(judgement: Option<Judgement>) -> (&'static str, &'static str, &'static str) {
    let Some(judgement) = judgement else { return judged(None) };
    let (class, sign) = match judgement {
        Judgement::Holds => ("good", "✓"),
        Judgement::NotOnLinuxEither => ("none", "≈"),
        Judgement::OursDiffers => ("bad", "✗"),
        Judgement::NoWitness => ("none", "?"),
    };
    (class, sign, judgement.words())
}

/// Class, sign and words of whether a claim holds.
fn judged(holds: Option<bool>) -> (&'static str, &'static str, &'static str) {
    match holds {
        Some(true) => ("good", "✓", "holds"),
        Some(false) => ("bad", "✗", "does not"),
        None => ("none", "–", "not judged"),
    }
}

/// Reasons why claims do not hold, and why they have no witness.
fn reasons(outcome: &Outcome) -> Markup {
    let lists = [
        ("Why some do not hold:", outcome.reasons()),
        ("Why some have no witness:", outcome.lacks()),
    ];
    html! {
        @for (head, reasons) in lists.iter().filter(|(_, reasons)| !reasons.is_empty()) {
            p { (head) }
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
                        pre tabindex="0" { (arm.scenario) }
                    }
                }
            }
        }
    }
}

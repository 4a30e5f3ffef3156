//! The page: everything in one file, without network, for a phone and for a desk.

use std::fmt::Write;

use crate::experiments::paper::arms::{Difference, Ledger, Reading};
use crate::experiments::paper::claim::{number, Verdict};
use crate::experiments::paper::{Outcome, Paper};
use crate::figures::svg::{colour, dashed, draw, escape, series};
use crate::figures::Figure;
use crate::flent::slug;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Claims up to which the table is open.
const OPEN: usize = 30;
/// Scenarios that the page shows; all are in files.
const SHOWN: usize = 12;

/// A page with `title`, a style, a script, and `body`.
pub fn frame(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><title>{title}</title><style>{STYLE}</style></head>\
         <body><header class=\"top\"><h1>{title}</h1>\
         <button id=\"theme\" type=\"button\" aria-label=\"light or dark\">◐</button></header>\n\
         <main>{body}</main><script>{SCRIPT}</script></body></html>\n"
    )
}

/// Figures with legends, side by side where there is room.
pub fn figures(figures: &[Figure], linked: bool) -> String {
    let mut out = String::from("<div class=\"figures\">");
    for figure in figures {
        let Some(svg) = draw(figure, false) else { continue };
        let _ = write!(
            out,
            "<figure><figcaption>{}</figcaption><div class=\"draw\">{svg}</div>\
             <div class=\"legend\">",
            escape(&figure.title)
        );
        for (n, name) in series(figure).iter().enumerate() {
            let colour = colour(n, false);
            let sample = match dashed(n) {
                true => format!("outline:1px dashed {colour};outline-offset:-1px"),
                false => format!("background:{colour}"),
            };
            let _ = write!(
                out,
                "<button type=\"button\" aria-pressed=\"true\" data-n=\"{n}\">\
                 <i style=\"{sample}\"></i>{}</button>",
                escape(name)
            );
        }
        out.push_str("</div>");
        if linked {
            let id = &figure.id;
            let _ = write!(
                out,
                "<p class=\"files\"><a href=\"figures/{id}.svg\">SVG</a> \
                 <a href=\"figures/{id}.png\">PNG</a> <a href=\"figures/{id}.csv\">CSV</a></p>"
            );
        }
        out.push_str("</figure>\n");
    }
    out.push_str("</div>");
    out
}

/// What another arm showed of an experiment, and its figures.
pub type Other<'a> = (&'a Reading, Vec<Figure>);

/// The report of `outcomes`; `figures` are those of each, `others` what other arms showed.
pub fn report(
    outcomes: &[Outcome],
    all_figures: &[Vec<Figure>],
    others: &[Other<'_>],
    partial: bool,
) -> String {
    let mut body = String::new();
    if partial {
        body.push_str("<p class=\"note\">Partial: the runs were stopped before their end.</p>");
    }
    let verdicts = || outcomes.iter().flat_map(|outcome| &outcome.verdicts);
    let _ = write!(
        body,
        "<p class=\"lead\">{} experiment{}, {} claims: {}. What does not hold is a finding and \
         stays here; what could not be measured is not judged. Intervals are 95 % confidence over \
         repetitions.</p>",
        outcomes.len(),
        if outcomes.len() == 1 { "" } else { "s" },
        verdicts().count(),
        counts(verdicts())
    );
    for paper in Paper::ALL {
        contents(paper, outcomes, &mut body);
    }
    let mut paper = None;
    for (outcome, figures) in outcomes.iter().zip(all_figures) {
        if paper != Some(outcome.experiment.paper) {
            paper = Some(outcome.experiment.paper);
            let kind = outcome.experiment.paper;
            let _ = write!(body, "<h2>{} · {}</h2>", kind.letter(), escape(kind.title()));
        }
        let id = outcome.experiment.id;
        let others: Vec<&Other> = others.iter().filter(|(reading, _)| reading.id == id).collect();
        section(outcome, figures, &others, &mut body);
    }
    frame("Published experiments, run again", &body)
}

/// A line of the contents: a paper, how much of it holds, and its experiments.
fn contents(paper: Paper, outcomes: &[Outcome], out: &mut String) {
    let of_paper = || outcomes.iter().filter(|outcome| outcome.experiment.paper == paper);
    let verdicts = || of_paper().flat_map(|outcome| &outcome.verdicts);
    let all = verdicts().count();
    if all == 0 {
        return;
    }
    let held = verdicts().filter(|verdict| verdict.holds == Some(true)).count();
    let _ = write!(
        out,
        "<nav><span class=\"paper\">{}</span><span class=\"bar\" title=\"{held} of {all} claims \
         hold\"><i style=\"width:{:.0}%\"></i></span><span class=\"count\">{held}/{all}</span> ",
        escape(paper.title()),
        100.0 * held as f64 / all as f64
    );
    for outcome in of_paper() {
        let fails = outcome.verdicts.iter().any(|verdict| verdict.holds == Some(false));
        let (id, class) = (outcome.experiment.id, if fails { "bad" } else { "good" });
        let title = escape(outcome.experiment.title);
        let _ = write!(out, "<a href=\"#{id}\" class=\"{class}\" title=\"{title}\">{id}</a>");
    }
    out.push_str("</nav>");
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
        let _ = write!(text, ", {} not judged", counts[2]);
    }
    text
}

fn section(outcome: &Outcome, all: &[Figure], others: &[&Other<'_>], out: &mut String) {
    let experiment = outcome.experiment;
    let runs: usize = outcome.arms.iter().map(|arm| arm.runs).sum();
    let _ = write!(
        out,
        "<section id=\"{0}\"><h3><span class=\"id\">{0}</span>{1}</h3>\
         <p class=\"question\">{2}</p><p class=\"setup\">{3} {runs} runs.</p>",
        experiment.id,
        escape(experiment.title),
        escape(experiment.question),
        escape(experiment.setup),
    );
    for arm in &outcome.arms {
        if let Some(reason) = &arm.refused {
            let (name, reason) = (escape(&arm.name), escape(reason));
            let _ = write!(out, "<p class=\"note\">{name} was not run: {reason}</p>");
        }
    }
    out.push_str(&figures(all, true));
    let readings: Vec<&Reading> = others.iter().map(|(reading, _)| *reading).collect();
    let ledger = Ledger::of_this_program();
    let differences =
        ledger.differences(experiment.id, &outcome.verdicts, &outcome.measures, &readings);
    disagreement(&readings, &differences, out);
    claims(outcome, &readings, out);
    reasons(outcome, out);
    for (reading, figures_there) in others {
        let name = reading.kind.name();
        let _ = write!(out, "<details><summary>The figures of the {name} arm</summary>");
        out.push_str(&figures(figures_there, true));
        out.push_str("</details>");
    }
    scenarios(outcome, &readings, out);
    out.push_str("</section>\n");
}

/// What the other arms are, and in what they differ from the simulator and from each other.
fn disagreement(readings: &[&Reading], differences: &[Difference], out: &mut String) {
    if readings.is_empty() {
        return;
    }
    let about: Vec<String> = readings
        .iter()
        .map(|reading| {
            let what = match reading.kind {
                crate::experiments::paper::arms::Kind::Live => {
                    "the gateway itself with Linux's TCP"
                }
                crate::experiments::paper::arms::Kind::Linux => "Linux's own disciplines and TCP",
            };
            format!("<b>{}</b>: {what}; {}", reading.kind.name(), reading.quality())
        })
        .collect();
    let _ = write!(out, "<p class=\"setup\">{}.</p>", about.join(". "));
    for reading in readings {
        for (arm, reason) in &reading.refused {
            let (arm, reason) = (escape(arm), escape(reason));
            let name = reading.kind.name();
            let _ = write!(out, "<p class=\"note\">{arm} was not run {name}: {reason}</p>");
        }
    }
    if differences.is_empty() {
        out.push_str("<p class=\"setup\">The arms agree within the ledger's tolerances.</p>");
        return;
    }
    out.push_str(
        "<div class=\"note\"><b>The arms disagree</b> by more than the ledger allows:<ul>",
    );
    for one in differences {
        let values: Vec<String> =
            one.values.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
        let reason = one.reason.as_ref().map(|reason| format!(" Known: {}", escape(reason)));
        let _ = write!(
            out,
            "<li>{}: {} ({} allowed).{}</li>",
            escape(&one.measure),
            values.join(", "),
            number(one.allowed),
            reason.unwrap_or_default()
        );
    }
    out.push_str("</ul></div>");
}

fn claims(outcome: &Outcome, readings: &[&Reading], out: &mut String) {
    let open = if outcome.verdicts.len() <= OPEN { " open" } else { "" };
    let _ = write!(
        out,
        "<details{open}><summary>{} claims: {}</summary><table><thead><tr><th>claim<th>stated\
         <th>simulated",
        outcome.verdicts.len(),
        counts(outcome.verdicts.iter())
    );
    for reading in readings {
        let _ = write!(out, "<th>{}", reading.kind.name());
    }
    out.push_str("<th>holds?</thead><tbody>");
    for (n, verdict) in outcome.verdicts.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td class=\"claim\"><span class=\"small\">{}</span> {}<td data-h=\"stated\">{}\
             <td data-h=\"simulated\" title=\"{}\">{}",
            escape(&verdict.claim.id),
            escape(&verdict.claim.text),
            escape(&verdict.claim.stated),
            escape(&detail(verdict)),
            escape(&verdict.simulated_text()),
        );
        for reading in readings {
            let verdict = &reading.verdicts[n];
            let (class, sign, word) = judged(verdict.holds);
            let _ = write!(
                out,
                "<td data-h=\"{}\" title=\"{}\">{} <span class=\"{class}\" \
                 title=\"{word}\">{sign}</span>",
                reading.kind.name(),
                escape(&detail(verdict)),
                escape(&verdict.simulated_text()),
            );
        }
        let (class, sign, word) = judged(verdict.holds);
        let _ = write!(out, "<td class=\"{class}\">{sign} {word}</tr>");
    }
    out.push_str("</tbody></table></details>");
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
fn reasons(outcome: &Outcome, out: &mut String) {
    let reasons = outcome.reasons();
    if reasons.is_empty() {
        return;
    }
    out.push_str("<p>Why some do not hold:</p><ul>");
    for (claims, finding) in reasons {
        let reason = finding.map_or("not known", |finding| finding.reason.trim());
        let (claims, reason) = (escape(&claims.join(", ")), escape(reason));
        let _ = write!(out, "<li>{reason} <span class=\"small\">{claims}</span></li>");
    }
    out.push_str("</ul>");
}

/// All simulated values, for those who point at the cell.
fn detail(verdict: &Verdict) -> String {
    const MOST: usize = 12;
    let one = |(name, estimate): &(String, crate::statistics::Estimate)| {
        format!("{name}: {}", number(estimate.mean))
    };
    let mut lines: Vec<String> = verdict.simulated.iter().take(MOST).map(one).collect();
    if verdict.simulated.len() > MOST {
        lines.push(format!("and {} more", verdict.simulated.len() - MOST));
    }
    lines.join("\n")
}

fn scenarios(outcome: &Outcome, readings: &[&Reading], out: &mut String) {
    let arms: Vec<_> = outcome.arms.iter().filter(|arm| !arm.scenario.is_empty()).collect();
    if arms.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<details><summary>To run it again: {} scenarios</summary><p class=\"small\">Save one as a \
         file, then <code>simnel sim FILE</code>. They are in <code>scenarios/</code> beside this \
         page, the data of their first repetition in flent's format in <code>data/</code>.</p>",
        arms.len()
    );
    for arm in arms.iter().take(SHOWN) {
        let title = format!("{} {}", outcome.experiment.id, arm.name);
        let mut links = String::new();
        if arm.flent.is_some() {
            let _ = write!(links, "<a href=\"data/{}.flent.gz\">flent</a> ", slug(&title));
        }
        for reading in readings {
            let name = reading.kind.name();
            let title = format!("{title} {name}");
            if reading.flent.iter().any(|(known, _)| *known == title) {
                let file = slug(&title);
                let _ = write!(links, "<a href=\"data/{file}.flent.gz\">flent, {name}</a> ");
            }
        }
        let _ = write!(
            out,
            "<details><summary>{}</summary><p class=\"files\">{links}</p><pre>{}</pre></details>",
            escape(&arm.name),
            escape(&arm.scenario)
        );
    }
    out.push_str("</details>");
}

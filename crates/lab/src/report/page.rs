//! The page: everything in one file, without network, for a phone and for a desk.

use std::fmt::Write;

use super::svg::{colour, draw, escape, series};
use crate::flent::slug;
use crate::paper::claim::Verdict;
use crate::paper::figure::Figure;
use crate::paper::Outcome;

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
         <body><button id=\"theme\" type=\"button\">light / dark</button>\n<h1>{title}</h1>\n{body}\
         <script>{SCRIPT}</script></body></html>\n"
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
            let _ = write!(
                out,
                "<button type=\"button\" aria-pressed=\"true\" data-n=\"{n}\">\
                 <i style=\"background:{}\"></i>{}</button>",
                colour(n),
                escape(name)
            );
        }
        if linked {
            let id = &figure.id;
            let _ = write!(
                out,
                "<span class=\"small\"><a href=\"figures/{id}.svg\">SVG</a> \
                 <a href=\"figures/{id}.png\">PNG</a> <a href=\"figures/{id}.csv\">CSV</a></span>"
            );
        }
        out.push_str("</div></figure>\n");
    }
    out.push_str("</div>");
    out
}

/// The report of `outcomes`; `figures` are those of each.
pub fn report(outcomes: &[Outcome], all_figures: &[Vec<Figure>], partial: bool) -> String {
    let mut body = String::new();
    if partial {
        body.push_str("<p class=\"partial\">Partial: the runs were stopped before their end.</p>");
    }
    let verdicts = || outcomes.iter().flat_map(|outcome| &outcome.verdicts);
    let _ = write!(
        body,
        "<p>{} experiments, {} claims: {}. What does not hold is a finding and stays here; what \
         could not be measured is not judged. Intervals are 95 % confidence over repetitions.</p>",
        outcomes.len(),
        verdicts().count(),
        counts(verdicts())
    );
    body.push_str("<nav>");
    for outcome in outcomes {
        let fails = outcome.verdicts.iter().any(|verdict| verdict.holds == Some(false));
        let id = outcome.experiment.id;
        let class = if fails { " class=\"bad\"" } else { "" };
        let _ = write!(body, "<a href=\"#{id}\"{class}>{id}</a>");
    }
    body.push_str("</nav>");
    let mut paper = None;
    for (outcome, figures) in outcomes.iter().zip(all_figures) {
        if paper != Some(outcome.experiment.paper) {
            paper = Some(outcome.experiment.paper);
            let kind = outcome.experiment.paper;
            let _ = write!(body, "<h2>{} · {}</h2>", kind.letter(), escape(kind.title()));
        }
        section(outcome, figures, &mut body);
    }
    frame("Published experiments, run again", &body)
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

fn section(outcome: &Outcome, all: &[Figure], out: &mut String) {
    let experiment = outcome.experiment;
    let runs: usize = outcome.arms.iter().map(|arm| arm.runs).sum();
    let _ = write!(
        out,
        "<section id=\"{0}\"><h3>{0} · {1}</h3><p>{2}</p><p class=\"setup\">{3} {runs} runs.</p>",
        experiment.id,
        escape(experiment.title),
        escape(experiment.question),
        escape(experiment.setup),
    );
    for arm in &outcome.arms {
        if let Some(reason) = &arm.refused {
            let (name, reason) = (escape(&arm.name), escape(reason));
            let _ = write!(out, "<p class=\"refused\">{name} was not run: {reason}</p>");
        }
    }
    out.push_str(&figures(all, true));
    let open = if outcome.verdicts.len() <= OPEN { " open" } else { "" };
    let _ = write!(
        out,
        "<details{open}><summary>{} claims: {}</summary><table><tr><th>claim<th>stated\
         <th>simulated<th>holds?</tr>",
        outcome.verdicts.len(),
        counts(outcome.verdicts.iter())
    );
    for verdict in &outcome.verdicts {
        let (class, word) = match verdict.holds {
            Some(true) => ("good", "✓ holds"),
            Some(false) => ("bad", "✗ does not"),
            None => ("none", "not judged"),
        };
        let _ = write!(
            out,
            "<tr><td><span class=\"small\">{}</span> {}<td>{}<td title=\"{}\">{}\
             <td class=\"{class}\">{word}</tr>",
            escape(&verdict.claim.id),
            escape(&verdict.claim.text),
            escape(&verdict.claim.stated),
            escape(&detail(verdict)),
            escape(&verdict.simulated_text()),
        );
    }
    out.push_str("</table></details>");
    reasons(outcome, out);
    scenarios(outcome, out);
    out.push_str("</section>\n");
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
        format!("{name}: {}", crate::paper::claim::number(estimate.mean))
    };
    let mut lines: Vec<String> = verdict.simulated.iter().take(MOST).map(one).collect();
    if verdict.simulated.len() > MOST {
        lines.push(format!("and {} more", verdict.simulated.len() - MOST));
    }
    lines.join("\n")
}

fn scenarios(outcome: &Outcome, out: &mut String) {
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
        let _ = write!(
            out,
            "<details><summary>{0}</summary><p class=\"small\"><a \
             href=\"data/{1}.flent.gz\">flent</a></p><pre>{2}</pre></details>",
            escape(&arm.name),
            slug(&format!("{} {}", outcome.experiment.id, arm.name)),
            escape(&arm.scenario)
        );
    }
    out.push_str("</details>");
}

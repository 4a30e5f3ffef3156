//! Reports: the page, and beside it every figure as SVG, PNG and CSV, scenarios, flent's data.
//!
//! The page needs nothing but itself; the rest is for other programs. File names are those of
//! figures and arms, so that the same experiments make the same files. A file has its name only
//! when it is complete: whoever looks meanwhile, or after a crash, sees the old one or the new one.

use std::path::Path;
use std::{fs, io};

use crate::experiments::paper::arms::Reading;
use crate::experiments::paper::{Measure, Outcome, Verdict};
use crate::figures::{svg, table, Figure, Plot, Stated};
use simnel_core::printable::Printable;

use crate::files::put;
use crate::flent::{file_name, slug};

pub mod page;
mod paper;
pub mod result;
pub mod runs;
pub mod sweep;
mod terms;
pub mod text;

/// Writes everything about `outcomes`, and what other arms showed of them, beside `page`: into the
/// directory in which that will lie. Gives its text. `partial`: not all runs were done.
pub fn write(
    outcomes: &[Outcome],
    readings: &[Reading],
    page: &Path,
    partial: bool,
) -> io::Result<String> {
    let directory = page.parent().unwrap_or(Path::new(""));
    for part in ["figures", "scenarios", "data"] {
        fs::create_dir_all(directory.join(part))?;
    }
    let own = |outcome: &Outcome| {
        let mut figures = (outcome.experiment.figures)(&outcome.measures);
        figures.iter_mut().for_each(|figure| state(figure, &outcome.verdicts));
        figures
    };
    let figures: Vec<Vec<Figure>> = outcomes.iter().map(own).collect();
    let others: Vec<Vec<Figure>> = readings.iter().map(of_arm).collect();
    #[cfg(feature = "png")]
    let fonts = crate::figures::png::Fonts::new();
    for figure in figures.iter().chain(&others).flatten() {
        let path = |kind: &str| directory.join("figures").join(format!("{}.{kind}", figure.id));
        let Some(drawing) = svg::draw(figure, true) else { continue };
        let drawing = Printable(&drawing.into_string()).to_string();
        put(&path("svg"), drawing.as_bytes())?;
        #[cfg(feature = "png")]
        put(&path("png"), &fonts.render(&drawing).map_err(io::Error::other)?)?;
        let table = table::Table::of(figure);
        put(&path("csv"), table.csv().as_bytes())?;
        #[cfg(feature = "parquet")]
        put(&path("parquet"), &table.parquet().map_err(io::Error::other)?)?;
    }
    for outcome in outcomes {
        for arm in &outcome.arms {
            let title = format!("{} {}", outcome.experiment.id, arm.name);
            if let Some(flent) = &arm.flent {
                put(&directory.join("data").join(file_name(&title)), flent)?;
                let name = format!("{}.toml", slug(&title));
                put(&directory.join("scenarios").join(name), arm.scenario.as_bytes())?;
            }
        }
    }
    for (title, flent) in readings.iter().flat_map(|reading| &reading.flent) {
        put(&directory.join("data").join(file_name(title)), flent)?;
    }
    let others: Vec<_> = readings.iter().zip(others).collect();
    Ok(paper::page(outcomes, &figures, &others, partial))
}

/// Adds to a figure's dots what claims state about their measures.
fn state(figure: &mut Figure, verdicts: &[Verdict]) {
    let Plot::Dots(_, series) = &mut figure.plot else { return };
    let of = |verdict: &Verdict| {
        let simulated = &verdict.simulated;
        let mean = |name: &Measure| {
            simulated.iter().find(|(known, _)| known == name).map(|(_, one)| one.mean)
        };
        let stated = verdict.claim.judge.stated(&mean).into_iter();
        stated.map(|(name, stated)| (name.to_string(), stated)).collect::<Vec<_>>()
    };
    let mut stated: Vec<_> = verdicts.iter().flat_map(of).collect();
    // Of its own first, and after it what follows from other runs; of either the first claim's.
    stated.sort_by_key(|(_, stated)| stated.compared);
    for dots in series {
        let of = |measure: &String| {
            let mut own: Vec<Stated> = Vec::new();
            for (_, one) in stated.iter().filter(|(name, _)| name == measure) {
                if own.iter().all(|known| known.compared != one.compared) {
                    own.push(*one);
                }
            }
            own
        };
        dots.stated = dots.measures.iter().map(of).collect();
    }
}

/// An experiment's figures as an arm showed them, with names of their own.
fn of_arm(reading: &Reading) -> Vec<Figure> {
    let name = reading.kind.name();
    let experiments = crate::experiments::paper::experiments();
    let experiment = experiments.into_iter().find(|experiment| experiment.id == reading.id);
    let figures = experiment.map(|experiment| (experiment.figures)(&reading.measures));
    let renamed = |figure: Figure| Figure {
        id: format!("{}-{name}", figure.id),
        title: format!("{} ({name})", figure.title),
        ..figure
    };
    figures.unwrap_or_default().into_iter().map(renamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::paper::claim::{Claim, Judge};
    use crate::figures::{Axis, Dots};
    use crate::statistics::Estimate;

    #[test]
    fn a_claim_that_compares_is_a_band_by_the_other_runs() {
        let measure = |arm: &str| Measure { arm: arm.into(), quantity: "ms".into() };
        let verdict = |judge: Judge| {
            let claim = Claim { id: "x".into(), text: "".into(), stated: "".into(), judge };
            let both = [("a", 30.0), ("b", 10.0)];
            let of = |(arm, mean)| Some((measure(arm), Estimate::of(&[mean])?));
            Verdict { claim, simulated: both.into_iter().filter_map(of).collect(), holds: None }
        };
        let judges = [
            Judge::Ratio(measure("a"), measure("b"), 2.0, 4.0),
            Judge::NotAbove(measure("b"), measure("a")),
            Judge::Between(measure("b"), 5.0, 15.0),
        ];
        let measures = ["a/ms", "b/ms"].map(String::from).to_vec();
        let dots = Dots { measures, ..Dots::default() };
        let plot = Plot::Dots(vec!["a".into(), "b".into()], vec![dots]);
        let mut figure = Figure::new(("f", "F"), (Axis::linear(""), Axis::linear("ms")), plot);
        state(&mut figure, &judges.map(verdict));
        let Plot::Dots(_, series) = figure.plot else { panic!("dots") };
        let bands: Vec<_> =
            series[0].stated.iter().flatten().map(|one| (one.within, one.compared)).collect();
        let below = ((f64::NEG_INFINITY, 30.0), true);
        assert_eq!(bands, [((20.0, 40.0), true), ((5.0, 15.0), false), below]);
    }
}

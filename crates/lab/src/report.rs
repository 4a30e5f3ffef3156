//! Reports: the page, and beside it every figure as SVG, PNG and CSV, scenarios, flent's data.
//!
//! `index.html` needs nothing but itself; the rest is for other programs. File names are those of
//! figures and arms, so that the same experiments make the same files.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use crate::flent::{file_name, slug};
use crate::paper::figure::{Figure, Plot};
use crate::paper::Outcome;

pub mod page;
mod png;
pub mod svg;

/// Writes everything about `outcomes` into `directory`. `partial`: not all runs were done.
pub fn write(outcomes: &[Outcome], directory: &Path, partial: bool) -> io::Result<()> {
    for part in ["figures", "scenarios", "data"] {
        fs::create_dir_all(directory.join(part))?;
    }
    let figures: Vec<Vec<Figure>> =
        outcomes.iter().map(|outcome| (outcome.experiment.figures)(&outcome.measures)).collect();
    let fonts = png::Fonts::new();
    for figure in figures.iter().flatten() {
        let path = |kind: &str| directory.join("figures").join(format!("{}.{kind}", figure.id));
        let Some(drawing) = svg::draw(figure, true) else { continue };
        fs::write(path("svg"), &drawing)?;
        if let Some(pixels) = fonts.render(&drawing) {
            fs::write(path("png"), pixels)?;
        }
        fs::write(path("csv"), csv(figure))?;
    }
    for outcome in outcomes {
        for arm in &outcome.arms {
            let title = format!("{} {}", outcome.experiment.id, arm.name);
            if let Some(flent) = &arm.flent {
                fs::write(directory.join("data").join(file_name(&title)), flent)?;
                let name = format!("{}.toml", slug(&title));
                fs::write(directory.join("scenarios").join(name), &arm.scenario)?;
            }
        }
    }
    fs::write(directory.join("index.html"), page::report(outcomes, &figures, partial))
}

/// A figure's data: one line a value, with its series.
pub fn csv(figure: &Figure) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut out = String::new();
    match &figure.plot {
        Plot::Lines(lines) => {
            let (x, y) = (quote(&figure.x.label), quote(&figure.y.label));
            let _ = writeln!(out, "series,{x},{y}");
            for line in lines {
                for [x, y] in &line.points {
                    let _ = writeln!(out, "{},{x},{y}", quote(&line.name));
                }
            }
        }
        Plot::Bars(categories, series) => {
            let _ = writeln!(out, "category,series,{},ci95", quote(&figure.y.label));
            for bars in series {
                for (category, value) in categories.iter().zip(&bars.values) {
                    let Some((value, half)) = value else { continue };
                    let (category, name) = (quote(category), quote(&bars.name));
                    let _ = writeln!(out, "{category},{name},{value},{half}");
                }
            }
        }
        Plot::Boxes(categories, series) => {
            out.push_str("category,series,least,p25,median,p75,greatest\n");
            for boxes in series {
                for (category, five) in categories.iter().zip(&boxes.values) {
                    let Some([a, b, c, d, e]) = five else { continue };
                    let (category, name) = (quote(category), quote(&boxes.name));
                    let _ = writeln!(out, "{category},{name},{a},{b},{c},{d},{e}");
                }
            }
        }
    }
    out
}

//! Reports: the page, and beside it every figure as SVG, PNG and CSV, scenarios, flent's data.
//!
//! `index.html` needs nothing but itself; the rest is for other programs. File names are those of
//! figures and arms, so that the same experiments make the same files. A file has its name only
//! when it is complete: whoever looks meanwhile, or after a crash, sees the old one or the new one.

use std::path::Path;
use std::{fs, io};

use crate::flent::{file_name, slug};
use crate::paper::arms::Reading;
use crate::paper::figure::Figure;
use crate::paper::Outcome;

pub mod page;
mod png;
pub mod svg;
pub mod table;

/// Writes everything about `outcomes`, and what other arms showed of them, into `directory`.
/// `partial`: not all runs were done.
pub fn write(
    outcomes: &[Outcome],
    readings: &[Reading],
    directory: &Path,
    partial: bool,
) -> io::Result<()> {
    for part in ["figures", "scenarios", "data"] {
        fs::create_dir_all(directory.join(part))?;
    }
    let figures: Vec<Vec<Figure>> =
        outcomes.iter().map(|outcome| (outcome.experiment.figures)(&outcome.measures)).collect();
    let others: Vec<Vec<Figure>> = readings.iter().map(of_arm).collect();
    let fonts = png::Fonts::new();
    for figure in figures.iter().chain(&others).flatten() {
        let path = |kind: &str| directory.join("figures").join(format!("{}.{kind}", figure.id));
        let Some(drawing) = svg::draw(figure, true) else { continue };
        put(&path("svg"), drawing.as_bytes())?;
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
    let page =
        page::report(outcomes, &figures, &readings.iter().zip(others).collect::<Vec<_>>(), partial);
    put(&directory.join("index.html"), page.as_bytes())
}

/// Writes a file: under another name first, so that `path` is never half of it. What is there but
/// is no file (a terminal, a pipe, a link such as /dev/stdout) is written to as it is.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    fs::write(part, bytes).and_then(|()| fs::rename(part, path)).inspect_err(|_| {
        // What cannot be finished is not left lying about.
        let _ = fs::remove_file(part);
    })
}

/// An experiment's figures as an arm showed them, with names of their own.
fn of_arm(reading: &Reading) -> Vec<Figure> {
    let name = reading.kind.name();
    let experiments = crate::paper::experiments();
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

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("page");
        put(&path, b"one").expect("a writable directory");
        put(&path, b"two").expect("it is replaced");
        assert_eq!(fs::read(&path).expect("the file"), b"two");
        // A directory in its place cannot be replaced.
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).expect("a directory");
        assert!(put(&taken, b"three").is_err());
        assert_eq!(fs::read_dir(directory.path()).expect("the directory").count(), 2);
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        put(&file, b"one").expect("a writable directory");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        put(&link, b"two").expect("through the link");
        assert_eq!(fs::read(&file).expect("the file"), b"two");
        assert!(fs::symlink_metadata(&link).expect("still there").is_symlink());
        put(Path::new("/dev/null"), b"a page").expect("it takes everything");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }
}

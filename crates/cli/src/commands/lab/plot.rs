//! `simnel plot`: the usual plots of flent's data files, ours or flent's own, over each other, and
//! the measures of sweeps, as a page.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use maud::html;
use miette::miette;
use simnel_lab::experiments::sweep;
use simnel_lab::figures::Figure;
use simnel_lab::files::is_stdin;
use simnel_lab::flent::{plot, Data};
use simnel_lab::report::page;

use super::{output_failed, place};

/// Draw the usual plots of flent's data files, over each other, and the measures of sweeps.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel plot out/data/B4-cake.flent.gz --report b4.html\n  \
    simnel plot cake.flent.gz fifo.flent.gz    both in each plot\n  \
    simnel plot rrul.sweep.jsonl               the measures of a sweep")]
pub struct Args {
    /// Data files: .flent.gz, or the JSON inside (`-`: standard input); journals of `simnel sweep`:
    /// .jsonl, packed or not.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page: a path that ends in .html, or a folder for FILES-plot.html, by their names
    /// [default: in this one].
    #[arg(long, value_name = "PATH", alias = "output", short_alias = 'o')]
    report: Option<PathBuf>,
}

/// Draws.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let shorts: Vec<String> = args.files.iter().map(|file| short(file)).collect();
    let usual = place::named(&(shorts.join("-") + "-plot"));
    let page = place::page("plot", args.report.as_deref(), usual, true, &args.files)?;
    if let Some(page) = &page {
        place::apart(&page.path, args.files.iter().map(PathBuf::as_path))?;
    }
    let (sweeps, runs): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.files.iter().partition(|file| name(file).trim_end_matches(".gz").ends_with(".jsonl"));
    let names = names(&runs);
    let read: Vec<(String, Vec<Figure>)> =
        runs.into_iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let (titles, plots): (Vec<String>, Vec<Vec<Figure>>) = read.into_iter().unzip();
    let figures = plot::overlaid(names.iter().cloned().zip(plots));
    let swept: Vec<(String, Vec<Figure>)> =
        sweeps.into_iter().map(|file| swept(file)).collect::<Result<_, _>>()?;
    let body = html! {
        @if !figures.is_empty() {
            @for (name, title) in names.iter().zip(&titles) { p { b { (name) } " " (title) } }
            (page::figures(&figures, false))
        }
        @for (name, figures) in &swept { h2 { (name) } (page::figures(figures, false)) }
    };
    if let Some(page) = page {
        page.store(page::frame("Plots", &body))?;
        writeln!(out, "page: {}", page.path.display()).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file's name without what says its kind.
fn short(file: &Path) -> String {
    if is_stdin(file) {
        return "stdin".into();
    }
    let ends = [".gz", ".flent", ".jsonl"];
    ends.iter().fold(&*name(file), |name, end| name.trim_end_matches(end)).to_owned()
}

/// The names that the series of flent's files get: those of the files, or their paths where two
/// files have one name.
fn names(files: &[&PathBuf]) -> Vec<String> {
    let names: Vec<String> = files.iter().map(|file| short(file)).collect();
    let is_shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let or_path = |(name, file): (&String, &&PathBuf)| match is_shared(name) {
        true => file.display().to_string(),
        false => name.clone(),
    };
    names.iter().zip(files).map(or_path).collect()
}

/// The title and the plots of a file of flent's.
fn read(file: &Path) -> miette::Result<(String, Vec<Figure>)> {
    let opened: Box<dyn Read> =
        match is_stdin(file) {
            true => Box::new(std::io::stdin()),
            false => Box::new(File::open(file).map_err(|error| {
                miette!(help = "a .flent.gz file", "{}: {error}", file.display())
            })?),
        };
    let data = Data::read(opened).map_err(|error| {
        let help = "a data file of flent, format 2 to 4; a sweep's journal ends with .jsonl";
        miette!(help = help, "{}: {error}", file.display())
    })?;
    let figures = plot::plots(&data);
    if figures.is_empty() {
        let help = "a file of a test with TCP flows or pings";
        return Err(miette!(help = help, "{}: nothing to plot", file.display()));
    }
    Ok((data.title().to_string(), figures))
}

/// The measures of a sweep's journal that `simnel sweep` prints.
fn swept(file: &Path) -> miette::Result<(String, Vec<Figure>)> {
    let journal =
        sweep::Journal::read(file).map_err(|error| miette!(help = error.fix, "{}", error.what))?;
    let results = journal.results();
    let names = super::sweep::names(&[], &results);
    let figures: Vec<Figure> =
        names.iter().flat_map(|name| sweep::figures(&results, name)).collect();
    if figures.is_empty() {
        let help = "a sweep over an axis with two values or more";
        return Err(miette!(help = help, "{}: nothing to plot", file.display()));
    }
    Ok((name(file), figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_told_apart_by_their_paths() {
        let files = ["a/run.flent.gz", "b/run.flent", "b/other.flent.gz"].map(PathBuf::from);
        let files: Vec<&PathBuf> = files.iter().collect();
        assert_eq!(names(&files), ["a/run.flent.gz", "b/run.flent", "other"]);
    }
}

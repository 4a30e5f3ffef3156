//! `simnel plot`: the usual plots of flent's data files, ours or flent's own, as a page.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use maud::html;
use miette::miette;
use simnel_lab::files::put;
use simnel_lab::flent::{plot, Data};
use simnel_lab::report::page;

use super::output_failed;

/// Draw the usual plots of flent's data files.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  simnel plot out/data/B4-cake.flent.gz -o b4.html")]
pub struct Args {
    /// Data files: .flent.gz, or the JSON inside.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the page goes [default: FILE.html, by the first file, in this directory].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Draws.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let mut plots = Vec::new();
    for file in &args.files {
        let opened = File::open(file)
            .map_err(|error| miette!(help = "a .flent.gz file", "{}: {error}", file.display()))?;
        let data = Data::read(opened).map_err(|error| {
            let help = "a data file of flent, format 2 to 4";
            miette!(help = help, "{}: {error}", file.display())
        })?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let figures = plot::plots(&data);
        if figures.is_empty() {
            return Err(miette!(
                help = "a file of a test with TCP flows or pings",
                "{}: nothing to plot",
                file.display()
            ));
        }
        plots.push(html! { h2 { (name) } p { (data.title()) } (page::figures(&figures, false)) });
    }
    let body = html! { @for plot in plots { (plot) } };
    let usual = || {
        let name = args.files[0].file_name().unwrap_or_default().to_string_lossy();
        format!("{}.html", name.trim_end_matches(".gz").trim_end_matches(".flent")).into()
    };
    let target: PathBuf = args.output.clone().unwrap_or_else(usual);
    put(&target, page::frame("Plots", &body).as_bytes()).map_err(|error| {
        let help = "say where it may go with --output FILE";
        miette!(help = help, "cannot write {}: {error}", target.display())
    })?;
    writeln!(out, "page: {}", target.display()).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}

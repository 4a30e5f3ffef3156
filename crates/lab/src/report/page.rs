//! The frame of every page: all in one file, without network, for a phone and for a desk.

use maud::{html, Markup, PreEscaped};
use simnel_core::printable::Printable;

use crate::figures::svg::{colour, dashed, draw, series};
use crate::figures::Figure;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A page with `title`, a style, a script, and `body`, as text that obeys nobody.
pub fn frame(title: &str, body: &Markup) -> String {
    let page = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header .top {
                    h1 { (title) }
                    button #theme type="button" aria-label="light or dark" { "◐" }
                }
                main { (body) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Printable(&page.into_string()).to_string()
}

/// A note that not all runs were done: `what` was stopped.
pub fn partial(what: &str) -> Markup {
    html! { p .note { "Partial: " (what) " stopped before their end." } }
}

/// A table, readable on a phone too.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        table .numbers {
            thead { tr { @for name in head { th { (name) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (n, (name, cell)) in head.iter().zip(row).enumerate() {
                            @if n == 0 { td .claim { (cell) } }
                            @else { td data-h=(name) { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// Figures with legends, side by side where there is room. `linked`: their files are beside it.
pub fn figures(figures: &[Figure], linked: bool) -> Markup {
    let sample = |n: usize| match (dashed(n), colour(n, false)) {
        (true, colour) => format!("outline:1px dashed {colour};outline-offset:-1px"),
        (false, colour) => format!("background:{colour}"),
    };
    let drawn = figures.iter().filter_map(|one| Some((one, draw(one, false)?)));
    html! {
        div .figures {
            @for (figure, drawing) in drawn {
                figure {
                    figcaption { (figure.title) }
                    div .draw { (drawing) }
                    div .legend {
                        @for (n, name) in series(figure).iter().enumerate() {
                            button type="button" aria-pressed="true" data-n=(n) {
                                i style=(sample(n)) {} (name)
                            }
                        }
                    }
                    @if linked {
                        p .files {
                            @for (kind, name) in [("svg", "SVG"), ("png", "PNG"), ("csv", "CSV")] {
                                a href={ "figures/" (figure.id) "." (kind) } { (name) } " "
                            }
                        }
                    }
                }
            }
        }
    }
}

//! The frame of every page: all in one file, without network, for a phone and for a desk.
//!
//! Style and script are the front end of the site, as `npm run report` bundles it from `site/src`.
//! They are files of this crate, so that cargo needs no npm. `scripts/site.sh test` compares them
//! anew.

use maud::{html, Markup, PreEscaped};
use simnel_core::printable::Printable;

use crate::figures::styles::styles;
use crate::figures::svg::{draw, series, swatch};
use crate::figures::Figure;

const STYLE: &str = include_str!("front/report.css");
const SCRIPT: &str = include_str!("front/report.js");

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
    html! {
        div .figures {
            @for (figure, drawing) in drawn(figures) {
                figure {
                    figcaption { (figure.title) }
                    div .draw { (drawing) }
                    (legend(figure))
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

/// Figures of the same series under one legend.
pub fn together(figures: &[Figure]) -> Markup {
    html! {
        div .together {
            @if let Some((figure, _)) = drawn(figures).next() { (legend(figure)) }
            div .figures {
                @for (figure, drawing) in drawn(figures) {
                    figure { figcaption { (figure.title) } div .draw { (drawing) } }
                }
            }
        }
    }
}

fn drawn(figures: &[Figure]) -> impl Iterator<Item = (&Figure, Markup)> {
    figures.iter().filter_map(|one| Some((one, draw(one, false)?)))
}

/// Buttons that switch series.
fn legend(figure: &Figure) -> Markup {
    let names = series(figure);
    let styles = styles(&names);
    html! {
        div .legend {
            @for (n, name) in names.iter().enumerate() {
                button type="button" aria-pressed="true" data-n=(n) { (swatch(styles[n])) (name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_end_fits_into_a_page() {
        assert!(STYLE.len() + SCRIPT.len() < 120_000, "{} and {}", STYLE.len(), SCRIPT.len());
        assert!(!STYLE.contains("</style") && !SCRIPT.contains("</script"));
    }
}

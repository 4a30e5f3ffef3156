//! The page of a measured line: to be shared, in one file.

use std::path::PathBuf;
use std::time::SystemTime;

use maud::html;
use simnel_lab::figures::{Axis, Figure, Line, Plot};
use simnel_lab::report::page;
use simnel_measure::Report;
use time::OffsetDateTime;

use super::place;

/// The page's usual name: each measurement has one of its own, by the time (UTC) of its beginning.
pub fn usual(begun: SystemTime) -> PathBuf {
    let at = OffsetDateTime::from(begun);
    let (hour, minute, second) = at.to_hms();
    place::named(&format!("line-{}T{hour:02}-{minute:02}-{second:02}Z", at.date()))
}

/// The result with its figures over time. The server's address is left out: pages are shared.
pub fn page(report: &Report) -> String {
    let end = report.series.rtt.last().map_or(1.0, |point| point[0]);
    let time = || Axis::linear("seconds").within(0.0, end);
    let line = |name: &str, points: &Vec<[f64; 2]>| {
        (!points.is_empty()).then(|| Line { name: name.into(), points: points.clone() })
    };
    let series = &report.series;
    let delays = [line("to the server", &series.rtt), line("to the router", &series.home)];
    let rates = [line("download", &series.download), line("upload", &series.upload)];
    let figures = [
        Figure::new(
            ("delay", "Round trips over time"),
            (time(), Axis::linear("ms")),
            Plot::Lines(delays.into_iter().flatten().collect()),
        ),
        Figure::new(
            ("rate", "Payload over time"),
            (time(), Axis::linear("Mbit/s")),
            Plot::Lines(rates.into_iter().flatten().collect()),
        ),
    ];
    let (head, rows) = report.table();
    let grade = report.grade.map_or("-", |grade| grade.name());
    let rpm = report.rpm.map_or(String::new(), |rpm| format!(", {rpm:.0} round trips per minute"));
    let words = report.verdict();
    let body = html! {
        p { strong { "Grade " (grade) } (rpm) }
        @for line in &words { p { (line.replace(&report.server, "the server")) } }
        (page::table(&head, &rows))
        (page::figures(&figures, false))
        p .note {
            "The line idle, then with " (report.flows) " TCP connections each way; an echo "
            "every 20 ms. " (simnel_measure::grade::HOW)
        }
    };
    page::frame("A line, idle and under load", &body)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn each_measurement_has_a_name_of_its_own() {
        // As `date -u -d @SECONDS` has them.
        for (seconds, name) in [
            (0, "line-1970-01-01T00-00-00Z.html"),
            (951_868_799, "line-2000-02-29T23-59-59Z.html"),
            (1_735_689_600, "line-2025-01-01T00-00-00Z.html"),
        ] {
            let begun = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(usual(begun), Path::new(name), "{seconds}");
        }
    }
}

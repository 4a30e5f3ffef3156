//! Results of a demonstration, as JSON and as a table for people.
//!
//! Added delay is an echo's round-trip time above the idle line's median. The grade is of its 95th
//! percentile, which is the delay that a call really gets. Receivers of calls size their jitter
//! buffers so that about 95 of 100 packets come in time (WebRTC's NetEq: 0.95 to 0.97). The median
//! would praise a line that stutters. The 99th percentile of 700 echoes is 7 echoes, often the
//! measuring machine's own. A lost echo counts as later than any.

use std::fmt::Write;
use std::io::IsTerminal;

use serde::Serialize;
use simnel_core::printable::Printable;
use simnel_core::Rate;
use simnel_measure::grade::{quantile, HOW};
pub use simnel_measure::Grade;

use super::Options;
use crate::probe::Echo;

/// The result of a demonstration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoReport {
    /// Real or synthetic.
    #[serde(flatten)]
    pub kind: Kind,
    /// The line.
    pub line: LineReport,
    /// The line as it is.
    pub without: Phase,
    /// The same line behind Simnel.
    pub with: Phase,
}

/// Origin of the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// Real TCP over real interfaces of this machine.
    Live,
    /// The core alone, in virtual time, against simple senders.
    Synthetic {
        /// Reason why it was not live.
        reason: String,
    },
}

/// The demonstration's line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineReport {
    /// Towards the home.
    pub download_mbit: f64,
    /// From the home.
    pub upload_mbit: f64,
    /// Idle round-trip time.
    pub rtt_ms: f64,
    /// Other settings.
    #[serde(flatten)]
    pub options: Options,
}

/// One half of a demonstration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Median round-trip time of the idle line.
    pub idle_ms: f64,
    /// Added delay of a typical echo; None if it was lost.
    pub added_ms_median: Option<f64>,
    /// Added delay that 95 of 100 echoes do not exceed.
    pub added_ms_p95: Option<f64>,
    /// Added delay that 99 of 100 echoes do not exceed.
    pub added_ms_p99: Option<f64>,
    /// The largest added delay while the flows start; None if an echo was lost then.
    pub start_added_ms_max: Option<f64>,
    /// Echoes sent under load, once the flows have started.
    pub echoes: usize,
    /// Of these, echoes that did not come back.
    pub lost: usize,
    /// Payload received by the home.
    pub download_mbit: f64,
    /// Payload received from the home.
    pub upload_mbit: f64,
    /// Of `added_ms_p95`.
    pub grade: Grade,
}

impl LineReport {
    pub(super) fn new(options: &Options) -> LineReport {
        LineReport {
            download_mbit: megabits(options.download),
            upload_mbit: megabits(options.upload),
            rtt_ms: options.rtt.as_micros() as f64 / 1e3,
            options: options.clone(),
        }
    }
}

impl Phase {
    /// Sums echoes up; rates are of payload.
    pub(super) fn new(
        idle: &[Echo],
        start: &[Echo],
        loaded: &[Echo],
        download: Rate,
        upload: Rate,
    ) -> Phase {
        let milliseconds = |echo: &Echo| echo.rtt.map(|rtt| rtt.as_secs_f64() * 1e3);
        let idle_ms = quantile(idle.iter().map(milliseconds), 50).unwrap_or(0.0);
        let added_to = |echoes: &[Echo], percent| {
            let added = |ms: f64| (ms - idle_ms).max(0.0);
            quantile(echoes.iter().map(|echo| milliseconds(echo).map(added)), percent)
        };
        let added = |percent| added_to(loaded, percent);
        Phase {
            idle_ms,
            added_ms_median: added(50),
            added_ms_p95: added(95),
            added_ms_p99: added(99),
            start_added_ms_max: added_to(start, 100),
            echoes: loaded.len(),
            lost: loaded.iter().filter(|echo| echo.rtt.is_none()).count(),
            download_mbit: megabits(download),
            upload_mbit: megabits(upload),
            grade: Grade::of(added(95)),
        }
    }
}

fn megabits(rate: Rate) -> f64 {
    rate.bits() as f64 / 1e6
}

/// Abilities of the reader's screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Lines drawn with box characters.
    pub unicode: bool,
    /// Grades in colour.
    pub colour: bool,
}

impl Style {
    /// For this program's standard output: boxes on UTF-8 terminals, colours on terminals unless
    /// NO_COLOR is set.
    pub fn of_stdout() -> Style {
        let terminal = std::io::stdout().is_terminal();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .unwrap_or_default()
            .to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        Style {
            unicode: terminal && utf8,
            colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

const LABEL_WIDTH: usize = 36;
const VALUE_WIDTH: usize = 16;

impl DemoReport {
    /// One JSON object; units are in the names.
    pub fn to_json(&self) -> String {
        // Numbers and strings always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The table.
    pub fn render(&self, style: Style) -> String {
        let (without, with) = (&self.without, &self.with);
        let mut text = String::new();
        let LineReport { download_mbit, upload_mbit, rtt_ms, options } = &self.line;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "A line of {download_mbit} Mbit/s down and {upload_mbit} Mbit/s up, {rtt_ms} ms away, \
             with {} flows each way.",
            options.flows
        );
        if !options.words.is_empty() {
            let _ = writeln!(text, "Simnel runs `{}`.", Printable(&options.words.join(" ")));
        }
        if let Kind::Synthetic { reason } = &self.kind {
            let _ = writeln!(
                text,
                "SYNTHETIC: simple senders in virtual time, not real traffic:\n{reason}."
            );
        }
        let delay = |ms: Option<f64>| match ms {
            None => "lost".to_owned(),
            Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
            Some(ms) => format!("{ms:.0} ms"),
        };
        let rate = |mbit: f64| format!("{mbit:.2} Mbit/s");
        let loss = |phase: &Phase| {
            format!("{:.1} %", 100.0 * phase.lost as f64 / phase.echoes.max(1) as f64)
        };
        let rows = [
            ("Delay of the idle line", delay(Some(without.idle_ms)), delay(Some(with.idle_ms))),
            (
                "Load adds, to a typical packet",
                delay(without.added_ms_median),
                delay(with.added_ms_median),
            ),
            (
                "Load adds, to 95 of 100 at most",
                delay(without.added_ms_p95),
                delay(with.added_ms_p95),
            ),
            (
                "Load adds, to 99 of 100 at most",
                delay(without.added_ms_p99),
                delay(with.added_ms_p99),
            ),
            (
                "While the flows start, at most",
                delay(without.start_added_ms_max),
                delay(with.start_added_ms_max),
            ),
            ("A call's packets lost", loss(without), loss(with)),
            ("Download", rate(without.download_mbit), rate(with.download_mbit)),
            ("Upload", rate(without.upload_mbit), rate(with.upload_mbit)),
            ("Grade", without.grade.name().into(), with.grade.name().into()),
        ];
        let (bar, lines) = if style.unicode {
            ("│", [["┌", "┬", "┐"], ["├", "┼", "┤"], ["└", "┴", "┘"]])
        } else {
            ("|", [["+"; 3]; 3])
        };
        let stroke = if style.unicode { "─" } else { "-" };
        let rule = |[left, middle, right]: [&str; 3]| {
            let cell = |width: usize| stroke.repeat(width + 2);
            let (label, value) = (cell(LABEL_WIDTH), cell(VALUE_WIDTH));
            format!("{left}{label}{middle}{value}{middle}{value}{right}\n")
        };
        let row = |label: &str, cells: [(&str, &str); 2]| {
            let mut line = format!("{bar} {label:<LABEL_WIDTH$} ");
            for (cell, colour) in cells {
                let end = if colour.is_empty() { "" } else { "\x1b[0m" };
                let _ = write!(line, "{bar} {colour}{cell:>VALUE_WIDTH$}{end} ");
            }
            line + bar + "\n"
        };
        text += &rule(lines[0]);
        text += &row("", [("without Simnel", ""), ("with Simnel", "")]);
        text += &rule(lines[1]);
        for (label, left, right) in &rows {
            let paint = |grade: Grade| match style.colour && *label == "Grade" {
                true => grade.colour(),
                false => "",
            };
            text += &row(label, [(left, paint(without.grade)), (right, paint(with.grade))]);
        }
        text += &rule(lines[2]);
        text += HOW;
        let packet_ms = 1514.0 * 8.0 / 1000.0 / upload_mbit;
        if packet_ms >= 1.0 {
            let _ = writeln!(
                text,
                "A packet of 1514 bytes occupies the upload for {packet_ms:.1} ms: others wait \
                 for it."
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn echoes(milliseconds: &[Option<u64>]) -> Vec<Echo> {
        let echo =
            |ms: &Option<u64>| Echo { sent: Duration::ZERO, rtt: ms.map(Duration::from_millis) };
        milliseconds.iter().map(echo).collect()
    }

    #[test]
    fn a_lost_echo_is_later_than_any() {
        let mut loaded = vec![Some(31); 94];
        loaded.extend([Some(130), None, None, None, None, None]);
        let rate = Rate::from_bits(1_000_000);
        let phase = Phase::new(&echoes(&[Some(30); 9]), &[], &echoes(&loaded), rate, rate);
        assert_eq!(phase.added_ms_median, Some(1.0));
        assert_eq!((phase.added_ms_p95, phase.added_ms_p99), (Some(100.0), None));
        assert_eq!((phase.lost, phase.grade), (5, Grade::C));
        assert_eq!(Phase::new(&[], &[], &[], rate, rate).grade, Grade::F);
    }

    #[test]
    fn every_row_of_the_table_is_equally_wide() {
        let rate = Rate::from_bits(1_000_000);
        let phase = Phase::new(&echoes(&[Some(30)]), &[], &echoes(&[None]), rate, rate);
        let options = Options::default();
        let report = DemoReport {
            kind: Kind::Synthetic { reason: "a test".into() },
            line: LineReport::new(&options),
            without: phase.clone(),
            with: phase,
        };
        for unicode in [true, false] {
            let text = report.render(Style { unicode, colour: false });
            let starts = |line: &&str| line.starts_with(['│', '|', '+', '┌', '├', '└']);
            let widths: Vec<usize> =
                text.lines().filter(starts).map(|line| line.chars().count()).collect();
            assert!(widths.len() > 10 && widths.iter().all(|&width| width == widths[0]));
            assert_eq!(text.is_ascii(), !unicode);
            assert!(text.contains("SYNTHETIC"));
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["kind"], "synthetic");
        assert_eq!(json["without"]["grade"], "F");
        assert_eq!(json["line"]["upload_mbit"], 3.0);
    }
}

//! Runs of a scenario, as a table for the terminal and as a page.

use std::collections::BTreeSet;
use std::fmt::Write;

use simnel_scenario::summary::{Application, GroupSummary, LineSummary, Summary, Times};
use simnel_scenario::Scenario;

use super::result::Result;
use crate::experiments::compare::{called, Sentence};
use crate::experiments::scenario::Case;

/// The summaries of one discipline, over its seeds.
#[derive(Clone, Debug)]
pub struct Contender<'a> {
    /// The discipline's words; both if they differ by direction.
    pub words: String,
    /// One summary a seed.
    pub runs: Vec<&'a Summary>,
}

/// `summaries` by discipline, in their order.
pub fn contenders(summaries: &[Summary]) -> Vec<Contender<'_>> {
    let mut found: Vec<Contender<'_>> = Vec::new();
    for summary in summaries {
        let words = if summary.qdisc_up == summary.qdisc_down {
            summary.qdisc_up.clone()
        } else {
            format!("up: {}, down: {}", summary.qdisc_up, summary.qdisc_down)
        };
        match found.iter_mut().find(|contender| contender.words == words) {
            Some(contender) => contender.runs.push(summary),
            None => found.push(Contender { words, runs: vec![summary] }),
        }
    }
    found
}

/// True if a discipline has several runs, and those of each are the same packet by packet.
fn are_alike(contenders: &[Contender<'_>]) -> bool {
    let same = |one: &Contender<'_>| one.runs.windows(2).all(|two| two[0].hash == two[1].hash);
    contenders.iter().any(|one| one.runs.len() > 1) && contenders.iter().all(same)
}

impl Contender<'_> {
    /// Its name in prose: its own where it is the same both ways and only rates differ.
    fn short(&self) -> String {
        let ways = self.words.strip_prefix("up: ").and_then(|rest| rest.split_once(", down: "));
        let first = |words: &str| words.split_whitespace().next().map(str::to_string);
        match ways {
            Some((up, down)) if first(up) == first(down) => first(up).unwrap_or_default(),
            _ => self.words.clone(),
        }
    }

    /// Mean over the seeds of what `of` says of a run; runs without it do not count.
    pub fn mean(&self, of: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| of(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn mean_of_group(
        &self,
        group: usize,
        of: impl Fn(&GroupSummary) -> Option<f64>,
    ) -> Option<f64> {
        self.mean(|run| run.groups.get(group).and_then(&of))
    }
}

/// The delay that a group's own users feel: round trip of probes, one way of datagrams, sojourn of
/// everything else. Milliseconds beyond propagation.
pub fn felt(group: &GroupSummary) -> Option<Times> {
    match &group.application {
        Some(application @ (Application::Ping { .. } | Application::Datagrams { .. })) => {
            application.times()
        }
        _ => group.sojourn_ms,
    }
}

/// A number of things: whole, as in a single run, or a mean.
fn count(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{value:.1}")
    }
}

/// Findings of a group's application, in one line.
fn remark(contender: &Contender<'_>, group: usize) -> String {
    let first = contender.runs.first().and_then(|run| run.groups.get(group));
    let Some(application) = first.and_then(|group| group.application.as_ref()) else {
        return String::new();
    };
    let mean = |of: &dyn Fn(&Application) -> Option<f64>| {
        contender.mean_of_group(group, |g| g.application.as_ref().and_then(of))
    };
    // A figure that this kind of application has.
    macro_rules! figure {
        ($kind:ident { $field:ident }) => {
            figure!($kind { $field, .. } => *$field)
        };
        ($kind:ident $fields:tt => $value:expr) => {
            mean(&|a| match a {
                Application::$kind $fields => Some($value as f64),
                _ => None,
            })
            .unwrap_or(0.0)
        };
    }
    // Times of those runs that have any.
    let time = |which: fn(Times) -> f64| mean(&|a| a.times().map(which));
    match application {
        Application::Transfers { .. } => {
            let finished = figure!(Transfers { finished });
            let took = time(|times| times.mean / 1e3);
            let took = took.map(|took| format!(" in {took:.2} s")).unwrap_or_default();
            format!("{} done{took}", count(finished))
        }
        Application::Ping { .. } => {
            let lost = figure!(Ping { sent, received, .. } => sent.saturating_sub(*received));
            match lost {
                0.0 => "all answered".into(),
                lost => format!("{} unanswered", count(lost)),
            }
        }
        Application::Datagrams { .. } => {
            let loss = 100.0 * figure!(Datagrams { loss });
            let jitter = mean(&|a| match a {
                Application::Datagrams { jitter_ms, .. } => *jitter_ms,
                _ => None,
            });
            let quality = mean(&|a| match a {
                Application::Datagrams { mos, .. } => *mos,
                _ => None,
            });
            let jitter =
                jitter.map(|jitter| format!(", jitter {jitter:.2} ms")).unwrap_or_default();
            let quality = quality.map(|mos| format!(", MOS {mos:.2}")).unwrap_or_default();
            format!("{loss:.2} % lost{jitter}{quality}")
        }
        Application::Web { .. } => {
            let pages = figure!(Web { pages });
            let load = time(|times| times.p50).zip(time(|times| times.p95));
            let load = load.map(|(load, slow)| format!(", {load:.0} ms (p95 {slow:.0})"));
            format!("{pages:.0} pages{}", load.unwrap_or_default())
        }
        Application::Dash { .. } => {
            let chosen = figure!(Dash { chosen_mbps });
            if chosen == 0.0 {
                return "no chunk arrived".into();
            }
            let stalls = figure!(Dash { stalls });
            let stalled = figure!(Dash { stalled_s });
            format!("{chosen:.2} Mbit/s chosen, {} stalls ({stalled:.1} s)", count(stalls))
        }
        Application::Messages { .. } => {
            match time(|times| times.p50).zip(time(|times| times.p99)) {
                Some((latency, slow)) => format!("messages take {latency:.0} ms (p99 {slow:.0})"),
                None => "no message arrived".into(),
            }
        }
        Application::Bursts { .. } => {
            let completed = figure!(Bursts { completed });
            let took = time(|times| times.mean / 1e3);
            let took = took.map(|took| format!(", {took:.2} s each")).unwrap_or_default();
            format!("{} transfers{took}", count(completed))
        }
    }
}

/// One line of the table.
struct Row {
    /// The group's name.
    name: String,
    /// Goodput in Mbit/s, the delay in ms (p50, p95, p99), Jain's index, drops, marks.
    cells: [String; 7],
    /// Further remarks.
    remark: String,
}

/// The columns of [`Row::cells`].
const COLUMNS: [&str; 7] = ["Mbit/s", "p50 ms", "p95 ms", "p99 ms", "Jain", "drops", "marks"];

/// The rows of one discipline, with a heading.
fn table_rows(contender: &Contender<'_>) -> Vec<Vec<String>> {
    let head = ["traffic"].into_iter().chain(COLUMNS).chain([""]).map(String::from).collect();
    let cells = |row: Row| [row.name].into_iter().chain(row.cells).chain([row.remark]).collect();
    [head].into_iter().chain(rows(contender).into_iter().map(cells)).collect()
}

fn rows(contender: &Contender<'_>) -> Vec<Row> {
    let Some(first) = contender.runs.first() else { return Vec::new() };
    let number = |value: Option<f64>, digits: usize| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".into(),
    };
    let group_row = |(n, group): (usize, &GroupSummary)| {
        let mean = |of: &dyn Fn(&GroupSummary) -> Option<f64>| contender.mean_of_group(n, of);
        let drops = |group: &GroupSummary| {
            let kept = group.drops.iter().filter(|(reason, _)| *reason != "ack_filter");
            Some(kept.map(|(_, count)| *count).sum::<u64>() as f64)
        };
        let mut name = group.name.clone();
        if group.flows > 1 {
            let _ = write!(name, " ({})", group.flows);
        }
        Row {
            name,
            cells: [
                number(mean(&|g| Some(g.goodput_mbps)), 3),
                number(mean(&|g| felt(g).map(|times| times.p50)), 2),
                number(mean(&|g| felt(g).map(|times| times.p95)), 2),
                number(mean(&|g| felt(g).map(|times| times.p99)), 2),
                number(mean(&|g| g.jain), 3),
                number(mean(&drops), 0),
                number(mean(&|g| Some(g.marks as f64)), 0),
            ],
            remark: remark(contender, n),
        }
    };
    let mut rows: Vec<Row> = first.groups.iter().enumerate().map(group_row).collect();
    for (n, line) in first.lines.iter().enumerate() {
        let mean = |of: &dyn Fn(&LineSummary) -> Option<f64>| {
            contender.mean(|run| run.lines.get(n).and_then(of))
        };
        let use_of_line = mean(&|line| line.utilisation.map(|share| share * 100.0));
        let filtered = mean(&|line| Some(line.ack_drops as f64)).unwrap_or(0.0);
        let mut remark =
            use_of_line.map(|share| format!("{share:.1} % of the line")).unwrap_or_default();
        if filtered > 0.0 {
            let _ = write!(remark, ", {filtered:.0} ACKs filtered");
        }
        rows.push(Row {
            name: format!("line {}", line.direction),
            cells: [
                number(mean(&|line| Some(line.mbps)), 3),
                number(mean(&|line| line.sojourn_ms.map(|times| times.p50)), 2),
                number(mean(&|line| line.sojourn_ms.map(|times| times.p95)), 2),
                number(mean(&|line| line.sojourn_ms.map(|times| times.p99)), 2),
                "-".into(),
                number(mean(&|line| Some(line.drops as f64)), 0),
                number(mean(&|line| Some(line.marks as f64)), 0),
            ],
            remark,
        });
    }
    rows
}

/// Takes the last column out of a table for which there is no room, as lines to stand below it.
fn remarks(rows: &mut [Vec<String>]) -> String {
    let mut below = String::new();
    for row in rows {
        if let (Some(remark), Some(name)) = (row.pop().filter(|one| !one.is_empty()), row.first()) {
            let _ = writeln!(below, "{name}: {remark}");
        }
    }
    below
}

/// The runs as a table for a terminal of `width` columns.
pub fn table(scenario: &Scenario, summaries: &[Summary], width: Option<u16>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", scenario.name);
    if !scenario.question.is_empty() {
        let _ = writeln!(out, "{}", scenario.question);
    }
    let contenders = contenders(summaries);
    let alike = are_alike(&contenders);
    if alike {
        let _ = writeln!(out, "{}", super::text::ALIKE);
    }
    for contender in contenders {
        let partial = contender.runs.iter().filter(|run| !run.complete).count();
        let seeds = contender.runs.len();
        let _ = write!(out, "\n{}", contender.words);
        let _ = match seeds {
            _ if alike => writeln!(out),
            1 => writeln!(out),
            _ => writeln!(out, "  (mean of {seeds} seeds)"),
        };
        if partial > 0 {
            let _ = writeln!(out, "PARTIAL: {partial} of {seeds} runs were stopped early");
        }
        let mut rows = table_rows(&contender);
        let below = match super::text::fits(&rows, width) {
            true => String::new(),
            false => remarks(&mut rows),
        };
        out += &super::text::table(&rows, 1..1 + COLUMNS.len(), width);
        out += &below;
    }
    out
}

/// The page. `text` is the scenario's file, so that anybody can run it again.
pub fn page(
    scenario: &Scenario,
    text: &str,
    interval_s: f64,
    summaries: &[Summary],
) -> serde_json::Result<String> {
    let contenders = contenders(summaries);
    let short: Vec<String> = contenders.iter().map(Contender::short).collect();
    let words: Vec<String> = contenders.iter().map(|one| one.words.clone()).collect();
    let is_plain = short.iter().collect::<BTreeSet<_>>().len() == short.len();
    let (all, stopped) = (summaries.len(), summaries.iter().filter(|one| !one.complete).count());
    let alike = || Sentence { text: super::text::ALIKE.into(), decides: true };
    let said = are_alike(&contenders).then(alike);
    let runs = contenders.iter().map(|one| one.runs.iter().copied().cloned().collect()).collect();
    let result = Result {
        question: &scenario.question,
        partial: match stopped {
            0 => String::new(),
            _ => format!("{stopped} of {all} runs were stopped before their end."),
        },
        names: if is_plain { called(&short) } else { words.clone() },
        words,
        cases: vec![Case { name: String::new(), interval_s, runs }],
        said: said.into_iter().collect(),
        scenario: text,
    };
    result.page(&scenario.name)
}

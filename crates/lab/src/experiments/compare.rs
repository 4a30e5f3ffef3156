//! Two disciplines on one line: the question that people really ask.
//!
//! Four workloads that a home knows, the same seeds for every contender. What differs by more than
//! chance and by an amount that somebody could notice is said in words.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde::Serialize;
use simnel_core::Span;
use simnel_sim::{Direction, FlowResult, Outcome};

use crate::experiments::paper::measure::quantities;
use crate::experiments::paper::View;
use crate::experiments::scenario::{each_once, Case};
use crate::statistics::Estimate;
use simnel_scenario::file::{File, Host, Line, Traffic};
use simnel_scenario::summary::{mos, Summary, Times, NOTHING_HEARD};
use simnel_scenario::{no_files, Scenario, ScenarioError};

/// The question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Disciplines in `tc`'s words; `{rate}` stands for the line's rate.
    pub contenders: Vec<String>,
    /// The line's rates in `tc`'s words: down, up.
    pub line: (String, String),
    /// Base round-trip time in `tc`'s words.
    pub rtt: String,
    /// Seeds.
    pub repetitions: u32,
}

quantities! {
    /// Quantities, with their units.
    Quantity {
        CallQuality = "call quality (MOS)", CallDelay = "call delay (ms)",
        CallLoss = "call loss (%)", PageLoad = "page load (ms)", Added = "added latency (ms)",
        AddedP99 = "added latency, p99 (ms)", Download = "download (Mbit/s)",
        Upload = "upload (Mbit/s)", Share = "share of the single flow's host (%)",
    }
}

use Quantity::*;

impl Quantity {
    /// True if less is better.
    pub fn less(self) -> bool {
        matches!(self, CallDelay | CallLoss | PageLoad | Added | AddedP99)
    }

    /// The smallest difference that is felt: a millisecond, a tenth of a percent of loss, a tenth
    /// of a point.
    fn felt(self) -> f64 {
        match self {
            CallDelay | PageLoad | Added | AddedP99 => 1.0,
            CallLoss | CallQuality => 0.1,
            Download | Upload | Share => 0.0,
        }
    }
}

/// Measures of one run; None of what nothing arrived for.
type Sample = Vec<(Quantity, Option<f64>)>;

/// A workload: its name, its traffic, what is measured.
struct Workload {
    name: &'static str,
    add: fn(File) -> File,
    measure: fn(&View<'_>) -> Sample,
}

/// A measure of a workload for every contender.
#[derive(Clone, Debug)]
pub struct Row {
    /// The workload.
    pub workload: &'static str,
    /// The measure.
    pub measure: Quantity,
    /// By contender.
    pub values: Vec<Option<Estimate>>,
}

/// A sentence about what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Its words.
    pub text: String,
    /// True if the verdict stands on it: nobody folds it away.
    pub decides: bool,
}

/// Everything that was simulated.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The measures.
    pub rows: Vec<Row>,
    /// The workloads' runs.
    pub cases: Vec<Case>,
}

const WORKLOADS: [Workload; 4] = [
    Workload {
        name: "upload while in a call",
        add: |file| {
            file.traffic(bulk(2).direction(Direction::Up)).traffic(Traffic::voip().dscp(&["EF"]))
        },
        measure: call,
    },
    Workload {
        name: "download while browsing",
        add: |file| {
            file.traffic(bulk(4).direction(Direction::Down)).traffic(Traffic::web().per_second(1.0))
        },
        measure: browsing,
    },
    Workload {
        name: "full both ways",
        add: |file| {
            file.traffic(bulk(4).both_ways().dscp(&["BE", "CS1", "CS5", "EF"]))
                .traffic(Traffic::ping().interval(Span::from_millis(100)))
        },
        measure: both_ways,
    },
    Workload {
        name: "one flow against eight",
        // Everyone has servers of their own: isolation by server must not hide that by home host.
        add: |file| {
            let to = |flows: Traffic, home: &str, internet: &str| {
                flows.name(home).home(&[home]).internet(&[internet]).direction(Direction::Down)
            };
            file.host(Host::home("one"))
                .host(Host::home("eight"))
                .host(Host::internet("server"))
                .host(Host::internet("servers").count(4))
                .traffic(to(Traffic::bulk(), "one", "server"))
                .traffic(to(bulk(8), "eight", "servers"))
        },
        measure: sharing,
    },
];

fn bulk(count: u32) -> Traffic {
    Traffic::bulk().count(count).stagger(Span::from_millis(200))
}

fn call(view: &View<'_>) -> Sample {
    let mut delay = simnel_sim::Distribution::default();
    let mut loss = 0.0f64;
    for way in ["voip up", "voip down"] {
        for flow in view.flows(way) {
            if let Outcome::Datagrams { added_delay, .. } = &flow.outcome {
                delay.merge(added_delay);
            }
        }
        loss = loss.max(view.loss(way));
    }
    let delay = Times::of(&delay);
    // Half the round trip, and 60 ms of coding and play-out.
    let setup = &view.run.setup;
    let one_way = setup.hosts.iter().map(|host| host.egress.delay.0).max().unwrap_or(0);
    let of = |times: Times| mos(one_way as f64 / 1e6 + times.mean + 60.0, loss);
    vec![
        (CallQuality, Some(delay.map_or(NOTHING_HEARD, of))),
        (CallDelay, delay.map(|times| times.mean)),
        (CallLoss, Some(loss * 100.0)),
        (Upload, Some(view.goodput(&view.bulk(Direction::Up)))),
    ]
}

fn browsing(view: &View<'_>) -> Sample {
    let load = |flow: &FlowResult| match &flow.outcome {
        Outcome::Web { load_time, .. } => {
            Some((PageLoad, Times::of(load_time).map(|times| times.p50)))
        }
        _ => None,
    };
    let loads = view.flows("web").into_iter().filter_map(load);
    loads.chain([(Download, Some(view.goodput(&view.bulk(Direction::Down))))]).collect()
}

fn both_ways(view: &View<'_>) -> Sample {
    let times = view.added_times("ping");
    vec![
        (Added, times.map(|times| times.mean)),
        (AddedP99, times.map(|times| times.p99)),
        (Download, Some(view.goodput(&view.bulk(Direction::Down)))),
        (Upload, Some(view.goodput(&view.bulk(Direction::Up)))),
    ]
}

fn sharing(view: &View<'_>) -> Sample {
    let one = view.goodput(&view.flows("one"));
    let total = view.goodput(&view.bulk(Direction::Down));
    vec![(Share, (total > 0.0).then(|| one / total * 100.0))]
}

/// Number of runs.
pub fn runs(question: &Question) -> usize {
    WORKLOADS.len() * question.contenders.len() * question.repetitions as usize
}

/// Simulates every workload with every contender. `step` is called for each run.
pub fn compare(
    question: &Question,
    stop: &AtomicBool,
    step: &(dyn Fn() + Sync),
) -> Result<Compared, ScenarioError> {
    let (down, up) = &question.line;
    let (mut simulations, mut scenarios) = (Vec::new(), Vec::new());
    let line = Line::of_words(up, down, &question.rtt);
    let file = File::new(Span::from_secs(40), line).warmup(Span::from_secs(10));
    for (n, workload) in WORKLOADS.iter().enumerate() {
        let scenario = Scenario::new(&(workload.add)(file.clone()), workload.name, &no_files)?;
        for (contender, words) in question.contenders.iter().enumerate() {
            simulations.push((n, contender, scenario.simulation(Some(words))?));
        }
        scenarios.push(scenario);
    }
    each_once(simulations.iter().take(question.contenders.len()).map(|(_, _, one)| one))?;
    // Seed by seed: what was stopped has compared all contenders.
    let seeds = 1..=u64::from(question.repetitions);
    let jobs: Vec<_> =
        seeds.flat_map(|seed| simulations.iter().map(move |one| (one, seed))).collect();
    let samples: Result<Vec<Option<(Sample, Summary)>>, ScenarioError> = jobs
        .par_iter()
        .with_max_len(1)
        .map(|((workload, _, simulation), seed)| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let finished = simulation.finish(*seed)?;
            step();
            let sample = (WORKLOADS[*workload].measure)(&View { arm: "", run: &finished });
            Ok(Some((sample, Summary::new(&scenarios[*workload], &finished))))
        })
        .collect();
    let samples = samples?;
    let mut rows: Vec<(Row, Vec<Vec<f64>>)> = Vec::new();
    let case = |scenario: &Scenario| Case {
        name: scenario.name.clone(),
        interval_s: 0.0,
        runs: vec![Vec::new(); question.contenders.len()],
    };
    let mut cases: Vec<Case> = scenarios.iter().map(case).collect();
    for (((workload, contender, _), _), done) in jobs.iter().zip(samples) {
        let Some((sample, summary)) = done else { continue };
        cases[*workload].runs[*contender].push(summary);
        let workload = WORKLOADS[*workload].name;
        for (measure, value) in sample {
            let known =
                rows.iter().position(|(row, _)| row.workload == workload && row.measure == measure);
            let at = known.unwrap_or_else(|| {
                let row = Row { workload, measure, values: Vec::new() };
                rows.push((row, vec![Vec::new(); question.contenders.len()]));
                rows.len() - 1
            });
            rows[at].1[*contender].extend(value);
        }
    }
    let finish = |(mut row, values): (Row, Vec<Vec<f64>>)| {
        row.values = values.iter().map(|values| Estimate::of(values)).collect();
        row
    };
    Ok(Compared { rows: rows.into_iter().map(finish).collect(), cases })
}

/// Smallest difference, as a share of the larger value, that is worth a word.
const NOTICEABLE: f64 = 0.05;

/// Sentences of the verdict. For each measure they say who is better, if it is more than chance and
/// can be noticed. The last says who is among the best most often. `names` are the contenders'.
pub fn verdict(rows: &[Row], names: &[String]) -> Vec<Sentence> {
    let mut differences = Vec::new();
    let mut judged = 0usize;
    let mut among_best = vec![0usize; names.len()];
    for row in rows {
        let values: Option<Vec<Estimate>> = row.values.iter().copied().collect();
        let Some(values) = values else { continue };
        let order = |a: &usize, b: &usize| values[*a].mean.total_cmp(&values[*b].mean);
        let all = || 0..values.len();
        let best = if row.measure.less() { all().min_by(order) } else { all().max_by(order) };
        let Some(best) = best else { continue };
        judged += 1;
        let (worse, equal): (Vec<usize>, Vec<usize>) =
            all().partition(|one| is_worse(row, values[*one], values[best]));
        equal.iter().for_each(|one| among_best[*one] += 1);
        if worse.is_empty() {
            continue;
        }
        let told = |of: &[usize]| {
            let each = of.iter().map(|one| {
                let value = crate::statistics::number(values[*one].mean);
                format!("`{}` {value}", names[*one])
            });
            each.collect::<Vec<_>>().join(", ")
        };
        let (workload, measure) = (row.workload, row.measure);
        let text = format!("{workload}, {measure}: {} better than {}.", told(&equal), told(&worse));
        differences.push((text, equal, worse));
    }
    let alone = |one: &Estimate| one.half_width.is_none();
    let is_one_run = rows.iter().flat_map(|row| &row.values).flatten().any(alone);
    let title = if is_one_run { "Verdict, chance not counted: one run each" } else { "Verdict" };
    let last = format!("{title}: {}", summary(names, &among_best, judged, differences.len()));
    let is_in = contest(&among_best);
    let sentences = differences.into_iter().map(|(text, equal, worse)| {
        let decides = [equal, worse].iter().all(|side| side.iter().any(|one| is_in[*one]));
        Sentence { text, decides }
    });
    sentences.chain([Sentence { text: last, decides: true }]).collect()
}

/// Those between whom it is decided: who is among the best most often, and who is next. What tells
/// some of them apart, in favour of whomever, is what their counts are made of.
fn contest(among_best: &[usize]) -> Vec<bool> {
    let first = among_best.iter().max();
    let next = among_best.iter().filter(|count| Some(*count) < first).max();
    among_best.iter().map(|count| Some(count) == first || Some(count) == next).collect()
}

/// True if `one` is worse than the best by more than chance and by an amount that is worth a word.
fn is_worse(row: &Row, one: Estimate, best: Estimate) -> bool {
    let gap = (one.mean - best.mean).abs();
    let chance = one.half_width.unwrap_or(0.0) + best.half_width.unwrap_or(0.0);
    let larger = one.mean.abs().max(best.mean.abs());
    gap > chance && gap >= NOTICEABLE * larger && gap >= row.measure.felt()
}

/// The last sentence.
fn summary(names: &[String], among_best: &[usize], judged: usize, told_apart: usize) -> String {
    if judged == 0 {
        return "none; nothing was run for every contender.".into();
    }
    if told_apart == 0 {
        return "no difference that anybody would notice.".into();
    }
    let most = among_best.iter().copied().max().unwrap_or(0);
    let with = |wanted: bool| {
        let of = names.iter().zip(among_best).filter(move |(_, n)| (**n == most) == wanted);
        of.map(|(name, n)| format!("`{name}` in {n}")).collect::<Vec<_>>().join(", ")
    };
    let first: Vec<&String> =
        names.iter().zip(among_best).filter(|(_, n)| **n == most).map(|(name, _)| name).collect();
    let rest = with(false);
    match (first.as_slice(), rest.as_str()) {
        ([one], rest) => format!(
            "`{one}` on this line: with the best or as good in {most} of {judged} measures; {rest}."
        ),
        (_, "") => format!("a draw: each is better in some of {judged} measures."),
        (_, rest) => format!(
            "a draw of the first: with the best or as good in {judged} measures {}; {rest}.",
            with(true)
        ),
    }
}

/// Contenders' names in prose: their words without what follows from the line.
pub fn called(contenders: &[String]) -> Vec<String> {
    let short = |words: &String| {
        let mut words = words.clone();
        for word in ["bandwidth {rate}", "rate {rate}", "{rate}"] {
            words = words.replace(word, "");
        }
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let names: Vec<String> = contenders.iter().map(short).collect();
    let is_alone = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    if names.iter().all(is_alone) {
        names
    } else {
        contenders.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(contenders: [&str; 2]) -> Question {
        Question {
            contenders: contenders.map(String::from).into(),
            line: ("20mbit".into(), "3mbit".into()),
            rtt: "90ms".into(),
            repetitions: 2,
        }
    }

    #[test]
    fn a_fifo_loses_and_equals_draw() {
        let go = |question: &Question| {
            let compared = compare(question, &AtomicBool::new(false), &|| {}).expect("results");
            assert!(compared.cases.iter().flat_map(|case| &case.runs).all(|runs| runs.len() == 2));
            verdict(&compared.rows, &question.contenders)
        };
        let said = go(&question(["pfifo limit 1000", "cake bandwidth {rate}"]));
        let last = said.last().expect("a verdict");
        assert!(last.text.starts_with("Verdict: `cake bandwidth {rate}` on this line"), "{said:?}");
        assert!(said.len() > 5 && said.iter().all(|one| one.decides), "between two all does");
        let said = go(&question(["fq_codel", "fq_codel limit 10240"]));
        let text = "Verdict: no difference that anybody would notice.".into();
        assert_eq!(said, [Sentence { text, decides: true }]);
    }

    #[test]
    fn what_tells_the_first_from_the_next_decides() {
        let row = |means: &[f64]| Row {
            workload: "full both ways",
            measure: Download,
            values: means.iter().map(|mean| Estimate::of(&[*mean, *mean])).collect(),
        };
        let decides = |rows: &[&[f64]]| {
            let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
            let rows: Vec<Row> = rows.iter().map(|means| row(means)).collect();
            verdict(&rows, &names).iter().map(|one| one.decides).collect::<Vec<_>>()
        };
        // Of four measures `a` is among the best in three, `b` in two, and `c` in one.
        let counts: [&[f64]; 4] =
            [&[9.0, 9.0, 1.0], &[9.0, 1.0, 1.0], &[9.0, 1.0, 1.0], &[1.0, 9.0, 9.0]];
        assert_eq!(decides(&counts), [false, true, true, true, true]);
        // A draw of all: whatever tells them apart.
        assert_eq!(decides(&[&[9.0, 1.0, 1.0], &[1.0, 9.0, 1.0], &[1.0, 1.0, 9.0]]), [true; 4]);
        // A draw of two, and one behind them.
        assert_eq!(decides(&[&[9.0, 9.0, 1.0], &[9.0, 9.0, 9.0]]), [true; 2]);
    }

    #[test]
    fn no_call_is_worse_than_one_of_which_nothing_arrives() {
        let question = question(["pfifo limit 0", "fq_codel"]);
        let compared = compare(&question, &AtomicBool::new(false), &|| {}).expect("results");
        let quality = compared.rows.iter().find(|row| row.measure == CallQuality).expect("a row");
        assert_eq!(quality.values[0].map(|one| one.mean), Some(1.0), "{quality:?}");
    }

    #[test]
    fn each_contender_is_there_once() {
        for again in ["cake bandwidth {rate}", "cake  bandwidth {rate} "] {
            let twice = question(["cake bandwidth {rate}", again]);
            let refused = compare(&twice, &AtomicBool::new(false), &|| {}).expect_err(again);
            assert_eq!(refused.what, "`cake bandwidth 3mbit` is there twice");
        }
    }

    #[test]
    fn what_never_arrived_has_no_delay() {
        let starved = Question {
            line: ("1kbit".into(), "1kbit".into()),
            repetitions: 1,
            ..question(["fq_codel", "cake"])
        };
        let compared = compare(&starved, &AtomicBool::new(false), &|| {}).expect("results");
        let row = |measure| compared.rows.iter().find(|row| row.measure == measure);
        let load = row(PageLoad).expect("a row");
        assert!(load.values.iter().all(Option::is_none), "no page is loaded: {load:?}");
        assert_eq!(row(CallQuality).expect("a row").values.iter().flatten().count(), 2);
        let said = verdict(&compared.rows, &starved.contenders);
        let last = said.last().expect("a verdict");
        assert!(last.text.starts_with("Verdict, chance not counted: one run each: "), "{last:?}");
    }

    #[test]
    fn a_comparison_that_is_stopped_has_compared_all_contenders() {
        let stop = AtomicBool::new(false);
        let asked = Question { repetitions: 10, ..question(["fq_codel", "pfifo limit 1000"]) };
        let all = WORKLOADS.len() * asked.contenders.len();
        let steps = std::sync::atomic::AtomicUsize::new(0);
        let step = || {
            if steps.fetch_add(1, Ordering::Relaxed) + 1 == all {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let compared = alone.install(|| compare(&asked, &stop, &step)).expect("results");
        let runs = |row: &Row| row.values.iter().map(|value| value.map(|one| one.n)).collect();
        for row in &compared.rows {
            let runs: Vec<_> = runs(row);
            assert_eq!(runs, [Some(1), Some(1)], "{}, {}", row.workload, row.measure);
        }
    }

    #[test]
    fn names_leave_out_what_follows_from_the_line() {
        let called = |words: [&str; 2]| called(&words.map(String::from));
        assert_eq!(called(["pfifo limit 1000", "cake bandwidth {rate}"])[1], "cake");
        assert_eq!(called(["cake", "cake bandwidth {rate}"])[1], "cake bandwidth {rate}");
    }

    #[test]
    fn words_that_are_no_discipline_are_refused() {
        let asked = question(["fq_codel", "caek"]);
        assert!(compare(&asked, &AtomicBool::new(false), &|| {}).is_err());
    }
}

//! Axes as written; journals that were torn, finished, split and merged.

use super::*;
use crate::figures::table::Column;
use crate::figures::{Figure, Line, Plot};
use crate::files;

const SCENARIO: &str = "duration = \"2s\"\n[line]\nup = \"5mbit\"\ndown = \"5mbit\"\n\
                        [[traffic]]\nkind = \"bulk\"\n[[traffic]]\nkind = \"ping\"\n";

fn axes(text: &str) -> Vec<Axis> {
    Axis::parse_all(text).expect("axes")
}

fn sweep(over: &str, repetitions: u32) -> Sweep {
    let made = Sweep::new("test", SCENARIO, Path::new(""), axes(over), repetitions);
    made.unwrap_or_else(|error| panic!("{error}"))
}

fn go(sweep: &Sweep, journal: &Path, shard: (usize, usize)) {
    sweep.run(journal, shard, &AtomicBool::new(false), &|| {}).expect("a sweep");
}

fn read(journal: &Path) -> Journal {
    Journal::read(journal).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn axes_are_lists_and_geometric_ranges() {
    let all = axes("rate=1mbit..100mbit:3, qdisc=fq_codel|cake bandwidth {rate}");
    assert_eq!(all[0].values, ["1mbit", "10mbit", "100mbit"]);
    assert_eq!(all[1].values, ["fq_codel", "cake bandwidth {rate}"]);
    assert_eq!(axes("traffic.bulk.count=1..16:5")[0].values, ["1", "2", "4", "8", "16"]);
    assert_eq!(axes("rtt=10ms..40ms:3")[0].values, ["10ms", "20ms", "40ms"]);
    assert_eq!(axes("rtt=10ms..500ms:4")[0].values, ["10ms", "36.84ms", "135.7ms", "500ms"]);
    assert_eq!(axes("rate=1mbit..10mbit:3")[0].values, ["1mbit", "3.162mbit", "10mbit"]);
    assert_eq!(axes("traffic.bulk.size=64kb..1mb:3")[0].values, ["64kb", "256kb", "1mb"]);
    assert_eq!(axes("line.loss=0.1%..10%:3")[0].values, ["0.1%", "1%", "10%"]);
    let listed =
        axes("traffic.ping.dscp=[\"EF\", \"CS1\"]|[], line.loss={up = 1, down = 2}, rtt=1ms");
    assert_eq!(listed[0].values, ["[\"EF\", \"CS1\"]", "[]"]);
    assert_eq!((listed[1].values.len(), &*listed[2].key), (1, "rtt"));
    for bad in ["rate", "rate=", "rtt=1ms..5mbit", "rtt=5ms..1ms", "rtt=1ms..2ms:0"] {
        assert!(Axis::parse_all(bad).is_err(), "{bad}");
    }
}

#[test]
fn keys_that_are_not_there_and_values_that_make_no_sense_are_refused_at_once() {
    let bad = [
        "lines.rtt=1ms",
        "traffic.web.count=2",
        "rtt=fast|slow",
        "qdisc=caek",
        "qdisc=fq_codel|caek|sfq",
        "traffic.bulk=1",
        "line.change.1.down=1mbit",
    ];
    for over in bad {
        let made = Sweep::new("test", SCENARIO, Path::new(""), axes(over), 1);
        assert!(made.is_err(), "{over}");
    }
}

#[test]
fn what_would_be_counted_twice_is_refused() {
    for (over, expected) in [
        ("rtt=20ms|40ms|20ms", "`rtt=20ms` is said twice"),
        ("rtt=20ms,rtt=40ms", "`rtt` is set again by `rtt`"),
        ("rtt=20ms|40ms,line.rtt=50ms", "`rtt` is set again by `line.rtt`"),
        ("line.up=5mbit,rate=9mbit", "`line.up` is set again by `rate`"),
        ("traffic.0.count=2,traffic.bulk.count=1|2", "`traffic.0.count` is set again by"),
    ] {
        let made = Sweep::new("test", SCENARIO, Path::new(""), axes(over), 1);
        let error = made.expect_err(over);
        assert!(error.what.starts_with(expected), "{over}: {error}");
    }
    // One of the two directions stays.
    sweep("rate=9mbit,line.up=5mbit", 1);
}

#[test]
fn one_sweep_at_a_time_writes_a_journal() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal.jsonl");
    let other = std::fs::File::create(&journal).unwrap();
    assert!(files::try_lock(&other));
    let (sweep, stop) = (sweep("rtt=20ms", 1), AtomicBool::new(false));
    let error = sweep.run(&journal, (0, 1), &stop, &|| {}).expect_err("it is locked");
    assert!(error.what.ends_with("another sweep is writing it"), "{error}");
    drop(other);
    go(&sweep, &journal, (0, 1));
    assert_eq!(read(&journal).progress(), (1, 1));
}

#[test]
fn paths_lead_into_lists_within_tables() {
    let text = format!(
        "{SCENARIO}[[line.change]]\nat = \"1s\"\ndown = \"1mbit\"\n[[traffic]]\nname = \"x\"\n\
         kind = \"ping\"\n"
    );
    let all = [
        "line.change.0.down=2mbit",
        "traffic.x.interval=1s",
        "traffic.0.cc=reno",
        // Lists and tables, as a file has them; what only begins so is words.
        "traffic.x.dscp=[\"EF\"]",
        "line.loss={ up = \"1%\" }",
        "traffic.x.name=[x|{x",
    ];
    for over in all {
        let made = Sweep::new("test", &text, Path::new(""), axes(over), 1);
        assert!(made.is_ok(), "{over}: {:?}", made.err());
    }
}

#[test]
fn a_torn_journal_is_finished_and_shards_merge_to_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let sweep = sweep("rtt=10ms|40ms,traffic.bulk.count=1|2", 2);
    go(&sweep, &path("whole"), (0, 1));
    let whole = std::fs::read_to_string(path("whole")).expect("a journal");
    assert_eq!(whole.lines().count(), 1 + 8);

    // Three runs and half a line.
    let cut = whole.match_indices('\n').nth(3).expect("lines").0 + 20;
    std::fs::write(path("torn"), &whole[..cut]).expect("written");
    go(&sweep, &path("torn"), (0, 1));
    for shard in 0..3 {
        go(&sweep, &path(&format!("shard{shard}")), (shard, 3));
    }
    let shards: Vec<_> = (0..3).map(|shard| path(&format!("shard{shard}"))).collect();
    assert_eq!(merge(&shards, &path("merged")), Ok(0));
    assert_eq!(merge(&shards[..2], &path("part")), Ok(2));

    let sorted = |name: &str| {
        let text = std::fs::read_to_string(path(name)).expect("a journal");
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted("torn"), sorted("whole"));
    assert_eq!(sorted("merged"), sorted("whole"));

    let points = read(&path("merged")).results();
    assert_eq!(points.len(), 4);
    let goodput = points[0].values["groups.bulk.goodput_mbps"];
    assert!(goodput.n == 2 && goodput.mean > 1.0, "{goodput:?}");
}

#[test]
fn a_merged_journal_keeps_what_is_there_and_belongs_to_one_sweep() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let one = sweep("rtt=10ms|40ms", 2);
    for (name, shard) in [("a", 0), ("b", 1), ("c", 2)] {
        go(&one, &path(name), (shard, 3));
    }
    assert_eq!(merge(&[path("a")], &path("all")), Ok(2));
    assert_eq!(merge(&[path("b")], &path("all")), Ok(1));
    // One that is being written, in whose last line a kill came.
    let text = std::fs::read_to_string(path("c")).expect("a journal");
    std::fs::write(path("torn"), &text[..text.len() - 9]).expect("written");
    assert_eq!(merge(&[path("torn")], &path("all")), Ok(1));
    assert_eq!(merge(&[path("c")], &path("all")), Ok(0));
    assert_eq!(read(&path("all")).progress(), (4, 4));

    let before = std::fs::read(path("all")).expect("a journal");
    go(&sweep("rtt=10ms", 2), &path("other"), (0, 1));
    std::fs::write(path("notes"), "mine\n").expect("written");
    let writing = File::open(path("all")).expect("a journal");
    for (from, to, said) in [
        ("other", "all", "all belongs to another sweep"),
        ("a", "notes", "line 1 is no line"),
        ("a", "all", "another sweep is writing it"),
    ] {
        if said.contains("writing") {
            assert!(files::try_lock(&writing));
        }
        let error = merge(&[path(from)], &path(to)).expect_err(said);
        assert!(error.what.contains(said), "{error}");
    }
    assert_eq!(std::fs::read(path("all")).expect("a journal"), before);
    assert_eq!(std::fs::read(path("notes")).expect("still there"), b"mine\n");
}

/// Two scenarios of one text in two directories are two sweeps.
#[test]
fn a_journal_belongs_to_its_traces() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = |name: &str, milliseconds: &str| {
        let home = directory.path().join(name);
        std::fs::create_dir(&home).expect("a directory");
        std::fs::write(home.join("down.trace"), milliseconds).expect("written");
        let text = SCENARIO.replace("down = \"5mbit\"", "trace.down = \"down.trace\"");
        Sweep::new("test", &text, &home, axes("rtt=10ms"), 1).unwrap_or_else(|e| panic!("{e}"))
    };
    let (a, b) = (trace("a", "1\n2\n"), trace("b", "1\n9\n"));
    let journal = directory.path().join("journal");
    go(&a, &journal, (0, 1));
    let refused = b.run(&journal, (0, 1), &AtomicBool::new(false), &|| {});
    assert!(refused.is_err_and(|error| error.what.contains("another sweep")));
}

#[test]
fn results_are_shown_by_their_axes() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = directory.path().join("journal");
    go(&sweep("rtt=10ms|20ms|30ms,rate=1mbit|2mbit,qdisc=fq_codel|sfq", 1), &journal, (0, 1));
    let name = "groups.bulk.goodput_mbps";
    let results = read(&journal).results();
    let panels = figures(&results, name);
    let titles: Vec<&str> = panels.iter().map(|figure| figure.title.as_str()).collect();
    let titled = |rate| format!("goodput of bulk, Mbit/s, rate {rate}");
    assert_eq!(titles, ["1mbit", "2mbit"].map(titled));
    for Figure { x, y, plot, .. } in &panels {
        let Plot::Lines(lines) = plot else { panic!("{plot:?}") };
        assert_eq!((x.label.as_str(), &y.limits), ("rtt (ms)", &panels[0].y.limits));
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["fq_codel", "sfq"]);
        let across = |line: &Line| line.points.iter().map(|point| point[0]).collect::<Vec<_>>();
        assert!(lines.iter().all(|line| across(line) == [10.0, 20.0, 30.0]), "{lines:?}");
    }
    let pivots = pivots(&results, name);
    let titles: Vec<&str> = pivots.iter().map(|pivot| pivot.title.as_str()).collect();
    assert_eq!(titles, ["fq_codel", "sfq"]);
    assert_eq!((pivots[1].across.as_str(), &pivots[1].columns[1]), ("rtt", &"2mbit".to_string()));
    let (rtt, cells) = &pivots[1].rows[2];
    let of = |point: &PointResult| point.point.values().eq(["sfq", "2mbit", "30ms"]);
    let known = results.iter().find(|point| of(point)).expect("a setting");
    assert_eq!((rtt.as_str(), cells[1]), ("30ms", known.values.get(name).copied()));
}

#[test]
fn a_table_has_a_row_a_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = directory.path().join("journal");
    go(&sweep("rtt=10ms|20ms", 2), &journal, (0, 1));
    let table = read(&journal).table();
    assert_eq!(table.rows(), 4);
    let first: Vec<&str> = table.columns.iter().take(2).map(|(name, _)| name.as_str()).collect();
    assert_eq!(first, ["rtt", "seed"]);
    let Column::Number(seeds) = &table.columns[1].1 else { panic!("seeds are numbers") };
    assert_eq!(seeds, &[1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn what_never_arrived_is_counted_and_has_no_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = directory.path().join("journal");
    go(&sweep("rtt=10s|10ms", 1), &journal, (0, 1));
    let results = read(&journal).results();
    let of = |n: usize, name: &str| {
        let name = format!("groups.ping.application.{name}");
        results[n].values.get(&name).map(|value| value.mean)
    };
    assert_eq!((of(0, "received"), of(0, "added_ms.p99")), (Some(0.0), None));
    assert!(of(1, "received") > Some(0.0) && of(1, "added_ms.p99").is_some());
}

#[test]
fn a_journal_of_another_sweep_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = directory.path().join("journal");
    go(&sweep("rtt=10ms", 1), &journal, (0, 1));
    let other = sweep("rtt=20ms", 1).run(&journal, (0, 1), &AtomicBool::new(false), &|| {});
    assert!(other.is_err_and(|error| error.what.contains("another sweep")));
}

#[test]
fn a_line_that_does_not_belong_to_the_sweep_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal");
    let sweep = sweep("rtt=10ms|20ms", 2);
    go(&sweep, &path, (0, 1));
    let whole = std::fs::read_to_string(&path).expect("a journal");
    // A run, what stands in its place, what is said, and whether it takes the sweep to see it.
    for (run, from, to, said, is_sweep) in [
        (1, "\"run\":1", "\"run\":99", "run 99 of 4", false),
        (1, "\"seed\":2", "\"seed\":3", "run 1 has no seed 3", false),
        (3, "\"seed\":2", "\"seed\":4", "run 3 has seed 2", true),
        (3, "20ms", "10ms", "run 3 has another setting", true),
        (3, "\"run\":3", "\"run\":2", "run 2 has seed 1", true),
        (3, "\"rtt\"", "\"rate\"", "run 3 has another setting", false),
    ] {
        let is_it = |line: &&str| line.contains(&format!("\"run\":{run},"));
        let line = whole.lines().find(is_it).expect("its line");
        let place = whole.lines().position(|one| one == line).expect("a line") + 1;
        let edited = whole.replace(line, &line.replacen(from, to, 1));
        std::fs::write(&path, &edited).expect("written");
        let expected = format!("journal: line {place} does not belong to its sweep: {said}");
        let resumed = sweep.run(&path, (0, 1), &AtomicBool::new(false), &|| {});
        let error = resumed.expect_err(to);
        assert!(error.what.contains(&expected), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), edited);
        let told = Journal::read(&path).map_err(|error| error.what.contains(&expected));
        assert_eq!(told.err(), (!is_sweep).then_some(true), "{to}");
    }
}

#[test]
fn a_damaged_line_costs_no_other_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal");
    let sweep = sweep("rtt=10ms|20ms", 1);
    go(&sweep, &path, (0, 1));
    let whole = std::fs::read_to_string(&path).expect("a journal");
    let number = |line: usize, with: &str| {
        let lines: Vec<&str> = whole.lines().collect();
        whole.replacen(lines[line - 1], with, 1)
    };
    for (line, fix) in [(1, "another file"), (2, "a run whose line is not there is done again")] {
        std::fs::write(&path, number(line, "?")).expect("written");
        let error = Journal::read(&path).expect_err("damaged");
        assert!(error.what.ends_with(&format!("line {line} is no line of a sweep")), "{error}");
        assert!(error.fix.ends_with(fix), "{error}");
    }
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notes");
    for text in ["one line", "one line\nand half", "{\"json\": 1}\nrest", "\u{fe}\n"] {
        std::fs::write(&path, text).expect("written");
        let refused = sweep("rtt=10ms", 1).run(&path, (0, 1), &AtomicBool::new(false), &|| {});
        assert!(refused.is_err(), "{text}");
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), text);
    }
    // The first line of a journal whose sweep was killed at once.
    std::fs::write(&path, "{\"sweep\":\"12").expect("written");
    go(&sweep("rtt=10ms", 1), &path, (0, 1));
}

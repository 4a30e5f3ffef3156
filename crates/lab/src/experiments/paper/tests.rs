//! Soundness of the registry: set-ups are right, claims ask for what is measured, names are unique.

use std::collections::BTreeSet;

use simnel_scenario::file::{Line, Traffic};
use simnel_scenario::Finished;
use simnel_sim::Run;

use super::claim::Judge;
use super::*;
use crate::figures::{Plot, Stated};

#[test]
fn identifiers_are_unique_and_belong_to_their_papers() {
    let mut seen = BTreeSet::new();
    for experiment in experiments() {
        assert!(seen.insert(experiment.id), "{} is there twice", experiment.id);
        assert!(experiment.id.starts_with(experiment.paper.letter()), "{}", experiment.id);
        let mut claims_seen = BTreeSet::new();
        let claims = claims(experiment.id);
        assert!(!claims.is_empty(), "{} claims nothing", experiment.id);
        for claim in claims {
            assert!(claims_seen.insert(claim.id.clone()), "{} is there twice", claim.id);
        }
    }
}

/// A run of no length.
fn empty_run(name: &str, file: &File) -> Finished {
    let (setup, qdisc) = set_up(name, file);
    let results = Run::new(&setup, 1).expect("a set-up").results();
    Finished { qdisc, setup, results }
}

/// Runs of no length name what they would measure.
#[test]
fn every_set_up_is_right_and_every_claim_asks_for_what_is_measured() {
    for experiment in experiments() {
        let (mut seen, mut measures) = (BTreeSet::new(), Measures::default());
        for arm in (experiment.arms)() {
            let sample = match &arm.work {
                Work::Direct(measured, _) => Sample {
                    values: measured.iter().map(|name| (name.clone(), None)).collect(),
                    ..Sample::default()
                },
                Work::Scenario(file) => {
                    assert!(seen.insert((arm.name.clone(), arm.text())), "{} twice", arm.name);
                    let run = empty_run(experiment.id, file);
                    (experiment.measure)(&View { arm: &arm.name, run: &run })
                }
            };
            measures.add(&arm.name, sample);
        }
        for claim in claims(experiment.id) {
            for name in claim.judge.measures() {
                assert!(
                    measures.names().any(|known| known == name),
                    "{}: nothing measures `{name}`",
                    claim.id
                );
            }
        }
        for figure in (experiment.figures)(&measures) {
            let Plot::Dots(_, series) = figure.plot else { continue };
            for name in series.iter().flat_map(|dots| &dots.measures) {
                let known = measures.names().any(|known| known.to_string() == *name);
                assert!(known, "{}: nothing measures `{name}`", figure.id);
            }
        }
    }
}

/// Pages show, and browsers run again, what was run here.
#[test]
fn every_scenario_is_read_back_from_its_text() {
    let shown = |made: (Setup, [String; 2])| format!("{made:?}");
    for experiment in experiments() {
        for arm in (experiment.arms)() {
            let Work::Scenario(file) = &arm.work else { continue };
            let read = File::parse(&arm.text()).expect("a scenario's text");
            let (made, read) = (set_up(&arm.name, file), set_up(&arm.name, &read));
            assert!(shown(made) == shown(read), "{} {}: {file}", experiment.id, arm.name);
        }
    }
}

fn upload(traffic: Traffic) -> File {
    let second = Span::from_secs(1);
    File::new(second, Line::new(mbit(1), mbit(1), second)).traffic(traffic)
}

#[test]
#[should_panic(expected = "no traffic `bluk up` among [\"bulk up\"]")]
fn misspelt_traffic_is_no_zero() {
    let run = empty_run("test", &upload(Traffic::bulk().name("bulk up")));
    View { arm: "test", run: &run }.flows("bluk up");
}

#[test]
#[should_panic(expected = "no such way out of slow start")]
fn a_wrong_scenario_of_ours_is_no_empty_sample() {
    set_up("test", &upload(Traffic::bulk().slow_start("hystrat")));
}

#[test]
fn words_select_experiments() {
    let ids = |words: &[&str]| -> Result<Vec<&str>, String> {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        Ok(select(&words)?.iter().map(|experiment| experiment.id).collect())
    };
    assert_eq!(ids(&["B4", "a3"]), Ok(vec!["A3", "B4"]));
    assert_eq!(ids(&["all"]).map(|ids| ids.len()), Ok(experiments().len()));
    assert!(ids(&["A"]).is_ok_and(|ids| ids.len() == 7));
    assert_eq!(ids(&["Z9"]), Err("Z9".into()));
}

#[test]
fn a_ratio_that_is_stated_is_a_value_within_a_band() {
    let measure = |arm: &str| Measure { arm: arm.into(), quantity: "ms".into() };
    let (a, b) = (measure("a"), measure("b"));
    let twice = Judge::NearRatio(a.clone(), b.clone(), 2.0, 0.5);
    let stated = Stated { value: Some(20.0), within: (15.0, 25.0), compared: true };
    assert_eq!(twice.stated(&|name| (*name == b).then_some(10.0)), [(&a, stated)]);
}

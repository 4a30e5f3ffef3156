//! Soundness of the registry: set-ups are right, claims ask for what is measured, names are unique.

use std::collections::BTreeSet;

use simnel_scenario::Finished;
use simnel_sim::Run;

use super::*;

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
                Work::Scenario(text) => {
                    assert!(seen.insert((arm.name.clone(), text.clone())), "{} twice", arm.name);
                    let (setup, qdisc) = set_up(experiment.id, text);
                    let results = Run::new(&setup, 1).expect("a set-up").results();
                    let run = Finished { qdisc, setup, results };
                    (experiment.measure)(&View { arm: &arm.name, run: &run })
                }
            };
            measures.add(&arm.name, sample);
        }
        for claim in claims(experiment.id) {
            for name in claim.judge.measures() {
                assert!(measures.knows(name), "{}: nothing measures `{name}`", claim.id);
            }
        }
    }
}

#[test]
#[should_panic(expected = "no traffic `bluk up` among [\"bulk up\"]")]
fn misspelt_traffic_is_no_zero() {
    let text = "duration = \"1s\"\n[line]\nup = \"1mbit\"\ndown = \"1mbit\"\n\
                [[traffic]]\nkind = \"bulk\"\nname = \"bulk up\"\n";
    let (setup, qdisc) = set_up("test", text);
    let results = Run::new(&setup, 1).expect("a set-up").results();
    View { arm: "test", run: &Finished { qdisc, setup, results } }.flows("bluk up");
}

#[test]
#[should_panic(expected = "no such kind of traffic")]
fn a_wrong_scenario_of_ours_is_no_empty_sample() {
    set_up(
        "test",
        "duration = \"1s\"\n[line]\nup = \"1mbit\"\ndown = \"1mbit\"\n\
                    [[traffic]]\nkind = \"bluk\"\n",
    );
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

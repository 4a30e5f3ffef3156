//! The registry is sound: scenarios parse, claims ask for what is measured, nothing is named twice.

use std::collections::BTreeSet;

use super::*;
use simnel_scenario::{no_files, Scenario};

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

/// Disciplines may be missing from a build; everything else in a scenario must be right.
#[test]
fn every_scenario_is_understood() {
    for experiment in experiments() {
        let mut seen = BTreeSet::new();
        for arm in (experiment.arms)() {
            let Work::Scenario(text) = &arm.work else { continue };
            assert!(seen.insert((arm.name.clone(), text.clone())), "{} twice", arm.name);
            let parsed = Scenario::parse(text, "experiment", &no_files);
            let parsed = parsed.and_then(|scenario| scenario.setup(None));
            if let Err(error) = parsed {
                panic!("{} {}: {error:?}\n{text}", experiment.id, arm.name);
            }
        }
    }
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

//! Nothing passes a line faster than it is.

use simnel_scenario::summary::LineSummary;
use simnel_scenario::{no_files, Scenario, Summary};

/// The line up, full of small datagrams, under `words`.
fn full(framing: &str, words: &str) -> LineSummary {
    let text = format!(
        "duration = \"3s\"\nwarmup = \"1s\"\n[line]\nup = \"3mbit\"\ndown = \"20mbit\"\n{framing}\n\
         [[traffic]]\nkind = \"cbr\"\nsize = 100\nrate = \"9mbit\"\n"
    );
    let scenario = Scenario::parse(&text, "full", &no_files).expect("a scenario");
    let run = scenario.simulation(Some(words)).expect(words).finish(1).expect("a run");
    Summary::new(&scenario, &run).lines.swap_remove(0)
}

#[test]
fn a_shaper_that_asks_for_more_than_the_line_has_does_not_get_it() {
    for words in ["cake bandwidth 20mbit", "tbf rate 20mbit burst 15k limit 100k", "cake"] {
        let line = full("", words);
        assert!((2.99..3.01).contains(&line.mbps), "{words}: {} Mbit/s", line.mbps);
    }
    // Less is the shaper's to decide.
    let line = full("", "cake bandwidth 1mbit");
    assert!((0.99..1.01).contains(&line.mbps), "{} Mbit/s", line.mbps);
}

#[test]
fn a_full_line_is_used_up_whatever_its_framing() {
    for framing in ["", "framing = \"overhead 34 atm\"", "framing = \"docsis\""] {
        for words in ["fq_codel", "cake"] {
            let used = full(framing, words).utilisation.expect("a rate");
            assert!((0.999..1.001).contains(&used), "{framing} {words}: {used}");
        }
    }
    let used = full("framing = \"overhead 34 atm\"", "cake bandwidth {rate} overhead 34 atm");
    assert!(used.utilisation.is_some_and(|used| (0.99..1.01).contains(&used)), "{used:?}");
}

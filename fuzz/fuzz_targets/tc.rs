//! The `tc` grammar: no text panics, errors lie in the text, and what is printed is read back.
//!
//! The first byte chooses: even, the rest is text; odd, bytes choose words from all disciplines'
//! keywords, with values.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_core::qdisc::{self, Parent, QdiscView, Statistics};
use simnel_fuzz::has_wrapped_rate;
use simnel_fuzz::seeds;
use simnel_fuzz::support::input::Input;
use simnel_fuzz::support::table::random_value;

fuzz_target!(init: seeds::write(seeds::words()), |bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    if choice & 1 == 0 {
        if let Ok(text) = std::str::from_utf8(rest) {
            check(text);
        }
    } else {
        check(&known_words(&mut Input::new(rest)));
    }
});

/// A discipline's name and up to 31 keywords, one in four of another discipline.
fn known_words(input: &mut Input) -> String {
    let disciplines = qdisc::disciplines();
    let discipline = |byte: u8| &disciplines[usize::from(byte) % disciplines.len()];
    let own = discipline(input.u8());
    let mut words = String::from(own.name);
    for _ in 0..input.u8() % 32 {
        let choice = input.u8();
        let whose = if choice & 3 == 0 { discipline(choice >> 2) } else { own };
        let keywords: Vec<_> = qdisc::keywords(whose.name).collect();
        let Some(keyword) = keywords.get(usize::from(input.u8()) % keywords.len().max(1)) else {
            continue;
        };
        words.push(' ');
        words.push_str(keyword.word);
        for argument in keyword.argument.split_whitespace() {
            words.push(' ');
            words.push_str(&random_value(argument, input));
        }
    }
    words
}

fn check(text: &str) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let parsed = qdisc::parse(text);
    // Separate words mean the same; a default changes nothing where a discipline is named.
    assert_eq!(qdisc::parse_words(&words).ok(), parsed.clone().ok());
    if parsed.is_ok() {
        assert_eq!(qdisc::parse_with_default(&words, "cake"), qdisc::parse_words(&words));
    }
    match parsed {
        Ok(config) => {
            let printed = config.to_string();
            let again = qdisc::parse(&printed);
            if !has_wrapped_rate(&config) {
                assert_eq!(again.as_ref(), Ok(&config), "`{text}` is printed as `{printed}`");
            }
            let view = QdiscView {
                handle: 0x8001_0000,
                dev: Some("eth0"),
                parent: Parent::Root,
                refcnt: 2,
                config: &config,
                snapshot: None,
            };
            let (mut shown, mut json) = (String::new(), String::new());
            qdisc::show(&mut shown, &[view], Statistics::Off).expect("a String takes all");
            qdisc::show_json(&mut json, &[view], Statistics::Off).expect("a String takes all");
            assert!(shown.contains(config.name()) && json.contains(config.name()));
        }
        Err(error) => {
            assert_eq!(text.get(error.start..error.end), Some(error.word.as_str()));
            let said = error.to_string();
            assert!(said.contains(&error.word), "`{text}`: {said}");
        }
    }
}

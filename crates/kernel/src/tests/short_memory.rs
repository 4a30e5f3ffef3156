//! Memory that is short for whoever sets or reads settings: each piece larger than what the C side
//! waits for is refused in turn. What cannot be an error is never that large, or else the process
//! ends.

use std::iter::repeat_n;

use super::*;
use refusing::{with_memory, GRANTED};

#[path = "../../../core/tests/support/refusing.rs"]
mod refusing;

/// As in kernel/host.c.
const WAITED: usize = 160 << 10;

/// Result of `work` once memory is there, and the number of tries in which it was short before.
fn in_turn<T>(mut work: impl FnMut() -> Result<T, String>) -> (Result<T, String>, u32) {
    GRANTED.set(WAITED);
    for large in 0.. {
        match with_memory(large, &mut work) {
            Err(error) if error.contains("memory") => {}
            done => return (done, large),
        }
    }
    unreachable!("memory that is short without end")
}

/// A guest, the first of several where parallel queues are asked for.
fn make(asked: &str) -> Result<Guest, String> {
    match asked.starts_with("mq") {
        true => Guest::parallel(asked, 3).map(|mut all| all.remove(0)),
        false => Guest::new(asked),
    }
}

/// An htb with `classes`, each in as few words as can be.
fn many(classes: usize) -> String {
    (1..=classes).fold("htb".to_owned(), |all, n| format!("{all} class :{n:x} rate 8"))
}

/// `count` times `word`.
fn words(count: usize, word: &str) -> String {
    repeat_n(word, count).collect::<Vec<_>>().join(" ")
}

#[test]
fn as_much_is_waited_for_as_in_the_kernel() {
    let host = include_str!("../../../../kernel/host.c");
    assert!(host.contains("#define WAITED (160 << 10)\n"));
    assert_eq!(WAITED, 160 << 10);
}

#[test]
fn no_words_need_a_piece_that_may_be_refused() {
    let drr = (1..=1024).fold("drr".to_owned(), |all, n| format!("{all} class 1:{n:x}"));
    let tree = |classes: u32| {
        let class = |n| format!(" class 1:{n:x} rate 1mbit ceil 10mbit fq_codel");
        "htb default 10".to_owned() + &(0x10..0x10 + classes).map(class).collect::<String>()
    };
    for (asked, refusal) in [
        (tree(90), None),
        (tree(120), Some("bytes of words")),
        (many(150), None),
        // All of them are read: it is their own words that are too long to be shown.
        (many(1_014), Some("bytes of words")),
        (drr, None),
        (words(4_096, "a"), Some("`a`")),
        (words(4_097, "a"), Some("4097 words are too many: at most 4096")),
        (words(9_000, "a"), Some("9000 words")),
        (words(1, &"a".repeat(18_000)), Some("`aaa")),
        (words(1, &"a".repeat(18_001)), Some("18001 bytes of words")),
        (words(1, &"a".repeat(60_000)), Some("60000 bytes of words")),
        ("mq cake ".to_owned() + &words(4_094, "b"), Some("`b` (word 3)")),
    ] {
        let (made, _) = in_turn(|| make(&asked));
        let start = asked.get(..40).unwrap_or(&asked);
        match (made, refusal) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => panic!("{start}: taken"),
            (Err(error), refusal) => {
                assert!(refusal.is_some_and(|part| error.contains(part)), "{start}: {error}");
                let said = format!("{} bytes of words", asked.len());
                assert!(asked.len() > 18_000 || !error.contains(&said), "{start}: {error}");
            }
        }
        // As a change of another and of itself.
        if refusal.is_none() {
            let mut guest = Guest::new(&asked).unwrap();
            in_turn(|| guest.change("cake")).0.unwrap();
            in_turn(|| guest.change(&asked)).0.unwrap();
            in_turn(|| guest.change("quantum 3000")).0.unwrap_or_default();
            let (shown, _) = in_turn(|| Ok(guest.words()));
            in_turn(|| guest.change(&shown.clone().unwrap())).0.unwrap();
            let told = in_turn(|| {
                let mut told = Told::new();
                told.read(&mut guest);
                Ok(told.statistics(&mut guest))
            });
            assert!(!told.0.unwrap().is_empty());
        }
    }
}

#[test]
fn tables_that_are_refused_are_errors() {
    let mut refused = 0;
    for asked in [
        "cake bandwidth 1gbit diffserv8 ack-filter",
        "fq_codel flows 65535",
        "fq_pie flows 60000",
        "drr queues 65536",
        "cake queues 32 host-load active host-prefix 64 host-guard",
        "sfq depth 100 flows 60000 limit 60000",
        "mq cake bandwidth 1gbit",
    ] {
        let (made, short) = in_turn(|| make(asked));
        let mut guest = made.unwrap();
        let before = guest.words();
        let (changed, again) = in_turn(|| {
            assert_eq!(guest.words(), before);
            guest.change(asked)
        });
        changed.unwrap();
        refused += short + again;
    }
    assert!(refused > 7, "{refused} refusals");
}

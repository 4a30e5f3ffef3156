//! Terms of the field, explained where a page first uses them.

use std::collections::BTreeSet;

use maud::{html, Markup};

/// A term, as it is explained, and how it may be written.
const TERMS: [(&str, &[&str], &str); 18] = [
    (
        "ACK filtering",
        &["ack filter", "redundant acknowledgements"],
        "drops acknowledgements that a newer one in the queue makes redundant",
    ),
    ("AQM", &["aqm"], "active queue management: dropping or marking before the queue is full"),
    (
        "added latency",
        &["added latency", "queueing delay", "queue delay"],
        "what queues add to the time that packets take on the empty line",
    ),
    (
        "BBR, CUBIC, Reno",
        &["cubic", "reno", "bbr"],
        "TCP congestion controls: how senders find their rate",
    ),
    ("DASH", &["dash", "video"], "video over HTTP, whose sender chooses the rate chunk by chunk"),
    (
        "DRR",
        &["drr", "deficit"],
        "deficit round robin: queues take turns and earn a quantum of bytes in each",
    ),
    (
        "DSCP, EF, CS1",
        &["dscp", "ef ", "cs1", "diffserv"],
        "the packet's traffic class, by which tiers tell packets apart",
    ),
    ("ECN", &["ecn"], "explicit congestion notification: a mark in place of a drop"),
    ("FIFO", &["fifo"], "first in, first out: one queue for all, a drop when it is full"),
    ("goodput", &["goodput"], "payload that arrives, without headers and what is sent again"),
    ("hash collision", &["collision"], "two flows in one queue"),
    ("Jain's index", &["jain"], "fairness: 1 if all get the same, 1/n if one of n gets all"),
    ("MOS", &["(mos)", "mos "], "quality of a call from 1 to 4.5"),
    ("quantum", &["quantum"], "bytes that a queue earns in its turn"),
    ("RRUL", &["rrul"], "four uploads, four downloads and probes at once"),
    ("RTT", &["rtt", "round-trip", "round trip"], "round-trip time: there and back"),
    (
        "shaper",
        &["shaper", "shaped", "htb"],
        "sends a little slower than the line, so that the queue stands here",
    ),
    ("tier", &["tier", "tin "], "packets of one priority, with a share of the rate"),
];

/// Terms that a page has explained already, by their place in `TERMS`.
#[derive(Default)]
pub struct Terms(BTreeSet<usize>);

impl Terms {
    /// Explains the terms that `text` uses first.
    pub fn new_in(&mut self, text: &str) -> Markup {
        let text = text.to_lowercase();
        let used = |(n, (_, forms, _)): &(usize, &(&str, &[&str], &str))| {
            !self.0.contains(n) && forms.iter().any(|form| has_word(&text, form))
        };
        let new: Vec<usize> = TERMS.iter().enumerate().filter(used).map(|(n, _)| n).collect();
        self.0.extend(&new);
        html! {
            @if !new.is_empty() {
                p .setup {
                    @for (at, n) in new.iter().enumerate() {
                        @let (term, _, meaning) = TERMS[*n];
                        dfn { (term) } ": " (meaning) (if at + 1 < new.len() { "; " } else { "." })
                    }
                }
            }
        }
    }
}

/// True if `text` has `form` at the beginning of a word.
fn has_word(text: &str, form: &str) -> bool {
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric());
    text.match_indices(form).any(|(at, _)| begins(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_explained_once_and_where_it_is_a_word() {
        let mut terms = Terms::default();
        let said = terms.new_in("Goodput under RRUL, effectively").into_string();
        assert!(said.contains("goodput") && said.contains("four uploads"), "{said}");
        assert!(!said.contains("traffic class"), "{said}");
        assert_eq!(terms.new_in("goodput").into_string(), "");
    }
}

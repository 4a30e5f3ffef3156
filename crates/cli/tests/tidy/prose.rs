//! Documentation names its item, in sentences that can be taken in at once.

use crate::{Complaints, Source};

/// First words of documentation that asks instead of naming its item.
const QUESTIONS: [&str; 9] =
    ["What", "Whether", "Who", "Whose", "How", "When", "Where", "Which", "Why"];
/// Words of a sentence; code between backticks is one.
const WORDS: usize = 25;

/// The text of a line of documentation, if it is one.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

/// Documentation whose first word asks.
pub fn riddles(source: &Source) -> Complaints {
    let mut complaints = Vec::new();
    let mut begins = true;
    for (number, line) in source.text.lines().enumerate() {
        let text = documentation(line);
        let first = text.and_then(|text| text.split_whitespace().next());
        if begins && first.is_some_and(|word| QUESTIONS.contains(&word)) {
            complaints
                .push((number + 1, "name the item: a noun phrase instead of a question".into()));
        }
        begins = text.is_none() || first == Some("#");
    }
    complaints
}

/// Sentences of documentation that are too long, each told at its last line. They end with their
/// mark, or with the text that they stand in.
pub fn long_sentences(source: &Source) -> Complaints {
    let mut complaints = Vec::new();
    let mut judge = |line: usize, words: &mut usize| {
        if std::mem::take(words) > WORDS {
            complaints.push((line, format!("a sentence of more than {WORDS} words")));
        }
    };
    let (mut words, mut in_code, mut in_example) = (0, false, false);
    for (number, line) in source.text.lines().enumerate() {
        let text = documentation(line).map(str::trim);
        if text.is_some_and(|text| text.starts_with("```")) {
            in_example = !in_example;
        }
        in_example &= text.is_some();
        let text = text.filter(|text| !in_example && !parts(text));
        if text.is_none_or(is_item) {
            judge(number, &mut words);
            in_code = false;
        }
        for word in text.unwrap_or_default().split_whitespace() {
            words += usize::from(!in_code && word.contains(char::is_alphanumeric));
            in_code ^= word.matches('`').count() % 2 == 1;
            if !in_code && word.trim_end_matches([')', '"', '*']).ends_with(['.', '!', '?']) {
                judge(number + 1, &mut words);
            }
        }
    }
    complaints
}

/// True for a line between texts: an empty one, a heading, the row of a table, a fence.
fn parts(text: &str) -> bool {
    text.is_empty() || text.starts_with(['#', '|']) || text.starts_with("```")
}

/// True for the first line of a list's item.
fn is_item(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.starts_with("- ")
        || text.starts_with("* ")
        || number.len() < text.len() && number.starts_with(". ")
}

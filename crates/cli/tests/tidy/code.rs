//! Rust source with everything blanked that is not code: comments, strings, characters, tests.
//!
//! Not a parser: enough of the lexical grammar to tell code from prose. Lines stay where they are.

/// The code in `text`; what is not code is replaced by spaces, line by line.
pub fn only_code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let bytes: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            '/' if bytes.get(at + 1) == Some(&'/') => line_end(&bytes, at),
            '/' if bytes.get(at + 1) == Some(&'*') => block_end(&bytes, at),
            '"' => string_end(&bytes, at),
            'r' if starts_word(&bytes, at) => raw_string_end(&bytes, at).unwrap_or(at),
            '\'' => character_end(&bytes, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            code.push(bytes[at]);
            at += 1;
        } else {
            code.extend(bytes[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// [`only_code`] up to the test module, which stands last in a file.
pub fn without_tests(path: &str, text: &str) -> String {
    let is_test = |part: &str| part == "tests" || part == "benches" || part.ends_with("tests.rs");
    if path.split('/').any(is_test) {
        return String::new();
    }
    let code = only_code(text);
    let lines: Vec<&str> = code.lines().collect();
    let opens = |n: usize| {
        lines[n].trim() == "#[cfg(test)]"
            && lines.get(n + 1).is_some_and(|next| {
                next.trim().starts_with("mod ") && next.trim_end().ends_with('{')
            })
    };
    let end = (0..lines.len()).find(|n| opens(*n)).unwrap_or(lines.len());
    lines[..end].join("\n")
}

/// Lines (from 1) of `text` in which `word` stands by itself. A word may hold punctuation.
pub fn lines_with(text: &str, word: &str) -> Vec<usize> {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let found = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            !joins(line[..at].chars().next_back()) && !joins(line[at + word.len()..].chars().next())
        })
    };
    text.lines().enumerate().filter(|(_, line)| found(line)).map(|(n, _)| n + 1).collect()
}

fn starts_word(text: &[char], at: usize) -> bool {
    at == 0 || !(text[at - 1].is_alphanumeric() || text[at - 1] == '_') || text[at - 1] == 'b'
}

fn line_end(text: &[char], at: usize) -> usize {
    (at..text.len()).find(|n| text[*n] == '\n').unwrap_or(text.len())
}

fn block_end(text: &[char], at: usize) -> usize {
    let (mut depth, mut n) = (0, at);
    while n + 1 < text.len() {
        match (text[n], text[n + 1]) {
            ('/', '*') => {
                depth += 1;
                n += 2;
            }
            ('*', '/') => {
                depth -= 1;
                n += 2;
                if depth == 0 {
                    return n;
                }
            }
            _ => n += 1,
        }
    }
    text.len()
}

fn string_end(text: &[char], at: usize) -> usize {
    let mut n = at + 1;
    while n < text.len() {
        match text[n] {
            '\\' => n += 2,
            '"' => return n + 1,
            _ => n += 1,
        }
    }
    text.len()
}

fn raw_string_end(text: &[char], at: usize) -> Option<usize> {
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if text.get(open) != Some(&'"') {
        return None;
    }
    let closes = |n: usize| text[n] == '"' && text[n + 1..].iter().take(hashes).all(|c| *c == '#');
    (open + 1..text.len()).find(|n| closes(*n)).map(|n| n + 1 + hashes)
}

/// End of a character literal; None for a lifetime.
fn character_end(text: &[char], at: usize) -> Option<usize> {
    match (text.get(at + 1)?, text.get(at + 2)?) {
        ('\\', _) => (at + 3..text.len()).find(|n| text[*n] == '\'').map(|n| n + 1),
        (_, '\'') => Some(at + 3),
        _ => None,
    }
}

#[test]
fn prose_is_blanked_and_code_is_kept() {
    let text =
        "a /* f64 /* f64 */ f64 */ b // f64\n\"f64 \\\" f64\" r#\"f64 \" f64\"# '\"' 'x f64 '\\''";
    let code = only_code(text);
    assert_eq!(code.lines().count(), 2);
    assert_eq!(lines_with(&code, "f64"), [2]);
    assert_eq!(code.matches("f64").count(), 1);
    assert!(code.contains("a ") && code.contains(" b ") && code.contains("'x"));
    assert_eq!(lines_with("xf64 f64x\nf64_t\n(f64)", "f64"), [3]);
}

#[test]
fn tests_are_left_out() {
    let text = "one\n#[cfg(test)]\nextern crate std;\ntwo\n#[cfg(test)]\nmod tests {\nthree\n}";
    let code = without_tests("crates/core/src/a.rs", text);
    assert!(code.contains("two") && !code.contains("three"));
    assert_eq!(without_tests("crates/core/tests/a.rs", "f64"), "");
    assert_eq!(without_tests("crates/core/src/a/tests.rs", "f64"), "");
}

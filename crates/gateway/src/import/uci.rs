//! OpenWrt's UCI files: sections of options (openwrt.org/docs/techref/uci).
//!
//! ```text
//! config queue 'eth1'
//!     option download '85000'
//!     list   name     'value'
//! ```
//!
//! Words may be quoted as in a shell.

/// One `config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) kind: String,
    pub(super) name: Option<String>,
    /// Name and value; the last one of a name counts.
    pub(super) options: Vec<(String, String)>,
}

impl Section {
    /// The value of an option.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().rev().find(|(option, _)| option == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// All sections, and the numbers of lines that say nothing.
pub(super) fn parse(text: &str) -> (Vec<Section>, Vec<usize>) {
    let (mut sections, mut odd) = (Vec::<Section>::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let words = words(line);
        let words: Option<Vec<&str>> =
            words.as_ref().map(|words| words.iter().map(String::as_str).collect());
        match (words.as_deref(), sections.last_mut()) {
            (Some([] | ["package", _]), _) => {}
            (Some(["config", kind, name @ ..]), _) if name.len() < 2 => {
                let name = name.first().map(|name| (*name).to_owned());
                sections.push(Section { kind: (*kind).to_owned(), name, options: Vec::new() });
            }
            (Some(["option" | "list", name, value]), Some(section)) => {
                section.options.push(((*name).to_owned(), (*value).to_owned()));
            }
            _ => odd.push(number + 1),
        }
    }
    (sections, odd)
}

/// The words of a line up to a comment; None if a quote does not end.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().push(characters.next()?),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_options_are_read_with_their_quotes() {
        let text = "package sqm\n\nconfig queue 'eth1' # the line\n\toption  a 'x y'\n\
                    \toption b \"it's \\\" \"z\n  option a w\n\tlist l 'm'\nconfig other\n\
                    option lonely\noption c 'open\n";
        let (sections, odd) = parse(text);
        assert_eq!(sections.len(), 2);
        assert_eq!(
            (sections[0].kind.as_str(), sections[0].name.as_deref()),
            ("queue", Some("eth1"))
        );
        assert_eq!(sections[0].get("a"), Some("w"));
        assert_eq!(sections[0].get("b"), Some("it's \" z"));
        assert_eq!(sections[0].get("c"), None);
        assert_eq!(sections[1].name, None);
        assert_eq!(odd, [9, 10]);
        assert_eq!(parse("option a b\n").1, [1]);
    }

    #[test]
    fn a_comment_begins_with_a_word_and_a_section_has_one_name() {
        let (sections, odd) =
            parse("config queue a b\nconfig queue\noption a x#y # z\n#option b\n");
        assert_eq!((sections.len(), odd), (1, vec![1]));
        assert_eq!((sections[0].get("a"), sections[0].get("b")), (Some("x#y"), None));
    }
}

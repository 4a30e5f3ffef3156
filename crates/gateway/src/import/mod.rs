//! Settings of other programs as ours: OpenWrt's sqm-scripts, and what `tc` shows.
//!
//! Whatever is read gives settings, and a reason for each thing that is not taken over. No text is
//! an error: of one that is none of these, nothing is taken.

mod sqm;
mod tc;
mod uci;

use std::fmt::Write;

pub use sqm::import as sqm;
pub use tc::import as tc;

use crate::config;
use crate::direction::Direction;
use crate::links::check_name;
use crate::words::settings_of;

/// One direction of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// As `tc` writes it; none if the words say it.
    pub rate: Option<String>,
    /// The discipline and its words.
    pub words: String,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The way of what arrives.
    pub download: Option<Way>,
    /// The way of what leaves.
    pub upload: Option<Way>,
}

impl Interface {
    /// Its table of a configuration file.
    fn toml(&self) -> String {
        let both = [("download", &self.download), ("upload", &self.upload)];
        let lines = both.map(|(key, way)| {
            let way = way.as_ref()?;
            let rate = way.rate.as_ref().map(|rate| format!("{key} = \"{rate}\"\n"));
            Some((rate.unwrap_or_default(), way.words.as_str()))
        });
        let mut text = format!("[[interface]]\nname = \"{}\"\n", self.name);
        lines.iter().flatten().for_each(|(rate, _)| text += rate);
        match &lines {
            [Some((_, down)), Some((_, up))] if down == up => {
                let _ = writeln!(text, "qdisc = \"{up}\"");
            }
            [down, up] => {
                for (key, way) in [("download", down), ("upload", up)] {
                    if let Some((_, words)) = way {
                        let _ = writeln!(text, "{key}_qdisc = \"{words}\"");
                    }
                }
            }
        }
        text
    }

    fn command(&self) -> Result<String, String> {
        let none = |why| Err(format!("`{}`: {why}, which only a file can say", self.name));
        if self.name.starts_with('-') {
            return none("its name looks like an option");
        }
        let ways = [("download", &self.download), ("upload", &self.upload)];
        let there = || ways.iter().filter_map(|(key, way)| Some((key, way.as_ref()?)));
        let Some((_, first)) = there().next() else { return none("it has no direction") };
        if there().any(|(_, way)| way.words != first.words) {
            return none("its directions differ in more than rates");
        }
        let rates = there().filter(|(_, way)| way.rate.is_some()).count();
        // Without any rate both directions are meant.
        if rates != there().count() && (rates, there().count()) != (0, ways.len()) {
            return none("a direction has no rate");
        }
        let mut line = format!("simnel up {}", quoted(&self.name));
        for (key, way) in there() {
            if let Some(rate) = &way.rate {
                let _ = write!(line, " {key} {rate}");
            }
        }
        Ok(format!("{line} {}", first.words))
    }
}

/// `text` as a word of a shell's command. Linux lets an interface's name have nearly any character,
/// too.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:=@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Settings that were understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Those with anything to do.
    pub interfaces: Vec<Interface>,
    /// Settings that were not taken over, and why.
    pub notes: Vec<String>,
}

impl Imported {
    /// The text of a configuration file.
    pub fn toml(&self) -> String {
        self.interfaces.iter().map(Interface::toml).collect::<Vec<_>>().join("\n")
    }

    /// For each interface the line of `simnel up` that does the same, or why none does.
    pub fn commands(&self) -> Vec<Result<String, String>> {
        self.interfaces.iter().map(Interface::command).collect()
    }

    fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Takes an interface over, as far as its settings are ones of ours.
    fn add(&mut self, mut interface: Interface) {
        let name = interface.name.clone();
        if let Err(error) = check_name(&name) {
            return self.note(error.to_string());
        }
        if name.contains(['"', '\\']) {
            return self.note(format!("`{name}`: a file of ours cannot name it"));
        }
        if self.interfaces.iter().any(|other| other.name == name) {
            return self.note(format!("`{name}` occurs twice: the first one is taken over"));
        }
        let sides = [
            (Direction::Download, &mut interface.download),
            (Direction::Upload, &mut interface.upload),
        ];
        for (direction, side) in sides {
            let Some(way) = side else { continue };
            if let Err(error) = settings_of(direction, way.rate.as_deref(), way.words.as_str()) {
                self.note(format!("`{name}`: {error}"));
                *side = None;
            }
        }
        if interface.download.is_none() && interface.upload.is_none() {
            return self.note(format!("`{name}`: nothing is left to do for it"));
        }
        // What is printed is what is read.
        match config::parse(&interface.toml()) {
            Ok(_) => self.interfaces.push(interface),
            Err(error) => self.note(format!("`{name}`: {error}")),
        }
    }
}

/// Those of `words` that cake understands, one option with its values after the other; `left` takes
/// the others.
fn understood(discipline: &str, words: &str, mut left: impl FnMut(&str)) -> String {
    let mut all: Vec<&str> = words.split_whitespace().collect();
    while !all.is_empty() {
        let Err(error) = simnel_core::qdisc::parse(&format!("{discipline} {}", all.join(" ")))
        else {
            break;
        };
        // Places are counted from 1, and the discipline's name is the first word.
        let text = error.to_string();
        let wrong = all.iter().position(|word| text.contains(&format!("`{word}`")));
        let at = wrong.unwrap_or(all.len() - 1);
        left(all.remove(at));
    }
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::random::Random;

    #[test]
    fn words_that_are_not_understood_go_one_by_one() {
        let mut gone = Vec::new();
        let words =
            understood("cake", "nat nonsense dual-srchost more", |w| gone.push(w.to_owned()));
        assert_eq!((words.as_str(), gone.len()), ("nat dual-srchost", 2));
        // What is wrong may be that a word is missing: the last one goes, until nothing is left.
        let mut gone = Vec::new();
        assert_eq!(understood("tbf", "limit 9k", |word| gone.push(word.to_owned())), "");
        assert_eq!(gone, ["9k", "limit"]);
    }

    #[test]
    fn both_directions_are_written_as_they_are_read() {
        let way =
            |rate: &str, words: &str| Some(Way { rate: Some(rate.into()), words: words.into() });
        let mut imported = Imported::default();
        let (download, upload) = (way("9mbit", "cake nat"), way("1mbit", "cake nat"));
        imported.add(Interface { name: "wan".into(), download, upload });
        imported.add(Interface { name: "lte".into(), download: None, upload: way("1mbit", "pie") });
        imported.add(Interface { name: "x".into(), download: None, upload: way("1mbit", "what") });
        imported.add(Interface {
            name: "a\"b".into(),
            download: None,
            upload: way("1mbit", "pie"),
        });
        let expected = "[[interface]]\nname = \"wan\"\ndownload = \"9mbit\"\nupload = \"1mbit\"\n\
                        qdisc = \"cake nat\"\n\n[[interface]]\nname = \"lte\"\nupload = \"1mbit\"\n\
                        upload_qdisc = \"pie\"\n";
        assert_eq!(imported.toml(), expected);
        let line = "simnel up wan download 9mbit upload 1mbit cake nat";
        assert_eq!(imported.commands()[0].as_deref(), Ok(line));
        assert_eq!(imported.notes.len(), 3, "{:?}", imported.notes);
    }

    /// A line of `--command` is pasted into a shell.
    #[test]
    fn names_are_words_of_a_shell() {
        let named = |name: &str| {
            let mut imported = Imported::default();
            let upload = Some(Way { rate: Some("1mbit".into()), words: "cake".into() });
            imported.add(Interface { name: name.into(), download: None, upload });
            imported
        };
        for (name, word) in [
            ("eth0.7@x", "eth0.7@x"),
            ("$(reboot)", "'$(reboot)'"),
            ("a;b", "'a;b'"),
            ("it's", r"'it'\''s'"),
        ] {
            let line = format!("simnel up {word} upload 1mbit cake");
            assert_eq!(named(name).commands(), [Ok(line)]);
        }
        assert!(named("--help").commands()[0].is_err());
    }

    /// Whatever the text: an end without a panic, and a file of ours or none.
    #[test]
    fn any_text_is_read() {
        let pieces = [
            "config queue 'a'\n",
            "option ",
            "interface 'wan'\n",
            "download '9'\n",
            "upload 0\n",
            "'",
            "\"",
            "\\",
            "script 'layer_cake.qos'\n",
            "eqdisc_opts 'nat mpu'\n",
            "qdisc cake 8001: ",
            "dev wan root refcnt 2 ",
            "bandwidth 9Mbit ",
            "\n",
            "class htb 1:10 dev wan root ",
            "rate 9Mbit ceil ",
            "qdisc htb 1: ",
            "parent 1:10 ",
            "ingress ffff: ",
            "dev ifb4wan ",
            "dev lte\n",
            "\u{0}",
            "é",
            "option qdisc_advanced 1\n",
            "linklayer 'atm'\n",
            "overhead '-70000'\n",
        ];
        let mut random = Random::new(5);
        let mut taken = 0;
        for _ in 0..2_000 {
            let count = random.below(24);
            let text: String =
                (0..count).map(|_| pieces[random.below(pieces.len() as u32) as usize]).collect();
            for imported in [sqm(&text), tc(&text, None), tc(&text, Some("wan"))] {
                taken += imported.interfaces.len();
                if !imported.interfaces.is_empty() {
                    assert_eq!(config::parse(&imported.toml()).map(drop), Ok(()), "{text}");
                }
                imported.commands();
            }
        }
        assert!(taken > 0);
    }
}

//! The choice of an interface's shaper, and its reason in words.
//!
//! `--backend auto` goes down a list. First is the module, which has all disciplines and words;
//! then Linux's own cake, if it has all the words asked for; then a process. Settings that only a
//! process can carry out (lanes, disciplines three deep) end that at once. So does a kernel that
//! lacks a part. Autorate
//! and rules take a process as well. One that holds the packets knows more of the line than the
//! kernel's statistics tell. With it, what arrives has its tier from the first packet on. What the
//! kernel says against the place, such as another shaper there, stays an error.

use super::shaped::Maker;
use crate::direction::Direction;
use crate::error::Error;
use crate::settings::{Backend, Settings};

/// Reason why autorate is better off with a process.
const AUTORATE: &str = "autorate sees more of the line where the packets pass a process";

/// Reason why rules are better off with a process.
const RULES: &str = "rules decide about each packet where it passes a process";

/// A shaper and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel's discipline; None: a process is to do it.
    pub maker: Option<Maker>,
    /// The reason, for whoever asked.
    pub why: String,
}

/// Lets the kernel shape by `shape`, as the backend of `settings` wants it.
///
/// # Errors
/// As `shape`; of settings that need the daemon where the kernel is insisted on.
pub fn choose(
    settings: &Settings,
    shape: impl FnOnce(&Settings) -> Result<Maker, Error>,
) -> Result<Choice, Error> {
    let process = |why: &str| Ok(Choice { maker: None, why: why.into() });
    let shaped = match (settings.backend, settings.needs_daemon()) {
        (Backend::Userspace, _) => return process("nothing else was asked for"),
        (Backend::Auto, _) if settings.autorate.is_some() => return process(AUTORATE),
        (Backend::Auto, _) if !settings.rules.is_empty() => return process(RULES),
        (_, Some(error)) => Err(error),
        (_, None) => shape(settings),
    };
    match shaped {
        Ok(maker) => Ok(Choice { maker: Some(maker), why: merits(settings, maker) }),
        Err(error) if settings.backend == Backend::Auto => {
            let why = obstacle(&error).ok_or(error)?;
            Ok(Choice { maker: None, why })
        }
        Err(error) => Err(error),
    }
}

/// The kernel's discipline in words, and what it lacks.
fn merits(settings: &Settings, maker: Maker) -> String {
    let mut words = String::from(match maker {
        Maker::Module => return "the module `simnel`".into(),
        Maker::Linux => "Linux's own cake, since the module `simnel` is not there",
    });
    let guards = |way| settings.plain(way) != settings.direction(way);
    if guards(Direction::Upload) || guards(Direction::Download) {
        words += "; hosts are not guarded";
    }
    words
}

/// The reason why a process shapes, if `error` is one.
fn obstacle(error: &Error) -> Option<String> {
    let why = match error {
        Error::LanesInKernel(_) => "lanes need a process".into(),
        Error::DeepInKernel(_) => "the kernel takes one discipline below another at most".into(),
        Error::NotLinuxs(words) => {
            format!("the module `simnel` is not there, and Linux's own cake cannot do `{words}`")
        }
        Error::KernelLacks { what, .. } => format!("this kernel lacks {what}"),
        _ => return None,
    };
    Some(why)
}

#[cfg(test)]
mod tests {
    use simnel_core::qdisc::parse;

    use super::*;
    use crate::config;

    fn settings(keys: &str) -> Settings {
        let text = format!("[[interface]]\nname = \"eth0\"\nupload = \"9mbit\"\n{keys}");
        config::parse(&text).unwrap().remove(0)
    }

    /// The choice for `keys` where the kernel does or says `shaped`.
    fn chosen(keys: &str, shaped: Result<Maker, Error>) -> Result<(Option<Maker>, String), String> {
        let choice = choose(&settings(keys), |_| shaped);
        choice.map(|choice| (choice.maker, choice.why)).map_err(|error| error.to_string())
    }

    const AUTO: &str = "backend = \"auto\"\n";

    #[test]
    fn the_best_that_is_there_is_taken_with_its_reason() {
        let lacks = Error::KernelLacks { what: "ifb devices", fix: "`modprobe ifb`" };
        let full = Error::Refused { doing: "add".into(), reason: "Exclusivity".into() };
        for (shaped, maker, why) in [
            (Ok(Maker::Module), Some(Maker::Module), "the module `simnel`"),
            (
                Ok(Maker::Linux),
                Some(Maker::Linux),
                "Linux's own cake, since the module `simnel` is not there; hosts are not guarded",
            ),
            (
                Err(Error::NotLinuxs("savings 9Kb".into())),
                None,
                "the module `simnel` is not there, and Linux's own cake cannot do `savings 9Kb`",
            ),
            (Err(lacks), None, "this kernel lacks ifb devices"),
        ] {
            assert_eq!(chosen(AUTO, shaped), Ok((maker, why.into())));
        }
        let error = chosen(AUTO, Err(full)).unwrap_err();
        assert!(error.contains("Exclusivity"), "{error}");
        let error = chosen("backend = \"kernel\"", Err(Error::NotLinuxs("htb".into())));
        assert!(error.unwrap_err().contains("cannot do `htb`"));
    }

    #[test]
    fn what_only_a_process_does_is_not_asked_of_the_kernel() {
        for (keys, expected) in [
            ("lanes = 2\nupload_qdisc = \"cake no-host-guard\"", "lanes need a process"),
            ("upload_qdisc = \"drr class 1:1 pie\"", "the kernel takes one discipline below"),
            ("autorate = true\ndownload = \"2mbit..9mbit\"", "autorate sees more of the line"),
            ("[[rule]]\nport = 5000\ntier = 1\n", "rules decide about each packet"),
            ("[[share]]\naddress = \"10.0.0.0/8\"\nupload = \"1mbit\"\n", "rules decide"),
        ] {
            let settings = settings(&format!("{AUTO}{keys}"));
            let choice = choose(&settings, |_| panic!("the kernel is asked")).unwrap();
            assert_eq!(choice.maker, None);
            assert!(choice.why.starts_with(expected), "{keys}: {}", choice.why);
        }
        assert_eq!(choose(&settings(""), |_| panic!("asked")).unwrap().maker, None);
    }

    #[test]
    fn linuxs_cake_gets_the_words_without_the_guard_that_nobody_asked_for() {
        for (said, plain, lacks) in [
            ("cake nat", "cake bandwidth 9mbit nat", true),
            ("cake nat no-host-guard", "cake bandwidth 9mbit nat", false),
            ("cake host-guard src", "cake bandwidth 9mbit host-guard src", false),
        ] {
            let settings = settings(&format!("qdisc = \"{said}\""));
            assert_eq!(settings.plain(Direction::Upload), Some(&parse(plain).unwrap()), "{said}");
            assert_eq!(merits(&settings, Maker::Linux).contains("not guarded"), lacks, "{said}");
        }
    }
}

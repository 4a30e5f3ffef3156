//! `simnel tc`: the kernel module's disciplines in `tc`'s grammar, for those whose iproute2 does
//! not know the module's words.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use simnel_core::qdisc::Handle;
use simnel_core::tc::Json;
use simnel_gateway::kernel::{Listed, Place, Qdiscs, Settings, Verb, OWN_KIND, ROOT};

use super::{misuse, misuse_with_help, output_failed};

/// Set, change, remove and show disciplines of the kernel module, as `tc qdisc` does.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel tc qdisc add dev eth0 root simnel cake bandwidth 10mbit diffserv4\n  \
    simnel tc qdisc change dev eth0 root simnel bandwidth 8mbit\n  \
    simnel tc qdisc replace dev eth0 parent 1:10 handle 10: simnel fq_pie savings 15kb\n  \
    simnel tc -s qdisc show dev eth0\n  \
    simnel tc qdisc del dev eth0 root\n\n\
`change` amends what is there; words that begin with the discipline's name say all anew.\n\
Needs the module (docs/KERNEL.md) and, but for `show`, CAP_NET_ADMIN. Disciplines under\n\
Linux's own names are `tc`'s to set and show.")]
pub struct Args {
    /// Print statistics, too.
    #[arg(short, long)]
    statistics: bool,
    /// Print JSON.
    #[arg(short, long)]
    json: bool,
    /// `qdisc`, a verb, the place, and after `simnel` the discipline's words.
    #[arg(
        required = true,
        value_name = "qdisc VERB dev IFACE root|parent CLASS [handle H:] simnel WORDS",
        allow_negative_numbers = true
    )]
    words: Vec<String>,
}

/// Does what the words say.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match understand(&args.words)? {
        Request::Show { device } => show(args, device, out)?,
        Request::Set { verb, device, parent, handle, words } => {
            let place = Place { device, parent, handle };
            let (kind, settings) = match &words {
                None => ("", Settings::None),
                Some(words) if words.is_empty() => (OWN_KIND, Settings::None),
                Some(words) => (OWN_KIND, Settings::Words(words)),
            };
            let qdiscs = Qdiscs::open().into_diagnostic()?;
            qdiscs.request(verb, place, kind, settings).into_diagnostic()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A request, as the words say it.
#[derive(Debug, PartialEq)]
enum Request<'a> {
    Show {
        device: Option<&'a str>,
    },
    Set {
        verb: Verb,
        device: &'a str,
        parent: u32,
        handle: u32,
        /// Those after the kind, if one is named.
        words: Option<String>,
    },
}

const FORM: &str =
    "for example: simnel tc qdisc replace dev eth0 root simnel cake bandwidth 10mbit";

fn understand(words: &[String]) -> miette::Result<Request<'_>> {
    let mut words = words.iter().map(String::as_str);
    let object = words.next().unwrap_or_default();
    if !matches!(object, "qdisc" | "qd" | "q") {
        return Err(misuse_with_help(format!("`{object}`: only `qdisc` is known here"), FORM));
    }
    let verb = match words.next() {
        Some("add") => Some(Verb::Add),
        Some("change" | "chg") => Some(Verb::Change),
        Some("replace") => Some(Verb::Replace),
        Some("delete" | "del") => Some(Verb::Delete),
        None | Some("show" | "list" | "ls") => None,
        Some(other) => {
            let what = format!("`{other}` is no verb: add, change, replace, del or show");
            return Err(misuse_with_help(what, FORM));
        }
    };
    let (mut device, mut parent, mut handle, mut own) = (None, None, None, None);
    while let Some(word) = words.next() {
        let mut value = || {
            words.next().ok_or_else(|| misuse_with_help(format!("`{word}` needs a value"), FORM))
        };
        let place = |text: &str| {
            let read = text.parse::<Handle>().map(|Handle(number)| number);
            read.map_err(|error| misuse(format!("`{word} {text}`: {error}")))
        };
        // As in `tc`, each is said once.
        let twice = match word {
            "dev" => device.replace(value()?).is_some(),
            "root" => parent.replace(ROOT).is_some(),
            "parent" => parent.replace(place(value()?)?).is_some(),
            "handle" => {
                let text = value()?;
                let no_handle = || misuse(format!("`handle {text}`: not a handle such as 1:"));
                handle.replace(major(text).ok_or_else(no_handle)?).is_some()
            }
            OWN_KIND if verb.is_some() => {
                own = Some(words.collect::<Vec<_>>().join(" "));
                break;
            }
            other => {
                let known = simnel_core::qdisc::discipline(other).is_some();
                let help = if known { "say `simnel` before the discipline's name" } else { FORM };
                return Err(misuse_with_help(format!("`{other}` is not expected here"), help));
            }
        };
        if twice {
            return Err(misuse_with_help(
                format!("`{word}` comes too late: that has been said"),
                FORM,
            ));
        }
    }
    let Some(verb) = verb else { return Ok(Request::Show { device }) };
    let device =
        device.ok_or_else(|| misuse_with_help("no interface is named: `dev IFACE`", FORM))?;
    let parent =
        parent.ok_or_else(|| misuse_with_help("neither `root` nor `parent` is said", FORM))?;
    if verb != Verb::Delete && own.is_none() {
        return Err(misuse_with_help("no discipline is named: `simnel WORDS`", FORM));
    }
    Ok(Request::Set { verb, device, parent, handle: handle.unwrap_or(0), words: own })
}

/// A discipline's handle, `1:`, which may be written `1` or `1:0`.
fn major(handle: &str) -> Option<u32> {
    let digits = handle.strip_suffix(":0").or_else(|| handle.strip_suffix(':')).unwrap_or(handle);
    format!("{digits}:").parse().ok().map(|Handle(number)| number)
}

fn show(args: &Args, device: Option<&str>, out: &mut dyn Write) -> miette::Result<()> {
    let all = Qdiscs::open().and_then(|qdiscs| qdiscs.list()).into_diagnostic()?;
    let here = |listed: &&Listed| device.is_none_or(|device| listed.device == device);
    let ours: Vec<&Listed> = all.iter().filter(|listed| listed.is_ours()).filter(here).collect();
    let mut text = String::new();
    let view = View { device: device.is_none(), statistics: args.statistics };
    let written = if args.json {
        write_all_json(view, &ours, &mut text)
    } else {
        ours.iter().try_for_each(|listed| view.write(listed, &listed.words(), &mut text))
    };
    written.map_err(|error| miette!("{error}"))?;
    out.write_all(text.as_bytes()).map_err(output_failed)
}

fn write_all_json(view: View, all: &[&Listed], out: &mut String) -> fmt::Result {
    let mut json = Json::new(out);
    json.begin_array()?;
    all.iter().try_for_each(|listed| view.write_json(listed, &listed.words(), &mut json))?;
    json.end_array()?;
    out.push('\n');
    Ok(())
}

/// Parts of a discipline that are shown.
#[derive(Clone, Copy)]
pub(super) struct View {
    /// Its interface, which `tc` leaves out where one is asked for by name.
    pub(super) device: bool,
    pub(super) statistics: bool,
}

impl View {
    /// Writes `listed` as `tc` does.
    pub(super) fn write(
        self,
        listed: &Listed,
        words: &str,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        write!(out, "qdisc {} {} ", listed.kind, Handle(listed.handle))?;
        if self.device {
            write!(out, "dev {} ", listed.device)?;
        }
        match listed.parent {
            ROOT => out.write_str("root ")?,
            parent => write!(out, "parent {} ", Handle(parent))?,
        }
        if listed.refcnt != 1 {
            write!(out, "refcnt {} ", listed.refcnt)?;
        }
        writeln!(out, "{words} ")?;
        if self.statistics {
            listed.common.write(out)?;
            out.write_str(&listed.text())?;
        }
        Ok(())
    }

    /// Writes `listed` as `tc -j` does, as an item of the open array.
    pub(super) fn write_json(
        self,
        listed: &Listed,
        words: &str,
        json: &mut Json<'_>,
    ) -> fmt::Result {
        json.begin_object()?;
        json.key("kind")?.string(&listed.kind)?;
        json.key("handle")?.display(Handle(listed.handle))?;
        if self.device {
            json.key("dev")?.string(&listed.device)?;
        }
        match listed.parent {
            ROOT => json.key("root")?.boolean(true)?,
            parent => json.key("parent")?.display(Handle(parent))?,
        }
        if listed.refcnt != 1 {
            json.key("refcnt")?.number(listed.refcnt.into())?;
        }
        json.key("options")?.begin_object()?;
        json.key("words")?.string(words)?;
        json.end_object()?;
        if self.statistics {
            listed.common.write_json(json)?;
            json.members(&listed.json())?;
        }
        json.end_object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn places_and_words_are_understood_as_by_tc() {
        let said = words("qdisc replace dev eth0 parent 1:10 handle a: simnel fq_pie savings 15kb");
        let expected = Request::Set {
            verb: Verb::Replace,
            device: "eth0",
            parent: 0x1_0010,
            handle: 0xa_0000,
            words: Some("fq_pie savings 15kb".into()),
        };
        assert_eq!(understand(&said).unwrap(), expected);
        for (said, number) in [("a", 0xa_0000), ("8001", 0x8001_0000), ("b:0", 0xb_0000)] {
            let said = words(&format!("qdisc add dev eth0 root handle {said} simnel pie"));
            let Request::Set { handle, .. } = understand(&said).unwrap() else { panic!() };
            assert_eq!(handle, number);
        }
        let said = words("qdisc del dev eth0 root");
        let (verb, device) = (Verb::Delete, "eth0");
        let expected = Request::Set { verb, device, parent: ROOT, handle: 0, words: None };
        assert_eq!(understand(&said).unwrap(), expected);
        let said = words("q show dev eth0");
        assert_eq!(understand(&said).unwrap(), Request::Show { device: Some("eth0") });
        assert_eq!(understand(&words("qdisc")).unwrap(), Request::Show { device: None });
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (said, named) in [
            ("class show", "`class`"),
            ("qdisc put dev eth0", "`put`"),
            ("qdisc add dev", "`dev`"),
            ("qdisc add dev eth0 root", "`simnel WORDS`"),
            ("qdisc add dev eth0 simnel pie", "`root`"),
            ("qdisc add root simnel pie", "`dev IFACE`"),
            ("qdisc add dev eth0 root cake", "`cake`"),
            ("qdisc add dev eth0 parent x simnel pie", "`parent x`"),
            ("qdisc show dev eth0 simnel", "`simnel`"),
            ("qdisc add dev eth0 root handle 1:10 simnel pie", "`handle 1:10`"),
            ("qdisc add dev eth0 root handle x simnel pie", "`handle x`"),
            ("qdisc add dev eth0 root parent 1:1 simnel pie", "`parent` comes too late"),
            ("qdisc add dev eth0 parent 1:1 root simnel pie", "`root` comes too late"),
            ("qdisc add dev eth0 dev eth1 root simnel pie", "`dev` comes too late"),
            ("qdisc add dev eth0 root handle 1: handle 2: simnel pie", "`handle` comes too late"),
        ] {
            let error = understand(&words(said)).unwrap_err().to_string();
            assert!(error.contains(named), "{said}: {error}");
        }
    }
}

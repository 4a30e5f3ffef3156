//! The configuration file, `/etc/simnel/simnel.toml`.
//!
//! ```toml
//! [[interface]]
//! name = "eth0"
//! download = "50mbit"
//! upload = "10mbit"
//! qdisc = "cake diffserv4 nat"
//! ```
//!
//! An unknown key is an error that names the key and the line. Rates and words are `tc`'s; how they
//! are put together is said in [`crate::words`].

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::slice;

use serde::Deserialize;
use simnel_core::qdisc::Config;
use simnel_core::{Rate, Span};
use toml::Spanned;

use crate::autorate::{self, Autorate};
use crate::control_dir::DEFAULT_CONTROL_DIR;
use crate::direction::Direction;
use crate::error::Error;
use crate::lanes::Lanes;
use crate::links::check_name;
use crate::nft::MarkBits;
use crate::rules::shares::{self, Share, MOST_SHARES};
use crate::rules::{self, Rule, Table, MOST_CGROUPS, MOST_RULES};
use crate::settings::{Backend, Settings};
use crate::words::{settings_of, Said};

/// Path of the file unless told otherwise.
pub const DEFAULT_FILE: &str = "/etc/simnel/simnel.toml";

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Directory of locks and control sockets.
    control_dir: Option<PathBuf>,
    #[serde(default)]
    interface: Vec<Spanned<Interface>>,
    #[serde(default)]
    rule: Vec<Spanned<Table>>,
    #[serde(default)]
    share: Vec<Spanned<shares::Table>>,
}

/// One `[[interface]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interface {
    name: String,
    /// The process that does the work.
    #[serde(default)]
    backend: Backend,
    /// Rates follow the line; they are said as ranges then.
    #[serde(default)]
    autorate: bool,
    /// Addresses to probe for that.
    reflectors: Option<Vec<String>>,
    /// Rate of what arrives, as `tc` writes it.
    download: Option<String>,
    /// Rate of what leaves.
    upload: Option<String>,
    /// Discipline and its words, for both directions.
    qdisc: Option<String>,
    /// Instead of `qdisc`, for one direction.
    download_qdisc: Option<String>,
    upload_qdisc: Option<String>,
    /// Two bits of the packet mark that are ours.
    mark_mask: Option<i64>,
    /// Priority under SCHED_FIFO; 0 for none.
    realtime: Option<i64>,
    /// Microseconds that are spun before each release.
    spin_us: Option<i64>,
    /// Microseconds of lateness that a burst makes up for.
    catch_up_us: Option<i64>,
    /// Microseconds between batches at high rates.
    batch_us: Option<i64>,
    lanes: Option<i64>,
    /// The choice of a lane for each packet.
    lanes_by: Option<String>,
    /// Packets that the kernel keeps for us.
    queue_length: Option<i64>,
    lock_memory: Option<bool>,
}

/// Bounds of a number, and the reason.
struct Bounds {
    key: &'static str,
    range: std::ops::RangeInclusive<u32>,
    reason: &'static str,
}

impl Bounds {
    fn check(&self, value: Option<i64>) -> Result<Option<u32>, String> {
        let Some(value) = value else { return Ok(None) };
        let (least, most) = (self.range.start(), self.range.end());
        let fitting = u32::try_from(value).ok().filter(|value| self.range.contains(value));
        fitting.map(Some).ok_or_else(|| {
            let Bounds { key, reason, .. } = self;
            format!("`{key} = {value}`: expected {least} to {most}, because {reason}")
        })
    }
}

const REALTIME: Bounds = Bounds {
    key: "realtime",
    range: 0..=98,
    reason: "99 is the guard's, which must run when the data path does not let go of a core",
};
const SPIN: Bounds =
    Bounds { key: "spin_us", range: 0..=1_000, reason: "a core is lost for as long" };
const CATCH_UP: Bounds = Bounds {
    key: "catch_up_us",
    range: 0..=50_000,
    reason: "a burst of so much of the rate waits in the line's own queue",
};
const BATCH: Bounds =
    Bounds { key: "batch_us", range: 0..=10_000, reason: "every packet may wait as long" };
const QUEUE_LENGTH: Bounds = Bounds {
    key: "queue_length",
    range: 256..=262_144,
    reason: "with fewer, traffic passes unshaped; each takes some 2 KB of the kernel's memory",
};

/// Most bytes of a file: twice what all rules with all their forms take.
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// Reads and understands a file.
///
/// # Errors
/// [`Error::ConfigFile`] with the place and the reason; errors of a discipline's words name the
/// interface and the direction.
pub fn read(path: &Path) -> Result<Vec<Settings>, Error> {
    let failed = |reason: String| Error::ConfigFile { path: path.to_owned(), reason };
    let text = text(path).map_err(|error| failed(error.to_string()))?;
    parse(&text).map_err(failed)
}

/// All of a file of settings, understood or not.
///
/// # Errors
/// Those of [`bytes`], or there is something else than text.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes = fs::File::open(path).and_then(bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("this is no text (UTF-8)"))
}

/// All bytes of a file of settings, which may as well be a device that never ends.
///
/// # Errors
/// That of reading; [`io::ErrorKind::FileTooLarge`] beyond 4 MiB.
pub fn bytes(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let reason = format!("this has more than {} MiB, the most that is read", MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// A fault in `text`, with the line that it is in, unless that is none to be shown.
fn fault(text: &str, error: &toml::de::Error) -> String {
    const LONGEST: usize = 200;
    let place = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..place).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    // As Rust calls it.
    let plain = |text: String| text.replace("expected i64", "expected a whole number");
    if line.len() <= LONGEST && !line.contains('\0') {
        let fix = match error.message() {
            "invalid type: map, expected a sequence" => {
                format!("say `[[{}]]`", line.trim().trim_matches(['[', ']']))
            }
            _ => String::new(),
        };
        return plain(format!("{error}{fix}"));
    }
    let number = line_of(text, place);
    plain(format!("line {number}: {} (a line of {} bytes)", error.message(), line.len()))
}

/// Line, from 1, of the byte at `place`.
fn line_of(text: &str, place: usize) -> usize {
    text.get(..place).unwrap_or_default().matches('\n').count() + 1
}

/// Puts the line of a table before an error in it.
fn at<'a, T>(text: &'a str, table: &'a Spanned<T>) -> impl Fn(String) -> String + 'a {
    move |error| format!("line {}: {error}", line_of(text, table.span().start))
}

/// Understands the text of a file.
///
/// # Errors
/// The fault, with its line or interface.
pub fn parse(text: &str) -> Result<Vec<Settings>, String> {
    let file: File = toml::from_str(text).map_err(|error| fault(text, &error))?;
    let control_dir = file.control_dir.unwrap_or_else(|| PathBuf::from(DEFAULT_CONTROL_DIR));
    if !control_dir.is_absolute() {
        return Err(format!(
            "`control_dir = \"{}\"`: say the whole path, such as {DEFAULT_CONTROL_DIR}",
            control_dir.display()
        ));
    }
    let mut all: Vec<Settings> = Vec::new();
    if file.rule.len() > MOST_RULES {
        return Err(format!(
            "{} rules, of at most {MOST_RULES}: put ports or addresses into lists",
            file.rule.len()
        ));
    }
    let in_file = |kind: &str, index: usize, name: &Option<String>| {
        known(name.as_deref(), &file.interface).map_err(|e| format!("{kind} {}: {e}", index + 1))
    };
    let mut rules = Vec::new();
    for (index, place) in file.rule.iter().enumerate() {
        let table = place.get_ref();
        in_file("rule", index, &table.interface).map_err(at(text, place))?;
        let rule = table.read(index + 1).map_err(at(text, place))?;
        hidden("rule", &rule, &table.interface, &rules).map_err(at(text, place))?;
        rules.push((table.interface.clone(), rule));
    }
    let own: Vec<Rule> = rules.iter().map(|(_, rule)| rule.clone()).collect();
    let cgroups = rules::cgroups(&own).len();
    if cgroups > MOST_CGROUPS {
        return Err(format!("{cgroups} control groups in rules, of at most {MOST_CGROUPS}"));
    }
    if file.share.len() > MOST_SHARES {
        return Err(format!("{} shares, of at most {MOST_SHARES}", file.share.len()));
    }
    let mut all_shares: Vec<(Option<String>, Share)> = Vec::new();
    for (index, place) in file.share.iter().enumerate() {
        let table = place.get_ref();
        in_file("share", index, &table.interface).map_err(at(text, place))?;
        let share = table.read(index + 1).map_err(at(text, place))?;
        let beside = |(only, _): &&(Option<String>, Share)| {
            only.is_none() || table.interface.is_none() || *only == table.interface
        };
        let mut earlier = all_shares.iter().filter(beside);
        let apart = earlier.try_for_each(|(_, earlier)| share.check_beside(earlier));
        apart.map_err(at(text, place))?;
        let before = &rules[..file.rule.len()];
        hidden("share", &share.rule(), &table.interface, before).map_err(at(text, place))?;
        // A rule is the more special one.
        let rule = Rule { number: file.rule.len() + index + 1, ..share.rule() };
        rules.push((table.interface.clone(), rule));
        all_shares.push((table.interface.clone(), share));
    }
    let rule_lines = file.rule.iter().map(|rule| line_of(text, rule.span().start));
    let rule_lines: Vec<usize> = rule_lines.collect();
    for place in file.interface {
        let line = line_of(text, place.span().start);
        let interface = place.into_inner();
        let name = interface.name.clone();
        if all.iter().any(|settings| settings.interface == name) {
            return Err(format!(
                "line {line}: interface `{name}` occurs twice: put its keys into one table"
            ));
        }
        let here = |only: &Option<String>| only.as_ref().is_none_or(|only| *only == name);
        let shares = all_shares.iter().filter(|(only, _)| here(only));
        let shares: Vec<&Share> = shares.map(|(_, share)| share).collect();
        let settings = interface.settings(&shares);
        let mut settings = settings.map_err(|e| named(line, &name, e))?;
        settings.control_dir.clone_from(&control_dir);
        let rules = rules.iter().filter(|(only, _)| here(only));
        settings.rules = rules.map(|(_, rule)| rule.clone()).collect();
        fit(&settings, line, &rule_lines)?;
        all.push(settings);
    }
    for ((only, share), place) in all_shares.iter().zip(&file.share) {
        let here = |one: &&Settings| only.as_ref().is_none_or(|only| *only == one.interface);
        let rate = |one: &Settings, way| Some(one.plain(way)?.rate().unwrap_or(Rate(u64::MAX)));
        let rates = |way| all.iter().filter(here).filter_map(|one| rate(one, way)).collect();
        share.check_lines(rates).map_err(at(text, place))?;
    }
    // One process serves all of them.
    let is_locked = all.iter().any(|settings| settings.tuning.lock_memory);
    all.iter_mut().for_each(|settings| settings.tuning.lock_memory = is_locked);
    if all.is_empty() {
        return Err("there is no [[interface]]: add one with name, download and upload".into());
    }
    Ok(all)
}

/// An error unless there is an interface that is called so, where one is named.
fn known(name: Option<&str>, all: &[Spanned<Interface>]) -> Result<(), String> {
    match name.filter(|name| all.iter().all(|interface| interface.get_ref().name != *name)) {
        Some(name) => {
            Err(format!("`interface = \"{name}\"`: there is no [[interface]] of that name"))
        }
        None => Ok(()),
    }
}

/// An error if one of the rules `before`, each with the only interface that it is about, fits all
/// that this `kind` of rule fits.
fn hidden(
    kind: &str,
    rule: &Rule,
    only: &Option<String>,
    before: &[(Option<String>, Rule)],
) -> Result<(), String> {
    let hides = |(of, earlier): &&(Option<String>, Rule)| {
        (of.is_none() || of == only) && earlier.hides(rule)
    };
    let named =
        |name: &Option<String>| name.as_ref().map_or(String::new(), |n| format!(" (\"{n}\")"));
    before.iter().find(hides).map_or(Ok(()), |(_, earlier)| {
        Err(format!(
            "{kind} {}{}: rule {}{} stands before it and fits all that it fits: {}",
            rule.number,
            named(&rule.name),
            earlier.number,
            named(&earlier.name),
            match kind {
                "rule" => "leave one of them out, or say this one first",
                _ => "leave one of them out",
            }
        ))
    })
}

/// Puts the line of a table, and the interface that it is about, before an error.
fn named(line: usize, interface: &str, error: impl fmt::Display) -> String {
    format!("line {line}: interface `{interface}`: {error}")
}

/// Checks that the interface's backend and disciplines can do what is asked of them. The interface
/// is told of in `line`, rules in `rule_lines`, by number from 1.
fn fit(settings: &Settings, line: usize, rule_lines: &[usize]) -> Result<(), String> {
    if let (Backend::Kernel, Some(error)) = (settings.backend, settings.needs_daemon()) {
        return Err(named(line, &settings.interface, error));
    }
    for direction in Direction::BOTH {
        let Some(config) = settings.direction(direction) else { continue };
        let lanes = settings.tuning.lanes;
        if lanes.are_several() {
            let shared = lanes.shared(config).map_err(|e| format!("{direction}: {e}"));
            shared.map_err(|e| named(line, &settings.interface, e))?;
        }
        for rule in &settings.rules {
            let line = rule_lines.get(rule.number - 1).copied().unwrap_or(line);
            rules::plan(slice::from_ref(rule), direction, config)
                .map_err(|e| named(line, &settings.interface, e))?;
        }
        let in_kernel = settings.backend == Backend::Kernel && !settings.rules.is_empty();
        let need_mark = in_kernel || rules::need_mark(&settings.rules);
        if need_mark && rules::says_fwmark(config) {
            let error = format!(
                "{direction}: `fwmark` in the words of cake and rules with `tier` exclude each \
                 other: leave `fwmark` out"
            );
            return Err(named(line, &settings.interface, error));
        }
    }
    Ok(())
}

impl Interface {
    fn settings(self, shares: &[&Share]) -> Result<Settings, String> {
        check_name(&self.name).map_err(|e| e.to_string())?;
        let mut settings = Settings::new(&self.name);
        settings.backend = self.backend;
        let lanes = Lanes::said(self.lanes, self.lanes_by.as_deref())?;
        let both = self.qdisc.as_deref();
        let mut limits = [None; 2];
        let mut compose = |direction, rate: &Option<String>, words: &Option<String>| {
            // A direction without a rate and without words of its own is left alone.
            if rate.is_none() && words.is_none() {
                return Ok((None, None));
            }
            let words = words.as_deref().or(both).unwrap_or("cake");
            let words = Said { words, unguarded: lanes.are_several(), ..Said::default() };
            let rate = rate.as_deref().map(|rate| autorate::range(direction, rate, self.autorate));
            let (rate, range) = rate.transpose()?.unzip();
            let config = settings_of(direction, rate, words)?;
            let plain = settings_of(direction, rate, Said { unguarded: true, ..words })?;
            let config = match shares {
                [] => config,
                // Words that need a rate stand below no share.
                _ => {
                    let each = settings_of(direction, None, words)?;
                    shares::tree(direction, (&config, &each), shares)?
                }
            };
            if let Some(range) = range.flatten() {
                if matches!(config, Config::Htb(_)) && !shares.is_empty() {
                    return Err(format!(
                        "{direction}: shares are parts of a rate that stays, and `autorate` moves \
                         it: leave one of them out"
                    ));
                }
                autorate::movable(direction, &config)?;
                limits[usize::from(direction == Direction::Download)] = Some(range);
            }
            Ok::<_, String>((Some(config), Some(plain)))
        };
        (settings.download, settings.plain.download) =
            compose(Direction::Download, &self.download, &self.download_qdisc)?;
        (settings.upload, settings.plain.upload) =
            compose(Direction::Upload, &self.upload, &self.upload_qdisc)?;
        if settings.download.is_none() && settings.upload.is_none() {
            return Err("neither `download` nor `upload` is set".into());
        }
        if self.autorate {
            let named: Option<Vec<&str>> =
                self.reflectors.as_ref().map(|all| all.iter().map(String::as_str).collect());
            let [upload, download] = limits;
            settings.autorate = Some(Autorate::new(upload, download, named.as_deref())?);
        } else if self.reflectors.is_some() {
            return Err("`reflectors` without autorate: add `autorate = true`".into());
        }
        if let Some(mask) = self.mark_mask {
            let no_mask = || format!("`mark_mask = {mask}`: expected two bits, such as 0x30000000");
            let mask = u32::try_from(mask).map_err(|_| no_mask())?;
            settings.mark_bits = Some(MarkBits::new(mask).map_err(|e| e.to_string())?);
        }
        let tuning = &mut settings.tuning;
        let priority = REALTIME.check(self.realtime)?;
        tuning.realtime = priority.map_or(tuning.realtime, |p| (p > 0).then_some(p as u8));
        let micros = |value: u32| Span::from_micros(value.into());
        tuning.spin = SPIN.check(self.spin_us)?.map_or(tuning.spin, micros);
        tuning.catch_up = CATCH_UP.check(self.catch_up_us)?.map_or(tuning.catch_up, micros);
        tuning.batch = BATCH.check(self.batch_us)?.map_or(tuning.batch, micros);
        tuning.lanes = lanes;
        tuning.queue_length = QUEUE_LENGTH.check(self.queue_length)?;
        tuning.lock_memory = self.lock_memory.unwrap_or(tuning.lock_memory);
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_that_is_shipped_is_understood() {
        let text = include_str!("../../../dist/simnel.toml");
        let all = parse(text).unwrap();
        assert_eq!(all.len(), 1);
        assert!(all[0].upload.is_some() && all[0].download.is_some());
        assert_eq!(all[0].mark_bits, None);
        assert_eq!(all[0].tuning, crate::Tuning::default());
    }

    #[test]
    fn a_file_has_an_end() {
        assert_eq!(bytes(&b"a"[..]).unwrap(), b"a");
        assert_eq!(bytes(io::repeat(b'#').take(MOST_BYTES)).unwrap().len() as u64, MOST_BYTES);
        for source in ["/dev/zero", "/dev/urandom"] {
            let error = read(Path::new(source)).unwrap_err().to_string();
            assert!(error.contains("more than 4 MiB"), "{error}");
        }
    }

    #[test]
    fn rates_that_follow_the_line_are_ranges() {
        let read = |rest: &str| parse(&format!("[[interface]]\nname = \"wwan0\"\n{rest}"));
        let text = "download = \"10mbit..80mbit\"\nupload = \"9mbit\"\nautorate = true\n";
        let settings = read(text).unwrap().remove(0);
        let autorate = settings.autorate.clone().unwrap();
        assert_eq!(autorate.limits(Direction::Upload), None);
        let limits = autorate.limits(Direction::Download).unwrap();
        assert_eq!((limits.floor.bits(), limits.ceiling.bits()), (10_000_000, 80_000_000));
        assert_eq!(settings.download.unwrap().rate(), Some(limits.ceiling));
        for (rest, expected) in [
            ("upload = \"1mbit..9mbit\"", "add `autorate`, or say one rate"),
            ("upload = \"9mbit\"\nautorate = true", "autorate needs a range"),
            ("upload = \"9mbit\"\nreflectors = [\"1.1.1.1\"]", "add `autorate = true`"),
            ("upload = \"9mbit\"\nlanes = 2\nbackend = \"kernel\"", "lanes of `wwan0` need the"),
            ("upload = \"9mbit\"\nlanes_by = \"cpu\"", "add `lanes`"),
        ] {
            let error = read(rest).unwrap_err();
            assert!(error.contains(expected), "{rest}: {error}");
        }
        for (backend, steered) in [("kernel", true), ("auto", false), ("userspace", false)] {
            let rest =
                format!("upload = \"1mbit..9mbit\"\nautorate = true\nbackend = \"{backend}\"");
            assert_eq!(read(&rest).unwrap()[0].are_steered(), steered, "{backend}");
        }
        assert!(!read("upload = \"9mbit\"\nbackend = \"kernel\"").unwrap()[0].are_steered());
    }

    #[test]
    fn numbers_that_do_not_fit_are_told_with_what_does() {
        for (rest, expected) in [
            ("realtime = -1", "`realtime = -1`: expected 0 to 98, because"),
            ("spin_us = 5000000000", "`spin_us = 5000000000`: expected 0 to 1000"),
            ("lanes = -1", "-1 lanes: expected 1 to 4"),
            ("mark_mask = -1", "`mark_mask = -1`: expected two bits"),
            ("realtime = \"high\"", "expected a whole number"),
        ] {
            let text = format!("[[interface]]\nname = \"wan\"\nupload = \"9mbit\"\n{rest}\n");
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_rule_that_an_earlier_one_hides_is_an_error() {
        let read = |rest: &str| {
            let wan =
                |name: &str| format!("[[interface]]\nname = \"{name}\"\nupload = \"9mbit\"\n");
            parse(&format!("{}{}{rest}", wan("wan"), wan("lte")))
        };
        let rule = |port, rest: &str| format!("[[rule]]\nport = {port}\ntier = \"bulk\"\n{rest}\n");
        let (named, lte) = ("name = \"a\"", "interface = \"lte\"");
        let error = read(&format!("{}{}", rule(80, named), rule(80, "name = \"b\""))).unwrap_err();
        assert!(error.starts_with("line 11: rule 2 (\"b\"): rule 1 (\"a\") stands"), "{error}");
        for other in [rule(81, ""), rule(80, lte)] {
            assert!(read(&format!("{other}{}", rule(80, ""))).is_ok(), "{other}");
        }
        assert!(read(&format!("{}{}", rule(80, ""), rule(80, lte))).is_err());
        let host = "address = \"10.0.0.1\"\n";
        let share = |limit| format!("[[share]]\n{host}{limit} = \"1mbit\"\n");
        let rule = format!("[[rule]]\n{host}tier = \"bulk\"\n");
        let error = read(&format!("{rule}{}", share("upload"))).unwrap_err();
        assert!(error.contains("share 1: rule 1 stands before it"), "{error}");
        let wide = "[[share]]\naddress = \"10.0.0.0/8\"\nupload = \"2mbit\"\n";
        let error = read(&format!("{wide}{}", share("upload"))).unwrap_err();
        assert!(error.contains("share 2: share 1 has these hosts already"), "{error}");
        assert!(read(&format!("{}{wide}", share("upload"))).is_ok());
    }

    #[test]
    fn memory_is_locked_of_all_or_none() {
        let text = "[[interface]]\nname = \"a\"\nupload = \"9mbit\"\n\
                    [[interface]]\nname = \"b\"\nupload = \"9mbit\"\n";
        let locked = |text: &str| {
            let all = parse(text).unwrap();
            all.iter().map(|settings| settings.tuning.lock_memory).collect::<Vec<_>>()
        };
        assert_eq!(locked(text), [false, false]);
        assert_eq!(locked(&format!("{text}lock_memory = true\n")), [true, true]);
    }

    #[test]
    fn shares_exclude_what_cannot_have_them() {
        let share = "[[share]]\naddress = \"10.0.0.0/8\"\nupload = \"1mbit\"\n";
        let moves = "upload = \"2mbit..9mbit\"\nautorate = true";
        let error = parse(&format!("[[interface]]\nname = \"eth0\"\n{moves}\n{share}"));
        assert!(
            error.as_ref().unwrap_err().contains("`autorate` moves it: leave one"),
            "{error:?}"
        );
        let other = "[[interface]]\nname = \"eth0\"\ndownload = \"2mbit..9mbit\"\n\
                     upload = \"9mbit\"\nautorate = true\n";
        assert!(parse(&format!("{other}{share}")).is_ok(), "that direction has no share");
    }

    #[test]
    fn the_kernels_disciplines_have_rules_with_tiers() {
        let read = |rule: &str| {
            let eth0 = "[[interface]]\nname = \"eth0\"\nbackend = \"kernel\"\nupload = \"9mbit\"\n";
            parse(&format!("{eth0}[[rule]]\nport = 5000\n{rule}\n"))
        };
        assert_eq!(read("tier = \"voice\"").unwrap()[0].rules.len(), 1);
        let shares = |count: usize, download: &str| {
            let share = |n| format!("[[share]]\naddress = \"10.0.0.{n}\"\nupload = \"1mbit\"\n");
            let shares: String = (0..count).map(share).collect();
            let eth0 =
                "[[interface]]\nname = \"eth0\"\nbackend = \"kernel\"\nupload = \"90mbit\"\n";
            parse(&format!("{eth0}{download}{shares}"))
        };
        let both = "download = \"90mbit\"\n";
        assert!(shares(8, "").is_ok() && shares(7, both).is_ok());
        let error = shares(8, both).unwrap_err();
        assert!(error.contains("the share :18 for `eth0`: marks have room for seven"), "{error}");
        for (rule, expected) in [
            ("pass = true", "rule 1, `pass` for `eth0`: every packet of an interface passes"),
            ("class = \"1:10\"", "the discipline cake has no classes"),
            ("tier = \"video\"", "`cake diffserv3` has"),
        ] {
            let error = read(rule).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_fault_is_shown_with_its_line_unless_that_is_none() {
        let said = parse("control_dir = \"/run\"\n[[interface]\n").unwrap_err();
        assert!(said.contains("2 | [[interface]"), "{said}");
        let said = parse("[interface]\nname = \"eth0\"\n").unwrap_err();
        assert!(said.ends_with("say `[[interface]]`"), "{said}");
        let zeros = "\0".repeat(1 << 20);
        let long = format!("[[interface]]\n\nname = {}", "x".repeat(1 << 20));
        for (text, line) in [(zeros.as_str(), "line 1: "), (long.as_str(), "line 3: ")] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(line) && said.contains("bytes)"), "{said}");
            assert!(said.len() < 300 && !said.contains('\0'), "{said}");
        }
    }

    #[test]
    fn rules_and_shares_of_one_interface_are_no_others() {
        let one = |name: &str| format!("[[interface]]\nname = \"{name}\"\nupload = \"9mbit\"\n");
        let text = format!(
            "{}{}[[rule]]\ninterface = \"lte\"\nport = 53\npass = true\n\
             [[rule]]\nport = 80\npass = true\n\
             [[share]]\ninterface = \"eth0\"\naddress = \"10.0.0.0/8\"\nupload = \"1mbit\"\n",
            one("eth0"),
            one("lte")
        );
        let all = parse(&text).unwrap();
        let rules = |at: usize| all[at].rules.iter().map(|rule| rule.number).collect::<Vec<_>>();
        assert_eq!((rules(0), rules(1)), (vec![2, 3], vec![1, 2]));
        let is_shared = |at: usize| crate::tree::is_tree(all[at].upload.as_ref().unwrap());
        assert_eq!((is_shared(0), is_shared(1)), (true, false));
    }

    #[test]
    fn a_share_without_effect_is_a_mistake() {
        let both = "[[interface]]\nname = \"eth0\"\nupload = \"9mbit\"\n\
                    [[interface]]\nname = \"lte\"\nupload = \"9mbit\"\ndownload = \"9mbit\"\n";
        let share = "[[share]]\naddress = \"10.0.0.0/8\"\n";
        let of = |keys: &str| parse(&format!("{both}{share}upload = \"1mbit\"\n{keys}"));
        let twin = |keys: &str| of(&format!("interface = \"lte\"\n{share}{keys}"));
        assert!(of("download = \"1mbit\"").is_ok(), "`lte` has it");
        let error = of("download = \"1mbit\"\ninterface = \"eth0\"").unwrap_err();
        assert!(error.contains("share 1: `download` has no effect"), "{error}");
        for (upload, expected) in [("9mbit", Ok(())), ("1mbit..9500kbit", Err("9500kbit"))] {
            let text = format!("{both}{share}upload = \"{upload}\"\n");
            let done = parse(&text.replacen("9mbit", "5mbit", 1)).map(drop);
            let error = expected.map_err(|cap| {
                format!(
                    "line 8: share 1: `upload`: a cap of {cap} is above the line's 9mbit, and \
                     limits nothing: say 9mbit at most"
                )
            });
            assert_eq!(done, error, "one of the lines is as fast as the cap, or none");
        }
        for keys in ["upload = \"2mbit\"", "upload = \"2mbit\"\ninterface = \"lte\""] {
            let error = twin(keys).unwrap_err();
            assert!(error.contains("share 2: share 1 has these hosts already"), "{error}");
        }
        for keys in ["download = \"2mbit\"", "upload = \"2mbit\"\ninterface = \"eth0\""] {
            assert_eq!(twin(keys).map(drop), Ok(()), "{keys}");
        }
        // An evening's limits stand before those of the whole day.
        let evening = "hours = \"17:00-22:00\"\n";
        assert!(of(&format!("{evening}{share}upload = \"2mbit\"")).is_ok());
        let error = of(&format!("{share}upload = \"2mbit\"\n{evening}")).unwrap_err();
        assert!(error.contains("or say this one first"), "{error}");
    }

    #[test]
    fn the_backend_is_userspace_unless_it_is_set() {
        let read = |rest: &str| {
            let text = format!("[[interface]]\nname = \"eth0\"\nupload = \"9mbit\"\n{rest}");
            parse(&text).map(|all| all[0].backend)
        };
        assert_eq!(read(""), Ok(Backend::Userspace));
        assert_eq!(read("backend = \"kernel\""), Ok(Backend::Kernel));
        assert_eq!(read("backend = \"auto\""), Ok(Backend::Auto));
        let error = read("backend = \"kernle\"").unwrap_err();
        assert!(error.contains("kernle") && error.contains("`userspace`"), "{error}");
    }

    #[test]
    fn the_queue_fits_the_rate_unless_it_is_set() {
        let length = |upload: &str, rest: &str| {
            let text = format!("[[interface]]\nname = \"eth0\"\nupload = \"{upload}\"\n{rest}");
            let settings = parse(&text).unwrap().remove(0);
            settings.tuning.queue_length(settings.upload.as_ref().unwrap())
        };
        // A fifth of a second of frames of 64 bytes, above what disciplines queue.
        assert_eq!(length("10mbit", ""), 10_240 + 3_906);
        assert_eq!(length("10mbit", "qdisc = \"fq_codel\""), 10_240 + 3_906);
        assert_eq!(length("1gbit", ""), 32_768);
        assert_eq!(length("unlimited", ""), 32_768);
        assert_eq!(length("10mbit", "queue_length = 300"), 300);
    }

    #[test]
    fn the_example_of_the_manual_is_understood() {
        let manual = include_str!("../../../docs/OPERATING.md");
        let section = manual.split("## Configuration file").nth(1).unwrap();
        let example = section.split("```").nth(1).and_then(|text| text.strip_prefix("toml"));
        let all = parse(example.unwrap()).unwrap();
        let words = |config: &Option<Config>| config.as_ref().map(Config::to_string);
        assert_eq!(all.len(), 2);
        assert!(words(&all[0].download).unwrap().contains(" ingress"));
        assert!(words(&all[1].upload).unwrap().contains("besteffort"));
        assert_eq!(all[1].download, None);
    }

    #[test]
    fn errors_name_the_key_the_line_or_the_interface() {
        let error = |text: &str| parse(text).unwrap_err();
        let unknown = error("[[interface]]\nname = \"eth0\"\nuplaod = \"1mbit\"\n");
        assert!(unknown.contains("line 3") && unknown.contains("`uplaod`"), "{unknown}");
        let typed = error("[[interface]]\nname = \"eth0\"\nupload = 10\n");
        assert!(typed.contains("line 3"), "{typed}");
        for (rest, expected) in [
            ("", "neither `download` nor `upload`"),
            ("upload = \"1mbit\"\nqdisc = \"cake nonsense\"", "upload: `nonsense`"),
            ("upload = \"1mbit\"\nqdisc = \"pfifo limt 9\"", "upload: `limt`"),
            ("upload = \"1mbit\"\nmark_mask = 7", "mark mask 0x7"),
            (
                "upload = \"1mbit\"\nrealtime = 99",
                "`realtime = 99`: expected 0 to 98, because 99 is",
            ),
            ("upload = \"1mbit\"\nbatch_us = 60000000", "expected 0 to 10000, because every"),
            ("upload = \"1mbit\"\nqueue_length = 0", "`queue_length = 0`: expected 256 to"),
            ("upload = \"1mbit\"\nspin_us = 1001", "expected 0 to 1000, because a core"),
            ("upload = \"1mbit\"\ncatch_up_us = 60000", "expected 0 to 50000, because a burst"),
        ] {
            let message = error(&format!("[[interface]]\nname = \"eth0\"\n{rest}"));
            assert!(
                message.contains("interface `eth0`") && message.contains(expected),
                "{message}"
            );
        }
        assert!(error("").contains("no [[interface]]"));
        for directory in ["", "run/simnel"] {
            let message = error(&format!("control_dir = \"{directory}\"\n"));
            assert!(message.contains(&format!("`control_dir = \"{directory}\"`")), "{message}");
        }
        let twice = "[[interface]]\nname = \"a\"\nupload = \"1mbit\"\n".repeat(2);
        assert!(error(&twice).starts_with("line 4: interface `a` occurs twice"));
    }

    #[test]
    fn what_is_wrong_in_a_table_is_said_with_its_line() {
        let upload = "[[interface]]\nname = \"eth0\"\nupload = \"9mbit\"\n";
        for (after, expected) in [
            ("[[interface]]\nname = \"lte\"\n", "line 4: interface `lte`: neither `download`"),
            ("mark_mask = 7\n", "line 1: interface `eth0`: mark mask 0x7"),
            ("lanes = 2\nbackend = \"kernel\"\n", "line 1: interface `eth0`: lanes of"),
            (
                "lanes = 2\nqdisc = \"fq_codel\"\n",
                "line 1: interface `eth0`: upload: only cake shares a rate over several lanes",
            ),
            (
                "lanes = 2\nqdisc = \"cake savings 15kb\"\n",
                "line 1: interface `eth0`: upload: `savings` does not fit",
            ),
            (
                "lanes = 2\n[[share]]\naddress = \"10.0.0.1\"\nupload = \"1mbit\"\n",
                "line 1: interface `eth0`: upload: only cake shares a rate over several lanes, \
                 and without shares: leave `lanes` out",
            ),
            ("\n[[rule]]\ntier = \"lowest\"\n", "line 5: rule 1: "),
            (
                "[[rule]]\npass = true\ndscp = [8]\n\n[[rule]]\ndscp = [9]\ntier = \"video\"\n",
                "line 8: interface `eth0`: rule 2: `tier = \"video\"`: `cake diffserv3` has",
            ),
            ("[[rule]]\ninterface = \"lte\"\n", "line 4: rule 1: `interface = \"lte\"`"),
            ("[[share]]\nname = \"all\"\n", "line 4: share 1: no host is named"),
            ("[[share]]\ninterface = \"lte\"\n", "line 4: share 1: `interface = \"lte\"`"),
            (
                "[[share]]\naddress = \"10.0.0.1\"\ndownload = \"1mbit\"\n",
                "line 4: share 1: `download` has no effect",
            ),
        ] {
            let message = parse(&format!("{upload}{after}")).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn a_file_has_as_many_rules_shares_and_groups_as_there_is_room_for_and_no_more() {
        let eth0 = "[[interface]]\nname = \"eth0\"\nupload = \"90mbit\"\n";
        let rules = |count: usize| -> String {
            (1..=count).map(|n| format!("[[rule]]\nport = {n}\npass = true\n")).collect()
        };
        let groups = |count: usize| -> String {
            (0..count).map(|n| format!("[[rule]]\ncgroup = \"a/{n}\"\npass = true\n")).collect()
        };
        let shares = |count: usize| -> String {
            let share = |n| format!("[[share]]\naddress = \"10.0.0.{n}\"\nupload = \"1mbit\"\n");
            (0..count).map(share).collect()
        };
        let numbers = |text: String| {
            let all = parse(&format!("{eth0}{text}"))?;
            Ok::<_, String>(all[0].rules.iter().map(|rule| rule.number).collect::<Vec<_>>())
        };
        let upto = |count: usize| Ok((1..=count).collect::<Vec<_>>());
        assert_eq!(numbers(rules(MOST_RULES)), upto(MOST_RULES));
        assert!(numbers(rules(MOST_RULES + 1)).unwrap_err().contains("65 rules, of at most 64"));
        assert_eq!(numbers(groups(MOST_CGROUPS)), upto(MOST_CGROUPS));
        assert!(numbers(groups(MOST_CGROUPS + 1)).unwrap_err().contains("16 control groups"));
        // Rules count on where shares begin.
        assert_eq!(numbers(rules(2) + &shares(MOST_SHARES)), upto(2 + MOST_SHARES));
        assert!(numbers(shares(MOST_SHARES + 1)).unwrap_err().contains("17 shares"));
    }

    #[test]
    fn a_file_is_read_with_its_path_in_what_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("simnel.toml");
        fs::write(&path, "[[interface]]\nname = \"eth0\"\nupload = \"9mbit\"\nrealtime = 0\n")
            .unwrap();
        let all = read(&path).unwrap();
        assert_eq!((all[0].interface.as_str(), all[0].tuning.realtime), ("eth0", None));
        fs::write(&path, "[[interface]]\nname = \"eth0\"\nupload = \"9mbit\"\nrealtime = 1\n")
            .unwrap();
        assert_eq!(read(&path).unwrap()[0].tuning.realtime, Some(1));
        fs::write(&path, "nonsense").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("simnel.toml") && error.contains("line 1"), "{error}");
    }
}

//! `simnel up`: take an interface over, in the foreground, until `simnel down` or a signal.

use std::io::Write;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use miette::{miette, IntoDiagnostic};
use simnel_core::qdisc::{self, Config};
use simnel_core::tc::{nearest, units, Digits};
use simnel_core::Span;
use simnel_gateway::autorate::{movable, range, Autorate};
use simnel_gateway::daemon::{Daemon, Interface};
use simnel_gateway::kernel::{self, Maker};
use simnel_gateway::trial::Back;
use simnel_gateway::words::{below, misgiving, names_discipline, settings_of, Said};
use simnel_gateway::{
    check_name, join, lost_address, Backend, Direction, Error, Joined, Lanes, Settings, User,
    ACCOUNT,
};

use super::way_out::{exists, leads_out};
use super::{
    auto, duration, interface_name, misuse, misuse_with_help, none_empty, places, places_inside,
    trial_time, Control, Owner,
};

/// Shape an interface's traffic, in both directions, until `simnel down` or a signal.
#[derive(clap::Args)]
#[command(after_help = help())]
pub struct Args {
    /// The interface, then `download RATE`, `upload RATE` or both, then the discipline's words.
    #[arg(
        required = true,
        value_name = "IFACE [download RATE] [upload RATE] [autorate] [lanes N] [QDISC WORDS]",
        allow_negative_numbers = true
    )]
    words: Vec<String>,
    /// Take the interface although the default route does not lead by it, or a bridge cuts its
    /// address off.
    #[arg(long)]
    anyway: bool,
    /// Join IFACE and LAN by a bridge first: for a box between router and modem. It stays.
    #[arg(long, value_name = "LAN", value_parser = interface_name)]
    bridge: Option<String>,
    /// Place of the shaper: a process here, or the kernel; `auto` is the best that is there.
    #[arg(long, value_parser = backends(), default_value = "userspace")]
    backend: Backend,
    /// On trial: give the interface back after this time unless `simnel keep` is said.
    #[arg(long = "for", value_name = "TIME", value_parser = trial_time)]
    trial: Option<Span>,
    #[command(flatten)]
    owner: Owner,
    #[command(flatten)]
    control: Control,
    #[command(flatten, next_help_heading = "Options of `simnel up auto`")]
    auto: auto::Plan,
}

/// A reader of the backend's name, for clap.
fn backends() -> impl TypedValueParser<Value = Backend> {
    PossibleValuesParser::new(["userspace", "kernel", "auto"]).map(|name| match name.as_str() {
        "kernel" => Backend::Kernel,
        "auto" => Backend::Auto,
        _ => Backend::Userspace,
    })
}

const EXAMPLES: &str = "Examples:\n  \
    simnel up eth0 download 50mbit upload 10mbit\n  \
    simnel up eth0 download 50mbit upload 10mbit cake diffserv4 docsis ack-filter nat\n  \
    simnel up eth0 download 50mbit upload 10mbit fq_codel\n  \
    simnel up eth0 download 50mbit upload 10mbit --for 10m\n  \
    simnel up eth0 htb rate 10mbit burst 15k fq_codel\n  \
    simnel up wwan0 download 10mbit..80mbit upload 2mbit..20mbit autorate\n  \
    simnel up eth0 upload 2gbit lanes 2\n  \
    simnel up auto --server 192.0.2.1          # measures, proposes, tries, writes the file\n  \
    simnel up eth0 download 500mbit upload 50mbit --backend kernel\n\n\
IFACE is the interface towards the Internet. Give a little less than the line's real\n\
rates, so that the queue stands here and not in the modem. What does not shape is put\n\
below htb. Without rates a discipline that is named serves both directions. With\n\
`autorate` rates are ranges, and follow the line by what echoes of public resolvers, or\n\
of `reflectors ADDRESS,irtt:ADDRESS` (or `none`), passing TCP and the queues tell\n\
(docs/OPERATING.md). With `lanes N` so many threads, on as many cores, share each\n\
direction's rate; packets are spread by their addresses, or `lanes-by cpu` by the core\n\
that the card interrupts. Needs root or CAP_NET_ADMIN. When the process ends, however it\n\
ends, the kernel removes its rules and traffic passes as before. With `--backend\n\
kernel` no process runs: the kernel shapes until `simnel down` (docs/KERNEL.md); with\n\
`autorate` one stays that only sets the rates.";

/// The examples, and the names of all disciplines.
fn help() -> String {
    let mut help = format!("{EXAMPLES}\n\nDisciplines:\n");
    for known in qdisc::disciplines() {
        help.push_str(&format!("  {:<16} {}\n", known.name, known.about));
    }
    help
}

/// Settings that the words ask for.
struct Request {
    interface: String,
    download: Option<String>,
    upload: Option<String>,
    autorate: bool,
    /// Addresses that were named for it.
    reflectors: Option<String>,
    lanes: Lanes,
    discipline: String,
    /// Places of these words on the command line.
    places: Vec<usize>,
}

impl Request {
    /// The discipline's words; `unguarded`: nobody guards hosts unless they ask for it.
    fn said(&self, unguarded: bool) -> Said<'_> {
        Said { words: &self.discipline, places: &self.places, unguarded }
    }
}

/// The request of `all` words, which have these `places` on the command line.
fn understand(all: &[String], places: &[usize]) -> miette::Result<Request> {
    none_empty(all, places)?;
    let mut words = all.iter().peekable();
    let interface = words.next().cloned().unwrap_or_default();
    check_name(&interface).map_err(misuse)?;
    let (mut download, mut upload, mut reflectors) = (None, None, None);
    let (mut lanes, mut lanes_by) = (None, None);
    let mut autorate = false;
    loop {
        let place = match words.peek().map(|word| word.as_str()) {
            Some("download") => &mut download,
            Some("upload") => &mut upload,
            Some("reflectors") => &mut reflectors,
            Some("lanes") => &mut lanes,
            Some("lanes-by") => &mut lanes_by,
            Some("autorate") => {
                autorate = true;
                words.next();
                continue;
            }
            _ => break,
        };
        let key = words.next().cloned().unwrap_or_default();
        let value = words.next().cloned().ok_or_else(|| {
            let (what, example) = match key.as_str() {
                "reflectors" => ("addresses, or `none`", "192.0.2.1,irtt:192.0.2.2"),
                "lanes" => ("a number", "2"),
                "lanes-by" => ("`address` or `cpu`", "cpu"),
                _ => ("a rate", "50mbit"),
            };
            misuse_with_help(
                format!("`{key}` needs {what}"),
                format!("for example: {key} {example}"),
            )
        })?;
        if let Some(first) = place.replace(value.clone()) {
            let help = format!("leave out `{key} {first}` or `{key} {value}`");
            return Err(misuse_with_help(format!("`{key}` is said twice"), help));
        }
    }
    let number = |word: String| {
        let what =
            || misuse_with_help(format!("`lanes {word}` is no number"), "for example: lanes 2");
        word.parse().map_err(|_| what())
    };
    let lanes = Lanes::said(lanes.map(number).transpose()?, lanes_by.as_deref()).map_err(misuse)?;
    let places = &places[all.len() - words.len()..];
    let discipline: Vec<&str> = words.map(String::as_str).collect();
    check_order(&interface, &discipline, places)?;
    let places = places_inside(&discipline, places);
    let discipline = discipline.join(" ");
    // Words of cake without a rate are a rate forgotten; a discipline's name is meant.
    if download.is_none() && upload.is_none() && !names_discipline(&discipline) {
        let said = Said { words: &discipline, places: &places, unguarded: lanes.are_several() };
        let unknown = settings_of(Direction::Upload, None, said).err();
        if let Some(error) = unknown.filter(|_| !discipline.is_empty()) {
            return Err(misuse(error));
        }
        return Err(misuse_with_help(
            format!("neither `download RATE` nor `upload RATE` follows `{interface}`"),
            format!("for example: simnel up {interface} download 50mbit upload 10mbit"),
        ));
    }
    if reflectors.is_some() && !autorate {
        return Err(misuse_with_help("`reflectors` without `autorate`", "add `autorate`"));
    }
    Ok(Request { interface, download, upload, autorate, reflectors, lanes, discipline, places })
}

/// Words of this command, which come before those of the discipline.
const OWN: [&str; 6] = ["download", "upload", "autorate", "reflectors", "lanes", "lanes-by"];

/// An error if a word of this command, or a rate, stands where the `discipline` begins or behind
/// it; the discipline's words have these `places`.
fn check_order(interface: &str, discipline: &[&str], places: &[usize]) -> miette::Result<()> {
    if let Some(late) = discipline.iter().find(|word| OWN.contains(word)) {
        let said = match *late {
            "download" | "upload" => format!("{late} 10mbit"),
            "reflectors" => "upload 2mbit..20mbit autorate reflectors none".to_owned(),
            "autorate" => "download 10mbit..80mbit autorate".to_owned(),
            "lanes" => "upload 2gbit lanes 2".to_owned(),
            _ => "upload 2gbit lanes 2 lanes-by cpu".to_owned(),
        };
        let what = format!("`{late}` comes before the words of the discipline");
        return Err(misuse_with_help(
            what,
            format!("for example: simnel up {interface} {said} cake"),
        ));
    }
    let Some((first, place)) = discipline.iter().zip(places).next() else { return Ok(()) };
    if names_discipline(first) || qdisc::keywords("cake").any(|known| known.word == *first) {
        return Ok(());
    }
    let place = format!("`{first}` (word {})", place + 1);
    if let Some(meant) = nearest(first, OWN.into_iter()) {
        return Err(misuse(format!("{place} is not known; did you mean `{meant}`?")));
    }
    if first.ends_with("bit") && units::rate(first).is_ok() {
        let help = format!("say `download {first}` or `upload {first}`");
        return Err(misuse_with_help(format!("{place} is a rate of no direction"), help));
    }
    Ok(())
}

/// Runs the gateway.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.words == ["auto"] {
        return auto::up(&args.auto, &args.control.directory, out);
    }
    if args.words[0] == "auto" && !exists("auto") {
        let help = "simnel up auto --server HOST, or name the interface in place of `auto`";
        return Err(misuse_with_help("`auto` measures the rates itself: no words follow it", help));
    }
    if args.auto.server.is_some() {
        let help = "simnel up auto --server HOST";
        return Err(misuse_with_help("only `simnel up auto` measures with a server", help));
    }
    let request = understand(&args.words, &places(&args.words))?;
    let mut settings = Settings::new(request.interface.as_str());
    settings.control_dir.clone_from(&args.control.directory);
    settings.tuning.lanes = request.lanes;
    let both = request.download.is_none() && request.upload.is_none();
    let mut limits = [None; 2];
    let mut config = |direction, rate: &Option<String>| {
        let wanted = both || rate.is_some();
        let said = request.said(request.lanes.are_several());
        let plain = request.said(true);
        let settings = || {
            let rate = rate.as_deref().map(|rate| range(direction, rate, request.autorate));
            let (rate, range) = rate.transpose()?.unzip();
            let config = settings_of(direction, rate, said)?;
            let plain = settings_of(direction, rate, plain)?;
            if let Some(range) = range.flatten() {
                movable(direction, &config)?;
                limits[usize::from(direction == Direction::Download)] = Some(range);
            }
            Ok((config, plain))
        };
        let both = wanted.then(settings).transpose().map_err(|error: String| misuse(error))?;
        Ok::<_, miette::Report>(both.unzip())
    };
    (settings.download, settings.plain.download) = config(Direction::Download, &request.download)?;
    (settings.upload, settings.plain.upload) = config(Direction::Upload, &request.upload)?;
    if request.autorate {
        let [upload, download] = limits;
        let named: Option<Vec<&str>> = request.reflectors.as_deref().map(|all| match all {
            NOBODY => Vec::new(),
            all => all.split(',').collect(),
        });
        let autorate = Autorate::new(upload, download, named.as_deref()).map_err(misuse)?;
        settings.autorate = Some(autorate);
    }
    match &args.bridge {
        _ if args.anyway => {}
        None => leads_out("up", &request.interface)?,
        Some(lan) => stays_reached(lan, &request.interface)?,
    }
    let bridge = || {
        let lan = args.bridge.as_deref();
        lan.map(|lan| join(lan, &request.interface)).transpose().into_diagnostic()
    };
    let mut preface = String::new();
    settings.backend = args.backend;
    if settings.are_steered() {
        if let Some(why) = settings.needs_daemon() {
            return Err(misuse(why));
        }
    } else if args.backend != Backend::Userspace {
        if args.owner.user.is_some() && args.backend == Backend::Kernel {
            return Err(misuse("`--user` is of a process, and with `--backend kernel` none stays"));
        }
        let joined = match settings.needs_daemon() {
            Some(why) if args.backend == Backend::Kernel => return Err(misuse(why)),
            Some(_) => None,
            None => bridge()?,
        };
        let choice = kernel::choose(&settings, kernel::up).into_diagnostic()?;
        if let Some(maker) = choice.maker {
            let why = without_daemon(choice.why, args.owner.user);
            in_kernel(&settings, maker, &why, args.trial).into_diagnostic()?;
            joined.into_iter().for_each(Joined::keep);
            return Ok(ExitCode::SUCCESS);
        }
        settings.backend = Backend::Userspace;
        preface = format!("  backend   userspace: {}\n", choice.why);
    }
    if let Some(autorate) = &settings.autorate {
        preface += &follows(autorate, &request);
    }
    let served = Interface { is_joined: args.bridge.is_some(), ..Interface::of(&settings) };
    let user = args.owner.or_default(&settings.control_dir);
    if args.owner.user.is_none() && user.is_some() {
        preface += &format!("  user      {ACCOUNT}, since there is this account\n");
    }
    let say = |notice| crate::say!("simnel: {notice}");
    let mut daemon = Daemon::serving(&[served], user, say).into_diagnostic()?;
    let interface = settings.interface.clone();
    // A daemon that follows another one finds the bridge there, and leaves it.
    let joined = bridge()?;
    daemon.up(settings).into_diagnostic()?;
    joined.into_iter().for_each(Joined::keep);
    if let Some(settings) = daemon.settings(&interface) {
        let account = account(&interface, |direction| {
            let config = settings.direction(direction)?;
            let follows = settings.autorate.as_ref();
            follows.and_then(|all| all.beginning(direction, config)).or(Some(config.clone()))
        });
        crate::say!("{preface}{account}");
    }
    let trial = args.trial.map(|span| daemon.on_trial(&interface, span)).transpose();
    tell_trial(trial.into_diagnostic()?.flatten(), &interface);
    daemon.run(None).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

/// Says when a trial ends.
fn tell_trial(trial: Option<Span>, interface: &str) {
    if let Some(span) = trial {
        let left = duration(span);
        crate::say!("  on trial: ends in {left} unless `simnel keep {interface}` is said");
    }
}

/// The reason `why` the kernel shapes, and what that means for the `user` that was named.
fn without_daemon(why: String, user: Option<User>) -> String {
    match user {
        Some(_) => why + "; `--user` changes nothing, since no daemon stays",
        None => why,
    }
}

/// Says how the kernel shapes, by whose discipline and `why`, and lets a trial begin.
fn in_kernel(
    settings: &Settings,
    maker: Maker,
    why: &str,
    trial: Option<Span>,
) -> Result<(), Error> {
    if let Some(span) = trial {
        kernel::begin(&settings.control_dir, &settings.interface, Back::Down, span).inspect_err(
            |_| {
                let _ = kernel::down(&settings.interface);
            },
        )?;
    }
    crate::say!("simnel: {} is shaped by the kernel: {why}", settings.interface);
    let told = |direction| kernel::told(settings, maker, direction).cloned();
    crate::say!("{}", account(&settings.interface, told));
    tell_trial(trial, &settings.interface);
    for direction in [Direction::Download, Direction::Upload] {
        let config = settings.direction(direction);
        if let Some(warning) =
            config.and_then(|config| misgiving(&settings.interface, direction, config))
        {
            crate::say!("simnel: warning: {warning}");
        }
    }
    Ok(())
}

/// An error if one of two interfaces that are to be joined has an address.
fn stays_reached(lan: &str, wan: &str) -> miette::Result<()> {
    match lost_address(lan, wan).into_diagnostic()? {
        None => Ok(()),
        Some((name, address)) => Err(miette!(
            help =
                "take it away, and give it to `simnel-br` afterwards; or --anyway, if it may be \
                    lost",
            "`{name}` is reached by {address}, and no longer once it is a port of a bridge"
        )),
    }
}

/// In place of reflectors: passing TCP alone tells.
const NOBODY: &str = "none";

/// Account of what makes rates follow the line.
fn follows(autorate: &Autorate, request: &Request) -> String {
    let both = [("download", &request.download), ("upload", &request.upload)];
    let ranges = both.into_iter().filter_map(|(direction, said)| {
        let said = said.as_ref().filter(|said| said.contains(".."))?;
        Some(format!("{direction} {said}"))
    });
    let ranges: Vec<String> = ranges.collect();
    let all = autorate.reflectors.len();
    let means = match autorate.reflectors.first() {
        Some(first) => format!(
            "by echoes of {} of {all} reflectors from {first} on, {} a second",
            all.min(4),
            all.min(4) * 5
        ),
        None => "by the timestamps of passing TCP; nobody is asked".into(),
    };
    format!("  autorate  {}, {means}\n", ranges.join(", "))
}

/// Account of what `up` has done, how to look at it and how to end it.
fn account(name: &str, config: impl Fn(Direction) -> Option<Config>) -> String {
    let mut lines = String::new();
    for direction in [Direction::Download, Direction::Upload] {
        let words = config(direction).map_or("passes as it is".into(), |config| told(&config));
        lines += &format!("  {:<9} {}\n", direction.name(), words.trim_end());
    }
    lines + &format!("  `simnel show -s {name}` shows how it goes, `simnel down {name}` ends it")
}

/// Settings as `tc` shows them; a shaper in front of another discipline by its rate and that one.
fn told(config: &Config) -> String {
    let mut words = format!("{} ", config.name());
    // Writing to memory does not fail.
    let _ = match below(config).zip(config.rate()) {
        Some((child, rate)) => {
            words += "rate ";
            let _ = units::write_rate(rate, Digits::AsTc, &mut words);
            words += &format!(" {} ", child.name());
            child.write_words(Digits::AsTc, &mut words)
        }
        None if config.shows_classes_apart() => return config.to_string(),
        None => config.write_words(Digits::AsTc, &mut words),
    };
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &str) -> miette::Result<Request> {
        let words: Vec<String> = words.split_whitespace().map(String::from).collect();
        understand(&words, &(1..=words.len()).collect::<Vec<_>>())
    }

    #[test]
    fn an_account_has_the_digits_of_tc() {
        let config = qdisc::parse("cake bandwidth 28284264bit").unwrap();
        let upload = |direction| (direction == Direction::Upload).then(|| config.clone());
        let told = account("wan", upload);
        assert!(
            told.starts_with("  download  passes as it is\n  upload    cake bandwidth 28284Kbit ")
        );
        assert!(!told.contains(" \n"), "{told:?}");
        let below = qdisc::parse("htb rate 2mbit burst 15k fq_codel limit 9").unwrap();
        let told = account("wan", |_| Some(below.clone()));
        assert!(told.contains("upload    htb rate 2Mbit fq_codel limit 9p flows 1024 "), "{told}");
        let tree = "htb default 2 class :1 rate 9mbit class :2 parent :1 rate 1mbit sfq";
        let tree = qdisc::parse(tree).unwrap();
        let told = account("wan", |_| Some(tree.clone()));
        assert!(told.contains(" class :2 parent :1 rate 1Mbit"), "{told}");
        for (words, expected) in [
            ("htb rate 10mbit burst 15k", "upload    htb default 0x1 r2q 10 rate 10Mbit ceil "),
            ("htb default 2 class :1 rate 9mbit class :2 rate 1mbit", " class :2 rate 1Mbit"),
            ("drr class 1:1 weight 3 class 1:2", "upload    drr class 1:1 weight 3 class 1:2\n"),
            ("htb r2q 9", "upload    htb r2q 9 default 0 "),
        ] {
            let config = qdisc::parse(words).unwrap();
            let told = account("wan", |_| Some(config.clone()));
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn a_user_of_no_daemon_is_told_of() {
        let why = |user: Option<&str>| {
            let user = user.map(|name| User::named(name).unwrap());
            without_daemon("the module `simnel`".into(), user)
        };
        assert_eq!(why(None), "the module `simnel`");
        assert!(
            why(Some("0")).ends_with("`simnel`; `--user` changes nothing, since no daemon stays")
        );
    }

    #[test]
    fn rates_come_before_the_discipline() {
        let request = request("eth0 upload 10mbit download 50mbit cake nat").unwrap();
        assert_eq!(request.interface, "eth0");
        assert_eq!(request.download.as_deref(), Some("50mbit"));
        assert_eq!(request.upload.as_deref(), Some("10mbit"));
        assert_eq!(request.discipline, "cake nat");
    }

    #[test]
    fn a_missing_rate_is_named() {
        let message = |words| request(words).err().map(|error| error.to_string());
        assert!(message("eth0 download").unwrap().contains("`download` needs a rate"));
        assert!(message("eth0").unwrap().contains("`eth0`"));
        assert!(message("eth0 nat").unwrap().contains("`eth0`"));
        let misspelt = message("eth0 fq_codle").unwrap();
        assert!(misspelt.contains("`fq_codle` (word 3)"), "{misspelt}");
        assert!(misspelt.contains("did you mean `fq_codel`"), "{misspelt}");
        for (words, expected) in [
            ("eth0 uplaod 10mbit", "`uplaod` (word 3) is not known; did you mean `upload`?"),
            ("eth0 upload 9mbit donwload 10mbit", "`donwload` (word 5) is not known; did you"),
            ("eth0 10mbit", "`10mbit` (word 3) is a rate of no direction"),
            ("eth0 cake upload 10mbit", "`upload` comes before the words of the discipline"),
            ("eth0 upload 9mbit cake lanes 2", "`lanes` comes before the words"),
        ] {
            assert!(message(words).unwrap().contains(expected), "{words}: {:?}", message(words));
        }
        let twice = message("eth0 upload 1mbit upload 2mbit nat").unwrap();
        assert!(twice.contains("`upload` is said twice"), "{twice}");
    }

    #[test]
    fn lanes_come_before_the_discipline() {
        let said = |words| request(words).map(|request| (request.lanes, request.discipline));
        let (lanes, discipline) = said("eth0 lanes 2 upload 2gbit lanes-by cpu cake").unwrap();
        assert_eq!((lanes.count, lanes.by.name(), discipline.as_str()), (2, "cpu", "cake"));
        assert_eq!(said("eth0 upload 2gbit").unwrap().0, Lanes::default());
        for (words, expected) in [
            ("lanes", "`lanes` needs a number"),
            ("lanes two", "`lanes two` is no number"),
            ("lanes 9", "9 lanes: expected 1 to 4"),
            ("lanes-by cpu", "add `lanes`"),
            ("lanes 2 lanes-by core", "expected `address` or `cpu`"),
        ] {
            let error = request(&format!("eth0 upload 2gbit {words}")).err().unwrap().to_string();
            assert!(error.contains(expected), "{words}: {error}");
        }
    }

    #[test]
    fn a_discipline_that_is_named_needs_no_rate() {
        let request = request("eth0 htb rate 2mbit burst 15k sfq").unwrap();
        assert_eq!((request.download, request.upload), (None, None));
        assert_eq!(request.discipline, "htb rate 2mbit burst 15k sfq");
    }
}

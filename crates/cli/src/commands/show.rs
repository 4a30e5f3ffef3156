//! `simnel show`: settings and statistics as `tc qdisc show` prints them.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use simnel_core::qdisc::{self, Config, Parent, QdiscView, Snapshot, Statistics};
use simnel_core::tc::Json;
use simnel_core::Span;
use simnel_gateway::autorate::Report;
use simnel_gateway::control::{Below, Client, Request};
use simnel_gateway::kernel::{self, Listed, Shaped};
use simnel_gateway::presence::Change;
use simnel_gateway::trial::{Back, Left};
use simnel_gateway::{Direction, Error, Lanes};

use super::tc::View;
use super::{duration, interface_name, output_failed, Control, NOTHING};

/// The first handle that the kernel gives to a discipline without one.
const FIRST_HANDLE: u32 = 0x8001_0000;
/// Distance of handles: they are major numbers.
const NEXT_HANDLE: u32 = 1 << 16;

/// Show what is being shaped, as `tc -s qdisc show` prints it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  simnel show -s\n  simnel show -j eth0\n  simnel show -c eth0\n\n\
The download of an interface is listed as IFACE:download."
)]
pub struct Args {
    /// Print statistics, too.
    #[arg(short, long)]
    statistics: bool,
    /// Print JSON with tc's keys and units, statistics included.
    #[arg(short, long)]
    json: bool,
    /// Print the classes of htb with their rates instead, as `tc class show` does.
    #[arg(short, long, conflicts_with_all = ["json", "statistics"])]
    classes: bool,
    /// One interface only [default: all].
    #[arg(value_parser = interface_name)]
    interface: Option<String>,
    #[command(flatten)]
    control: Control,
}

/// Prints what the daemons say.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let directory = &args.control.directory;
    let names = args.control.interfaces(args.interface.as_deref())?;
    let shaped = kernel::shaped(args.interface.as_deref()).into_diagnostic()?;
    let mut shaped_names: Vec<String> = shaped.iter().map(|one| one.interface.clone()).collect();
    shaped_names.dedup();
    let mut kernels = in_kernel(shaped)?;
    let mut shown = Shown::default();
    let (mut remarks, mut autorates, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    let mut awaited = false;
    for name in names {
        let mut client = match Client::connect(directory, &name) {
            // The socket of a daemon that was killed.
            Err(Error::NotUp { .. }) if args.interface.is_none() || !kernels.is_empty() => continue,
            Err(error @ Error::Restarting(_)) if args.interface.is_none() => {
                crate::say!("simnel: {error}");
                continue;
            }
            client => client.into_diagnostic()?,
        };
        let reply = client.ask(&Request::Show {}).into_diagnostic()?;
        awaited |= matches!(reply.trouble, Some(Change::Awaited(_)));
        let trouble = reply.trouble.iter().map(|trouble| ("trouble", trouble.to_string()));
        let warnings = reply.warnings.into_iter().map(|warning| ("warning", warning));
        for (kind, text) in trouble.chain(warnings) {
            let remark = Remark { kind, dev: name.clone(), text };
            remark.tell();
            remarks.push(remark);
        }
        tell_trials(&name, &reply.trials);
        if let Some(autorate) = reply.autorate.filter(|_| !args.classes) {
            if !args.json {
                tell_autorate(&autorate, args.statistics);
            }
            autorates.push(autorate);
        }
        for entry in reply.qdiscs.unwrap_or_default() {
            let dev = match entry.direction {
                Direction::Upload => entry.dev,
                Direction::Download => format!("{}:download", entry.dev),
            };
            if entry.lanes.are_several() && !args.classes {
                let lanes = Shared { dev: dev.clone(), lanes: entry.lanes };
                if !args.json {
                    lanes.tell();
                }
                shared.push(lanes);
            }
            let root =
                Below { class: 0, config: entry.config, stats: entry.stats, below: entry.below };
            shown.add(&dev, Parent::Root, root)?;
        }
    }
    for interface in &shaped_names {
        tell_trials(interface, &kernel::trials(directory, interface));
    }
    let nothing = shown.0.is_empty() && kernels.is_empty();
    if nothing && !awaited {
        crate::say!("{NOTHING}");
    }
    let mut text = String::new();
    if args.classes {
        kernels.clear();
    }
    let written = if args.classes {
        shown.write_classes(&mut text)
    } else if args.json {
        write_json(&shown, &kernels, (&remarks, &autorates, &shared), &mut text)
    } else {
        write(&shown, &kernels, args.statistics, &mut text)
    };
    written.map_err(|error| miette!("{error}"))?;
    out.write_all(text.as_bytes()).map_err(output_failed)?;
    if args.json && !text.ends_with('\n') {
        writeln!(out).map_err(output_failed)?;
    }
    Ok(if nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Says what ends by itself, on standard error: standard output is `tc`'s.
fn tell_trials(name: &str, trials: &[Left]) {
    for Left { ms, back } in trials {
        let left = duration(Span::from_millis(*ms));
        let then = match back {
            Back::Down => format!("given back in {left}"),
            Back::Change(direction, words) => format!("{direction} in {left} again {words}"),
        };
        crate::say!("simnel: {name} is on trial: {then}; `simnel keep {name}` keeps it");
    }
}

/// Says how rates follow the line, on standard error as well.
fn tell_autorate(report: &Report, statistics: bool) {
    let dev = &report.dev;
    for line in &report.directions {
        let mbit = |bps: u64| format!("{:.1}", bps as f64 / 1e6);
        let mut text = format!(
            "simnel: {dev}: autorate {} {} Mbit/s of {} to {}, {}",
            line.direction,
            mbit(line.rate_bps),
            mbit(line.floor_bps),
            mbit(line.ceiling_bps),
            line.phase
        );
        if let Some((reason, ago)) = line.reason.as_ref().zip(line.changed_ms) {
            text += &format!("; changed {:.1} s ago: {reason}", ago as f64 / 1e3);
        }
        crate::say!("{text}");
    }
    let answering = report.answering();
    let (nobody, others) = match report.reflectors.is_empty() {
        true => ("no reflector is asked", ""),
        false => ("no reflector answers", " (name others with `reflectors`)"),
    };
    match (report.delay_us, report.baseline_us) {
        (Some(delay), Some(base)) if answering > 0 => crate::say!(
            "simnel: {dev}: {answering} reflector{}; the line's delay is {:.1} ms above {:.1} ms",
            if answering == 1 { " answers" } else { "s answer" },
            delay as f64 / 1e3,
            base as f64 / 1e3
        ),
        (Some(delay), Some(base)) if report.by_passing => crate::say!(
            "simnel: {dev}: {nobody}; the timestamps of {} passing connections tell a \
             delay of {:.1} ms above {:.1} ms",
            report.connections,
            delay as f64 / 1e3,
            base as f64 / 1e3
        ),
        _ => crate::say!(
            "simnel: {dev}: {nobody}, and no TCP passes: rates stay as they are{others}"
        ),
    }
    for one in report.reflectors.iter().filter(|_| statistics) {
        let rtt = one.rtt_us.map_or("-".into(), |rtt| format!("{:.1} ms", rtt as f64 / 1e3));
        let active = if one.active { "probed" } else { "spare" };
        let (answered, lost) = (one.answered, one.lost);
        let time = if one.tells_time { ", tells the time" } else { "" };
        let refusal = one.refusal.as_ref().map_or(String::new(), |why| format!("; {why}"));
        crate::say!(
            "  {:<16} {active:<7} {rtt:>9}  answered {answered}, lost {lost}{time}{refusal}",
            one.target()
        );
    }
}

/// The same as an object with a kind of its own.
fn write_autorate(report: &Report, json: &mut Json<'_>) -> fmt::Result {
    json.begin_object()?;
    json.key("kind")?.string("autorate")?;
    json.members(&serde_json::to_string(report).unwrap_or_default())?;
    json.end_object()
}

/// A reason why nothing passes an interface, passes unshaped, or waits longer than it could.
struct Remark {
    kind: &'static str,
    dev: String,
    text: String,
}

impl Remark {
    /// Said on standard error, as well.
    fn tell(&self) {
        crate::say!("simnel: {}: {}", self.dev, self.text);
    }

    /// The same as an object with a kind of its own.
    fn write(&self, json: &mut Json<'_>) -> fmt::Result {
        json.begin_object()?;
        json.key("kind")?.string(self.kind)?;
        json.key("dev")?.string(&self.dev)?;
        json.key("text")?.string(&self.text)?;
        json.end_object()
    }
}

/// A direction whose rate several lanes share.
struct Shared {
    dev: String,
    lanes: Lanes,
}

impl Shared {
    /// Says so, on standard error as well.
    fn tell(&self) {
        let Lanes { count, by } = self.lanes;
        crate::say!("simnel: {}: {count} lanes share the rate, by {}", self.dev, by.name());
    }

    /// The same as an object with a kind of its own.
    fn write(&self, json: &mut Json<'_>) -> fmt::Result {
        json.begin_object()?;
        json.key("kind")?.string("lanes")?;
        json.key("dev")?.string(&self.dev)?;
        json.members(&serde_json::to_string(&self.lanes).unwrap_or_default())?;
        json.end_object()
    }
}

/// A discipline that runs in the kernel, with its interface as it is shown, and its words.
type InKernel = (Listed, String);

fn in_kernel(shaped: Vec<Shaped>) -> miette::Result<Vec<InKernel>> {
    let shown = |shaped: Shaped| {
        let words = shaped.words().into_diagnostic()?;
        // Of Linux's own kinds the name stands before already.
        let words = words.strip_prefix(&format!("{} ", shaped.listed.kind)).unwrap_or(&words);
        let device = match shaped.direction {
            Direction::Upload => shaped.interface,
            Direction::Download => format!("{}:download", shaped.interface),
        };
        Ok((Listed { device, ..shaped.listed }, words.to_owned()))
    };
    shaped.into_iter().map(shown).collect()
}

fn write(shown: &Shown, kernels: &[InKernel], statistics: bool, out: &mut String) -> fmt::Result {
    let detail = if statistics { Statistics::Tc } else { Statistics::Off };
    qdisc::show(out, &shown.views(), detail)?;
    let view = View { device: true, statistics };
    kernels.iter().try_for_each(|(listed, words)| view.write(listed, words, out))
}

fn write_json(
    shown: &Shown,
    kernels: &[InKernel],
    (remarks, autorates, shared): (&[Remark], &[Report], &[Shared]),
    out: &mut String,
) -> fmt::Result {
    let view = View { device: true, statistics: true };
    let mut json = Json::new(out);
    json.begin_array()?;
    qdisc::show_json_items(&mut json, &shown.views(), Statistics::Tc)?;
    kernels.iter().try_for_each(|(listed, words)| view.write_json(listed, words, &mut json))?;
    remarks.iter().try_for_each(|remark| remark.write(&mut json))?;
    autorates.iter().try_for_each(|report| write_autorate(report, &mut json))?;
    shared.iter().try_for_each(|lanes| lanes.write(&mut json))?;
    json.end_array()
}

/// A discipline that runs, and the handle that it is shown under.
struct Line {
    handle: u32,
    dev: String,
    parent: Parent,
    config: Config,
    stats: Snapshot,
}

impl Line {
    fn view(&self) -> QdiscView<'_> {
        QdiscView {
            handle: self.handle,
            dev: Some(&self.dev),
            parent: self.parent,
            // As the kernel counts them.
            refcnt: if self.parent == Parent::Root { 2 } else { 1 },
            config: &self.config,
            snapshot: Some(&self.stats),
        }
    }
}

/// All that run, each before what stands below it.
#[derive(Default)]
struct Shown(Vec<Line>);

impl Shown {
    fn add(&mut self, dev: &str, parent: Parent, node: Below) -> miette::Result<()> {
        let config = qdisc::parse(&node.config)
            .map_err(|error| miette!("the daemon's own words cannot be read: {error}"))?;
        let said: Vec<u32> = config.children().iter().map(|(class, _)| *class).collect();
        let handle = FIRST_HANDLE + NEXT_HANDLE * self.0.len() as u32;
        self.0.push(Line { handle, dev: dev.to_owned(), parent, config, stats: node.stats });
        // As `tc`, nothing is said of a FIFO that nobody asked for.
        for child in node.below.into_iter().filter(|child| said.contains(&child.class)) {
            self.add(dev, Parent::Class(handle | child.class & (NEXT_HANDLE - 1)), child)?;
        }
        Ok(())
    }

    fn views(&self) -> Vec<QdiscView<'_>> {
        self.0.iter().map(Line::view).collect()
    }

    fn write_classes(&self, out: &mut String) -> std::fmt::Result {
        use std::fmt::Write;
        for line in &self.0 {
            let Config::Htb(params) = &line.config else { continue };
            writeln!(out, "dev {}", line.dev)?;
            for class in &params.classes {
                let here = Parent::Class(line.handle | u32::from(class.id));
                let leaf = self.0.iter().find(|other| other.parent == here);
                let leaf = leaf.map(|leaf| leaf.handle >> 16);
                qdisc::htb::write_class(line.handle >> 16, params, class, leaf, out)?;
            }
        }
        Ok(())
    }
}

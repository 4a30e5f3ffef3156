//! `simnel top`: who uses the line, what waits, and why; live in the terminal, or once for scripts.
//!
//! A look a second at the daemon, or at the kernel's counters; all that is shown is reckoned in
//! `simnel_gateway::view`, as for the web. `state.rs` is what keys change, `screen.rs` draws it.

mod columns;
mod screen;
mod state;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use miette::{miette, IntoDiagnostic};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::DefaultTerminal;
use simnel_gateway::kernel;
use simnel_gateway::link::stop_on_hangup;
use simnel_gateway::view::{Naming, View, Viewer};

use super::{interface_name, misuse_with_help, output_failed, Control};
use state::{Next, State};

/// Columns and lines of `--once`.
const PAPER: (u16, u16) = (100, 40);
/// The longest that a signal waits to be seen.
const HEED: Duration = Duration::from_millis(100);

/// Show who uses the line: rates, added latency, tiers, hosts and flows.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  simnel top\n  simnel top wan\n  \
    simnel top wan --once | head -4\n  \
    simnel top wan --json | jq '.hosts[] | [.name // .address, .upload_bps]'\n\n\
Keys: Tab hosts or flows, s next column to sort by, r reverse, / filter, p pause, ? help, q quit.\n\
Names come from /etc/hosts and the leases of dnsmasq, odhcpd, ISC's dhcpd, Kea and\n\
systemd-networkd; other hosts are asked by multicast DNS, unless --no-mdns is said.\n\
Added latency is the time in the queue: p50 and p99 of the last ten looks. Of an interface that\n\
the kernel shapes there are counters and cake's tiers, and for root hosts and flows, as its\n\
connection tracking tells them, without what of them waits.")]
pub struct Args {
    /// The interface [default: the only one that is shaped].
    #[arg(value_parser = interface_name)]
    interface: Option<String>,
    /// Two looks, printed as text; no terminal is needed.
    #[arg(long)]
    once: bool,
    /// Two looks, printed as one JSON object.
    #[arg(short, long, conflicts_with = "once")]
    json: bool,
    /// Seconds between two looks.
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    delay: Duration,
    /// Ask no hosts for their names.
    #[arg(long)]
    no_mdns: bool,
    #[command(flatten)]
    control: Control,
}

fn seconds(word: &str) -> Result<Duration, String> {
    match word.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, 0.1 to 3600".into()),
    }
}

/// Shows what an interface does.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let interface = match &args.interface {
        Some(interface) => interface.clone(),
        None => only_one(args)?,
    };
    let mut source = Source::new(args, interface);
    if args.once || args.json {
        source.look()?;
        std::thread::sleep(args.delay);
        let view = source.look()?;
        let text = match args.json {
            true => serde_json::to_string(&view).into_diagnostic()?,
            false => screen::text(&State::new(source.interface, view), PAPER),
        };
        writeln!(out, "{}", text.trim_end()).map_err(output_failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(misuse_with_help(
            "`simnel top` needs a terminal",
            "for a script or a file: `simnel top --once` or `simnel top --json`",
        ));
    }
    // Whoever ends it from outside gets the terminal back, too.
    let stop = stop_on_hangup().into_diagnostic()?;
    // Errors before the screen is taken are read on it.
    let first = source.look()?;
    let mut state = State::new(source.interface.clone(), first);
    // Also puts the terminal back when we panic.
    let mut terminal = ratatui::try_init().into_diagnostic()?;
    let result = watch(&mut terminal, &mut state, &mut source, args.delay, &stop);
    ratatui::restore();
    result.map(|()| ExitCode::SUCCESS)
}

/// The only interface that is shaped.
fn only_one(args: &Args) -> miette::Result<String> {
    let mut names = args.control.interfaces(None)?;
    // Whoever may not ask the kernel may ask the daemon.
    names.extend(kernel::shaped(None).into_iter().flatten().map(|shaped| shaped.interface));
    names.sort();
    names.dedup();
    match names.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(miette!(
            help = "`simnel up IFACE download RATE upload RATE` begins",
            "nothing is shaped here"
        )),
        several => Err(misuse_with_help(
            format!("{} interfaces are shaped: {}", several.len(), several.join(", ")),
            "name one: `simnel top IFACE`",
        )),
    }
}

/// Source of looks at one interface.
struct Source {
    directory: std::path::PathBuf,
    interface: String,
    viewer: Viewer,
    naming: Naming,
}

impl Source {
    fn new(args: &Args, interface: String) -> Source {
        Source {
            directory: args.control.directory.clone(),
            interface,
            viewer: Viewer::new(),
            naming: Naming::new(!args.no_mdns),
        }
    }

    fn look(&mut self) -> miette::Result<View> {
        let names = self.naming.names();
        let view = self.viewer.look(&self.directory, &self.interface, &names).into_diagnostic()?;
        self.naming.ask([&view]);
        Ok(view)
    }
}

/// Draws, looks, and obeys keys until one says to end, or `stop`.
fn watch(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    source: &mut Source,
    delay: Duration,
    stop: &AtomicBool,
) -> miette::Result<()> {
    let mut due = Instant::now() + delay;
    let mut is_drawn = false;
    while !stop.load(Ordering::Relaxed) {
        if !std::mem::replace(&mut is_drawn, true) {
            terminal.draw(|frame| screen::draw(state, frame)).into_diagnostic()?;
        }
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left.min(HEED)).into_diagnostic()? {
            is_drawn = false;
            let ended = match event::read().into_diagnostic()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    state.press(key) == Next::Quit
                }
                _ => false,
            };
            if ended {
                return Ok(());
            }
        }
        if Instant::now() >= due {
            due = Instant::now() + delay;
            is_drawn = false;
            // A daemon that is started again is there within a second: the screen stays.
            match source.look() {
                Ok(view) => state.renew(view),
                Err(error) => state.trouble = Some(error.to_string()),
            }
        }
    }
    Ok(())
}

//! `simnel up auto` and `simnel setup`: measure, propose, try out, measure again, keep.
//!
//! The trial is a `simnel up --for` of its own. Whatever happens to this process, it ends by
//! itself, and the line is as before.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use miette::{miette, IntoDiagnostic};
use simnel_gateway::check::{link_type, LinkType};
use simnel_gateway::control::Client;
use simnel_gateway::{config, has_net_admin, Error};
use simnel_measure::report::delay;
use simnel_measure::{wire, Grade, Options, Peer, Report, Way};

use super::test::with_progress;
use super::way_out::{leads_out, way_out};
use super::{interface_name, misuse, misuse_with_help, output_failed, quoted, serve, Control};

mod file;
mod proposal;

use proposal::{rate, Proposal};

/// Set a line up: measure it, propose rates, try them out, measure again, write the configuration.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel setup --server 192.0.2.1               # asks before it changes anything\n  \
    simnel setup --server 192.0.2.1 --dry-run     # measures and proposes, and changes nothing\n  \
    simnel setup eth0 --server 192.0.2.1 --yes    # for scripts\n\n\
The server is any machine beyond the line on which `simnel serve --test --listen 0.0.0.0`\n\
runs. What is tried out ends by itself if this program does. Takes two minutes; other\n\
traffic falsifies the result. Needs root or CAP_NET_ADMIN.")]
pub struct Args {
    /// The interface towards the Internet [default: the default route's].
    #[arg(value_parser = interface_name)]
    interface: Option<String>,
    #[command(flatten)]
    pub plan: Plan,
    /// Ask nothing.
    #[arg(long)]
    yes: bool,
    /// Set the interface up although the default route does not lead by it.
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    control: Control,
}

/// Options that `simnel setup` and `simnel up auto` share.
#[derive(Clone, clap::Args)]
pub struct Plan {
    /// The peer of the measurements: `simnel serve --test` there.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub server: Option<String>,
    /// A file whose first line is the token that the server wants.
    #[arg(long, value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,
    /// Seconds of each load that count.
    #[arg(long, value_name = "SECONDS", default_value_t = 6, requires = "server",
        value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Measure and propose; change nothing.
    #[arg(long, requires = "server")]
    dry_run: bool,
    /// The configuration file to write.
    #[arg(long, value_name = "FILE", default_value = config::DEFAULT_FILE, requires = "server")]
    config: PathBuf,
}

/// Trials at most: one of the proposal, and one after each lowering of its rates.
const ATTEMPTS: usize = 3;
/// Length of an unattended trial.
const TRIAL: &str = "10m";

/// Runs `simnel setup`.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if !args.yes && !args.plan.dry_run && !io::stdin().is_terminal() {
        return Err(misuse_with_help("nobody is there to be asked", "say --yes or --dry-run"));
    }
    if let Some(interface) = &args.interface {
        check_line(interface, args.anyway)?;
    }
    let asks = !args.yes;
    let setup = Setup::new(&args.plan, args.interface.as_deref(), &args.control.directory, asks)?;
    let Some(done) = setup.find(out)? else { return Ok(ExitCode::SUCCESS) };
    let undo = setup.write(&done.proposal)?;
    drop(done.trial);
    let (begin, end) = beginning_and_end(&setup.plan.config);
    crate::say!("\nTo begin: {begin}\nTo undo:  {end}, then {undo}");
    Ok(ExitCode::SUCCESS)
}

/// Commands, in words, that begin and that end what `file` says. The service reads its own file
/// only.
fn beginning_and_end(file: &Path) -> (String, &'static str) {
    let by_hand = format!("`simnel daemon --config {}`", quoted(file));
    match file == Path::new(config::DEFAULT_FILE) {
        true => (
            format!("`systemctl enable --now simnel`, or {by_hand}"),
            "`systemctl disable --now simnel`",
        ),
        false => (by_hand, "end that"),
    }
}

/// Runs `simnel up auto`, which becomes `simnel up`.
pub fn up(plan: &Plan, control: &Path, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let setup = Setup::new(plan, None, control, false)?;
    let Some(done) = setup.find(out)? else { return Ok(ExitCode::SUCCESS) };
    let undo = setup.write(&done.proposal)?;
    crate::say!("To undo: end this, then {undo}");
    drop(done.trial);
    let error = setup.command(&done.proposal)?.exec();
    Err(miette!("cannot start `simnel up`: {error}"))
}

/// The set-up that is asked for.
struct Setup<'a> {
    plan: &'a Plan,
    interface: String,
    options: Options,
    control: &'a Path,
    asks: bool,
}

/// A proposal that was tried out, and still is.
struct Done {
    proposal: Proposal,
    trial: Trial,
}

impl<'a> Setup<'a> {
    fn new(
        plan: &'a Plan,
        interface: Option<&str>,
        control: &'a Path,
        asks: bool,
    ) -> miette::Result<Setup<'a>> {
        let Some(server) = &plan.server else {
            let help = "`simnel serve --test --listen 0.0.0.0` on a machine beyond the line, then \
                        --server with its address";
            return Err(misuse_with_help("measuring needs a peer: --server HOST", help));
        };
        let address = Peer::find(server, wire::PORT).map_err(misuse)?;
        let token = plan.token_file.as_deref().map(serve::token).transpose()?;
        let interface = match interface {
            Some(name) => name.to_owned(),
            None => way_out()?,
        };
        if !plan.dry_run && !has_net_admin() {
            return Err(Error::Privilege).into_diagnostic();
        }
        match Client::connect(control, &interface) {
            Err(Error::NotUp { .. }) => {}
            Err(error) => return Err(error).into_diagnostic(),
            Ok(_) => {
                let help = format!("`simnel down {interface}` first: the bare line is measured");
                return Err(miette!(help = help, "`{interface}` is shaped already"));
            }
        }
        let load = Duration::from_secs(plan.seconds);
        let peer = Peer::simnel_with(address, token);
        let options = Options::new(peer).lasting(load);
        let setup = Setup { plan, interface, options, control, asks };
        // What cannot be written is said before minutes of measuring.
        setup.file(&Proposal::placeholder(setup.words_of("cake")?))?;
        if !plan.dry_run {
            file::check_place(&plan.config)
                .map_err(|error| miette!("cannot write {}: {error}", plan.config.display()))?;
        }
        Ok(setup)
    }

    /// Measures, proposes and tries out; None if nothing is to be changed.
    fn find(&self, out: &mut dyn Write) -> miette::Result<Option<Done>> {
        crate::say!("1. The line as it is, by `{}`:", self.interface);
        let before = with_progress(&self.options).into_diagnostic()?;
        tell(&before);
        let link = link_type(&self.interface).unwrap_or(LinkType::Ethernet);
        let Some(mut proposal) = Proposal::of(&before, link) else {
            return Err(miette!("one direction could not be measured"));
        };
        let words = self.words_of(&proposal.words)?;
        if words != proposal.words {
            let path = self.plan.config.display();
            proposal
                .reasons
                .push(format!("{words}: own words of `{}` in {path} stay", self.interface));
            proposal.words = words;
        }
        crate::say!("\n2. A proposal, with reasons:");
        proposal.reasons.iter().for_each(|reason| crate::say!("   {reason}"));
        crate::say!("   simnel {}", self.words(&proposal).join(" "));
        if self.plan.dry_run {
            crate::say!("\n{} would be:", self.plan.config.display());
            write!(out, "{}", self.file(&proposal)?).map_err(output_failed)?;
            return Ok(None);
        }
        if !self.ask("Try it out? The line is as before after ten minutes at the latest.")? {
            return Ok(None);
        }
        let mut trial = Trial::begin(self, &proposal)?;
        crate::say!("\n3. The same with it:");
        let mut after = trial.measure(&self.options)?;
        for _ in 1..ATTEMPTS {
            let Some(slower) = proposal.slower(&after) else { break };
            crate::say!("   {}", slower.reasons.join("\n   "));
            drop(trial);
            proposal = slower;
            trial = Trial::begin(self, &proposal)?;
            after = trial.measure(&self.options)?;
        }
        tell(&after);
        crate::say!("\n4. Before and after:");
        compare(&before, &after, out)?;
        if !helps(&before, &after) {
            crate::say!("It did not help: what limits this line is elsewhere. Nothing is changed.");
            return Ok(None);
        }
        if !self.ask(&format!("Write {}?", self.plan.config.display()))? {
            return Ok(None);
        }
        Ok(Some(Done { proposal, trial }))
    }

    /// The words of `simnel up`.
    fn words(&self, proposal: &Proposal) -> Vec<String> {
        let (download, upload) = (rate(proposal.download), rate(proposal.upload));
        let fixed = ["up", &self.interface, "download", &download, "upload", &upload];
        fixed.into_iter().chain(proposal.words.split(' ')).map(String::from).collect()
    }

    fn command(&self, proposal: &Proposal) -> miette::Result<Command> {
        let mut command = Command::new(std::env::current_exe().into_diagnostic()?);
        command.args(self.words(proposal)).arg("--control-dir").arg(self.control);
        // The interface was checked before it was measured.
        command.arg("--anyway");
        Ok(command)
    }

    /// The configuration file as it is.
    fn old_file(&self) -> miette::Result<String> {
        let path = &self.plan.config;
        match config::text(path) {
            Ok(old) => Ok(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(miette!("cannot read {}: {error}", path.display())),
        }
    }

    /// The discipline's words where setup proposes these.
    fn words_of(&self, proposed: &str) -> miette::Result<String> {
        Ok(file::words(&self.old_file()?, &self.interface, proposed))
    }

    /// The configuration file as it is to be.
    fn file(&self, proposal: &Proposal) -> miette::Result<String> {
        let path = self.plan.config.display();
        file::with_proposal(&self.old_file()?, &self.interface, proposal)
            .map_err(|error| miette!("setup cannot write to {path}: {error}"))
    }

    /// Writes the configuration file; says how that is undone.
    fn write(&self, proposal: &Proposal) -> miette::Result<String> {
        let path = &self.plan.config;
        let written = file::write(path, &self.file(proposal)?).map_err(|error| {
            let help = format!("the same by hand: simnel {}", self.words(proposal).join(" "));
            miette!(help = help, "cannot write {}: {error}", path.display())
        })?;
        crate::say!("\n5. {} is written.", path.display());
        let file = quoted(&written.file);
        Ok(match written.earlier {
            Some(earlier) => format!("`mv {} {file}`", quoted(&earlier)),
            None => format!("`rm {file}`"),
        })
    }

    fn ask(&self, question: &str) -> miette::Result<bool> {
        if !self.asks {
            return Ok(true);
        }
        print!("\n{question} [Y/n] ");
        io::stdout().flush().map_err(output_failed)?;
        let mut answer = String::new();
        let said = io::stdin().lock().read_line(&mut answer).into_diagnostic()?;
        let answer = answer.trim().to_lowercase();
        Ok(said > 0 && (answer.is_empty() || answer == "y" || answer == "yes"))
    }
}

/// An error if `interface` is none that can be shaped, or leads nowhere and nobody said `anyway`.
fn check_line(interface: &str, anyway: bool) -> miette::Result<()> {
    if interface == "lo" {
        return Err(Error::Loopback(interface.to_owned())).into_diagnostic();
    }
    if link_type(interface).is_none() {
        return Err(Error::NoInterface(interface.to_owned())).into_diagnostic();
    }
    if anyway {
        return Ok(());
    }
    leads_out("setup", interface)
}

/// A `simnel up` on trial: whatever comes, the interface is given back at the end.
struct Trial {
    process: Child,
    control: PathBuf,
    interface: String,
}

impl Trial {
    fn begin(setup: &Setup, proposal: &Proposal) -> miette::Result<Trial> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let mut command = setup.command(proposal)?;
        command.args(["--for", TRIAL]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().into_diagnostic()?;
        let start = Instant::now();
        while Client::connect(setup.control, &setup.interface).is_err() {
            let ended = child.try_wait().into_diagnostic()?.is_some();
            if ended || start.elapsed() > PATIENCE {
                let mut words = String::new();
                let _ = child.kill();
                if let Some(errors) = &mut child.stderr {
                    let _ = errors.read_to_string(&mut words);
                }
                return Err(miette!("the trial did not begin: {}", words.trim()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        // What it says later must not fill the pipe.
        if let Some(mut errors) = child.stderr.take() {
            thread::spawn(move || io::copy(&mut errors, &mut io::sink()));
        }
        let (control, interface) = (setup.control.to_owned(), setup.interface.clone());
        Ok(Trial { process: child, control, interface })
    }

    /// Measures with it; an error if it has ended meanwhile.
    fn measure(&mut self, options: &Options) -> miette::Result<Report> {
        let report = with_progress(options).into_diagnostic()?;
        match self.process.try_wait().into_diagnostic()? {
            None => Ok(report),
            Some(_) => {
                Err(miette!("the trial was ended while it was measured; nothing is changed"))
            }
        }
    }
}

impl Drop for Trial {
    /// Gives the interface back now; else the trial ends by its own time.
    fn drop(&mut self) {
        let down = Client::connect(&self.control, &self.interface);
        if down.and_then(|mut client| client.down()).is_ok() {
            let _ = self.process.wait();
        }
    }
}

/// True if the grade is better than it was, or was good and still is.
fn helps(before: &Report, after: &Report) -> bool {
    match (before.grade, after.grade) {
        (Some(before), Some(after)) => after < before || after == before && after <= Grade::A,
        _ => false,
    }
}

/// The result in a few lines.
fn tell(report: &Report) {
    report.verdict().into_iter().for_each(|line| crate::say!("   {line}"));
}

/// Both measurements side by side.
fn compare(before: &Report, after: &Report, out: &mut dyn Write) -> miette::Result<()> {
    let mut rows = vec![[String::new(), "before".into(), "after".into()]];
    let both = |which: &dyn Fn(&Report) -> String| [which(before), which(after)];
    let mut row = |name: String, [before, after]: [String; 2]| rows.push([name, before, after]);
    row("Delay of the idle line".into(), both(&|report| delay(Some(report.idle.rtt_ms))));
    for way in Way::ALL {
        let added = |report: &Report| {
            let phase = report.phases.iter().find(|phase| phase.load == way);
            phase.map_or("-".into(), |phase| delay(phase.added_ms_p95))
        };
        row(format!("Added under load, {}", way.name()), both(&added));
    }
    let mbit = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{rate:.2} Mbit/s"));
    row("Download".into(), both(&|report| mbit(report.download_mbit())));
    row("Upload".into(), both(&|report| mbit(report.upload_mbit())));
    let rpm = |report: &Report| report.rpm.map_or("-".into(), |rpm| format!("{rpm:.0}"));
    row("Round trips per minute".into(), both(&rpm));
    let grade = |report: &Report| report.grade.map_or("-".into(), |grade| grade.name().into());
    row("Grade".into(), both(&grade));
    let mut text = String::new();
    for [name, before, after] in rows {
        text += &format!("   {name:<28} {before:>14} {after:>14}\n");
    }
    out.write_all(text.as_bytes()).map_err(output_failed)?;
    out.flush().map_err(output_failed)
}

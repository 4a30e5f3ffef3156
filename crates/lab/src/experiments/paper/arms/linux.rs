//! The linux arm: Linux's own disciplines, in user-mode Linux.
//!
//! A kernel that has them all boots as a process in some seconds, with this machine's files as its
//! own (read only). It runs this program's hidden command `guest` in them. Orders and results are
//! files of a directory that both see. Needs no root. Debian's kernel has no virtual clock, so that
//! a busy machine is seen in the results. That of `conformance/build-linux.sh` has one, by which
//! work takes no time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::error::ArmError;
use super::generator::{Recorded, IDLE};
use super::guest::{HEARD, PLAN, REFUSED, STARTED, VIRTUAL_TIME};
use super::plan::Plan;
use crate::files;
use simnel_testbed::Group;

/// Debian's name of the kernel.
pub const PROGRAM: &str = "linux.uml";
/// File for the kernel's output.
const CONSOLE: &str = "console";
/// Program that the kernel starts.
const INIT: &str = "init";
/// Memory of the guest.
const MEMORY: &str = "mem=512M";
/// The kernel has booted, and the generator is about to begin, within this time.
const BOOT: Duration = Duration::from_secs(120);
/// Results are written within this time after the end.
const ENDING: Duration = Duration::from_secs(30);
/// Times that a kernel is started for one run.
const ATTEMPTS: u32 = 4;
/// Time between looks at the guest.
const TICK: Duration = Duration::from_millis(200);

/// In virtual time a run is over within this real time, on a busy machine, too.
const SLOWEST: Duration = Duration::from_secs(1800);
/// Directory of the file that is the guest's memory: it is never written to a disk.
const SHARED_MEMORY: &str = "/dev/shm";

/// A kernel that runs as a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    program: PathBuf,
    clock: Clock,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    Real,
    Virtual,
}

impl Kernel {
    /// Debian's.
    pub fn debian() -> Kernel {
        Kernel { program: PROGRAM.into(), clock: Clock::Real }
    }

    /// One that `conformance/build-linux.sh` has built, in virtual time.
    pub fn in_virtual_time(program: PathBuf) -> Kernel {
        Kernel { program, clock: Clock::Virtual }
    }

    /// Its version, as it says it itself: `6.1.170`.
    pub fn version(&self) -> Result<String, ArmError> {
        let output = Command::new(&self.program).arg("--version").output();
        let output =
            output.map_err(|source| ArmError::File { path: self.program.clone(), source })?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    }
}

/// True if Debian's kernel can be found.
pub fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(PROGRAM).is_file())
}

/// Carries `plan` out once. `simnel` is the program with the command `guest`. A kernel that dies is
/// started anew: on some processors user-mode Linux loses a process now and then as it reads its
/// floating-point registers.
pub fn run(
    plan: &Plan,
    kernel: &Kernel,
    simnel: &Path,
    step: &mut dyn FnMut(Duration) -> bool,
) -> Result<Recorded, ArmError> {
    let mut attempt = 1;
    loop {
        match once(plan, kernel, simnel, step) {
            Err(ArmError::GuestDied(_)) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn once(
    plan: &Plan,
    kernel: &Kernel,
    simnel: &Path,
    step: &mut dyn FnMut(Duration) -> bool,
) -> Result<Recorded, ArmError> {
    let directory = tempfile::Builder::new()
        .prefix("simnel-linux-")
        .tempdir()
        .map_err(|source| ArmError::File { path: std::env::temp_dir(), source })?
        .keep();
    let mut guest = boot(plan, kernel, simnel, &directory)?;
    let began = Instant::now();
    let mut started = None;
    loop {
        thread::sleep(TICK);
        let there = |name: &str| directory.join(name).is_file();
        if there(HEARD) {
            let text = read(&directory.join(HEARD))?;
            return serde_json::from_str(&text)
                .map_err(|error| ArmError::Guest(format!("its results: {error}")));
        }
        if there(REFUSED) {
            return Err(ArmError::Guest(read(&directory.join(REFUSED))?));
        }
        if started.is_none() && there(STARTED) {
            started = Some(Instant::now());
        }
        let late = match (kernel.clock, started) {
            (Clock::Virtual, _) => began.elapsed() > SLOWEST,
            (Clock::Real, None) => began.elapsed() > BOOT,
            (Clock::Real, Some(started)) => started.elapsed() > IDLE + plan.duration + ENDING,
        };
        if guest.is_over() && !there(HEARD) {
            return Err(ArmError::GuestDied(last_words("it ended early", &directory)));
        }
        if late {
            return Err(ArmError::Guest(last_words("it was not done in time", &directory)));
        }
        let at = started.map_or(Duration::ZERO, |started| started.elapsed().saturating_sub(IDLE));
        if !step(at.min(plan.duration)) {
            return Ok(Recorded::default());
        }
    }
}

fn boot(plan: &Plan, kernel: &Kernel, simnel: &Path, directory: &Path) -> Result<Group, ArmError> {
    let file = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|source| ArmError::File { path, source })
    };
    let orders = serde_json::to_string(plan)
        .map_err(|error| ArmError::Guest(format!("its orders: {error}")))?;
    file(PLAN, orders)?;
    file(INIT, init(simnel, directory))?;
    let path = directory.join(INIT);
    let failed = |path: PathBuf| move |source| ArmError::File { path, source };
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, executable).map_err(failed(path.clone()))?;
    let console = directory.join(CONSOLE);
    let output = std::fs::File::create(&console).map_err(failed(console))?;
    let errors = output.try_clone().map_err(failed(path.clone()))?;
    let mut command = Command::new(&kernel.program);
    if kernel.clock == Clock::Virtual {
        command.arg(VIRTUAL_TIME).env("TMPDIR", SHARED_MEMORY);
    } else {
        command.env("TMPDIR", directory);
    }
    command
        .args([MEMORY, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"])
        .args(["con=null", "con0=null,fd:1", "ssl=null", "noreboot", "quiet"])
        .arg(format!("uml_dir={}", directory.display()))
        .arg(format!("init={}", path.display()))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    Ok(Group::start(&mut command, directory)?)
}

/// The guest's first process: file systems of its own where something is written, then `guest`.
fn init(simnel: &Path, directory: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let (simnel, directory) = (quoted(simnel), quoted(directory));
    format!(
        "#!/bin/sh\n\
         export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t tmpfs tmpfs /run\n\
         mkdir -p /run/netns /run/share\n\
         mount -t hostfs -o {directory} none /run/share\n\
         {simnel} guest /run/share\n\
         echo o > /proc/sysrq-trigger\n\
         sleep 10\n"
    )
}

fn read(path: &Path) -> Result<String, ArmError> {
    files::read_text(path, files::WHOLE)
        .map_err(|source| ArmError::File { path: path.to_owned(), source })
}

/// The failure, and the end of the kernel's output.
fn last_words(what: &str, directory: &Path) -> String {
    const LINES: usize = 2;
    let text = std::fs::read(directory.join(CONSOLE)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // The trace of a panic says less than what comes before it.
    let lines: Vec<&str> =
        text.lines().take_while(|line| !line.starts_with("Call Trace")).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    format!("{what}; its last words:\n{last}")
}

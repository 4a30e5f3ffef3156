//! `simnel demo --shell`: a shell on the router of a home network, to try everything out.
//!
//! Namespaces, line and server are the testbed's. The shell has a mount namespace of its own (`ip
//! netns exec` makes one). In it the directories of gateways and of their configuration are empty
//! ones: nothing of this machine's is seen or touched.

use std::fs::{self, Permissions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use miette::{miette, IntoDiagnostic};
use simnel_testbed::demo::Options;
use simnel_testbed::{Home, HomeOptions};

/// Own ones in the shell.
const OWN_DIRECTORIES: [&str; 2] = ["/run/simnel", "/etc/simnel"];

/// Runs the shell to its end; its exit status is ours.
pub fn run(options: &Options) -> miette::Result<ExitCode> {
    let simnel = std::env::current_exe().into_diagnostic()?;
    let mut home = Home::new("simnel-", HomeOptions { masquerade: true }).into_diagnostic()?;
    let words = format!(
        "link {} {} rate {}bit delay {}us fifo {}p reverse rate {}bit",
        Home::LINE_HOME,
        Home::LINE_CORE,
        options.upload.bits(),
        options.rtt.as_micros() / 2,
        options.fifo,
        options.download.bits(),
    );
    let words: Vec<&str> = words.split(' ').collect();
    let mut line = home.isp.spawn(&simnel, &words).into_diagnostic()?;
    let address = Home::SERVER.to_string();
    let serve = ["serve", "--test", "--listen", &address];
    let mut server = home.server.spawn(&simnel, &serve).into_diagnostic()?;
    thread::sleep(Duration::from_millis(300));
    if let Some(error) = line.failure().or_else(|| server.failure()) {
        return Err(error).into_diagnostic();
    }
    let directory = home.testbed.directory().into_diagnostic()?;
    let lan = format!("#!/bin/sh\nexec ip netns exec {} \"$@\"\n", home.lan1.name());
    write_program(&directory.join("lan"), &lan)?;
    std::os::unix::fs::symlink(&simnel, directory.join("simnel")).into_diagnostic()?;

    crate::say!("This shell is on the router of a home network. `wan` leads to a line of");
    crate::say!(
        "{}/{} Mbit/s, {} ms away from a server at {address}. Nothing leaves this machine.",
        options.download.bits() as f64 / 1e6,
        options.upload.bits() as f64 / 1e6,
        options.rtt.as_micros() as f64 / 1e3
    );
    crate::say!("  lan simnel test --server {address}      # a computer at home measures the line");
    crate::say!("  simnel setup --server {address}         # mends it");
    crate::say!("  exit                                    # removes everything\n");
    let mut command = shell(home.gateway.name(), directory);
    for place in OWN_DIRECTORIES {
        home.testbed.place(Path::new(place)).into_diagnostic()?;
    }
    let status = command.status().map_err(|error| miette!("cannot start a shell: {error}"))?;
    server.stop();
    line.stop();
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

fn write_program(path: &Path, text: &str) -> miette::Result<()> {
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755)))
        .map_err(|error| miette!("cannot write {}: {error}", path.display()))
}

/// The user's shell, or one that reads standard input.
fn shell(namespace: &str, directory: &Path) -> Command {
    let interactive = io::stdin().is_terminal();
    let own = std::env::var("SHELL").ok().filter(|_| interactive);
    let mounts = OWN_DIRECTORIES.map(|place| format!("mount -t tmpfs -o mode=755 simnel {place}"));
    let script = format!("{} && exec \"$@\"", mounts.join(" && "));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace, "sh", "-c", &script, "sh"])
        .arg(own.as_deref().unwrap_or("/bin/sh"))
        // Its own settings would take our prompt away.
        .args(own.filter(|own| own.ends_with("/bash")).map(|_| "--norc"))
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("PS1", "router# ");
    command
}

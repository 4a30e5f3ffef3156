//! A program that runs in a namespace until it is stopped, by its process id.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, kill_process_group, Pid, Signal};

use crate::{clean_up_on_signals, remains, Namespace, TestbedError};

/// A running program; ended when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    command: String,
}

/// Time that a program has to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(3);

impl Namespace {
    /// Starts a program in the namespace. Its standard error is kept for [`Process::failure`].
    pub fn spawn<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &[S],
    ) -> Result<Process, TestbedError> {
        let program = program.as_ref();
        // `ip netns exec` becomes the program: the process id is the program's own.
        let child = Command::new("ip")
            .args(["netns", "exec", self.name()])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| TestbedError::NoProgram { program: "ip".to_owned(), source })?;
        remains().processes.insert(child.id() as i32);
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let command = format!("{} {}", program.to_string_lossy(), words.join(" "));
        Ok(Process { child, command })
    }
}

impl Process {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// If the program has ended: an error with its last words.
    pub fn failure(&mut self) -> Option<TestbedError> {
        let status = self.child.try_wait().ok().flatten()?;
        let mut words = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut words);
        }
        let message = format!("it ended with {status}: {}", words.trim());
        Some(TestbedError::Command { command: self.command.clone(), message })
    }

    /// Kills the program as nothing else can be (SIGKILL).
    pub fn kill(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        remains().processes.remove(&(self.child.id() as i32));
    }

    /// Asks the program to end (SIGTERM), waits, and kills it if it does not.
    pub fn stop(mut self) -> Option<ExitStatus> {
        self.end()
    }

    fn end(&mut self) -> Option<ExitStatus> {
        let id = self.child.id() as i32;
        if let Ok(Some(status)) = self.child.try_wait() {
            remains().processes.remove(&id);
            return Some(status);
        }
        terminate(id);
        let deadline = Instant::now() + GRACE;
        let status = loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
                Ok(None) => {
                    let _ = self.child.kill();
                    break self.child.wait().ok();
                }
                Ok(status) => break status,
                Err(_) => break None,
            }
        };
        remains().processes.remove(&id);
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// A program with all its children, and the directory that it works in. Both are gone when this is
/// dropped, and when a signal ends us.
#[derive(Debug)]
pub struct Group {
    child: Child,
    directory: PathBuf,
}

impl Group {
    /// Starts `command` as the leader of a process group.
    pub fn start(command: &mut Command, directory: &Path) -> Result<Group, TestbedError> {
        clean_up_on_signals();
        let program = command.get_program().to_string_lossy().into_owned();
        remains().directories.insert(directory.to_owned());
        let child = command
            .process_group(0)
            .spawn()
            .map_err(|source| TestbedError::NoProgram { program, source })?;
        remains().groups.insert(child.id() as i32);
        Ok(Group { child, directory: directory.to_owned() })
    }

    /// True if the leader has ended.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = self.child.id() as i32;
        kill_group(group);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
        let mut remains = remains();
        remains.groups.remove(&group);
        remains.directories.remove(&self.directory);
    }
}

/// Ends all that runs in a namespace, whoever started it: asks first, and kills what is left.
pub(super) fn end_all_in(namespace: &str) {
    const ASKED: Duration = Duration::from_secs(1);
    const KILLED: Duration = Duration::from_secs(2);
    let begin = Instant::now();
    while begin.elapsed() < KILLED {
        let Ok(listed) = Command::new("ip").args(["netns", "pids", namespace]).output() else {
            return;
        };
        let listed = String::from_utf8_lossy(&listed.stdout);
        let own = std::process::id() as i32;
        let all = listed.lines().filter_map(|line| line.trim().parse().ok());
        let all: Vec<Pid> = all.filter(|&id| id != own).filter_map(Pid::from_raw).collect();
        if all.is_empty() {
            return;
        }
        let signal = if begin.elapsed() < ASKED { Signal::TERM } else { Signal::KILL };
        for process in all {
            let _ = kill_process(process, signal);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a process group that this program started.
pub(super) fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Sends SIGTERM to a process that this program started.
pub(super) fn terminate(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        let _ = kill_process(process, Signal::TERM);
    }
}

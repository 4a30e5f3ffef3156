//! Settings on trial where the kernel shapes: two small processes see to their end.
//!
//! ```text
//! DIRECTORY/IFACE.trials   what ends and when, written under a lock
//! simnel-trial, twice      both look each half second; the first to see that one is due leads back
//! ```
//!
//! All others only write that file, and a process that finds nothing there for it ends. So either
//! of the two may be killed or stopped; a later trial begins two others, and those before it end.
//! What could not be led back is tried again for a minute.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use simnel_core::qdisc::{parse, Config};
use simnel_core::{Span, Time};

use super::shaped::{change, down, shaped, Shaped};
use crate::control_dir::{open_directory, open_file};
use crate::direction::Direction;
use crate::error::Error;
use crate::privileges;
use crate::sys::{self, Fork};
use crate::trial::{Back, Left, Trial, Trials};

/// Time between two looks.
const LOOK: Span = Span::from_millis(500);
/// Time after a trial's end for which a return that failed is tried again.
const INSISTENCE: Span = Span::from_secs(60);
/// Processes that look.
const PROCESSES: usize = 2;
/// Longest wait for others to let go of the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Number of the trial that began last.
    begun: u64,
    trials: Vec<Trial>,
}

/// The file, which nobody else has meanwhile.
struct Held {
    file: File,
    path: PathBuf,
    state: State,
}

impl Held {
    fn take(directory: &Path, interface: &str) -> Result<Held, Error> {
        let place = open_directory(directory)?;
        let name = format!("{interface}.trials");
        let path = directory.join(&name);
        let failed = |e| Error::system(format!("reading {}", path.display()), e);
        let begin = Instant::now();
        loop {
            let mut file = open_file(&place, &name, &path)?;
            // Whoever had it before may have removed it.
            let is_there = |file: &File| {
                let (ours, there) = (file.metadata().ok()?.ino(), path.metadata().ok()?.ino());
                (ours == there).then_some(())
            };
            if sys::try_lock(file.as_fd()) && is_there(&file).is_some() {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(failed)?;
                let state = serde_json::from_str(&text).unwrap_or_default();
                return Ok(Held { file, path, state });
            }
            if begin.elapsed() > PATIENCE {
                return Err(failed(std::io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes what there is; nothing is no file.
    fn put(mut self) -> Result<(), Error> {
        let text = serde_json::to_vec(&self.state).unwrap_or_default();
        let written = match self.state.trials.is_empty() {
            true => std::fs::remove_file(&self.path),
            false => (self.file.rewind())
                .and_then(|()| self.file.write_all(&text))
                .and_then(|()| self.file.set_len(text.len() as u64)),
        };
        written.map_err(|e| Error::system(format!("writing {}", self.path.display()), e))
    }

    /// Changes the trials of `interface`.
    fn with<T>(mut self, interface: &str, work: impl FnOnce(&mut Trials) -> T) -> Result<T, Error> {
        let mut trials = Trials::default();
        trials.resume(interface, std::mem::take(&mut self.state.trials));
        let result = work(&mut trials);
        self.state.trials = trials.of(interface);
        self.put()?;
        Ok(result)
    }
}

/// Trials of `interface`: each way back, and the time until then.
pub fn trials(directory: &Path, interface: &str) -> Vec<Left> {
    let path = directory.join(format!("{interface}.trials"));
    // Whoever only looks needs no rights.
    let state = std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let mut trials = Trials::default();
    trials.resume(interface, state.map_or(Vec::new(), |state: State| state.trials));
    trials.left(interface, sys::now())
}

/// Leads `back` after `span`, unless that is kept. The process must have no other threads.
///
/// # Errors
/// The directory is not safe to use, or the system lacks something.
pub fn begin(directory: &Path, interface: &str, back: Back, span: Span) -> Result<(), Error> {
    privileges::follow_directory(directory)?;
    let mut held = Held::take(directory, interface)?;
    held.state.begun += 1;
    let begun = held.state.begun;
    held.with(interface, |trials| trials.begin(interface, back, sys::now(), span))?;
    for _ in 0..PROCESSES {
        match sys::fork() {
            Ok(Fork::Parent(_)) => {}
            Ok(Fork::Child) => {
                let _ = rustix::thread::set_name(c"simnel-trial");
                sys::leave_terminal();
                let _ = privileges::at_start(None, &[]);
                watch(directory, interface, begun);
                sys::exit_at_once(0);
            }
            Err(error) => {
                let _ = keep(directory, interface);
                return Err(Error::system("starting what ends a trial", error));
            }
        }
    }
    Ok(())
}

/// Gives one direction other settings for `span`.
///
/// # Errors
/// As [`begin`] and [`change`].
pub fn try_out(
    directory: &Path,
    present: &Shaped,
    config: &Config,
    span: Span,
) -> Result<(), Error> {
    let (interface, direction) = (present.interface.as_str(), present.direction);
    let back = Back::Change(direction, present.words()?);
    // First, so that whatever cuts us off now cannot leave the settings without an end.
    begin(directory, interface, back, span)?;
    change(present, config).inspect_err(|_| {
        let _ = decide(directory, interface, direction);
    })
}

/// Ends all trials of `interface`: what runs stays.
///
/// # Errors
/// Nothing is on trial.
pub fn keep(directory: &Path, interface: &str) -> Result<(), Error> {
    if trials(directory, interface).is_empty() {
        return Err(Error::NoTrial(interface.to_owned()));
    }
    privileges::follow_directory(directory)?;
    Held::take(directory, interface)?.with(interface, |trials| trials.forget(interface)).map(drop)
}

/// Ends the trial of one direction, if there is one: somebody has decided otherwise.
///
/// # Errors
/// A system call failed.
pub fn decide(directory: &Path, interface: &str, direction: Direction) -> Result<(), Error> {
    if trials(directory, interface).is_empty() {
        return Ok(());
    }
    privileges::follow_directory(directory)?;
    Held::take(directory, interface)?.with(interface, |trials| trials.decided(interface, direction))
}

/// One of the processes: waits for trials to end until there are none, or others look.
fn watch(directory: &Path, interface: &str, begun: u64) {
    let mut wait = Span::ZERO;
    loop {
        std::thread::sleep(Duration::from_nanos(wait.0));
        // A file that cannot be had now can be had later.
        let Ok(held) = Held::take(directory, interface) else {
            wait = LOOK;
            continue;
        };
        match look(held, begun, sys::now(), |back| lead(interface, back)) {
            Some(span) => wait = span,
            None => return,
        }
    }
}

/// Leads back what is due `now`, by `lead`. How long to wait then; None: there is nothing to do.
fn look(
    mut held: Held,
    begun: u64,
    now: Time,
    mut lead: impl FnMut(&Back) -> Result<(), Error>,
) -> Option<Span> {
    let is_ours = held.state.begun == begun;
    if is_ours {
        held.state.trials.retain(|trial| match trial.overdue(now) {
            Some(late) => lead(trial.back()).is_err() && late < INSISTENCE,
            None => true,
        });
    }
    let next = held.state.trials.iter().map(|trial| trial.left(now)).min();
    // A file that only this look has made goes again, too.
    let _ = held.put();
    next.filter(|_| is_ours).map(|span| span.clamp(Span::from_millis(10), LOOK))
}

/// Does what a trial's end is.
fn lead(interface: &str, back: &Back) -> Result<(), Error> {
    match back {
        Back::Down => down(interface),
        Back::Change(direction, words) => {
            let direction = *direction;
            let config =
                parse(words).map_err(|e| Error::Discipline { direction, reason: e.to_string() })?;
            let present = shaped(Some(interface))?;
            let present = Shaped::find(&present, direction);
            present.map_or(Ok(()), |present| change(present, &config))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Span = Span::from_secs(60);

    fn change_to(words: &str) -> Back {
        Back::Change(Direction::Upload, words.into())
    }

    fn at(span: Span) -> Time {
        sys::now() + span
    }

    #[test]
    fn trials_are_led_back_once_and_tried_again_for_a_minute() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let held = || Held::take(directory, "wan").unwrap();
        let add = |back: Back, span| {
            held().with("wan", |trials| trials.begin("wan", back, sys::now(), span)).unwrap();
        };
        add(change_to("cake bandwidth 8Mbit"), MINUTE);
        add(Back::Down, MINUTE * 2);
        // The way back is that of the first.
        add(change_to("cake bandwidth 6Mbit"), MINUTE);
        assert_eq!(trials(directory, "wan").len(), 2);
        let mut led = Vec::new();
        let mut look_at = |begun, time, fails: bool| {
            look(held(), begun, time, |back| {
                led.push(back.clone());
                if fails {
                    Err(Error::NoModule)
                } else {
                    Ok(())
                }
            })
        };
        assert_eq!(look_at(0, at(Span::from_secs(10)), false), Some(LOOK));
        assert_eq!(look_at(1, at(MINUTE * 9), false), None, "others look");
        let soon = Some(Span::from_millis(10));
        assert_eq!(look_at(0, at(MINUTE + LOOK), true), soon);
        assert_eq!(look_at(0, at(MINUTE + LOOK), false), Some(LOOK));
        assert_eq!(look_at(0, at(MINUTE * 2 + LOOK), true), soon);
        assert_eq!(look_at(0, at(MINUTE * 4), true), None, "it was tried for long enough");
        let first = change_to("cake bandwidth 8Mbit");
        assert_eq!(led, [first.clone(), first, Back::Down, Back::Down]);
        assert!(trials(directory, "wan").is_empty());
        assert!(!directory.join("wan.trials").exists());
    }

    #[test]
    fn what_is_kept_or_decided_is_not_led_back() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        assert!(matches!(keep(directory, "wan"), Err(Error::NoTrial(_))));
        decide(directory, "wan", Direction::Upload).unwrap();
        assert!(!directory.join("wan.trials").exists(), "whoever looks leaves nothing");
        for direction in Direction::BOTH {
            let back = Back::Change(direction, "cake".into());
            let held = Held::take(directory, "wan").unwrap();
            held.with("wan", |trials| trials.begin("wan", back, sys::now(), MINUTE)).unwrap();
        }
        decide(directory, "wan", Direction::Upload).unwrap();
        let left = trials(directory, "wan");
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].back, Back::Change(Direction::Download, "cake".into()));
        keep(directory, "wan").unwrap();
        assert!(trials(directory, "wan").is_empty());
        let nothing = look(Held::take(directory, "wan").unwrap(), 0, Time::MAX, |_| Ok(()));
        assert_eq!(nothing, None);
        assert!(!directory.join("wan.trials").exists());
    }

    #[test]
    fn a_damaged_file_is_no_trial() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("wan.trials"), "{\"begun\":").unwrap();
        assert!(trials(directory.path(), "wan").is_empty());
        let held = Held::take(directory.path(), "wan").unwrap();
        assert_eq!(held.state, State::default());
    }
}

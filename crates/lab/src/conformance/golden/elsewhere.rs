//! Recordings that are replayed elsewhere, in the kernel module: what that needs, and how what it
//! decided compares with what the same core decides here.
//!
//! Each recording GROUP/NAME becomes a file GROUP/NAME.plan; what was decided is GROUP/NAME.out.
//! Compared are order, times, drops, filtered acknowledgements, CE marks, tiers and queues. Lengths
//! on the line are not told by the module; with a shaper, times follow from them. Recordings with
//! commands are left out, as the module's driver knows packets only, and those of a Linux after
//! 6.1.

use std::path::{Path, PathBuf};

use simnel_core::rate::Release;

use super::compare::compare_events;
use super::format::full_name;
use super::{
    chosen, decide, Difference, Event, Factory, Fate, FormatError, Ledger, Outcome, Recording,
};
use crate::files;

/// Writes a plan of each recording below `directory` whose `group/name` fits `pattern` to `to`;
/// says how many there are.
pub fn write_plans(directory: &Path, pattern: &str, to: &Path) -> Result<usize, FormatError> {
    let recordings = of_packets_only(directory, pattern)?;
    for (path, recording) in &recordings {
        let plan = super::plan::plan(recording)?;
        let file = within(to, path, "plan");
        let fail = |error: std::io::Error| FormatError::whole(&file, error.to_string());
        if let Some(group) = file.parent() {
            std::fs::create_dir_all(group).map_err(fail)?;
        }
        files::put(&file, &plan).map_err(fail)?;
    }
    Ok(recordings.len())
}

/// Compares what was decided elsewhere, in files below `decided`, with what disciplines of
/// `factory` decide here: for every recording below `directory` whose `group/name` fits `pattern`.
pub fn compare_decided(
    directory: &Path,
    pattern: &str,
    factory: &Factory,
    decided: &Path,
) -> Result<Vec<Outcome>, FormatError> {
    let compared = |(path, recording): &(PathBuf, Recording)| {
        let here = decide(recording, factory)?;
        let there = read(&within(decided, path, "out"))?;
        let compared = match (here, there) {
            (Ok(here), Ok(there)) => {
                compare_events(["here", "there"], &without_lengths(here.events), &there)
            }
            (Err(reason), _) | (_, Err(reason)) => (0, Some(Difference::failed(reason))),
        };
        Ok(Outcome::of(recording, compared, &Ledger::default()))
    };
    of_packets_only(directory, pattern)?.iter().map(compared).collect()
}

/// The recordings of Linux 6.1 without commands, with their paths.
fn of_packets_only(
    directory: &Path,
    pattern: &str,
) -> Result<Vec<(PathBuf, Recording)>, FormatError> {
    let mut recordings = Vec::new();
    for path in chosen(directory, pattern)? {
        let recording = Recording::read(&path)?;
        if recording.commands.is_empty() && recording.release()? == Release::V6_1 {
            recordings.push((path, recording));
        }
    }
    Ok(recordings)
}

/// The file of a recording in `directory`.
fn within(directory: &Path, recording: &Path, extension: &str) -> PathBuf {
    directory.join(full_name(recording)).with_extension(extension)
}

/// Decisions: events, then `# end`, or `# failed` and the reason why there are no more.
fn read(path: &Path) -> Result<Result<Vec<Event>, String>, FormatError> {
    if !path.exists() {
        return Ok(Err("it was not replayed".into()));
    }
    let text = files::read_text(path, files::WHOLE)
        .map_err(|error| FormatError::whole(path, error.to_string()))?;
    let mut events = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line == "# end" {
            return Ok(Ok(events));
        }
        if let Some(reason) = line.strip_prefix("# failed ") {
            return Ok(Err(reason.into()));
        }
        events.push(Event::read(line).map_err(|problem| FormatError {
            path: path.to_owned(),
            line: Some(number + 1),
            problem,
        })?);
    }
    Ok(Err("its replay came to no end".into()))
}

fn without_lengths(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let Fate::Sent { adj_len, .. } = &mut event.fate {
            *adj_len = None;
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::super::{build, Kind};
    use super::*;

    const GROUP: &str = "codel";
    const NAME: &str = "limit-tiny";

    /// Result of the recording with `decided` as what was decided elsewhere; None: nothing was.
    fn compared(decided: Option<&str>) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        if let Some(decided) = decided {
            std::fs::create_dir(directory.path().join(GROUP)).unwrap();
            let file = directory.path().join(GROUP).join(format!("{NAME}.out"));
            std::fs::write(file, decided).unwrap();
        }
        let pattern = format!("{GROUP}/{NAME}");
        let factory: &Factory = &|words, device| build(words, device);
        let outcomes = compare_decided(&golden(), &pattern, factory, directory.path()).unwrap();
        assert_eq!(outcomes.len(), 1);
        outcomes.into_iter().next().unwrap()
    }

    fn golden() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/golden")
    }

    #[test]
    fn what_was_decided_elsewhere_is_equal_or_not() {
        let recording = Recording::read(&golden().join(GROUP).join(NAME)).unwrap();
        let lines: Vec<String> = recording.expected.iter().map(Event::to_string).collect();
        let all = lines.join("\n");
        assert!(compared(Some(&format!("{all}\n# end\n"))).equal());

        let kind = |decided: Option<&str>| compared(decided).first_difference.unwrap().kind;
        assert_eq!(kind(None), Kind::Failed);
        assert_eq!(kind(Some(&all)), Kind::Failed);
        assert_eq!(kind(Some(&format!("{all}\n# failed no memory\n"))), Kind::Failed);
        let shorter = format!("{}\n# end\n", lines[..lines.len() - 1].join("\n"));
        assert_eq!(kind(Some(&shorter)), Kind::End);
        let swapped = all.replacen(" deq ", " drop ", 1);
        assert_eq!(kind(Some(&format!("{swapped}\n# end\n"))), Kind::Drop);
    }
}

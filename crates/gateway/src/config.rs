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

use std::path::{Path, PathBuf};

use serde::Deserialize;
use simnel_core::Span;

use crate::error::Error;
use crate::gateway::{check_name, Direction, Settings, DEFAULT_CONTROL_DIR};
use crate::nft::MarkBits;
use crate::words::settings_of;

/// Where the file lies unless told otherwise.
pub const DEFAULT_FILE: &str = "/etc/simnel/simnel.toml";

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Directory of locks and control sockets.
    control_dir: Option<PathBuf>,
    #[serde(default)]
    interface: Vec<Interface>,
}

/// One `[[interface]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interface {
    name: String,
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
    mark_mask: Option<u32>,
    /// Priority under SCHED_FIFO; 0 for none.
    realtime: Option<u8>,
    /// Microseconds that are spun before each release.
    spin_us: Option<u32>,
    /// Microseconds of lateness that a burst makes up for.
    catch_up_us: Option<u32>,
    /// Microseconds between batches at high rates.
    batch_us: Option<u32>,
    /// Packets that the kernel keeps for us.
    queue_length: Option<u32>,
    lock_memory: Option<bool>,
}

/// Reads and understands a file.
///
/// # Errors
/// [`Error::ConfigFile`] with the place and the reason; errors of a discipline's words name the
/// interface and the direction.
pub fn read(path: &Path) -> Result<Vec<Settings>, Error> {
    let failed = |reason: String| Error::ConfigFile { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
    parse(&text).map_err(failed)
}

/// Understands the text of a file.
///
/// # Errors
/// What is wrong, and in which line or for which interface.
pub fn parse(text: &str) -> Result<Vec<Settings>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    let control_dir = file.control_dir.unwrap_or_else(|| PathBuf::from(DEFAULT_CONTROL_DIR));
    let mut all: Vec<Settings> = Vec::new();
    for interface in file.interface {
        let name = interface.name.clone();
        if all.iter().any(|settings| settings.interface == name) {
            return Err(format!("interface `{name}` occurs twice: put its keys into one table"));
        }
        let mut settings = interface.settings().map_err(|e| format!("interface `{name}`: {e}"))?;
        settings.control_dir.clone_from(&control_dir);
        all.push(settings);
    }
    if all.is_empty() {
        return Err("there is no [[interface]]: add one with name, download and upload".into());
    }
    Ok(all)
}

impl Interface {
    fn settings(self) -> Result<Settings, String> {
        check_name(&self.name).map_err(|e| e.to_string())?;
        let mut settings = Settings::new(&self.name);
        let both = self.qdisc.as_deref();
        let compose = |direction, rate: &Option<String>, words: &Option<String>| {
            // A direction without a rate and without words of its own is left alone.
            if rate.is_none() && words.is_none() {
                return Ok(None);
            }
            let words = words.as_deref().or(both).unwrap_or("cake");
            settings_of(direction, rate.as_deref(), words).map(Some)
        };
        settings.download = compose(Direction::Download, &self.download, &self.download_qdisc)?;
        settings.upload = compose(Direction::Upload, &self.upload, &self.upload_qdisc)?;
        if settings.download.is_none() && settings.upload.is_none() {
            return Err("neither `download` nor `upload` is set".into());
        }
        if let Some(mask) = self.mark_mask {
            settings.mark_bits = MarkBits::new(mask).map_err(|e| e.to_string())?;
        }
        let tuning = &mut settings.tuning;
        match self.realtime {
            None => {}
            Some(0) => tuning.realtime = None,
            Some(priority @ 1..=99) => tuning.realtime = Some(priority),
            Some(other) => return Err(format!("realtime = {other}: expected 0 to 99")),
        }
        let micros = |value: u32| Span::from_micros(value.into());
        tuning.spin = self.spin_us.map_or(tuning.spin, micros);
        tuning.catch_up = self.catch_up_us.map_or(tuning.catch_up, micros);
        tuning.batch = self.batch_us.map_or(tuning.batch, micros);
        tuning.queue_length = self.queue_length.unwrap_or(tuning.queue_length);
        tuning.lock_memory = self.lock_memory.unwrap_or(tuning.lock_memory);
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::tc::Config;

    use super::*;

    #[test]
    fn the_example_that_is_shipped_is_understood() {
        let text = include_str!("../../../dist/simnel.toml");
        let all = parse(text).unwrap();
        assert_eq!(all.len(), 1);
        assert!(all[0].upload.is_some() && all[0].download.is_some());
        assert_eq!(all[0].mark_bits, MarkBits::DEFAULT);
        assert_eq!(all[0].tuning, crate::Tuning::default());
    }

    #[test]
    fn the_example_of_the_manual_is_understood() {
        let manual = include_str!("../../../docs/OPERATING.md");
        let example = manual.split("```").nth(1).and_then(|text| text.strip_prefix("toml"));
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
            ("upload = \"1mbit\"\nrealtime = 100", "realtime = 100"),
        ] {
            let message = error(&format!("[[interface]]\nname = \"eth0\"\n{rest}"));
            assert!(
                message.contains("interface `eth0`") && message.contains(expected),
                "{message}"
            );
        }
        assert!(error("").contains("no [[interface]]"));
        let twice = "[[interface]]\nname = \"a\"\nupload = \"1mbit\"\n".repeat(2);
        assert!(error(&twice).contains("occurs twice"));
    }
}

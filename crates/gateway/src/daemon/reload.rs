//! SIGHUP: what runs becomes what the file says now.

use std::io::ErrorKind;
use std::path::Path;

use simnel_core::qdisc::Config;

use super::Daemon;
use crate::config;
use crate::direction::Direction;
use crate::error::Error;
use crate::notice::Notice;
use crate::settings::{Backend, Settings};

impl Daemon {
    /// Text and settings of `file` as it is now.
    ///
    /// # Errors
    /// Those of [`config::read`]; or the file is one that may have no end, or names another
    /// `control_dir`, where this process may write nothing.
    pub(super) fn read_again(&self, file: &Path) -> Result<(String, Vec<Settings>), Error> {
        let failed = |reason: String| Error::ConfigFile { path: file.to_owned(), reason };
        let about = file.metadata().map_err(|e| failed(e.to_string()))?;
        if !about.is_file() {
            // Whoever opens a pipe may wait for ever.
            return Err(failed("this is no regular file, and is read at a start only".into()));
        }
        let text = config::text(file).map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied => failed(format!(
                "{e}: the daemon reads nothing but the directory where the file was at its start: \
                 let it read the file there, or restart it"
            )),
            _ => failed(e.to_string()),
        })?;
        let settings = config::parse(&text).map_err(failed)?;
        let present = self.all_settings().next().map(|settings| &settings.control_dir);
        let moved =
            settings.first().filter(|new| present.is_some_and(|old| *old != new.control_dir));
        match moved {
            Some(new) => Err(failed(format!(
                "`control_dir = \"{}\"` is another one: restart the daemon for that",
                new.control_dir.display()
            ))),
            None => Ok((text, settings)),
        }
    }

    /// Makes what runs be what the `settings` of `text` say: interfaces come and go, disciplines
    /// change in place.
    pub(super) fn apply(&mut self, text: &str, settings: Vec<Settings>) {
        if let Err(e) = self.tether.reloaded(text) {
            self.warn(format!("a daemon that is started again begins with earlier settings: {e}"));
        }
        self.trials.clear();
        self.stop_waiting(|_| true);
        let stays = |interface: &str| {
            let stays =
                |new: &Settings| new.interface == interface && new.backend != Backend::Userspace;
            settings.iter().any(stays)
        };
        if let Err(e) = self.end_steered(|interface| !stays(interface)) {
            self.warn(e.to_string());
        }
        for index in (0..self.served.len()).rev() {
            if !settings.iter().any(|new| self.served[index].is(&new.interface)) {
                self.give_back(index);
            }
        }
        for new in settings {
            let running = self.served.iter().position(|served| served.is(&new.interface));
            let steered = self.steered.iter().position(|steering| steering.is(&new.interface));
            if let Some(index) = steered {
                match self.steer_on(index, &new) {
                    Ok(choice) if choice.maker.is_none() => self.take_from_kernel(new),
                    Ok(_) => {}
                    Err(e) => self.warn(e.to_string()),
                }
                continue;
            }
            match running {
                Some(index) if needs_restart(self.served[index].gateway.settings(), &new) => {
                    self.give_back(index);
                    self.take_over(new);
                }
                Some(index) => self.change_in_place(index, new),
                None => self.take_over(new),
            }
        }
    }

    fn give_back(&mut self, index: usize) {
        let served = self.served.remove(index);
        if let Err(e) = self.release(served) {
            self.warn(e.to_string());
        }
    }

    /// A process is to shape what the kernel did.
    fn take_from_kernel(&mut self, new: Settings) {
        if let Err(e) = self.end_steered(|interface| interface == new.interface) {
            self.warn(e.to_string());
        }
        self.take_over(new);
    }

    pub(super) fn take_over(&mut self, new: Settings) {
        if let Err(e) = self.up(new.clone()) {
            self.wait_for(new, &e);
        }
    }

    fn change_in_place(&mut self, index: usize, new: Settings) {
        let gateway = &mut self.served[index].gateway;
        let changed = |direction| -> Option<(Direction, Config)> {
            let wanted = gateway.at_present_rate(direction, new.direction(direction)?.clone());
            let differs = gateway.settings().direction(direction) != Some(&wanted);
            differs.then_some((direction, wanted))
        };
        let changes: Vec<_> = Direction::BOTH.into_iter().filter_map(changed).collect();
        let mut results = Vec::new();
        let other_rules = gateway.settings().rules != new.rules;
        if other_rules && !changes.is_empty() {
            // Old rules and new disciplines need not fit each other.
            results.push(gateway.set_rules(Vec::new()).map(|()| None));
        }
        for (direction, config) in changes {
            let notice = Notice::Changed(new.interface.clone(), direction);
            results.push(gateway.change(direction, config).map(|()| Some(notice)));
        }
        if gateway.settings().rules != new.rules {
            let notice = Notice::Rules(new.interface);
            results.push(gateway.set_rules(new.rules).map(|()| Some(notice)));
        }
        for result in results {
            match result {
                Ok(notice) => notice.into_iter().for_each(|notice| (self.notice)(notice)),
                Err(e) => self.warn(e.to_string()),
            }
        }
    }
}

/// True if the change is more than other settings of the same directions.
fn needs_restart(old: &Settings, new: &Settings) -> bool {
    let directions = |s: &Settings| (s.upload.is_some(), s.download.is_some());
    let rest = |s: &Settings| (s.backend, s.mark_bits, s.tuning);
    directions(old) != directions(new) || rest(old) != rest(new) || old.autorate != new.autorate
}

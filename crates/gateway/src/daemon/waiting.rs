//! Interfaces that cannot be served yet: not there at the start, or not to be had after a reload.
//!
//! Each is tried again at every `LOOK`. Meanwhile the daemon has its lock and answers at its
//! control socket. So the reason can be asked, and the wait ended.

use super::Daemon;
use crate::control::{socket_path, Reply, Request};
use crate::control_dir::{open_directory, Lock};
use crate::error::Error;
use crate::presence::Change;
use crate::settings::Settings;

/// Settings of an interface that cannot be served yet.
pub(super) struct Waiting {
    pub(super) settings: Settings,
    /// Why, as it was said last.
    reason: String,
    /// None while another process has it, which answers then.
    lock: Option<Lock>,
}

impl Waiting {
    pub(super) fn is(&self, interface: &str) -> bool {
        self.settings.interface == interface
    }

    /// The answer to a request; those that are about what runs have none yet.
    pub(super) fn tell(&self, request: &Request) -> Result<Reply, Error> {
        let done = Reply::done();
        match request {
            Request::Show {} => {
                let trouble = Some(Change::Awaited(self.reason.clone()));
                Ok(Reply { qdiscs: Some(Vec::new()), trouble, ..done })
            }
            Request::Flows {} => {
                Ok(Reply { lines: Some(Vec::new()), flows: Some(Vec::new()), ..done })
            }
            _ => {
                let interface = self.settings.interface.clone();
                Err(Error::Awaited { interface, reason: self.reason.clone() })
            }
        }
    }
}

impl Daemon {
    /// As [`Daemon::up`], but an interface that is not there yet is waited for.
    ///
    /// # Errors
    /// As [`Daemon::up`], but for [`Error::NoInterface`].
    pub fn up_when_there(&mut self, settings: Settings) -> Result<(), Error> {
        match self.up(settings.clone()) {
            Err(e @ Error::NoInterface(_)) => {
                // Once the daemon serves, it may make no directory.
                open_directory(&settings.control_dir)?;
                self.wait_for(settings, &e);
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn wait_for(&mut self, settings: Settings, error: &Error) {
        let reason = error.to_string();
        self.warn(format!("waiting for {}: {reason}", settings.interface));
        let mut waiting = Waiting { settings, reason, lock: None };
        self.answer_for(&mut waiting);
        self.waiting.push(waiting);
    }

    /// Tries again what could not be served.
    pub(super) fn try_waiting(&mut self) {
        for mut waiting in std::mem::take(&mut self.waiting) {
            self.answer_for(&mut waiting);
            let tried = self.up_with(waiting.settings.clone(), waiting.lock.as_ref());
            let Err(error) = tried else { continue };
            let reason = error.to_string();
            if reason != waiting.reason {
                self.warn(format!("waiting for {}: {reason}", waiting.settings.interface));
                waiting.reason = reason;
            }
            self.waiting.push(waiting);
        }
    }

    /// Answers for what is waited for, unless another process has it. What else may be wrong with
    /// the directory is told as the interface is taken over.
    fn answer_for(&mut self, waiting: &mut Waiting) {
        if waiting.lock.is_some() {
            return;
        }
        let Settings { control_dir, interface, .. } = &waiting.settings;
        let Ok(lock) = Lock::take(control_dir, interface) else { return };
        if self.server.listen(&socket_path(control_dir, interface), interface).is_ok() {
            waiting.lock = Some(lock);
        }
    }

    /// Waits no longer for those interfaces of which `gone` is true.
    pub(super) fn stop_waiting(&mut self, gone: impl Fn(&str) -> bool) {
        let is_gone = |waiting: &mut Waiting| gone(&waiting.settings.interface);
        for waiting in self.waiting.extract_if(.., is_gone) {
            if waiting.lock.is_some() {
                self.server.stop_listening(&waiting.settings.interface);
            }
        }
    }
}

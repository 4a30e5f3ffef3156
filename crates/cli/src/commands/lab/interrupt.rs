//! Ctrl-C in a long command: the runs stop, and what there is is shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use miette::IntoDiagnostic;
use signal_hook::{consts::SIGINT, flag, low_level, SigId};
use simnel_testbed::Stopper;

/// Exit status that a shell reports for a command that SIGINT ended.
pub const INTERRUPTED: u8 = 130;

/// SIGINT sets a flag instead of ending the process, as long as this value lives.
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    handler: SigId,
    /// Namespaces and guests are ended by who runs them, not in mid-sentence.
    _stopper: Stopper,
}

impl Interrupt {
    /// From now on.
    pub fn new() -> miette::Result<Interrupt> {
        let stop = Arc::new(AtomicBool::new(false));
        let handler = flag::register(SIGINT, Arc::clone(&stop)).into_diagnostic()?;
        Ok(Interrupt { flag: stop, handler, _stopper: Stopper::begin() })
    }

    /// The flag, for those who do the work.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// True if the runs were stopped.
    pub fn has_come(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        low_level::unregister(self.handler);
    }
}

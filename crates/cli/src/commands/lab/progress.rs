//! Progress of a long command.
//!
//! On a terminal a bar appears after a second, whether or not anything is done by then. A thread of
//! its own shows it and keeps it moving, so that the bar does not depend on how finely the work
//! reports. Nothing is drawn anywhere else.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Work that is over sooner needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// From one drawing to the next.
const TICK: Duration = Duration::from_millis(250);

/// A bar that shows itself after a second, on a terminal.
pub struct Progress {
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    /// The bar's display; none without a terminal.
    shower: Option<Thread>,
}

impl Progress {
    /// Nothing of `total` is done.
    pub fn new(total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %, {left}") {
            bar.set_style(style.with_key("left", left));
        }
        let over = Arc::new(AtomicBool::new(false));
        let shower = io::stderr().is_terminal().then(|| {
            let (bar, over) = (bar.clone(), Arc::clone(&over));
            thread::spawn(move || show_later(&bar, &over)).thread().clone()
        });
        Progress { bar, over, shower }
    }

    /// So much more is done.
    pub fn advance(&self, done: u64) {
        self.bar.inc(done);
    }

    /// So much is done in all.
    pub fn reach(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Takes the bar away.
    pub fn done(&self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(shower) = &self.shower {
            shower.unpark();
        }
        self.bar.finish_and_clear();
    }
}

/// Shows the bar unless all is over before.
fn show_later(bar: &ProgressBar, over: &AtomicBool) {
    let began = Instant::now();
    while let Some(rest) = PATIENCE.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero()) {
        thread::park_timeout(rest);
        if over.load(Ordering::Relaxed) {
            return;
        }
    }
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.enable_steady_tick(TICK);
}

/// The time that is left, once there is something to tell it from.
fn left(state: &ProgressState, out: &mut dyn Write) {
    // A formatter cannot report that its string could not grow.
    let _ = match state.pos() {
        0 => write!(out, "time left unknown"),
        _ => write!(out, "{:#} left", HumanDuration(state.eta())),
    };
}

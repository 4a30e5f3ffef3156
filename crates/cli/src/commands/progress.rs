//! How far a long command is.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that shows itself after a second, on a terminal.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    shown: AtomicBool,
}

impl Progress {
    /// Nothing of `total` is done.
    pub fn new(total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left") {
            bar.set_style(style);
        }
        Progress { bar, began: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// So much more is done.
    pub fn advance(&self, done: u64) {
        self.bar.inc(done);
        self.show();
    }

    /// So much is done in all.
    pub fn reach(&self, done: u64) {
        self.bar.set_position(done);
        self.show();
    }

    /// Takes the bar away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        let late = self.began.elapsed() > Duration::from_secs(1);
        if late && !self.shown.swap(true, Ordering::Relaxed) && io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

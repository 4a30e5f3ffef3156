//! How far a long command is: a bar with the time that is left, on a terminal, after a second.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that shows itself after a second.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    shown: AtomicBool,
}

impl Progress {
    /// A bar of so many steps.
    pub fn new(steps: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let template = "{bar:40} {pos} of {len}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar, began: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// A step is done.
    pub fn step(&self) {
        self.bar.inc(1);
        let late = self.began.elapsed() > Duration::from_secs(1);
        if late && !self.shown.swap(true, Ordering::Relaxed) && io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Everything is done: the bar goes.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

//! SCHED_FIFO for the threads that packets wait for, and the obstacle where the kernel refuses it.
//!
//! Without it everything works, on a busy machine later. It takes the machine's CAP_SYS_NICE: that
//! of a user namespace does not count. Where the kernel shares real time out among control groups
//! (sched-rt-group.rst), a new group has none of it, whatever capabilities its processes have.

use rustix::thread::{capabilities, CapabilitySet};

use crate::sys;

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The capability is missing.
    Right,
    /// The capability is there, and does not suffice.
    Share,
}

impl Obstacle {
    /// The obstacle before a new thread of this process; None where it may.
    pub(crate) fn find() -> Option<Obstacle> {
        /// The lowest: what holds for it holds for all.
        const PRIORITY: u8 = 1;
        let thread = std::thread::spawn(|| sys::realtime(PRIORITY).is_err());
        thread.join().is_ok_and(|is_refused| is_refused).then(Obstacle::of_refused)
    }

    /// The obstacle of a thread with the calling one's capabilities, which was refused.
    pub(crate) fn of_refused() -> Obstacle {
        let has_right =
            |sets: rustix::thread::CapabilitySets| sets.effective.contains(CapabilitySet::SYS_NICE);
        match capabilities(None).is_ok_and(has_right) {
            true => Obstacle::Share,
            false => Obstacle::Right,
        }
    }

    /// The thing that is missing.
    pub(crate) fn lack(self) -> &'static str {
        match self {
            Obstacle::Right => "CAP_SYS_NICE",
            Obstacle::Share => "a share of real time for its control group",
        }
    }

    /// The remedy.
    pub(crate) fn fix(self) -> &'static str {
        match self {
            Obstacle::Right => {
                "run as root, by the systemd unit, or in a container with `--cap-add sys_nice`"
            }
            Obstacle::Share => {
                "give it one (`--cpu-rt-runtime` of a container, `cpu.rt_runtime_us` of a group), \
                 and start a container as root"
            }
        }
    }

    /// Said of the threads of the data path.
    pub(crate) fn of_threads(self) -> String {
        self.said("its threads are not in real time, so packets leave late")
    }

    /// Said of the guard.
    pub(crate) fn of_guard(self) -> String {
        self.said("the guard is not in real time, so it may step in late")
    }

    fn said(self, what: &str) -> String {
        format!("{what} on a busy machine, for lack of {}: {}", self.lack(), self.fix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privileges::give_up_privileges;

    #[test]
    fn the_lack_is_named_with_its_remedy() {
        for (obstacle, lack, fix) in [
            (Obstacle::Right, "CAP_SYS_NICE", "--cap-add sys_nice"),
            (Obstacle::Share, "control group", "--cpu-rt-runtime"),
        ] {
            for told in [obstacle.of_threads(), obstacle.of_guard()] {
                assert!(told.contains(lack) && told.contains(fix), "{told}");
            }
        }
    }

    #[test]
    fn without_the_capability_that_is_what_is_lacking() {
        let alone = || {
            give_up_privileges().unwrap();
            Obstacle::of_refused()
        };
        assert_eq!(std::thread::spawn(alone).join().unwrap(), Obstacle::Right);
    }
}

//! Trials of rules: the kernel judges them, and keeps none.

use std::io;

use super::batch::{Batch, Expressions, Queues};
use super::table::Family;
use crate::names;
use crate::netlink::Socket;

/// Means by which rules hand packets to NFQUEUE on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queueing {
    /// By the expression `queue`.
    Native,
    /// By iptables' target only.
    Iptables,
}

/// Lets the kernel judge a rule that queues, without keeping it: a transaction that does not end is
/// only checked. Its chain has no hook, so that no queue is touched when it goes again.
pub(crate) fn judge_queueing() -> io::Result<Queueing> {
    match judge(|rule| rule.queue(Queues::one(0), true)) {
        Ok(()) => Ok(Queueing::Native),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            judge(|rule| rule.queue(Queues::one(0), false)).map(|()| Queueing::Iptables)
        }
        Err(error) => Err(error),
    }
}

/// The same for rules that log packets to us.
pub(crate) fn judge_logging() -> io::Result<()> {
    judge(|rule| rule.log(0, names::COPY_RANGE))
}

/// The same for rules that know control groups.
pub(crate) fn judge_cgroups() -> io::Result<()> {
    judge(|rule| rule.cgroup(1, &[1]))
}

fn judge(expressions: impl FnOnce(&mut Expressions<'_>)) -> io::Result<()> {
    let socket = Socket::open()?;
    let mut batch = Batch::new(Family::Routed, "simnel_check");
    batch.table();
    batch.branch("judged");
    batch.rule("judged", expressions);
    batch.judge(&socket).map_err(|refused| refused.error)
}

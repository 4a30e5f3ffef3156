//! Times that depend on how promptly queues are asked: at once in the kernel, on waking in a
//! process.

use crate::time::Span;

/// Times that depend on how late a queue may be asked.
///
/// Their order must be `nap` < `lead` < `stall` < `look`. Then a queue that sleeps because it is
/// ahead is not taken for absent. And one that is asked as late as `lead` keeps the line busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time before the line is free at which a flow without a standing queue may send. If two full
    /// packets take longer on the line, it is their time instead.
    pub ahead: Span,
    /// Most time that is caught up with after the line was free: late timers, and idleness.
    pub late: Span,
    /// A queue that was not asked for so long while the line was free gives up its turn.
    pub stall: Span,
    /// Most service by which a queue may be ahead of the one with the least, as time on the line of
    /// all queues. A queue may be asked as late as that without the line being idle.
    pub lead: Span,
    /// Longest sleep of a queue that is ahead, while the line is free. A longer one would have it
    /// taken for absent, or missed when the others are ahead in their turn.
    pub nap: Span,
    /// Longest time between two looks at the others while a queue sends: so old may the lead be.
    pub look: Span,
}

impl Timing {
    /// Transmit queues of a kernel, asked by interrupts and high-resolution timers. The lead is
    /// 0.25 % of 100 ms.
    pub const KERNEL: Timing = Timing {
        ahead: Span::from_micros(20),
        late: Span::from_micros(500),
        stall: Span::from_micros(400),
        lead: Span::from_micros(250),
        nap: Span::from_micros(100),
        look: Span::from_micros(500),
    };

    /// Threads that sleep between batches of half a millisecond, and wake up to some milliseconds
    /// late on a busy machine. The lead is 2 % of 100 ms, and gone in a second.
    pub const THREADS: Timing = Timing {
        ahead: Span::from_micros(20),
        late: Span::from_millis(4),
        stall: Span::from_millis(3),
        lead: Span::from_millis(2),
        nap: Span::from_micros(500),
        look: Span::from_millis(4),
    };
}

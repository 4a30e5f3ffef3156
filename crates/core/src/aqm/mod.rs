//! Active queue management: what to drop or mark, decided packet by packet as a queue is served.

pub mod age_limit;
pub mod blue;
pub mod cobalt;
pub mod codel;
pub mod inverse_sqrt;
pub mod pi2;
pub mod pie;
pub mod red;

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It goes on with CE: set already on departure, to be set by the queue on arrival.
    Marked,
    /// It is dropped.
    Drop,
}

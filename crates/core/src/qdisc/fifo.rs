//! FIFO settings. (Interface only: the discipline follows.)

/// Which FIFO, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// What the limit counts and which end loses.
    pub kind: Kind,
    /// Limit in packets or bytes; None takes the device's queue length (times its MTU for bytes).
    pub limit: Option<u32>,
}

/// The three FIFOs of `tc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A limit in packets; the newcomer is dropped.
    #[default]
    Pfifo,
    /// A limit in bytes; the newcomer is dropped.
    Bfifo,
    /// A limit in packets; the oldest is dropped.
    PfifoHeadDrop,
}

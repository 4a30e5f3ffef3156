//! A law's state and reasons, as users see them.

/// A direction's state in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rate grows while there is load.
    Rising,
    /// The capacity was found; the rate stays a little below.
    Holding,
    /// A queue elsewhere is being emptied.
    Draining,
}

impl Phase {
    /// A word for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Rising => "rising",
            Phase::Holding => "holding",
            Phase::Draining => "draining",
        }
    }
}

/// Reason for the latest change of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Load, and no delay.
    Room,
    /// Delay that the load has made.
    Delay,
    /// Packets arrived more slowly than they may.
    Arrivals,
    /// The queue elsewhere is gone.
    Drained,
    /// The delay was another route's.
    Route,
}

impl Reason {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Room => "load without delay",
            Reason::Delay => "delay under load",
            Reason::Arrivals => "the line delivers less",
            Reason::Drained => "the delay is gone",
            Reason::Route => "the delay is the route's",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_reasons_have_words() {
        let phases = [Phase::Rising, Phase::Holding, Phase::Draining].map(Phase::name);
        assert_eq!(phases, ["rising", "holding", "draining"]);
        let reasons =
            [Reason::Room, Reason::Delay, Reason::Arrivals, Reason::Drained, Reason::Route];
        let words = [
            "load without delay",
            "delay under load",
            "the line delivers less",
            "the delay is gone",
            "the delay is the route's",
        ];
        assert_eq!(reasons.map(Reason::name), words);
    }
}

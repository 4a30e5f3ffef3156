//! Notices about interfaces, for whoever started the daemon.

use crate::direction::Direction;
use crate::kernel;
use crate::presence::Change;

/// Something that the operator may want to know; the caller logs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An interface is under management.
    Up(String),
    /// Whoever shapes an interface of which that was left open, and why.
    Chosen(String, kernel::Choice),
    /// An interface was given back; so many packets were let go.
    Down(String, u64),
    /// Settings of an interface were changed.
    Changed(String, Direction),
    /// The rules of an interface were changed.
    Rules(String),
    /// The trial of an interface has ended: it is given back.
    TrialOver(String),
    /// A trial has ended: settings of an interface are as they were before.
    Reverted(String, Direction),
    /// Something happened to an interface that others did.
    Presence(String, Change),
    /// Traffic may pass us by, or something went wrong that does not end the daemon.
    Warning(String),
}

/// The last error of something that is tried again and again: each is told once.
#[derive(Debug, Default)]
pub(crate) struct Told(Option<String>);

impl Told {
    /// `text`, unless it was the last to be told.
    pub(crate) fn news(&mut self, text: String) -> Option<String> {
        let is_new = self.0.as_ref() != Some(&text);
        is_new.then(|| self.0.insert(text).clone())
    }

    /// The same is news again.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Notice::Up(interface) => write!(f, "{interface}: up"),
            Notice::Chosen(interface, choice) => {
                let by = if choice.maker.is_some() { "kernel" } else { "userspace" };
                write!(f, "{interface}: backend {by}: {}", choice.why)
            }
            Notice::Down(interface, packets) => {
                write!(f, "{interface}: down, {packets} queued packets let go")
            }
            Notice::Changed(interface, direction) => write!(f, "{interface}: {direction} changed"),
            Notice::Rules(interface) => write!(f, "{interface}: rules changed"),
            Notice::TrialOver(interface) => write!(f, "{interface}: the trial has ended"),
            Notice::Reverted(interface, direction) => {
                write!(f, "{interface}: the trial has ended, {direction} as before")
            }
            Notice::Presence(interface, change) => write!(f, "{interface}: {change}"),
            Notice::Warning(text) => write!(f, "warning: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[test]
    fn an_error_that_stays_is_told_once() {
        let mut told = Told::default();
        let mut is_told = |text: &str| told.news(text.to_owned()).is_some();
        assert!(is_told("no buffer"));
        assert!(!is_told("no buffer"));
        assert!(is_told("no device"));
        assert!(is_told("no buffer"));
        told.forget();
        assert!(told.news("no buffer".to_owned()).is_some());
    }
}

//! Reasons why frames of an interface cannot be had.

use std::io;

use crate::sys::{self, Query};

/// Reason why frames of an interface cannot be received or sent.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The interface does not exist, here and now.
    #[error("there is no interface `{interface}` here: `ip link` lists those that are")]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// There is no socket for frames.
    #[error("cannot {what}: {source}{}", hint(.source, ""))]
    Socket {
        /// The attempt.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{interface}: cannot {what}: {source}{}", hint(.source, .interface))]
    System {
        /// Interface concerned.
        interface: String,
        /// The attempt.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No address space for the packets that the limits allow.
    #[error("cannot reserve {megabytes} MB for packets: lower the limits of the disciplines")]
    Memory {
        /// The request.
        megabytes: usize,
    },
}

fn hint(error: &io::Error, interface: &str) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (run as root, or with CAP_NET_RAW)".into(),
        // Of an interface that was deleted, too.
        Some(libc::ENETDOWN) if sys::interface(interface, Query::Index).is_err() => {
            " (it is gone: `ip link` lists those there are)".into()
        }
        Some(libc::ENETDOWN) => format!(" (bring it up: `ip link set {interface} up`)"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_gone_is_not_to_be_brought_up() {
        let said = |interface: &str| {
            let source = io::Error::from_raw_os_error(libc::ENETDOWN);
            let interface = interface.to_owned();
            FrameError::System { interface, what: "receive", source }.to_string()
        };
        assert!(said("lo").ends_with("(bring it up: `ip link set lo up`)"), "{}", said("lo"));
        assert!(said("none-such").contains("(it is gone: "), "{}", said("none-such"));
    }
}

//! Why a link cannot start or go on.

use std::io;

/// Why a link cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The interface does not exist, here and now.
    #[error("there is no interface `{interface}` here: `ip link` lists those that are")]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// Both ends are the same.
    #[error("a link needs two interfaces, but both ends are `{interface}`")]
    SameInterface {
        /// Its name.
        interface: String,
    },
    /// A system call failed.
    #[error("{interface}: cannot {what}: {source}{}", hint(.source))]
    System {
        /// Interface concerned.
        interface: String,
        /// The attempt.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The discipline cannot be built.
    #[error(transparent)]
    Discipline(#[from] simnel_core::qdisc::ConfigError),
    /// The discipline has no place in a link.
    #[error(
        "a link carries a `line`, a `delay` or a FIFO; other disciplines belong to `simnel up`"
    )]
    Unsupported,
    /// No address space for the packets that the limits allow.
    #[error("cannot reserve {megabytes} MB for packets: lower the limits of fifo and delay")]
    Memory {
        /// The request.
        megabytes: usize,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (run as root, or with CAP_NET_RAW)",
        Some(libc::ENETDOWN) => " (bring the interface up: `ip link set NAME up`)",
        _ => "",
    }
}

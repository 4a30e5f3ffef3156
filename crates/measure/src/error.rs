//! Errors, by name and with the fix.

use std::io;
use std::net::SocketAddr;

use crate::Report;

/// Reasons why a measurement or its server failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is no address.
    #[error("`{text}` is no address: say HOST or HOST:PORT, for example 192.0.2.1:{port}")]
    NoAddress {
        /// The words for it.
        text: String,
        /// The port that is meant without one.
        port: u16,
    },
    /// A name that nobody knows.
    #[error(
        "the name of `{text}` cannot be resolved ({source}): say an address, for example \
         192.0.2.1:{port}, or look at /etc/resolv.conf"
    )]
    Unresolved {
        /// The words for it.
        text: String,
        /// The port that is meant without one.
        port: u16,
        /// The resolver's word.
        source: io::Error,
    },
    /// A name that is no URL.
    #[error(
        "`{0}` is no host and no URL: say HOST, or https://… of the server's configuration, for \
         example https://192.0.2.1/.well-known/nq"
    )]
    NoUrl(String),
    /// Nobody is there.
    #[error(
        "no answer from {address}: {source} (is `{command}` running there, and not \
         behind a firewall?)"
    )]
    Unreachable {
        /// Address at which it was looked for.
        address: SocketAddr,
        /// The command that runs at such a peer.
        command: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// The peer said no.
    #[error("{address} refuses: {reason}")]
    Refused {
        /// The peer.
        address: SocketAddr,
        /// In its words.
        reason: String,
    },
    /// The peer speaks something else.
    #[error("{address} does not speak the language of {expected}: {reason}")]
    Protocol {
        /// The peer.
        address: SocketAddr,
        /// The form that was expected there.
        expected: &'static str,
        /// The fault.
        reason: String,
    },
    /// Nothing carried data.
    #[error("no data came through within {seconds} s of {way}: is the line up?")]
    NothingCarried {
        /// `download`, `upload`.
        way: &'static str,
        /// Seconds for which it was tried.
        seconds: u64,
    },
    /// Flows that the peer did not carry to their end: their rates would be too low.
    #[error(
        "{0} ended the load before its time: it was ended itself, or what a session may last and \
         carry there is bounded (120 s and 16 GiB, enough for 1 Gbit/s, unless said otherwise); \
         `--seconds` or `--load` ask for less"
    )]
    Ended(SocketAddr),
    /// A load that failed behind others, whose figures are there.
    #[error("under the load `{load}`: {reason}")]
    Cut {
        /// `upload`, `both`.
        load: &'static str,
        /// The loads before it.
        report: Box<Report>,
        /// The fault.
        reason: Box<Error>,
    },
    /// No echo on the idle line.
    #[error("no echo came back from {0}: UDP, ICMP and TCP were tried")]
    Silent(SocketAddr),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// Its purpose.
        doing: String,
        /// The system's word.
        source: io::Error,
    },
}

impl Error {
    /// Nobody is at `address`, or who is there says nothing: of a socket with a time limit the
    /// system calls that a lack of resources.
    pub(crate) fn unreachable(
        address: SocketAddr,
        command: &'static str,
        source: io::Error,
    ) -> Error {
        let source = match source.kind() {
            io::ErrorKind::WouldBlock => late(),
            _ => source,
        };
        Error::Unreachable { address, command, source }
    }

    pub(crate) fn system(doing: impl Into<String>, source: io::Error) -> Error {
        Error::System { doing: doing.into(), source }
    }
}

/// An answer that did not come, or not all of it.
pub(crate) fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it is silent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_called_so() {
        let address = ([192, 0, 2, 1], 7730).into();
        let silent = Error::unreachable(address, "irtt server", io::ErrorKind::WouldBlock.into());
        let expected = "no answer from 192.0.2.1:7730: it is silent (is `irtt server` running";
        assert!(silent.to_string().starts_with(expected), "{silent}");
        let refused = io::ErrorKind::ConnectionRefused.into();
        let refused = Error::unreachable(address, "irtt server", refused).to_string();
        assert!(refused.contains("connection refused"), "{refused}");
    }
}

//! The gateway over HTTP: a page with live charts, metrics, JSON, a stream of events.
//!
//! One thread looks at all interfaces each second, through the control sockets (board.rs). It keeps
//! ten minutes, a day and thirty days (history.rs), the latter two in a file if there is one
//! (store.rs). Others only read what it has seen. Nothing is changed (changes.rs) and nothing
//! listens beyond loopback unasked.
//!
//! ```text
//! /                    the page
//! /metrics             OpenMetrics, for Prometheus and others (metrics.rs)
//! /api/v1/interfaces   what each interface does: rates, delay, tiers, hosts, flows
//! /api/v1/history      ten minutes, 24 hours, 30 days (?span=10m, 24h, 30d)
//! /api/v1/events       what each interface does, once a second (server-sent events)
//! /api/openapi.json    description of the above (OpenAPI 3.1)
//! ```
//!
//! [`Folder`] serves files instead, behind the same rules: the lab's pages (files.rs).

mod board;
mod changes;
mod connections;
mod effect;
mod files;
mod guard;
mod history;
mod metrics;
mod server;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use files::Folder;
pub use server::Server;

/// The address to serve, and on what terms.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen at.
    pub listen: SocketAddr,
    /// The token that clients must know; needed unless the address is one of loopback.
    pub token: Option<String>,
    /// Directory of the control sockets.
    pub control_dir: PathBuf,
    /// Bounds on clients.
    pub limits: Limits,
    /// File in which history survives a restart, if it should.
    pub history: Option<PathBuf>,
    /// True if hosts at home may be asked for their names (mDNS).
    pub asks: bool,
    /// True if clients with the token may change settings.
    pub changes: bool,
    /// Told, in words, what goes wrong meanwhile.
    pub notice: fn(&str),
}

/// Bounds on clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Time for a request, between two of them, and for taking some of an answer.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 128, patience: Duration::from_secs(10) }
    }
}

/// Reasons why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Others could read who talks with whom.
    #[error("{0} is not loopback: others may come only with a token (--token-file)")]
    NoToken(SocketAddr),
    /// Whoever uses this machine could change its line.
    #[error("changes need a token, also on this machine (--token-file)")]
    NoTokenForChanges,
    /// The address is taken, or not ours.
    #[error("cannot listen at {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// The folder is none, or not of pages.
    #[error("{} has no page: `make site` makes target/site", .0.display())]
    NoPage(PathBuf, #[source] std::io::Error),
    /// The system lacks something.
    #[error("cannot start serving")]
    Start(#[source] std::io::Error),
}

//! Reasons why an arm cannot run.

use std::path::PathBuf;

use simnel_testbed::TestbedError;

/// Reasons why an arm cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// The testbed, or a program in it.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A file of a run.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// User-mode Linux is not installed.
    #[error("`{0}` is not installed: `apt-get install user-mode-linux`")]
    NoLinux(&'static str),
    /// Linux's own disciplines could not be run.
    #[error("user-mode Linux: {0}")]
    Guest(String),
    /// User-mode Linux ended before its time.
    #[error("user-mode Linux: {0}")]
    GuestDied(String),
}

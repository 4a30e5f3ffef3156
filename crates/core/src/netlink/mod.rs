//! Netlink's language: attributes, tables of them, writers and errors (facts: `<linux/netlink.h>`,
//! RFC 3549). It knows no discipline; each reads and writes its own settings and statistics with
//! what is here.
//!
//! Numbers are in the machine's byte order. Nothing allocates, and no bytes panic: what is wrong
//! with them is an [`Error`] that names the attribute and its place.

mod attribute;
mod error;
mod statistics;
mod table;
mod writer;

pub use attribute::{Attribute, Attributes, Options};
pub use error::{Errno, Error, Problem, Text};
pub use statistics::Figure;
pub(crate) use statistics::{Statistic, Statistics};
pub(crate) use table::{Field, Layout, Part, Rules, Table};
pub use writer::{Full, Writer};

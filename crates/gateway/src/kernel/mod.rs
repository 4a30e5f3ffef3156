//! Disciplines that run inside the kernel: the module's, and Linux's own of the same names.
//!
//! [`Qdiscs`] speaks traffic control's part of rtnetlink, as `tc` does. Settings of the module's
//! qdisc, `simnel`, are words in one attribute. Its statistics are text and JSON, made in the
//! module, so that nobody here needs to know any discipline. [`up`] and its companions shape an
//! interface with them, as [`crate::daemon`] does in userspace; [`begin`] and [`try_out`] for a
//! time. [`choose`] decides whether the kernel can do what is asked for. `Steered` is an interface
//! whose rates in the kernel a process sets, and whose rules it has. [`Tracked`] tells its flows,
//! [`Arrivals`] has copies of what comes to the disciplines, for a recording.

mod arrivals;
mod choice;
mod marked;
mod own;
mod qdiscs;
mod redirect;
mod shaped;
mod steered;
mod tracked;
mod trials;

pub use arrivals::Arrivals;
pub use choice::{choose, Choice};
pub use own::Own;
pub use qdiscs::{Listed, Place, Qdiscs, Settings, Verb, INGRESS, OWN_KIND, ROOT};
pub use shaped::{change, down, orphans, remove_orphans, shaped, told, up, words, Maker, Shaped};
pub(crate) use steered::Steered;
pub(crate) use tracked::begin_counting;
pub use tracked::{Flows, Tracked};
pub use trials::{begin, decide, keep, trials, try_out};

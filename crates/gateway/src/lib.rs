//! The live gateway: disciplines of `simnel-core` on a real interface of a stock Linux kernel.
//!
//! A gateway puts one interface's traffic, in both directions, through disciplines. Packets stay in
//! the kernel, which hands their headers to us and waits for verdicts. [`daemon::Daemon`] keeps
//! gateways running, answers the control socket and handles signals. A guard beside it opens the
//! line if they hang. [`control::Client`] is the other end of that socket. [`words`] makes settings
//! of what users say, [`config`] reads `/etc/simnel/simnel.toml`. [`link`] is an emulated line
//! between two interfaces. [`kernel`] is for disciplines that run in the kernel itself.
//!
//! Needs CAP_NET_ADMIN, nf_tables and nfnetlink_queue (Linux 5.12 or later); no module of ours.
//! When the process ends, however it ends, the kernel removes our rules and traffic passes as
//! before.
//!
//! ```
//! use simnel_gateway::words::settings_of;
//! use simnel_gateway::Direction;
//!
//! // What `simnel up wan upload 10mbit fq_codel` runs: a shaper, and the discipline below it.
//! let config = settings_of(Direction::Upload, Some("10mbit"), "fq_codel")?;
//! assert!(config.to_string().starts_with("htb "));
//! // A rate that no line has is a slip.
//! let error = settings_of(Direction::Upload, Some("10"), "fq_codel").unwrap_err();
//! assert!(error.contains("did you mean `10mbit`?"));
//! # Ok::<(), String>(())
//! ```
//!
//! Outside tests, unsafe code stands here and in the kernel module's crate only. Here it is in
//! `sys`, in the parts of `frames` that speak to the kernel, and in `vitals`, whose memory three
//! processes share.

mod addresses;
#[cfg(test)]
mod apart;
pub mod autorate;
pub mod check;
mod classify;
pub mod config;
mod connections;
pub mod control;
mod control_dir;
pub mod daemon;
mod datapath;
mod direction;
mod driver;
mod error;
pub mod flows;
mod foreign;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod guard;
pub mod import;
pub mod kernel;
mod lanes;
pub mod link;
mod links;
mod lists;
mod mac;
mod marks;
mod names;
mod netlink;
mod nfqueue;
mod nft;
mod notice;
mod offload;
mod owner;
mod pace;
mod passage;
mod passing;
pub mod presence;
mod privileges;
mod realtime;
pub mod record;
mod reloaded;
mod routes;
mod ruled;
pub mod rules;
mod segments;
mod server;
mod settings;
mod supervisor;
mod sys;
mod tree;
pub mod trial;
mod untracked;
pub mod view;
mod vitals;
pub mod words;

pub use control_dir::DEFAULT_CONTROL_DIR;
pub use datapath::{Counters, Node, Status, Tuning, LATENESS_BUCKETS};
pub use direction::Direction;
pub use error::Error;
pub use frames::FrameReader;
pub use gateway::{Drained, Report};
pub use lanes::{Lanes, Spread};
pub use links::{check_name, join, lost_address, Joined};
pub use nfqueue::{has_net_admin, KernelCounters};
pub use nft::{table_name, MarkBits};
pub use privileges::{give_up_privileges, User, ACCOUNT};
pub use routes::{default_routes, home_router, next_hop};
pub use settings::{Backend, Plain, Settings};
pub use sys::pace_sender;

//! Settings of `up`, by whomever they are carried out.

use std::path::PathBuf;

use simnel_core::qdisc::Config;

use crate::autorate::Autorate;
use crate::control_dir::DEFAULT_CONTROL_DIR;
use crate::datapath::Tuning;
use crate::direction::Direction;
use crate::error::Error;
use crate::nft::MarkBits;
use crate::rules::{self, Action, Rule};

/// The holder and releaser of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A process of ours.
    #[default]
    Userspace,
    /// The kernel ([`crate::kernel`]).
    Kernel,
    /// The best that is there ([`crate::kernel::choose`]).
    Auto,
}

/// Settings of both directions for Linux's cake, where they are others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain {
    /// Of what leaves.
    pub upload: Option<Config>,
    /// Of what arrives.
    pub download: Option<Config>,
}

impl Plain {
    /// The settings of one direction, to be set.
    pub(crate) fn direction_mut(&mut self, direction: Direction) -> &mut Option<Config> {
        match direction {
            Direction::Upload => &mut self.upload,
            Direction::Download => &mut self.download,
        }
    }
}

/// Settings of `up`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The interface, usually the one that leads to the Internet.
    pub interface: String,
    /// The backend that does the work.
    pub backend: Backend,
    /// Discipline of what leaves; None lets it pass.
    pub upload: Option<Config>,
    /// Discipline of what arrives; None lets it pass.
    pub download: Option<Config>,
    /// Both without the guard of hosts that nobody asked for: Linux's cake has none. None is as
    /// above.
    pub plain: Plain,
    /// Rates that follow the line; those of the directions are the ends of the ranges then.
    pub autorate: Option<Autorate>,
    /// The mark bits that are ours; None chooses such as no rule uses.
    pub mark_bits: Option<MarkBits>,
    /// Rules that send traffic to tiers, to classes or past the discipline.
    pub rules: Vec<Rule>,
    /// Settings of the data path's threads.
    pub tuning: Tuning,
    /// Directory of the lock and the control socket.
    pub control_dir: PathBuf,
}

impl Settings {
    /// Settings for `interface` with neither direction set, and everything else as it usually is.
    pub fn new(interface: impl Into<String>) -> Settings {
        Settings {
            interface: interface.into(),
            backend: Backend::default(),
            upload: None,
            download: None,
            plain: Plain::default(),
            autorate: None,
            mark_bits: None,
            rules: Vec::new(),
            tuning: Tuning::default(),
            control_dir: PathBuf::from(DEFAULT_CONTROL_DIR),
        }
    }

    /// The settings of one direction.
    pub fn direction(&self, direction: Direction) -> Option<&Config> {
        match direction {
            Direction::Upload => self.upload.as_ref(),
            Direction::Download => self.download.as_ref(),
        }
    }

    /// The same, to be set.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut Option<Config> {
        match direction {
            Direction::Upload => &mut self.upload,
            Direction::Download => &mut self.download,
        }
    }

    /// The settings of one direction as Linux's cake gets them.
    pub(crate) fn plain(&self, direction: Direction) -> Option<&Config> {
        let plain = match direction {
            Direction::Upload => &self.plain.upload,
            Direction::Download => &self.plain.download,
        };
        self.direction(direction).map(|config| plain.as_ref().unwrap_or(config))
    }

    /// True if the kernel is to shape at rates that a process sets.
    pub fn are_steered(&self) -> bool {
        self.backend == Backend::Kernel && self.autorate.is_some()
    }

    /// The reason why the kernel cannot do all that is asked for, if so.
    pub fn needs_daemon(&self) -> Option<Error> {
        if let Some(error) = self.rules.iter().find_map(|rule| self.not_in_kernel(rule)) {
            return Some(error);
        }
        let because: fn(String) -> Error = if self.tuning.lanes.are_several() {
            Error::LanesInKernel
        } else if Direction::BOTH.iter().any(|way| self.direction(*way).is_some_and(is_deep)) {
            Error::DeepInKernel
        } else {
            return None;
        };
        Some(because(self.interface.clone()))
    }

    /// The reason why the kernel's disciplines cannot carry `rule` out, if so.
    fn not_in_kernel(&self, rule: &Rule) -> Option<Error> {
        let (minor, key) = match rule.action {
            Action::Tier(_) => return None,
            Action::Pass => {
                let why = "every packet of an interface passes its discipline";
                let rule = format!("rule {}, `pass`", rule.number);
                return Some(Error::RuleInKernel { interface: self.interface.clone(), rule, why });
            }
            Action::Class(minor) => (minor, "class"),
            Action::Share(minor) => (minor, "share"),
        };
        let classes = rules::numbered_classes(&self.rules);
        let at = classes.iter().position(|(other, _)| *other == minor)?;
        (self.download.is_some() && at >= rules::MOST_NUMBERED).then(|| Error::RuleInKernel {
            interface: self.interface.clone(),
            rule: format!("the {key} :{minor:x}"),
            why: "marks have room for seven classes of what arrives",
        })
    }
}

/// True if disciplines stand three deep: the module takes two, since the kernel's stack is small.
fn is_deep(config: &Config) -> bool {
    config.children().iter().any(|(_, child)| !child.children().is_empty())
}

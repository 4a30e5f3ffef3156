//! Rules of one interface as they run: which of them hold, what they look at, and their table.
//!
//! Whoever has an interface has a [`Ruled`], and tells its disciplines what [`Ruled::told`] makes
//! of their settings. Hours, host names and control groups are followed here.

use simnel_core::qdisc::Config;
use simnel_core::Time;

use crate::direction::Direction;
use crate::error::Error;
use crate::links;
use crate::marks;
use crate::names::{self, Known, Names};
use crate::nfqueue::QUEUE_NUMBERS;
use crate::nft::{self, MarkBits, Ruling, Table, Wanted};
use crate::rules::cgroup::Found;
use crate::rules::{self, HostName, Moment, Plan, Rule, RuleEntry};
use crate::settings::Settings;
use crate::sys;

/// No expression that knows control groups.
const NO_CGROUPS: Error = Error::KernelLacks {
    what: "nft_socket with control groups, which rules with `cgroup` need",
    fix: "`modprobe nft_socket` (OpenWrt: the package kmod-nft-socket), Linux 5.13 with \
          CONFIG_SOCK_CGROUP_DATA, or rules with `port`",
};

/// Rules of an interface, and the table that they are in. Settings are the interface's own.
pub(crate) struct Ruled {
    /// Decides which rules hold.
    moment: Moment,
    /// Addresses of host names, if rules have such.
    names: Option<Names>,
    /// Control groups of rules, as they were found last.
    cgroups: Vec<Found>,
    /// Bits of the mark that name a tier, once a rule has needed them; or zero.
    tiers: u32,
    /// Of the kernel's disciplines, where those shape.
    handle: Option<u32>,
    /// The table, once it was made.
    pub(crate) table: Option<Table>,
}

impl Ruled {
    /// No rules, and no table.
    pub(crate) fn new() -> Ruled {
        let (moment, cgroups) = (Moment::now(), Vec::new());
        Ruled { moment, names: None, cgroups, tiers: 0, handle: None, table: None }
    }

    /// The same for disciplines of the kernel, which have this `handle`.
    pub(crate) fn in_kernel(handle: u32) -> Ruled {
        Ruled { handle: Some(handle), ..Ruled::new() }
    }

    /// Rules of both directions, as the table has them.
    pub(crate) fn plans(&self, settings: &Settings) -> Result<[Plan; 2], Error> {
        if !settings.rules.is_empty() && links::bridge_of(&settings.interface)?.is_some() {
            return Err(Error::RulesOnBridge(settings.interface.clone()));
        }
        let rules = rules::holding(&settings.rules, self.moment);
        let plan = |direction| match settings.direction(direction) {
            Some(config) => rules::plan(&rules, direction, config).map_err(Error::Rule),
            None => Ok(Plan::default()),
        };
        let (download, upload) = (plan(Direction::Download)?, plan(Direction::Upload)?);
        Ok(match self.handle {
            None => [download, upload],
            Some(handle) => {
                let numbers = rules::numbered_classes(&settings.rules);
                [download.numbered(&numbers), upload.below(handle)]
            }
        })
    }

    /// Bits of the mark that name a tier, or zero.
    pub(crate) fn tiers(&self) -> u32 {
        self.tiers
    }

    /// Chooses bits of the mark beside those of `decisions`, if `rules` need such; those that were
    /// chosen once, stay. True if disciplines are to be told their settings anew.
    pub(crate) fn choose_tiers(
        &mut self,
        rules: &[Rule],
        decisions: MarkBits,
    ) -> Result<bool, Error> {
        let in_kernel = self.handle.is_some() && !rules.is_empty();
        let chosen = self.tiers == 0 && (in_kernel || rules::need_mark(rules));
        if chosen {
            self.tiers = marks::choose_tiers(decisions)?;
        }
        Ok(chosen)
    }

    /// Gives the bits up; those that there were.
    pub(crate) fn give_up_tiers(&mut self) -> u32 {
        std::mem::take(&mut self.tiers)
    }

    /// Has `tiers` as its bits again.
    pub(crate) fn keep_tiers(&mut self, tiers: u32) {
        self.tiers = tiers;
    }

    /// The discipline's settings as it is really told: where rules name tiers, cake reads our bits.
    pub(crate) fn told(&self, config: &Config) -> Config {
        match self.tiers {
            0 => config.clone(),
            tiers => rules::reading_mark(config.clone(), tiers),
        }
    }

    /// The same without what that adds.
    pub(crate) fn said(&self, config: Config) -> Config {
        match self.tiers {
            0 => config,
            _ => rules::reading_mark(config, 0),
        }
    }

    /// Makes the table, with `plans` as its rules.
    pub(crate) fn create(&mut self, wanted: Wanted, plans: [Plan; 2]) -> Result<(), Error> {
        let wanted = Wanted { rules: self.ruling(plans), ..wanted };
        self.table = Some(Table::create(wanted, &self.known())?);
        Ok(())
    }

    /// Puts `plans` into the table.
    pub(crate) fn lay(&mut self, plans: [Plan; 2]) -> Result<(), Error> {
        let ruling = self.ruling(plans);
        let known = self.known();
        match &mut self.table {
            Some(table) => table.set_rules(ruling, &known),
            None => Ok(()),
        }
    }

    /// `plans`, and what they need beside.
    fn ruling(&self, plans: [Plan; 2]) -> Ruling {
        let names = self.names.as_ref().map(Names::group);
        Ruling { plans, tiers: self.tiers, names, cgroups: self.cgroups.clone() }
    }

    /// Lets those rules hold whose hours it is.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub(crate) fn follow_clock(&mut self, settings: &Settings) -> Result<(), Error> {
        let moment = Moment::now();
        if moment == self.moment {
            return Ok(());
        }
        let holding = |moment| rules::holding(&settings.rules, moment);
        let are_others = holding(self.moment) != holding(moment);
        let before = std::mem::replace(&mut self.moment, moment);
        if !are_others {
            return Ok(());
        }
        let laid = self.plans(settings).and_then(|plans| self.lay(plans));
        // What fails is tried again at the next look.
        laid.inspect_err(|_| self.moment = before)
    }

    /// Finds control groups that have come or gone.
    ///
    /// # Errors
    /// The kernel refuses the rules.
    pub(crate) fn follow_cgroups(&mut self, settings: &Settings) -> Result<(), Error> {
        let found = rules::cgroups(&settings.rules);
        if found == self.cgroups {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.cgroups, found);
        let laid = self.plans(settings).and_then(|plans| self.lay(plans));
        // As the clock.
        laid.inspect_err(|_| self.cgroups = before)
    }

    /// Follows control groups and host names of the rules, if they have such.
    ///
    /// # Errors
    /// The kernel lacks what that takes.
    pub(crate) fn watch(&mut self, settings: &Settings) -> Result<(), Error> {
        self.cgroups = rules::cgroups(&settings.rules);
        if !self.cgroups.is_empty() && nft::judge_cgroups().is_err() {
            return Err(NO_CGROUPS);
        }
        self.watch_names(settings)
    }

    fn watch_names(&mut self, settings: &Settings) -> Result<(), Error> {
        let rules = settings.rules.iter();
        let mut hosts: Vec<HostName> = rules.flat_map(|rule| rule.traffic.hosts.clone()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.is_empty() {
            self.names = None;
            return Ok(());
        }
        let names = match &mut self.names {
            Some(names) => names,
            none => {
                let Settings { control_dir, interface, .. } = settings;
                // What else may be wrong, the rules' own transaction tells.
                if nft::judge_logging().is_err_and(|e| e.raw_os_error() == Some(libc::ENOENT)) {
                    return Err(names::LACKS);
                }
                none.insert(Names::open(control_dir, interface, QUEUE_NUMBERS, sys::now())?)
            }
        };
        names.set_hosts(hosts);
        Ok(())
    }

    /// Addresses of host names that are known, where rules have such.
    fn known(&self) -> Vec<Known> {
        self.names.as_ref().map(|names| names.all(sys::now())).unwrap_or_default()
    }

    /// Learns addresses of host names from answers that have passed.
    ///
    /// # Errors
    /// The kernel does not take them.
    pub(crate) fn learn_names(&mut self, now: Time) -> Result<(), Error> {
        match (&self.table, &mut self.names) {
            (Some(table), Some(names)) => table.keep(&names.turn(now)),
            _ => Ok(()),
        }
    }

    /// Addresses of host names, where rules have host names.
    pub(crate) fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// The rules with what they have counted.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn entries(&self, settings: &Settings) -> Result<Vec<RuleEntry>, Error> {
        let Some(table) = &self.table else { return Ok(Vec::new()) };
        let counted = table.counted().map_err(|e| Error::system("reading the rules", e))?;
        let entry = |rule: &Rule| {
            let of = |direction| {
                settings.direction(direction)?;
                Some(counted.get(&(direction, rule.number)).copied().unwrap_or_default())
            };
            RuleEntry {
                dev: settings.interface.clone(),
                number: rule.number,
                name: rule.name.clone(),
                traffic: match rule.hours {
                    Some(hours) => format!("{} {hours}", rule.traffic),
                    None => rule.traffic.to_string(),
                },
                action: rule.action.to_string(),
                addresses: self
                    .names
                    .as_ref()
                    .filter(|_| !rule.traffic.hosts.is_empty())
                    .map(|names| names.count(&rule.traffic.hosts)),
                upload: of(Direction::Upload),
                download: of(Direction::Download),
            }
        };
        Ok(settings.rules.iter().map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::{Holder, Queues};

    #[test]
    fn refused_control_groups_are_tried_again() {
        crate::apart::apart("refused_control_groups_are_tried_again", || {
            let text = "[[interface]]\nname = \"lo\"\nupload = \"1mbit\"\n\
                        qdisc = \"cake diffserv4\"\n\
                        [[rule]]\ncgroup = \"nowhere\"\ntier = \"voice\"\n";
            let settings = crate::config::parse(text).unwrap().remove(0);
            let mut ruled = Ruled::new();
            let upload = Some(Holder::Process(Queues::one(7)));
            let bits = marks::choose(settings.mark_bits, &Default::default()).unwrap().bits;
            let wanted = Wanted { interface: "lo".into(), upload, bits, ..Wanted::default() };
            ruled.choose_tiers(&settings.rules, bits).unwrap();
            if let Err(error) = ruled.create(wanted, [Plan::default(), Plan::default()]) {
                eprintln!("NOT RUN: refused_control_groups_are_tried_again: {error}");
                return;
            }
            ruled.table.as_mut().unwrap().lose();
            for look in 1..=2 {
                let error = ruled.follow_cgroups(&settings);
                assert!(matches!(error, Err(Error::System { .. })), "look {look}: {error:?}");
            }
        });
    }
}

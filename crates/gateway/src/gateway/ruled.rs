//! Rules of an interface: what of them holds, and how they come into its table.

use simnel_core::qdisc::Config;
use simnel_core::Time;

use super::{Gateway, QUEUE_NUMBERS};
use crate::direction::Direction;
use crate::error::Error;
use crate::marks;
use crate::names::{self, Known, Names};
use crate::nft::{self, Family, Ruling};
use crate::rules::{self, HostName, Moment, Plan, Rule, RuleEntry};
use crate::settings::Settings;
use crate::sys;

/// No expression that knows control groups.
const NO_CGROUPS: Error = Error::KernelLacks {
    what: "nft_socket with control groups, which rules with `cgroup` need",
    fix: "`modprobe nft_socket` (OpenWrt: the package kmod-nft-socket), Linux 5.13 with \
          CONFIG_SOCK_CGROUP_DATA, or rules with `port`",
};

impl Gateway {
    /// Rules of both directions, as the table has them.
    pub(super) fn plans(&self, settings: &Settings) -> Result<[Plan; 2], Error> {
        if !settings.rules.is_empty() && self.family()? == Family::Bridged {
            return Err(Error::RulesOnBridge(settings.interface.clone()));
        }
        let rules = rules::holding(&settings.rules, self.moment);
        let plan = |direction| match settings.direction(direction) {
            Some(config) => rules::plan(&rules, direction, config).map_err(Error::Rule),
            None => Ok(Plan::default()),
        };
        Ok([plan(Direction::Download)?, plan(Direction::Upload)?])
    }

    /// Bits of the mark that name tiers, if `rules` need them; those that were chosen once, stay.
    pub(super) fn tiers_for(&self, rules: &[Rule]) -> Result<u32, Error> {
        match self.tiers {
            0 if rules::need_mark(rules) => marks::choose_tiers(self.marks.bits),
            tiers => Ok(tiers),
        }
    }

    /// The discipline's settings as it is really told: where rules name tiers, cake reads our bits.
    pub(super) fn told(&self, config: &Config) -> Config {
        match self.tiers {
            0 => config.clone(),
            tiers => rules::reading_mark(config.clone(), tiers),
        }
    }

    /// Other rules, without losing a packet. Nothing changes if they do not fit.
    ///
    /// # Errors
    /// A rule and the discipline do not fit; or the kernel refuses them.
    pub(crate) fn set_rules(&mut self, rules: Vec<Rule>) -> Result<(), Error> {
        let settings = Settings { rules, ..self.settings.clone() };
        let plans = self.plans(&settings)?;
        let before = self.tiers;
        self.tiers = self.tiers_for(&settings.rules)?;
        if before != self.tiers {
            for direction in Direction::BOTH {
                let Some(config) = settings.direction(direction) else { continue };
                self.configure(direction, config)?;
            }
        }
        self.watch(&settings.rules)?;
        self.lay(plans)?;
        self.settings = settings;
        Ok(())
    }

    /// Gives the bits that name tiers up, once no rule needs them. At a look behind the change of
    /// rules: until then they are taken away from packets that were queued with them.
    ///
    /// # Errors
    /// The kernel or the data path does not take it; nothing is given up then.
    pub(crate) fn free_tiers(&mut self) -> Result<(), Error> {
        if self.tiers == 0 || rules::need_mark(&self.settings.rules) {
            return Ok(());
        }
        let before = std::mem::take(&mut self.tiers);
        let told = Direction::BOTH.into_iter().try_for_each(|direction| {
            let config = self.settings.direction(direction).cloned();
            config.map_or(Ok(()), |config| self.configure(direction, &config))
        });
        let laid = told.and_then(|()| self.lay(self.plans(&self.settings)?));
        laid.inspect_err(|_| self.tiers = before)
    }

    /// Lets those rules hold whose hours it is.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub(crate) fn follow_clock(&mut self) -> Result<(), Error> {
        let moment = Moment::now();
        if moment == self.moment {
            return Ok(());
        }
        let holding = |moment| rules::holding(&self.settings.rules, moment);
        let are_others = holding(self.moment) != holding(moment);
        let before = std::mem::replace(&mut self.moment, moment);
        if !are_others {
            return Ok(());
        }
        let laid = self.plans(&self.settings).and_then(|plans| self.lay(plans));
        // What fails is tried again at the next look.
        laid.inspect_err(|_| self.moment = before)
    }

    /// Puts `plans` into the table.
    pub(super) fn lay(&mut self, plans: [Plan; 2]) -> Result<(), Error> {
        let ruling = self.ruling(plans);
        let known = self.known();
        match &mut self.table {
            Some(table) => table.set_rules(ruling, &known),
            None => Ok(()),
        }
    }

    /// `plans`, and what they need beside.
    pub(super) fn ruling(&self, plans: [Plan; 2]) -> Ruling {
        let names = self.names.as_ref().map(Names::group);
        Ruling { plans, tiers: self.tiers, names, cgroups: self.cgroups.clone() }
    }

    /// Follows control groups and host names of `rules`, if they have such.
    pub(super) fn watch(&mut self, rules: &[Rule]) -> Result<(), Error> {
        self.cgroups = rules::cgroups(rules);
        if !self.cgroups.is_empty() && nft::judge_cgroups().is_err() {
            return Err(NO_CGROUPS);
        }
        self.watch_names(rules)
    }

    /// Finds control groups that have come or gone.
    ///
    /// # Errors
    /// The kernel refuses the rules.
    pub(crate) fn follow_cgroups(&mut self) -> Result<(), Error> {
        let found = rules::cgroups(&self.settings.rules);
        if found == self.cgroups {
            return Ok(());
        }
        self.cgroups = found;
        self.lay(self.plans(&self.settings)?)
    }

    fn watch_names(&mut self, rules: &[Rule]) -> Result<(), Error> {
        let mut hosts: Vec<HostName> =
            rules.iter().flat_map(|rule| rule.traffic.hosts.clone()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.is_empty() {
            self.names = None;
            return Ok(());
        }
        let names = match &mut self.names {
            Some(names) => names,
            none => {
                let Settings { control_dir, interface, .. } = &self.settings;
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
    pub(super) fn known(&self) -> Vec<Known> {
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
    pub(crate) fn rules(&self) -> Result<Vec<RuleEntry>, Error> {
        let Some(table) = &self.table else { return Ok(Vec::new()) };
        let counted = table.counted().map_err(|e| Error::system("reading the rules", e))?;
        let entry = |rule: &Rule| {
            let of = |direction| {
                self.settings.direction(direction)?;
                Some(counted.get(&(direction, rule.number)).copied().unwrap_or_default())
            };
            RuleEntry {
                dev: self.settings.interface.clone(),
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
        Ok(self.settings.rules.iter().map(entry).collect())
    }
}

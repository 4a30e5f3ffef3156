//! Rules of an interface beside its disciplines, which must be told where a tier stands.

use simnel_core::Time;

use super::Gateway;
use crate::direction::Direction;
use crate::error::Error;
use crate::names::Names;
use crate::rules::{self, Rule, RuleEntry};
use crate::settings::Settings;

impl Gateway {
    /// Other rules, without losing a packet. Nothing changes if they do not fit.
    ///
    /// # Errors
    /// A rule and the discipline do not fit; or the kernel refuses them.
    pub(crate) fn set_rules(&mut self, rules: Vec<Rule>) -> Result<(), Error> {
        let settings = Settings { rules, ..self.settings.clone() };
        let plans = self.ruled.plans(&settings)?;
        if self.ruled.choose_tiers(&settings.rules, self.marks.bits)? {
            for direction in Direction::BOTH {
                let Some(config) = settings.direction(direction) else { continue };
                self.configure(direction, config)?;
            }
        }
        self.ruled.watch(&settings)?;
        self.ruled.lay(plans)?;
        self.settings = settings;
        Ok(())
    }

    /// Gives the bits that name tiers up, once no rule needs them. At a look behind the change of
    /// rules: until then they are taken away from packets that were queued with them.
    ///
    /// # Errors
    /// The kernel or the data path does not take it; nothing is given up then.
    pub(crate) fn free_tiers(&mut self) -> Result<(), Error> {
        if self.ruled.tiers() == 0 || rules::need_mark(&self.settings.rules) {
            return Ok(());
        }
        let before = self.ruled.give_up_tiers();
        let told = Direction::BOTH.into_iter().try_for_each(|direction| {
            let config = self.settings.direction(direction).cloned();
            config.map_or(Ok(()), |config| self.configure(direction, &config))
        });
        let laid = told.and_then(|()| self.ruled.lay(self.ruled.plans(&self.settings)?));
        laid.inspect_err(|_| self.ruled.keep_tiers(before))
    }

    /// Lets those rules hold whose hours and control groups are there now.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub(crate) fn follow_rules(&mut self) -> Result<(), Error> {
        self.ruled.follow_clock(&self.settings)?;
        self.ruled.follow_cgroups(&self.settings)?;
        self.free_tiers()
    }

    /// Learns addresses of host names from answers that have passed.
    ///
    /// # Errors
    /// The kernel does not take them.
    pub(crate) fn learn_names(&mut self, now: Time) -> Result<(), Error> {
        self.ruled.learn_names(now)
    }

    /// Addresses of host names, where rules have host names.
    pub(crate) fn names(&self) -> Option<&Names> {
        self.ruled.names()
    }

    /// The rules with what they have counted.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn rules(&self) -> Result<Vec<RuleEntry>, Error> {
        self.ruled.entries(&self.settings)
    }
}

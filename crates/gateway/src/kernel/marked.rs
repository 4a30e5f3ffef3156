//! Rules of an interface that the kernel shapes: tiers in marks that its cakes read, classes of the
//! module's htb and drr.
//!
//! What leaves is marked in front of its discipline, or given its class as a priority. What arrives
//! has passed its discipline before any table sees it: there the mark is that of its connection,
//! which a filter copies (`nft/marking.rs`, `redirect.rs`). The table lives as long as the process,
//! and the disciplines longer: what they find no mark in, they sort by code points.

use simnel_core::qdisc::Config;
use simnel_core::Time;

use super::qdiscs::Qdiscs;
use super::redirect;
use super::shaped::HANDLE;
use super::steered::Steered;
use crate::direction::Direction;
use crate::error::Error;
use crate::names::Names;
use crate::nft::{Holder, Table, Wanted};
use crate::rules::{self, RuleEntry};
use crate::settings::Settings;

impl Steered {
    /// Lets the rules of `settings` hold, in a table that is there once there are any. Disciplines
    /// are to be told of it then.
    pub(super) fn lay_rules(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.rules.is_empty() && self.ruled.table.is_none() {
            return Ok(());
        }
        let plans = self.ruled.plans(settings)?;
        let is_same =
            |way| self.settings.direction(way).is_some() == settings.direction(way).is_some();
        if !Direction::BOTH.into_iter().all(is_same) {
            self.ruled.table.take().map_or(Ok(()), Table::remove)?;
        }
        self.ruled.choose_tiers(&settings.rules, settings.mark_bits.unwrap_or_default())?;
        self.ruled.watch(settings)?;
        if self.ruled.table.is_some() {
            return self.ruled.lay(plans);
        }
        let holder = |direction| settings.direction(direction).map(|_| Holder::Kernel);
        let wanted = Wanted {
            interface: settings.interface.clone(),
            download: holder(Direction::Download),
            upload: holder(Direction::Upload),
            ..Wanted::default()
        };
        self.ruled.create(wanted, plans)
    }

    /// The settings as the disciplines are told them.
    pub(super) fn marked(&self) -> Settings {
        let mut settings = self.settings.clone();
        let tell = |config: &mut Config| *config = self.ruled.told(config);
        for direction in Direction::BOTH {
            settings.direction_mut(direction).iter_mut().for_each(tell);
            settings.plain.direction_mut(direction).iter_mut().for_each(tell);
        }
        settings
    }

    /// Gives what arrives its connection's bits, where rules decide about it, and leads it to the
    /// class that they name.
    pub(super) fn restore_marks(&self, kernel: &Qdiscs, number: u32) -> Result<(), Error> {
        let Some(download) = &self.settings.download else { return Ok(()) };
        let are_ruled = !self.settings.rules.is_empty();
        let bits = if are_ruled { self.ruled.tiers() } else { 0 };
        redirect::restore(kernel, number, bits)?;
        let has = |class: u16| download.children().iter().any(|(other, _)| *other as u16 == class);
        let numbered = rules::numbered_classes(&self.settings.rules).into_iter();
        let classes = numbered.filter(|(minor, _)| has(*minor)).map(|(minor, number)| {
            (u32::from(number) << bits.trailing_zeros(), HANDLE | u32::from(minor))
        });
        redirect::choose(kernel, number, HANDLE, bits, classes)
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

    /// Gives table and bits up once there are no rules, at a look after the change. Until then the
    /// bits are taken away from packets that were queued with them.
    fn free_tiers(&mut self) -> Result<(), Error> {
        if self.ruled.table.is_none() || !self.settings.rules.is_empty() {
            return Ok(());
        }
        let before = self.ruled.give_up_tiers();
        self.hold().inspect_err(|_| self.ruled.keep_tiers(before))?;
        self.ruled.table.take().map_or(Ok(()), Table::remove)
    }

    /// Addresses of host names, where rules have host names.
    pub(crate) fn names(&self) -> Option<&Names> {
        self.ruled.names()
    }

    /// Learns addresses of host names from answers that have passed.
    ///
    /// # Errors
    /// The kernel does not take them.
    pub(crate) fn learn_names(&mut self, now: Time) -> Result<(), Error> {
        self.ruled.learn_names(now)
    }

    /// The rules with what they have counted.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn rules(&self) -> Result<Vec<RuleEntry>, Error> {
        self.ruled.entries(&self.settings)
    }
}

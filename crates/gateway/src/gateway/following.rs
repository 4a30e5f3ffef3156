//! Rates of a gateway's disciplines, as whoever drives them sees it.

use simnel_autorate::RoundTrips;
use simnel_core::Rate;

use super::Gateway;
use crate::autorate::{Line, Passed};
use crate::direction::Direction;
use crate::error::Error;
use crate::{sys, words};

impl Line for Gateway {
    /// Counters are the threads' own, at all times.
    fn look(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn passed(&self, direction: Direction) -> Option<Passed> {
        let lanes = self.lanes_of(direction).map(|lane| lane.remote.passed());
        lanes.reduce(|all, lane| Passed {
            arrived: all.arrived.wrapping_add(lane.arrived),
            released: all.released.wrapping_add(lane.released),
            backlog: all.backlog.saturating_add(lane.backlog),
        })
    }

    /// RTTs of passing TCP, which from now on are looked for.
    fn round_trips(&mut self) -> Option<&RoundTrips> {
        self.passing.ask(sys::now());
        Some(self.passing.trips())
    }

    /// Less than [`Gateway::change`], which takes longer.
    fn set_rate(&mut self, direction: Direction, rate: Rate) -> Result<(), Error> {
        let present = self.settings.direction(direction);
        let Some(config) = present.and_then(|present| present.with_rate(rate, words::burst)) else {
            return Ok(());
        };
        let other =
            present.is_some_and(|p| p.takes_super_packets() != config.takes_super_packets());
        self.tell(direction, &config)?
            .map_err(|e| Error::Discipline { direction, reason: e.to_string() })?;
        if other {
            self.lanes_of(direction)
                .try_for_each(|lane| lane.set_whole(&config, &self.segments))?;
        }
        *self.settings.direction_mut(direction) = Some(config);
        Ok(())
    }
}

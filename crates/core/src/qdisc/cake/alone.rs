//! In the place of `parallel` where there are no 64-bit atomics: nobody has a seat among others.

use super::hosts::End;
use super::tins::Tins;
use super::Cake;
use crate::random::Random;
use crate::steps::Budget;
use crate::time::Time;

/// One of several disciplines that share a rate: there is none.
#[derive(Debug)]
pub enum Member {}

/// A place among others: there is none.
#[derive(Debug)]
pub(super) enum Seat {}

impl Seat {
    pub(super) fn clear(&mut self) {
        match *self {}
    }
}

/// The loads of hosts over all queues: there are none.
#[derive(Debug)]
pub(super) enum Everywhere {}

impl Everywhere {
    pub(super) fn count(&self, _: u32, _: End, _: u32) {
        match *self {}
    }

    pub(super) fn discount(&self, _: u32, _: End, _: u32, _: u16) {
        match *self {}
    }
}

impl Cake {
    pub(super) fn leave_rate_to_seat(&mut self) {}
}

impl Tins {
    pub(super) fn take_seat_of(&mut self, _: &mut Tins) {}

    pub(super) fn wake_parallel(&mut self, _: usize, _: u32, _: &mut Random) {}

    pub(super) fn choose_parallel(
        &mut self,
        _: usize,
        _: Time,
        _: &mut Random,
        _: &Budget,
    ) -> Option<u32> {
        None
    }

    pub(super) fn leave_line(&mut self) {}

    pub(super) fn sent_parallel(&mut self, _: usize, _: u32, _: u32) {}

    pub(super) fn dropped_parallel(&mut self, _: usize, _: u32, _: u32, _: Time) {}

    pub(super) fn charge_line(&mut self, _: usize, _: u32, _: Time) {}

    pub(super) fn start_parallel(&mut self, _: usize, _: Time) {}

    pub(super) fn tin_of_seat(&self) -> Option<usize> {
        None
    }

    pub(super) fn bulk_elsewhere(&self, _: usize) -> u32 {
        0
    }
}

//! Either of two schedulers, chosen at run time.
//!
//! A caller that asks for every packet asks once which it is, and then calls that one.

use super::savings::Savings;
use super::scheduler::{Head, Scheduler};
use super::Scheduled;
use crate::steps::Budget;

/// A scheduler `S`, or limited deficit savings in its place.
#[derive(Clone, Debug)]
pub enum Sharing<S> {
    /// Empty queues earn nothing.
    Plain(S),
    /// DRR-LDS: empty queues save up, too.
    Savings(Savings),
}

/// Does the same with either scheduler of a [`Sharing`].
macro_rules! either {
    ($sharing:expr, $scheduler:ident => $what:expr) => {
        match $sharing {
            Sharing::Plain($scheduler) => $what,
            Sharing::Savings($scheduler) => $what,
        }
    };
}
pub(crate) use either;

impl<S> Sharing<S> {
    /// `plain`, or savings of up to a limit in bytes. All of `flows` are empty.
    pub fn new<F: Scheduled>(savings: Option<u32>, flows: &mut [F], plain: S) -> Sharing<S> {
        let numbers = 0..flows.len() as u32;
        match savings {
            Some(limit) => Sharing::Savings(Savings::new(limit, flows, numbers)),
            None => Sharing::Plain(plain),
        }
    }
}

impl<F: Scheduled, S: Scheduler<F>> Scheduler<F> for Sharing<S> {
    #[inline(always)]
    fn arrived(&mut self, flows: &mut [F], flow: u32, quantum: u32, head: impl Head<F>) -> bool {
        either!(self, scheduler => scheduler.arrived(flows, flow, quantum, head))
    }

    #[inline(always)]
    fn choose(
        &mut self,
        flows: &mut [F],
        head: impl Head<F>,
        quantum: impl FnMut(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        either!(self, scheduler => scheduler.choose(flows, head, quantum, budget))
    }

    #[inline(always)]
    fn sent(&mut self, flows: &mut [F], flow: u32, len: u32, head: impl Head<F>) {
        either!(self, scheduler => scheduler.sent(flows, flow, len, head));
    }

    fn dropped(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        either!(self, scheduler => scheduler.dropped(flows, flow, head));
    }

    #[inline(always)]
    fn found_empty(&mut self, flows: &mut [F], flow: u32) {
        either!(self, scheduler => scheduler.found_empty(flows, flow));
    }
}

#[cfg(test)]
mod tests {
    use super::super::active::ActiveList;
    use super::super::drr::Drr;
    use super::super::sparse::Sparse;
    use super::super::tests::{head, Flow};
    use super::*;
    use std::vec::Vec;

    fn choose(scheduler: &mut impl Scheduler<Flow>, flows: &mut [Flow]) -> u32 {
        scheduler.choose(flows, head, |_| 1500, &Budget::default()).unwrap()
    }

    fn serves_all_that_comes(mut flows: Vec<Flow>, mut scheduler: impl Scheduler<Flow>) {
        let mut sent = [0u32; 4];
        let sizes = [300, 1500, 700, 64];
        for round in 0..20_000 {
            // All but flow 3 always have more.
            for flow in 0..if round % 1000 == 0 { 4 } else { 3 } {
                let was_empty = flows[flow].packets.is_empty();
                if was_empty || flow == 3 {
                    flows[flow].packets.push_back(sizes[flow]);
                    let idle = scheduler.arrived(&mut flows, flow as u32, 1500, head);
                    assert!(!idle || was_empty);
                }
            }
            loop {
                let flow = choose(&mut scheduler, &mut flows);
                let Some(len) = flows[flow as usize].packets.pop_front() else {
                    scheduler.found_empty(&mut flows, flow);
                    continue;
                };
                sent[flow as usize] += len;
                let loses_the_rest = round % 7 == 0 && flow == 2;
                if loses_the_rest {
                    flows[2].packets.push_back(sizes[2]);
                    scheduler.arrived(&mut flows, 2, 1500, head);
                    flows[2].packets.clear();
                }
                scheduler.sent(&mut flows, flow, len, head);
                if loses_the_rest {
                    scheduler.dropped(&mut flows, 2, None);
                }
                break;
            }
        }
        assert_eq!(sent[3], 20 * 64);
        assert!(sent.iter().all(|bytes| *bytes > 0), "{sent:?}");
        while flows.iter().any(|flow| !flow.packets.is_empty()) {
            let flow = choose(&mut scheduler, &mut flows);
            match flows[flow as usize].packets.pop_front() {
                Some(len) => scheduler.sent(&mut flows, flow, len, head),
                None => scheduler.found_empty(&mut flows, flow),
            }
        }
    }

    #[test]
    fn every_scheduler_serves_all_that_comes() {
        let mut flows = std::vec![Flow::default(); 4];
        serves_all_that_comes(flows.clone(), Drr::default());
        serves_all_that_comes(flows.clone(), Sparse::<ActiveList>::default());
        let sharing = Sharing::new(None, &mut flows, Drr::default());
        serves_all_that_comes(flows.clone(), sharing);
        let sparse = Sharing::new(None, &mut flows, Sparse::<ActiveList>::default());
        serves_all_that_comes(flows.clone(), sparse);
        let sharing = Sharing::new(Some(5_000), &mut flows, Drr::default());
        serves_all_that_comes(flows, sharing);
    }
}

//! Other settings at run time: whatever changes, no queued packet is lost.
//!
//! Where packets lie depends on tiers, flows, queues and room: if one of these changes, all packets
//! are taken out and queued anew, in the order in which they had come.

use alloc::vec::Vec;

use super::autorate::Autorate;
use super::overflow;
use super::tins::Tins;
use super::{Cake, Params};
use crate::arena::Arena;
use crate::packet::Packet;
use crate::qdisc::{ConfigError, PacketOwner};
use crate::time::Time;

impl Cake {
    /// Takes on `params`, or refuses them and stays as it is.
    pub(super) fn reconfigure(
        &mut self,
        params: &Params,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        params.validate()?;
        let old = core::mem::replace(&mut self.params, *params);
        if params.bandwidth != old.bandwidth || !old.autorate_ingress {
            self.autorate = Autorate::new(params.bandwidth);
        }

        let grows = params.capacity(self.device.mtu) > self.arena.capacity();
        let resorts = params.diffserv != old.diffserv
            || params.flow_mode != old.flow_mode
            || params.host_load != old.host_load
            || params.host_guard != old.host_guard
            || params.savings != old.savings
            || params.queues != old.queues;
        let refilters = params.ack_filter != old.ack_filter;
        if grows || resorts || refilters {
            let packets = self.drain();
            if grows {
                self.arena = Arena::new(params.capacity(self.device.mtu));
            }
            self.reserve_ack_store();
            self.rebuild_tins(params.diffserv == old.diffserv);
            for packet in packets {
                let tin = self.select_tin(&packet);
                let queue = self.tins.queue_of(tin, &packet, &mut self.arena, &mut self.heap);
                let Some((slot, was_empty, _)) = self.append(&packet, tin, queue) else {
                    self.refuse(&packet, packet.enqueued, owner);
                    continue;
                };
                self.tins.note_arrival(tin, queue, packet.len);
                if was_empty {
                    self.tins.wake(tin, queue, &packet, packet.adj_len, &mut self.random);
                }
                if let Some(store) = &mut self.acks {
                    store.set(slot, owner.ack_view(&packet));
                }
            }
            self.heap.renew(&self.tins.flows);
        }
        self.apply_params();
        if self.arena.is_empty() {
            self.clock.start(now);
        }
        let mut before = u32::MAX;
        while self.is_over_limit() && self.arena.len() < before {
            before = self.arena.len();
            self.make_room(None, now, owner);
        }
        Ok(())
    }

    /// Every queued packet in order of arrival; the queues are empty afterwards.
    fn drain(&mut self) -> Vec<Packet> {
        let mut packets = Vec::with_capacity(self.arena.len() as usize);
        for flow in &mut self.tins.flows.queues {
            packets.extend(core::iter::from_fn(|| self.arena.pop(&mut flow.packets).copied()));
        }
        // Stable: packets of one flow keep their order within the same instant.
        packets.sort_by_key(|packet| packet.enqueued);
        self.memory = 0;
        packets
    }

    /// Empty queues in new tiers; counters of the tiers are kept where the tiers are.
    fn rebuild_tins(&mut self, keep_counters: bool) {
        let mut fresh = Tins::new(&self.params);
        if keep_counters {
            for (tin, old) in fresh.iter_mut().zip(self.tins.iter_mut()) {
                tin.counters = old.counters;
                tin.counters.unresponsive = 0;
                tin.time_next = old.time_next;
            }
        }
        self.tins = fresh;
        self.heap = overflow::Heap::new(self.params.queues);
        (self.current_tin, self.current_queue) = (0, 0);
        self.tiers = super::tiers::tiers(self.params.diffserv);
    }
}

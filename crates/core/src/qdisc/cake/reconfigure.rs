//! Other settings at run time: whatever changes, no queued packet is lost.
//!
//! A packet's place depends on tins, flow mode, number of queues, host load, host guard and
//! savings. If one of these changes, all packets are taken out and queued anew, in the order in
//! which they had come. Otherwise all that was learnt of flows stays, as in Linux.

use super::autorate::Autorate;
use super::{Cake, Params, MAX_TINS};
use crate::arena::List;
use crate::qdisc::{DropReason, PacketOwner};
use crate::rate::Arithmetic;
use crate::time::Time;

impl Cake {
    /// Takes on the settings of `spare`, and as much of its memory as they need.
    pub(super) fn reconfigure(&mut self, spare: &mut Cake, now: Time, owner: &mut dyn PacketOwner) {
        let params = Params { forget_sizes: false, ..spare.params };
        self.is_cut_short = false;
        self.device.mtu = spare.device.mtu;
        let old = core::mem::replace(&mut self.params, params);
        if params.bandwidth != old.bandwidth || !old.autorate_ingress {
            self.autorate = Autorate::new(params.bandwidth);
        }
        let (framing, before) = (params.framing, old.framing);
        if spare.params.forget_sizes
            || (framing.overhead, framing.compensate) != (before.overhead, before.compensate)
        {
            self.sizes.forget_extremes();
        }
        let grows = spare.arena.capacity() > self.arena.capacity();
        let resorts = params.diffserv != old.diffserv
            || params.flow_mode != old.flow_mode
            || params.host_load != old.host_load
            || params.host_guard != old.host_guard
            || params.savings != old.savings
            || params.queues != old.queues;
        if resorts {
            self.sort_into(spare, &old, owner);
        } else if grows || params.ack_filter != old.ack_filter {
            self.take_room(spare, owner);
        }
        let was_unlimited = self.clock.is_unlimited();
        self.apply_params();
        if self.tins.count() < MAX_TINS {
            // As in Linux, where a change ends at a tin beyond the last: the first is next.
            self.current_tin_index = 0;
        }
        // Linux sends at once what the new rate would have let pass since the queue was last empty.
        let owes_no_burst = was_unlimited && self.device.arithmetic == Arithmetic::Exact;
        if self.arena.is_empty() || owes_no_burst {
            self.clock.start(now);
        }
        let mut before = u32::MAX;
        while self.is_over_limit() && self.arena.len() < before {
            before = self.arena.len();
            self.make_room(None, now, owner);
        }
    }

    /// Moves all packets to the memory of `spare`, if that is larger, and has it keep the headers
    /// that its ACK filter looks at.
    fn take_room(&mut self, spare: &mut Cake, owner: &mut dyn PacketOwner) {
        let queues = &mut self.tins.flows.queues;
        let lists = queues.iter_mut().map(|flow| &mut flow.packets);
        self.arena.take_room(&mut spare.arena, lists);
        core::mem::swap(&mut self.acks, &mut spare.acks);
        let Some(store) = &mut self.acks else { return };
        for flow in queues.iter() {
            let mut next = flow.packets.head();
            while let Some((slot, packet)) = next.and_then(|at| Some((at, self.arena.get(at)?))) {
                store.set(slot, owner.ack_view(packet).as_ref());
                next = self.arena.next(slot);
            }
        }
    }

    /// Moves all packets into the queues of `spare`, which are empty, in the order of their coming.
    fn sort_into(&mut self, spare: &mut Cake, old: &Params, owner: &mut dyn PacketOwner) {
        let mut waiting = List::EMPTY;
        for flow in &mut self.tins.flows.queues {
            self.arena.append(&mut waiting, &mut flow.packets);
        }
        self.arena.sort(&mut waiting);
        self.arena.take_room(&mut spare.arena, core::iter::once(&mut waiting));
        self.take_tins(spare, self.params.diffserv == old.diffserv);
        core::mem::swap(&mut self.acks, &mut spare.acks);
        self.memory = 0;
        while let Some(&mut packet) = self.arena.pop(&mut waiting) {
            self.books.went(packet.len);
            self.books.withdraw(packet.len);
            let tin_index = self.select_tin(&packet);
            let flow_index =
                self.tins.flow_index_of(tin_index, &packet, &mut self.arena, &mut self.heap);
            let Some((slot, was_empty, _)) = self.append(&packet, tin_index, flow_index) else {
                self.books.refuse(&packet, packet.enqueued, DropReason::Overlimit, owner);
                continue;
            };
            self.tins.note_arrival(tin_index, flow_index, packet.len);
            if was_empty {
                self.tins.wake(tin_index, flow_index, &packet, packet.adj_len, &mut self.random);
            }
            if let Some(store) = &mut self.acks {
                store.set(slot, owner.ack_view(&packet).as_ref());
            }
        }
        self.heap.renew(&self.tins.flows);
    }

    /// Takes the tins of `spare`, whose queues are empty; counters of the tins are kept where the
    /// tins are.
    fn take_tins(&mut self, spare: &mut Cake, keeps_counters: bool) {
        core::mem::swap(&mut self.tins, &mut spare.tins);
        self.tins.take_seat_of(&mut spare.tins);
        if keeps_counters {
            for (tin, old) in self.tins.iter_mut().zip(spare.tins.iter_mut()) {
                tin.counters = old.counters;
                tin.counters.unresponsive = 0;
                tin.time_next = old.time_next;
            }
        }
        core::mem::swap(&mut self.heap, &mut spare.heap);
        (self.current_tin_index, self.current_flow_index) = (0, 0);
        self.tin_map = spare.tin_map;
    }
}

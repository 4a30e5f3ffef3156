//! Settings and statistics, as whoever runs the discipline asks for them.

use alloc::boxed::Box;

use super::{Cake, Params, Stats, TinStats, MAX_TINS};
use crate::packet::Packet;
use crate::qdisc::stats::narrow;
use crate::qdisc::{
    spare_of, Backlog, Class, Config, ConfigError, Detail, Device, Managed, PacketOwner, Qdisc,
    Snapshot,
};
use crate::sched::Standing;
use crate::time::Time;

impl Managed for Cake {
    fn snapshot(&self) -> Snapshot {
        let short = |n: u32| n.min(u32::from(u16::MAX)) as u16;
        let mut snapshot = Snapshot {
            totals: self.books.totals(self.arena.len()),
            backlog: self.backlog(),
            detail: Detail::Cake(Stats {
                memory_used: narrow(self.memory_used),
                memory_limit: narrow(self.memory_limit),
                overruns: self.overruns,
                capacity_estimate: self.autorate.capacity(),
                min_network_size: short(self.sizes.network.0),
                max_network_size: short(self.sizes.network.1),
                min_adj_size: short(self.sizes.adjusted.0),
                max_adj_size: short(self.sizes.adjusted.1),
                avg_hdr_offset: ((self.sizes.offset + 0x8000) >> 16) as u16,
                tin_count: self.tins.count() as u8,
                tins: [TinStats::default(); MAX_TINS],
            }),
        };
        // In place: they are a kilobyte of stack.
        if let Detail::Cake(Stats { tins, .. }) = &mut snapshot.detail {
            for (place, stats) in tins.iter_mut().enumerate() {
                let Some(tin_index) = self.tin_map.listed(place) else { break };
                *stats = self.tins.tin(tin_index).stats(self.tins.flows.of_tin(tin_index));
            }
        }
        snapshot
    }

    fn marked(&self) -> u64 {
        self.books.totals.marked
    }

    fn class(&self, n: u32) -> Option<Class> {
        let queues = self.params.queues.max(1);
        let tin_index = self.tin_map.listed((n / queues) as usize)?;
        let flow = self.tins.flows.of_tin(tin_index).get((n % queues) as usize)?;
        let (count, drop_next) = flow.cobalt.spell();
        let (p_drop, blue_timer) = flow.cobalt.blue();
        let packets = self.arena.count(&flow.packets);
        Some(Class {
            backlog: Backlog { packets, bytes: flow.backlog.into() },
            is_used: flow.account.standing != Standing::Idle,
            is_sparse: flow.is_sparse(),
            deficit: flow.account.deficit,
            count,
            lastcount: 0,
            drop_next,
            p_drop,
            blue_timer,
        })
    }

    fn queue_of(&self, packet: &Packet) -> Option<u32> {
        let tin_index = self.select_tin(packet);
        let place = self.tin_map.place(tin_index) as u32;
        let queue = self.tins.flows.find(tin_index, self.params.flow_mode, packet)?;
        Some(place * self.params.queues.max(1) + queue)
    }

    fn config(&self) -> Config {
        Config::Cake(Params { bandwidth: self.rate, ..self.params })
    }

    fn prepare(&self, config: &Config, _: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.prepare_on(config, &self.device)
    }

    fn prepare_on(
        &self,
        config: &Config,
        device: &Device,
    ) -> Result<Box<dyn Managed + Send>, ConfigError> {
        let Config::Cake(params) = config else { return Err(ConfigError::OtherDiscipline) };
        // Room is not given up, since all packets stay.
        Ok(Cake::boxed(self.arena.capacity(), params, device)?)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of(spare) else { return };
        self.reconfigure(spare, now, owner);
    }
}

//! A FIFO behind a virtual clock: the least discipline that shows whether the data path is exact.
//!
//! Its settings travel in `cake`'s, the only ones with a rate: `memlimit` is the limit in packets,
//! `ingress` means "set CE on all that allow it". Words: `shaper rate 10mbit limit 100 wash mark`.

use std::collections::VecDeque;

use simnel_core::qdisc::{cake, Backlog, ConfigError, Device, DropReason, PacketOwner};
use simnel_core::rate::{Arithmetic, ByteTime};
use simnel_core::tc::stats::{Detail, Snapshot, Totals};
use simnel_core::tc::Config;
use simnel_core::{Packet, Qdisc, Rate, Time};
use simnel_gateway::{BoxedQdisc, Disciplines};

/// Knows `shaper` only.
pub struct Standin;

impl Disciplines for Standin {
    fn build(&self, config: &Config, _: &Device) -> Result<BoxedQdisc, ConfigError> {
        let Config::Cake(params) = config else { return Err(ConfigError::OtherDiscipline) };
        // A limit of 7 stands for "another discipline", so that a change must replace this one.
        let fixed = params.memlimit == 7;
        Ok(Box::new(Shaper {
            params: *params,
            fixed,
            queue: VecDeque::with_capacity(params.memlimit as usize),
            free_at: Time::ZERO,
            remainder: 0,
            totals: Totals::default(),
        }))
    }

    fn parse(&self, words: &str) -> Result<Config, String> {
        let mut words = words.split_whitespace();
        if words.next() != Some("shaper") {
            return Err("expected `shaper`".into());
        }
        let mut params = cake::Params { memlimit: 1000, ..Default::default() };
        while let Some(word) = words.next() {
            match word {
                "rate" => {
                    let text = words.next().and_then(|w| w.strip_suffix("kbit"));
                    let kbit: u64 = text.and_then(|t| t.parse().ok()).ok_or("rate in kbit")?;
                    params.bandwidth = Rate::from_bits(kbit * 1000);
                }
                "limit" => {
                    params.memlimit =
                        words.next().and_then(|w| w.parse().ok()).ok_or("limit in packets")?;
                }
                "wash" => params.wash = true,
                "mark" => params.ingress = true,
                other => return Err(format!("unknown word `{other}`")),
            }
        }
        Ok(Config::Cake(params))
    }

    fn print(&self, config: &Config) -> String {
        let Config::Cake(params) = config else { return String::new() };
        format!("shaper rate {}kbit limit {}", params.bandwidth.bits() / 1000, params.memlimit)
    }
}

struct Shaper {
    params: cake::Params,
    fixed: bool,
    queue: VecDeque<Packet>,
    free_at: Time,
    remainder: u64,
    totals: Totals,
}

impl Qdisc for Shaper {
    fn enqueue(&mut self, mut packet: Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.totals.enqueued_packets += 1;
        if self.queue.len() >= self.params.memlimit as usize {
            self.totals.dropped[DropReason::Overlimit as usize] += 1;
            return owner.dropped(packet, DropReason::Overlimit);
        }
        if self.queue.is_empty() {
            self.free_at = self.free_at.max(now);
        }
        packet.enqueued = now;
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn PacketOwner) -> Option<Packet> {
        if self.free_at > now {
            return None;
        }
        let mut packet = self.queue.pop_front()?;
        let time = ByteTime::new(self.params.bandwidth, Arithmetic::Exact);
        self.free_at += time.charge(packet.len, &mut self.remainder);
        if self.params.ingress {
            packet.mark_ce();
        }
        if self.params.wash {
            packet.wash();
        }
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }

    fn next_event(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.free_at)
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(|p| u64::from(p.len)).sum();
        Backlog { packets: self.queue.len() as u32, bytes }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { totals: self.totals, backlog: self.backlog(), detail: Detail::None }
    }

    fn config(&self) -> Config {
        Config::Cake(self.params)
    }

    fn configure(
        &mut self,
        config: &Config,
        _: Time,
        _: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        match config {
            Config::Cake(params) if !self.fixed && params.memlimit != 7 => {
                self.params = *params;
                Ok(())
            }
            _ => Err(ConfigError::OtherDiscipline),
        }
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        for packet in self.queue.drain(..) {
            owner.dropped(packet, DropReason::Reset);
        }
    }
}

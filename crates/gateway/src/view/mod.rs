//! An interface's doings, for people: rates, delays, hosts, flows, and a line in words.
//!
//! A [`Look`] is what the daemon, or the kernel, says at one moment; its counters only grow. A
//! [`Viewer`] keeps the last looks and makes a [`View`] of them. Rates are since the look before;
//! quantiles of sojourn are over the last [`WINDOW`] looks, and over the last alone for charts.
//! Both the terminal and the web show that.
//!
//! Added latency is the time in the discipline. Of a discipline in the kernel there are counters,
//! and cake's tiers; quantiles of delay if it is the module's. Its hosts and flows are those that
//! the kernel's connection tracking tells, without what waits of them.

mod kernel;
mod mdns;
mod names;
pub mod words;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::path::Path;

use serde::Serialize;
use simnel_core::qdisc::{self, cake, Config, Detail, DropReason, Snapshot};
use simnel_core::sojourns::quantile;

use crate::autorate;
use crate::control::{Below, Client, Entry, Request};
use crate::direction::Direction;
use crate::error::Error;
use crate::flows::{FlowEntry, HeldFlow, LineEntry};
use crate::kernel::{Flows, Tracked};
use crate::presence::Change;
use crate::sys;
pub use kernel::KernelEntry;
pub use names::{Names, Naming};

/// Looks whose packets the quantiles are of.
pub const WINDOW: usize = 10;
const SECOND: u128 = 1_000_000_000;

/// One interface at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// When, in nanoseconds of a clock that never goes back.
    pub at_ns: u64,
    /// Directions that a daemon shapes.
    pub entries: Vec<Entry>,
    /// The reason why nothing passes, or passes unshaped.
    pub trouble: Option<Change>,
    /// The controller that makes their rates follow the line.
    pub autorate: Option<autorate::Report>,
    /// Sojourn times of these, and of what the kernel shapes where it tells them.
    pub lines: Vec<LineEntry>,
    /// Their flows.
    pub flows: Vec<FlowEntry>,
    /// Directions that the kernel shapes.
    pub kernel: Vec<KernelEntry>,
    /// The reason why not all flows are told, or not their counts.
    pub untold: Option<String>,
}

impl Look {
    /// Looks at `interface`; `tracked` are connections of an interface that the kernel shapes.
    fn take(directory: &Path, interface: &str, tracked: &mut Tracked) -> Result<Look, Error> {
        let at_ns = sys::now().0;
        match Client::connect(directory, interface) {
            Ok(daemon) => Look::through(daemon, interface, at_ns),
            Err(not_up @ Error::NotUp { .. }) => {
                let kernel = KernelEntry::all(interface)?;
                if kernel.is_empty() {
                    return Err(not_up);
                }
                let shaped = |way| of(&kernel, way, |entry| entry.direction).is_some();
                let told = tracked.flows(interface, shaped);
                Ok(Look::in_kernel(at_ns, kernel, told))
            }
            Err(error) => Err(error),
        }
    }

    /// A daemon's answers, and what it lets the kernel shape.
    fn through(mut daemon: Client, interface: &str, at_ns: u64) -> Result<Look, Error> {
        let state = daemon.ask(&Request::Show {})?;
        let told = daemon.ask(&Request::Flows {})?;
        let entries = state.qdiscs.unwrap_or_default();
        let kernel = match entries.is_empty() {
            true => KernelEntry::all(interface)?,
            false => Vec::new(),
        };
        let flows = Flows { flows: told.flows.unwrap_or_default(), untold: told.untold };
        let mut look = Look::in_kernel(at_ns, kernel, flows);
        look.lines.extend(told.lines.unwrap_or_default());
        Ok(Look { entries, trouble: state.trouble, autorate: state.autorate, ..look })
    }

    /// A look at what the kernel shapes.
    fn in_kernel(at_ns: u64, kernel: Vec<KernelEntry>, told: Flows) -> Look {
        let Flows { flows, untold } = told;
        let lines = kernel.iter().filter_map(|entry| entry.line(at_ns)).collect();
        Look { at_ns, lines, kernel, flows, untold, ..Look::default() }
    }
}

/// An interface's doings over the last looks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct View {
    /// The present state in words: trouble with the interface, and a sentence a direction.
    pub words: Vec<String>,
    /// Directions.
    pub lines: Vec<LineView>,
    /// Hosts at home, the busiest first.
    pub hosts: Vec<HostView>,
    /// Flows, the busiest first.
    pub flows: Vec<FlowView>,
    /// The reason why not all hosts and flows are told, or not their rates.
    pub untold: Option<String>,
}

/// One direction. Counters are since it came up, rates since the look before.
#[derive(Clone, Debug, Serialize)]
pub struct LineView {
    /// The interface.
    pub dev: String,
    /// The direction.
    pub direction: Direction,
    /// True if the kernel does the work.
    pub in_kernel: bool,
    /// Settings in `tc`'s words.
    pub config: String,
    /// Rate that it is shaped to, bit/s.
    pub limit_bps: Option<u64>,
    /// Bits sent a second.
    pub rate_bps: u64,
    /// Packets sent a second.
    pub packets_per_s: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Times that the shaper held a packet back, or that a limit was exceeded.
    pub overlimits: u64,
    /// Packets that the device handed back.
    pub requeues: u64,
    /// Packets queued.
    pub backlog_packets: u32,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// Packets dropped, but for redundant acknowledgements.
    pub drops: u64,
    /// Drops since the look before.
    pub new_drops: u64,
    /// Packets marked; None where the kernel does not tell.
    pub marks: Option<u64>,
    /// Marks since the look before.
    pub new_marks: Option<u64>,
    /// Time in the discipline; None where the kernel does not tell.
    pub delay: Option<Delay>,
    /// Tiers of cake.
    pub tiers: Vec<TierView>,
    /// Share of a core that the data path's thread took, in thousandths; None in the kernel.
    pub cpu_permille: Option<u64>,
    /// Bits a second that it could carry beside, at what each costs now; None in the kernel, and
    /// where too little passes to tell.
    pub headroom_bps: Option<u64>,
    /// Range of a rate that follows the line, and why it changed last.
    pub follows: Option<Follows>,
}

impl LineView {
    /// Takes up settings that are newer than the look.
    pub fn update_config(&mut self, config: String) {
        self.limit_bps = limit(&config);
        self.config = config;
    }
}

/// A rate that follows the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Follows {
    /// The least, bit/s.
    pub floor_bps: u64,
    /// The most, bit/s.
    pub ceiling_bps: u64,
    /// Reason of its last change.
    pub reason: Option<String>,
    /// Reflectors that are asked, or in reserve.
    pub reflectors: u64,
    /// Those that answer.
    pub answering: u64,
    /// Delay of the line above its baseline, µs; None while nobody answers.
    pub delay_us: Option<u64>,
}

/// Added latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// Of the last packet; 0 if none left since the look before.
    pub now_ns: u64,
    /// Half of the packets were not longer in the discipline.
    pub p50_ns: u64,
    /// 99 of 100 packets were not longer in the discipline.
    pub p99_ns: u64,
    /// The same of the packets since the look before alone; 0 if none left, or nobody looked.
    pub last_p99_ns: u64,
}

/// One tier of cake.
#[derive(Clone, Debug, Serialize)]
pub struct TierView {
    /// Its name.
    pub name: String,
    /// Bits sent a second since the look before.
    pub rate_bps: u64,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Moving average of sojourn times.
    pub delay_ns: u64,
}

/// A host at home: the sender of uploads, the receiver of downloads.
#[derive(Clone, Debug, Serialize)]
pub struct HostView {
    /// Its address.
    pub address: IpAddr,
    /// Its name, if it is known.
    pub name: Option<String>,
    /// Bits a second, each way.
    pub upload_bps: u64,
    /// Bits a second, each way.
    pub download_bps: u64,
    /// Flows that moved since the look before.
    pub active_flows: usize,
    /// Flows of the last minute.
    pub flows: usize,
    /// Its packets as whoever holds them sees them; None where the kernel shapes.
    #[serde(flatten)]
    pub held: Option<HeldHost>,
}

/// A host's packets, by whoever holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldHost {
    /// Packets queued, both ways.
    pub backlog_packets: u64,
    /// Drops of its present flows.
    pub drops: u64,
    /// Marks of its present flows.
    pub marks: u64,
    /// The worst p99 of sojourn of a flow that moved.
    pub sojourn_p99_ns: u64,
}

/// A flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowView {
    /// As the daemon tells of it.
    #[serde(flatten)]
    pub entry: FlowEntry,
    /// Name of the host at home, if it is known.
    pub host: Option<String>,
    /// Bits sent a second since the look before.
    pub rate_bps: u64,
    /// Tier of cake that its code point falls into.
    pub class: Option<String>,
}

impl FlowView {
    /// Address of the end at home.
    pub fn home(&self) -> IpAddr {
        home(&self.entry)
    }

    /// Address of the end in the Internet.
    pub fn remote(&self) -> IpAddr {
        match self.entry.direction {
            Direction::Upload => self.entry.destination,
            Direction::Download => self.entry.source,
        }
    }

    /// True if packets came since the look before, or wait.
    pub fn is_active(&self) -> bool {
        self.rate_bps > 0 || self.entry.held.is_some_and(|held| held.backlog_packets > 0)
    }
}

fn home(entry: &FlowEntry) -> IpAddr {
    match entry.direction {
        Direction::Upload => entry.source,
        Direction::Download => entry.destination,
    }
}

type FlowKey = (Direction, IpAddr, IpAddr, u8, u16, u16, Option<u32>);

fn key(entry: &FlowEntry) -> FlowKey {
    let FlowEntry { direction, source, destination, protocol, sport, dport, tracked, .. } = entry;
    (*direction, *source, *destination, *protocol, *sport, *dport, *tracked)
}

/// Arrival time of the first packet of `entry`, by the discipline's clock. No two of the flows that
/// a key has had one after the other share it. Keys with a connection's number need none.
fn born(look: &Look, entry: &FlowEntry) -> Option<u64> {
    let line = of(&look.lines, entry.direction, |line| line.direction)?;
    Some(line.now_ns.saturating_sub(entry.held?.age_ns))
}

/// Keeps the last looks at one interface.
#[derive(Debug, Default)]
pub struct Viewer {
    looks: VecDeque<Look>,
    tracked: Tracked,
}

impl Viewer {
    /// A viewer that has seen nothing.
    pub fn new() -> Viewer {
        Viewer::default()
    }

    /// Looks at `interface`, always the same. Rates are zero at the first look.
    ///
    /// # Errors
    /// [`Error::NotUp`] if neither a daemon nor the kernel shapes it; a failing conversation.
    pub fn look(
        &mut self,
        directory: &Path,
        interface: &str,
        names: &Names,
    ) -> Result<View, Error> {
        let look = Look::take(directory, interface, &mut self.tracked)?;
        Ok(self.see(look, names))
    }

    /// The view that `look` and those before it amount to.
    fn see(&mut self, look: Look, names: &Names) -> View {
        // A daemon that was started again counts from zero.
        if self.looks.back().is_some_and(|last| counts_anew(last, &look)) {
            self.looks.clear();
        }
        if self.looks.len() > WINDOW {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
        let now = &self.looks[self.looks.len() - 1];
        let before = self.looks.len().checked_sub(2).map(|index| &self.looks[index]);
        let span = Span { before, first: (self.looks.len() > 1).then(|| &self.looks[0]) };

        let mut lines: Vec<LineView> = now.entries.iter().map(|e| span.line(now, e)).collect();
        lines.extend(now.kernel.iter().map(|entry| span.kernel_line(now, entry)));
        lines.sort_by_key(|line| line.direction);
        let flows = span.flows(now, names);
        let hosts = hosts(&flows);
        let trouble = now.trouble.iter().map(|trouble| format!("it is {trouble}"));
        let words = trouble.chain(words::happening(&lines, &flows)).collect();
        View { words, lines, hosts, flows, untold: now.untold.clone() }
    }
}

fn counts_anew(last: &Look, look: &Look) -> bool {
    let fewer = |old: &LineEntry| {
        let sum = |line: &LineEntry| line.sojourns.iter().sum::<u64>();
        of(&look.lines, old.direction, |line| line.direction).is_some_and(|new| sum(new) < sum(old))
    };
    look.entries.len() != last.entries.len()
        || look.kernel.len() != last.kernel.len()
        || last.lines.iter().any(fewer)
}

fn of<T>(all: &[T], direction: Direction, which: impl Fn(&T) -> Direction) -> Option<&T> {
    all.iter().find(|one| which(one) == direction)
}

/// A count's growth a second.
fn per_second(count: u64, before: u64, ns: u64) -> u64 {
    let grown = u128::from(count.saturating_sub(before)) * SECOND;
    grown.checked_div(u128::from(ns)).map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Looks before the present one.
#[derive(Clone, Copy)]
struct Span<'a> {
    before: Option<&'a Look>,
    first: Option<&'a Look>,
}

impl Span<'_> {
    fn line(self, now: &Look, entry: &Entry) -> LineView {
        let direction = entry.direction;
        let before = self.before.and_then(|look| of(&look.entries, direction, |e| e.direction));
        let old = before.unwrap_or(entry);
        let at = |look: &Look, entry: &Entry| entry.at_ns.unwrap_or(look.at_ns);
        let then = self.before.zip(before).map(|(look, entry)| at(look, entry));
        let ns = then.map_or(0, |then| at(now, entry).saturating_sub(then));
        let (totals, past) = (&entry.stats.totals, &old.stats.totals);
        let cpu = entry.datapath.cpu.0.saturating_sub(old.datapath.cpu.0);
        let marks = entry.datapath.marked;
        let rate_bps = per_second(totals.sent_bytes, past.sent_bytes, ns).saturating_mul(8);
        let packets_per_s = per_second(totals.sent_packets, past.sent_packets, ns);
        let cores = u64::from(entry.lanes.count);
        LineView {
            dev: entry.dev.clone(),
            direction,
            in_kernel: false,
            config: entry.config.clone(),
            limit_bps: limit(&entry.config),
            rate_bps,
            packets_per_s,
            bytes: totals.sent_bytes,
            packets: totals.sent_packets,
            overlimits: totals.overlimits,
            requeues: 0,
            backlog_packets: entry.stats.backlog.packets,
            backlog_bytes: entry.stats.backlog.bytes,
            drops: drops(&entry.stats),
            new_drops: drops(&entry.stats).saturating_sub(drops(&old.stats)),
            marks: Some(marks),
            new_marks: Some(marks.saturating_sub(old.datapath.marked)),
            delay: self.delay(now, direction),
            tiers: entry_tiers(entry, old, ns),
            cpu_permille: Some(
                (u128::from(cpu) * 1000).checked_div(u128::from(ns)).unwrap_or(0) as u64
            ),
            headroom_bps: headroom(rate_bps, cpu, ns.saturating_mul(cores))
                .filter(|_| packets_per_s >= TELLING),
            follows: follows(now, direction),
        }
    }

    fn delay(self, now: &Look, direction: Direction) -> Option<Delay> {
        let line = |look: &'_ Look| of(&look.lines, direction, |l| l.direction).cloned();
        let now = line(now)?;
        let grown = |then: Option<&Look>| -> Vec<u64> {
            let then = then.and_then(line);
            let old = |index| then.as_ref().and_then(|then| then.sojourns.get(index)).unwrap_or(&0);
            let counts = now.sojourns.iter().enumerate();
            counts.map(|(index, count)| count.saturating_sub(*old(index))).collect()
        };
        let all = grown(self.first);
        let last = grown(self.before);
        let is_quiet = self.before.is_some() && last.iter().sum::<u64>() == 0;
        Some(Delay {
            now_ns: if is_quiet { 0 } else { now.sojourn_ns },
            p50_ns: quantile(&all, 500).0,
            p99_ns: quantile(&all, 990).0,
            last_p99_ns: self.before.map_or(0, |_| quantile(&last, 990).0),
        })
    }

    fn flows(self, now: &Look, names: &Names) -> Vec<FlowView> {
        let counted = |look: &Look| -> BTreeMap<FlowKey, (Option<u64>, u64)> {
            look.flows.iter().map(|flow| (key(flow), (born(look, flow), flow.bytes))).collect()
        };
        let old = self.before.map(counted).unwrap_or_default();
        let ns = self.before.map_or(0, |look| now.at_ns.saturating_sub(look.at_ns));
        let classes: Vec<(Direction, Option<cake::Params>)> =
            now.entries.iter().map(|entry| (entry.direction, cake_of(&entry.config))).collect();
        let view = |entry: &FlowEntry| {
            // A flow that gave its place up and came again counts from zero.
            let before = match old.get(&key(entry)) {
                Some((first, bytes)) if *first == born(now, entry) => *bytes,
                _ => 0,
            };
            let cake = of(&classes, entry.direction, |(direction, _)| *direction);
            let class = |held: HeldFlow| class(cake?.1.as_ref()?, held);
            FlowView {
                host: names.of(home(entry)),
                rate_bps: per_second(entry.bytes, before, ns).saturating_mul(8),
                class: entry.held.and_then(class),
                entry: entry.clone(),
            }
        };
        let mut flows: Vec<FlowView> = now.flows.iter().map(view).collect();
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.rate_bps), key(&flow.entry)));
        flows
    }
}

/// Packets a second from which on the thread's time is theirs, and not that of its signs of life.
const TELLING: u64 = 100;

/// Bits a second beyond `rate_bps`, which takes `cpu` of `time`, if all of that were taken.
fn headroom(rate_bps: u64, cpu: u64, time: u64) -> Option<u64> {
    let free = u128::from(time.saturating_sub(cpu));
    let more = (u128::from(rate_bps) * free).checked_div(u128::from(cpu))?;
    Some(u64::try_from(more).unwrap_or(u64::MAX))
}

fn follows(now: &Look, direction: Direction) -> Option<Follows> {
    let report = now.autorate.as_ref()?;
    let line = of(&report.directions, direction, |line| line.direction)?;
    Some(Follows {
        floor_bps: line.floor_bps,
        ceiling_bps: line.ceiling_bps,
        reason: line.reason.clone(),
        reflectors: report.reflectors.len() as u64,
        answering: report.answering() as u64,
        delay_us: report.delay_us,
    })
}

/// Rate of the first discipline in `words`, from the root on, that has one, bit/s.
fn limit(words: &str) -> Option<u64> {
    qdisc::parse(words).ok()?.rate().map(|rate| rate.bits())
}

/// Drops that were no redundant acknowledgements.
fn drops(stats: &Snapshot) -> u64 {
    stats.totals.drops() - stats.totals.dropped[DropReason::AckFilter as usize]
}

/// Settings of the first cake in `words`.
fn cake_of(words: &str) -> Option<cake::Params> {
    fn first(config: &Config) -> Option<cake::Params> {
        match config {
            Config::Cake(params) => Some(*params),
            other => other.children().into_iter().find_map(|(_, child)| first(child)),
        }
    }
    first(&qdisc::parse(words).ok()?)
}

/// Name of the tier that a flow's last packet fell into, if there are several.
fn class(cake: &cake::Params, flow: HeldFlow) -> Option<String> {
    let count = match cake.diffserv {
        cake::DiffservMode::Besteffort => return None,
        cake::DiffservMode::Diffserv3 => 3,
        cake::DiffservMode::Diffserv4 => 4,
        cake::DiffservMode::Diffserv8 | cake::DiffservMode::Precedence => 8,
    };
    Some(tier_name(count, cake.listed_tin(flow.dscp, flow.mark)))
}

fn tier_name(count: usize, index: usize) -> String {
    if count == 1 {
        return "all".to_owned();
    }
    cake::tin_name(count, index).map_or_else(|| format!("Tin {index}"), str::to_owned)
}

/// Tiers of the first cake, at the root or below it.
fn entry_tiers(entry: &Entry, old: &Entry, ns: u64) -> Vec<TierView> {
    let (Some(stats), Some(past)) = (cake_stats(entry), cake_stats(old)) else { return Vec::new() };
    let count = usize::from(stats.tin_count).min(cake::MAX_TINS);
    tiers(&stats.tins[..count], &past.tins[..count], ns)
}

/// The tiers that `tins` are; `old` are those of the look before.
fn tiers(tins: &[cake::TinStats], old: &[cake::TinStats], ns: u64) -> Vec<TierView> {
    // Other settings may have come since.
    let old = if old.len() == tins.len() { old } else { tins };
    let tier = |(index, (tin, old)): (usize, (&cake::TinStats, &cake::TinStats))| TierView {
        name: tier_name(tins.len(), index),
        rate_bps: per_second(tin.released_bytes(), old.released_bytes(), ns).saturating_mul(8),
        backlog_bytes: tin.backlog_bytes,
        drops: u64::from(tin.drops),
        marks: u64::from(tin.ecn_mark),
        delay_ns: tin.avg_delay.0,
    };
    tins.iter().zip(old).enumerate().map(tier).collect()
}

fn cake_stats(entry: &Entry) -> Option<&cake::Stats> {
    fn first<'a>(stats: &'a Snapshot, below: &'a [Below]) -> Option<&'a cake::Stats> {
        match &stats.detail {
            Detail::Cake(cake) => Some(cake),
            _ => below.iter().find_map(|child| first(&child.stats, &child.below)),
        }
    }
    first(&entry.stats, &entry.below)
}

/// False for addresses that many have, or that say nothing beyond their link.
fn is_host(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(address.is_multicast() || address.is_unspecified() || is_link_local)
}

/// Hosts at home, from their flows.
fn hosts(flows: &[FlowView]) -> Vec<HostView> {
    let mut hosts: BTreeMap<IpAddr, HostView> = BTreeMap::new();
    for flow in flows {
        let address = flow.home();
        if !is_host(address) {
            continue;
        }
        let host = hosts.entry(address).or_insert_with(|| HostView {
            address,
            name: flow.host.clone(),
            upload_bps: 0,
            download_bps: 0,
            active_flows: 0,
            flows: 0,
            held: None,
        });
        match flow.entry.direction {
            Direction::Upload => host.upload_bps += flow.rate_bps,
            Direction::Download => host.download_bps += flow.rate_bps,
        }
        host.flows += 1;
        host.active_flows += usize::from(flow.is_active());
        let Some(held) = flow.entry.held else { continue };
        let all = host.held.get_or_insert_default();
        all.backlog_packets += u64::from(held.backlog_packets);
        all.drops += held.drops;
        all.marks += held.marks;
        if flow.is_active() {
            all.sojourn_p99_ns = all.sojourn_p99_ns.max(held.sojourn_p99_ns);
        }
    }
    let mut hosts: Vec<HostView> = hosts.into_values().collect();
    hosts.sort_by_key(|host| std::cmp::Reverse(host.upload_bps + host.download_bps));
    hosts
}

#[cfg(test)]
mod tests;

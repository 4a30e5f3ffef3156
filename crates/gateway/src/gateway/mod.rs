//! One interface under management: both directions, from `up` to `down`.
//!
//! Order of `up`: checks, lock, queues, threads, and the rules last, so that no packet is queued
//! before somebody takes it. Order of `down`: the rules go first, so that new packets pass by. Then
//! the queued ones are let go in the order in which they came. Then threads, queues and table end.
//! The guard has duplicates of the sockets: queues and table are removed by name, not by closing.
//!
//! Any discipline of the core will do: shaping and emulating a line are the same here.

mod following;
mod lane;
mod ports;
mod recording;
mod ruled;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use simnel_core::flow::HashKey;
use simnel_core::qdisc::cake::Member;
use simnel_core::qdisc::{self, Config, ConfigError, Device};
use simnel_core::sched::parallel::Timing;
use simnel_core::wire::FlowKeys;
use simnel_core::Span;

use crate::autorate::Own;
use crate::classify;
use crate::control_dir::Lock;
use crate::datapath::{self, BoxedQdisc, Status};
use crate::direction::Direction;
use crate::error::Error;
use crate::flows::{self, Part};
use crate::guard::{Guarded, GuardedLane};
use crate::lanes::Lanes;
use crate::links;
use crate::lists::Lists;
use crate::marks::{self, Choice};
use crate::nfqueue::{self, KernelCounters};
use crate::nft::{Family, Holder, Queues, Table, Wanted};
use crate::passing;
use crate::realtime::Obstacle;
use crate::ruled::Ruled;
use crate::segments::SegmentSizes;
use crate::settings::Settings;
use crate::sys::{self, MlockAllFlags, Query};
use crate::vitals::Board;
use crate::words;
use lane::{Lane, Source};
pub(crate) use ports::PortSockets;
use ports::Ports;
use recording::Recording;

/// Time after the rules are gone for which packets may still be on their way to a queue.
const STRAGGLERS: Duration = Duration::from_millis(3);
/// Longest wait of `down` for the kernel's queue to become empty.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// One direction as it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The interface.
    pub dev: String,
    /// The direction.
    pub direction: Direction,
    /// Disciplines and counters.
    pub status: Status,
    /// Its lanes.
    pub lanes: Lanes,
    /// Number of the NFQUEUE, or of the first lane's; 0 where packets wait in our own memory.
    pub queue: u16,
    /// Counters of the queue: the kernel's, or our own.
    pub kernel: KernelCounters,
}

/// Things that `down` let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Packets that were queued.
    pub packets: u64,
}

/// Whom an interface's threads tell that they live.
pub(crate) struct Watch {
    /// Their turns are counted there.
    pub(crate) board: &'static Board,
    /// The interface's place on it.
    pub(crate) slot: usize,
    /// Readable once a thread has ended, in whatever way.
    pub(crate) ended: Arc<OwnedFd>,
    /// Probes that pass the queues.
    pub(crate) own: Own,
    pub(crate) lists: Arc<Lists>,
}

/// An interface under management. Dropping it is `down` without the account.
pub struct Gateway {
    settings: Settings,
    marks: Choice,
    watch: Watch,
    device: Device,
    /// Of the flow hashes.
    key: HashKey,
    segments: Arc<SegmentSizes>,
    /// RTTs of passing TCP.
    passing: Arc<passing::Shared>,
    /// Those of a bridge whose frames the kernel cannot queue.
    ports: Option<Ports>,
    lanes: Vec<Lane>,
    recordings: Vec<Recording>,
    /// Last, so that in a drop the queues go before the chains that fill them.
    ruled: Ruled,
    _lock: Lock,
}

impl Gateway {
    /// Takes the interface over; its lock may be `held` since a daemon before. `sockets` are for a
    /// bridge whose frames the kernel cannot queue.
    ///
    /// # Errors
    /// The missing or hindering thing; nothing has changed then.
    pub(crate) fn up(
        settings: Settings,
        watch: Watch,
        held: Option<Lock>,
        sockets: Option<&PortSockets>,
    ) -> Result<Gateway, Error> {
        let device = check(&settings)?;
        let lock = match held {
            Some(held) => held.signed()?,
            None => Lock::take(&settings.control_dir, &settings.interface)?,
        };
        if settings.tuning.lock_memory {
            sys::lock_memory(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
                .map_err(|e| Error::system("locking memory (mlockall)", e))?;
        }
        let marks = marks::choose(settings.mark_bits, &watch.lists)?;
        let segments =
            SegmentSizes::new().map_err(|e| Error::system("asking for randomness", e))?;
        let segments = Arc::new(segments);
        let key = classify::random_key().map_err(|e| Error::system("asking for randomness", e))?;
        let passing =
            passing::Shared::new().map_err(|e| Error::system("asking for randomness", e))?;
        let mut gateway = Gateway {
            settings,
            marks,
            watch,
            device,
            key,
            segments,
            passing,
            ports: None,
            lanes: Vec::new(),
            recordings: Vec::new(),
            ruled: Ruled::new(),
            _lock: lock,
        };
        if gateway.family()? == Family::Bridged && !ports::kernel_queues() {
            gateway.ports = Some(Ports::of(&gateway.settings, sockets)?);
        }
        gateway.start()?;
        Ok(gateway)
    }

    fn start(&mut self) -> Result<(), Error> {
        let plans = self.ruled.plans(&self.settings)?;
        self.ruled.choose_tiers(&self.settings.rules, self.marks.bits)?;
        self.ruled.watch(&self.settings)?;
        // Lanes are told of in this order.
        for direction in [Direction::Download, Direction::Upload] {
            let Some(config) = self.settings.direction(direction) else { continue };
            let length = self.settings.tuning.queue_length(config);
            let qdiscs = self.build_all(direction, config)?;
            let sources = self.sources(direction, length, qdiscs.len())?;
            for (number, (qdisc, source)) in qdiscs.into_iter().zip(sources).enumerate() {
                let lane = Lane::start(self, (direction, number), qdisc, source)?;
                lane.set_whole(config, &self.segments)?;
                self.lanes.push(lane);
            }
        }
        let queue = |direction| {
            let first = self.lanes_of(direction).next()?.queue()?;
            let count = self.lanes_of(direction).count() as u16;
            let spread = self.settings.tuning.lanes.by;
            Some(Holder::Process(Queues { first, count, spread }))
        };
        let mut ours = Vec::new();
        if let Some(ports) = &self.ports {
            // Rather twice than not at all: the bridge, too, passes on what comes until it is told.
            ports.attach()?;
            ours = ports.ours();
        }
        let wanted = Wanted {
            family: self.family()?,
            interface: self.settings.interface.clone(),
            download: queue(Direction::Download),
            upload: queue(Direction::Upload),
            ours,
            bits: self.marks.bits,
            own: self.watch.own.clone(),
            ..Wanted::default()
        };
        self.ruled.create(wanted, plans)
    }

    /// Sources of the packets of a direction's lanes.
    fn sources(
        &self,
        direction: Direction,
        length: u32,
        lanes: usize,
    ) -> Result<Vec<Source>, Error> {
        if let Some(ports) = &self.ports {
            let passage = ports.passage(direction, length, self.marks.bits)?;
            return Ok(vec![Source::Passage(Box::new(passage))]);
        }
        let queues = nfqueue::open_all(nfqueue::QUEUE_NUMBERS, lanes, length)?.into_iter();
        Ok(queues.map(|(number, queue, verdicts)| Source::Queue(number, queue, verdicts)).collect())
    }

    fn family(&self) -> Result<Family, Error> {
        Ok(match links::bridge_of(&self.settings.interface)? {
            Some(_) => Family::Bridged,
            None => Family::Routed,
        })
    }

    fn build(&self, direction: Direction, config: &Config) -> Result<BoxedQdisc, Error> {
        qdisc::build(&self.ruled.told(config), &self.device)
            .map_err(|e| Error::Discipline { direction, reason: e.to_string() })
    }

    /// A discipline for each lane of a direction.
    fn build_all(&self, direction: Direction, config: &Config) -> Result<Vec<BoxedQdisc>, Error> {
        let lanes = self.settings.tuning.lanes;
        if !lanes.are_several() {
            return Ok(vec![self.build(direction, config)?]);
        }
        let refused = |reason| Error::Discipline { direction, reason };
        let config = self.ruled.told(config);
        let params = lanes.shared(&config).map_err(refused)?;
        let members = Member::all(params, &self.device, lanes.count.into(), &Timing::THREADS)
            .map_err(|e| refused(e.to_string()))?;
        Ok(members.into_iter().map(|member| Box::new(member) as BoxedQdisc).collect())
    }

    fn lanes_of(&self, direction: Direction) -> impl Iterator<Item = &Lane> + Clone {
        self.lanes.iter().filter(move |lane| lane.direction == direction)
    }

    /// The interface's place on the board.
    pub(crate) fn slot(&self) -> usize {
        self.watch.slot
    }

    /// True if its rules are for a port of a bridge.
    pub(crate) fn is_for_port(&self) -> Option<bool> {
        self.ruled.table.as_ref().map(|table| table.family() == Family::Bridged)
    }

    /// Numbers of its kernel queues.
    pub(crate) fn queues(&self) -> Vec<u16> {
        self.lanes.iter().filter_map(Lane::queue).collect()
    }

    /// Gives the guard what it needs to let this interface's traffic pass.
    pub(crate) fn be_guarded(&self, guard: &Guarded) -> io::Result<()> {
        let Some(table) = &self.ruled.table else { return Ok(()) };
        let lanes: Vec<GuardedLane<'_>> = self.lanes.iter().map(Lane::guarded).collect();
        guard.watch(self.watch.slot, table.socket(), &table.stop_messages(), &lanes)
    }

    /// A direction whose thread has ended by itself.
    pub(crate) fn dead(&self) -> Option<Direction> {
        self.lanes.iter().find(|lane| lane.is_dead()).map(|lane| lane.direction)
    }

    /// The interface.
    pub fn interface(&self) -> &str {
        &self.settings.interface
    }

    /// Warnings about the bits of the mark that are ours, and about who holds packets.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        let held = self.ports.as_ref().map(|_| ports::IN_OUR_MEMORY.to_owned());
        self.marks.warnings.iter().cloned().chain(held)
    }

    /// The obstacle, if a thread was refused the real-time priority that it was to have.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        let wanted = self.settings.tuning.realtime.is_some();
        let has_none = |report: &Report| !report.status.counters.realtime;
        let refused = wanted && self.show().is_ok_and(|all| all.iter().any(has_none));
        refused.then(Obstacle::of_refused)
    }

    /// Settings that `up` was given.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Both directions as they run. Takes a fraction of a millisecond; the data path does not stop.
    ///
    /// # Errors
    /// [`Error::Unresponsive`] if a thread is stuck or has died (then its traffic passes unshaped).
    pub fn show(&self) -> Result<Vec<Report>, Error> {
        let report = |lane: &Lane| {
            let status = lane.remote.status().map_err(|_| Error::Unresponsive(lane.direction))?;
            Ok(Report {
                dev: self.settings.interface.clone(),
                direction: lane.direction,
                status,
                lanes: self.settings.tuning.lanes,
                queue: lane.queue().unwrap_or_default(),
                kernel: lane.counters(&self.watch.lists).unwrap_or_default(),
            })
        };
        let join = |all: &mut Report, other: Report| {
            all.status.join(&other.status);
            all.kernel.join(&other.kernel);
        };
        let reports = self.of_each_direction(report, join)?;
        Ok(reports.into_iter().map(|(_, report)| report).collect())
    }

    /// The answers of each direction's lanes, joined.
    fn of_each_direction<T>(
        &self,
        tell: impl Fn(&Lane) -> Result<T, Error>,
        join: impl Fn(&mut T, T),
    ) -> Result<Vec<(Direction, T)>, Error> {
        let mut all: Vec<(Direction, T)> = Vec::new();
        for lane in &self.lanes {
            let told = tell(lane)?;
            match all.last_mut().filter(|(last, _)| *last == lane.direction) {
                None => all.push((lane.direction, told)),
                Some((_, last)) => join(last, told),
            }
        }
        Ok(all)
    }

    /// The flows of both directions; each thread answers in parts of some 20 µs. RTTs are looked
    /// for from now on, for a while.
    ///
    /// # Errors
    /// As [`Gateway::show`].
    pub(crate) fn flows(&self) -> Result<Vec<(Direction, Part)>, Error> {
        self.passing.ask(sys::now());
        let part = |lane: &Lane, number| {
            lane.remote.flows(number).map_err(|_| Error::Unresponsive(lane.direction))
        };
        let all = |lane: &Lane| {
            let mut all = part(lane, 0)?;
            for number in 1..flows::PARTS {
                all.append(part(lane, number)?);
            }
            Ok(all)
        };
        self.of_each_direction(all, Part::join)
    }

    /// The smoothed RTT between here and the far end of the connection with these keys, once it has
    /// been seen.
    pub(crate) fn rtt(&self, keys: FlowKeys) -> Option<Span> {
        self.passing.rtt(keys)
    }

    /// Changes one direction. Queued packets stay queued, also when the discipline becomes another.
    ///
    /// # Errors
    /// The direction does not run, or the discipline refuses; then nothing has changed.
    pub fn change(&mut self, direction: Direction, config: Config) -> Result<(), Error> {
        let config = self.at_present_rate(direction, config);
        let mut settings = self.settings.clone();
        *settings.direction_mut(direction) = Some(config.clone());
        // Words of cake decide which number a tier has.
        let plans = self.ruled.plans(&settings)?;
        let others = self.ruled.plans(&self.settings)? != plans;
        self.configure(direction, &config)?;
        if others {
            self.ruled.lay(plans).inspect_err(|_| {
                let before = self.settings.direction(direction);
                // The error before is the one to be told.
                let _ = before.map(|before| self.configure(direction, before));
            })?;
        }
        self.settings = settings;
        Ok(())
    }

    /// `config` at the rate that autorate has set, where there is one.
    pub(crate) fn at_present_rate(&self, direction: Direction, config: Config) -> Config {
        let follows = self.settings.autorate.as_ref().and_then(|a| a.limits(direction)).is_some();
        let present = self.settings.direction(direction).filter(|_| follows);
        let present = present.and_then(|present| config.with_rate(present.rate()?, words::burst));
        present.unwrap_or(config)
    }

    /// Packets that the kernel keeps: where the rate moves, as many as its highest needs.
    fn queue_length(&self, direction: Direction, config: &Config) -> u32 {
        let limits = self.settings.autorate.as_ref().and_then(|a| a.limits(direction));
        let highest = limits.and_then(|limits| config.with_rate(limits.ceiling, words::burst));
        self.settings.tuning.queue_length(highest.as_ref().unwrap_or(config))
    }

    /// Follows a bridge whose frames pass through us; says what has become of it.
    pub(crate) fn follow_ports(&mut self) -> Option<String> {
        let (ports, table) = (self.ports.as_mut()?, self.ruled.table.as_mut()?);
        let followed = match ports.follow() {
            Ok(false) => return None,
            followed => followed,
        };
        match (table.set_ours(ports.ours()), followed) {
            (Err(error), _) => Some(error.to_string()),
            (_, Err(error)) => Some(format!("{error}; its frames pass unshaped until then")),
            _ => Some(String::from("frames of the bridge are shaped again")),
        }
    }

    fn configure(&self, direction: Direction, config: &Config) -> Result<(), Error> {
        let interface = self.settings.interface.clone();
        if self.lanes_of(direction).next().is_none() {
            return Err(Error::NoDirection { interface, direction });
        }
        match self.tell(direction, config)? {
            Err(ConfigError::OtherDiscipline) => {
                self.replace(direction, self.build_all(direction, config)?)?;
            }
            told => told.map_err(|e| Error::Discipline { direction, reason: e.to_string() })?,
        }
        for lane in self.lanes_of(direction) {
            lane.set_length(self.queue_length(direction, config))?;
            lane.set_whole(config, &self.segments)?;
        }
        Ok(())
    }

    /// Tells a direction's lanes their settings: all of them, or none if one cannot have them.
    fn tell(
        &self,
        direction: Direction,
        config: &Config,
    ) -> Result<Result<(), ConfigError>, Error> {
        let remotes = self.lanes_of(direction).map(|lane| &lane.remote);
        datapath::configure(remotes, &self.ruled.told(config))
            .map_err(|_| Error::Unresponsive(direction))
    }

    /// Other disciplines for a direction's lanes; they take over what is queued.
    fn replace(&self, direction: Direction, qdiscs: Vec<BoxedQdisc>) -> Result<(), Error> {
        let mut lanes = self.lanes_of(direction).zip(qdiscs);
        lanes
            .try_for_each(|(lane, qdisc)| lane.remote.replace(qdisc, self.device))
            .map_err(|_| Error::Unresponsive(direction))
    }

    /// Follows what the interface says of itself now, until that has succeeded. Disciplines are
    /// made anew where that decides their quanta and limits; what is queued moves over.
    ///
    /// # Errors
    /// As [`Gateway::change`].
    pub(crate) fn follow_device(&mut self) -> Result<(), Error> {
        let device = device_of(&self.settings.interface);
        if (device.mtu, device.tx_queue_len) == (self.device.mtu, self.device.tx_queue_len) {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.device, device);
        let build = |direction| {
            let config = self.settings.direction(direction)?;
            Some(self.build_all(direction, config).map(|qdiscs| (direction, qdiscs)))
        };
        // No direction follows if one cannot.
        let built: Result<Vec<_>, Error> = Direction::BOTH.into_iter().filter_map(build).collect();
        let followed = built.and_then(|built| {
            built.into_iter().try_for_each(|(direction, qdiscs)| self.replace(direction, qdiscs))
        });
        followed.inspect_err(|_| self.device = before)
    }

    /// Gives the interface back without losing a packet.
    ///
    /// # Errors
    /// The rules could not be removed, or a thread did not answer. The interface is given back all
    /// the same, but packets that were queued may be lost.
    pub(crate) fn down(mut self, guard: &Guarded) -> Result<Drained, Error> {
        let slot = self.watch.slot;
        self.drain(|| guard.forget(slot))
    }

    /// `unguard` is called before threads end as they should.
    fn drain(&mut self, unguard: impl FnOnce()) -> Result<Drained, Error> {
        let mut result = match &mut self.ruled.table {
            Some(table) => table.stop_queueing().map(|()| Drained::default()),
            None => Ok(Drained::default()),
        };
        // The bridge passes on again what comes.
        self.ports.iter().for_each(Ports::stop_receiving);
        std::thread::sleep(STRAGGLERS);
        for lane in &self.lanes {
            if lane.is_dead() {
                lane.accept_all(self.watch.board.lane(lane.index).last_id());
                continue;
            }
            match (lane.remote.drain(), &mut result) {
                (Ok(packets), Ok(drained)) => drained.packets += packets,
                (Err(_), Ok(_)) => result = Err(Error::Unresponsive(lane.direction)),
                (_, Err(_)) => {}
            }
        }
        let start = Instant::now();
        let counters = |lane: &Lane| lane.counters(&self.watch.lists);
        let waiting = |lane: &Lane| counters(lane).is_some_and(|k| k.waiting > 0);
        while self.lanes.iter().any(waiting) && start.elapsed() < DRAIN_LIMIT {
            std::thread::sleep(Duration::from_millis(1));
        }
        unguard();
        for lane in &mut self.lanes {
            lane.remote.stop();
            if let Some(thread) = lane.thread.take() {
                // A panic there has been reported by the panic hook; its traffic passes since.
                let _ = thread.join();
            }
            lane.unbind();
        }
        self.lanes.clear();
        match (self.ruled.table.take().map_or(Ok(()), Table::remove), result) {
            (Err(e), Ok(_)) => Err(e),
            (_, result) => result,
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if !self.lanes.is_empty() {
            // Whoever wants the account calls `down`.
            let _ = self.drain(|| {});
        }
    }
}

/// Checks all that can be checked before anything is changed.
fn check(settings: &Settings) -> Result<Device, Error> {
    let name = &settings.interface;
    links::check_name(name)?;
    if name == "lo" {
        return Err(Error::Loopback(name.clone()));
    }
    if settings.upload.is_none() && settings.download.is_none() {
        return Err(Error::NothingToDo(name.clone()));
    }
    if sys::interface(name, Query::Index).is_err() {
        return Err(Error::NoInterface(name.clone()));
    }
    if !nfqueue::has_net_admin() {
        return Err(Error::Privilege);
    }
    Ok(device_of(name))
}

/// The interface's properties that disciplines depend on.
fn device_of(name: &str) -> Device {
    const ETHERNET_HEADER: u32 = 14;
    let default = Device::default();
    let ask = |query| sys::interface(name, query).ok().filter(|&answer| answer > 0);
    Device {
        mtu: ask(Query::Mtu).map_or(default.mtu, |mtu| mtu.saturating_add(ETHERNET_HEADER)),
        tx_queue_len: ask(Query::TxQueueLen).unwrap_or(default.tx_queue_len),
        seed: sys::now().0 ^ u64::from(std::process::id()) << 32,
        now: sys::now(),
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_whose_rules_are_refused_changes_nothing() {
        const NAME: &str = "a_change_whose_rules_are_refused_changes_nothing";
        crate::apart::apart(NAME, || {
            crate::apart::cable("wan0", "far0", "10.77.2.1/24");
            let text = "[[interface]]\nname = \"wan0\"\nupload = \"1mbit\"\n\
                        qdisc = \"cake diffserv4\"\n\
                        [[rule]]\nport = 7001\ntier = \"voice\"\n";
            let mut settings = crate::config::parse(text).unwrap().remove(0);
            let directory = tempfile::tempdir().unwrap();
            settings.control_dir = directory.path().into();
            let watch = Watch {
                board: Board::shared().unwrap(),
                slot: 0,
                ended: Arc::new(sys::event().unwrap()),
                own: Own::default(),
                lists: Arc::default(),
            };
            let mut gateway = match Gateway::up(settings, watch, None, None) {
                Err(error @ Error::KernelLacks { .. }) => {
                    return eprintln!("NOT RUN: {NAME}: {error}")
                }
                gateway => gateway.unwrap(),
            };
            let running = |gateway: &Gateway| gateway.show().unwrap()[0].status.root.config.clone();
            let before = running(&gateway);
            gateway.ruled.table.as_mut().unwrap().lose();
            // Voice has another number there.
            let other = qdisc::parse("cake bandwidth 2mbit diffserv3").unwrap();
            let result = gateway.change(Direction::Upload, other);
            assert!(matches!(result, Err(Error::System { .. })), "{result:?}");
            assert_eq!(running(&gateway), before);
        });
    }
}

//! A run: a set-up and a seed, carried through in simulated time.
//!
//! `Setup -> Run -> Results`. A run may be advanced in pieces, so that whoever drives it can show
//! progress or stop; the pieces do not change the result. One thread, no clock, no global state:
//! run as many at once as there are cores.

use simnel_core::qdisc::{self, Device, Managed, Snapshot};
use simnel_core::random::Random;
use simnel_core::{Span, Time};

use crate::apps::{App, Context};
use crate::capture::{Capture, InOrder};
use crate::draw::between;
use crate::event::Target;
use crate::flow::{FlowRecord, TcpTotals};
use crate::line::{Line, Medium};
use crate::memory::Memory;
use crate::network::{Network, Opening, Waiting, Ways};
use crate::pool::{Account, Watch};
use crate::record::LineRecord;
use crate::results::{Conservation, FlowResult, LineResult, Results};
use crate::setup::{Direction, Kind, LineSetup, Setup, SetupError, Shaper, Traffic};

/// Random streams of applications start here; lines have the numbers before.
const FIRST_APP_STREAM: u64 = 1 << 16;
/// Longest chain of things that happen in one nanosecond, per flow. Beyond it time stands still.
const MAX_STANDSTILL: u64 = 100_000_000;

/// A simulation under way.
pub struct Run {
    pub(crate) network: Network,
    pub(crate) apps: Vec<App>,
    pub(crate) setup: Setup,
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) events: u64,
    /// Each flow as it was when the measured window began; no flows if it began with the run.
    pub(crate) baseline: Option<Vec<Baseline>>,
    next_sample: Time,
}

/// A flow's counters at the beginning of the window.
pub(crate) struct Baseline {
    pub account: [Account; 2],
    pub delivered: [u64; 2],
    pub tcp: TcpTotals,
}

impl Run {
    /// A run at time zero.
    pub fn new(setup: &Setup, seed: u64) -> Result<Run, SetupError> {
        setup.check()?;
        let groups = setup.traffic.len();
        let line = |direction| line(setup, direction, seed, groups, setup.intervals());
        let lines = [line(Direction::Up)?, line(Direction::Down)?];
        let losses = [setup.lines[0].loss, setup.lines[1].loss];
        let jitter = [setup.lines[0].jitter, setup.lines[1].jitter];
        let reordering = [setup.lines[0].reordering, setup.lines[1].reordering];
        let settings = setup.traffic.iter().map(|traffic| traffic.tcp).collect();
        let mut run = Run {
            network: Network::new(lines, losses, jitter, reordering, &setup.hosts, settings, seed),
            apps: Vec::new(),
            setup: setup.clone(),
            seed,
            now: Time::ZERO,
            events: 0,
            baseline: None,
            next_sample: Time::ZERO,
        };
        let flows = setup.traffic.iter().map(|traffic| traffic.count as usize).sum();
        run.network.reserve(flows);
        run.apps.reserve_exact(flows);
        for (group, traffic) in setup.traffic.iter().enumerate() {
            for index in 0..traffic.count {
                run.add_flow(group as u32, traffic, index);
            }
        }
        for line in 0..2 {
            if let Some(at) = run.network.ways.lines[line].next_step() {
                run.network.ways.events.push(at, Target::Rate(line as u32));
            }
        }
        run.network.ways.events.push(Time::ZERO, Target::Sample);
        Ok(run)
    }

    /// Gives every frame that leaves a line to `capture`.
    pub fn capture(&mut self, capture: Box<dyn Capture>) {
        self.network.ways.capture = Some(InOrder::new(capture));
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The counters of the discipline of `direction` as they are now, from the beginning on.
    pub fn snapshot(&self, direction: Direction) -> Snapshot {
        self.network.ways.lines[direction as usize].qdisc.snapshot()
    }

    /// Packets that wait in both disciplines, up and down, flow by flow. Changes nothing.
    pub fn waiting(&self) -> Vec<[Waiting; 2]> {
        self.network.waiting()
    }

    /// True if flows have queues of their own in the discipline of `direction`: then
    /// [`Run::waiting`] tells sparse from bulk.
    pub fn has_queues(&self, direction: Direction) -> bool {
        self.network.has_queues(direction as usize)
    }

    /// Congestion windows in segments, flow by flow: the sum over a flow's open connections; None
    /// for what has none.
    pub fn windows(&self) -> Vec<Option<u32>> {
        self.network.windows()
    }

    /// Hosts begin with this memory of paths, before anything was simulated. Without it they
    /// remember nothing, from one connection to the next either.
    pub fn recall(&mut self, memory: Memory) {
        debug_assert!(self.now == Time::ZERO && self.events == 0, "connections stand");
        self.network.memory = Some(memory);
    }

    /// Hosts and router are one Linux machine, before anything was simulated: segments keep the
    /// memory that their sockets gave them, the payload and `segment_overhead`. Without it they
    /// take that of frames from a device. It counts where a discipline's memory is limited.
    pub fn share_memory(&mut self) {
        debug_assert!(self.now == Time::ZERO && self.events == 0, "packets are under way");
        let traffic = self.setup.traffic.iter();
        self.network.ways.overheads = traffic.map(|t| t.tcp.segment_overhead).collect();
    }

    /// Another discipline in the place of the set-up's, before anything was simulated: one that no
    /// words describe, such as a [`Tandem`](crate::tandem::Tandem).
    pub fn host(&mut self, direction: Direction, qdisc: Box<dyn Managed + Send>) {
        debug_assert!(self.now == Time::ZERO && self.events == 0, "packets are under way");
        self.network.ways.lines[direction as usize].qdisc = qdisc;
    }

    /// The discipline of `direction`, to be asked.
    pub fn managed(&mut self, direction: Direction) -> &mut dyn Managed {
        self.network.ways.lines[direction as usize].qdisc.as_mut()
    }

    /// Changes settings of the discipline of `direction` now.
    pub fn configure(
        &mut self,
        direction: Direction,
        config: &qdisc::Config,
    ) -> Result<(), qdisc::ConfigError> {
        let Ways { lines, pool, events, .. } = &mut self.network.ways;
        lines[direction as usize].qdisc.configure(config, self.now, pool)?;
        // What waits may be due sooner.
        events.push(self.now, Target::Line(direction as u32));
        Ok(())
    }

    /// The connection of the flow with this hash, the same for both ways: the hash of what its
    /// client sends. None if no socket sends such.
    pub fn connection(&self, flow: u64) -> Option<u64> {
        self.network.client_hash(flow)
    }

    /// From now on, [`Run::answers`] has the answers to the ping that is flow number `flow`.
    pub fn keep_answers(&mut self, flow: u32) {
        if let App::Ping(ping) = &mut self.apps[flow as usize] {
            ping.answers.get_or_insert_with(Vec::new);
        }
    }

    /// Answers to the ping that is flow number `flow` since the last call: when each request was
    /// sent, and its round-trip time.
    pub fn answers(&mut self, flow: u32) -> Vec<(Time, Span)> {
        match &mut self.apps[flow as usize] {
            App::Ping(ping) => ping.answers.as_mut().map(std::mem::take).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// True when the whole duration is simulated.
    pub fn is_over(&self) -> bool {
        self.now >= Time::ZERO + self.setup.duration
    }

    /// True if every transfer of limited size is complete.
    pub fn all_finished(&self) -> bool {
        self.network.flows.iter().all(|flow| {
            let kind = &self.setup.traffic[flow.group as usize].kind;
            flow.finished.is_some() || !matches!(kind, Kind::Bulk { size: Some(_) })
        })
    }

    /// Goes on until `until`, or the end of the duration if that comes first.
    pub fn advance(&mut self, until: Time) {
        while !self.advance_by(until, u64::MAX) {}
    }

    /// As [`Run::advance`], but not for more than `events` events, so that whoever drives the run
    /// gets back control in time. True if the time has come.
    pub fn advance_by(&mut self, until: Time, events: u64) -> bool {
        if self.events == 0 && self.setup.window().0 == Time::ZERO {
            // What happens at time zero is in it.
            self.start_window(Time::ZERO);
        }
        let until = until.min(Time::ZERO + self.setup.duration);
        let limit = self.events.saturating_add(events);
        while self.events < limit {
            let Some((now, target)) = self.network.ways.events.pop(until) else {
                self.now = self.now.max(until);
                return true;
            };
            self.now = now;
            self.events += 1;
            match target {
                Target::Pipe(pipe) => self.network.on_pipe(pipe, now),
                Target::Line(line) => self.network.on_line(line, now),
                other => self.on_rare(other, now),
            }
            self.network.drain(now);
            if !self.network.notices.is_empty() {
                self.inform(now);
            }
        }
        false
    }

    /// Rare events, kept out of the loop, which has to stay in the instruction cache.
    #[inline(never)]
    fn on_rare(&mut self, target: Target, now: Time) {
        match target {
            Target::Endpoint(socket) => self.network.on_endpoint(socket, now),
            Target::App(app) => self.apps[app as usize].on_timer(&mut self.network, now),
            Target::Rate(line) => self.network.ways.on_rate(line, now),
            Target::Sample => self.on_sample(now),
            Target::Pipe(_) | Target::Line(_) => {}
        }
    }

    /// Simulates what is left.
    pub fn finish(mut self) -> Results {
        self.advance(Time::MAX);
        self.results()
    }

    /// Records until now. Complete if the run is over.
    pub fn results(mut self) -> Results {
        let sampled = self.network.ways.lines[0].record.series.len() as u64;
        if Time(self.setup.recording.interval.0 * sampled) < self.now {
            // The last interval, which ends with the run.
            self.network.sample();
        }
        self.network.account_all();
        if let Some(capture) = &mut self.network.ways.capture {
            capture.release(self.now);
        }
        self.into()
    }

    /// News for applications, and deliveries without delay that come of them, until there are none.
    #[inline(never)]
    fn inform(&mut self, now: Time) {
        let mut rounds = 0u64;
        while let Some((app, notice)) = self.network.notices.pop_front() {
            self.apps[app as usize].on_notice(notice, &mut self.network, now);
            self.network.drain(now);
            rounds += 1;
            debug_assert!(rounds < MAX_STANDSTILL, "time stands still at {now:?}");
        }
    }

    fn on_sample(&mut self, now: Time) {
        let (window, end) = self.setup.window();
        if now > Time::ZERO && now == self.next_sample {
            self.network.sample();
        }
        if now >= window && self.baseline.is_none() {
            self.start_window(now);
        }
        if now >= self.next_sample {
            self.next_sample = now + self.setup.recording.interval;
        }
        let next =
            if self.baseline.is_none() { self.next_sample.min(window) } else { self.next_sample };
        if next <= end {
            self.network.ways.events.push(next, Target::Sample);
        }
    }

    fn start_window(&mut self, now: Time) {
        self.network.account_all();
        let network = &mut self.network;
        let mut baseline = Vec::new();
        if now > Time::ZERO {
            let accounts = &network.ways.pool.accounts;
            let counted = network.flows.iter().zip(accounts).zip(network.tcp_totals());
            baseline.extend(counted.map(|((flow, account), tcp)| Baseline {
                account: *account,
                delivered: flow.delivered,
                tcp,
            }));
        }
        self.baseline = Some(baseline);
        for line in &mut network.ways.lines {
            let snapshot = line.qdisc.snapshot();
            line.record.start_window(now, snapshot);
        }
    }

    fn add_flow(&mut self, group: u32, traffic: &Traffic, index: u32) {
        let flow = self.network.flows.len() as u32;
        let (start, random) = start(self.seed, flow, traffic);
        let (home, internet) = traffic.pairs[index as usize % traffic.pairs.len()];
        // Who opens the connection: the sender, except where a client asks for what it gets.
        let asks = matches!(traffic.kind, Kind::Web(_) | Kind::Dash(_));
        let opens = if asks { traffic.direction.reverse() } else { traffic.direction };
        let hosts = match opens {
            Direction::Up => (home, internet),
            Direction::Down => (internet, home),
        };
        let (client, server) = (&self.setup.hosts[hosts.0], &self.setup.hosts[hosts.1]);
        let context = Context {
            opening: Opening {
                app: flow,
                flow,
                group,
                hosts,
                direction: opens,
                dscp: traffic.dscp,
                watched: Watch::Nothing,
            },
            stop: traffic.stop.map_or(Time::MAX, |stop| Time::ZERO + stop),
            window: self.setup.window().0,
            interval: self.setup.recording.interval,
            base: (
                client.egress.delay + server.ingress.delay,
                server.egress.delay + client.ingress.delay,
            ),
            random,
        };
        let intervals = self.setup.intervals();
        let mut record = FlowRecord::new((group, index), traffic.direction, start, intervals);
        record.windows_wanted = self.setup.recording.windows;
        self.network.flows.push(record);
        self.network.ways.pool.accounts.push([Account::default(); 2]);
        self.apps.push(App::new(traffic, context));
        self.network.wake(flow, start);
    }
}

/// Start of flow number `flow`, counted over all traffic, in the run with `seed`. Beside it are the
/// random numbers that the flow's application goes on with. For callers who run the same flows
/// elsewhere, too.
pub fn start(seed: u64, flow: u32, traffic: &Traffic) -> (Time, Random) {
    let mut random = Random::derive(seed, FIRST_APP_STREAM + u64::from(flow));
    let late = Span(between(&mut random, (0, traffic.stagger.0)));
    (Time::ZERO + traffic.start + late, random)
}

fn line(
    setup: &Setup,
    direction: Direction,
    seed: u64,
    groups: usize,
    intervals: usize,
) -> Result<Line, SetupError> {
    let LineSetup { qdisc: config, rate, shaper, framing, steps, device, .. } =
        &setup.lines[direction as usize];
    let device = Device { seed: Random::derive(seed, 16 + direction as u64).u64(), ..*device };
    let qdisc = qdisc::build(config, &device)
        .map_err(|error| SetupError::Discipline { direction, reason: error.to_string() })?;
    let medium = match shaper {
        Shaper::Wire => Medium::Wire,
        Shaper::Bucket(burst) => Medium::Bucket(*burst),
        Shaper::Trace(trace) => Medium::Trace(trace.clone()),
    };
    let record = LineRecord::new(groups, intervals);
    Ok(Line::new(direction as usize, qdisc, medium, *rate, *framing, steps.clone(), record))
}

impl From<Run> for Results {
    fn from(mut run: Run) -> Results {
        let (window, end) = run.setup.window();
        let now = run.now;
        let memory = run.network.memories();
        let totals = run.network.tcp_totals();
        let under_way = run.network.ways.under_way() as u64;
        // What results need of connections is known: they make room for the results.
        run.network.disband();
        let pool = &run.network.ways.pool;
        let dropped = |account: &Account| account.fates().dropped.iter().sum::<u64>();
        let conservation = Conservation {
            sent: pool.sent,
            delivered: pool.delivered,
            lost: pool.lost,
            dropped: pool.accounts.iter().flatten().map(dropped).sum(),
            under_way,
            in_pool: pool.in_use() as u64,
        };
        let (bottleneck_packets, hash) = (pool.passed, pool.hash());
        let accounts = std::mem::take(&mut run.network.ways.pool.accounts);
        let baseline = run.baseline.unwrap_or_default();
        let mut flows = Vec::with_capacity(run.network.flows.len());
        for (n, (record, app)) in run.network.flows.into_iter().zip(run.apps).enumerate() {
            let fates = accounts[n].map(|account| account.fates());
            let (mut delivered, mut fates, mut tcp) = (record.delivered, fates, totals[n]);
            if let Some(before) = baseline.get(n) {
                for direction in 0..2 {
                    delivered[direction] -= before.delivered[direction];
                    let counted = before.account[direction].fates();
                    fates[direction] = fates[direction].since(&counted);
                }
                tcp = tcp.since(&before.tcp);
            }
            flows.push(FlowResult {
                group: record.group,
                index: record.index,
                direction: record.direction,
                started: record.started,
                finished: record.finished,
                delivered,
                series: record.series,
                windows: record.windows,
                fates,
                tcp,
                outcome: app.outcome(now),
            });
        }
        let [up, down] = run.network.ways.lines;
        let lines = [(Direction::Up, up), (Direction::Down, down)].map(|(direction, mut line)| {
            line.record.rate_changed(line.rate(), now);
            LineResult {
                direction,
                packets: line.record.packets,
                bytes: line.record.bytes,
                framed_bytes: line.record.framed_bytes,
                capacity_bytes: line.record.capacity_bytes(),
                longest_queue: line.record.longest,
                sojourn: std::mem::take(line.record.sojourn()),
                series: line.record.series,
                at_start: line.record.at_start,
                at_end: line.qdisc.snapshot(),
            }
        });
        Results {
            seed: run.seed,
            simulated: now.since(Time::ZERO),
            complete: now >= end,
            window: (window.min(now), now),
            interval: run.setup.recording.interval,
            lines,
            groups: run.setup.traffic.iter().map(|traffic| traffic.name.clone()).collect(),
            flows,
            bottleneck_packets,
            events: run.events,
            hash,
            memory,
            conservation,
        }
    }
}

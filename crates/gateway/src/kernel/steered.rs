//! An interface that the kernel shapes for a process of ours, which may set its rates and has its
//! rules (`marked.rs`).
//!
//! The process holds no packet. Each look is one list of the kernel's disciplines, of which the
//! counters of ours are read; another rate is a change in place. If the process dies, the kernel
//! goes on at the last rate, and whoever comes next begins there.
//!
//! What arrived is not counted by every discipline. It is what was sent, is queued or was dropped;
//! a packet dropped counts as the mean of those sent since the look before.

use simnel_autorate::RoundTrips;
use simnel_core::qdisc::{parse, Common, Config};
use simnel_core::Rate;

use super::qdiscs::{Qdiscs, Verb};
use super::redirect;
use super::shaped::{down, hold, set, shaped, told, Maker, HANDLE};
use crate::autorate::{index, Line, Passed, Sockets};
use crate::control_dir::Lock;
use crate::direction::Direction;
use crate::error::Error;
use crate::nft::Table;
use crate::passing::Overheard;
use crate::ruled::Ruled;
use crate::settings::{Plain, Settings};
use crate::sys::{self, Query};
use crate::words;

/// Bytes of a dropped packet where none was sent to compare with: an ordinary full one.
const FULL: u64 = 1514;

/// Counters of one discipline, from look to look.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// At the last look; None before the first.
    last: Option<Common>,
    /// Bytes since the first look.
    arrived: u64,
    released: u64,
}

impl Tally {
    fn take(&mut self, now: Common) {
        // A discipline that was made anew counts from zero.
        let grown = |now: u64, before: u64| now.saturating_sub(before);
        let last = self.last.replace(now).unwrap_or(now);
        let released = grown(now.sent_bytes, last.sent_bytes);
        let mean = released.checked_div(grown(now.sent_packets, last.sent_packets));
        let dropped = grown(now.drops, last.drops).saturating_mul(mean.unwrap_or(FULL));
        let gone = released.saturating_add(dropped).saturating_add(now.backlog.bytes);
        // What was dropped may have been longer than that.
        let arrived = gone.saturating_sub(last.backlog.bytes);
        self.released = self.released.wrapping_add(released);
        self.arrived = self.arrived.wrapping_add(arrived);
    }

    fn passed(&self) -> Option<Passed> {
        let backlog = self.last?.backlog.bytes.min(u64::from(u32::MAX)) as u32;
        // Counters that wrap round.
        Some(Passed { arrived: self.arrived as u32, released: self.released as u32, backlog })
    }
}

/// One direction.
struct Way {
    direction: Direction,
    /// The interface, or the device that what arrives passes.
    device: String,
    /// Its number.
    number: u32,
    /// Settings of its discipline now.
    config: Config,
    tally: Tally,
}

/// An interface that the kernel shapes and a process steers. Dropping it leaves all as it is.
pub(crate) struct Steered {
    pub(super) settings: Settings,
    maker: Maker,
    kernel: Qdiscs,
    ways: Vec<Way>,
    /// Rates that were there already.
    found: [Option<Rate>; 2],
    /// The interface's number when it was last found.
    number: u32,
    /// The disciplines were not found at the last look.
    lost: bool,
    pub(super) ruled: Ruled,
    /// Passing TCP, where sockets for that were opened.
    overheard: Option<Overheard>,
    _lock: Lock,
}

impl Steered {
    /// Takes the interface over, with what the kernel does there already; its lock may be `held`
    /// since a daemon before.
    ///
    /// # Errors
    /// As [`super::up`]; somebody else has the interface.
    pub(crate) fn up(settings: Settings, held: Option<Lock>) -> Result<Steered, Error> {
        let lock = match held {
            Some(held) => held.signed()?,
            None => Lock::take(&settings.control_dir, &settings.interface)?,
        };
        let kernel = Qdiscs::open()?;
        let mut steered = Steered {
            settings,
            maker: Maker::Module,
            kernel,
            ways: Vec::new(),
            found: [None; 2],
            number: 0,
            lost: false,
            ruled: Ruled::in_kernel(HANDLE),
            overheard: None,
            _lock: lock,
        };
        let found = shaped(Some(steered.interface()))?;
        for shaped in &found {
            let rate = parse(&shaped.words()?).ok().and_then(|config| config.rate());
            steered.begin_at(shaped.direction, rate);
        }
        let rules = steered.settings.clone();
        steered.lay_rules(&rules)?;
        match steered.hold() {
            Ok(()) => Ok(steered),
            Err(error) => {
                if found.is_empty() {
                    // As it was before.
                    let _ = steered.down();
                }
                Err(error)
            }
        }
    }

    /// Goes on with other settings.
    ///
    /// # Errors
    /// As [`Steered::up`].
    pub(crate) fn adopt(&mut self, settings: Settings) -> Result<(), Error> {
        self.lay_rules(&settings)?;
        self.settings = settings;
        for way in std::mem::take(&mut self.ways) {
            self.begin_at(way.direction, way.config.rate());
        }
        self.hold()
    }

    /// A direction whose rate follows its line begins at `rate`, as far as its range allows.
    fn begin_at(&mut self, direction: Direction, rate: Option<Rate>) {
        let settings = &mut self.settings;
        let limits = settings.autorate.as_ref().and_then(|autorate| autorate.limits(direction));
        let Some((limits, rate)) = limits.zip(rate) else { return };
        let rate = Rate(rate.bytes().clamp(limits.floor.bytes(), limits.ceiling.bytes()));
        self.found[index(direction)] = Some(rate);
        let slow = |config: &mut Config| {
            *config = config.with_rate(rate, words::burst).unwrap_or_else(|| config.clone());
        };
        settings.direction_mut(direction).as_mut().map(slow);
        settings.plain.direction_mut(direction).as_mut().map(slow);
    }

    /// Lets the kernel shape as the settings say, and finds the disciplines.
    pub(super) fn hold(&mut self) -> Result<(), Error> {
        self.maker = hold(&self.marked())?;
        let interface = self.settings.interface.clone();
        let numbered = |device: &str| {
            sys::interface(device, Query::Index).map_err(|_| Error::NoInterface(device.to_owned()))
        };
        self.number = numbered(&interface)?;
        self.listen();
        let [upload, download] =
            Direction::BOTH.map(|direction| told(&self.settings, self.maker, direction).cloned());
        // What is asked for from now on is what there is.
        (self.settings.download, self.settings.upload) = (download, upload);
        self.settings.plain = Plain::default();
        self.ways.clear();
        for direction in Direction::BOTH {
            let Some(config) = self.settings.direction(direction).cloned() else { continue };
            let device = match direction {
                Direction::Upload => interface.clone(),
                Direction::Download => redirect::device_name(self.number),
            };
            let (number, tally) = (numbered(&device)?, Tally::default());
            self.ways.push(Way { direction, device, number, config, tally });
        }
        self.lost = false;
        self.restore_marks(&self.kernel, self.number)
    }

    /// Listens by `sockets` to TCP that passes, as long as rates follow the line.
    pub(crate) fn overhear(&mut self, sockets: Option<&Sockets>) {
        self.overheard = sockets
            .and_then(|sockets| sockets.overhearing.as_ref())
            .and_then(|socket| Overheard::by(socket).ok());
        self.listen();
    }

    /// True if passing TCP is listened to.
    pub(crate) fn overhears(&self) -> bool {
        self.overheard.is_some()
    }

    /// Listens at the interface as it is now. Where that fails, reflectors tell.
    fn listen(&self) {
        if let Some(overheard) = &self.overheard {
            let _ = overheard.listen_to(self.number);
        }
    }

    /// The interface.
    pub(crate) fn interface(&self) -> &str {
        &self.settings.interface
    }

    /// Settings that `up` was given, at rates that were found.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Maker of the disciplines that shape.
    pub(crate) fn maker(&self) -> Maker {
        self.maker
    }

    /// Settings of one direction as they are now.
    pub(crate) fn config(&self, direction: Direction) -> Option<&Config> {
        self.way(direction).map(|way| &way.config)
    }

    /// Rates that the kernel had before, of directions that follow their line.
    pub(crate) fn found(&self) -> [Option<Rate>; 2] {
        self.found
    }

    /// The rates that are set now, of the same.
    fn rates(&self) -> [Option<Rate>; 2] {
        let mut rates = [None; 2];
        for way in &self.ways {
            rates[index(way.direction)] = way.config.rate().filter(|_| self.follows(way.direction));
        }
        rates
    }

    fn follows(&self, direction: Direction) -> bool {
        self.settings.autorate.as_ref().is_some_and(|all| all.limits(direction).is_some())
    }

    fn way(&self, direction: Direction) -> Option<&Way> {
        self.ways.iter().find(|way| way.direction == direction)
    }

    /// Gives one direction other settings, at the rate that autorate has set where there is one.
    ///
    /// # Errors
    /// The direction is not shaped, or the discipline refuses.
    pub(crate) fn change(&mut self, direction: Direction, config: Config) -> Result<(), Error> {
        let follows = self.follows(direction);
        let interface = self.settings.interface.clone();
        let none = || Error::NoDirection { interface, direction };
        let way = self.ways.iter_mut().find(|way| way.direction == direction).ok_or_else(none)?;
        let present = way.config.rate().filter(|_| follows);
        let config = match present {
            Some(rate) => config.with_rate(rate, words::burst).unwrap_or(config),
            None => config,
        };
        let config = self.ruled.said(config);
        let mut settings = self.settings.clone();
        *settings.direction_mut(direction) = Some(config.clone());
        *settings.plain.direction_mut(direction) = None;
        // Words of cake decide which number a tier has.
        let plans = self.ruled.plans(&settings)?;
        let others = self.ruled.plans(&self.settings)? != plans;
        let told = self.ruled.told(&config);
        set(&self.kernel, Verb::Change, &way.device, &told, self.maker)?;
        if others {
            let before = self.ruled.told(&way.config);
            self.ruled.lay(plans).inspect_err(|_| {
                // The error before is the one to be told.
                let _ = set(&self.kernel, Verb::Change, &way.device, &before, self.maker);
            })?;
        }
        self.settings = settings;
        way.config = config;
        Ok(())
    }

    /// Makes anew what others, or the end of the interface, took away; true if anything was.
    ///
    /// # Errors
    /// As [`super::up`].
    pub(crate) fn mend(&mut self) -> Result<bool, Error> {
        if !self.lost {
            return Ok(false);
        }
        let now = sys::interface(&self.settings.interface, Query::Index);
        if now.is_ok_and(|now| now != self.number) {
            self.remove_leftover();
        }
        for (direction, rate) in Direction::BOTH.into_iter().zip(self.rates()) {
            self.begin_at(direction, rate);
        }
        self.hold().map(|()| true)
    }

    /// Removes the device of an interface that is no more.
    fn remove_leftover(&self) {
        let _ = redirect::remove_named(&self.kernel, &redirect::device_name(self.number));
    }

    /// Gives the interface back.
    ///
    /// # Errors
    /// A system call failed.
    pub(crate) fn down(self) -> Result<(), Error> {
        let gone = match down(&self.settings.interface) {
            Err(Error::NoInterface(_)) => {
                self.remove_leftover();
                Ok(())
            }
            other => other,
        };
        // Last, so that nothing bears a mark that nobody takes away.
        gone.and(self.ruled.table.map_or(Ok(()), Table::remove))
    }
}

impl Line for Steered {
    fn look(&mut self) -> Result<(), Error> {
        let mut found = 0;
        let ways = &mut self.ways;
        self.kernel.count(HANDLE, |number, common| {
            if let Some(way) = ways.iter_mut().find(|way| way.number == number) {
                way.tally.take(common);
                found += 1;
            }
        })?;
        self.lost = found < self.ways.len();
        match self.lost {
            true => Err(Error::TakenAway(self.settings.interface.clone())),
            false => Ok(()),
        }
    }

    fn passed(&self, direction: Direction) -> Option<Passed> {
        self.way(direction)?.tally.passed()
    }

    fn round_trips(&mut self) -> Option<&RoundTrips> {
        self.overheard.as_mut().map(Overheard::round_trips)
    }

    fn set_rate(&mut self, direction: Direction, rate: Rate) -> Result<(), Error> {
        let Some(way) = self.ways.iter_mut().find(|way| way.direction == direction) else {
            return Ok(());
        };
        let Some(config) = way.config.with_rate(rate, words::burst) else { return Ok(()) };
        set(&self.kernel, Verb::Change, &way.device, &self.ruled.told(&config), self.maker)?;
        way.config = config;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::qdisc::Backlog;

    use super::*;

    fn counted(bytes: u64, packets: u64, drops: u64, queued: u64) -> Common {
        Common {
            sent_bytes: bytes,
            sent_packets: packets,
            drops,
            backlog: Backlog { packets: 1, bytes: queued },
            ..Common::default()
        }
    }

    /// Growth between looks: arrived, released, and bytes queued.
    fn grown(looks: &[Common]) -> Vec<(u32, u32, u32)> {
        let mut tally = Tally::default();
        let passed = looks.iter().map(|look| {
            tally.take(*look);
            tally.passed().unwrap()
        });
        let passed: Vec<Passed> = passed.collect();
        let pairs = passed.windows(2).map(|pair| {
            let growth = |of: fn(&Passed) -> u32| of(&pair[1]).wrapping_sub(of(&pair[0]));
            (growth(|p| p.arrived), growth(|p| p.released), pair[1].backlog)
        });
        pairs.collect()
    }

    #[test]
    fn what_arrived_is_what_was_sent_queued_or_dropped() {
        assert_eq!(Tally::default().passed(), None);
        // From the first look on, whatever was counted before.
        let looks = [
            counted(1_000_000, 1_000, 50, 3_000),
            counted(1_010_000, 1_010, 50, 3_000),
            // Two dropped packets, of 1,000 bytes as the others.
            counted(1_020_000, 1_020, 52, 8_000),
            // Less is queued than a packet of the usual length would have left: nothing came.
            counted(1_020_000, 1_020, 53, 1_000),
        ];
        let expected = [(10_000, 10_000, 3_000), (17_000, 10_000, 8_000), (0, 0, 1_000)];
        assert_eq!(grown(&looks), expected);
        let alone = [counted(0, 0, 0, 0), counted(0, 0, 2, 0)];
        assert_eq!(grown(&alone), [(2 * FULL as u32, 0, 0)]);
    }

    #[test]
    fn a_change_whose_rules_are_refused_is_taken_back() {
        const NAME: &str = "a_change_whose_rules_are_refused_is_taken_back";
        crate::apart::apart(NAME, || {
            let text = "[[interface]]\nname = \"lo\"\nupload = \"1mbit\"\n\
                        qdisc = \"cake diffserv4\"\n\
                        [[rule]]\nport = 7001\ntier = \"voice\"\n";
            let settings = crate::config::parse(text).unwrap().remove(0);
            let directory = tempfile::tempdir().unwrap();
            let (kernel, requests) = Qdiscs::of_willing_kernel();
            let before = settings.upload.clone().unwrap();
            let mut steered = Steered {
                settings: settings.clone(),
                maker: Maker::Module,
                kernel,
                ways: vec![Way {
                    direction: Direction::Upload,
                    device: "lo".into(),
                    number: 1,
                    config: before.clone(),
                    tally: Tally::default(),
                }],
                found: [None; 2],
                number: 1,
                lost: false,
                ruled: Ruled::in_kernel(HANDLE),
                overheard: None,
                _lock: Lock::take(directory.path(), "lo").unwrap(),
            };
            if let Err(error) = steered.lay_rules(&settings) {
                return eprintln!("NOT RUN: {NAME}: {error}");
            }
            steered.ruled.table.as_mut().unwrap().lose();
            // Voice has another number there.
            let other = parse("cake bandwidth 2mbit diffserv3").unwrap();
            let told = [&other, &before].map(|config| steered.ruled.told(config).to_string());
            let result = steered.change(Direction::Upload, other);
            assert!(matches!(result, Err(Error::System { .. })), "{result:?}");
            assert_eq!(steered.config(Direction::Upload), Some(&before));
            assert_eq!(steered.settings.upload, Some(before));
            drop(steered);
            let requests = requests.join().unwrap();
            let says = |request: &Vec<u8>, words: &String| {
                request.windows(words.len()).any(|part| part == words.as_bytes())
            };
            assert_eq!(requests.len(), told.len(), "{requests:?}");
            assert!(requests.iter().zip(&told).all(|(request, words)| says(request, words)));
        });
    }

    #[test]
    fn a_discipline_made_anew_counts_on() {
        let looks = [counted(900_000, 900, 9, 0), counted(0, 0, 0, 0), counted(5_000, 5, 0, 0)];
        assert_eq!(grown(&looks), [(0, 0, 0), (5_000, 5_000, 0)]);
    }
}

//! The control socket's language, and its client.
//!
//! A Unix stream socket `<directory>/<interface>.sock`, for root and the daemon's user. One JSON
//! object a line each way:
//!
//! ```text
//! {"cmd":"show"}                                → {"ok":true,"qdiscs":[…],"autorate":…}
//! {"cmd":"change","direction":"upload","words":"cake bandwidth 8mbit"} → {"ok":true}
//! {"cmd":"trial","direction":"upload","words":"cake …","ms":60000}   → {"ok":true}
//! {"cmd":"keep"}                                                  → {"ok":true}
//! {"cmd":"flows"}                               → {"ok":true,"lines":[…],"flows":[…]}
//! {"cmd":"record","direction":"upload"}  → {"ok":true,"recorded":{"bytes":N,…}}, then N bytes
//! {"cmd":"rules"}                                                 → {"ok":true,"rules":[…]}
//! {"cmd":"down"}                                                  → {"ok":true,"drained":17}
//! anything else                                                   → {"ok":false,"error":"…"}
//! ```
//!
//! Settings travel as `tc`'s words, counters as numbers under their names here, times in
//! nanoseconds, rates in bytes a second. An unknown key in a request is an error.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use simnel_core::qdisc::Snapshot;

use crate::autorate;
use crate::control_dir::is_locked;
use crate::datapath::{Counters, Node};
use crate::direction::Direction;
use crate::error::Error;
use crate::flows::{FlowEntry, LineEntry};
use crate::gateway::Report;
use crate::kernel;
use crate::lanes::Lanes;
use crate::links::check_name;
use crate::nfqueue::KernelCounters;
use crate::presence::Change;
use crate::record::{self, Recorded};
use crate::rules::RuleEntry;
use crate::supervisor;
use crate::sys::{self, Query};
use crate::trial::Left;

/// Requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Both directions as they run.
    Show {},
    /// New settings for one direction.
    Change {
        /// Direction to change.
        direction: Direction,
        /// The discipline and its settings in `tc`'s words.
        words: String,
    },
    /// As `change`, but the settings before come back after a time, unless these are kept.
    Trial {
        /// Direction to change.
        direction: Direction,
        /// The discipline and its settings in `tc`'s words.
        words: String,
        /// Milliseconds until the settings before come back.
        ms: u64,
    },
    /// End the interface's trials: what runs stays.
    Keep {},
    /// The flows of both directions: who sends, how much, how long it waits.
    Flows {},
    /// The rules of the configuration file, and what they have counted.
    Rules {},
    /// Headers of one direction's packets that arrived since this client last asked: the first
    /// request begins that, and the end of the connection ends it.
    Record {
        /// Direction to record.
        direction: Direction,
    },
    /// Give the interface back.
    Down {},
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Success of the request.
    pub ok: bool,
    /// Reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For `show`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdiscs: Option<Vec<Entry>>,
    /// For `show`: what ends by itself, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Left>,
    /// For `show`: the reason why nothing passes the interface, or passes unshaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Change>,
    /// For `show`: what makes it worse than it could be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// For `show`: what makes the rates follow the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autorate: Option<autorate::Report>,
    /// For `flows`: each direction as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<LineEntry>>,
    /// For `flows`: those of the last minute, and those with packets queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<FlowEntry>>,
    /// For `flows`: the reason why not all are told, or not their counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<String>,
    /// For `rules`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<RuleEntry>>,
    /// For `record`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// For `down`: packets that were queued and have been let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<u64>,
}

impl Reply {
    /// The answer that something could not be done.
    pub fn error(error: impl ToString) -> Reply {
        Reply { error: Some(error.to_string()), ..Reply::default() }
    }

    /// The answer that something was done.
    pub fn done() -> Reply {
        Reply { ok: true, ..Reply::default() }
    }
}

/// A discipline below another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Below {
    /// The class of the discipline above that it belongs to.
    pub class: u32,
    /// Settings in `tc`'s words.
    pub config: String,
    /// Its counters.
    pub stats: Snapshot,
    /// Disciplines below its own classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Below>,
}

impl From<Node> for Below {
    fn from(node: Node) -> Below {
        Below {
            class: node.class,
            config: node.config.to_string(),
            stats: node.snapshot,
            below: node.below.into_iter().map(Below::from).collect(),
        }
    }
}

/// One direction of one interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The interface.
    pub dev: String,
    /// The direction.
    pub direction: Direction,
    /// Time at which this was told, by CLOCK_MONOTONIC. None from a daemon of an earlier version.
    #[serde(default)]
    pub at_ns: Option<u64>,
    /// Settings in `tc`'s words.
    pub config: String,
    /// The discipline's counters.
    pub stats: Snapshot,
    /// Disciplines below its classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Below>,
    /// The data path's counters.
    pub datapath: Counters,
    /// Its lanes: queues and threads that share its rate.
    #[serde(default)]
    pub lanes: Lanes,
    /// Number of the NFQUEUE, or of the first lane's.
    pub queue: u16,
    /// The kernel's counters of it.
    pub kernel: KernelCounters,
}

impl From<Report> for Entry {
    fn from(report: Report) -> Entry {
        let at_ns = Some(report.status.at.0);
        let Below { config, stats, below, .. } = report.status.root.into();
        Entry {
            dev: report.dev,
            direction: report.direction,
            at_ns,
            config,
            stats,
            below,
            datapath: report.status.counters,
            lanes: report.lanes,
            queue: report.queue,
            kernel: report.kernel,
        }
    }
}

/// Path of the socket at which the daemon of `interface` listens.
pub fn socket_path(directory: &Path, interface: &str) -> PathBuf {
    directory.join(format!("{interface}.sock"))
}

/// Interfaces whose daemons have a socket in `directory`, sorted. One may be a leftover of a daemon
/// that was killed: then [`Client::connect`] says [`Error::NotUp`].
///
/// # Errors
/// The directory may not be looked into.
pub fn interfaces(directory: &Path) -> Result<Vec<String>, Error> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => {
            let root = match e.kind() {
                ErrorKind::PermissionDenied => " (are you root?)",
                _ => "",
            };
            let doing = format!("looking into {}{root}", directory.display());
            return Err(Error::system(doing, e));
        }
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            Some(entry.ok()?.file_name().to_str()?.strip_suffix(".sock")?.to_owned())
        })
        .collect();
    names.sort();
    Ok(names)
}

/// Longest wait for a daemon to take a request or to answer it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to the daemon of one interface.
pub struct Client {
    interface: String,
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon of `interface`.
    ///
    /// # Errors
    /// [`Error::NotUp`] if nobody listens, [`Error::Restarting`] if somebody is about to.
    pub fn connect(directory: &Path, interface: &str) -> Result<Client, Error> {
        check_name(interface)?;
        let path = socket_path(directory, interface);
        match UnixStream::connect(&path) {
            Ok(stream) => {
                stream
                    .set_read_timeout(Some(PATIENCE))
                    .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
                    .map_err(|e| Error::system("setting up the control socket", e))?;
                Ok(Client { interface: interface.to_owned(), stream: BufReader::new(stream) })
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(Error::system(format!("connecting to {} (are you root?)", path.display()), e))
            }
            Err(_) if is_locked(directory, interface) => {
                Err(Error::Restarting(interface.to_owned()))
            }
            Err(_) => {
                let index = sys::interface(interface, Query::Index);
                let is_there =
                    !index.is_err_and(|e| e.raw_os_error() == Some(Errno::NODEV.raw_os_error()));
                Err(Error::NotUp { interface: interface.to_owned(), path, is_there })
            }
        }
    }

    /// The same, also with a daemon that is about to be started again. It is waited for as long as
    /// such a start may take, while `go_on`, which is asked again and again, says so.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn await_daemon(
        directory: &Path,
        interface: &str,
        mut go_on: impl FnMut(&Error) -> bool,
    ) -> Result<Client, Error> {
        const AGAIN: Duration = Duration::from_millis(50);
        // The pause, and what a start takes on a busy machine.
        let end = Instant::now() + supervisor::LONGEST_PAUSE + Duration::from_secs(5);
        loop {
            match Client::connect(directory, interface) {
                Err(error @ Error::Restarting(_)) if Instant::now() < end && go_on(&error) => {
                    std::thread::sleep(AGAIN);
                }
                result => return result,
            }
        }
    }

    /// The same for somebody whose daemon has just ended. Its supervisor may hear of that later;
    /// until then nobody has the interface.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn await_another(
        directory: &Path,
        interface: &str,
        mut go_on: impl FnMut(&Error) -> bool,
    ) -> Result<Client, Error> {
        const AGAIN: Duration = Duration::from_millis(20);
        /// The supervisor waits for nothing else; a busy machine may let it wait for a core.
        const HEARD: Duration = Duration::from_secs(2);
        let end = Instant::now() + HEARD;
        loop {
            match Client::await_daemon(directory, interface, &mut go_on) {
                Err(error @ Error::NotUp { .. }) if Instant::now() < end && go_on(&error) => {
                    std::thread::sleep(AGAIN);
                }
                result => return result,
            }
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// [`Error::Remote`] with the daemon's words if it could not be done, [`Error::Unanswered`] if
    /// nobody knows.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Error> {
        let unanswered = || Error::Unanswered(self.interface.clone());
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
                unanswered()
            }
            ErrorKind::WouldBlock => {
                let error = std::io::Error::other(format!("it has not answered for {PATIENCE:?}"));
                Error::system("talking to the daemon", error)
            }
            _ => Error::system("talking to the daemon", error),
        };
        let mut line = serde_json::to_string(request).map_err(protocol)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer).map_err(failed)? == 0 {
            return Err(unanswered());
        }
        let mut reply: Reply = serde_json::from_str(&answer).map_err(protocol)?;
        if let Some(recorded) = &mut reply.recorded {
            recorded.raw = vec![0; recorded.bytes.min(record::most())];
            self.stream.read_exact(&mut recorded.raw).map_err(failed)?;
        }
        match reply.ok {
            true => Ok(reply),
            false => Err(Error::Remote(reply.error.unwrap_or_default())),
        }
    }

    /// Both directions as they run.
    ///
    /// # Errors
    /// As [`Client::ask`]; [`Error::Awaited`] before they do.
    pub fn show(&mut self) -> Result<Vec<Entry>, Error> {
        let reply = self.ask(&Request::Show {})?;
        match reply.trouble {
            Some(Change::Awaited(reason)) => {
                Err(Error::Awaited { interface: self.interface.clone(), reason })
            }
            _ => Ok(reply.qdiscs.unwrap_or_default()),
        }
    }

    /// Settings of one direction in `tc`'s words, by the daemon or the kernel that it lets shape;
    /// None if it is not shaped.
    ///
    /// # Errors
    /// As [`Client::ask`]; the kernel cannot be asked.
    pub fn words(&mut self, direction: Direction) -> Result<Option<String>, Error> {
        let shown = self.show()?;
        if shown.is_empty() {
            return kernel::words(&self.interface, direction);
        }
        let present = shown.into_iter().find(|entry| entry.direction == direction);
        Ok(present.map(|entry| entry.config))
    }

    /// Each direction as a whole, and its flows. Counters grow: rates are differences of two looks.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn flows(&mut self) -> Result<(Vec<LineEntry>, Vec<FlowEntry>), Error> {
        let reply = self.ask(&Request::Flows {})?;
        Ok((reply.lines.unwrap_or_default(), reply.flows.unwrap_or_default()))
    }

    /// The rules of the configuration file, and what they have counted.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn rules(&mut self) -> Result<Vec<RuleEntry>, Error> {
        Ok(self.ask(&Request::Rules {})?.rules.unwrap_or_default())
    }

    /// Headers of the packets of `direction` that arrived since the last call.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn record(&mut self, direction: Direction) -> Result<Recorded, Error> {
        Ok(self.ask(&Request::Record { direction })?.recorded.unwrap_or_default())
    }

    /// Changes one direction to the settings that `words` stand for.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn change(&mut self, direction: Direction, words: &str) -> Result<(), Error> {
        self.ask(&Request::Change { direction, words: words.to_owned() }).map(drop)
    }

    /// As [`Client::change`], but for `time` only.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn try_out(
        &mut self,
        direction: Direction,
        words: &str,
        time: Duration,
    ) -> Result<(), Error> {
        let ms = time.as_millis() as u64;
        self.ask(&Request::Trial { direction, words: words.to_owned(), ms }).map(drop)
    }

    /// Ends the interface's trials: what runs stays.
    ///
    /// # Errors
    /// As [`Client::ask`]; also if nothing is on trial.
    pub fn keep(&mut self) -> Result<(), Error> {
        self.ask(&Request::Keep {}).map(drop)
    }

    /// Trials that end by themselves, and when.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn trials(&mut self) -> Result<Vec<Left>, Error> {
        Ok(self.ask(&Request::Show {})?.trials)
    }

    /// Ends the interface's management; says how many packets were let go.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn down(&mut self) -> Result<u64, Error> {
        Ok(self.ask(&Request::Down {})?.drained.unwrap_or(0))
    }
}

fn protocol(error: serde_json::Error) -> Error {
    Error::Protocol(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use simnel_core::qdisc::{blue, cake, Backlog, Chance, Detail, Totals};
    use simnel_core::{Rate, Span};

    use super::*;

    #[test]
    fn a_daemon_that_does_not_answer_is_named() {
        let (stream, daemon) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut client = Client { interface: "wan".into(), stream: BufReader::new(stream) };
        let error = client.rules().unwrap_err();
        assert_eq!(error.to_string(), "talking to the daemon: it has not answered for 10s");
        drop(daemon);
    }

    #[test]
    fn a_daemon_that_goes_away_is_named() {
        // With something unread a connection does not only end, it is reset.
        for is_reset in [true, false] {
            let (stream, daemon) = UnixStream::pair().unwrap();
            let mut client = Client { interface: "wan".into(), stream: BufReader::new(stream) };
            if is_reset {
                client.stream.get_mut().write_all(b"{").unwrap();
            }
            drop(daemon);
            let error = client.rules().unwrap_err();
            assert!(matches!(&error, Error::Unanswered(wan) if wan == "wan"), "{error}");
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_begun_by_nobody() {
        let directory = tempfile::tempdir().unwrap();
        for (interface, advice) in
            [("lo", "`simnel up`"), ("nope0", "`ip link` lists those there are")]
        {
            let error = Client::connect(directory.path(), interface).map(drop).unwrap_err();
            assert!(error.to_string().ends_with(advice), "{error}");
        }
    }

    /// Between the end of a daemon and the moment at which its supervisor has the interface.
    #[test]
    fn another_daemon_is_awaited_before_anybody_speaks_of_one() {
        let directory = tempfile::tempdir().unwrap();
        let connect = |go_on| Client::await_another(directory.path(), "lo", |_| go_on);
        assert!(matches!(connect(false), Err(Error::NotUp { .. })));
        std::thread::scope(|scope| {
            let another = scope.spawn(|| connect(true).map(drop));
            std::thread::sleep(Duration::from_millis(100));
            let _listener = UnixListener::bind(socket_path(directory.path(), "lo")).unwrap();
            another.join().unwrap().expect("the other daemon");
        });
    }

    #[test]
    fn a_snapshot_survives_the_wire() {
        let mut cake = cake::Stats { tin_count: 3, ..cake::Stats::default() };
        cake.tins[2] =
            cake::TinStats { drops: 7, target: Span::from_millis(5), ..cake::TinStats::default() };
        cake.capacity_estimate = Rate(1_250_000);
        let totals = Totals { sent_packets: 9, dropped: [1, 2, 3, 4, 5, 6], ..Totals::default() };
        let backlog = Backlog { packets: 4, bytes: 6056 };
        let blue = blue::Stats { prob: Chance(7), dropped: 8, ..blue::Stats::default() };
        for detail in [Detail::Cake(cake), Detail::Blue(blue), Detail::Sfq(None), Detail::Fifo(())]
        {
            let snapshot = Snapshot { totals, backlog, detail };
            let text = serde_json::to_string(&snapshot).unwrap();
            assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_looked_into_is_no_empty_one() {
        assert_eq!(interfaces(Path::new("/nowhere/at/all")).unwrap(), Vec::<String>::new());
        let error = interfaces(Path::new("/proc/self/status")).unwrap_err().to_string();
        assert!(error.contains("looking into /proc/self/status"), "{error}");
    }

    #[test]
    fn requests_are_as_documented() {
        let parse = serde_json::from_str::<Request>;
        assert_eq!(parse(r#"{"cmd":"show"}"#).unwrap(), Request::Show {});
        assert_eq!(
            parse(r#"{"cmd":"change","direction":"upload","words":"cake"}"#).unwrap(),
            Request::Change { direction: Direction::Upload, words: "cake".into() }
        );
        assert!(parse(r#"{"cmd":"down","now":1}"#).unwrap_err().to_string().contains("`now`"));
        assert_eq!(parse(r#"{"cmd":"flows"}"#).unwrap(), Request::Flows {});
        assert!(parse(r#"{"cmd":"up"}"#).is_err());
    }
}

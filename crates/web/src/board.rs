//! What was seen of all interfaces, and the last ten minutes of it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use simnel_gateway::view::{Look, Names, View, Viewer};
use simnel_gateway::{control, kernel, Direction};
use tokio::sync::watch;

/// Time between looks.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// Points that are kept of each interface.
const KEPT: usize = 600;
/// Flows that are told of, the busiest; all are counted.
const MOST_FLOWS: usize = 200;
/// Looks between readings of hosts' names.
const NAMES_EACH: u64 = 30;

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, Arc<Interface>>,
}

/// One interface.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interface {
    /// What it does; only the busiest flows.
    pub view: View,
    /// Flows in all.
    pub flow_count: usize,
    /// What it did, the oldest first.
    #[serde(skip)]
    pub history: VecDeque<Point>,
}

/// One moment of one interface, in numbers that a chart shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Seconds since 1970.
    pub at_s: u64,
    /// Bits a second, download and upload.
    pub rate_bps: [u64; 2],
    /// Worst added latency of 99 of 100 packets, each way; 0 where nothing is known.
    pub p99_ns: [u64; 2],
    /// Drops and marks since the point before, each way.
    pub signals: [u64; 2],
}

impl Point {
    fn of(view: &View, at_s: u64) -> Point {
        let mut point = Point { at_s, ..Point::default() };
        for line in &view.lines {
            let way = usize::from(line.direction == Direction::Upload);
            point.rate_bps[way] = line.rate_bps;
            point.p99_ns[way] = line.delay.map_or(0, |delay| delay.p99_ns);
            point.signals[way] = line.new_drops + line.new_marks.unwrap_or(0);
        }
        point
    }
}

/// Looks at all interfaces for as long as somebody may read.
pub(crate) fn watch(control_dir: PathBuf) -> std::io::Result<watch::Receiver<Board>> {
    let (sender, receiver) = watch::channel(Board::default());
    thread::Builder::new().name("simnel-looks".into()).spawn(move || {
        let mut watcher = Watcher::new(control_dir);
        while !sender.is_closed() {
            let board = watcher.look(&sender.borrow().clone());
            sender.send_replace(board);
            thread::sleep(EVERY);
        }
    })?;
    Ok(receiver)
}

struct Watcher {
    control_dir: PathBuf,
    viewers: BTreeMap<String, Viewer>,
    names: Names,
    looks: u64,
}

impl Watcher {
    fn new(control_dir: PathBuf) -> Watcher {
        Watcher { control_dir, viewers: BTreeMap::new(), names: Names::default(), looks: 0 }
    }

    fn look(&mut self, before: &Board) -> Board {
        if self.looks.is_multiple_of(NAMES_EACH) {
            self.names = Names::read();
        }
        self.looks += 1;
        let at_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let names = interfaces(&self.control_dir);
        self.viewers.retain(|name, _| names.contains(name));
        let mut board = Board::default();
        for name in names {
            // A daemon that ends meanwhile is not there any more.
            let Ok(look) = Look::take(&self.control_dir, &name) else { continue };
            let viewer = self.viewers.entry(name.clone()).or_default();
            let mut view = viewer.see(look, &self.names);
            let flow_count = view.flows.len();
            view.flows.truncate(MOST_FLOWS);
            let history = before.interfaces.get(&name).map(|old| old.history.clone());
            let mut history = history.unwrap_or_default();
            if history.len() >= KEPT {
                history.pop_front();
            }
            history.push_back(Point::of(&view, at_s));
            board.interfaces.insert(name, Arc::new(Interface { view, flow_count, history }));
        }
        board
    }
}

/// Interfaces that a daemon or the kernel shapes.
fn interfaces(control_dir: &Path) -> Vec<String> {
    let mut names = control::interfaces(control_dir).unwrap_or_default();
    names.extend(kernel::shaped(None).unwrap_or_default().into_iter().map(|s| s.interface));
    names.sort();
    names.dedup();
    names
}

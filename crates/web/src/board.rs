//! All interfaces, looked at once a second, and what of that is kept.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{json, Value};
use simnel_gateway::view::{Naming, View, Viewer};
use simnel_gateway::{control, kernel, Direction, Error};
use tokio::sync::watch;

use crate::history::{History, Point};
use crate::store::Store;

/// Time between looks.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// Time between savings of history.
const SAVED_EVERY: Duration = Duration::from_secs(60);
/// Flows that are told of, the busiest; all are counted.
const MOST_FLOWS: usize = 200;

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, Arc<Interface>>,
    /// Reason why there may be more of them, if there is one.
    pub trouble: Option<String>,
}

impl Board {
    /// The same as the API tells it.
    pub(crate) fn told(&self) -> Value {
        let interfaces = self.interfaces.iter().map(|(name, interface)| {
            json!({
                "name": name,
                "view": interface.view,
                "flow_count": interface.flow_count,
                "point": interface.point,
            })
        });
        json!({ "interfaces": interfaces.collect::<Vec<Value>>(), "trouble": self.trouble })
    }
}

/// One interface.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interface {
    /// Its doings; only the busiest flows.
    pub view: View,
    /// Flows in all.
    pub flow_count: usize,
    /// The same, as a chart shows it.
    pub point: Point,
}

impl Point {
    pub(crate) fn of(view: &View, at_s: u64) -> Point {
        let mut point = Point { at_s, ..Point::default() };
        for line in &view.lines {
            let way = usize::from(line.direction == Direction::Upload);
            point.rate_bps[way] = line.rate_bps;
            point.p99_ns[way] = line.delay.map_or(0, |delay| delay.last_p99_ns);
            point.signals[way] = line.new_drops + line.new_marks.unwrap_or(0);
        }
        point
    }
}

/// History, and whether it is saved.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) history: History,
    /// True if it should survive a restart.
    pub(crate) has_file: bool,
    /// Reason why it would not, if there is one.
    pub(crate) trouble: Option<String>,
}

/// The interfaces as last seen, and who reads them.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) board: watch::Receiver<Board>,
    past: Arc<Mutex<Past>>,
    /// True if settings may be changed here.
    pub(crate) may_change: bool,
}

impl Seen {
    pub(crate) fn past(&self) -> MutexGuard<'_, Past> {
        lock(&self.past)
    }
}

fn lock(past: &Mutex<Past>) -> MutexGuard<'_, Past> {
    // Whatever a thread was doing as it ended: history has no wrong state.
    past.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Looks at all interfaces for as long as somebody may read, and asks hosts for their names if
/// `asks` is true. `notice` is told what goes wrong with the file of history, and which sockets may
/// not be opened.
pub(crate) fn watch(
    control_dir: PathBuf,
    file: Option<PathBuf>,
    asks: bool,
    notice: fn(&str),
) -> std::io::Result<Seen> {
    let (sender, receiver) = watch::channel(Board::default());
    let past = Arc::new(Mutex::new(Past { has_file: file.is_some(), ..Past::default() }));
    if let Some(file) = file {
        let (store, saved, trouble) = Store::open(&file);
        trouble.iter().for_each(|trouble| notice(trouble));
        {
            let mut past = lock(&past);
            past.history.restore(saved, now_s());
            past.trouble = trouble;
        }
        let past = past.clone();
        thread::Builder::new()
            .name("simnel-history".into())
            .spawn(move || save_for_ever(store, &past, notice))?;
    }
    let seen = Seen { board: receiver, past: past.clone(), may_change: false };
    thread::Builder::new().name("simnel-looks".into()).spawn(move || {
        let mut watcher = Watcher::new(control_dir, asks);
        let mut told = None;
        while !sender.is_closed() {
            let board = watcher.look();
            let mut kept = lock(&past);
            for (name, interface) in &board.interfaces {
                kept.history.add(name, &interface.point);
            }
            drop(kept);
            let trouble = board.trouble.clone();
            sender.send_replace(board);
            if trouble != told {
                notice(trouble.as_deref().unwrap_or("everything that runs is seen again"));
                told = trouble;
            }
            thread::sleep(EVERY);
        }
    })?;
    Ok(seen)
}

fn save_for_ever(mut store: Store, past: &Mutex<Past>, notice: fn(&str)) {
    loop {
        thread::sleep(SAVED_EVERY);
        let changes = lock(past).history.changes();
        let result = store.save(&changes, || lock(past).history.all());
        let mut kept = lock(past);
        let trouble = result.err();
        if trouble != kept.trouble {
            notice(trouble.as_deref().unwrap_or("history is saved again"));
        }
        kept.trouble = trouble;
    }
}

struct Watcher {
    control_dir: PathBuf,
    viewers: BTreeMap<String, Viewer>,
    naming: Naming,
}

impl Watcher {
    fn new(control_dir: PathBuf, asks: bool) -> Watcher {
        Watcher { control_dir, viewers: BTreeMap::new(), naming: Naming::new(asks) }
    }

    fn look(&mut self) -> Board {
        let at_s = now_s();
        let mut board = Board::default();
        let names = interfaces(&self.control_dir, &mut board.trouble);
        self.viewers.retain(|name, _| names.contains(name));
        let known = self.naming.names();
        for name in names {
            let viewer = self.viewers.entry(name.clone()).or_default();
            let mut view = match viewer.look(&self.control_dir, &name, &known) {
                Ok(view) => view,
                Err(error) => {
                    // A daemon that ends meanwhile is not there any more.
                    if is_refused(&error) {
                        board.trouble.get_or_insert_with(|| unseen(&error));
                    }
                    continue;
                }
            };
            let flow_count = view.flows.len();
            view.flows.truncate(MOST_FLOWS);
            let point = Point::of(&view, at_s);
            board.interfaces.insert(name, Arc::new(Interface { view, flow_count, point }));
        }
        self.naming.ask(board.interfaces.values().map(|interface| &interface.view));
        board
    }
}

/// True if a right is missing.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::System { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

fn unseen(error: &Error) -> String {
    format!("not everything that runs is seen: {error}")
}

/// Interfaces that a daemon or the kernel shapes.
fn interfaces(control_dir: &Path, trouble: &mut Option<String>) -> Vec<String> {
    let mut names = control::interfaces(control_dir).unwrap_or_else(|error| {
        *trouble = Some(unseen(&error));
        Vec::new()
    });
    names.extend(kernel::shaped(None).unwrap_or_default().into_iter().map(|s| s.interface));
    names.sort();
    names.dedup();
    names
}

//! History in a file, which survives crashes of the process and the machine (redb).
//!
//! The file mirrors the saved spans of [`History`]. Buckets that changed are written once a minute,
//! in one transaction, and what memory has let go is removed. So the file is bounded as memory is.
//! No fault of the file ends anything. A damaged one is set aside as `FILE.damaged`; on a full disk
//! saving is tried again each minute, with everything.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::panic::{self, catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableTable, StorageBackend, StorageError, TableDefinition};

use crate::history::{Bucket, Place};

/// Interface, span, begin; and the bucket's numbers.
const POINTS: TableDefinition<(&str, u8, u64), [u64; 7]> = TableDefinition::new("points-1");
/// Memory for pages of the file.
const CACHE: usize = 1 << 20;
/// Bytes of the file: what a damaged header says must not fill the disk or memory.
const MOST_BYTES: u64 = 64 << 20;
/// Rows that are read: more than a file of ours ever has.
const MOST_ROWS: usize = 1 << 18;

type Row = (Place, Bucket);
type Change = (Place, Option<Bucket>);

/// The file, or why there is none.
pub(crate) struct Store {
    path: PathBuf,
    database: Option<Database>,
}

/// Faults of the file.
#[derive(Debug)]
enum Fault {
    /// Not what we wrote.
    Damaged(String),
    /// Not to be had now: no right, no space, somebody else has it.
    Unavailable(String),
}

impl Store {
    /// The store, rows that an earlier process saved, and trouble in words. Whoever is told of
    /// trouble may still save later.
    pub(crate) fn open(path: &Path) -> (Store, Vec<Row>, Option<String>) {
        let mut store = Store { path: path.to_owned(), database: None };
        let mut told = None;
        let rows = match read(path, &mut store.database) {
            Ok(rows) => rows,
            Err(fault) => {
                store.close();
                told = Some(store.describe(&fault));
                if let Fault::Damaged(_) = fault {
                    if let Err(error) = std::fs::rename(path, aside(path)) {
                        told = told.map(|said| format!("{said}; it stays in the way: {error}"));
                    }
                }
                Vec::new()
            }
        };
        (store, rows, told)
    }

    /// Writes `changes`, or if the file had to be given up, opens it again and writes `all`.
    pub(crate) fn save(
        &mut self,
        changes: &[Change],
        all: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), String> {
        let written = match &self.database {
            Some(database) => guarded(|| write(database, changes)),
            None => read(&self.path, &mut self.database).and_then(|_| match &self.database {
                Some(database) => guarded(|| write(database, &all())),
                None => Ok(()),
            }),
        };
        written.map_err(|fault| {
            // After a failed write nothing more can be done with an open file.
            self.close();
            self.describe(&fault)
        })
    }

    fn close(&mut self) {
        let database = self.database.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }

    fn describe(&self, fault: &Fault) -> String {
        let path = self.path.display();
        match fault {
            Fault::Damaged(why) => {
                format!(
                    "{path} is damaged ({why}): history begins anew, it is kept as {path}.damaged"
                )
            }
            Fault::Unavailable(why) => {
                format!("history is in memory only: {path}: {why}; tried again each minute")
            }
        }
    }
}

/// Path to which a damaged file is moved.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    name.into()
}

/// Opens the file, makes it if there is none, and reads all of it.
fn read(path: &Path, database: &mut Option<Database>) -> Result<Vec<Row>, Fault> {
    // Outside of what may panic, so that nothing is dropped meanwhile.
    guarded(|| {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let backend = file
            .map_err(|error| DatabaseError::Storage(StorageError::Io(error)))
            .and_then(FileBackend::new);
        let mut builder = Database::builder();
        let builder = builder.set_cache_size(CACHE);
        let made = backend.and_then(|file| builder.create_with_backend(Bounded(file)));
        *database = Some(made.map_err(opening)?);
        let Some(database) = database else { return Ok(Vec::new()) };
        database.check_integrity().map_err(opening)?;
        let transaction = database.begin_read().map_err(|error| any(error.into()))?;
        let table = match transaction.open_table(POINTS) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(any(error.into())),
        };
        let mut rows = Vec::new();
        for row in table.iter().map_err(|error| any(error.into()))?.take(MOST_ROWS) {
            let (place, bucket) = row.map_err(|error| any(error.into()))?;
            let (interface, span, begin) = place.value();
            rows.push(((interface.to_owned(), span, begin), Bucket::from_numbers(bucket.value())));
        }
        Ok(rows)
    })
}

/// A file that is never longer than [`MOST_BYTES`].
#[derive(Debug)]
struct Bounded(FileBackend);

impl StorageBackend for Bounded {
    fn len(&self) -> io::Result<u64> {
        self.0.len().and_then(|length| within(length, length))
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        within(offset.saturating_add(length as u64), ())?;
        self.0.read(offset, length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        within(length, ())?;
        self.0.set_len(length)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

fn within<T>(length: u64, value: T) -> io::Result<T> {
    match length {
        0..=MOST_BYTES => Ok(value),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long")),
    }
}

fn write(database: &Database, changes: &[Change]) -> Result<(), Fault> {
    let transaction = database.begin_write().map_err(|error| any(error.into()))?;
    {
        let mut table = transaction.open_table(POINTS).map_err(|error| any(error.into()))?;
        for ((interface, span, begin), bucket) in changes {
            let place = (interface.as_str(), *span, *begin);
            let done = match bucket {
                Some(bucket) => table.insert(place, bucket.numbers()).map(drop),
                None => table.remove(place).map(drop),
            };
            done.map_err(|error| any(error.into()))?;
        }
    }
    transaction.commit().map_err(|error| any(error.into()))
}

thread_local! {
    /// True while this thread reads or writes the file.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// A panic about what a file says is a fault of the file, which is told as such, without a trace.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    static HUSH: Once = Once::new();
    HUSH.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                before(info);
            }
        }));
    });
    IS_GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    done.unwrap_or_else(|_| Err(Fault::Damaged("it cannot be understood".into())))
}

fn opening(error: DatabaseError) -> Fault {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            Fault::Unavailable("another process has it: give each its own".into())
        }
        other => any(other.into()),
    }
}

fn any(error: redb::Error) -> Fault {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let words = error.to_string();
    match error {
        redb::Error::Io(error) if !matches!(error.kind(), InvalidData | UnexpectedEof) => {
            Fault::Unavailable(words)
        }
        redb::Error::PreviousIo => Fault::Unavailable(words),
        _ => Fault::Damaged(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, Point, SPANS};

    const NOW: u64 = 1_780_000_200;

    fn filled(interface: &str, minutes: u64) -> History {
        let mut history = History::default();
        for minute in 0..minutes {
            let at_s = NOW + 60 * minute;
            let point = Point { at_s, rate_bps: [minute, 7], ..Point::default() };
            history.add(interface, &point);
        }
        history
    }

    fn opened(path: &Path) -> (Store, Vec<Row>) {
        let (store, rows, told) = Store::open(path);
        assert_eq!(told, None);
        (store, rows)
    }

    #[test]
    fn another_process_goes_on_where_one_ended() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("history");
        let mut before = filled("wan", 100);
        let (mut store, rows) = opened(&path);
        assert!(rows.is_empty());
        store.save(&before.changes(), Vec::new).unwrap();
        before.add("wan", &Point { at_s: NOW, ..Point::default() });
        let changes = before.changes();
        assert_eq!(changes.len(), 2, "one bucket of each saved span");
        store.save(&changes, Vec::new).unwrap();
        let twice = Store::open(&path).2.unwrap();
        assert!(twice.contains("another process has it"), "{twice}");
        drop(store);

        let mut after = History::default();
        after.restore(opened(&path).1, NOW + 6000);
        for (index, span) in SPANS.iter().enumerate().filter(|(_, span)| span.is_saved) {
            let points = after.points("wan", index, NOW + 6000);
            assert_eq!(points, before.points("wan", index, NOW + 6000), "{}", span.name);
            assert!(!points.is_empty());
        }
    }

    #[test]
    fn the_file_does_not_grow_with_time() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("history");
        let (mut store, _) = opened(&path);
        let mut history = History::default();
        let mut sizes = Vec::new();
        for hour in 0..24 * 5 {
            for minute in 0..60 {
                let at_s = NOW + hour * 3600 + minute * 60;
                history.add("wan", &Point { at_s, ..Point::default() });
            }
            store.save(&history.changes(), Vec::new).unwrap();
            sizes.push(std::fs::metadata(&path).unwrap().len());
        }
        // After two days each minute that comes takes the place of another one.
        let (before, end) = (sizes[2 * 24], sizes[sizes.len() - 1]);
        assert!(end <= before + before / 4 && end < 8 << 20, "{before} bytes, then {end}");
        drop(store);
        let rows = opened(&path).1;
        assert_eq!(rows.len(), history.all().len());
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_told() {
        let room = tempfile::tempdir().unwrap();
        let whole = room.path().join("whole");
        let (mut store, _) = opened(&whole);
        store.save(&filled("wan", 300).changes(), Vec::new).unwrap();
        drop(store);
        let good = std::fs::read(&whole).unwrap();
        let path = room.path().join("history");
        let aside = aside(&path);
        let mut told_of = 0;
        // Headers, bytes all over, ends that are missing, and something else altogether.
        let mut cases: Vec<Vec<u8>> = vec![b"hello".to_vec(), vec![0; 8192], Vec::new()];
        cases.extend((0..64).step_by(5).map(|at| flipped(&good, at)));
        cases.extend((64..good.len()).step_by(good.len() / 10).map(|at| flipped(&good, at)));
        cases.extend([1, 2, 3, 5, 8].map(|part| good[..good.len() * part / 9].to_vec()));
        for (number, bytes) in cases.iter().enumerate() {
            let _ = std::fs::remove_file(&aside);
            std::fs::write(&path, bytes).unwrap();
            let (mut store, rows, told) = Store::open(&path);
            if let Some(told) = told {
                told_of += 1;
                assert!(told.contains("damaged"), "case {number}: {told}");
                assert!(rows.is_empty());
                assert!(aside.exists(), "case {number}");
            }
            let history = filled("lan", 3);
            store.save(&history.all(), || history.all()).unwrap();
            drop(store);
            assert!(opened(&path).1.iter().any(|((name, ..), _)| name == "lan"), "case {number}");
        }
        assert!(told_of > 8, "only {told_of} of {} were found out", cases.len());
    }

    fn flipped(good: &[u8], at: usize) -> Vec<u8> {
        let mut bytes = good.to_vec();
        bytes[at] ^= 0xff;
        bytes
    }

    #[test]
    fn what_cannot_be_opened_is_told_and_tried_again() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("later/history");
        let (mut store, rows, told) = Store::open(&path);
        assert!(rows.is_empty() && told.unwrap().contains("in memory only"));
        let history = filled("wan", 3);
        assert!(store.save(&[], || history.all()).is_err());
        std::fs::create_dir(room.path().join("later")).unwrap();
        store.save(&[], || history.all()).unwrap();
        drop(store);
        assert_eq!(opened(&path).1.len(), history.all().len());
    }
}

//! Files: what is written is whole or not there, what is read has an end.
//!
//! A file that others made may unpack to a thousand times its size, or be a device that never ends.
//! Every reader of the lab reads through this module, which stops at a stated number of bytes.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter, Cursor, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

/// Most bytes, unpacked, of a file that is read whole. The largest of ours has 10 MB; of JSON, up
/// to sixteen times its text is held in memory while it is read: 1 GB.
pub const WHOLE: u64 = 64 << 20;
/// Most bytes that a compressed stream may unpack to. A stream takes time and no memory: minutes.
const UNPACKED: u64 = 64 << 30;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Enough to tell all kinds of file apart.
const MAGIC: usize = 8;
/// Bytes read ahead of compressed files.
const BUFFER: usize = 1 << 17;
const MIB: u64 = 1 << 20;

/// True if `path` says standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// True if what is written to `one` takes the place of what is at `other`, by whatever names; never
/// of devices and pipes.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let there = |path| fs::metadata(if is_stdin(path) { Path::new("/dev/stdin") } else { path });
    match (there(one), there(other)) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => one == other,
    }
}

/// The file at `path`, or standard input if that is `-`, unpacked if it is compressed with gzip;
/// `most` bytes at most.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if is_stdin(path) {
        return whole(io::stdin(), most);
    }
    whole(File::open(path)?, most)
}

/// As [`read`], of text, without the byte order mark that other systems' editors begin with.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "this is no text (UTF-8)");
    let mut bytes = read(path, most)?;
    if bytes.starts_with(BYTE_ORDER_MARK.as_bytes()) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(not_text)
}

/// An exclusive flock(2) on `file`, without waiting: false if another process has it. Where there
/// are no locks, nobody has one.
pub fn try_lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Contents of `reader`, unpacked if compressed with gzip; `most` bytes at most.
pub fn whole(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let fix = "the most that is read of such a file: cut it into parts";
    let mut bytes = Vec::new();
    let (head, reader) = peek(reader)?;
    if head.starts_with(&GZIP) {
        let unpacked = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, reader));
        Capped { reader: unpacked, most, left: most, fix }.read_to_end(&mut bytes)?;
    } else {
        Capped { reader, most, left: most, fix }.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The first bytes of what `reader` gives, and a reader that gives all of it, a buffer at a time.
/// What is compressed with gzip is unpacked, to 64 GiB at most.
pub fn stream(reader: Box<dyn Read>) -> io::Result<(Vec<u8>, Box<dyn Read>)> {
    let (head, reader) = peek(reader)?;
    if !head.starts_with(&GZIP) {
        return Ok((head, Box::new(reader)));
    }
    let unpacked = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, reader));
    let fix = "the most that is read of a compressed file: unpack it first, with `gunzip`";
    let (head, reader) = peek(Capped { reader: unpacked, most: UNPACKED, left: UNPACKED, fix })?;
    Ok((head, Box::new(reader)))
}

/// The first bytes, and a reader that still gives them.
fn peek<R: Read>(mut reader: R) -> io::Result<(Vec<u8>, impl Read)> {
    let mut head = Vec::with_capacity(MAGIC);
    reader.by_ref().take(MAGIC as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(reader)))
}

/// Gives `most` bytes; the next one is an error that says how to go on.
struct Capped<R> {
    reader: R,
    most: u64,
    left: u64,
    fix: &'static str,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() && self.reader.read(&mut [0])? > 0 {
            let what = format!("it holds more than {} MiB, {}", self.most / MIB, self.fix);
            return Err(io::Error::new(ErrorKind::FileTooLarge, what));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = self.reader.read(&mut buffer[..most]).map_err(|error| {
            // A file of several parts: what follows the first is taken for another.
            match error.kind() {
                ErrorKind::InvalidInput if self.left < self.most => io::Error::new(
                    ErrorKind::InvalidData,
                    "what follows the gzip data is something else: cut it off",
                ),
                _ => error,
            }
        })?;
        self.left -= bytes as u64;
        Ok(bytes)
    }
}

/// Writes a file beside `path` and, if that went well, puts it in the place of `path`. What is
/// there but is no file (a terminal, a pipe, a link such as /dev/stdout) is written to as it is.
pub fn replace<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let fill = |file: File| {
        let mut buffered = BufWriter::with_capacity(1 << 16, file);
        let result = write(&mut buffered)?;
        buffered.flush()?;
        Ok(result)
    };
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return fill(File::create(path)?);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".simnel-")
        // As any new file: the user's mask takes away what it takes away.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    let result = fill(file.as_file().try_clone()?)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(result)
}

/// As [`replace`], with all of the contents at once.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |file| file.write_all(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("page");
        put(&path, b"one").expect("a writable directory");
        put(&path, b"two").expect("it is replaced");
        let half = replace(&path, |file| {
            file.write_all(b"hal")?;
            Err::<(), _>(io::Error::other("given up"))
        });
        assert!(half.is_err());
        assert_eq!(fs::read(&path).expect("the file"), b"two");
        // A directory in its place cannot be replaced.
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).expect("a directory");
        assert!(put(&taken, b"three").is_err());
        assert_eq!(fs::read_dir(directory.path()).expect("the directory").count(), 2);
    }

    /// `megabytes` of zeros, compressed.
    fn bomb(megabytes: u64) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::copy(&mut io::repeat(0).take(megabytes * MIB), &mut gzip).expect("memory");
        gzip.finish().expect("memory")
    }

    #[test]
    fn what_is_read_whole_has_an_end() {
        for (compressed, most) in [(bomb(3), 2 * MIB), (vec![7; 5 << 20], 4 * MIB)] {
            let error = whole(&compressed[..], most).expect_err("it is too large").to_string();
            let named = format!("it holds more than {} MiB", most / MIB);
            assert!(error.contains(&named) && error.contains("cut it"), "{error}");
        }
        // As many bytes as are allowed are no error; nor is an empty file.
        assert_eq!(whole(&bomb(2)[..], 2 * MIB).expect("it fits").len(), 2 << 20);
        assert_eq!(whole(&b"abc"[..], 3).expect("it fits"), b"abc");
        assert_eq!(whole(&b""[..], 0).expect("it fits"), b"");
        // Parts that were compressed one by one are one file.
        assert_eq!(
            whole(&[bomb(1), bomb(1)].concat()[..], 2 * MIB).expect("it fits").len(),
            2 << 20
        );
        let endless = read(Path::new("/dev/zero"), WHOLE).expect_err("it never ends").to_string();
        assert!(endless.contains("it holds more than 64 MiB"), "{endless}");
    }

    #[test]
    fn a_stream_has_an_end() {
        let fix = "unpack it";
        let mut capped = Capped { reader: io::repeat(1), most: MIB, left: MIB, fix };
        let copied = io::copy(&mut capped, &mut io::sink());
        assert!(copied.expect_err("it never ends").to_string().contains("1 MiB, unpack it"));
        assert_eq!(capped.left, 0);
        let (head, mut reader) = stream(Box::new(Cursor::new(bomb(1)))).expect("a stream");
        assert_eq!(head, [0; MAGIC]);
        assert_eq!(io::copy(&mut reader, &mut io::sink()).expect("all of it"), MIB);
    }

    #[test]
    fn a_byte_order_mark_is_no_text() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("scenario.toml");
        put(&path, "\u{feff}# Why?\n".as_bytes()).expect("a writable directory");
        assert_eq!(read_text(&path, WHOLE).expect("text"), "# Why?\n");
    }

    #[test]
    fn a_file_is_the_same_by_whatever_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        put(&at("file"), b"one").expect("a writable directory");
        put(&at("other"), b"one").expect("a writable directory");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("a link");
        fs::hard_link(at("file"), at("hard")).expect("a link");
        for name in ["file", "./file", "link", "hard"] {
            assert!(is_same(&at(name), &at("file")), "{name}");
        }
        assert!(!is_same(&at("other"), &at("file")) && !is_same(&at("new"), &at("file")));
        assert!(is_same(&at("new"), &at("new")));
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        put(&file, b"one").expect("a writable directory");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        put(&link, b"two").expect("through the link");
        assert_eq!(fs::read(&file).expect("the file"), b"two");
        assert!(fs::symlink_metadata(&link).expect("still there").is_symlink());
        put(Path::new("/dev/null"), b"a page").expect("it takes everything");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }
}

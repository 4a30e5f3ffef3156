//! Files that are whole or not there.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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

//! The configuration file: what setup found of one interface in it, and the rest as it was.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{fchown, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use simnel_core::framing::Framing;
use simnel_core::qdisc::cake::AckFilter;
use simnel_core::qdisc::Config;
use simnel_gateway::words::settings_of;
use simnel_gateway::{config, Direction};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::proposal::{rate, Proposal};

/// Mode of a new file: the daemon's user must read it.
const MODE: u32 = 0o644;
/// Names that are tried for a temporary file: each that is taken was left by somebody who was
/// killed.
const ATTEMPTS: u32 = 100;

/// The discipline's words for `interface`: its own `qdisc` in `file`, or those of `proposed`. A
/// cake that says nothing of its link or of acknowledgements gets the words for these.
pub fn words(file: &str, interface: &str, proposed: &str) -> String {
    let Ok(root) = DeTable::parse(file) else { return proposed.to_owned() };
    let own = own_table(root.get_ref(), interface).and_then(|(_, table)| text(table, "qdisc"));
    let Some(own) = own else { return proposed.to_owned() };
    let Ok(Config::Cake(cake)) = settings_of(Direction::Upload, None, own) else {
        return own.to_owned();
    };
    let is_said = |word: &str| own.split_whitespace().any(|said| said == word);
    let is_lacking = |word: &&str| match *word {
        "ack-filter" => cake.ack_filter == AckFilter::Off && !is_said("no-ack-filter"),
        _ => cake.framing == Framing::default() && !is_said("raw"),
    };
    let more = proposed.split(' ').skip(1).filter(is_lacking);
    [own].into_iter().chain(more).collect::<Vec<_>>().join(" ")
}

/// `old` with what was found of `interface`. The values of `download`, `upload` and `qdisc` are set
/// in its table, or in a table of its own after all others. All else stays, byte by byte.
///
/// # Errors
/// The old file's fault, if the result is no configuration file; rates that follow the line.
pub fn with_proposal(old: &str, interface: &str, proposal: &Proposal) -> Result<String, String> {
    let Ok(root) = DeTable::parse(old) else {
        return Err(config::parse(old).err().unwrap_or_default());
    };
    let keys = [
        ("download", rate(proposal.download)),
        ("upload", rate(proposal.upload)),
        ("qdisc", proposal.words.clone()),
    ];
    let line = |key: &str, value: &str| format!("{key} = \"{value}\"");
    let mut text = old.to_owned();
    if let Some((place, table)) = own_table(root.get_ref(), interface) {
        if table.get("autorate").and_then(|value| value.get_ref().as_bool()) == Some(true) {
            return Err(format!(
                "`autorate = true`: rates of `{interface}` follow the line already; take that out \
                 for the fixed rates that setup finds"
            ));
        }
        let name = table.get("name").map_or(0, |name| name.span().end);
        let is_inline = old[place..].starts_with('{');
        let after_name = match is_inline {
            true => name,
            false => old[name..].find(['\r', '\n']).map_or(old.len(), |length| name + length),
        };
        let mut edits = Vec::new();
        for (key, new) in keys {
            match table.get(key) {
                Some(value) if value.get_ref().as_str() == Some(&new) => {}
                Some(value) => edits.push((value.span(), format!("\"{new}\""))),
                None => {
                    let before = if is_inline { ", " } else { "\n" };
                    edits.push((after_name..after_name, before.to_owned() + &line(key, &new)));
                }
            }
        }
        // From the end, so that places before stay; of one place the last is put in first.
        edits.sort_by_key(|(place, _)| place.start);
        edits.into_iter().rev().for_each(|(place, new)| text.replace_range(place, &new));
    } else {
        if !text.is_empty() {
            let ending = if text.ends_with('\n') { "\n" } else { "\n\n" };
            text += ending;
        }
        text += &format!("[[interface]]\n{}\n", line("name", interface));
        keys.iter().for_each(|(key, value)| text += &(line(key, value) + "\n"));
    }
    config::parse(&text).map(|_| text)
}

/// Place and table of `interface`, if there is one.
fn own_table<'a, 'i>(root: &'a DeTable<'i>, interface: &str) -> Option<(usize, &'a DeTable<'i>)> {
    let all = root.get("interface")?.get_ref().as_array()?;
    let place_and_table =
        |value: &'a Spanned<DeValue<'i>>| Some((value.span().start, value.get_ref().as_table()?));
    let mut tables = all.iter().filter_map(place_and_table);
    tables.find(|(_, table)| text(table, "name") == Some(interface))
}

/// The text that is the value of `key`.
fn text<'a>(table: &'a DeTable<'_>, key: &str) -> Option<&'a str> {
    table.get(key).map(Spanned::get_ref).and_then(DeValue::as_str)
}

/// `path` with `ending` after its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The file itself where `path` is a symbolic link.
fn target(path: &Path) -> io::Result<PathBuf> {
    match path.is_symlink() {
        true => path.canonicalize(),
        false => Ok(path.to_owned()),
    }
}

/// A file that nobody has yet, not even by a link, and that only its owner reads.
fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A file of ours in a directory until it gets its name; what others have there stays as it is.
fn temporary(directory: &Path, name: &OsStr) -> io::Result<(PathBuf, File)> {
    let process = std::process::id();
    let mut result = Err(io::ErrorKind::AlreadyExists.into());
    for attempt in 0..ATTEMPTS {
        let mut own = OsString::from(".");
        own.push(name);
        own.push(format!(".simnel-{process}-{attempt}"));
        let path = directory.join(own);
        result = new_file(&path).map(|file| (path, file));
        if result.as_ref().err().map(io::Error::kind) != Some(io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    result
}

/// Looks whether [`write()`] can, and changes nothing.
///
/// # Errors
/// Those of [`write()`].
pub fn check_place(path: &Path) -> io::Result<()> {
    let path = target(path)?;
    let whole = std::path::absolute(&path)?;
    let directory = whole.ancestors().skip(1).find(|directory| directory.is_dir());
    let directory = directory.unwrap_or(Path::new("/"));
    let (probe, _) = temporary(directory, path.file_name().unwrap_or_default())?;
    fs::remove_file(&probe)
}

/// A file, and the place at which an earlier one is kept.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub file: PathBuf,
    pub earlier: Option<PathBuf>,
}

/// Writes the file such that it is the old one or the new one at any time. Owner and mode stay, and
/// so does a symbolic link to it.
pub fn write(path: &Path, text: &str) -> io::Result<Written> {
    let file = target(path)?;
    if let Some(directory) = file.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    let old = fs::metadata(&file).ok();
    let store = |mut file: File, bytes: &[u8]| -> io::Result<()> {
        file.write_all(bytes)?;
        make_like(&file, old.as_ref())?;
        file.sync_all()
    };
    let mut earlier = None;
    if old.is_some() {
        let bytes = fs::read(&file)?;
        let (path, copy) = copy_of(&file)?;
        store(copy, &bytes).inspect_err(|_| drop(fs::remove_file(&path)))?;
        earlier = Some(path);
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    let (path, new) = temporary(directory, file.file_name().unwrap_or_default())?;
    let placed = store(new, text.as_bytes()).and_then(|()| fs::rename(&path, &file));
    placed.inspect_err(|_| drop(fs::remove_file(&path)))?;
    Ok(Written { file, earlier })
}

/// A new file beside `file` for what that was, under the first number that is free.
fn copy_of(file: &Path) -> io::Result<(PathBuf, File)> {
    for number in 1..=u32::MAX {
        let path = beside(file, &format!(".{number}"));
        match new_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|copy| (path, copy)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Gives `file` owner and mode of the `old` one.
fn make_like(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    let Some(old) = old else { return file.set_permissions(Permissions::from_mode(MODE)) };
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use simnel_core::Rate;

    use super::*;

    fn found(words: &str) -> Proposal {
        let (download, upload) = (Rate::from_bits(9_000_000), Rate::from_bits(1_000_000));
        Proposal { download, upload, words: words.into(), reasons: Vec::new() }
    }

    const NEW: &str = "download = \"9000kbit\"\nupload = \"1000kbit\"\nqdisc = \"cake\"\n";

    const FILE: &str = r#"control_dir = "/run/x"

[[ interface ]] # the modem
realtime = 0
name = "wan0"   # VDSL
upload = '2mbit'
qdisc = "cake diffserv4"

[[interface]]
name = "b"
upload = "2mbit"

# The phone.
[[rule]]
mac = "02:00:00:00:00:01"
tier = "voice"

[[share]]
name = "guests"
address = "192.168.2.0/24"
upload = "1mbit"
"#;

    #[test]
    fn only_what_was_found_is_replaced() {
        let words = words(FILE, "wan0", "cake ethernet ack-filter");
        assert_eq!(words, "cake diffserv4 ethernet ack-filter");
        let text = with_proposal(FILE, "wan0", &found(&words)).unwrap();
        let expected = FILE
            .replace("VDSL\n", "VDSL\ndownload = \"9000kbit\"\n")
            .replace("'2mbit'", "\"1000kbit\"")
            .replace("cake diffserv4", &words);
        assert_eq!(text, expected);
        assert_eq!(with_proposal(&text, "wan0", &found(&words)), Ok(text));
    }

    #[test]
    fn own_words_stay() {
        for (own, expected) in [
            ("fq_codel limit 500", "fq_codel limit 500"),
            ("nat docsis", "nat docsis ack-filter"),
            ("cake overhead 44 no-ack-filter", "cake overhead 44 no-ack-filter"),
            ("cake raw ack-filter-aggressive", "cake raw ack-filter-aggressive"),
            ("cake wash", "cake wash ethernet ack-filter"),
        ] {
            let file = format!("[[interface]]\nname = \"a\"\nqdisc = \"{own}\"\n");
            assert_eq!(words(&file, "a", "cake ethernet ack-filter"), expected);
        }
        assert_eq!(words(FILE, "b", "cake ethernet"), "cake ethernet");
    }

    #[test]
    fn another_interface_comes_after_all_others() {
        let table = |name: &str| format!("[[interface]]\nname = \"{name}\"\n{NEW}");
        let third = with_proposal(FILE, "c", &found("cake")).unwrap();
        assert_eq!(third, format!("{FILE}\n{}", table("c")));
        assert_eq!(with_proposal("", "a", &found("cake")), Ok(table("a")));
        let inline = "interface = [{ name = \"a\", lock_memory = true }]";
        let text = with_proposal(inline, "a", &found("cake")).unwrap();
        let keys = NEW.trim().replace('\n', ", ");
        assert_eq!(text, inline.replace("\"a\"", &format!("\"a\", {keys}")));
    }

    #[test]
    fn what_no_rates_can_be_put_into_is_an_error() {
        let error = with_proposal("nonsense = 1\n", "a", &found("cake")).unwrap_err();
        assert!(error.contains("`nonsense`"), "{error}");
        let error = with_proposal("[[interface]\n", "a", &found("cake")).unwrap_err();
        assert!(error.contains("line 1"), "{error}");
        let follows = "[[interface]]\nname = \"a\"\nautorate = true\nupload = \"1mbit..2mbit\"\n";
        let error = with_proposal(follows, "a", &found("cake")).unwrap_err();
        assert!(error.contains("`autorate = true`"), "{error}");
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn an_earlier_file_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("etc/simnel.toml");
        check_place(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(write(&path, "one").unwrap().earlier, None);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        let first = write(&path, "two").unwrap().earlier.unwrap();
        let second = write(&path, "three").unwrap().earlier.unwrap();
        assert_eq!(
            (read(&first), read(&second), read(&path)),
            ("one".into(), "two".into(), "three".into())
        );
        check_place(&path).unwrap();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
        assert!(write(Path::new("/proc/nowhere/simnel.toml"), "x").is_err());
        assert!(check_place(Path::new("/proc/nowhere/simnel.toml")).is_err());
    }

    /// Files of others beside it, and links, wherever they lead.
    #[test]
    fn what_lies_beside_stays() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("simnel.toml"), "one").unwrap();
        fs::write(at("simnel.toml.new"), "theirs").unwrap();
        fs::write(at("elsewhere"), "secret").unwrap();
        let own = format!(".simnel.toml.simnel-{}-0", std::process::id());
        symlink("elsewhere", at(&own)).unwrap();
        symlink("nowhere", at("simnel.toml.1")).unwrap();
        check_place(&at("simnel.toml")).unwrap();
        let earlier = write(&at("simnel.toml"), "two").unwrap().earlier.unwrap();
        assert_eq!(earlier, at("simnel.toml.2"));
        for (name, text) in [
            ("simnel.toml", "two"),
            ("simnel.toml.2", "one"),
            ("simnel.toml.new", "theirs"),
            ("elsewhere", "secret"),
        ] {
            assert_eq!(read(&at(name)), text, "{name}");
        }
        assert!(at(&own).is_symlink() && !at("nowhere").exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
        fs::rename(at("simnel.toml.new"), at("linked")).unwrap();
        symlink("linked", at("simnel.toml.new")).unwrap();
        check_place(&at("simnel.toml")).unwrap();
        write(&at("simnel.toml"), "three").unwrap();
        assert_eq!(read(&at("linked")), "theirs");
    }

    #[test]
    fn a_file_stays_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("ours"), directory.path().join("simnel.toml"));
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        symlink("ours", &link).unwrap();
        check_place(&link).unwrap();
        let written = write(&link, "two").unwrap();
        assert_eq!(written.file, file.canonicalize().unwrap());
        assert!(link.is_symlink());
        let earlier = written.earlier.unwrap();
        assert_eq!((read(&file), read(&earlier)), ("two".into(), "one".into()));
        for path in [&file, &earlier] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        }
        fs::remove_file(&file).unwrap();
        assert!(write(&link, "three").is_err(), "the link leads nowhere");
    }
}

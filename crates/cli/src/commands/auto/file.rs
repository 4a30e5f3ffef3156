//! The configuration file: one interface's table in it, and the rest as it was.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use simnel_gateway::config;

use super::proposal::{rate, Proposal};

const TABLE: &str = "[[interface]]";

/// The interface's table.
pub fn table(interface: &str, proposal: &Proposal) -> String {
    format!(
        "{TABLE}\nname = \"{interface}\"\ndownload = \"{}\"\nupload = \"{}\"\nqdisc = \"{}\"\n",
        rate(proposal.download),
        rate(proposal.upload),
        proposal.words
    )
}

/// A table that stands in for the interface's before it was measured: no cap is above its rates.
pub fn placeholder(interface: &str) -> String {
    format!("{TABLE}\nname = \"{interface}\"\ndownload = \"1tbit\"\nupload = \"1tbit\"\n")
}

/// `old` with `table` in the place of the interface's earlier one, or after all others.
///
/// # Errors
/// The old file's fault, if the result is no configuration file.
pub fn with_table(old: &str, interface: &str, table: &str) -> Result<String, String> {
    // A table's lines are those up to the next one's heading.
    let mut parts: Vec<String> = vec![String::new()];
    for line in old.lines() {
        if line.trim() == TABLE {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    let mut tables = parts.split_off(1);
    tables.retain(|table| {
        !matches!(config::parse(table), Ok(all) if all.iter().all(|s| s.interface == interface))
    });
    let mut text: String = parts.concat() + &tables.concat();
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text += table;
    config::parse(&text).map(|_| text)
}

/// Writes the file such that it is the old one or the new one at any time; gives the place at which
/// an old one is kept.
pub fn write(path: &Path, text: &str) -> io::Result<Option<PathBuf>> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let mut kept = None;
    if path.exists() {
        let number = (1..).find(|number| !beside(&format!(".{number}")).exists()).unwrap_or(1);
        let copy = beside(&format!(".{number}"));
        fs::copy(path, &copy)?;
        kept = Some(copy);
    }
    let new = beside(".new");
    let mut file = File::create(&new)?;
    // The daemon's user must read it.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# ours\ncontrol_dir = \"/run/x\"\n\n[[interface]]\nname = \"a\"\n\
                       upload = \"1mbit\"\n\n[[interface]]\n# second\nname = \"b\"\n\
                       upload = \"2mbit\"\n";

    fn new(interface: &str) -> String {
        format!("[[interface]]\nname = \"{interface}\"\nupload = \"9mbit\"\n")
    }

    #[test]
    fn others_tables_stay_and_ones_own_is_replaced() {
        let text = with_table(TWO, "a", &new("a")).unwrap();
        assert!(text.starts_with("# ours\ncontrol_dir") && text.contains("# second"));
        assert!(text.ends_with(&new("a")) && !text.contains("1mbit"), "{text}");
        assert_eq!(config::parse(&text).unwrap().len(), 2);
        let third = with_table(TWO, "c", &new("c")).unwrap();
        assert_eq!(config::parse(&third).unwrap().len(), 3);
        assert_eq!(with_table("", "a", &new("a")).unwrap(), new("a"));
        assert!(with_table(TWO, "a", &placeholder("a")).is_ok());
        let error = with_table("nonsense = 1\n", "a", &placeholder("a")).unwrap_err();
        assert!(error.contains("`nonsense`"), "{error}");
    }

    #[test]
    fn an_earlier_file_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("etc/simnel.toml");
        assert_eq!(write(&path, "one").unwrap(), None);
        let first = write(&path, "two").unwrap().unwrap();
        let second = write(&path, "three").unwrap().unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(
            (read(&first), read(&second), read(&path)),
            ("one".into(), "two".into(), "three".into())
        );
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
        assert!(write(Path::new("/proc/nowhere/simnel.toml"), "x").is_err());
    }
}

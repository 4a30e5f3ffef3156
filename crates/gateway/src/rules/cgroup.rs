//! Control groups of rules: traffic of this machine's own programs.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// File in which the kernel tells what is mounted.
const MOUNTS: &str = "/proc/self/mounts";
/// Most levels that the kernel compares.
const DEEPEST: usize = 255;

/// A group of the second version (cgroups(7)), with all groups below it: its path without a slash
/// in front.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cgroup(String);

/// A group, and the kernel's number for it while there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) cgroup: Cgroup,
    pub(crate) id: Option<u64>,
}

impl Cgroup {
    /// Understands a path.
    ///
    /// # Errors
    /// The form that was expected.
    pub(crate) fn read(text: &str) -> Result<Cgroup, String> {
        let path = text.trim_matches('/');
        let is_part =
            |part: &str| !["", ".", ".."].contains(&part) && !part.contains(char::is_control);
        match path.split('/').count() <= DEEPEST && path.split('/').all(is_part) {
            true => Ok(Cgroup(path.to_owned())),
            false => Err("a path such as \"system.slice/backup.service\" (`systemd-cgls`)".into()),
        }
    }

    /// Levels below the root.
    pub(crate) fn level(&self) -> u8 {
        self.0.split('/').count().min(DEEPEST) as u8
    }

    /// True for itself and groups below it.
    pub(crate) fn covers(&self, other: &Cgroup) -> bool {
        other.0.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for Cgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Numbers of groups: a service that is started again has another. The deepest come first, in an
/// order that stays.
pub(crate) fn find(mut cgroups: Vec<Cgroup>) -> Vec<Found> {
    if cgroups.is_empty() {
        return Vec::new();
    }
    cgroups.sort_unstable_by_key(|cgroup| (u8::MAX - cgroup.level(), cgroup.clone()));
    cgroups.dedup();
    let root = root();
    let id = |cgroup: &Cgroup| Some(std::fs::metadata(root.as_ref()?.join(&cgroup.0)).ok()?.ino());
    cgroups.into_iter().map(|cgroup| Found { id: id(&cgroup), cgroup }).collect()
}

/// Mount point of the groups of the second version.
fn root() -> Option<PathBuf> {
    root_in(&std::fs::read_to_string(MOUNTS).ok()?)
}

/// The same in the kernel's list: device, place and kind of each mount, and more.
fn root_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| place.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_covers_those_below() {
        let group = |text: &str| Cgroup::read(text).unwrap();
        let slice = group("/user.slice/");
        assert_eq!((slice.to_string().as_str(), slice.level()), ("user.slice", 1));
        assert!(slice.covers(&slice) && slice.covers(&group("user.slice/a/b")));
        assert!(!slice.covers(&group("user.slices")) && !group("user.slice/a").covers(&slice));
        for text in ["", "/", "a//b", "../a", "a/./b"] {
            assert!(Cgroup::read(text).unwrap_err().contains("a path such as"), "{text}");
        }
    }

    #[test]
    fn the_deepest_are_told_first() {
        let all = ["a", "b/c", "a/b/c", "b/c"].map(|text| Cgroup::read(text).unwrap());
        let found: Vec<String> = find(all.to_vec()).iter().map(|f| f.cgroup.to_string()).collect();
        assert_eq!(found, ["a/b/c", "b/c", "a"]);
        let deep = [16, 17].map(|levels| Cgroup::read(&vec!["a"; levels].join("/")).unwrap());
        let found = find(deep.to_vec());
        assert_eq!(found.iter().map(|f| f.cgroup.level()).collect::<Vec<_>>(), [17, 16]);
    }

    #[test]
    fn groups_are_looked_for_where_the_second_version_is_mounted() {
        let mounts = "cgroup /sys/fs/cgroup/net_cls cgroup rw,net_cls 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(root_in(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(root_in("cgroup2 /sys/fs/cgroup tmpfs rw 0 0\n"), None);
    }
}

//! An interface that the kernel shapes: what `simnel up --backend kernel` makes.
//!
//! Nothing of ours need run; all state is the kernel's, and is found again by its names. The upload
//! is the interface's root discipline, with the handle [`HANDLE`]. What arrives leaves once more by
//! a device of its own (`redirect.rs`), whose root has the same handle.
//!
//! The disciplines are the module's. Where that is missing, cake may be Linux's own, if it has all
//! the settings that somebody asked for.

use simnel_core::netlink::Options;
use simnel_core::qdisc::{netlink, Config, Device};

use super::qdiscs::{self, Listed, Place, Qdiscs, Verb, OWN_KIND, ROOT};
use super::redirect;
use super::tracked;
use crate::direction::Direction;
use crate::error::Error;
use crate::rules::{Action, Rule};
use crate::settings::Settings;
use crate::sys::{self, Query};

/// Handle of the disciplines that are ours to find again.
pub(super) const HANDLE: u32 = 0x51a1_0000;
/// Linux's own cake.
const LINUX_KIND: &str = "cake";
/// Room for cake's settings as attributes.
const ROOM: usize = 1024;

/// Maker of the discipline that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The module's.
    Module,
    /// Linux's cake.
    Linux,
}

/// One direction of an interface that the kernel shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// The interface.
    pub interface: String,
    /// The direction.
    pub direction: Direction,
    /// Its discipline.
    pub listed: Listed,
}

impl Shaped {
    /// The one of `all`, of one interface, in `direction`.
    pub fn find(all: &[Shaped], direction: Direction) -> Option<&Shaped> {
        all.iter().find(|shaped| shaped.direction == direction)
    }

    fn maker(&self) -> Maker {
        match self.listed.is_ours() {
            true => Maker::Module,
            false => Maker::Linux,
        }
    }

    /// Words that make the settings again.
    ///
    /// # Errors
    /// Linux's settings cannot be read.
    pub fn words(&self) -> Result<String, Error> {
        if self.listed.is_ours() {
            return Ok(self.listed.words());
        }
        let options = Options { payload: &self.listed.options, is_nested: true };
        let config = netlink::parse(LINUX_KIND, Some(options), None, &Device::default());
        config.map(|config| config.to_string()).map_err(|error| Error::Discipline {
            direction: self.direction,
            reason: error.to_string(),
        })
    }
}

/// Lets the kernel shape an interface, and says by whose disciplines.
///
/// # Errors
/// Something is there already; the kernel lacks a part; or what it says against the settings.
/// Nothing is changed then.
pub fn up(wanted: &Settings) -> Result<Maker, Error> {
    let interface = wanted.interface.as_str();
    let index = sys::interface(interface, Query::Index)
        .map_err(|_| Error::NoInterface(interface.to_owned()))?;
    let kernel = Qdiscs::open()?;
    if !find(&kernel, Some(interface))?.is_empty() {
        return Err(Error::InKernel(interface.to_owned()));
    }
    remove_orphans_of(&kernel)?;
    tracked::begin_counting();
    let mut result = up_with(&kernel, wanted, index, Maker::Module);
    if let Err(Error::NoModule) = &result {
        take_down(&kernel, interface, index)?;
        result = match foreign(wanted) {
            Some(words) => Err(Error::NotLinuxs(words)),
            None => up_with(&kernel, wanted, index, Maker::Linux),
        };
        if let Err(Error::NoModule) = &result {
            result = Err(Error::KernelLacks {
                what: "the qdiscs `simnel` and `cake`",
                fix: "`make install-kernel` and `modprobe simnel`, or `modprobe sch_cake` for \
                      Linux's own",
            });
        }
    }
    if result.is_err() {
        take_down(&kernel, interface, index)?;
    }
    result
}

fn up_with(kernel: &Qdiscs, wanted: &Settings, index: u32, maker: Maker) -> Result<Maker, Error> {
    let interface = wanted.interface.as_str();
    if let Some(config) = told(wanted, maker, Direction::Upload) {
        set(kernel, Verb::Add, interface, config, maker)?;
    }
    if let Some(config) = told(wanted, maker, Direction::Download) {
        let name = redirect::device_name(index);
        redirect::make_device(kernel, &name)?;
        set(kernel, Verb::Add, &name, config, maker)?;
        let to = sys::interface(&name, Query::Index)
            .map_err(|source| Error::system("looking for the ifb device", source))?;
        redirect::begin(kernel, interface, index, to)?;
    }
    Ok(maker)
}

/// The settings of `direction` as the discipline of `maker` is told.
pub fn told(wanted: &Settings, maker: Maker, direction: Direction) -> Option<&Config> {
    match maker {
        Maker::Module => wanted.direction(direction),
        Maker::Linux => wanted.plain(direction),
    }
}

/// Asks for `config` at the root of `device`.
pub(super) fn set(
    kernel: &Qdiscs,
    verb: Verb,
    device: &str,
    config: &Config,
    maker: Maker,
) -> Result<(), Error> {
    let place = Place { device, parent: ROOT, handle: HANDLE };
    match maker {
        Maker::Module => {
            kernel.request(verb, place, OWN_KIND, qdiscs::Settings::Words(&config.to_string()))
        }
        Maker::Linux => {
            let payload = attributes(config).map_err(Error::NotLinuxs)?;
            kernel.request(verb, place, LINUX_KIND, qdiscs::Settings::Attributes(&payload))
        }
    }
}

/// The settings as Linux's cake has them; or the words that it does not have.
fn attributes(config: &Config) -> Result<Vec<u8>, String> {
    if config.name() != LINUX_KIND {
        return Err(config.name().into());
    }
    let mut room = vec![0; ROOM];
    let length = netlink::write_options(config, None, &mut room).map_err(|_| config.to_string())?;
    room.truncate(length);
    let options = Options { payload: &room, is_nested: true };
    let device = Device::default();
    let read = netlink::parse(LINUX_KIND, Some(options), None, &device);
    let read = read.map_err(|_| config.to_string())?.resolved(&device);
    let asked = config.clone().resolved(&device);
    if read == asked {
        return Ok(room);
    }
    let (read, asked) = (read.to_string(), asked.to_string());
    let has = |word: &&str| read.split(' ').any(|other| other == *word);
    let lost: Vec<&str> = asked.split(' ').filter(|word| !has(word)).collect();
    Err(lost.join(" "))
}

/// Words of `wanted` that Linux's cake does not have, if there are any.
fn foreign(wanted: &Settings) -> Option<String> {
    let is_class = |rule: &Rule| matches!(rule.action, Action::Class(_) | Action::Share(_));
    if wanted.rules.iter().any(is_class) {
        return Some("htb".into());
    }
    let mut both = Direction::BOTH.iter().filter_map(|way| wanted.plain(*way));
    both.find_map(|config| attributes(config).err())
}

/// All that the kernel shapes for us, at `interface` or at all.
///
/// # Errors
/// A system call failed.
pub fn shaped(interface: Option<&str>) -> Result<Vec<Shaped>, Error> {
    find(&Qdiscs::open()?, interface)
}

/// Words of the settings of one direction; None if the kernel does not shape it.
///
/// # Errors
/// A system call failed; Linux's settings cannot be read.
pub fn words(interface: &str, direction: Direction) -> Result<Option<String>, Error> {
    Shaped::find(&shaped(Some(interface))?, direction).map(Shaped::words).transpose()
}

fn find(kernel: &Qdiscs, interface: Option<&str>) -> Result<Vec<Shaped>, Error> {
    let ours = |listed: &Listed| listed.handle == HANDLE && listed.parent == ROOT;
    let shaped = |listed: Listed| {
        let (interface, direction) = match redirect::interface_of(&listed.device) {
            Some(index) => (sys::interface_name(index)?, Direction::Download),
            None => (listed.device.clone(), Direction::Upload),
        };
        Some(Shaped { interface, direction, listed })
    };
    let here = |shaped: &Shaped| interface.is_none_or(|name| shaped.interface == name);
    let all = kernel.list()?.into_iter().filter(ours).filter_map(shaped);
    let mut all: Vec<Shaped> = all.filter(here).collect();
    all.sort_by(|a, b| (&a.interface, a.direction).cmp(&(&b.interface, b.direction)));
    Ok(all)
}

/// Gives one direction other settings; queued packets stay queued.
///
/// # Errors
/// Linux's cake does not have them, or what the kernel says against them.
pub fn change(present: &Shaped, config: &Config) -> Result<(), Error> {
    set(&Qdiscs::open()?, Verb::Change, &present.listed.device, config, present.maker())
}

/// Lets the kernel shape as `wanted` says, whatever it did before; queued packets stay queued
/// where the directions are the same.
pub(crate) fn hold(wanted: &Settings) -> Result<Maker, Error> {
    let interface = wanted.interface.as_str();
    let present = shaped(Some(interface))?;
    let runs = |direction| Shaped::find(&present, direction).is_some();
    let is_same = |way: &Direction| runs(*way) == wanted.direction(*way).is_some();
    let Some(maker) =
        present.first().map(Shaped::maker).filter(|_| Direction::BOTH.iter().all(is_same))
    else {
        down(interface)?;
        return up(wanted);
    };
    if let (Maker::Linux, Some(words)) = (maker, foreign(wanted)) {
        return Err(Error::NotLinuxs(words));
    }
    for shaped in &present {
        let config = told(wanted, maker, shaped.direction);
        config.map_or(Ok(()), |config| change(shaped, config))?;
    }
    Ok(maker)
}

/// Gives `interface` back.
///
/// # Errors
/// A system call failed.
pub fn down(interface: &str) -> Result<(), Error> {
    let index = sys::interface(interface, Query::Index)
        .map_err(|_| Error::NoInterface(interface.to_owned()))?;
    take_down(&Qdiscs::open()?, interface, index)
}

/// Devices of ours through which nothing goes any more: their interfaces were deleted while no
/// process of ours was there to see it.
///
/// # Errors
/// A system call failed.
pub fn orphans() -> Result<Vec<String>, Error> {
    orphans_of(&Qdiscs::open()?)
}

fn orphans_of(kernel: &Qdiscs) -> Result<Vec<String>, Error> {
    let all = kernel.list()?;
    let orphans = all.into_iter().filter(|listed| is_orphan(listed, sys::is_no_interface));
    Ok(orphans.map(|listed| listed.device).collect())
}

/// True of a discipline of ours on a device whose interface `is_gone`.
fn is_orphan(listed: &Listed, is_gone: impl Fn(u32) -> bool) -> bool {
    let is_ours = listed.handle == HANDLE && listed.parent == ROOT;
    is_ours && redirect::interface_of(&listed.device).is_some_and(is_gone)
}

/// Removes them; their names.
///
/// # Errors
/// A system call failed.
pub fn remove_orphans() -> Result<Vec<String>, Error> {
    remove_orphans_of(&Qdiscs::open()?)
}

fn remove_orphans_of(kernel: &Qdiscs) -> Result<Vec<String>, Error> {
    let orphans = orphans_of(kernel)?;
    orphans.iter().try_for_each(|name| redirect::remove_named(kernel, name))?;
    Ok(orphans)
}

/// Removes what of ours there is.
fn take_down(kernel: &Qdiscs, interface: &str, index: u32) -> Result<(), Error> {
    let name = redirect::device_name(index);
    if let Ok(device) = sys::interface(&name, Query::Index) {
        redirect::end(kernel, interface, index)?;
        redirect::remove_device(kernel, device)?;
    } else if redirect::has_copies(kernel, index) {
        redirect::end_copies(kernel, interface, index)?;
    }
    if find(kernel, Some(interface))?.iter().any(|shaped| shaped.direction == Direction::Upload) {
        let place = Place { device: interface, parent: ROOT, handle: HANDLE };
        kernel.request(Verb::Delete, place, "", qdiscs::Settings::None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::qdisc::{parse, Common};

    #[test]
    fn a_device_without_its_interface_is_an_orphan() {
        let listed = |device: &str, handle, parent| Listed {
            device: device.to_owned(),
            kind: LINUX_KIND.to_owned(),
            handle,
            parent,
            refcnt: 2,
            options: Vec::new(),
            common: Common::default(),
            own: Vec::new(),
        };
        let is_gone = |index| index != 7;
        for (device, handle, parent, expected) in [
            ("simnel-8", HANDLE, ROOT, true),
            ("simnel-7", HANDLE, ROOT, false),
            ("simnel-8", 0x10000, ROOT, false),
            ("simnel-8", HANDLE, 0x51a1_0001, false),
            ("simnel-x", HANDLE, ROOT, false),
            ("wan1", HANDLE, ROOT, false),
        ] {
            let is = is_orphan(&listed(device, handle, parent), is_gone);
            assert_eq!(is, expected, "{device} {handle:x} {parent:x}");
        }
    }

    #[test]
    fn what_linuxs_cake_has_is_told_from_what_only_ours_has() {
        for (words, lost) in [
            ("cake bandwidth 10mbit diffserv4 nat ack-filter docsis ingress", None),
            ("cake unlimited besteffort flows", None),
            ("cake bandwidth 10mbit host-guard src", Some("host-guard src")),
            ("cake bandwidth 10mbit savings 9kb", Some("savings 9Kb")),
            ("fq_codel", Some("fq_codel")),
            ("htb rate 10mbit burst 15k fq_codel", Some("htb")),
        ] {
            assert_eq!(attributes(&parse(words).unwrap()).err().as_deref(), lost, "{words}");
        }
    }
}

//! An interface that the kernel shapes: what `simnel up --backend kernel` makes.
//!
//! Nothing of ours runs; all state is the kernel's, and is found again by its names. The upload is
//! the interface's root discipline, with the handle [`HANDLE`]. What arrives leaves once more by a
//! device of its own (`redirect.rs`), whose root has the same handle.
//!
//! The disciplines are the module's. Where that is missing, cake may be Linux's own, if it has all
//! the settings.

use simnel_core::netlink::Options;
use simnel_core::qdisc::{netlink, Config, Device};

use super::qdiscs::{Listed, Place, Qdiscs, Settings, Verb, OWN_KIND, ROOT};
use super::redirect;
use crate::direction::Direction;
use crate::error::Error;
use crate::gateway;
use crate::sys::{self, Query};

/// Handle of the disciplines that are ours to find again.
const HANDLE: u32 = 0x51a1_0000;
/// Linux's own cake.
const LINUX_KIND: &str = "cake";
/// Room for cake's settings as attributes.
const ROOM: usize = 1024;

/// Whose discipline runs.
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
    /// Which way.
    pub direction: Direction,
    /// Its discipline.
    pub listed: Listed,
}

impl Shaped {
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

/// Lets the kernel shape `interface`, and says by whose disciplines. `wanted` are the settings of
/// each direction; Linux's cake is not tried where there are none for it.
///
/// # Errors
/// Something is there already; the kernel lacks a part; or what it says against the settings.
/// Nothing is changed then.
pub fn up(
    interface: &str,
    wanted: impl Fn(Direction, Maker) -> Option<Config>,
) -> Result<Maker, Error> {
    let index = sys::interface(interface, Query::Index)
        .map_err(|_| Error::NoInterface(interface.to_owned()))?;
    let kernel = Qdiscs::open()?;
    if !find(&kernel, Some(interface))?.is_empty() {
        return Err(Error::InKernel(interface.to_owned()));
    }
    let mut result = up_with(&kernel, interface, index, Maker::Module, &wanted);
    if let Err(Error::NoModule) = &result {
        take_down(&kernel, interface, index)?;
        let both = [Direction::Upload, Direction::Download];
        let plain: Vec<Config> =
            both.into_iter().filter_map(|direction| wanted(direction, Maker::Linux)).collect();
        if !plain.is_empty() && plain.iter().all(|config| attributes(config).is_some()) {
            result = up_with(&kernel, interface, index, Maker::Linux, &wanted);
            if let Err(Error::NoModule) = &result {
                result = Err(Error::KernelLacks {
                    what: "the qdiscs `simnel` and `cake`",
                    fix: "`make install-kernel` and `modprobe simnel`, or `modprobe sch_cake` for \
                          Linux's own",
                });
            }
        }
    }
    if result.is_err() {
        take_down(&kernel, interface, index)?;
    }
    result
}

fn up_with(
    kernel: &Qdiscs,
    interface: &str,
    index: u32,
    maker: Maker,
    wanted: &impl Fn(Direction, Maker) -> Option<Config>,
) -> Result<Maker, Error> {
    if let Some(config) = wanted(Direction::Upload, maker) {
        set(kernel, Verb::Add, interface, &config, maker)?;
    }
    if let Some(config) = wanted(Direction::Download, maker) {
        let name = redirect::device_name(index);
        redirect::make_device(kernel, &name)?;
        set(kernel, Verb::Add, &name, &config, maker)?;
        let to = sys::interface(&name, Query::Index)
            .map_err(|source| Error::system("looking for the ifb device", source))?;
        redirect::begin(kernel, interface, index, to)?;
    }
    Ok(maker)
}

/// Asks for `config` at the root of `device`.
fn set(
    kernel: &Qdiscs,
    verb: Verb,
    device: &str,
    config: &Config,
    maker: Maker,
) -> Result<(), Error> {
    let place = Place { device, parent: ROOT, handle: HANDLE };
    match maker {
        Maker::Module => {
            kernel.request(verb, place, OWN_KIND, Settings::Words(&config.to_string()))
        }
        Maker::Linux => {
            let payload = attributes(config).ok_or(Error::NoModule)?;
            kernel.request(verb, place, LINUX_KIND, Settings::Attributes(&payload))
        }
    }
}

/// The settings as Linux's cake has them, if it has all of them.
fn attributes(config: &Config) -> Option<Vec<u8>> {
    let mut room = vec![0; ROOM];
    let length = netlink::write_options(config, None, &mut room).ok()?;
    room.truncate(length);
    let options = Options { payload: &room, is_nested: true };
    let read = netlink::parse(LINUX_KIND, Some(options), None, &Device::default()).ok()?;
    let device = Device::default();
    (config.name() == LINUX_KIND && read.resolved(&device) == config.clone().resolved(&device))
        .then_some(room)
}

/// All that the kernel shapes for us, at `interface` or at all.
///
/// # Errors
/// A system call failed.
pub fn shaped(interface: Option<&str>) -> Result<Vec<Shaped>, Error> {
    find(&Qdiscs::open()?, interface)
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
    let maker = if present.listed.is_ours() { Maker::Module } else { Maker::Linux };
    set(&Qdiscs::open()?, Verb::Change, &present.listed.device, config, maker)
}

/// Lets the module shape as `settings` say, whatever it did before; queued packets stay queued
/// where the directions are the same.
pub(crate) fn hold(settings: &gateway::Settings) -> Result<(), Error> {
    let interface = settings.interface.as_str();
    let present = shaped(Some(interface))?;
    let runs = |direction| present.iter().any(|shaped| shaped.direction == direction);
    let is_same = |direction| runs(direction) == settings.direction(direction).is_some();
    if !present.is_empty() && is_same(Direction::Upload) && is_same(Direction::Download) {
        return present.iter().try_for_each(|shaped| {
            settings.direction(shaped.direction).map_or(Ok(()), |config| change(shaped, config))
        });
    }
    down(interface)?;
    let wanted = |direction, maker| match maker {
        Maker::Module => settings.direction(direction).cloned(),
        Maker::Linux => None,
    };
    up(interface, wanted).map(drop)
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

/// Removes what of ours there is.
fn take_down(kernel: &Qdiscs, interface: &str, index: u32) -> Result<(), Error> {
    let name = redirect::device_name(index);
    if let Ok(device) = sys::interface(&name, Query::Index) {
        redirect::end(kernel, interface, index)?;
        redirect::remove_device(kernel, device)?;
    }
    if find(kernel, Some(interface))?.iter().any(|shaped| shaped.direction == Direction::Upload) {
        let place = Place { device: interface, parent: ROOT, handle: HANDLE };
        kernel.request(Verb::Delete, place, "", Settings::None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::qdisc::parse;

    #[test]
    fn what_linuxs_cake_has_is_told_from_what_only_ours_has() {
        for (words, has) in [
            ("cake bandwidth 10mbit diffserv4 nat ack-filter docsis ingress", true),
            ("cake unlimited besteffort flows", true),
            ("cake bandwidth 10mbit host-guard src", false),
            ("cake bandwidth 10mbit savings 9kb", false),
            ("fq_codel", false),
            ("htb rate 10mbit burst 15k fq_codel", false),
        ] {
            assert_eq!(attributes(&parse(words).unwrap()).is_some(), has, "{words}");
        }
    }
}

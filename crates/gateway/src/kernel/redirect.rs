//! Arriving packets on the way through a discipline: an `ifb` device, on which they leave once
//! more, and a filter that sends them there. The filter stands at the interface's ingress (device
//! and filter: linux/if_link.h, linux/pkt_cls.h, linux/tc_act/tc_mirred.h). Where rules name tiers,
//! a filter in front of that one gives packets the bits of their connection's mark
//! (linux/tc_act/tc_ctinfo.h). While somebody records, one in front of the discipline sends copies
//! to another device.

use simnel_core::qdisc::Handle;

use super::qdiscs::{fixed_part, Listed, Place, Qdiscs, Settings, Verb};
use crate::error::Error;
use crate::links;
use crate::netlink::{text, Refusal, Writer};
use crate::sys::{self, Query};

/// Parent of filters of arriving packets, of an `ingress` as of a `clsact` qdisc.
const ARRIVALS: u32 = 0xffff_fff2;
/// Parent of filters in front of the device's own discipline, of a `clsact` qdisc alone.
const DEPARTURES: u32 = 0xffff_fff3;
/// The qdisc that we make.
const BOTH_WAYS: &str = "clsact";
/// Handle of either.
const INGRESS_HANDLE: u32 = 0xffff_0000;
/// Preference of our filter, which is how it is known.
const PREFERENCE: u32 = 0x51a1;
/// That of the filter in front of it.
const RESTORING: u32 = PREFERENCE - 1;
/// That of the filter that sends copies.
const COPYING: u32 = PREFERENCE + 1;
/// ETH_P_ALL, in network order as the kernel has it there.
const ALL_PROTOCOLS: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;

/// TC_ACT_UNSPEC: the next filter decides.
const CONTINUE: u32 = u32::MAX;

const TCA_KIND: i32 = 1;
const TCA_OPTIONS: i32 = 2;

/// Prefix of the names of our devices; the interface's number follows.
const PREFIX: &str = "simnel-";

/// Name of the device through which what arrives by interface number `index` goes.
pub(super) fn device_name(index: u32) -> String {
    format!("{PREFIX}{index}")
}

/// Name of the device to which copies go of what comes to the discipline of device number `index`.
pub(super) fn tap_name(index: u32) -> String {
    format!("{PREFIX}t{index}")
}

/// The number of the interface whose arrivals go through the device `name`, if it is ours.
pub(super) fn interface_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

/// Makes the device `name` and sets it up.
pub(super) fn make_device(kernel: &Qdiscs, name: &str) -> Result<(), Error> {
    let made = kernel.ask(&links::new(name, "ifb"));
    made.map_err(|refusal| lacking(refusal, "ifb devices", "`modprobe ifb`"))
}

/// Removes device number `index`, with its disciplines.
pub(super) fn remove_device(kernel: &Qdiscs, index: u32) -> Result<(), Error> {
    let removed = kernel.ask(&links::removal(index));
    removed.map_err(|refusal| Error::system("removing the ifb device", refusal.error))
}

/// The same by its name; one that is gone needs nothing.
pub(super) fn remove_named(kernel: &Qdiscs, name: &str) -> Result<(), Error> {
    match sys::interface(name, Query::Index) {
        Ok(index) => remove_device(kernel, index),
        Err(_) => Ok(()),
    }
}

/// Sends what arrives by `interface`, which has the number `from`, through device number `to`.
pub(super) fn begin(kernel: &Qdiscs, interface: &str, from: u32, to: u32) -> Result<(), Error> {
    if looking(kernel, interface)?.is_none() {
        kernel.request(Verb::Add, place(interface), BOTH_WAYS, Settings::None)?;
    }
    kernel.ask(&redirecting_filter(from, to)).map_err(no_mirred)
}

/// Sends copies of what comes to the discipline of `device` to device number `to`, in place of
/// where they went before. `from` is the number of `device`.
pub(super) fn begin_copies(kernel: &Qdiscs, device: &str, from: u32, to: u32) -> Result<(), Error> {
    match looking(kernel, device)?.as_deref() {
        None => kernel.request(Verb::Add, place(device), BOTH_WAYS, Settings::None)?,
        Some(BOTH_WAYS) => remove_filters(kernel, &copying(from), "matchall"),
        Some(_) => return Err(Error::NoCopies(device.to_owned())),
    }
    kernel.ask(&copying_filter(from, to)).map_err(no_mirred)
}

/// True if a filter sends copies of what comes to the discipline of device number `from`, or did
/// so until the other device went.
pub(super) fn has_copies(kernel: &Qdiscs, from: u32) -> bool {
    let mut found = false;
    let _ = filters(kernel, from, DEPARTURES, |preference| found |= preference == COPYING);
    found
}

/// Removes that filter, and the qdisc that it was in if no other needs it.
pub(super) fn end_copies(kernel: &Qdiscs, device: &str, from: u32) -> Result<(), Error> {
    remove_filters(kernel, &copying(from), "matchall");
    remove_unused(kernel, device, from)
}

/// Kind of the qdisc at `interface` that looks at arriving packets, if there is one.
fn looking(kernel: &Qdiscs, interface: &str) -> Result<Option<String>, Error> {
    let here = |listed: &Listed| listed.device == interface && listed.parent == super::INGRESS;
    Ok(kernel.list()?.into_iter().find(here).map(|listed| listed.kind))
}

fn place(interface: &str) -> Place<'_> {
    Place { device: interface, parent: super::INGRESS, handle: INGRESS_HANDLE }
}

fn no_mirred(refusal: Refusal) -> Error {
    let fix = "`modprobe -a cls_matchall act_mirred`, or `--backend userspace`";
    lacking(refusal, "the filter `matchall` or the action `mirred`", fix)
}

/// Gives what arrives by interface number `from` the `bits` of its connection's mark, from the
/// connection's second packet on; none if they are zero.
pub(super) fn restore(kernel: &Qdiscs, from: u32, bits: u32) -> Result<(), Error> {
    remove_filters(kernel, &filter(from, RESTORING), "matchall");
    if bits == 0 {
        return Ok(());
    }
    kernel.ask(&restoring_filter(from, bits)).map_err(|refusal| {
        let fix = "`modprobe act_ctinfo` (OpenWrt: the package kmod-sched-ctinfo), or `backend = \
                   \"userspace\"`";
        lacking(refusal, "the action `ctinfo`, which rules for what arrives need", fix)
    })
}

/// Lets the `bits` of a mark choose a class of the discipline `handle`: each value of `classes` its
/// class. What arrives by interface number `from` goes through that discipline. Filters that were
/// there before, go.
pub(super) fn choose(
    kernel: &Qdiscs,
    from: u32,
    handle: u32,
    bits: u32,
    classes: impl Iterator<Item = (u32, u32)>,
) -> Result<(), Error> {
    let device = sys::interface(&device_name(from), Query::Index)
        .map_err(|source| Error::system("looking for the ifb device", source))?;
    let all = fixed_part(device, 0, handle, PREFERENCE << 16 | ALL_PROTOCOLS);
    remove_filters(kernel, &all, "fw");
    for (value, class) in classes {
        let chosen = kernel.ask(&choosing_filter(device, handle, (value, bits), class));
        chosen.map_err(|refusal| {
            let what = "the filter `fw`, which shares and classes of what arrives need";
            lacking(refusal, what, "`modprobe cls_fw`, or `backend = \"userspace\"`")
        })?;
    }
    Ok(())
}

fn choosing_filter(device: u32, parent: u32, (value, mask): (u32, u32), class: u32) -> Writer {
    const TCA_FW_CLASSID: i32 = 1;
    const TCA_FW_MASK: i32 = 5;
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    let mut writer = Writer::default();
    let fixed = fixed_part(device, value, parent, PREFERENCE << 16 | ALL_PROTOCOLS);
    writer.begin_with(libc::RTM_NEWTFILTER.into(), flags, 1, &fixed);
    writer.string(TCA_KIND, "fw");
    let options = writer.start(TCA_OPTIONS);
    writer.attribute(TCA_FW_CLASSID, &class.to_ne_bytes());
    writer.attribute(TCA_FW_MASK, &mask.to_ne_bytes());
    writer.end(options);
    writer.finish();
    writer
}

fn redirecting_filter(from: u32, to: u32) -> Writer {
    const TC_ACT_STOLEN: u32 = 4;
    const TCA_EGRESS_REDIR: u32 = 1;
    mirred(&filter(from, PREFERENCE), TC_ACT_STOLEN, TCA_EGRESS_REDIR, to)
}

fn copying_filter(from: u32, to: u32) -> Writer {
    const TCA_EGRESS_MIRROR: u32 = 2;
    mirred(&copying(from), CONTINUE, TCA_EGRESS_MIRROR, to)
}

fn mirred(place: &[u8; 20], verdict: u32, action: u32, to: u32) -> Writer {
    const TCA_MIRRED_PARMS: i32 = 2;
    filter_that(place, "mirred", |writer| {
        // struct tc_mirred: index, capabilities, verdict, two counts, action, device.
        let parameters = [0, 0, verdict, 0, 0, action, to];
        writer.attribute(TCA_MIRRED_PARMS, &parameters.map(u32::to_ne_bytes).concat());
    })
}

fn restoring_filter(from: u32, bits: u32) -> Writer {
    const TCA_CTINFO_ACT: i32 = 3;
    const TCA_CTINFO_PARMS_CPMARK_MASK: i32 = 7;
    filter_that(&filter(from, RESTORING), "ctinfo", |writer| {
        // struct tc_ctinfo: index, capabilities, verdict, two counts.
        let parameters = [0, 0, CONTINUE, 0, 0];
        writer.attribute(TCA_CTINFO_ACT, &parameters.map(u32::to_ne_bytes).concat());
        writer.attribute(TCA_CTINFO_PARMS_CPMARK_MASK, &bits.to_ne_bytes());
    })
}

/// A filter of all packets at `place`, with one action.
fn filter_that(place: &[u8; 20], action: &str, parameters: impl FnOnce(&mut Writer)) -> Writer {
    const TCA_MATCHALL_ACT: i32 = 2;
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_NEWTFILTER.into(), flags, 1, place);
    writer.string(TCA_KIND, "matchall");
    let options = writer.start(TCA_OPTIONS);
    let actions = writer.start(TCA_MATCHALL_ACT);
    let first = writer.start(1);
    writer.string(TCA_KIND, action);
    let about = writer.start(TCA_OPTIONS);
    parameters(&mut writer);
    for open in [about, first, actions, options] {
        writer.end(open);
    }
    writer.finish();
    writer
}

/// Removes the filters of a kind that the message's `fixed` part names; where they are gone
/// already, nothing is left to do.
fn remove_filters(kernel: &Qdiscs, fixed: &[u8; 20], kind: &str) {
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_DELTFILTER.into(), libc::NLM_F_ACK, 1, fixed);
    writer.string(TCA_KIND, kind);
    writer.finish();
    let _ = kernel.ask(&writer);
}

/// The fixed part of a message about filters of the preference `preference`.
fn filter(device: u32, preference: u32) -> [u8; 20] {
    fixed_part(device, 0, ARRIVALS, preference << 16 | ALL_PROTOCOLS)
}

/// The fixed part of a message about the filter that sends copies.
fn copying(device: u32) -> [u8; 20] {
    fixed_part(device, 0, DEPARTURES, COPYING << 16 | ALL_PROTOCOLS)
}

/// Removes our filters at `interface`, number `index`, and the qdisc that they were in if no other
/// needs it.
pub(super) fn end(kernel: &Qdiscs, interface: &str, index: u32) -> Result<(), Error> {
    for preference in [RESTORING, PREFERENCE] {
        remove_filters(kernel, &filter(index, preference), "matchall");
    }
    end_copies(kernel, interface, index)
}

/// Removes the qdisc that looks at packets of `interface`, number `index`, if nobody needs it.
fn remove_unused(kernel: &Qdiscs, interface: &str, index: u32) -> Result<(), Error> {
    let Some(kind) = looking(kernel, interface)? else { return Ok(()) };
    let parents: &[u32] = match kind.as_str() {
        BOTH_WAYS => &[ARRIVALS, DEPARTURES],
        // Of an interface that an earlier version shapes.
        "ingress" => &[ARRIVALS],
        _ => return Ok(()),
    };
    let mut used = false;
    let tell = |parent: &u32| filters(kernel, index, *parent, |_| used = true);
    let are_told = parents.iter().map(tell).all(|told| told.is_ok());
    if are_told && !used {
        kernel.request(Verb::Delete, place(interface), "", Settings::None)?;
    }
    Ok(())
}

/// Tells `each` the preference of each filter of device number `index` below `parent`.
fn filters(
    kernel: &Qdiscs,
    index: u32,
    parent: u32,
    mut each: impl FnMut(u32),
) -> std::io::Result<()> {
    let mut question = Writer::default();
    let fixed = fixed_part(index, 0, parent, 0);
    question.begin_with(libc::RTM_GETTFILTER.into(), libc::NLM_F_DUMP, 1, &fixed);
    question.finish();
    kernel.dump(&question, |message| {
        let is_one = message
            .attributes_after(20)
            .any(|(kind, data)| kind == TCA_KIND && !text(data).is_empty());
        // The last word of a `tcmsg`: preference and protocol.
        let info = message.body.get(16..20).and_then(|word| word.first_chunk());
        if let (true, Some(info)) = (is_one, info) {
            each(u32::from_ne_bytes(*info) >> 16);
        }
    })
}

/// The error that the kernel lacks `what`, where that is what `refusal` says.
fn lacking(refusal: Refusal, what: &'static str, fix: &'static str) -> Error {
    match refusal.error.raw_os_error() {
        Some(libc::EPERM) => Error::Privilege,
        Some(libc::ENOENT | libc::EOPNOTSUPP) => Error::KernelLacks { what, fix },
        _ => Error::Refused {
            doing: format!(
                "sending what arrives through a discipline ({})",
                Handle(INGRESS_HANDLE)
            ),
            reason: refusal.explanation.unwrap_or_else(|| refusal.error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_their_names() {
        assert_eq!(interface_of(&device_name(4_294_967)), Some(4_294_967));
        assert_eq!(interface_of("simnel-x").or(interface_of("ifb4eth0")), None);
        assert_eq!(interface_of(&tap_name(7)), None);
    }

    #[test]
    fn requests_have_the_bytes_that_the_kernel_expects() {
        if cfg!(target_endian = "big") {
            return;
        }
        let expected = [
            // Length, RTM_NEWTFILTER.
            &[112, 0, 0, 0, 44, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0][..],
            // Interface, handle, parent ffff:fff2, protocol ETH_P_ALL, preference 20897.
            &[0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0xf2, 0xff, 0xff, 0xff, 0, 3, 0xa1, 0x51],
            &[13, 0, 1, 0],
            b"matchall\0\0\0\0",
            &[60, 0, 2, 0x80, 56, 0, 2, 0x80, 52, 0, 1, 0x80, 11, 0, 1, 0],
            b"mirred\0\0",
            &[36, 0, 2, 0x80, 32, 0, 2, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0],
        ];
        assert_eq!(redirecting_filter(5, 9).bytes(), expected.concat());
        let copying = copying_filter(5, 9);
        // Parent ffff:fff3; TC_ACT_UNSPEC; TCA_EGRESS_MIRROR.
        let others = copying.bytes().iter().zip(expected.concat()).enumerate();
        let others = others.filter(|(_, (byte, other))| **byte != *other);
        let others: Vec<(usize, u8)> = others.map(|(at, (byte, _))| (at, *byte)).collect();
        let verdict = [(92, 255), (93, 255), (94, 255), (95, 255)];
        assert_eq!(others, [&[(28, 0xf3), (34, 0xa2)][..], &verdict, &[(104, 2)]].concat());
        let expected = [
            &[112, 0, 0, 0, 44, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0][..],
            // One preference in front.
            &[0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0xf2, 0xff, 0xff, 0xff, 0, 3, 0xa0, 0x51],
            &[13, 0, 1, 0],
            b"matchall\0\0\0\0",
            &[60, 0, 2, 0x80, 56, 0, 2, 0x80, 52, 0, 1, 0x80, 11, 0, 1, 0],
            b"ctinfo\0\0",
            &[36, 0, 2, 0x80, 24, 0, 3, 0],
            // TC_ACT_UNSPEC.
            &[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0],
            &[8, 0, 7, 0, 0, 0, 0, 15],
        ];
        assert_eq!(restoring_filter(5, 0x0f00_0000).bytes(), expected.concat());
        let expected = [
            &[64, 0, 0, 0, 44, 0, 0x05, 0x06, 1, 0, 0, 0, 0, 0, 0, 0][..],
            // Handle: the value of the mark; parent 51a1:.
            &[0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0xa1, 0x51, 0, 3, 0xa1, 0x51],
            &[7, 0, 1, 0, b'f', b'w', 0, 0],
            &[20, 0, 2, 0x80],
            // Class 51a1:12, mask.
            &[8, 0, 1, 0, 0x12, 0, 0xa1, 0x51, 8, 0, 5, 0, 0, 0, 0, 15],
        ];
        let mark = (0x0e00_0000, 0x0f00_0000);
        let filter = choosing_filter(9, 0x51a1_0000, mark, 0x51a1_0012);
        assert_eq!(filter.bytes(), expected.concat());
    }
}

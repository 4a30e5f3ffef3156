//! Arriving packets on the way through a discipline: an `ifb` device, on which they leave once
//! more, and a filter at the interface's ingress that sends them there (linux/if_link.h,
//! linux/pkt_cls.h, linux/tc_act/tc_mirred.h). Where rules name tiers, a filter in front of that
//! one gives packets the bits of their connection's mark (linux/tc_act/tc_ctinfo.h).

use simnel_core::qdisc::Handle;

use super::qdiscs::{fixed_part, Place, Qdiscs, Settings, Verb};
use crate::error::Error;
use crate::links;
use crate::netlink::{text, Refusal, Writer};
use crate::sys::{self, Query};

/// Parent of filters of arriving packets, of an `ingress` as of a `clsact` qdisc.
const ARRIVALS: u32 = 0xffff_fff2;
/// Handle of either.
const INGRESS_HANDLE: u32 = 0xffff_0000;
/// Preference of our filter, which is how it is known.
const PREFERENCE: u32 = 0x51a1;
/// That of the filter in front of it.
const RESTORING: u32 = PREFERENCE - 1;
/// ETH_P_ALL, in network order as the kernel has it there.
const ALL_PROTOCOLS: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;

const TCA_KIND: i32 = 1;
const TCA_OPTIONS: i32 = 2;

/// Prefix of the names of our devices; the interface's number follows.
const PREFIX: &str = "simnel-";

/// Name of the device through which what arrives by interface number `index` goes.
pub(super) fn device_name(index: u32) -> String {
    format!("{PREFIX}{index}")
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
    let taken = kernel
        .list()?
        .into_iter()
        .any(|listed| listed.device == interface && listed.parent == super::INGRESS);
    if !taken {
        let place = Place { device: interface, parent: super::INGRESS, handle: INGRESS_HANDLE };
        kernel.request(Verb::Add, place, "ingress", Settings::None)?;
    }
    let filtered = kernel.ask(&new_filter(from, to));
    filtered.map_err(|refusal| {
        let fix = "`modprobe -a cls_matchall act_mirred`, or `--backend userspace`";
        lacking(refusal, "the filter `matchall` or the action `mirred`", fix)
    })
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

/// Lets a mark choose a class of the discipline `handle`, through which what arrives by interface
/// number `from` goes: by its `bits`, each value a class. Filters that were there before, go.
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

fn new_filter(from: u32, to: u32) -> Writer {
    const TCA_MIRRED_PARMS: i32 = 2;
    const TC_ACT_STOLEN: u32 = 4;
    const TCA_EGRESS_REDIR: u32 = 1;
    filter_that(from, PREFERENCE, "mirred", |writer| {
        // struct tc_mirred: index, capabilities, verdict, two counts, action, device.
        let parameters = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to];
        writer.attribute(TCA_MIRRED_PARMS, &parameters.map(u32::to_ne_bytes).concat());
    })
}

fn restoring_filter(from: u32, bits: u32) -> Writer {
    const TCA_CTINFO_ACT: i32 = 3;
    const TCA_CTINFO_PARMS_CPMARK_MASK: i32 = 7;
    /// TC_ACT_UNSPEC: the next filter decides.
    const CONTINUE: u32 = u32::MAX;
    filter_that(from, RESTORING, "ctinfo", |writer| {
        // struct tc_ctinfo: index, capabilities, verdict, two counts.
        let parameters = [0, 0, CONTINUE, 0, 0];
        writer.attribute(TCA_CTINFO_ACT, &parameters.map(u32::to_ne_bytes).concat());
        writer.attribute(TCA_CTINFO_PARMS_CPMARK_MASK, &bits.to_ne_bytes());
    })
}

/// A filter of all that arrives by interface number `from`, with one action.
fn filter_that(
    from: u32,
    preference: u32,
    action: &str,
    parameters: impl FnOnce(&mut Writer),
) -> Writer {
    const TCA_MATCHALL_ACT: i32 = 2;
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
    let mut writer = Writer::default();
    writer.begin_with(libc::RTM_NEWTFILTER.into(), flags, 1, &filter(from, preference));
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

/// Removes our filters at `interface`, number `index`, and the ingress qdisc if no other needs it.
pub(super) fn end(kernel: &Qdiscs, interface: &str, index: u32) -> Result<(), Error> {
    for preference in [RESTORING, PREFERENCE] {
        remove_filters(kernel, &filter(index, preference), "matchall");
    }
    let mut others = Writer::default();
    let fixed = fixed_part(index, 0, ARRIVALS, 0);
    others.begin_with(libc::RTM_GETTFILTER.into(), libc::NLM_F_DUMP, 1, &fixed);
    others.finish();
    let mut used = false;
    let filters = kernel.dump(&others, |message| {
        used |= message
            .attributes_after(20)
            .any(|(kind, data)| kind == TCA_KIND && !text(data).is_empty());
    });
    let ours = kernel.list()?.into_iter().any(|listed| {
        let here = listed.device == interface && listed.parent == super::INGRESS;
        here && listed.kind == "ingress"
    });
    if ours && !used && filters.is_ok() {
        let place = Place { device: interface, parent: super::INGRESS, handle: INGRESS_HANDLE };
        kernel.request(Verb::Delete, place, "", Settings::None)?;
    }
    Ok(())
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
        assert_eq!(new_filter(5, 9).bytes(), expected.concat());
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

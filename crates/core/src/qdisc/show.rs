//! Disciplines and their statistics, as `tc -s qdisc show` and `tc -s -j qdisc show` print them.
//!
//! With [`Statistics::Tc`] the output equals that of `tc` (iproute2 6.1) byte for byte, for the
//! same settings and numbers; recordings are the test. [`Statistics::All`] adds what only we count,
//! always after what `tc` prints, so that existing parsers keep working.

use core::fmt::{self, Write};

use super::{Config, DropReason, Snapshot};
use crate::tc::units::write_size;
use crate::tc::{Digits, Json};

/// How much to show of the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// None (`tc qdisc show`).
    #[default]
    Off,
    /// As `tc -s`.
    Tc,
    /// That and our own counters.
    All,
}

/// Where a discipline hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parent {
    /// At the device.
    #[default]
    Root,
    /// Below this class: major number in the upper 16 bits, minor in the lower.
    Class(u32),
}

/// One discipline to be shown.
#[derive(Clone, Copy, Debug)]
pub struct QdiscView<'a> {
    /// Its handle: major number in the upper 16 bits.
    pub handle: u32,
    /// The device, if it is to be named.
    pub dev: Option<&'a str>,
    /// Where it hangs.
    pub parent: Parent,
    /// References to it; `tc` names them unless there is one. The kernel has two for a root.
    pub refcnt: u32,
    /// Its settings.
    pub config: &'a Config,
    /// Its statistics.
    pub snapshot: Option<&'a Snapshot>,
}

/// A configuration prints as the words that make it: discipline and settings, nothing lost.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = alloc::string::String::new();
        self.write_words(Digits::Exact, &mut words)?;
        f.write_str(self.name())?;
        match words.trim_end() {
            "" => Ok(()),
            words => write!(f, " {words}"),
        }
    }
}

/// Writes `views` as `tc` does as text.
pub fn show(out: &mut dyn Write, views: &[QdiscView<'_>], statistics: Statistics) -> fmt::Result {
    for view in views {
        write!(out, "qdisc {} {}", view.config.name(), Handle(view.handle))?;
        if let Some(dev) = view.dev {
            write!(out, " dev {dev}")?;
        }
        match view.parent {
            Parent::Root => out.write_str(" root")?,
            Parent::Class(class) => write!(out, " parent {}", Handle(class))?,
        }
        if view.refcnt != 1 {
            write!(out, " refcnt {}", view.refcnt)?;
        }
        out.write_char(' ')?;
        let detail = view.snapshot.map(|snapshot| &snapshot.detail);
        view.config.show_words(detail, out)?;
        out.write_char('\n')?;
        if let (Some(snapshot), true) = (view.snapshot, statistics != Statistics::Off) {
            write_statistics(snapshot, statistics == Statistics::All, out)?;
        }
    }
    Ok(())
}

fn write_statistics(snapshot: &Snapshot, all: bool, out: &mut dyn Write) -> fmt::Result {
    let own = snapshot.detail.own();
    own.write_above(out)?;
    let (totals, backlog) = (&snapshot.totals, &snapshot.backlog);
    let (bytes, packets) = (totals.sent_bytes, totals.sent_packets);
    let (drops, overlimits) = (totals.drops(), totals.overlimits);
    write!(out, " Sent {bytes} bytes {packets} pkt ")?;
    writeln!(out, "(dropped {drops}, overlimits {overlimits} requeues 0) ")?;
    out.write_str(" backlog ")?;
    write_size(backlog.bytes, Digits::AsTc, out)?;
    writeln!(out, " {}p requeues 0", backlog.packets)?;
    own.write_below(all, out)?;
    if all {
        write!(
            out,
            " enqueued {} pkt, marked {}, dropped:",
            totals.enqueued_packets, totals.marked
        )?;
        for reason in DropReason::ALL {
            write!(out, " {} {}", reason.name(), totals.dropped[reason as usize])?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}

/// Writes the statistics that are a discipline's own, ours included: the lines that [`show`] has
/// beside those of all disciplines.
pub fn show_own(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let own = snapshot.detail.own();
    own.write_above(out)?;
    own.write_below(true, out)
}

/// The same as a JSON object.
pub fn show_own_json(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let mut json = Json::new(out);
    json.begin_object()?;
    snapshot.detail.own().write_json(true, &mut json)?;
    json.end_object()
}

/// Writes `views` as `tc -j` does: one JSON array on one line, with a line feed after it.
pub fn show_json(
    out: &mut dyn Write,
    views: &[QdiscView<'_>],
    statistics: Statistics,
) -> fmt::Result {
    let mut json = Json::new(out);
    json.begin_array()?;
    for view in views {
        json.begin_object()?;
        json.key("kind")?.string(view.config.name())?;
        json.key("handle")?.display(Handle(view.handle))?;
        if let Some(dev) = view.dev {
            json.key("dev")?.string(dev)?;
        }
        match view.parent {
            Parent::Root => json.key("root")?.boolean(true)?,
            Parent::Class(class) => json.key("parent")?.display(Handle(class))?,
        }
        if view.refcnt != 1 {
            json.key("refcnt")?.number(view.refcnt.into())?;
        }
        let counted = view.snapshot.filter(|_| statistics != Statistics::Off);
        json.key("options")?.begin_object()?;
        view.config.show_json(view.snapshot.map(|snapshot| &snapshot.detail), &mut json)?;
        if let Some(snapshot) = counted {
            snapshot.detail.own().write_option_json(&mut json)?;
        }
        json.end_object()?;
        if let Some(snapshot) = counted {
            write_statistics_json(snapshot, statistics == Statistics::All, &mut json)?;
        }
        json.end_object()?;
    }
    json.end_array()?;
    out.write_char('\n')
}

fn write_statistics_json(snapshot: &Snapshot, all: bool, json: &mut Json<'_>) -> fmt::Result {
    let (totals, backlog) = (&snapshot.totals, &snapshot.backlog);
    json.key("bytes")?.number(totals.sent_bytes)?;
    json.key("packets")?.number(totals.sent_packets)?;
    json.key("drops")?.number(totals.drops())?;
    json.key("overlimits")?.number(totals.overlimits)?;
    // A discipline of ours is never handed a packet back.
    json.key("requeues")?.number(0)?;
    json.key("backlog")?.number(backlog.bytes)?;
    json.key("qlen")?.number(backlog.packets.into())?;
    snapshot.detail.own().write_json(all, json)?;
    if all {
        // In an object of their own: other disciplines of `tc` use the same names.
        json.key("simnel")?.begin_object()?;
        json.key("enqueued")?.number(totals.enqueued_packets)?;
        json.key("marked")?.number(totals.marked)?;
        json.key("dropped")?.begin_object()?;
        for reason in DropReason::ALL {
            json.key(reason.name())?.number(totals.dropped[reason as usize])?;
        }
        json.end_object()?;
        json.end_object()?;
    }
    Ok(())
}

/// A handle or class as `tc` writes it: `8001:`, `1:10`, hexadecimal.
struct Handle(u32);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:", self.0 >> 16)?;
        match self.0 & 0xffff {
            0 => Ok(()),
            minor => write!(f, "{minor:x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::qdisc::{build, Device, Discard};
    use crate::qdisc::{disciplines, parse};
    use crate::time::Time;
    use alloc::string::String;

    /// `words`' discipline after one packet, as text and as JSON.
    fn shown(words: &str, statistics: Statistics) -> (String, String) {
        let config = parse(words).unwrap();
        let mut qdisc = build(&config, &Device::default()).unwrap();
        qdisc.enqueue(&Packet::new(1, 1000), Time(0), &mut Discard);
        qdisc.dequeue(Time(5_000_000), &mut Discard).unwrap();
        let snapshot = qdisc.snapshot();
        let (dev, parent, snapshot) = (Some("eth0"), Parent::Root, Some(&snapshot));
        let view =
            QdiscView { handle: 0x8001_0000, dev, parent, refcnt: 1, config: &config, snapshot };
        let (mut text, mut json) = (String::new(), String::new());
        show(&mut text, &[view], statistics).unwrap();
        show_json(&mut json, &[view], statistics).unwrap();
        (text, json)
    }

    const SENT: &str =
        " Sent 1000 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n";

    #[test]
    fn disciplines_of_ours_print_what_they_name() {
        let (text, json) = shown("blue", Statistics::Tc);
        let settings = "limit 1000p increment 0.02 decrement 0.002 freeze 100ms ";
        let figures = "  prob 0 dropped 0 overlimit 0 ecn_mark 0\n";
        assert_eq!(
            text,
            std::format!("qdisc blue 8001: dev eth0 root {settings}\n{SENT}{figures}")
        );
        let figures = r#","prob":0,"dropped":0,"overlimit":0,"ecn_mark":0}]"#;
        assert!(json.trim_end().ends_with(figures), "{json}");
        let (text, json) = shown("cobalt", Statistics::Tc);
        assert!(text.ends_with("  dropped 0 flooded 0 overlimit 0 ecn_mark 0\n"), "{text}");
        assert!(json.ends_with("\"ecn_mark\":0,\"unresponsive\":false}]\n"), "{json}");
    }

    #[test]
    fn the_example_of_the_documentation_is_known_everywhere() {
        let (text, json) = shown("toy target 3ms", Statistics::Tc);
        let head = "qdisc toy 8001: dev eth0 root target 3ms \n";
        assert_eq!(text, std::format!("{head}{SENT}  waited 5ms refused 0\n"));
        assert!(json.contains(r#""options":{"target_ns":3000000}"#), "{json}");
        assert!(json.ends_with("\"waited_ns\":5000000,\"refused\":0}]\n"), "{json}");
        let known = disciplines().iter().find(|known| known.name == "toy").unwrap();
        assert_eq!(known.contenders, [("toy", "toy target 10ms")]);
        let error = parse("toy targt 3ms").unwrap_err();
        assert_eq!(error.nearest(), Some("target"));
        let documentation = include_str!("../../../../docs/LAB.md");
        assert!(documentation.contains(include_str!("../qdisc/toy.rs")), "docs/LAB.md differs");
    }
}

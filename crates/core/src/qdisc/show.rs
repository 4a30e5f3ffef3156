//! Disciplines and their statistics, as `tc -s qdisc show` and `tc -s -j qdisc show` print them.
//!
//! With [`Statistics::Tc`] the output equals that of `tc` (iproute2 6.1) byte for byte, for the
//! same settings and numbers; recordings are the test. [`Statistics::All`] adds what only we count,
//! always after what `tc` prints, so that existing parsers keep working.

use core::fmt::{self, Write};
use core::str::FromStr;

use super::{Backlog, Config, DropReason, Snapshot};
use crate::tc::units::shown_size;
use crate::tc::{Digits, Json};

/// Extent of the statistics to show.
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

/// Place at which a discipline hangs.
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
    /// Place at which it hangs.
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

/// Counters that Linux keeps of every discipline (`gnet_stats_basic`, `gnet_stats_queue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets given up.
    pub drops: u64,
    /// Times that the shaper held a packet back, or that a limit was exceeded.
    pub overlimits: u64,
    /// Packets that the device handed back.
    pub requeues: u64,
    /// Present backlog.
    pub backlog: Backlog,
}

impl From<&Snapshot> for Common {
    fn from(snapshot: &Snapshot) -> Common {
        let totals = &snapshot.totals;
        Common {
            sent_bytes: totals.sent_bytes,
            sent_packets: totals.sent_packets,
            drops: totals.drops(),
            overlimits: totals.overlimits,
            // A discipline of ours is never handed a packet back.
            requeues: 0,
            backlog: snapshot.backlog,
        }
    }
}

impl Common {
    /// Writes the two lines that `tc -s` has of every discipline.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let Common { sent_bytes, sent_packets, drops, overlimits, requeues, backlog } = self;
        write!(out, " Sent {sent_bytes} bytes {sent_packets} pkt ")?;
        writeln!(out, "(dropped {drops}, overlimits {overlimits} requeues {requeues}) ")?;
        write!(out, " backlog {}", shown_size(backlog.bytes, Digits::AsTc))?;
        writeln!(out, " {}p requeues {requeues}", backlog.packets)
    }

    /// Writes the same as members of a JSON object.
    pub fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("bytes")?.number(self.sent_bytes)?;
        json.key("packets")?.number(self.sent_packets)?;
        json.key("drops")?.number(self.drops)?;
        json.key("overlimits")?.number(self.overlimits)?;
        json.key("requeues")?.number(self.requeues)?;
        json.key("backlog")?.number(self.backlog.bytes)?;
        json.key("qlen")?.number(self.backlog.packets.into())
    }
}

fn write_statistics(snapshot: &Snapshot, all: bool, out: &mut dyn Write) -> fmt::Result {
    let (own, totals) = (snapshot.detail.own(), &snapshot.totals);
    own.write_above(out)?;
    Common::from(snapshot).write(out)?;
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
    show_json_items(&mut json, views, statistics)?;
    json.end_array()?;
    out.write_char('\n')
}

/// Writes `views` as items of the open array.
pub fn show_json_items(
    json: &mut Json<'_>,
    views: &[QdiscView<'_>],
    statistics: Statistics,
) -> fmt::Result {
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
        view.config.show_json(view.snapshot.map(|snapshot| &snapshot.detail), json)?;
        if let Some(snapshot) = counted {
            snapshot.detail.own().write_option_json(json)?;
        }
        json.end_object()?;
        if let Some(snapshot) = counted {
            write_statistics_json(snapshot, statistics == Statistics::All, json)?;
        }
        json.end_object()?;
    }
    Ok(())
}

fn write_statistics_json(snapshot: &Snapshot, all: bool, json: &mut Json<'_>) -> fmt::Result {
    let totals = &snapshot.totals;
    Common::from(snapshot).write_json(json)?;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub u32);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:", self.0 >> 16)?;
        match self.0 & 0xffff {
            0 => Ok(()),
            minor => write!(f, "{minor:x}"),
        }
    }
}

/// Read as `tc` reads it: hexadecimal numbers on both sides of a colon.
impl FromStr for Handle {
    type Err = NotAHandle;

    fn from_str(word: &str) -> Result<Handle, NotAHandle> {
        let number = |digits: &str| match digits {
            "" => Ok(0),
            digits if digits.starts_with('+') => Err(NotAHandle),
            digits => u16::from_str_radix(digits, 16).map_err(|_| NotAHandle),
        };
        let (major, minor) = word.split_once(':').ok_or(NotAHandle)?;
        Ok(Handle(u32::from(number(major)?) << 16 | u32::from(number(minor)?)))
    }
}

/// A word is no handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAHandle;

impl fmt::Display for NotAHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a handle or class such as 1: or 1:10")
    }
}

impl core::error::Error for NotAHandle {}

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
    fn handles_are_read_as_they_are_written() {
        for word in ["8001:", "1:10", "0:", "ffff:fff1"] {
            assert_eq!(
                word.parse::<Handle>().map(|handle| std::format!("{handle}")),
                Ok(word.into())
            );
        }
        for word in ["", "1", "10000:", "1:+2", "x:", "1:2:3"] {
            assert_eq!(word.parse::<Handle>(), Err(NotAHandle), "{word}");
        }
        assert!(std::format!("{NotAHandle}").contains("such as 1: or 1:10"));
    }

    #[test]
    fn own_statistics_alone_are_what_stands_beside_those_of_all() {
        for words in ["blue", "cobalt", "dualpi2", "cake", "red limit 60kb avpkt 1000", "pfifo"] {
            let config = parse(words).unwrap();
            let snapshot = build(&config, &Device::default()).unwrap().snapshot();
            let (mut text, mut json) = (String::new(), String::new());
            show_own(&snapshot, &mut text).unwrap();
            show_own_json(&snapshot, &mut json).unwrap();
            assert_eq!((text.is_empty(), json == "{}"), (words == "pfifo", words == "pfifo"));
            let shown = |statistics, json: bool| {
                let view = QdiscView {
                    handle: 0x1_0000,
                    dev: None,
                    parent: Parent::Root,
                    refcnt: 1,
                    config: &config,
                    snapshot: Some(&snapshot),
                };
                let mut out = String::new();
                match json {
                    true => show_json(&mut out, &[view], statistics).unwrap(),
                    false => show(&mut out, &[view], statistics).unwrap(),
                }
                out
            };
            assert!(text.lines().all(|line| shown(Statistics::All, false).contains(line)));
            assert!(shown(Statistics::All, true).contains(&json[1..json.len() - 1]), "{json}");
        }
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

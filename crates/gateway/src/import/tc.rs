//! Output of `tc qdisc show`, and of `tc class show`, which alone tells the rates of htb's classes.
//!
//! A download is found behind the redirection that everybody makes: an `ingress` or `clsact` qdisc
//! at the interface, and an ifb device with the discipline, `ifb4eth0` for `eth0`.

use simnel_core::qdisc;

use super::{understood, Imported, Interface, Way};

/// A line of `tc`.
struct Line<'a> {
    kind: &'a str,
    handle: &'a str,
    device: &'a str,
    /// `root`, or the class above.
    parent: &'a str,
    words: Vec<&'a str>,
}

/// Reads what was printed.
pub fn import(text: &str) -> Imported {
    let mut imported = Imported::default();
    if text.trim_start().starts_with(['[', '{']) {
        imported.note("this is JSON: `tc qdisc show` without -j is read");
        return imported;
    }
    let qdiscs: Vec<Line> = text.lines().filter_map(|line| read(line, "qdisc")).collect();
    let classes: Vec<Line> = text.lines().filter_map(|line| read(line, "class")).collect();
    if qdiscs.is_empty() {
        imported.note("there is no line of `tc qdisc show` in it");
    }
    let arrivals: Vec<&str> = qdiscs
        .iter()
        .filter(|line| matches!(line.kind, "ingress" | "clsact"))
        .map(|line| line.device)
        .collect();
    let is_ifb = |line: &Line| line.device.contains("ifb");
    let mut ifbs: Vec<&Line> =
        qdiscs.iter().filter(|line| line.parent == "root" && is_ifb(line)).collect();
    let mut names: Vec<&str> = Vec::new();
    for line in &qdiscs {
        if !is_ifb(line) && !names.contains(&line.device) {
            names.push(line.device);
        }
    }
    for name in names {
        let has_arrivals = arrivals.contains(&name);
        let same = |line: &&Line| line.device.ends_with(name) && line.device != name;
        let mut at = ifbs.iter().position(same);
        if at.is_none() && has_arrivals && arrivals.len() == 1 && ifbs.len() == 1 {
            at = Some(0);
        }
        let ifb = at.filter(|_| has_arrivals).map(|at| ifbs.remove(at));
        let root = qdiscs.iter().find(|line| line.device == name && line.parent == "root");
        let download = ifb.and_then(|line| way(line, &qdiscs, &classes, &mut imported));
        let upload = root.and_then(|line| way(line, &qdiscs, &classes, &mut imported));
        if has_arrivals && download.is_none() {
            let what = "its filters at the ingress are not told by `tc qdisc show`";
            imported.note(format!("`{name}`: {what}"));
        }
        if download.is_some() || upload.is_some() {
            imported.add(Interface { name: name.into(), download, upload });
        }
    }
    for line in ifbs {
        let what = "no interface whose ingress leads to it";
        imported.note(format!("`{}`: there is {what}", line.device));
    }
    imported
}

/// A line that begins with `object`: `qdisc KIND HANDLE dev NAME root refcnt N WORDS`.
fn read<'a>(line: &'a str, object: &str) -> Option<Line<'a>> {
    let mut words = line.split_whitespace();
    let (first, kind, handle) = (words.next()?, words.next()?, words.next()?);
    if first != object {
        return None;
    }
    let (mut device, mut parent, mut rest) = ("", "", Vec::new());
    while let Some(word) = words.next() {
        match word {
            "dev" if device.is_empty() => device = words.next()?,
            "root" if rest.is_empty() => parent = "root",
            "parent" if rest.is_empty() => parent = words.next()?,
            "refcnt" | "leaf" if rest.is_empty() => drop(words.next()),
            "offloaded" | "deleted" if rest.is_empty() => {}
            word => rest.push(word),
        }
    }
    Some(Line { kind, handle, device, parent, words: rest })
}

/// The settings of what stands at a root.
fn way(root: &Line, qdiscs: &[Line], classes: &[Line], imported: &mut Imported) -> Option<Way> {
    let device = root.device;
    match root.kind {
        "cake" | "tbf" | "simnel" => {
            let words = shaper(root, imported)?;
            let child = qdiscs.iter().find(|line| {
                line.device == device && line.parent.starts_with(root.handle) && root.kind == "tbf"
            });
            match child {
                Some(child) => {
                    // Ours puts the shaper in front by itself.
                    let rate = after(&root.words, "rate").map(String::from);
                    let words = discipline(child, imported)?;
                    Some(Way { rate, words })
                }
                None => Some(Way { rate: None, words }),
            }
        }
        "htb" => htb(root, qdiscs, classes, imported),
        // What the kernel puts there by itself.
        "noqueue" | "pfifo_fast" | "mq" => None,
        kind if qdisc::discipline(kind).is_some() => {
            imported.note(format!("`{device}`: `{kind}` limits no rate, so it finds no queue"));
            None
        }
        kind => {
            imported.note(format!("`{device}`: `{kind}` is not known here"));
            None
        }
    }
}

/// Words of a shaper with its rate in them.
fn shaper(line: &Line, imported: &mut Imported) -> Option<String> {
    if line.kind == "simnel" {
        let what = "the module's own: `simnel show` and `simnel tc` tell and set it";
        imported.note(format!("`{}`: {what}", line.device));
        return None;
    }
    discipline(line, imported)
}

/// A discipline with those of its words that are known here.
fn discipline(line: &Line, imported: &mut Imported) -> Option<String> {
    let (kind, device) = (line.kind, line.device);
    if qdisc::discipline(kind).is_none() {
        imported.note(format!("`{device}`: `{kind}` is not known here"));
        return None;
    }
    // `tc` shows them otherwise than it reads them.
    let words: Vec<&str> = line
        .words
        .iter()
        .map(|word| match *word {
            "lat" => "latency",
            word => word,
        })
        .collect();
    let mut gone = Vec::new();
    let kept = understood(kind, &words.join(" "), |word| gone.push(word.to_owned()));
    for word in gone {
        imported.note(format!("`{device}`: `{word}`: `{kind}` has no such word here"));
    }
    Some(format!("{kind} {kept}").trim_end().to_owned())
}

/// The word after `keyword`.
fn after<'a>(words: &[&'a str], keyword: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == keyword)?;
    words.get(at + 1).copied()
}

/// A tree of classes: the largest ceiling is the line's rate, and the discipline that stands below
/// the default class does the work.
fn htb(root: &Line, qdiscs: &[Line], classes: &[Line], imported: &mut Imported) -> Option<Way> {
    let device = root.device;
    let own: Vec<&Line> =
        classes.iter().filter(|class| class.device == device && class.kind == "htb").collect();
    let rates = own.iter().filter_map(|class| {
        let word = after(&class.words, "ceil").or(after(&class.words, "rate"))?;
        Some((simnel_core::tc::units::rate(word).ok()?.bits(), word))
    });
    let Some((_, rate)) = rates.max_by_key(|(bits, _)| *bits) else {
        let what = "htb's rates are its classes': add what `tc class show dev";
        imported.note(format!("`{device}`: {what} {device}` prints"));
        return None;
    };
    let below = |line: &&Line| {
        line.device == device
            && line.parent.starts_with(root.handle)
            && qdisc::discipline(line.kind).is_some()
    };
    let leaves: Vec<&Line> = qdiscs.iter().filter(below).collect();
    if own.len() > 2 || leaves.len() > 1 {
        let what = "its classes become one: `cake diffserv3` has tiers";
        imported.note(format!("`{device}`: {what}, if that is what they are for"));
    }
    let default = after(&root.words, "default")
        .and_then(|number| u32::from_str_radix(number.trim_start_matches("0x"), 16).ok())
        .map(|number| format!("{}{number:x}", root.handle));
    let leaf = leaves
        .iter()
        .find(|line| Some(line.parent) == default.as_deref())
        .or(leaves.first())
        .and_then(|line| discipline(line, imported));
    Some(Way { rate: Some(rate.to_owned()), words: leaf.unwrap_or_else(|| "pfifo".into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by iproute2 6.1 on a line that sqm-scripts had set up.
    const CAKE: &str = "\
qdisc noqueue 0: dev lo root refcnt 2
qdisc cake 800d: dev eth1 root refcnt 9 bandwidth 10Mbit besteffort \
triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms noatm overhead 34 mpu 64 memlimit 4Mb
 Sent 1234 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)
qdisc ingress ffff: dev eth1 parent ffff:fff1 ----------------
qdisc cake 800e: dev ifb4eth1 root refcnt 2 bandwidth 85Mbit besteffort \
triple-isolate nonat wash ingress no-ack-filter split-gso rtt 100ms noatm overhead 34 mpu 64
";

    #[test]
    fn cake_and_its_ifb_are_one_interface() {
        let imported = import(CAKE);
        assert_eq!(imported.interfaces.len(), 1, "{:?}", imported.notes);
        let interface = &imported.interfaces[0];
        assert_eq!(interface.name, "eth1");
        let words = |way: &Option<Way>| way.as_ref().unwrap().words.clone();
        let (down, up) = (words(&interface.download), words(&interface.upload));
        assert!(
            down.starts_with("cake bandwidth 85Mbit") && down.contains("wash ingress"),
            "{down}"
        );
        assert!(up.contains("bandwidth 10Mbit") && up.contains("overhead 34 mpu 64"), "{up}");
        assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    }

    /// The same by `tc class show`, and classes of htb.
    const HTB: &str = "\
qdisc htb 1: dev wan root refcnt 2 r2q 10 default 0x12 \
direct_packets_stat 0 direct_qlen 1000
qdisc fq_codel 112: dev wan parent 1:12 limit 1001p flows 1024 quantum 300 \
target 5ms interval 100ms memory_limit 4Mb ecn drop_batch 64
class htb 1:1 dev wan root rate 3Mbit ceil 3Mbit burst 1599b cburst 1599b
class htb 1:12 dev wan parent 1:1 leaf 112: prio 2 \
rate 500Kbit ceil 2950Kbit burst 1600b cburst 1599b
";

    #[test]
    fn classes_become_a_rate_and_what_stands_below() {
        let imported = import(HTB);
        let upload = imported.interfaces[0].upload.as_ref().unwrap();
        assert_eq!(upload.rate.as_deref(), Some("3Mbit"));
        assert!(upload.words.starts_with("fq_codel limit 1001p flows 1024"), "{}", upload.words);
        let only_qdiscs: String = HTB.lines().take(2).map(|line| line.to_owned() + "\n").collect();
        let imported = import(&only_qdiscs);
        assert!(imported.interfaces.is_empty());
        assert!(imported.notes[0].contains("`tc class show dev wan`"), "{:?}", imported.notes);
    }

    #[test]
    fn others_are_named_with_the_reason() {
        let text = "qdisc tbf 8001: dev a root refcnt 2 rate 9Mbit burst 15Kb lat 50ms\n\
                    qdisc hfsc 1: dev b root refcnt 2 default 0x1\n\
                    qdisc fq_codel 0: dev c root refcnt 2 limit 10240p\n\
                    qdisc clsact ffff: dev d parent ffff:fff1\n\
                    qdisc pfifo_fast 0: dev e root refcnt 2 bands 3\n\
                    qdisc cake 8002: dev ifb7 root refcnt 2 bandwidth 9Mbit\n\
                    qdisc cake 8003: dev f root refcnt 2 bandwidth 8Mbit teleport\n";
        let imported = import(text);
        let names: Vec<&str> = imported.interfaces.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "d", "f"], "{:?}", imported.notes);
        assert!(imported.interfaces[0].upload.as_ref().unwrap().words.contains("latency 50ms"));
        // The only ifb device belongs to the only interface that redirects.
        assert!(imported.interfaces[1].download.is_some());
        let notes = imported.notes.join("\n");
        for told in ["`hfsc`", "`fq_codel` limits no rate", "`teleport`"] {
            assert!(notes.contains(told), "{told}: {notes}");
        }
        assert!(import("[{}]").notes[0].contains("JSON"));
        assert!(import("what?").notes[0].contains("no line of"));
    }
}

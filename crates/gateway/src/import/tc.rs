//! Output of `tc qdisc show`, and of `tc class show`, which alone tells the rates of htb's classes.
//!
//! A download is found behind the redirection that everybody makes. That is an `ingress` or
//! `clsact` qdisc at the interface, and an ifb device with the discipline, `ifb4eth0` for `eth0`.
//!
//! `tc` names no device in lines of one that it was asked for (`show dev eth0`), and never in those
//! of classes. Such lines belong to the device of a line `dev NAME` before them, or to the one that
//! the caller names. Classes without either belong to the only root with their handle.

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

/// Reads what was printed; `device` is that of lines without one.
pub fn import(text: &str, device: Option<&str>) -> Imported {
    let mut imported = Imported::default();
    if text.trim_start().starts_with(['[', '{']) {
        imported.note("this is JSON: `tc qdisc show` without -j is read");
        return imported;
    }
    let (mut qdiscs, mut classes) = (Vec::new(), Vec::new());
    let mut device = device.unwrap_or_default();
    for line in text.lines() {
        if let Some((_, name)) = line.trim().split_once(' ').filter(|(word, _)| *word == "dev") {
            device = name.trim();
        }
        qdiscs.extend(read(line, "qdisc", device));
        classes.extend(read(line, "class", device));
    }
    if qdiscs.iter().any(|line| line.device.is_empty()) {
        let what = "its lines name no device, as `tc qdisc show dev eth0` prints them";
        imported.note(format!("{what}: say `--dev eth0`"));
        return imported;
    }
    classes.iter_mut().for_each(|class| place(class, &qdiscs, &mut imported));
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
    // `ifb4pppoe-wan` ends with `wan` as well.
    let owner = |ifb: &str| {
        names.iter().filter(|name| ifb.ends_with(**name)).max_by_key(|name| name.len()).copied()
    };
    for &name in &names {
        let has_arrivals = arrivals.contains(&name);
        let mut at = ifbs.iter().position(|line| owner(line.device) == Some(name));
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
    if imported.interfaces.is_empty() && imported.notes.is_empty() {
        imported.note("no discipline in it limits a rate");
    }
    imported
}

/// A line that begins with `object`: `qdisc KIND HANDLE dev NAME root refcnt N WORDS`; it is one of
/// `device` if it names none.
fn read<'a>(line: &'a str, object: &str, device: &'a str) -> Option<Line<'a>> {
    let mut words = line.split_whitespace();
    let (first, kind, handle) = (words.next()?, words.next()?, words.next()?);
    if first != object {
        return None;
    }
    let (mut named, mut parent, mut rest) = (None, "", Vec::new());
    while let Some(word) = words.next() {
        match word {
            "dev" if named.is_none() => named = Some(words.next()?),
            "root" if rest.is_empty() => parent = "root",
            "parent" if rest.is_empty() => parent = words.next()?,
            "refcnt" | "leaf" if rest.is_empty() => drop(words.next()),
            "offloaded" | "deleted" if rest.is_empty() => {}
            word => rest.push(word),
        }
    }
    Some(Line { kind, handle, device: named.unwrap_or(device), parent, words: rest })
}

/// Gives a class without a device that of the only root which it can belong to.
fn place<'a>(class: &mut Line<'a>, qdiscs: &[Line<'a>], imported: &mut Imported) {
    if !class.device.is_empty() {
        return;
    }
    let is_above = |line: &&Line| {
        line.kind == class.kind
            && class.handle.split_once(':').map(|(major, _)| major) == line.handle.strip_suffix(':')
    };
    let mut roots = qdiscs.iter().filter(is_above);
    match (roots.next(), roots.next()) {
        (Some(root), None) => class.device = root.device,
        (Some(one), Some(other)) => imported.note(format!(
            "class {}: `{}` and `{}` may have it: put a line `dev NAME` before what `tc class show \
             dev NAME` prints",
            class.handle, one.device, other.device
        )),
        (None, _) => {}
    }
}

/// The settings of what stands at a root.
fn way(root: &Line, qdiscs: &[Line], classes: &[Line], imported: &mut Imported) -> Option<Way> {
    let device = root.device;
    match root.kind {
        "cake" | "tbf" | "simnel" => {
            let Way { rate, words } = shaper(root, imported)?;
            let child = qdiscs.iter().find(|line| {
                line.device == device && line.parent.starts_with(root.handle) && root.kind == "tbf"
            });
            match child {
                Some(child) => {
                    // Ours puts the shaper in front by itself.
                    let words = discipline(child, imported)?;
                    Some(Way { rate, words })
                }
                None => Some(Way { rate, words }),
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

/// A shaper's rate and its other words.
fn shaper(line: &Line, imported: &mut Imported) -> Option<Way> {
    if line.kind == "simnel" {
        let what = "the module's own: `simnel show` and `simnel tc` tell and set it";
        imported.note(format!("`{}`: {what}", line.device));
        return None;
    }
    let words = discipline(line, imported)?;
    let mut all: Vec<&str> = words.split(' ').collect();
    let keyword = qdisc::discipline(line.kind)?.rate?;
    let Some(at) = all.iter().position(|word| *word == keyword) else {
        imported.note(format!("`{}`: `{}` does not tell its `{keyword}`", line.device, line.kind));
        return None;
    };
    // It is a word of the discipline, but no rate.
    if all.get(at + 1) == Some(&"unlimited") {
        return Some(Way { rate: None, words });
    }
    let rate = all.drain(at..at + 2).nth(1).map(String::from);
    Some(Way { rate, words: all.join(" ") })
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
        let imported = import(CAKE, None);
        assert_eq!(imported.interfaces.len(), 1, "{:?}", imported.notes);
        let interface = &imported.interfaces[0];
        assert_eq!(interface.name, "eth1");
        let told = |way: &Option<Way>| {
            let Way { rate, words } = way.clone().unwrap();
            (rate.unwrap(), words)
        };
        let ((down_rate, down), (up_rate, up)) =
            (told(&interface.download), told(&interface.upload));
        assert_eq!((down_rate.as_str(), up_rate.as_str()), ("85Mbit", "10Mbit"));
        assert!(down.starts_with("cake besteffort") && down.contains("wash ingress"), "{down}");
        assert!(up.contains("overhead 34 mpu 64"), "{up}");
        assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    }

    #[test]
    fn what_the_kernel_puts_there_by_itself_is_no_shaper() {
        let text = "qdisc noqueue 0: dev lo root refcnt 2\nqdisc mq 0: dev eth0 root\n\
                    qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024\n";
        let imported = import(text, None);
        assert_eq!(imported.notes, ["no discipline in it limits a rate"]);
    }

    /// Printed by iproute2 6.1: `tc qdisc show dev eth0`, and `tc class show dev eth0`.
    const HTB: [&str; 2] = [
        "qdisc htb 1: root refcnt 3 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n",
        "class htb 1:10 parent 1:1 prio 0 rate 9Mbit ceil 10Mbit burst 1598b cburst 1600b \n\
         class htb 1:1 root rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b \n",
    ];
    /// The same by `tc qdisc show`, with a leaf.
    const NAMED: &str = "\
qdisc htb 1: dev eth0 root refcnt 3 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
qdisc fq_codel 112: dev eth0 parent 1:10 limit 1001p flows 1024 quantum 300 \
target 5ms interval 100ms memory_limit 4Mb ecn drop_batch 64
";

    #[test]
    fn classes_become_a_rate_and_what_stands_below() {
        let [qdiscs, classes] = HTB;
        let imported = import(&(NAMED.to_owned() + classes), None);
        let upload = imported.interfaces[0].upload.as_ref().expect("a rate");
        assert_eq!(upload.rate.as_deref(), Some("10Mbit"));
        assert!(upload.words.starts_with("fq_codel limit 1001p flows 1024"), "{}", upload.words);
        assert_eq!(import(&(qdiscs.to_owned() + classes), Some("eth0")).toml(), {
            "[[interface]]\nname = \"eth0\"\nupload = \"10Mbit\"\nupload_qdisc = \"pfifo\"\n"
        });
        let imported = import(NAMED, None);
        assert!(imported.interfaces.is_empty());
        assert!(imported.notes[0].contains("`tc class show dev eth0`"), "{:?}", imported.notes);
    }

    #[test]
    fn lines_without_a_device_need_one() {
        let [qdiscs, classes] = HTB;
        let notes = import(qdiscs, None).notes;
        assert!(notes.len() == 1 && notes[0].contains("`--dev eth0`"), "{notes:?}");
        // Two roots with the same handle, as sqm-scripts make them.
        let ifb = NAMED.replace("eth0", "ifb4eth0");
        let both = format!("{NAMED}{ifb}qdisc ingress ffff: dev eth0 parent ffff:fff1 ---\n");
        let notes = import(&format!("{both}{classes}"), None).notes;
        assert!(notes[0].contains("`eth0` and `ifb4eth0`"), "{notes:?}");
        let faster = classes.replace("10Mbit", "90Mbit");
        let marked = format!("{both}dev eth0\n{classes}dev ifb4eth0\n{faster}");
        let imported = import(&marked, None);
        let rate = |way: &Option<Way>| way.as_ref().and_then(|way| way.rate.clone());
        let interface = &imported.interfaces[0];
        assert_eq!(rate(&interface.download).as_deref(), Some("90Mbit"), "{:?}", imported.notes);
        assert_eq!(rate(&interface.upload).as_deref(), Some("10Mbit"));
    }

    /// The name of one interface may be the end of another's.
    #[test]
    fn an_ifb_is_of_the_longest_name_that_it_ends_with() {
        let text = "qdisc cake 1: dev wan root refcnt 2 bandwidth 1Mbit\n\
                    qdisc ingress ffff: dev wan parent ffff:fff1 ---\n\
                    qdisc cake 2: dev pppoe-wan root refcnt 2 bandwidth 2Mbit\n\
                    qdisc ingress ffff: dev pppoe-wan parent ffff:fff1 ---\n\
                    qdisc cake 3: dev ifb4pppoe-wan root refcnt 2 bandwidth 20Mbit\n\
                    qdisc cake 4: dev ifb4wan root refcnt 2 bandwidth 10Mbit\n";
        let imported = import(text, None);
        let rate = |way: &Option<Way>| way.as_ref().and_then(|way| way.rate.clone()).unwrap();
        let told: Vec<_> = imported
            .interfaces
            .iter()
            .map(|one| (one.name.as_str(), rate(&one.download), rate(&one.upload)))
            .collect();
        let expected = [("wan", "10Mbit", "1Mbit"), ("pppoe-wan", "20Mbit", "2Mbit")];
        assert!(told.iter().map(|(n, d, u)| (*n, d.as_str(), u.as_str())).eq(expected), "{told:?}");
    }

    #[test]
    fn one_direction_stays_one() {
        let text = "qdisc cake 8001: dev eth0 root refcnt 2 bandwidth 10Mbit nat\n";
        assert_eq!(
            import(text, None).commands(),
            [Ok("simnel up eth0 upload 10Mbit cake nat".into())]
        );
        let unlimited = text.replace("10Mbit", "unlimited");
        assert!(import(&unlimited, None).commands()[0].is_err());
        let cut = import("qdisc cake 8001: dev eth0 root refcnt 2 bandwidth", None);
        assert!(cut.interfaces.is_empty(), "{}", cut.toml());
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
        let imported = import(text, None);
        let names: Vec<&str> = imported.interfaces.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "d", "f"], "{:?}", imported.notes);
        assert!(imported.interfaces[0].upload.as_ref().unwrap().words.contains("latency 50ms"));
        // The only ifb device belongs to the only interface that redirects.
        assert!(imported.interfaces[1].download.is_some());
        let notes = imported.notes.join("\n");
        for told in ["`hfsc` is not known", "`fq_codel` limits no rate", "`teleport`"] {
            assert!(notes.contains(told), "{told}: {notes}");
        }
        assert!(import("[{}]", None).notes[0].contains("JSON"));
        assert!(import("what?", None).notes[0].contains("no line of"));
    }

    #[test]
    fn an_ifb_of_any_name_is_that_of_the_only_ingress() {
        let root = |device: &str, rate: &str| {
            format!("qdisc cake 1: dev {device} root refcnt 2 bandwidth {rate}\n")
        };
        let arrivals =
            |device: &str| format!("qdisc ingress ffff: dev {device} parent ffff:fff1 ---\n");
        let download = |parts: &[String]| {
            let imported = import(&parts.concat(), None);
            let eth0 = imported.interfaces.iter().find(|one| one.name == "eth0").cloned();
            let way = eth0.and_then(|one| one.download);
            (way.and_then(|way| way.rate), imported.notes.join("\n"))
        };
        let both = [root("eth0", "1Mbit"), root("ifb0", "2Mbit")];
        let and = |more: &[String]| [&both[..], more].concat();
        assert_eq!(download(&and(&[arrivals("eth0")])), (Some("2Mbit".into()), String::new()));
        // Which it is cannot be told.
        for more in [
            vec![],
            vec![arrivals("eth1"), root("eth1", "3Mbit")],
            vec![arrivals("eth0"), arrivals("eth1"), root("eth1", "3Mbit")],
            vec![arrivals("eth0"), root("ifb1", "3Mbit")],
        ] {
            let (rate, notes) = download(&and(&more));
            let known = more.len() == 2 && more[0] == arrivals("eth1");
            assert_eq!(
                (rate, known || notes.contains("`ifb0`")),
                (None, true),
                "{more:?}: {notes}"
            );
        }
    }

    #[test]
    fn a_bucket_has_what_stands_below_it_at_the_same_interface() {
        let tbf = "qdisc tbf 1: dev eth0 root refcnt 2 rate 5Mbit burst 5Kb lat 50ms\n";
        let upload = |more: &str| {
            let imported = import(&format!("{more}{tbf}"), None);
            assert_eq!(imported.notes, [] as [String; 0]);
            imported
                .interfaces
                .into_iter()
                .find(|one| one.name == "eth0")
                .unwrap()
                .upload
                .unwrap()
                .words
        };
        assert_eq!(upload(""), "tbf burst 5Kb latency 50ms");
        assert_eq!(
            upload("qdisc pie 3: dev eth1 parent 1:1 limit 9p\n"),
            "tbf burst 5Kb latency 50ms"
        );
        assert_eq!(upload("qdisc pie 3: dev eth0 parent 1:1 limit 9p\n"), "pie limit 9p");
        assert_eq!(
            upload("qdisc pie 3: dev eth0 parent 2:1 limit 9p\n"),
            "tbf burst 5Kb latency 50ms"
        );
    }

    #[test]
    fn words_of_the_line_are_none_of_the_discipline() {
        let line = "qdisc cake 1: dev eth0 root offloaded refcnt 2 bandwidth 5Mbit nat\n";
        let imported = import(line, None);
        assert_eq!(
            (imported.notes.len(), imported.interfaces.len()),
            (0, 1),
            "{:?}",
            imported.notes
        );
        assert_eq!(imported.interfaces[0].upload.as_ref().unwrap().words, "cake nat");
    }

    /// Once a discipline's words have begun, none is the line's any more.
    #[test]
    fn words_of_a_discipline_may_be_called_as_the_lines_are() {
        let words = "limit 9p dev root parent refcnt leaf offloaded deleted";
        let line = format!("qdisc pfifo 8001: dev eth0 root refcnt 2 {words}");
        let read = read(&line, "qdisc", "").unwrap();
        assert_eq!((read.device, read.parent, read.handle), ("eth0", "root", "8001:"));
        assert_eq!(read.words.join(" "), words);
    }

    #[test]
    fn the_ceiling_is_the_rate_and_the_default_class_does_the_work() {
        let text = "qdisc htb 1: dev eth0 root refcnt 3 r2q 10 default 0x20 direct_qlen 1000\n\
                    qdisc pie 3: dev eth0 parent 1:10 limit 9p\n\
                    qdisc sfq 4: dev eth0 parent 1:20 limit 9p\n\
                    class htb 1:1 root rate 8Mbit ceil 10Mbit\n\
                    class hfsc 1:2 root rate 8Mbit ceil 90Mbit\n\
                    class htb 2:1 root rate 8Mbit ceil 90Mbit\n";
        let imported = import(text, None);
        let upload = imported.interfaces[0].upload.as_ref().expect("a way");
        assert_eq!((upload.rate.as_deref(), &*upload.words), (Some("10Mbit"), "sfq limit 9p"));
    }

    /// One class below another is what it takes to shape; more of either is a choice.
    #[test]
    fn classes_that_become_one_are_told() {
        let notes = |text: String| import(&text, None).notes.join("\n");
        let [_, classes] = HTB;
        assert_eq!(notes(format!("{NAMED}{classes}")), "");
        let third = "class htb 1:20 parent 1:1 leaf 113: prio 1 rate 1Mbit ceil 10Mbit\n";
        assert!(notes(format!("{NAMED}{classes}{third}")).contains("its classes become one"));
        let leaf = "qdisc pie 113: dev eth0 parent 1:20 limit 9p\n";
        assert!(notes(format!("{NAMED}{leaf}{classes}")).contains("its classes become one"));
        let elsewhere = "qdisc pie 113: dev eth1 parent 1:20 limit 9p\n";
        assert_eq!(notes(format!("{NAMED}{elsewhere}{classes}")), "");
    }
}

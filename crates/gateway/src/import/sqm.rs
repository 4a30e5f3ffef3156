//! OpenWrt's `/etc/config/sqm`: one section a line, as sqm-scripts understands it.
//!
//! What counts, as there: `squash_dscp`, `squash_ingress` and ECN only with `qdisc_advanced`;
//! limits, targets and further words only with `qdisc_really_really_advanced` besides.

use super::uci::{self, Section};
use super::{understood, Imported, Interface, Way};
use crate::direction::Direction;

/// Options that are known, in whatever way.
const KNOWN: [&str; 30] = [
    "enabled",
    "interface",
    "download",
    "upload",
    "qdisc",
    "script",
    "qdisc_advanced",
    "squash_dscp",
    "squash_ingress",
    "ingress_ecn",
    "egress_ecn",
    "qdisc_really_really_advanced",
    "ilimit",
    "elimit",
    "itarget",
    "etarget",
    "iqdisc_opts",
    "eqdisc_opts",
    "linklayer",
    "overhead",
    "linklayer_advanced",
    "tcMTU",
    "tcTSIZE",
    "tcMPU",
    "linklayer_adaptation_mechanism",
    "debug_logging",
    "verbosity",
    "use_mq",
    "shaper_burst",
    "cake_opts",
];

/// Reads the file.
pub fn import(text: &str) -> Imported {
    let mut imported = Imported::default();
    let (sections, odd) = uci::parse(text);
    for line in odd {
        imported.note(format!("line {line} is not understood"));
    }
    let queues: Vec<&Section> = sections.iter().filter(|section| section.kind == "queue").collect();
    if queues.is_empty() {
        imported.note("there is no `config queue`: is it OpenWrt's /etc/config/sqm?");
    }
    queues.into_iter().for_each(|section| queue(section, &mut imported));
    imported
}

fn queue(section: &Section, imported: &mut Imported) {
    let named = section.name.as_deref().unwrap_or("without a name");
    let Some(interface) = section.get("interface") else {
        return imported.note(format!("queue {named}: it has no `interface`"));
    };
    if !is_on(section, "enabled") {
        return imported.note(format!("`{interface}`: it is not enabled there"));
    }
    remarks(section, interface, imported);
    let directions = [(Direction::Download, "download", "i"), (Direction::Upload, "upload", "e")];
    let [download, upload] = directions.map(|(direction, option, letter)| {
        let said = section.get(option).unwrap_or("0");
        let Ok(kbit) = said.parse::<u64>() else {
            imported.note(format!("`{interface}`: `{option} {said}` is no number of kbit/s"));
            return None;
        };
        if kbit == 0 {
            imported.note(format!("`{interface}`: {option} 0 means that it is left alone"));
            return None;
        }
        let words = words(section, interface, direction, letter, imported);
        Some(Way { rate: Some(format!("{kbit}kbit")), words })
    });
    imported.add(Interface { name: interface.into(), download, upload });
}

fn is_on(section: &Section, option: &str) -> bool {
    section.get(option) == Some("1")
}

/// Settings without a counterpart here.
fn remarks(section: &Section, interface: &str, imported: &mut Imported) {
    for (option, value) in &section.options {
        let note = match option.as_str() {
            "debug_logging" | "verbosity" => "the daemon says what matters by itself",
            "use_mq" if value == "1" => "parallel queues are for the kernel's cake",
            "shaper_burst" => "bursts follow the rate here",
            "tcMTU" | "tcTSIZE" => "only tc's `stab` has such tables; here sizes are reckoned",
            "linklayer_adaptation_mechanism" if !matches!(value.as_str(), "default" | "cake") => {
                "sizes are reckoned by the discipline itself here"
            }
            option if !KNOWN.contains(&option) => "no option of sqm-scripts that is known here",
            _ => continue,
        };
        imported.note(format!("`{interface}`: {option} `{value}`: {note}"));
    }
    let advanced = is_on(section, "qdisc_advanced");
    let really = advanced && is_on(section, "qdisc_really_really_advanced");
    let hidden = [
        (
            advanced,
            "qdisc_advanced",
            &["squash_dscp", "squash_ingress", "ingress_ecn", "egress_ecn"][..],
        ),
        (
            really,
            "qdisc_really_really_advanced",
            &["ilimit", "elimit", "itarget", "etarget", "iqdisc_opts", "eqdisc_opts"][..],
        ),
    ];
    for (is_set, by, options) in hidden {
        for option in options.iter().filter(|_| !is_set) {
            if section.get(option).is_some_and(|value| !value.is_empty()) {
                imported.note(format!("`{interface}`: {option} counts only with `{by}`"));
            }
        }
    }
}

/// The discipline of one direction; its options begin with `letter`.
fn words(
    section: &Section,
    interface: &str,
    direction: Direction,
    letter: &str,
    imported: &mut Imported,
) -> String {
    let script = section.get("script").unwrap_or("simple.qos");
    let script = script.strip_suffix(".qos").unwrap_or(script);
    let qdisc = section.get("qdisc").unwrap_or("fq_codel");
    let advanced = is_on(section, "qdisc_advanced");
    let really = advanced && is_on(section, "qdisc_really_really_advanced");
    let is_download = direction == Direction::Download;
    // Both are on unless the page for experts says otherwise.
    let squashes = |option: &str| is_download && (!advanced || section.get(option) != Some("0"));
    let (ignores, washes) = (squashes("squash_ingress"), squashes("squash_dscp"));
    let mut note = |what: String| imported.note(format!("`{interface}`: {what}"));

    let mut words: Vec<String> = Vec::new();
    match script {
        "piece_of_cake" => words.push("cake besteffort".into()),
        "layer_cake" => {
            words.push(if ignores { "cake besteffort" } else { "cake diffserv3" }.into())
        }
        "simplest" | "simplest_tbf" if section.get("linklayer").is_none_or(|l| l == "none") => {
            let known = simnel_core::qdisc::discipline(qdisc).is_some();
            if !known {
                note(format!("`{qdisc}` is not known here: fq_codel stands for it"));
            }
            words.push(if known { qdisc } else { "fq_codel" }.into());
        }
        "simplest" | "simplest_tbf" => {
            note(format!("{script}: `cake besteffort` stands for it, which knows the link layer"));
            words.push("cake besteffort".into());
        }
        "simple" => {
            note("simple.qos: `cake diffserv3` stands for its three classes".into());
            words.push(if ignores { "cake besteffort" } else { "cake diffserv3" }.into());
        }
        other => {
            note(format!("script `{other}` is not known: `cake diffserv3` stands for it"));
            words.push("cake diffserv3".into());
        }
    }
    let is_cake = words[0].starts_with("cake");
    let name = words[0].split(' ').next().unwrap_or_default().to_owned();
    if is_cake && washes {
        words.push("wash".into());
    }
    if is_cake {
        words.extend(link_layer(section, &mut note));
    }
    if advanced {
        let option = if is_download { "ingress_ecn" } else { "egress_ecn" };
        match section.get(option) {
            Some("NOECN") if is_cake => note(format!("{option} NOECN: cake marks always")),
            Some("NOECN") if name == "fq_codel" => words.push("noecn".into()),
            Some("ECN") if matches!(name.as_str(), "codel" | "pie" | "red") => {
                words.push("ecn".into())
            }
            _ => {}
        }
    }
    if really {
        let option = |rest: &str| section.get(&format!("{letter}{rest}")).filter(|v| !v.is_empty());
        for (rest, keyword) in [("limit", "limit"), ("target", "target")] {
            match option(rest) {
                Some(value) if is_cake => note(format!("{letter}{rest} `{value}`: not for cake")),
                Some("auto") | None => {}
                Some(value) => words.push(format!("{keyword} {value}")),
            }
        }
        words.extend(option("qdisc_opts").map(String::from));
    }
    let all = words.join(" ");
    let rest = all.strip_prefix(name.as_str()).unwrap_or_default();
    let kept = understood(&name, rest, |word| note(format!("`{word}`: `{name}` has no such word")));
    format!("{name} {kept}").trim_end().to_owned()
}

/// Cake's words for the link.
fn link_layer(section: &Section, note: &mut impl FnMut(String)) -> Option<String> {
    let cells = match section.get("linklayer").unwrap_or("none") {
        "none" => return None,
        "adsl" | "atm" => "atm ",
        "ethernet" | "ptm" => "",
        other => {
            note(format!("linklayer `{other}` is not known"));
            return None;
        }
    };
    let mut number = |option: &str, least: i32, most: i32| {
        let said = section.get(option)?;
        let value = said.parse::<i32>().ok().filter(|value| (least..=most).contains(value));
        if value.is_none() {
            note(format!("{option} `{said}`: expected {least} to {most}"));
        }
        value
    };
    // Bounds of cake (man tc-cake).
    let overhead = number("overhead", -64, 256).unwrap_or(0);
    let mpu = number("tcMPU", 0, 256).filter(|mpu| *mpu > 0);
    let mpu = mpu.map_or(String::new(), |mpu| format!(" mpu {mpu}"));
    Some(format!("{cells}overhead {overhead}{mpu}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file that OpenWrt 23.05 installs, enabled, with a page for experts filled in.
    const FILE: &str = "
config queue 'eth1'
\toption enabled '1'
\toption interface 'eth1'
\toption download '85000'
\toption upload '10000'
\toption qdisc 'cake'
\toption script 'piece_of_cake.qos'
\toption qdisc_advanced '1'
\toption squash_dscp '1'
\toption squash_ingress '1'
\toption ingress_ecn 'ECN'
\toption egress_ecn 'NOECN'
\toption qdisc_really_really_advanced '1'
\toption iqdisc_opts 'nat dual-dsthost'
\toption eqdisc_opts 'nat dual-srchost ack-filter'
\toption linklayer 'ethernet'
\toption overhead '34'
\toption linklayer_advanced '1'
\toption tcMTU '2047'
\toption tcMPU '64'
\toption debug_logging '0'
\toption verbosity '5'
";

    fn with(changes: &[(&str, &str)]) -> Imported {
        let mut text = FILE.to_owned();
        for (option, value) in changes {
            text += &format!("\toption {option} '{value}'\n");
        }
        import(&text)
    }

    #[test]
    fn a_page_for_experts_is_taken_over() {
        let imported = with(&[]);
        let expected = "[[interface]]\nname = \"eth1\"\ndownload = \"85000kbit\"\n\
            upload = \"10000kbit\"\n\
            download_qdisc = \"cake besteffort wash overhead 34 mpu 64 nat dual-dsthost\"\n\
            upload_qdisc = \"cake besteffort overhead 34 mpu 64 nat dual-srchost ack-filter\"\n";
        assert_eq!(imported.toml(), expected);
        let notes = imported.notes.join("\n");
        for told in ["egress_ecn NOECN", "tcMTU", "debug_logging", "verbosity"] {
            assert!(notes.contains(told), "{told}: {notes}");
        }
        assert_eq!(imported.notes.len(), 4, "{notes}");
    }

    #[test]
    fn what_counts_only_for_experts_is_told_and_left() {
        let imported = with(&[("qdisc_advanced", "0"), ("script", "layer_cake.qos")]);
        let toml = imported.toml();
        assert!(toml.contains("download_qdisc = \"cake besteffort wash overhead 34"), "{toml}");
        assert!(toml.contains("upload_qdisc = \"cake diffserv3 overhead 34 mpu 64\""), "{toml}");
        assert!(imported.notes.iter().any(|note| note.contains("eqdisc_opts counts only")));
        // Nor does turning off there what is on otherwise.
        let squash = [("squash_dscp", "0"), ("squash_ingress", "0")];
        let download = |advanced| {
            let imported = with(&[&squash[..], &[("qdisc_advanced", advanced)]].concat());
            imported.interfaces[0].download.clone().unwrap().words
        };
        assert!(download("0").contains(" wash ") && !download("1").contains(" wash "));
    }

    #[test]
    fn each_script_has_its_counterpart() {
        let upload = |changes: &[(&str, &str)]| {
            let imported = with(changes);
            (imported.interfaces[0].upload.clone().unwrap().words, imported.notes.join("\n"))
        };
        let bare = [("linklayer", "none"), ("eqdisc_opts", ""), ("iqdisc_opts", "")];
        let and = |more: &[(&'static str, &'static str)]| [&bare[..], more].concat();
        let (words, _) = upload(&and(&[
            ("script", "simplest.qos"),
            ("qdisc", "fq_codel"),
            ("elimit", "500"),
            ("etarget", "9ms"),
        ]));
        assert_eq!(words, "fq_codel noecn limit 500 target 9ms");
        let (words, notes) =
            upload(&and(&[("script", "simplest_tbf.qos"), ("qdisc", "efq_codel")]));
        assert!(words.starts_with("fq_codel") && notes.contains("`efq_codel`"), "{words}");
        let (words, notes) = upload(&and(&[("script", "simple.qos")]));
        assert!(words == "cake diffserv3" && notes.contains("simple.qos"), "{words}");
        let (words, notes) =
            upload(&[("script", "mine.qos"), ("linklayer", "atm"), ("overhead", "40")]);
        assert!(words.contains("atm overhead 40 mpu 64") && notes.contains("`mine`"), "{words}");
        let (words, notes) = upload(&[("eqdisc_opts", "nat teleport"), ("overhead", "999")]);
        assert!(words.ends_with("nat") && notes.contains("`teleport`"), "{words}");
        assert!(notes.contains("overhead `999`"), "{notes}");
    }

    #[test]
    fn what_is_off_stays_off() {
        let off = with(&[("enabled", "0")]);
        assert!(off.interfaces.is_empty() && off.notes[0].contains("not enabled"));
        let one = with(&[("download", "0")]);
        assert_eq!(one.interfaces[0].download, None);
        let none = with(&[("download", "fast"), ("upload", "0")]);
        assert!(none.interfaces.is_empty() && none.notes.join("").contains("`download fast`"));
        assert!(import("").notes[0].contains("config queue"));
        assert!(import("config queue x\n").notes[0].contains("no `interface`"));
    }

    #[test]
    fn what_has_no_counterpart_is_told_and_the_rest_is_not() {
        let told = |option: &str, value: &str| {
            let notes = with(&[(option, value)]).notes;
            notes.iter().any(|note| note.contains(&format!("{option} `{value}`: ")))
        };
        for (option, value, is_told) in [
            ("shaper_burst", "1", true),
            ("use_mq", "1", true),
            ("use_mq", "0", false),
            ("linklayer_adaptation_mechanism", "tc_stab", true),
            ("linklayer_adaptation_mechanism", "default", false),
            ("linklayer_adaptation_mechanism", "cake", false),
            ("teleport", "1", true),
            ("overhead", "44", false),
        ] {
            assert_eq!(told(option, value), is_told, "{option} {value}");
        }
    }

    #[test]
    fn words_are_those_that_the_discipline_has() {
        let upload = |changes: &[(&str, &str)]| {
            let bare = [("eqdisc_opts", ""), ("iqdisc_opts", ""), ("script", "simplest.qos")];
            let imported = with(&[&bare[..], changes].concat());
            let words = imported.interfaces[0].upload.clone().unwrap().words;
            (words, imported.notes.join("\n"))
        };
        let none = ("linklayer", "none");
        for (changes, words, note) in [
            (&[none, ("qdisc", "pie")][..], "pie", ""),
            (&[none, ("qdisc", "pie"), ("egress_ecn", "ECN")], "pie ecn", ""),
            (&[none, ("qdisc", "fq_codel"), ("egress_ecn", "ECN")], "fq_codel", ""),
            (&[none, ("qdisc", "fq_codel"), ("elimit", "9")], "fq_codel noecn limit 9", ""),
            // What knows the link layer stands for what does not.
            (&[("qdisc", "fq_codel")], "cake besteffort overhead 34 mpu 64", "knows the link"),
            (&[("tcMPU", "0")], "cake besteffort overhead 34", "knows the link"),
            (&[("elimit", "9")], "cake besteffort overhead 34 mpu 64", "not for cake"),
        ] {
            let (found, notes) = upload(changes);
            assert_eq!(found, words, "{changes:?}");
            assert!(notes.contains(note), "{changes:?}: {notes}");
            for said in ["no such word", "is not known"] {
                assert!(!notes.contains(said), "{changes:?}: {notes}");
            }
        }
    }
}

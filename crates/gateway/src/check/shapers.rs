//! Disciplines that shape or queue the interface's packets already.

use std::path::Path;

use simnel_core::netlink::Options;
use simnel_core::qdisc::{netlink, Device};
use simnel_core::tc::units;
use simnel_core::Rate;

use super::{Finding, Level};
use crate::control::{self, Client, Reply, Request};
use crate::error::Error;
use crate::kernel::{self, Listed, Qdiscs, INGRESS, ROOT};
use crate::netlink::attribute;
use crate::nfqueue::QUEUE_NUMBERS;
use crate::presence::Change;

/// Disciplines that hold packets back.
const SHAPERS: [&str; 7] = ["cake", "cake_mq", "htb", "tbf", "hfsc", "cbq", "netem"];

pub(super) fn findings(interface: &str, control_dir: &Path) -> Vec<Finding> {
    let own = running(interface, control_dir);
    let is_running = own.level != Level::Ok;
    let mut all = vec![own];
    match Qdiscs::open().and_then(|kernel| kernel.list()) {
        Ok(list) => all.extend(present(interface, &list, is_running)),
        Err(error) => {
            all.push(Finding::unknown("shaper", "disciplines", &error.to_string()));
        }
    }
    all.extend(orphans(interface));
    all.push(queues());
    all
}

/// Devices that the kernel's backend has left behind.
fn orphans(interface: &str) -> Option<Finding> {
    let orphans = kernel::orphans().ok().filter(|orphans| !orphans.is_empty())?;
    let what = format!("{} is left of an interface that was deleted", orphans.join(", "));
    let fix = format!("`simnel down {interface}` removes it, as `up --backend kernel` does");
    Some(Finding::new(Level::Note, "leftover", what, "nothing passes through it", fix))
}

/// Warnings about them, for who begins to shape. Whatever cannot be found out gives none.
pub(crate) fn shaper_warnings(interface: &str) -> Vec<String> {
    let list = Qdiscs::open().and_then(|kernel| kernel.list());
    warnings(interface, &list.unwrap_or_default())
}

fn warnings(interface: &str, list: &[Listed]) -> Vec<String> {
    let all = present(interface, list, false).into_iter();
    let bad = all.filter(|finding| finding.level == Level::Warning);
    bad.map(|Finding { what, why, fix, .. }| format!("{what}; {why}: {fix}")).collect()
}

/// A simnel that manages the interface.
fn running(interface: &str, control_dir: &Path) -> Finding {
    const ID: &str = "running";
    let told = |how: &str| {
        let fix = format!("`simnel show {interface}` shows how, `simnel down {interface}` ends it");
        let what = format!("simnel shapes `{interface}` already, {how}");
        Finding::new(Level::Note, ID, what, "a second `simnel up` is refused", fix)
    };
    if kernel::shaped(Some(interface)).is_ok_and(|shaped| !shaped.is_empty()) {
        return told("in the kernel");
    }
    match Client::connect(control_dir, interface) {
        Err(Error::NotUp { .. }) => match earlier_name(interface, control_dir) {
            None => Finding::ok(ID, format!("no simnel runs on `{interface}`")),
            Some(name) => Finding::new(
                Level::Warning,
                ID,
                format!("the simnel that shaped `{name}`, as `{interface}` was called, still runs"),
                "traffic passes unshaped",
                format!("rename it back, or `simnel down {name}` and `simnel up {interface}`"),
            ),
        },
        Err(Error::Restarting(_)) => told("in userspace, by a daemon that is about to start"),
        Err(_) => Finding::unknown(ID, "whether a simnel runs", "its control socket is not ours"),
        Ok(mut client) => match client.ask(&Request::Show {}) {
            Ok(Reply { trouble: Some(trouble), .. }) => Finding::new(
                Level::Warning,
                ID,
                format!("simnel shapes `{interface}`, but that is {trouble}"),
                "nothing passes it as it should",
                "`ip link` shows how it is",
            ),
            Ok(_) => told("in userspace"),
            Err(error) => Finding::new(
                Level::Warning,
                ID,
                format!("a simnel on `{interface}` does not answer"),
                error.to_string(),
                "see the system log; its guard lets packets pass",
            ),
        },
    }
}

/// The name by which a daemon serves an interface that was renamed since.
fn earlier_name(interface: &str, control_dir: &Path) -> Option<String> {
    let names = control::interfaces(control_dir).ok()?;
    names.into_iter().find(|name| {
        let client = Client::connect(control_dir, name);
        let reply = client.and_then(|mut client| client.ask(&Request::Show {}));
        let trouble = reply.ok().and_then(|reply| reply.trouble);
        matches!(trouble, Some(Change::Renamed(now)) if now == interface)
    })
}

/// Disciplines at the interface's root and at its ingress.
fn present(interface: &str, list: &[Listed], is_running: bool) -> Vec<Finding> {
    const WHY: &str = "two shapers in a row: the slower one decides, and packets wait in it";
    let here = |listed: &&Listed| listed.device == interface;
    let mut all = Vec::new();
    let root = list.iter().filter(here).find(|listed| listed.parent == ROOT);
    all.push(match root {
        Some(listed) if is_shaper(&listed.kind) && !is_running => Finding::new(
            Level::Warning,
            "shaper",
            format!("`{interface}` is shaped already: {}", settings(listed)),
            WHY,
            format!(
                "`tc qdisc del dev {interface} root`, and stop what set it up (sqm-scripts: \
                     `/etc/init.d/sqm stop`; `tc qdisc show | simnel import tc` takes it over)"
            ),
        ),
        Some(listed) => Finding::ok("shaper", format!("`{}` at the root", listed.kind)),
        None => Finding::ok("shaper", "no discipline at the root"),
    });
    let ingress = list.iter().filter(here).find(|listed| listed.parent == INGRESS);
    if let Some(listed) = ingress.filter(|_| !is_running) {
        // Where a filter sends packets to is the filter's secret; ifb devices with a shaper are
        // where it mostly does.
        let ifbs: Vec<String> = list
            .iter()
            .filter(|other| other.parent == ROOT && other.device.contains("ifb"))
            .filter(|other| is_shaper(&other.kind))
            .map(|other| format!("`{}`: {}", other.device, settings(other)))
            .collect();
        let what = format!("`{interface}` has the qdisc `{}`", listed.kind);
        all.push(match ifbs.is_empty() {
            true => Finding::new(
                Level::Note,
                "ingress-shaper",
                what,
                "filters there may police, redirect or drop what arrives, before simnel sees it",
                format!("`tc filter show dev {interface} ingress` lists them"),
            ),
            false => Finding::new(
                Level::Warning,
                "ingress-shaper",
                format!("{what}, and there is {}", ifbs.join(", ")),
                WHY,
                format!("`tc qdisc del dev {interface} {}`, or stop what set it up", listed.kind),
            ),
        });
    }
    all
}

fn is_shaper(kind: &str) -> bool {
    SHAPERS.contains(&kind) || kind == kernel::OWN_KIND
}

/// A discipline with its settings, as far as they are known here.
fn settings(listed: &Listed) -> String {
    if listed.is_ours() {
        return listed.words();
    }
    let options = Options { payload: &listed.options, is_nested: true };
    if let Some(rate) = tbf_rate(&listed.options).filter(|_| listed.kind == "tbf") {
        let mut text = String::new();
        let _ = units::write_rate(rate, units::Digits::AsTc, &mut text);
        return format!("`tbf rate {text}`");
    }
    let known = netlink::kinds().any(|kind| kind == listed.kind);
    let parsed =
        known.then(|| netlink::parse(&listed.kind, Some(options), None, &Device::default()));
    match parsed {
        Some(Ok(config)) => format!("`{config}`"),
        _ => format!("`{}` (`tc qdisc show dev {}` says more)", listed.kind, listed.device),
    }
}

/// The rate of tbf, which Linux has in a `tc_ratespec` of bytes a second (linux/pkt_sched.h).
fn tbf_rate(options: &[u8]) -> Option<Rate> {
    const PARAMETERS: i32 = 1;
    const RATE: usize = 8;
    let data = attribute(options, PARAMETERS)?;
    Some(Rate(u32::from_ne_bytes(*data.get(RATE..)?.first_chunk()?).into()))
}

/// Other programs that take packets out of the kernel.
fn queues() -> Finding {
    queues_in(std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue"))
}

/// The same in what reading the kernel's list gave.
fn queues_in(list: std::io::Result<String>) -> Finding {
    match list {
        Ok(text) => others(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok("nfqueue-users", "nobody uses NFQUEUE")
        }
        Err(error) => Finding::unknown("nfqueue-users", "users of NFQUEUE", &error.to_string()),
    }
}

/// Those in the kernel's list, but for ourselves: number, port of the owner, packets that wait, and
/// more.
fn others(list: &str) -> Finding {
    const ID: &str = "nfqueue-users";
    let queues = list.lines().filter_map(|line| {
        let mut columns = line.split_whitespace().map(|column| column.parse::<u64>().ok());
        Some((columns.next()??, columns.next()??, columns.next()??))
    });
    let is_ours = |number: u64| {
        (u64::from(*QUEUE_NUMBERS.start())..=u64::from(*QUEUE_NUMBERS.end())).contains(&number)
    };
    let others: Vec<_> = queues.filter(|(number, ..)| !is_ours(*number)).collect();
    if others.is_empty() {
        return Finding::ok(ID, "nobody else uses NFQUEUE");
    }
    let named: Vec<String> = others
        .iter()
        .map(|(number, port, waiting)| {
            let program = std::fs::read_to_string(format!("/proc/{port}/comm")).ok();
            let by = program.map_or_else(String::new, |name| format!(" by `{}`", name.trim()));
            format!("queue {number}{by} ({waiting} packets wait)")
        })
        .collect();
    Finding::new(
        Level::Note,
        ID,
        format!("others use NFQUEUE: {}", named.join(", ")),
        "packets pass both programs one after the other, and wait for the other one unshaped",
        "nothing, if it is quick (an intrusion detection); simnel takes other numbers",
    )
}

#[cfg(test)]
mod tests {
    use simnel_core::qdisc::Common;

    use super::*;

    fn listed(device: &str, kind: &str, parent: u32, options: &[u8]) -> Listed {
        Listed {
            device: device.into(),
            kind: kind.into(),
            handle: 0x8001_0000,
            parent,
            refcnt: 1,
            options: options.to_vec(),
            common: Common::default(),
            own: Vec::new(),
        }
    }

    #[test]
    fn a_shaper_that_is_there_is_told_with_its_settings() {
        // What Linux 6.18 sent for `tbf rate 10mbit burst 15k limit 100k`.
        let options = [
            40, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 208, 18, 19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 144, 1, 0, 0, 238, 2, 0, 0, 0, 0, 0,
        ];
        let list = [listed("wan", "tbf", ROOT, &options)];
        let told = &present("wan", &list, false)[0];
        assert_eq!(told.level, Level::Warning);
        if cfg!(target_endian = "little") {
            assert!(told.what.contains("rate 10Mbit"), "{told:?}");
        }
        let warnings = super::warnings("wan", &list);
        assert!(warnings[0].contains("tc qdisc del dev wan root"), "{warnings:?}");
        assert_eq!(warnings.len(), 1);
        assert_eq!(present("wan", &list, true)[0].level, Level::Ok);
        assert_eq!(present("lan", &list, false)[0].what, "no discipline at the root");
        // Options that are none, and a kind that is not known here.
        for (kind, options) in [("tbf", &[1u8, 2, 3][..]), ("hfsc", &[])] {
            let told = present("wan", &[listed("wan", kind, ROOT, options)], false);
            assert!(told[0].what.contains(kind), "{told:?}");
        }
        let plain = present("wan", &[listed("wan", "fq_codel", ROOT, &[])], false);
        assert_eq!(plain[0].level, Level::Ok);
        assert!(super::warnings("wan", &[listed("wan", "fq_codel", ROOT, &[])]).is_empty());
    }

    #[test]
    fn what_arrives_may_be_shaped_too() {
        let list = [
            listed("wan", "noqueue", ROOT, &[]),
            listed("wan", "ingress", INGRESS, &[]),
            listed("ifb4wan", "hfsc", ROOT, &[]),
            listed("lan", "htb", ROOT, &[]),
            listed("ifb5", "tbf", 0x1_0001, &[]),
        ];
        let told = present("wan", &list, false);
        assert_eq!((told[0].level, told[1].level), (Level::Ok, Level::Warning));
        assert!(told[1].what.contains("ifb4wan") && told[1].fix.contains("dev wan ingress"));
        assert!(!told[1].what.contains("lan`: ") && !told[1].what.contains("ifb5"), "{told:?}");
        assert_eq!(present("wan", &list[..2], false)[1].level, Level::Note);
    }

    #[test]
    fn other_users_of_nfqueue_are_told_from_ourselves() {
        let list = "    0  99999999     3 2     0     0     0        0  1\n\
                    20896  5     0 2 65531     0     0        0  1\nnonsense\n";
        let told = others(list);
        assert_eq!(told.level, Level::Note);
        assert!(told.what.contains("queue 0 (3 packets wait)"), "{told:?}");
        assert!(!told.what.contains("20896"));
        assert_eq!(others("20896  5     0 2 65531     0     0        0  1\n").level, Level::Ok);
        assert_eq!(others("").level, Level::Ok);
    }

    #[test]
    fn settings_that_are_known_are_told_as_words() {
        let mut options = crate::netlink::Writer::default();
        // TCA_CAKE_BASE_RATE64, in bytes.
        options.attribute(2, &1_250_000u64.to_ne_bytes());
        let told = settings(&listed("wan", "cake", ROOT, options.bytes()));
        assert!(told.starts_with("`cake bandwidth 10Mbit "), "{told}");
    }

    #[test]
    fn no_list_of_queues_is_nobody_and_one_that_cannot_be_read_is_unknown() {
        let read = |kind: std::io::ErrorKind| queues_in(Err(kind.into()));
        assert_eq!(read(std::io::ErrorKind::NotFound).level, Level::Ok);
        let told = read(std::io::ErrorKind::PermissionDenied);
        assert!(told.what.starts_with("cannot tell"), "{told:?}");
        assert_eq!(queues_in(Ok("7 5 3 2 0 0 0 0 1\n".into())).level, Level::Note);
    }

    #[test]
    fn a_shaper_in_the_kernel_is_found() {
        crate::apart::apart("a_shaper_in_the_kernel_is_found", || {
            let directory = tempfile::tempdir().unwrap();
            let tbf = "qdisc add dev lo root tbf rate 10mbit burst 15k limit 100k";
            let status = std::process::Command::new("tc").args(tbf.split(' ')).status();
            if !status.is_ok_and(|status| status.success()) {
                return eprintln!("NOT RUN: a_shaper_in_the_kernel_is_found needs tc and sch_tbf");
            }
            let all = findings("lo", directory.path());
            let level = |id| all.iter().find(|one| one.id == id).map(|one| one.level);
            assert_eq!(level("running"), Some(Level::Ok), "{all:?}");
            assert_eq!(level("shaper"), Some(Level::Warning), "{all:?}");
            assert_eq!(level("nfqueue-users"), Some(Level::Ok), "{all:?}");
            let warnings = shaper_warnings("lo");
            assert!(warnings.len() == 1 && warnings[0].contains("`lo` is shaped already"));
        });
    }

    #[test]
    fn a_daemon_whose_interface_has_another_name_now_is_found() {
        use std::io::{BufRead, BufReader, Write};
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("ppp0.sock");
        let listener = std::os::unix::net::UnixListener::bind(place).unwrap();
        std::thread::spawn(move || loop {
            let (stream, _) = listener.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            let trouble = Some(Change::Renamed("wan".into()));
            let reply = Reply { ok: true, trouble, ..Reply::default() };
            let line = serde_json::to_string(&reply).unwrap() + "\n";
            (&stream).write_all(line.as_bytes()).unwrap();
        });
        let told = running("wan", directory.path());
        assert_eq!(told.level, Level::Warning);
        assert!(told.what.contains("shaped `ppp0`, as `wan` was called"), "{told:?}");
        assert!(told.fix.contains("`simnel down ppp0`"), "{told:?}");
        assert_eq!(running("lan", directory.path()).level, Level::Ok);
    }
}

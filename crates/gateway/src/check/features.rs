//! Parts of the kernel that the backends need: there, to be loaded, missing, or not to be told.
//!
//! Witnesses, best first:
//!
//! 1. the kernel itself: a table of nftables that it is to judge and never to keep, and files of
//!    /proc that only the part makes;
//! 2. what describes it: `modules.builtin` and `modules.dep` of its version, its configuration in
//!    /proc/config.gz or /boot.

use std::io::Read;
use std::path::PathBuf;

use flate2::read::MultiGzDecoder;

use super::{read, Finding, Level};
use crate::nfqueue::has_net_admin;
use crate::nft;
use crate::untracked;

/// NFT_TABLE_F_OWNER, by which the kernel removes our rules when we die.
const LEAST: (u32, u32) = (5, 12);

/// State of a part of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Built in, or loaded.
    There,
    /// A module on the disk, which the kernel loads on demand.
    OnDemand,
    Missing,
    Unknown,
}

/// A part: the module's name, the option that builds it.
struct Part {
    module: &'static str,
    option: &'static str,
}

/// Evidence of this kernel's features.
#[derive(Default)]
struct Witnesses {
    /// `modules.builtin`.
    builtin: Option<String>,
    /// `modules.dep`.
    dependencies: Option<String>,
    /// /proc/modules.
    loaded: Option<String>,
    /// Its configuration.
    options: Option<String>,
}

impl Witnesses {
    fn of_this_kernel(release: &str) -> Witnesses {
        let below = PathBuf::from("/lib/modules").join(release);
        let packed = std::fs::File::open("/proc/config.gz").ok().and_then(|file| {
            let mut text = String::new();
            // Some ten thousand lines; no configuration has a megabyte.
            MultiGzDecoder::new(file).take(1 << 20).read_to_string(&mut text).ok()?;
            Some(text)
        });
        Witnesses {
            builtin: read(below.join("modules.builtin")),
            dependencies: read(below.join("modules.dep")),
            loaded: read("/proc/modules"),
            options: packed
                .or_else(|| read(format!("/boot/config-{release}")))
                .or_else(|| read(below.join("config"))),
        }
    }

    fn state(&self, part: &Part) -> State {
        let same = |name: &str| name.replace('-', "_") == part.module;
        let listed = |text: &Option<String>| {
            text.as_deref().unwrap_or_default().lines().any(|line| {
                let path = line.split(':').next().unwrap_or_default();
                let file = path.rsplit('/').next().unwrap_or_default();
                same(file.split(".ko").next().unwrap_or_default())
            })
        };
        let loaded = self.loaded.as_deref().unwrap_or_default();
        if loaded.lines().any(|line| line.split(' ').next().is_some_and(same))
            || listed(&self.builtin)
        {
            return State::There;
        }
        if listed(&self.dependencies) {
            return State::OnDemand;
        }
        let set = |value: &str| {
            let line = format!("{}={value}", part.option);
            self.options.as_ref().is_some_and(|text| text.lines().any(|found| found == line))
        };
        if set("y") {
            return State::There;
        }
        // A module that was built and is not installed cannot be loaded either.
        let lists_all = self.builtin.is_some() && self.dependencies.is_some();
        match &self.options {
            _ if lists_all => State::Missing,
            Some(_) if set("m") => State::Unknown,
            // Modules from elsewhere are in no configuration.
            Some(_) if !part.option.is_empty() => State::Missing,
            Some(text) if !text.lines().any(|line| line == "CONFIG_MODULES=y") => State::Missing,
            _ => State::Unknown,
        }
    }
}

const fn part(module: &'static str, option: &'static str) -> Part {
    Part { module, option }
}

pub(super) fn findings() -> Vec<Finding> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let witnesses = Witnesses::of_this_kernel(&release);
    let mut all = vec![version(&release)];
    all.extend(userspace(&witnesses));
    all.push(conntrack(&witnesses));
    all.push(host_names(&witnesses));
    all.push(cgroups(&witnesses));
    all.extend(in_kernel(&witnesses));
    all.push(confinement());
    all
}

fn version(release: &str) -> Finding {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().ok());
    let what = format!("Linux {release}");
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else {
        return Finding::unknown("kernel-version", what, "not a version of Linux's");
    };
    if (major, minor) >= LEAST {
        return Finding::ok("kernel-version", what);
    }
    Finding::new(
        Level::Error,
        "kernel-version",
        what,
        "tables that the kernel removes by itself, so that traffic passes if the daemon dies, came \
         with Linux 5.12",
        "run a newer kernel",
    )
}

/// nftables with NFQUEUE, which the userspace backend stands on.
fn userspace(witnesses: &Witnesses) -> Vec<Finding> {
    const NEEDED: &str = "the userspace backend stands on it";
    if has_net_admin() {
        let what = "nftables can hand packets to NFQUEUE";
        let asked = match nft::judge_queueing() {
            Ok(nft::Queueing::Native) => Finding::ok("nfqueue", format!("{what} (`queue`)")),
            Ok(nft::Queueing::Iptables) => Finding::ok(
                "nfqueue",
                format!(
                    "{what}, with iptables' NFQUEUE target: there is no `queue` expression, so a \
                     bridge's frames would wait in the daemon"
                ),
            ),
            Err(error) => Finding::new(
                Level::Error,
                "nfqueue",
                format!("nftables cannot hand packets to NFQUEUE: {error}"),
                NEEDED,
                "`modprobe nf_tables nft_queue` (OpenWrt: the packages kmod-nft-queue and \
                 kmod-nfnetlink-queue), or --backend kernel",
            ),
        };
        return vec![asked, queue_module(witnesses, NEEDED)];
    }
    let table = witnesses.state(&part("nf_tables", "CONFIG_NF_TABLES"));
    let native = witnesses.state(&part("nft_queue", "CONFIG_NFT_QUEUE"));
    let target = witnesses.state(&part("xt_NFQUEUE", "CONFIG_NETFILTER_XT_TARGET_NFQUEUE"));
    let (what, queue) = queueing(native, target);
    let fix = "build the kernel with it, or install its modules";
    vec![
        finding("nftables", "nftables (nf_tables)", table, Level::Error, NEEDED, fix),
        finding("nfqueue", what, queue, Level::Error, NEEDED, fix),
        queue_module(witnesses, NEEDED),
    ]
}

/// The way of packets to NFQUEUE, by the states of the expression `queue` and of iptables' target.
fn queueing(native: State, target: State) -> (&'static str, State) {
    const QUEUE: &str = "`queue` in nftables";
    match (native, target) {
        (State::There | State::OnDemand, _) => (QUEUE, native),
        (_, State::There | State::OnDemand) => {
            ("iptables' NFQUEUE target, in place of `queue` in nftables,", target)
        }
        (State::Unknown, _) => (QUEUE, State::Unknown),
        (State::Missing, other) => (QUEUE, other),
    }
}

fn queue_module(witnesses: &Witnesses, needed: &str) -> Finding {
    let there = std::path::Path::new("/proc/thread-self/net/netfilter/nfnetlink_queue").exists();
    let state = match there {
        true => State::There,
        false => witnesses.state(&part("nfnetlink_queue", "CONFIG_NETFILTER_NETLINK_QUEUE")),
    };
    let fix = "`modprobe nfnetlink_queue` (OpenWrt: the package kmod-nfnetlink-queue)";
    finding("nfnetlink-queue", "NFQUEUE (nfnetlink_queue)", state, Level::Error, needed, fix)
}

fn conntrack(witnesses: &Witnesses) -> Finding {
    let there = std::path::Path::new("/proc/sys/net/netfilter/nf_conntrack_count").exists();
    let state = match there {
        true => State::There,
        false => witnesses.state(&part("nf_conntrack", "CONFIG_NF_CONNTRACK")),
    };
    let (what, why) = ("connection tracking", "a router that translates addresses needs it");
    let found = finding(CONNTRACK, what, state, Level::Note, why, "`modprobe nf_conntrack`");
    match found.level {
        Level::Ok => tracked(untracked::rules(), has_net_admin()).unwrap_or(found),
        _ => found,
    }
}

const CONNTRACK: &str = "conntrack";

/// Finding about connection tracking that is there, by the rules that turn it off, as far as they
/// could be `found`.
fn tracked(found: std::io::Result<Vec<String>>, has_net_admin: bool) -> Option<Finding> {
    const UNTOLD: &str = "connection tracking is there; whether a rule turns it off";
    let rules = match found {
        Ok(rules) => rules,
        Err(_) if !has_net_admin => {
            return Some(Finding::unknown(CONNTRACK, UNTOLD, "CAP_NET_ADMIN is missing"));
        }
        Err(error) => return Some(Finding::unknown(CONNTRACK, UNTOLD, &error.to_string())),
    };
    (!rules.is_empty()).then(|| {
        Finding::new(
            Level::Warning,
            CONNTRACK,
            format!("connection tracking is turned off (notrack) by {}", rules.join(" and ")),
            "of packets that it fits no addresses are translated, and with `--backend kernel` \
             rules choose no tier or class as they arrive, and hosts and flows are not told",
            "nothing, if it fits no packets of the line; else let them be tracked",
        )
    })
}

/// Copies of DNS answers, for rules with `host`.
fn host_names(witnesses: &Witnesses) -> Finding {
    let module = witnesses.state(&part("nfnetlink_log", "CONFIG_NETFILTER_NETLINK_LOG"));
    let state = match has_net_admin().then(nft::judge_logging) {
        Some(Ok(())) => State::There,
        Some(Err(error)) if error.raw_os_error() == Some(libc::ENOENT) => State::Missing,
        _ => module,
    };
    let what = "NFLOG (nft_log, nfnetlink_log)";
    let fix = "`modprobe nft_log nfnetlink_log` (OpenWrt: the package kmod-nfnetlink-log)";
    finding("host-names", what, state, Level::Note, "rules with `host` need it", fix)
}

/// Control groups of sockets, for rules with `cgroup`.
fn cgroups(witnesses: &Witnesses) -> Finding {
    let state = match has_net_admin().then(nft::judge_cgroups) {
        Some(Ok(())) => State::There,
        Some(Err(error))
            if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP)) =>
        {
            State::Missing
        }
        _ => witnesses.state(&part("nft_socket", "CONFIG_NFT_SOCKET")),
    };
    let what = "control groups in nftables (nft_socket)";
    let fix = "`modprobe nft_socket` (OpenWrt: the package kmod-nft-socket), Linux 5.13";
    finding("cgroups", what, state, Level::Note, "rules with `cgroup` need it", fix)
}

/// Features that the kernel's backend needs.
fn in_kernel(witnesses: &Witnesses) -> Vec<Finding> {
    let state = |module, option| witnesses.state(&part(module, option));
    let disciplines = [state("simnel", ""), state("sch_cake", "CONFIG_NET_SCH_CAKE")];
    let arrivals = [
        ("ifb", state("ifb", "CONFIG_IFB")),
        ("act_mirred", state("act_mirred", "CONFIG_NET_ACT_MIRRED")),
        ("sch_ingress", state("sch_ingress", "CONFIG_NET_SCH_INGRESS")),
        ("cls_matchall", state("cls_matchall", "CONFIG_NET_CLS_MATCHALL")),
    ];
    let mut all = Vec::new();
    let names = ["the module `simnel`", "Linux's own cake (sch_cake)"];
    let why = "`--backend kernel` needs one of `simnel` and cake";
    let fixes = ["`make install-kernel` (docs/KERNEL.md)", "`modprobe sch_cake`"];
    for (at, id) in ["module-simnel", "sch-cake"].into_iter().enumerate() {
        all.push(finding(id, names[at], disciplines[at], Level::Note, why, fixes[at]));
    }
    let missing: Vec<&str> =
        arrivals.iter().filter(|(_, s)| *s == State::Missing).map(|(name, _)| *name).collect();
    let unknown: Vec<&str> =
        arrivals.iter().filter(|(_, s)| *s == State::Unknown).map(|(name, _)| *name).collect();
    let what = "downloads in the kernel (ifb, mirred, ingress, matchall)";
    all.push(if !missing.is_empty() {
        let what = format!("this kernel lacks {}", missing.join(", "));
        let why = "`--backend kernel` cannot shape downloads without";
        Finding::new(Level::Note, "ingress", what, why, "the userspace backend can")
    } else if !unknown.is_empty() {
        Finding::unknown("ingress", unknown.join(", "), NOTHING_DESCRIBES)
    } else {
        Finding::ok("ingress", what)
    });
    let what = "rules for downloads in the kernel (act_ctinfo)";
    let (id, why) = ("kernel-rules", "rules with `backend = \"kernel\"` need it");
    let fix = "`modprobe act_ctinfo` (OpenWrt: the package kmod-sched-ctinfo), Linux 5.3";
    let ctinfo = state("act_ctinfo", "CONFIG_NET_ACT_CTINFO");
    all.push(finding(id, what, ctinfo, Level::Note, why, fix));
    let what = "a tap, to record what the kernel shapes (tun)";
    let (id, why) = ("kernel-record", "`simnel record` with `backend = \"kernel\"` needs it");
    let fix = "`modprobe tun` (OpenWrt: the package kmod-tun)";
    all.push(finding(id, what, state("tun", "CONFIG_TUN"), Level::Note, why, fix));
    all
}

const NOTHING_DESCRIBES: &str =
    "neither /lib/modules nor a configuration describes it for this kernel";

fn finding(
    id: &'static str,
    what: &str,
    state: State,
    level: Level,
    why: &str,
    fix: &str,
) -> Finding {
    match state {
        State::There => Finding::ok(id, format!("{what} is there")),
        State::OnDemand => Finding::ok(id, format!("{what} is a module, loaded on demand")),
        State::Missing => Finding::new(level, id, format!("this kernel lacks {what}"), why, fix),
        State::Unknown => {
            Finding::unknown(id, format!("whether {what} is there"), NOTHING_DESCRIBES)
        }
    }
}

/// Means by which the daemon confines itself.
fn confinement() -> Finding {
    let seccomp = read("/proc/sys/kernel/seccomp/actions_avail").is_some();
    let landlock = crate::sys::landlock_version();
    let lacks: Vec<&str> =
        [(!seccomp).then_some("seccomp"), landlock.is_none().then_some("landlock")]
            .into_iter()
            .flatten()
            .collect();
    match (lacks.is_empty(), landlock) {
        (true, Some(version)) => {
            Finding::ok("confinement", format!("seccomp and landlock (version {version})"))
        }
        _ => Finding::new(
            Level::Note,
            "confinement",
            format!("no {}", lacks.join(" and no ")),
            "the daemon gives up less of what it does not need",
            "build the kernel with CONFIG_SECCOMP_FILTER and CONFIG_SECURITY_LANDLOCK, and name \
             landlock in `lsm=`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAKE: Part = part("sch_cake", "CONFIG_NET_SCH_CAKE");

    fn witnesses(builtin: &str, dependencies: &str, loaded: &str, options: &str) -> Witnesses {
        let some = |text: &str| (text != "-").then(|| text.to_owned());
        Witnesses {
            builtin: some(builtin),
            dependencies: some(dependencies),
            loaded: some(loaded),
            options: some(options),
        }
    }

    #[test]
    fn what_hands_packets_over_is_called_by_its_name() {
        let (what, state) = queueing(State::Missing, State::There);
        assert!(what.starts_with("iptables' NFQUEUE target") && state == State::There, "{what}");
        for (native, target, expected) in [
            (State::There, State::Missing, State::There),
            (State::OnDemand, State::There, State::OnDemand),
            (State::Missing, State::Missing, State::Missing),
            (State::Missing, State::Unknown, State::Unknown),
            (State::Unknown, State::Missing, State::Unknown),
        ] {
            assert_eq!(queueing(native, target), ("`queue` in nftables", expected));
        }
    }

    #[test]
    fn each_witness_is_heard_and_none_is_not_taken_for_a_no() {
        let state = |b, d, l, o| witnesses(b, d, l, o).state(&CAKE);
        let builtin = "kernel/net/sched/sch_cake.ko\n";
        assert_eq!(state(builtin, "", "-", "-"), State::There);
        let dependencies = "kernel/net/sched/sch_cake.ko.xz: kernel/x.ko\n";
        assert_eq!(state("", dependencies, "", "-"), State::OnDemand);
        // A dependency of another is no line of its own.
        assert_eq!(state("", "kernel/x.ko: kernel/sch_cake.ko", "", "-"), State::Missing);
        assert_eq!(state("-", "-", "sch_cake 36864 2 - Live 0x0\n", "-"), State::There);
        assert_eq!(state("-", "-", "sch_cake_mq 36864 2 -\n", "-"), State::Unknown);
        assert_eq!(state("-", "-", "-", "CONFIG_NET_SCH_CAKE=y\n"), State::There);
        assert_eq!(state("-", "-", "-", "# CONFIG_NET_SCH_CAKE is not set\n"), State::Missing);
        // Built as a module, but where it lies nobody says.
        assert_eq!(state("-", "-", "-", "CONFIG_NET_SCH_CAKE=m\n"), State::Unknown);
        assert_eq!(state("", "", "", "CONFIG_NET_SCH_CAKE=m\n"), State::Missing);
        assert_eq!(state("-", "-", "-", "-"), State::Unknown);
        let ours = witnesses("-", "-", "-", "CONFIG_MODULES=y\n").state(&part("simnel", ""));
        assert_eq!(ours, State::Unknown);
        let ours = witnesses("-", "-", "-", "CONFIG_NET=y\n").state(&part("simnel", ""));
        assert_eq!(ours, State::Missing);
        let dashes = "kernel/net/netfilter/nft-queue.ko:\n";
        let queue = part("nft_queue", "CONFIG_NFT_QUEUE");
        assert_eq!(witnesses("", dashes, "", "-").state(&queue), State::OnDemand);
    }

    #[test]
    fn tracking_that_rules_turn_off_is_told_and_why_that_cannot_be() {
        let refused = || Err(std::io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(tracked(Ok(Vec::new()), true), None);
        let told = tracked(Ok(vec!["a rule in chain `pre` of table `raw`".into()]), true).unwrap();
        assert!(told.level == Level::Warning && told.what.ends_with("of table `raw`"), "{told:?}");
        let lacks = |told: Option<Finding>| told.unwrap().why.contains("CAP_NET_ADMIN is missing");
        assert!(lacks(tracked(refused(), false)) && !lacks(tracked(refused(), true)));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (release, level) in [
            ("5.11.22", Level::Error),
            ("4.19.0-26-amd64", Level::Error),
            ("5.12", Level::Ok),
            ("6.1.0-56-cloud-amd64", Level::Ok),
            ("10.0-rc1", Level::Ok),
            ("nonsense", Level::Note),
        ] {
            assert_eq!(version(release).level, level, "{release}");
        }
    }
}

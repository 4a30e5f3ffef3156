//! The machine: rights of this process, forwarding, address translation, processor and clock.

use std::thread;
use std::time::Duration;

use rustix::thread::{capabilities, CapabilitySet};
use rustix::time::{clock_getres, ClockId};

use super::{read, Finding, Level};
use crate::realtime::Obstacle;
use crate::sys;

/// Time for which the processor is watched.
const WATCHED: Duration = Duration::from_millis(200);

pub(super) fn findings() -> Vec<Finding> {
    let effective = capabilities(None).ok().map(|sets| sets.effective);
    let limit = sys::lock_limit().ok().flatten();
    vec![rights(effective, Obstacle::find(), limit), processor(), clock()]
}

/// `obstacle`: before threads in real time; `limit`: bytes that may be locked into memory.
fn rights(
    effective: Option<CapabilitySet>,
    obstacle: Option<Obstacle>,
    limit: Option<u64>,
) -> Finding {
    const ID: &str = "rights";
    let Some(effective) = effective else {
        return Finding::unknown(ID, "which rights there are", "capget(2) is refused");
    };
    if !effective.contains(CapabilitySet::NET_ADMIN) {
        let why = "rules of the firewall, other programs' queues and the control sockets are not \
                   seen, and nothing can be shaped";
        let fix = "run as root: `sudo simnel check`";
        return Finding::new(Level::Note, ID, "without CAP_NET_ADMIN", why, fix);
    }
    let locked = limit.is_none()
        || effective.intersects(CapabilitySet::SYS_RESOURCE | CapabilitySet::IPC_LOCK);
    let in_time = obstacle
        .map(|obstacle| (format!("{} (threads in real time)", obstacle.lack()), obstacle.fix()));
    let in_memory = (!locked).then(|| {
        let lack = "an unlimited RLIMIT_MEMLOCK (memory that is never swapped out)";
        (lack.to_owned(), "`ulimit -l unlimited`, or the systemd unit")
    });
    let (lacks, fixes): (Vec<String>, Vec<&str>) =
        [in_time, in_memory].into_iter().flatten().unzip();
    if lacks.is_empty() {
        return Finding::ok(ID, "CAP_NET_ADMIN, threads in real time, and memory may be locked");
    }
    let what = format!("without {}", lacks.join(" and "));
    let why = "on a busy machine packets leave later than they should";
    Finding::new(Level::Note, ID, what, why, fixes.join("; "))
}

fn processor() -> Finding {
    const ID: &str = "processor";
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cores = if cores == 1 { String::from("1 core") } else { format!("{cores} cores") };
    let times = || read("/proc/stat").and_then(|text| idle_and_all(&text));
    let before = times();
    thread::sleep(WATCHED);
    let share = before.zip(times()).and_then(|(before, after)| {
        let all = after.1.checked_sub(before.1).filter(|all| *all > 0)?;
        Some(100 * after.0.saturating_sub(before.0) / all)
    });
    let Some(idle) = share else {
        return Finding::unknown(ID, format!("how busy {cores} are"), "/proc/stat does not say");
    };
    let what = format!("{cores}, {idle} % idle now");
    match idle {
        0..20 => {
            let why =
                "in userspace a packet costs some 3 µs of one core; late packets are gaps in \
                       the line";
            let fix = "see `top`; --backend kernel costs less";
            Finding::new(Level::Warning, ID, what, why, fix)
        }
        _ => Finding::ok(ID, what),
    }
}

/// Time of all processors that was idle, and all of it (proc_stat(5)).
fn idle_and_all(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests' are in the first two.
    let times: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let idle = times.get(3)?.saturating_add(*times.get(4)?);
    Some((idle, times.iter().fold(0, |sum, time| sum.saturating_add(*time))))
}

fn clock() -> Finding {
    let place = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let resolution = clock_getres(ClockId::Monotonic);
    judge_clock(read(place).as_deref(), resolution.tv_sec == 0 && resolution.tv_nsec < 1000)
}

fn judge_clock(source: Option<&str>, is_fine: bool) -> Finding {
    const ID: &str = "clock";
    if !is_fine {
        let why =
            "the kernel has no high-resolution timers: packets leave in lumps of milliseconds";
        let fix = "build it with CONFIG_HIGH_RES_TIMERS";
        return Finding::new(Level::Warning, ID, "a coarse clock", why, fix);
    }
    match source {
        None => Finding::unknown(ID, "which clock source it is", "sysfs does not say"),
        Some(slow @ ("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit")) => Finding::new(
            Level::Warning,
            ID,
            format!("the clock source is `{slow}`"),
            "each look at the clock takes a microsecond and more, and there are several a packet",
            "see `dmesg | grep -i tsc` for why the processor's own counter is not used",
        ),
        Some(source) => Finding::ok(ID, format!("clock source {source}, high-resolution timers")),
    }
}

/// This machine's treatment of packets that come in through `interface`.
pub(super) fn of_interface(interface: &str) -> Vec<Finding> {
    let setting = |path: String| read(format!("/proc/sys/net/{path}"));
    // A dot in a name is a dot in /proc/sys, too.
    let own = |family: &str, name: &str| setting(format!("{family}/conf/{interface}/{name}"));
    let six = own("ipv6", "disable_ipv6").is_some_and(|off| off == "0");
    let forwards = [own("ipv4", "forwarding"), own("ipv6", "forwarding").filter(|_| six)];
    let path = [setting("ipv4/conf/all/rp_filter".into()), own("ipv4", "rp_filter")];
    vec![forwarding(forwards), reverse_path(path)]
}

fn forwarding([four, six]: [Option<String>; 2]) -> Finding {
    const ID: &str = "forwarding";
    let on = |value: &Option<String>| value.as_deref().is_some_and(|value| value != "0");
    let families = match (on(&four), on(&six)) {
        (true, true) => "IPv4 and IPv6",
        (true, false) => "IPv4",
        (false, true) => "IPv6",
        (false, false) if four.is_none() => {
            return Finding::unknown(ID, "whether it forwards", "/proc/sys/net does not say");
        }
        (false, false) => {
            let why = "only this machine's own packets are shaped, not those of a home behind it";
            let fix = "on a router: `sysctl net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1`";
            return Finding::new(Level::Note, ID, "it forwards nothing", why, fix);
        }
    };
    Finding::ok(ID, format!("it forwards {families}"))
}

/// RFC 3704; the stricter of both settings counts.
fn reverse_path(settings: [Option<String>; 2]) -> Finding {
    const ID: &str = "reverse-path";
    let known = settings.iter().flatten().filter_map(|value| value.parse::<u32>().ok());
    match known.max() {
        None => Finding::unknown(ID, "rp_filter", "/proc/sys/net does not say"),
        Some(1) => Finding::new(
            Level::Note,
            ID,
            "rp_filter is strict",
            "with two lines, packets that come in by the one that is not preferred are dropped",
            "with two lines: `sysctl net.ipv4.conf.all.rp_filter=2`",
        ),
        Some(_) => Finding::ok(ID, "rp_filter is not strict"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_as_the_kernel_writes_it() {
        let stat = "cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(idle_and_all(stat), Some((450, 531)));
        assert_eq!(idle_and_all("cpu  1 2 x"), None);
        assert_eq!(idle_and_all(""), None);
        let huge = format!("cpu  {0} {0} {0} {0} {0}", u64::MAX);
        assert_eq!(idle_and_all(&huge), Some((u64::MAX, u64::MAX)));
    }

    #[test]
    fn slow_clocks_are_told() {
        assert_eq!(judge_clock(Some("tsc"), true).level, Level::Ok);
        assert_eq!(judge_clock(Some("hpet"), true).level, Level::Warning);
        assert_eq!(judge_clock(Some("tsc"), false).level, Level::Warning);
        assert!(judge_clock(None, true).what.starts_with("cannot tell"));
    }

    #[test]
    fn rights_that_lack_are_named() {
        let admin = CapabilitySet::NET_ADMIN;
        assert_eq!(rights(Some(admin), None, None).level, Level::Ok);
        let root = admin | CapabilitySet::SYS_RESOURCE;
        assert_eq!(rights(Some(root), None, Some(8 << 20)).level, Level::Ok);
        let some = rights(Some(admin), None, Some(8 << 20));
        assert!(some.what.contains("MEMLOCK") && !some.what.contains("NICE"), "{some:?}");
        let some = rights(Some(admin), Some(Obstacle::Right), None);
        assert!(some.what.contains("NICE") && !some.what.contains("MEMLOCK"), "{some:?}");
        let both = rights(Some(admin), Some(Obstacle::Share), Some(8 << 20));
        assert!(both.what.contains("control group") && both.what.contains("MEMLOCK"), "{both:?}");
        assert!(both.fix.contains("--cpu-rt-runtime") && both.fix.contains("unit"), "{both:?}");
        assert!(rights(Some(CapabilitySet::empty()), None, None).why.contains("not seen"));
    }

    #[test]
    fn forwarding_and_reverse_paths_are_read() {
        let some = |value: &str| Some(value.to_owned());
        assert!(forwarding([some("1"), some("0")]).what.contains("IPv4"));
        assert_eq!(forwarding([some("0"), None]).level, Level::Note);
        assert!(forwarding([None, None]).what.starts_with("cannot tell"));
        assert_eq!(reverse_path([some("0"), some("1")]).level, Level::Note);
        assert_eq!(reverse_path([some("2"), some("1")]).level, Level::Ok);
        assert!(reverse_path([None, some("x")]).what.starts_with("cannot tell"));
    }
}

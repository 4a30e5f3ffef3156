//! Inside user-mode Linux: builds the network, sets Linux's disciplines up, carries the plan out.
//!
//! The gateway's two ports carry the disciplines, as `tc` sets them up: upload towards the line,
//! download towards home. The line is a bridge whose ports delay by netem, by host where some are
//! further. There is no module
//! loader in a guest: what is needed is loaded here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{setrlimit, Resource, Rlimit};
use simnel_core::qdisc;
use simnel_sim::Direction::{self, Down, Up};

use super::generator::{self, Means, Sides};
use super::network::Network;
use super::plan::Plan;
use crate::files::put;
use simnel_testbed::{Namespace, TestbedError};

/// Orders, in the directory that host and guest share.
pub const PLAN: &str = "plan.json";
/// There as soon as the idle line is measured.
pub const STARTED: &str = "started";
/// Results.
pub const HEARD: &str = "heard.json";
/// Instead of results: what went wrong.
pub const REFUSED: &str = "refused";

/// Word for a kernel whose clock stands still while something is done.
pub const VIRTUAL_TIME: &str = "time-travel=inf-cpu";
/// Directory in which Debian keeps the kernel's modules.
const MODULES: &str = "/usr/lib/uml/modules";
/// Modules of every run; those of disciplines and congestion controls come from the plan.
const ALWAYS: [&str; 4] = ["veth", "bridge", "sch_netem", "sch_htb"];
/// A setting of the whole guest: all connections together may have, in pages, as much as where
/// there are 16 GB. Short of that, Linux drops what came out of order.
const SETTING: (&str, &str) = ("/proc/sys/net/ipv4/tcp_mem", "196608 262144 393216");
/// Sockets that a run may have.
const SOCKETS: u64 = 1 << 18;
/// Commands for `tc`, all at once: each start of a program takes long in a guest.
const BATCH: &str = "/run/tc";
/// Bucket of a host's interface: as a wire, one packet after the other.
const ACCESS_BURST: &str = "burst 1600b cburst 1600b";
/// Packets that netem may hold: its default drops.
const UNDER_WAY: &str = "100000";

/// Carries out the orders in `directory` and leaves the results there.
pub fn run(directory: &Path, means: Means) -> io::Result<()> {
    let (name, text) = match heard(directory, means) {
        Ok(text) => (HEARD, text),
        Err(reason) => (REFUSED, reason),
    };
    // Complete when it has its name.
    put(&directory.join(name), text.as_bytes())
}

fn heard(directory: &Path, means: Means) -> Result<String, String> {
    let text = fs::read_to_string(directory.join(PLAN)).map_err(|error| error.to_string())?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    load_modules(&plan).map_err(|error| format!("modules of the kernel: {error}"))?;
    let network = build(&plan).map_err(|error| error.to_string())?;
    let Network { home, internet, gateway, .. } = &network;
    let kernel = fs::read_to_string("/proc/cmdline").map_err(|error| error.to_string())?;
    let work_takes_time = !kernel.contains(VIRTUAL_TIME);
    let sides = Sides { home, internet, gateway, means, work_takes_time };
    let sockets = Rlimit { current: Some(SOCKETS), maximum: Some(SOCKETS) };
    setrlimit(Resource::Nofile, sockets).map_err(|error| format!("limit of sockets: {error}"))?;
    let (name, value) = SETTING;
    fs::write(name, value).map_err(|error| format!("{name}: {error}"))?;
    fs::write(directory.join(STARTED), "").map_err(|error| error.to_string())?;
    let heard = generator::run(&plan, sides, &mut |_| true).map_err(|error| error.to_string())?;
    serde_json::to_string(&heard).map_err(|error| error.to_string())
}

fn build(plan: &Plan) -> Result<Network, TestbedError> {
    let network = Network::new("simnel-linux-", plan)?;
    let line = &network.line;
    bridge(line, "join", [Network::NEAR, Network::FAR])?;
    let distances = plan.by_distance();
    let wire = |way: Direction| {
        let rate = plan.wire[way as usize];
        rate.map(|rate| format!(" rate {rate}bit {}", plan.overhead[way as usize]))
    };
    let up = wire(Up).unwrap_or_default();
    run_tc(line, &delays(Network::NEAR, End::Source, &distances, ""))?;
    run_tc(line, &delays(Network::FAR, End::Destination, &distances, &up))?;
    if let Some(down) = wire(Down) {
        bridge(line, "last", [Network::HOUSE, Network::STREET])?;
        let port = Network::HOUSE;
        run_tc(line, &[format!("qdisc add dev {port} root netem limit {UNDER_WAY}{down}")])?;
    }
    let [up, down] = &plan.qdisc;
    for (port, words, overhead, sources) in [
        (Network::WAN, up, plan.overhead[0], &plan.home),
        (Network::LAN, down, plan.overhead[1], &plan.internet),
    ] {
        run_tc(&network.gateway, &commands(port, words, overhead, sources))?;
    }
    if let Some(rate) = plan.access {
        run_tc(&network.home, &access(rate, &plan.home))?;
    }
    Ok(network)
}

/// Makes one wire of two of a namespace's interfaces.
fn bridge(line: &Namespace, name: &str, ports: [&str; 2]) -> Result<(), TestbedError> {
    line.ip(&["link", "add", name, "type", "bridge"])?;
    line.ip(&["link", "set", name, "up"])?;
    ports.into_iter().try_for_each(|port| line.ip(&["link", "set", port, "master", name]))
}

fn run_tc(namespace: &Namespace, commands: &[String]) -> Result<(), TestbedError> {
    let failed = |source| TestbedError::Traffic { what: format!("cannot write {BATCH}"), source };
    put(Path::new(BATCH), commands.join("\n").as_bytes()).map_err(failed)?;
    namespace.run("tc", &["-batch", BATCH])
}

/// `tc`'s commands for a discipline in our words, where a shaper and what stands below it are one.
/// The line adds `overhead` bytes to each frame. `sources` are the addresses of what passes.
fn commands(port: &str, words: &str, overhead: i32, sources: &[Ipv4Addr]) -> Vec<String> {
    let words = linux_words(words);
    let is_discipline = |word: &&str| qdisc::disciplines().iter().any(|known| known.name == *word);
    let below = words.iter().skip(1).position(is_discipline).map(|at| at + 1);
    let (shaper, leaf) = words.split_at(below.unwrap_or(words.len()));
    let for_each_host = leaf.starts_with(&["drr", "srchost"]);
    let leaf = match for_each_host {
        true => robbing(leaf, overhead),
        false => leaf.join(" "),
    };
    let stab = match overhead {
        0 => String::new(),
        bytes => format!("stab overhead {bytes} "),
    };
    let root = format!("qdisc add dev {port} root handle 1: {stab}");
    let mut commands = match words.first() {
        Some(&"htb") => vec![
            format!("{root}htb default 1"),
            format!("class add dev {port} parent 1: classid 1:1 {}", shaper.join(" ")),
        ],
        _ => vec![format!("{root}{}", shaper.join(" "))],
    };
    let parent = if words.first() == Some(&"htb") { "1:1" } else { "1:" };
    if !leaf.is_empty() {
        commands.push(format!("qdisc add dev {port} parent {parent} handle 10: {leaf}"));
    }
    if for_each_host {
        commands.extend(by_source(port, "10:", sources));
        // What is of no host, such as ARP, would be dropped.
        let others = "protocol all prio 2 u32 match u32 0 0";
        commands.push(format!("filter add dev {port} parent 10: {others} flowid 10:3ff"));
    }
    commands
}

/// Linux's discipline that does what `words` of our `drr` with a queue for each host say. It has
/// one buffer, from which the longest queue loses its oldest packet. Its queues are chosen by
/// filters. What its parent counts as a frame's length it counts, too.
fn robbing(words: &[&str], overhead: i32) -> String {
    let number = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.parse::<i32>().ok()
    };
    let (quantum, buffer) = (number("quantum").unwrap_or(1514), number("buffer").unwrap_or(1000));
    format!("sfq headdrop divisor 1024 limit {buffer} quantum {}", quantum + overhead)
}

/// Filters of `parent` that give each source a class, or a queue, of its own.
fn by_source<'a>(
    port: &'a str,
    parent: &'a str,
    sources: &'a [Ipv4Addr],
) -> impl Iterator<Item = String> + 'a {
    let classes = (1..).zip(sources);
    classes.map(move |(class, address)| filter(port, parent, End::Source, *address, class))
}

/// Address of a packet that a filter looks at.
#[derive(Clone, Copy, Debug)]
enum End {
    Source,
    Destination,
}

/// A filter of `parent` that puts what has `address` at one `end` into a class.
fn filter(port: &str, parent: &str, end: End, address: Ipv4Addr, class: usize) -> String {
    let end = match end {
        End::Source => "src",
        End::Destination => "dst",
    };
    format!(
        "filter add dev {port} parent {parent} protocol ip prio 1 \
         u32 match ip {end} {address}/32 flowid {parent}{class:x}"
    )
}

/// The delay of a line's port, by the address that a packet has at one `end`. Bands of prio have
/// one each: the first, in which ARP is, too, the shortest. With the words for a `wire` each packet
/// takes its time on it as well. No two packets meet there, since the gateway lets them out one
/// after the other.
fn delays(
    port: &str,
    end: End,
    distances: &BTreeMap<Duration, Vec<Ipv4Addr>>,
    wire: &str,
) -> Vec<String> {
    let netem = |delay: &Duration| {
        let delay = delay.as_micros();
        format!("netem delay {delay}us limit {UNDER_WAY}{wire}")
    };
    let mut distances = distances.iter();
    if distances.len() < 2 {
        let delay = distances.next().map_or(Duration::ZERO, |(delay, _)| *delay);
        return vec![format!("qdisc add dev {port} root {}", netem(&delay))];
    }
    let (bands, priomap) = (distances.len(), ["0"; 16].join(" "));
    let root = format!("qdisc add dev {port} root handle 1: prio bands {bands} priomap {priomap}");
    let mut commands = vec![root];
    for (class, (delay, hosts)) in (1..).zip(distances) {
        commands.push(format!("qdisc add dev {port} parent 1:{class:x} {}", netem(delay)));
        commands.extend(hosts.iter().map(|host| filter(port, "1:", end, *host, class)));
    }
    commands
}

/// Interfaces of the `hosts` at home, each with a rate: classes of the one that stands for all.
fn access(rate: u64, hosts: &[Ipv4Addr]) -> Vec<String> {
    let port = Network::HOST;
    let mut commands = vec![format!("qdisc add dev {port} root handle 1: htb")];
    commands.extend((1..=hosts.len()).map(|n| {
        format!("class add dev {port} parent 1: classid 1:{n:x} htb rate {rate}bit {ACCESS_BURST}")
    }));
    commands.extend(by_source(port, "1:", hosts));
    commands
}

/// `words` without `host-load WHICH`: what divides a host's share is a choice of ours, Linux has
/// one way. Any other word that Linux does not know stays, and is refused by `tc`.
fn linux_words(words: &str) -> Vec<&str> {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == "host-load") {
        words.drain(at..words.len().min(at + 2));
    }
    words
}

/// Loads the modules that `plan` needs, with what they need.
fn load_modules(plan: &Plan) -> io::Result<()> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let directory = Path::new(MODULES).join(release.trim());
    if !directory.exists() {
        // A kernel of ours has everything built in.
        return Ok(());
    }
    let text = fs::read_to_string(directory.join("modules.dep"))?;
    let index = Index::parse(&text);
    let mut names: Vec<String> = ALWAYS.map(String::from).into();
    for word in plan.qdisc.iter().flat_map(|words| words.split_whitespace()) {
        names.push(format!("sch_{word}"));
    }
    let controls = plan.flows.iter().filter_map(|flow| flow.work.congestion());
    names.extend(controls.map(|congestion| format!("tcp_{congestion}")));
    for file in names.iter().flat_map(|name| index.files(name)) {
        let module = File::open(directory.join(file))?;
        match rustix::system::finit_module(module, c"", 0) {
            // It is there already.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io::Error::other(format!("{file}: {error}"))),
        }
    }
    Ok(())
}

/// Files to load for each module, with those that it needs, from `modules.dep`.
struct Index<'a>(BTreeMap<&'a str, Vec<&'a str>>);

impl<'a> Index<'a> {
    fn parse(text: &'a str) -> Index<'a> {
        let line = |line: &'a str| {
            let (file, needs) = line.split_once(':')?;
            let name = file.rsplit('/').next()?.strip_suffix(".ko")?;
            // What a module needs stands after it, the deepest last.
            let files = needs.split_whitespace().rev().chain([file]);
            Some((name, files.collect()))
        };
        Index(text.lines().filter_map(line).collect())
    }

    /// Files to load for `name`, in order; none if it is part of the kernel, or no module.
    fn files(&self, name: &str) -> &[&'a str] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_commands() {
        let plain = |port, words| commands(port, words, 0, &[]);
        assert_eq!(
            plain("wan", "htb rate 3mbit burst 15k fq_codel limit 100"),
            [
                "qdisc add dev wan root handle 1: htb default 1",
                "class add dev wan parent 1: classid 1:1 htb rate 3mbit burst 15k",
                "qdisc add dev wan parent 1:1 handle 10: fq_codel limit 100",
            ]
        );
        assert_eq!(
            plain("wan", "tbf rate 3mbit burst 15k limit 1mb sfq"),
            [
                "qdisc add dev wan root handle 1: tbf rate 3mbit burst 15k limit 1mb",
                "qdisc add dev wan parent 1: handle 10: sfq",
            ]
        );
        let cake = "qdisc add dev lan root handle 1: cake bandwidth 3mbit flows";
        assert_eq!(plain("lan", "cake bandwidth 3mbit flows"), [cake]);
        assert_eq!(plain("lan", "cake bandwidth 3mbit host-load active flows"), [cake]);
    }

    #[test]
    fn a_queue_for_each_host_is_sfq_behind_filters() {
        let hosts = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];
        let words = "htb rate 3mbit drr srchost queues 1024 quantum 1514 buffer 50";
        let filter = |what: &str| format!("filter add dev wan parent 10: protocol {what}");
        assert_eq!(
            commands("wan", words, -14, &hosts),
            [
                "qdisc add dev wan root handle 1: stab overhead -14 htb default 1".into(),
                "class add dev wan parent 1: classid 1:1 htb rate 3mbit".into(),
                "qdisc add dev wan parent 1:1 handle 10: \
                 sfq headdrop divisor 1024 limit 50 quantum 1500"
                    .into(),
                filter("ip prio 1 u32 match ip src 10.1.0.1/32 flowid 10:1"),
                filter("ip prio 1 u32 match ip src 10.1.0.2/32 flowid 10:2"),
                filter("all prio 2 u32 match u32 0 0 flowid 10:3ff"),
            ]
        );
    }

    #[test]
    fn hosts_that_are_further_have_a_delay_of_their_own() {
        let [near, far] = [1, 2].map(|n| Ipv4Addr::new(10, 2, 0, n));
        let ms = Duration::from_millis;
        let one = BTreeMap::from([(ms(20), vec![near, far])]);
        let all = "qdisc add dev far root netem delay 20000us limit 100000";
        assert_eq!(delays("far", End::Destination, &one, ""), [all]);
        let wire = delays("far", End::Destination, &one, " rate 1000000bit -14");
        assert_eq!(wire, [format!("{all} rate 1000000bit -14")]);
        let two = BTreeMap::from([(ms(20), vec![near]), (ms(120), vec![far])]);
        let filter = "filter add dev near parent 1: protocol ip prio 1 u32 match ip src";
        assert_eq!(
            delays("near", End::Source, &two, ""),
            [
                "qdisc add dev near root handle 1: prio bands 2 \
                 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
                    .into(),
                "qdisc add dev near parent 1:1 netem delay 20000us limit 100000".into(),
                format!("{filter} 10.2.0.1/32 flowid 1:1"),
                "qdisc add dev near parent 1:2 netem delay 120000us limit 100000".into(),
                format!("{filter} 10.2.0.2/32 flowid 1:2"),
            ]
        );
    }

    #[test]
    fn modules_are_loaded_after_what_they_need() {
        let index = Index::parse(
            "kernel/net/bridge/bridge.ko: kernel/net/802/stp.ko kernel/net/llc/llc.ko\n\
             kernel/net/sched/sch_cake.ko:\n",
        );
        let files = ["kernel/net/llc/llc.ko", "kernel/net/802/stp.ko"];
        assert_eq!(index.files("bridge")[..2], files);
        assert_eq!(index.files("sch_cake"), ["kernel/net/sched/sch_cake.ko"]);
        assert!(index.files("sch_pfifo").is_empty());
    }
}

//! Inside user-mode Linux: builds the network, sets Linux's disciplines up, carries the plan out.
//!
//! The gateway's two ports carry the disciplines, as `tc` sets them up: upload towards the line,
//! download towards home. The line is a bridge whose ports delay by netem. There is no module
//! loader in a guest: what is needed is loaded here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::io::Errno;
use simnel_core::qdisc;

use super::generator::{self, PaceSender, Sides};
use super::network::Network;
use super::plan::{Plan, Work};
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

/// Where Debian keeps the kernel's modules.
const MODULES: &str = "/usr/lib/uml/modules";
/// Modules of every run; those of disciplines and congestion controls come from the plan.
const ALWAYS: [&str; 4] = ["veth", "bridge", "sch_netem", "sch_htb"];
/// Packets that netem may hold: its default drops.
const UNDER_WAY: &str = "100000";

/// Carries out the orders in `directory` and leaves the results there.
pub fn run(directory: &Path, pace: PaceSender) -> io::Result<()> {
    let (name, text) = match heard(directory, pace) {
        Ok(text) => (HEARD, text),
        Err(reason) => (REFUSED, reason),
    };
    // Complete when it has its name.
    put(&directory.join(name), text.as_bytes())
}

fn heard(directory: &Path, pace: PaceSender) -> Result<String, String> {
    let text = fs::read_to_string(directory.join(PLAN)).map_err(|error| error.to_string())?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    load_modules(&plan).map_err(|error| format!("modules of the kernel: {error}"))?;
    let network = build(&plan).map_err(|error| error.to_string())?;
    let sides = Sides { home: &network.home, internet: &network.internet, pace };
    fs::write(directory.join(STARTED), "").map_err(|error| error.to_string())?;
    let heard = generator::run(&plan, sides, &mut |_| true).map_err(|error| error.to_string())?;
    serde_json::to_string(&heard).map_err(|error| error.to_string())
}

fn build(plan: &Plan) -> Result<Network, TestbedError> {
    let network = Network::new("simnel-linux-", plan)?;
    let line = &network.line;
    line.ip(&["link", "add", "join", "type", "bridge"])?;
    line.ip(&["link", "set", "join", "up"])?;
    let delay = format!("{}us", plan.one_way().as_micros());
    for port in [Network::NEAR, Network::FAR] {
        line.ip(&["link", "set", port, "master", "join"])?;
        let netem = ["netem", "delay", &delay, "limit", UNDER_WAY];
        let root = ["qdisc", "add", "dev", port, "root"];
        line.run("tc", &[&root[..], &netem].concat())?;
    }
    let [up, down] = &plan.qdisc;
    for (port, words) in [(Network::WAN, up), (Network::LAN, down)] {
        for command in commands(port, words) {
            let words: Vec<&str> = command.split(' ').collect();
            run_tc(&network.gateway, &words)?;
        }
    }
    Ok(network)
}

fn run_tc(namespace: &Namespace, words: &[&str]) -> Result<(), TestbedError> {
    namespace.run("tc", words)
}

/// `tc`'s commands for a discipline in our words, where a shaper and what stands below it are one.
fn commands(port: &str, words: &str) -> Vec<String> {
    let words = linux_words(words);
    let is_discipline = |word: &&str| qdisc::disciplines().iter().any(|known| known.name == *word);
    let below = words.iter().skip(1).position(is_discipline).map(|at| at + 1);
    match (words.first(), below) {
        (Some(&"htb"), below) => {
            let (class, leaf) = words.split_at(below.unwrap_or(words.len()));
            let mut commands = vec![
                format!("qdisc add dev {port} root handle 1: htb default 1"),
                format!("class add dev {port} parent 1: classid 1:1 {}", class.join(" ")),
            ];
            if !leaf.is_empty() {
                let leaf = leaf.join(" ");
                commands.push(format!("qdisc add dev {port} parent 1:1 handle 10: {leaf}"));
            }
            commands
        }
        (Some(&shaper), Some(below)) => {
            let (own, leaf) = words.split_at(below);
            let (own, leaf) = (own.join(" "), leaf.join(" "));
            debug_assert!(own.starts_with(shaper));
            vec![
                format!("qdisc add dev {port} root handle 1: {own}"),
                format!("qdisc add dev {port} parent 1: handle 10: {leaf}"),
            ]
        }
        _ => vec![format!("qdisc add dev {port} root handle 1: {}", words.join(" "))],
    }
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
    for flow in &plan.flows {
        if let Work::Bulk { congestion, .. } = &flow.work {
            names.push(format!("tcp_{congestion}"));
        }
    }
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

/// Which modules there are, and what they need: `modules.dep`.
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
        assert_eq!(
            commands("wan", "htb rate 3mbit burst 15k fq_codel limit 100"),
            [
                "qdisc add dev wan root handle 1: htb default 1",
                "class add dev wan parent 1: classid 1:1 htb rate 3mbit burst 15k",
                "qdisc add dev wan parent 1:1 handle 10: fq_codel limit 100",
            ]
        );
        assert_eq!(
            commands("wan", "tbf rate 3mbit burst 15k limit 1mb sfq"),
            [
                "qdisc add dev wan root handle 1: tbf rate 3mbit burst 15k limit 1mb",
                "qdisc add dev wan parent 1: handle 10: sfq",
            ]
        );
        let cake = "qdisc add dev lan root handle 1: cake bandwidth 3mbit flows";
        assert_eq!(commands("lan", "cake bandwidth 3mbit flows"), [cake]);
        assert_eq!(commands("lan", "cake bandwidth 3mbit host-load active flows"), [cake]);
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

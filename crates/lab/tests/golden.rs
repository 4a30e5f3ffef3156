//! Our disciplines against recordings of Linux's, packet by packet.
//!
//! Runs the recordings in `conformance/golden`; where the complete set lies in `../shared/golden`
//! next to the repository, that as well. Differences must be in `conformance/ledger.toml`, and
//! every entry there must cover one.

use std::path::{Path, PathBuf};

use simnel_core::qdisc::Device;
use simnel_lab::golden::{run_directory, Ledger, Outcome, Recording, Subject};

/// Recordings (`group/name`) of disciplines that [`build`] can make; others are listed as not
/// compared.
const COMPARED: &[&str] = &["cake-*/*"];

/// Makes the discipline that the recording's `tc` words describe.
fn build(words: &[String], device: &Device) -> Result<Box<dyn Subject>, String> {
    use simnel_core::framing::*;
    use simnel_core::qdisc::cake::*;
    let mut p = Params::default();
    let mut it = words.iter().skip(1).map(|s| s.as_str()).peekable();
    fn rate(s: &str) -> u64 {
        let i = s.find(|c: char| c.is_alphabetic()).unwrap();
        let n: f64 = s[..i].parse().unwrap();
        (n * match &s[i..] {
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => panic!(),
        }) as u64
    }
    while let Some(w) = it.next() {
        match w {
            "bandwidth" => p.bandwidth = simnel_core::Rate::from_bits(rate(it.next().unwrap())),
            "unlimited" => {}
            "besteffort" => p.diffserv = DiffservMode::Besteffort,
            "diffserv3" => p.diffserv = DiffservMode::Diffserv3,
            "diffserv4" => p.diffserv = DiffservMode::Diffserv4,
            "diffserv8" => p.diffserv = DiffservMode::Diffserv8,
            "precedence" => p.diffserv = DiffservMode::Precedence,
            "flowblind" => p.flow_mode = FlowMode::Flowblind,
            "flows" => p.flow_mode = FlowMode::Flows,
            "srchost" => p.flow_mode = FlowMode::Srchost,
            "dsthost" => p.flow_mode = FlowMode::Dsthost,
            "hosts" => p.flow_mode = FlowMode::Hosts,
            "dual-srchost" => p.flow_mode = FlowMode::DualSrchost,
            "dual-dsthost" => p.flow_mode = FlowMode::DualDsthost,
            "triple-isolate" => p.flow_mode = FlowMode::TripleIsolate,
            "ack-filter" => p.ack_filter = AckFilter::Conservative,
            "ack-filter-aggressive" => p.ack_filter = AckFilter::Aggressive,
            "ingress" => p.ingress = true,
            "internet" => {}
            "lan" => p.set_rtt(simnel_core::Span::from_millis(1)),
            "metro" => p.set_rtt(simnel_core::Span::from_millis(10)),
            "regional" => p.set_rtt(simnel_core::Span::from_millis(30)),
            "satellite" => p.set_rtt(simnel_core::Span::from_millis(1000)),
            "rtt" => {
                it.next();
                p.set_rtt(simnel_core::Span::from_secs(1000));
            }
            "memlimit" => {
                let s = it.next().unwrap();
                let i = s.find(|c: char| c.is_alphabetic()).unwrap();
                let n: u32 = s[..i].parse().unwrap();
                p.memlimit = n * if &s[i..] == "kb" { 1024 } else { 1 << 20 };
            }
            "raw" => {}
            "bridged-llcsnap" => {
                p.framing = Framing { compensate: true, overhead: 32, mpu: 0, cells: Cells::Atm }
            }
            "conservative" => {
                p.framing = Framing { compensate: true, overhead: 48, mpu: 0, cells: Cells::Atm }
            }
            "pppoe-vcmux" => {
                p.framing = Framing { compensate: true, overhead: 32, mpu: 0, cells: Cells::Atm }
            }
            "pppoe-ptm" => {
                p.framing = Framing { compensate: true, overhead: 30, mpu: 0, cells: Cells::Ptm }
            }
            "ethernet" => {
                p.framing = Framing { compensate: true, overhead: 38, mpu: 84, cells: Cells::None }
            }
            "docsis" => {
                p.framing = Framing { compensate: true, overhead: 18, mpu: 64, cells: Cells::None }
            }
            "overhead" => {
                p.framing = Framing {
                    compensate: true,
                    overhead: it.next().unwrap().parse().unwrap(),
                    mpu: p.framing.mpu,
                    cells: Cells::None,
                }
            }
            "mpu" => p.framing.mpu = it.next().unwrap().parse().unwrap(),
            "noatm" => {}
            w => return Err(format!("no {w}")),
        }
    }
    Ok(Box::new(Placed(Cake::new(&p, device).unwrap())))
}
struct Placed(simnel_core::qdisc::cake::Cake);
impl Subject for Placed {
    fn qdisc(&mut self) -> &mut dyn simnel_core::Qdisc {
        &mut self.0
    }
    fn last_dequeued(&self) -> Option<simnel_lab::golden::Place> {
        use simnel_core::Qdisc;
        self.0.placement().map(|(t, f)| simnel_lab::golden::Place { tin: t as u32, flow: f })
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ledger() -> Ledger {
    Ledger::read(&root().join("conformance/ledger.toml")).unwrap_or_else(|error| panic!("{error}"))
}

/// The recordings of the repository, and the complete set if it is there.
fn sets() -> Vec<(&'static str, PathBuf)> {
    let mut sets = vec![("conformance/golden", root().join("conformance/golden"))];
    let complete = root().join("../shared/golden");
    if complete.is_dir() {
        sets.push(("../shared/golden", complete));
    } else {
        println!("NOT RUN: the complete set ../shared/golden (not there)");
    }
    sets
}

#[test]
fn every_recording_is_understood_completely() {
    for (name, directory) in sets() {
        let (mut recordings, mut packets, mut events) = (0, 0, 0);
        for path in simnel_lab::golden::list(&directory).unwrap() {
            let recording = Recording::read(&path).unwrap_or_else(|error| panic!("{error}"));
            let total = recording.finals.iter().find(|(kind, _)| kind == "total");
            let total = &total.unwrap_or_else(|| panic!("{}: no totals", path.display())).1;
            let counts = recording.counts();
            // The recording's own sums: packets in and out. (`gone` also counts what was returned.)
            assert_eq!(total["enq"], recording.arrivals.len().to_string(), "{}", path.display());
            assert_eq!(total["deq"], counts.sent.to_string(), "{}", path.display());
            recordings += 1;
            packets += recording.arrivals.len();
            events += recording.expected.len();
        }
        println!("{name}: {recordings} recordings, {packets} packets, {events} events read");
        assert!(recordings > 0);
    }
}

#[test]
fn every_discipline_decides_as_linux_does_or_the_ledger_says_why_not() {
    let ledger = ledger();
    for (name, directory) in sets() {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for pattern in COMPARED {
            let some = run_directory(&directory, pattern, &build, &ledger);
            outcomes.extend(some.unwrap_or_else(|error| panic!("{error}")));
        }
        let recordings = simnel_lab::golden::list(&directory).unwrap().len();
        if outcomes.len() < recordings {
            println!("NOT COMPARED: {} of {recordings} in {name}", recordings - outcomes.len());
        }
        let equal = outcomes.iter().filter(|outcome| outcome.equal()).count();
        let accepted = outcomes.iter().filter(|outcome| outcome.accepted()).count();
        println!(
            "{name}: {} recordings compared, {} packets; {equal} equal, {} in the ledger, {} not",
            outcomes.len(),
            outcomes.iter().map(|outcome| outcome.packets).sum::<usize>(),
            accepted - equal,
            outcomes.len() - accepted,
        );
        for outcome in outcomes.iter().filter(|outcome| !outcome.accepted()) {
            println!("{outcome}");
        }
        assert_eq!(accepted, outcomes.len(), "{name}: differences that the ledger does not list");

        // A selection need not show every deviation; what fits a pattern in it must.
        let complete = name.starts_with("..");
        let stale: Vec<_> = ledger
            .stale(&outcomes)
            .into_iter()
            .filter(|stale| complete || stale.recordings_exist)
            .collect();
        assert!(stale.is_empty(), "{name}: ledger entries that cover no difference: {stale:?}");
    }
}

//! The disciplines under test, as `tc` words with what each promises beyond the contract.
//!
//! Random settings come from the same source: any of a discipline's own keywords, with any value
//! that its argument's name allows. A new discipline and its words are therefore known here
//! already.

use std::sync::LazyLock;

use simnel_core::qdisc::{self, build, Config, Device, Managed};

use super::input::Input;

/// A discipline's promises beyond the contract of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// While packets wait, one can be sent: nothing is shaped or delayed.
    WorkConserving,
    /// No window of time sees more bits a second on the line, plus one packet.
    Rate(u64),
    /// Backlogged flows of hosts of their own send equally many bytes.
    EqualFlows,
    /// Backlogged sources send equally many bytes, however many flows each has.
    EqualSources,
    /// The same of destinations.
    EqualDestinations,
    /// Under standing congestion of packets that can be marked, some are marked.
    Marks,
    /// A packet of a flow that is idle otherwise waits for two full packets at most.
    SparseFirst,
    /// A backlogged flow waits no longer than a few full packets of each other flow.
    NoStarvation,
}

use Promise::*;

/// Ten megabits.
const TEN: Promise = Rate(10_000_000);

/// One discipline with its settings, and its promises.
pub type Line = (&'static str, &'static [Promise]);

/// The disciplines under test: the lines below, and each discipline that has none there. Such a one
/// has the words under which it takes part in the lab's figures, and its name alone if that parses.
pub static DISCIPLINES: LazyLock<Vec<Line>> = LazyLock::new(|| {
    let named = |words: &str, name| words.split(' ').next() == Some(name);
    let mut lines = LINES.to_vec();
    for known in qdisc::disciplines() {
        if LINES.iter().any(|(words, _)| named(words, known.name)) {
            continue;
        }
        let said = known.contenders.iter().map(|(_, words)| *words);
        let at_a_rate = |words: &str| &*words.replace("{rate}", "10mbit").leak();
        let mut own: Vec<&'static str> =
            said.filter(|words| named(words, known.name)).map(at_a_rate).collect();
        if qdisc::parse(known.name).is_ok() {
            own.push(known.name);
        }
        assert!(!own.is_empty(), "`{}` needs words: add a line for it to LINES", known.name);
        lines.extend(own.into_iter().map(|words| (words, &[][..])));
    }
    lines
});

/// Disciplines in settings of interest, with what these promise.
const LINES: &[Line] = &[
    ("cake", &[WorkConserving, EqualFlows, EqualSources, EqualDestinations, NoStarvation]),
    ("cake besteffort flows", &[WorkConserving, EqualFlows, NoStarvation, SparseFirst, Marks]),
    ("cake besteffort hosts ack-filter", &[WorkConserving, EqualFlows, NoStarvation]),
    ("cake srchost", &[WorkConserving, EqualSources, NoStarvation]),
    ("cake dsthost wash", &[WorkConserving, EqualDestinations, NoStarvation]),
    ("cake precedence flowblind", &[WorkConserving]),
    ("cake diffserv8 nat host-load active", &[WorkConserving, EqualSources, EqualDestinations]),
    (
        "cake bandwidth 10mbit",
        &[TEN, EqualFlows, EqualSources, EqualDestinations, NoStarvation, Marks],
    ),
    ("cake bandwidth 10mbit dual-srchost", &[TEN, EqualFlows, EqualSources, NoStarvation]),
    ("cake bandwidth 10mbit dual-dsthost", &[TEN, EqualFlows, EqualDestinations, NoStarvation]),
    (
        "cake bandwidth 10mbit host-load active triple-isolate",
        &[TEN, EqualFlows, EqualSources, EqualDestinations, NoStarvation],
    ),
    ("cake bandwidth 10mbit diffserv4 docsis ack-filter wash nat", &[TEN, EqualFlows]),
    ("cake bandwidth 10mbit diffserv8 pppoe-vcmux ack-filter-aggressive", &[TEN]),
    ("cake bandwidth 10mbit precedence pppoe-ptm no-split-gso rtt 10ms", &[TEN]),
    ("cake bandwidth 10mbit memlimit 100kb besteffort", &[TEN, EqualFlows]),
    ("cake bandwidth 10mbit memlimit 4kb diffserv4 ingress ack-filter", &[TEN]),
    ("cake memlimit 1b", &[WorkConserving]),
    ("cake bandwidth 10mbit diffserv3 raw overhead -20 mpu 64 atm", &[TEN, EqualFlows]),
    ("cake bandwidth 64kbit conservative queues 8", &[Rate(64_000)]),
    ("cake bandwidth 40gbit flows datacentre", &[Rate(40_000_000_000), EqualFlows]),
    // Shares of what arrives, not of what is sent: dropped packets are charged.
    ("cake bandwidth 10mbit besteffort ingress", &[TEN]),
    ("cake bandwidth 10mbit autorate-ingress ingress fwmark 0xf0", &[]),
    ("cake bandwidth 10mbit host-guard", &[TEN, NoStarvation]),
    ("cake bandwidth 10mbit host-guard src", &[TEN, EqualFlows, EqualSources, NoStarvation]),
    ("cake host-guard dual-dsthost", &[WorkConserving, EqualFlows, EqualDestinations]),
    ("cake bandwidth 10mbit host-guard dst queues 8 memlimit 20kb ingress ack-filter", &[TEN]),
    ("pfifo", &[WorkConserving]),
    ("pfifo limit 20", &[WorkConserving]),
    ("bfifo limit 20kb", &[WorkConserving]),
    ("pfifo_head_drop limit 20", &[WorkConserving]),
    ("codel", &[WorkConserving]),
    ("codel limit 20 target 1ms interval 10ms ce_threshold 500us ecn", &[WorkConserving, Marks]),
    ("drr", &[WorkConserving, EqualFlows, NoStarvation]),
    ("drr srchost savings 2kb", &[WorkConserving, EqualFlows, EqualSources, NoStarvation]),
    ("drr dsthost buffer 200", &[WorkConserving, EqualDestinations]),
    ("drr queues 8 quantum 100 buffer 5 max-age 20ms savings 15kb", &[WorkConserving]),
    ("drr quantum 500 class 1:1 class 1:2 weight 3 fq_codel limit 50", &[WorkConserving]),
    ("drr savings 3kb class 1:0a codel class 1:0b tbf rate 10mbit burst 5kb limit 20kb", &[]),
    ("fq_codel", &[WorkConserving, EqualFlows, NoStarvation, SparseFirst, Marks]),
    ("cake unlimited besteffort flows savings 2kb", &[WorkConserving, EqualFlows, NoStarvation]),
    ("cake bandwidth 10mbit dual-srchost savings 15kb", &[TEN, EqualFlows, EqualSources]),
    ("cake bandwidth 10mbit memlimit 20kb savings 5kb ingress ack-filter", &[TEN]),
    ("fq_codel savings 2kb", &[WorkConserving, EqualFlows, NoStarvation]),
    // While all spend what they saved, one that has spent it waits.
    ("fq_codel savings 15kb", &[WorkConserving, EqualFlows]),
    ("fq_codel limit 30 flows 16 quantum 300 drop_batch 4 ce_threshold 1ms", &[WorkConserving]),
    ("fq_codel memory_limit 20kb noecn savings 0", &[WorkConserving]),
    ("sfq", &[WorkConserving, NoStarvation]),
    ("sfq limit 1000 divisor 4096", &[WorkConserving, EqualFlows, NoStarvation]),
    ("sfq limit 40 depth 10 flows 16 divisor 64 headdrop perturb 1", &[WorkConserving]),
    ("sfq redflowlimit 30000 ecn headdrop quantum 300 perturb 2", &[WorkConserving, Marks]),
    ("sfq redflowlimit 30000 max 9000 ecn harddrop limit 2", &[WorkConserving]),
    ("fq_pie", &[WorkConserving, EqualFlows, NoStarvation, SparseFirst]),
    ("fq_pie savings 3000 ecn ecn_prob 30", &[WorkConserving, EqualFlows, Marks]),
    ("fq_pie limit 20 flows 8 quantum 200 dq_rate_estimator bytemode", &[WorkConserving]),
    ("fq_pie freebsd onoff memory_limit 10kb", &[WorkConserving]),
    ("delay 10ms 3ms limit 50", &[]),
    ("line rate 10mbit fifo 50p delay 20ms pppoe-vcmux", &[TEN]),
    ("line rate 1mbit fifo 20kb delay 5ms 2ms in-flight 10", &[]),
    ("pie", &[WorkConserving]),
    ("pie limit 30 target 1ms tupdate 2ms ecn bytemode", &[WorkConserving]),
    ("pie freebsd onoff nodrand", &[WorkConserving]),
    ("red limit 100kb avpkt 700 ecn", &[WorkConserving, Marks]),
    ("red limit 30kb min 3kb avpkt 700 probability 0.2 adaptive", &[WorkConserving]),
    ("blue limit 60 freeze 5ms", &[WorkConserving]),
    ("blue threshold 20 ecn increment 0.1 decrement 0.01", &[WorkConserving, Marks]),
    ("cobalt limit 60", &[WorkConserving]),
    ("cobalt target 1ms interval 20ms", &[WorkConserving, Marks]),
    ("dualpi2", &[WorkConserving, Marks]),
    ("dualpi2 limit 60 drop_enqueue any_ect step_thresh 5p overflow", &[WorkConserving]),
    ("dualpi2 memlimit 60kb max_rtt 20ms classic_protection 50", &[WorkConserving]),
    ("sfb", &[WorkConserving, Marks]),
    (
        "sfb limit 40 rehash 500 db 200 target 3 max 5 increment 0.05 penalty_rate 100",
        &[WorkConserving],
    ),
    ("tbf rate 10mbit burst 1514 limit 60kb", &[]),
    ("tbf rate 10mbit burst 20kb peakrate 20mbit mtu 2000 latency 50ms", &[]),
    ("tbf rate 10mbit burst 1514 overhead 20 mpu 84 linklayer atm codel limit 80", &[]),
    ("tbf rate 10mbit burst 1514 cake besteffort flows", &[EqualFlows, NoStarvation]),
    ("htb rate 10mbit burst 1514 cburst 1514 codel limit 100", &[]),
    ("htb rate 10mbit cake besteffort flows", &[EqualFlows, NoStarvation]),
    (
        "htb default 20 class 1:1 rate 10mbit class 1:10 parent 1:1 rate 2mbit ceil 10mbit prio 0 \
         pie class 1:20 parent 1:1 rate 8mbit ceil 9mbit tbf rate 8mbit burst 2kb limit 60kb",
        &[],
    ),
    ("red ns bandwidth 10mbit delay 30ms limit 60", &[WorkConserving]),
];

/// Makes the discipline that `words` describe. Panics on words that are no discipline's.
pub fn make(words: &str) -> Box<dyn Managed> {
    make_on(words, &Device::default())
}

/// Makes the discipline that `words` describe on `device`.
pub fn make_on(words: &str, device: &Device) -> Box<dyn Managed> {
    let config = qdisc::parse(words).unwrap_or_else(|error| panic!("`{words}`: {error}"));
    match build(&config, device) {
        Ok(qdisc) => qdisc,
        Err(error) => panic!("`{words}`: {error}"),
    }
}

/// Random settings: mostly of the discipline that `config` belongs to, sometimes of another. None
/// if the words that came up make no sense together.
pub fn random_config(input: &mut Input, config: &Config) -> Option<Config> {
    let choice = input.u8();
    if choice & 3 == 0 {
        let (words, _) = DISCIPLINES[usize::from(choice / 4) % DISCIPLINES.len()];
        return qdisc::parse(words).ok();
    }
    let name = config.name();
    let keywords: Vec<_> = qdisc::keywords(name).collect();
    let mut words = String::from(name);
    for _ in 0..input.u8() % 8 {
        let Some(keyword) = keywords.get(usize::from(input.u8()) % keywords.len().max(1)) else {
            break;
        };
        words.push(' ');
        words.push_str(keyword.word);
        let arguments = keyword.argument.split_whitespace();
        for argument in arguments.filter(|argument| !argument.starts_with('[')) {
            words.push(' ');
            words.push_str(&random_value(argument, input));
        }
    }
    qdisc::parse(&words).ok()
}

/// A value for an argument of this name: of any magnitude, but nothing that allocates gigabytes.
pub fn random_value(argument: &str, input: &mut Input) -> String {
    match argument {
        // Up to 400 Gbit/s; not so slow that a packet takes longer than the clock lasts.
        "RATE" => format!("{}bit", input.magnitude().clamp(512, 400_000_000_000)),
        "TIME" | "JITTER" => format!("{}us", input.magnitude() % 1_000_000_000),
        "SIZE" => format!("{}b", input.magnitude() % (1 << 24)),
        "MASK" => format!("{:#x}", input.u32()),
        "Np|SIZE" => format!("{}p", input.magnitude() % (1 << 12)),
        words if words.contains('|') && words.chars().any(char::is_lowercase) => {
            let choices: Vec<&str> = words.split('|').collect();
            choices[usize::from(input.u8()) % choices.len()].into()
        }
        // Most numbers are small, and some must be powers of two.
        _ => match input.u8() % 4 {
            0 => (1u32 << (input.u8() % 12)).to_string(),
            1 => (i32::from(input.u8()) - 64).to_string(),
            _ => (input.magnitude() % (1 << 12)).to_string(),
        },
    }
}

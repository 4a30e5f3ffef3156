//! `tc` commands of a port to a line: rate, shaper, loss, and the discipline that does the work.
//!
//! Forms that the recordings use: a discipline at the root; htb with one class and a discipline
//! under it, or a tree of them. Also tbf, likewise or with its own FIFO, and netem for loss, delay
//! and rate. htb becomes the line's token bucket, netem its loss and, with a rate, a wire behind a
//! FIFO. Everything else is handed to the core's own `tc` parser as it stands. So is tbf, since it
//! takes a packet from what is below before that packet may leave. A packet more, or less, then
//! waits under the eyes of an AQM.

use simnel_core::qdisc::{self, Config, Device};
use simnel_core::rate::Arithmetic;
use simnel_core::tc::units;
use simnel_core::tick::Tick;
use simnel_core::{Rate, Span};
use simnel_sim::setup::{LineSetup, Loss, Reordering, Shaper};

use super::tree::{skip_place, Tree, DEFAULT_LEAF};

/// Bytes that Linux's `tc` adds to the buckets of htb whose size is not given: one MTU.
const DEFAULT_BUCKET: u32 = 1600;
/// Jiffies a second of the kernels that were recorded (linux-reference/README).
const HZ: u32 = 1_000;
/// netem's packets if nothing is said.
const NETEM_LIMIT: u32 = 1000;
/// A port as its commands describe it.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub line: LineSetup,
    /// netem's delay, which comes behind everything else.
    pub delay: Span,
    /// Its classes, if it has several.
    pub tree: Option<Tree>,
}

/// The port that the commands among `lines` which name `device` describe.
pub(super) fn port(lines: &[String], device: &str) -> Result<Port, String> {
    let mut rate = None;
    let mut bucket = DEFAULT_BUCKET;
    let mut emulator = None;
    let (mut leaf, mut shaper): (Option<String>, Option<String>) = (None, None);
    let tree = Tree::read(lines, device)?;
    for (number, line) in lines.iter().enumerate() {
        if tree.as_ref().is_some_and(|tree| tree.has(number)) {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.windows(2).position(|pair| pair == ["dev", device]) else { continue };
        let is_class = words.contains(&"class");
        let rest = skip_place(&words[at + 2..]);
        let Some((kind, options)) = rest.split_first() else { continue };
        match *kind {
            "htb" if is_class => {
                let class = Bucket::read(options)?;
                rate = Some(class.rate);
                bucket = class.burst.min(class.ceiling);
            }
            "htb" => {}
            "tbf" => shaper = Some(rest.join(" ")),
            "netem" => emulator = Some(Emulator::read(options)?),
            _ => leaf = Some(rest.join(" ")),
        }
    }
    let leaf_of_tree = tree.as_ref().map(|tree| tree.words.clone());
    let mut leaf = leaf.or(leaf_of_tree);
    let mut shape = Shaper::Bucket(bucket);
    let emulator = emulator.unwrap_or_default();
    if let Some(serialized) = emulator.rate {
        // The packet that is being sent counts there, and not here.
        let waiting = emulator.limit.checked_sub(1).filter(|waiting| *waiting > 0);
        let waiting = waiting.ok_or("a netem of one packet is not simulated")?;
        (rate, shape) = (Some(serialized), Shaper::Wire);
        leaf = Some(format!("pfifo limit {waiting}"));
    }
    let words = match (shaper, leaf) {
        (Some(shaper), Some(leaf)) => format!("{shaper} {leaf}"),
        (Some(words), None) | (None, Some(words)) => words,
        (None, None) if rate.is_none() => "pfifo limit 100000".into(),
        (None, None) => DEFAULT_LEAF.into(),
    };
    let config: Config = qdisc::parse(&words).map_err(|error| format!("`{words}`: {error}"))?;
    let rate = rate.filter(|_| config.rate().is_none());
    let mut setup = LineSetup::wire(config, rate);
    setup.shaper = shape;
    setup.loss = emulator.loss;
    let mut delay = emulator.delay;
    if let Some(overtaking) = emulator.reordered {
        // Most may come late there: the way is that of those which do not.
        let late = std::mem::take(&mut delay);
        setup.reordering = Reordering { share: u32::MAX - overtaking, late };
    }
    // What is compared is Linux's discipline with ours as Linux computes it: its Newton steps for
    // roots, its rounding, its clock ticks.
    setup.device = Device {
        arithmetic: Arithmetic::LINUX,
        tick: Tick::Jiffies { hz: HZ, wheel: true },
        ..Device::default()
    };
    Ok(Port { line: setup, delay, tree })
}

/// A netem: its effects, and its room.
struct Emulator {
    loss: Loss,
    delay: Span,
    /// Packets that are not delayed, in units of 2^-32.
    reordered: Option<u32>,
    rate: Option<Rate>,
    limit: u32,
}

impl Default for Emulator {
    fn default() -> Emulator {
        Emulator {
            loss: Loss::None,
            delay: Span::ZERO,
            reordered: None,
            rate: None,
            limit: NETEM_LIMIT,
        }
    }
}

impl Emulator {
    /// Its words.
    fn read(options: &[&str]) -> Result<Emulator, String> {
        let mut netem = Emulator::default();
        let mut words = options.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().unwrap_or_default();
            match *word {
                "loss" => {
                    let first = value();
                    let word = if first == "random" { value() } else { first };
                    netem.loss = Loss::Random(share(word)?);
                }
                "delay" => {
                    let word = value();
                    netem.delay = units::time(word).map_err(|_| format!("`{word}` is no time"))?;
                }
                "reorder" => netem.reordered = Some(share(value())?),
                "rate" => netem.rate = Some(read_rate(value())?),
                "limit" => {
                    let word = value();
                    netem.limit = word.parse().map_err(|_| format!("`{word}` is no limit"))?;
                }
                other => return Err(format!("netem's `{other}` is not simulated")),
            }
        }
        if netem.delay == Span::ZERO && netem.reordered.is_some() {
            return Err("netem's `reorder` needs a delay".into());
        }
        if netem.delay > Span::ZERO && netem.limit < NETEM_LIMIT {
            return Err("a netem that delays within a small `limit` is not simulated".into());
        }
        Ok(netem)
    }
}

/// A class of htb.
struct Bucket {
    rate: Rate,
    /// Sizes of its two buckets: with a ceiling equal to the rate both fill equally fast, so that
    /// the smaller one counts.
    burst: u32,
    ceiling: u32,
}

impl Bucket {
    /// Its words.
    fn read(options: &[&str]) -> Result<Bucket, String> {
        let rate = read_rate(value(options, &["rate"]).ok_or("a shaper without a rate")?)?;
        let size = |keys: &[&str]| value(options, keys).map_or(Ok(DEFAULT_BUCKET), read_size);
        let burst = size(&["burst", "buffer", "maxburst"])?;
        Ok(Bucket { rate, burst, ceiling: size(&["cburst", "cbuffer"])? })
    }
}

/// The word behind one of `keys`.
fn value<'a>(options: &[&'a str], keys: &[&str]) -> Option<&'a str> {
    options.windows(2).find(|pair| keys.contains(&pair[0])).map(|pair| pair[1])
}

fn read_size(word: &str) -> Result<u32, String> {
    let number = word.split('/').next().unwrap_or(word);
    units::size(number).map_err(|_| format!("`{word}` is no size"))
}

fn read_rate(word: &str) -> Result<Rate, String> {
    units::rate(word).map_err(|_| format!("`{word}` is no rate"))
}

fn share(word: &str) -> Result<u32, String> {
    let share = word.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    match share.filter(|share| (0.0..=100.0).contains(share)) {
        Some(share) => Ok((share / 100.0 * 4_294_967_295.0).round() as u32),
        None => Err(format!("`{word}` is no share")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| (*line).to_string()).collect()
    }

    #[test]
    fn htb_is_a_bucket_before_its_leaf() {
        let lines = lines(&[
            "tc -n R qdisc add dev r1 root handle 1: htb default 1",
            "tc -n R class add dev r1 parent 1: classid 1:1 htb rate 10mbit burst 15k",
            "tc -n R qdisc add dev r1 parent 1:1 handle 10: pfifo limit 7",
            "tc -n R qdisc add dev r0 root netem loss 50% limit 100000",
        ]);
        let port = port(&lines, "r1").expect("a port");
        assert_eq!(port.line.rate, Some(Rate::from_bits(10_000_000)));
        assert_eq!(port.line.shaper, Shaper::Bucket(1600));
        assert_eq!(port.line.qdisc, qdisc::parse("pfifo limit 7").expect("words"));
        let lossy = super::port(&lines, "r0").expect("a port");
        assert_eq!(lossy.line.loss, Loss::Random(1 << 31));
        assert_eq!(lossy.line.rate, None);
    }

    /// tbf shapes by itself, what is below it or its own FIFO.
    #[test]
    fn tbf_stands_above_its_leaf() {
        let of = |words: &[&str]| {
            let port = port(&lines(words), "r1").expect("a port");
            assert_eq!(port.line.rate, None);
            port.line.qdisc
        };
        let shaper = "tc qdisc add dev r1 root handle 1: tbf rate 8mbit burst 15k latency 100ms";
        let leaf = "tc qdisc add dev r1 parent 1: handle 10: codel";
        let parsed = |words: &str| qdisc::parse(words).expect("words");
        assert_eq!(of(&[shaper]), parsed("tbf rate 8mbit burst 15k limit 115360"));
        let both = of(&[shaper, leaf]);
        let Config::Tbf(params) = &both else { panic!("{both:?}") };
        assert_eq!(params.below(), parsed("codel"));
        assert_eq!((params.rate, params.burst), (Rate::from_bits(8_000_000), 15 * 1024));
    }

    /// An effect that is not simulated is an error, and no silence.
    #[test]
    fn netem_loses_delays_and_reorders_and_nothing_else() {
        let of =
            |words: &str| port(&lines(&[&format!("tc qdisc add dev r1 root netem {words}")]), "r1");
        let both = of("delay 20ms loss random 50%").expect("a port");
        assert_eq!((both.delay, both.line.loss), (Span::from_millis(20), Loss::Random(1 << 31)));
        let port = of("delay 20ms reorder 75%").expect("a port");
        let late = Reordering { share: 1 << 30, late: Span::from_millis(20) };
        assert_eq!((port.delay, port.line.reordering), (Span::ZERO, late));
        for words in [
            "delay 20ms 5ms",
            "reorder 10%",
            "delay 20ms reorder 10% 50%",
            "duplicate 1%",
            "delay",
            "loss 1% 25%",
            "limit",
            "delay 20ms limit 99",
            "rate 8mbit limit 1",
            "rate 8mbit limit 0",
        ] {
            assert!(of(words).is_err(), "{words}");
        }
    }

    /// netem's `rate` sends one packet after another, and its limit counts the one that it sends.
    #[test]
    fn netem_with_a_rate_is_a_wire_behind_a_fifo() {
        let of = |words: &str| {
            let line = format!("tc qdisc add dev r1 root netem rate 8mbit {words}");
            let line = port(&[line], "r1").expect("a port").line;
            (line.rate, line.shaper, line.qdisc)
        };
        let fifo = |words| qdisc::parse(words).expect("words");
        let rate = Some(Rate::from_bits(8_000_000));
        assert_eq!(of("limit 20"), (rate, Shaper::Wire, fifo("pfifo limit 19")));
        assert_eq!(of(""), (rate, Shaper::Wire, fifo("pfifo limit 999")));
    }

    #[test]
    fn what_shapes_itself_has_no_line() {
        let lines = lines(&["tc qdisc add dev r1 root handle 1: cake bandwidth 1mbit"]);
        assert_eq!(port(&lines, "r1").expect("a port").line.rate, None);
        assert!(port(&[String::from("tc qdisc add dev r1 root nonsense")], "r1").is_err());
    }
}

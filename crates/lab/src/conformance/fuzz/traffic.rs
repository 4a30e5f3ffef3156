//! Packets of a drawn case: flows that are given, everything else by chance.

use std::fmt::Write as _;

use serde::Deserialize;
use simnel_core::random::Random;

/// Packets to come.
#[derive(Clone, Debug, Deserialize)]
pub struct Traffic {
    /// Seed of all that is by chance.
    pub seed: u64,
    /// Packets.
    pub count: usize,
    /// Means of the gaps between arrivals, in nanoseconds: one of them at a time.
    pub gaps: Vec<u32>,
    /// Senders.
    pub flows: Vec<Flow>,
}

/// One flow.
#[derive(Clone, Debug, Deserialize)]
pub struct Flow {
    /// `src,dst,sport,dport,proto`.
    pub tuple: String,
    /// DSCP.
    pub dscp: u8,
    /// ECN's two bits.
    pub ecn: u8,
    /// Bytes of its packets; of the largest, if they `vary`.
    pub size: u32,
    /// Packets differ in size.
    pub vary: bool,
    /// TCP with timestamps.
    pub stamps: bool,
    /// TCP that only acknowledges.
    pub acks: bool,
    /// Class that its packets name; empty for none.
    pub class: String,
}

/// Bytes of a segment that is acknowledged.
const SEGMENT: u32 = 1448;
/// State of a connection.
#[derive(Clone, Copy)]
struct Progress {
    ack: u32,
    stamp: u32,
}

impl Traffic {
    /// Lines of a recording's `.csv` from `start` on, and how many packets there are. Each of
    /// `commands` stands behind the packet of its number. At the end come a second of rest and a
    /// look.
    pub fn write(&self, start: u64, commands: &[(usize, String)]) -> (String, usize) {
        let mut random = Random::derive(self.seed, 0);
        let mut text = String::with_capacity(100 * self.count);
        let mut progress = vec![Progress { ack: 1000, stamp: 1 }; self.flows.len()];
        let mut commands = commands.iter().peekable();
        let mut now = start + u64::from(random.below(1_000_000));
        let mut gap = pick(&mut random, &self.gaps);
        let mut number = 0;
        while number < self.count && !self.flows.is_empty() {
            now += exponential(&mut random, gap);
            match random.below(1000) {
                0 | 1 => now += [100_000_000, 1_000_000_000][random.below(2) as usize],
                2..=4 => gap = pick(&mut random, &self.gaps),
                _ => {}
            }
            let flow = random.below(self.flows.len() as u32) as usize;
            let burst = if random.below(20) == 0 { 8 } else { 1 };
            for _ in 0..burst.min(self.count - number) {
                self.flows[flow].write(&mut random, &mut progress[flow], now, number, &mut text);
                while let Some((_, what)) = commands.next_if(|(behind, _)| *behind == number) {
                    let _ = writeln!(text, "{now},{what}");
                }
                number += 1;
            }
        }
        let end = now + 1_000_000_000;
        let _ = write!(text, "{end},stats\n{end},run\n");
        (text, number)
    }
}

impl Flow {
    fn write(
        &self,
        random: &mut Random,
        progress: &mut Progress,
        now: u64,
        number: usize,
        text: &mut String,
    ) {
        let network = 14 + if self.tuple.contains(':') { 40 } else { 20 };
        let is_tcp = self.tuple.ends_with(",6");
        let stamps = if is_tcp && self.stamps { 12 } else { 0 };
        let mut head = network + if is_tcp { 20 + stamps } else { 8 };
        let (mut sack, mut flags) = (String::new(), 0x10);
        if is_tcp {
            progress.ack = match random.below(16) {
                // Once again, or one that was overtaken.
                0..=3 => progress.ack,
                4 => progress.ack.wrapping_sub(SEGMENT),
                5..=7 => progress.ack.wrapping_add(2 * SEGMENT),
                _ => progress.ack.wrapping_add(SEGMENT),
            };
            progress.stamp = progress.stamp.wrapping_add([0, 0, 0, 1][random.below(4) as usize]);
            // Some have a flag beside ACK: PSH, URG, ECE, CWR, FIN, RST, SYN.
            if random.below(32) == 0 {
                flags |= [0x08, 0x08, 0x20, 0x40, 0x80, 0xc0, 0x01, 0x04, 0x02]
                    [random.below(9) as usize];
            }
            if self.acks && random.below(5) == 0 {
                let most = if self.stamps { 3 } else { 4 };
                let blocks = 1 + random.below(most);
                let mut left = progress.ack.wrapping_add(SEGMENT * (1 + random.below(3)));
                for block in 0..blocks {
                    let right = left.wrapping_add(SEGMENT * (1 + random.below(4)));
                    let _ = write!(sack, "{}{left}-{right}", if block > 0 { ";" } else { "" });
                    left = right.wrapping_add(SEGMENT * (1 + random.below(2)));
                }
                head += 4 + 8 * blocks;
            }
        }
        let size = match self.vary {
            true => 60 + random.below(self.size.max(60) - 59),
            false => self.size,
        };
        let len = match (is_tcp, self.acks) {
            (true, true) => head,
            (true, false) => size.max(head + 1),
            (false, _) => size.max(head),
        };
        let Flow { tuple, dscp, ecn, .. } = self;
        let _ = write!(text, "{now},enq+,{number},{len},{tuple},{dscp},{ecn}");
        if is_tcp {
            let _ = write!(text, ",{flags:x},1,{}", progress.ack);
            match self.stamps {
                true => {
                    let _ = write!(text, ",{},1", progress.stamp);
                }
                false => text.push_str(",,"),
            }
            let _ = write!(text, ",{sack},");
        } else if !self.class.is_empty() {
            text.push_str(",,,,,,,");
        }
        text.push_str(&self.class);
        text.truncate(text.trim_end_matches(',').len());
        text.push('\n');
    }
}

fn pick(random: &mut Random, values: &[u32]) -> u32 {
    match values.len() {
        0 => 1,
        len => values[random.below(len as u32) as usize],
    }
}

/// A time until the next of arrivals that come by chance, `mean` apart.
fn exponential(random: &mut Random, mean: u32) -> u64 {
    // Never 0, whose logarithm is none.
    let share = (f64::from(random.u32()) + 1.0) / (f64::from(u32::MAX) + 2.0);
    (-share.ln() * f64::from(mean)) as u64
}

#[cfg(test)]
mod tests {
    use super::super::super::golden::parse_line;
    use super::*;
    use simnel_core::Time;

    fn flow(tuple: &str) -> Flow {
        Flow {
            tuple: tuple.into(),
            dscp: 8,
            ecn: 2,
            size: 1514,
            vary: false,
            stamps: true,
            acks: tuple.ends_with(",6"),
            class: "8001:10".into(),
        }
    }

    /// Lines are a recording's, and the same seed draws the same.
    #[test]
    fn packets_are_lines_of_recordings() {
        let flows = vec![flow("10.0.0.1,10.1.0.1,1024,53,17"), flow("fd00::1,fd01::1,1025,80,6")];
        let traffic = Traffic { seed: 7, count: 500, gaps: vec![1000, 100_000], flows };
        let commands = [(3, "reset".into()), (3, "stats".into())];
        let (text, packets) = traffic.write(1_000_000, &commands);
        assert_eq!(packets, 500);
        assert_eq!(text, traffic.write(1_000_000, &commands).0);
        let (mut clock, mut id, mut kinds) = (Time(1_000_000), 0, [0; 2]);
        for line in text.lines().filter(|line| line.contains(",enq+,")) {
            let (arrival, _) = parse_line(line, &mut clock, id).unwrap().unwrap();
            assert_eq!((arrival.tos, arrival.class), (34, 0x8001_0010));
            match arrival.tcp {
                Some(tcp) => assert_eq!(arrival.len, 14 + 40 + tcp.header_len()),
                None => assert_eq!(arrival.len, 1514),
            }
            kinds[usize::from(arrival.tcp.is_some())] += 1;
            id += 1;
        }
        assert_eq!(id, 500);
        assert!(kinds[0] > 100 && kinds[1] > 100, "{kinds:?}");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[4].ends_with(",reset") && lines[5].ends_with(",stats"), "{lines:?}");
    }
}

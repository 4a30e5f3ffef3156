//! Packets.
use simnel_core::Time;
use simnel_lab::linux_reference::{Recording, Situation};
use simnel_sim::Direction;
struct P(Time, std::collections::BTreeMap<(u16, u16), u32>);
impl simnel_sim::capture::Capture for P {
    fn frame(&mut self, d: Direction, now: Time, f: &[u8]) {
        if now > self.0 || f[23] != 6 {
            return;
        }
        let ip = &f[14..];
        let tot = u16::from_be_bytes([ip[2], ip[3]]) as usize;
        let t = &ip[20..];
        let (sp, dp) = (u16::from_be_bytes([t[0], t[1]]), u16::from_be_bytes([t[2], t[3]]));
        let w = |n: usize| u32::from_be_bytes([t[n], t[n + 1], t[n + 2], t[n + 3]]);
        let (seq, ack) = (w(4), w(8));
        let hl = (t[12] >> 4) as usize * 4;
        let fl = t[13];
        if fl & 2 != 0 {
            self.1.insert((sp, dp), seq);
        }
        let s = seq.wrapping_sub(*self.1.get(&(sp, dp)).unwrap_or(&seq));
        let a = ack.wrapping_sub(*self.1.get(&(dp, sp)).unwrap_or(&ack));
        let mut o = String::new();
        let mut i = 20;
        while i < hl {
            match t[i] {
                0 => break,
                1 => {
                    i += 1;
                    continue;
                }
                5 => {
                    for b in 0..(t[i + 1] as usize - 2) / 8 {
                        o += &format!(
                            "{}-{} ",
                            w(i + 2 + b * 8).wrapping_sub(*self.1.get(&(dp, sp)).unwrap_or(&0)),
                            w(i + 6 + b * 8).wrapping_sub(*self.1.get(&(dp, sp)).unwrap_or(&0))
                        );
                    }
                }
                _ => {}
            }
            i += (t[i + 1] as usize).max(2);
        }
        println!(
            "{:9.6} {} {} ecn{} len {:4} seq {:8} ack {:8} {}{}{}{} {}",
            now.0 as f64 / 1e9,
            if d == Direction::Up { "up  " } else { "down" },
            sp.max(dp) % 100,
            ip[1] & 3,
            tot - 20 - hl,
            s,
            a,
            if fl & 2 != 0 { "S" } else { "" },
            if fl & 1 != 0 { "F" } else { "" },
            if fl & 0x40 != 0 { "E" } else { "" },
            if fl & 0x80 != 0 { "C" } else { "" },
            o
        );
    }
}
/// Main.
pub fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let seed: u64 = args.next().unwrap().parse().unwrap();
    let until: f64 = args.next().unwrap().parse().unwrap();
    let recording = Recording::read(std::path::Path::new(&path)).unwrap();
    let run = &recording.runs[(seed / 1000 - 1) as usize];
    let situation = Situation::new(&recording, run).unwrap();
    let mut r = simnel_sim::Run::new(&situation.setup, seed).unwrap();
    let end = Time((until * 1e9) as u64);
    r.capture(Box::new(P(end, Default::default())));
    r.advance(end);
}

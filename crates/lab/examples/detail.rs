use simnel_lab::linux_reference::{Recording, Situation};
use simnel_sim::Outcome;
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let seeds: u64 = args.next().unwrap().parse().unwrap();
    let full = args.next().is_some();
    let recording = Recording::read(std::path::Path::new(&path)).unwrap();
    for run in &recording.runs {
        let mut situation = Situation::new(&recording, run).unwrap();
        situation.setup.recording.windows = true;
        for s in 1..=seeds {
            let results = simnel_sim::Run::new(&situation.setup, run.seed * 1000 + s).unwrap().finish();
            let secs = results.window.1.since(results.window.0).0 as f64 / 1e9;
            println!("run {} seed {}", run.seed, s);
            for (f, o) in run.flows.iter().zip(&results.flows) {
                match &o.outcome {
                    Outcome::Ping { added_rtt, .. } => {
                        println!("  probe {:?} mean {:?} p50 {:?} p95 {:?}", f.mark, added_rtt.mean().map(|s| s.0 as f64 / 1e6), added_rtt.quantile(500), added_rtt.quantile(950));
                    }
                    _ => {
                        let w: Vec<_> = o.windows.iter().skip((results.window.0 .0 as f64 / results.interval.0 as f64) as usize).collect();
                        let n = w.len().max(1) as f64;
                        if full || f.dir.as_deref() == Some("down") || run.flows.len() < 14 {
                            println!("  {:?} {:?} gp {:.4} linux {:?} {:?} tcp {:?} cwnd {:.2} linux {:?} srtt {:.1} linux {:?}", f.dir, f.mark, o.goodput_bytes() as f64 * 8e-6 / secs, f.goodput_mbps, f.cc, o.tcp,
                                w.iter().map(|x| x.cwnd as f64).sum::<f64>() / n, f.srcip.len(), w.iter().map(|x| x.srtt.0 as f64).sum::<f64>() / n / 1e6, 0);
                        }
                        if full { println!("    fates {:?}", o.fates); }
                    }
                }
            }
            for l in &results.lines {
                println!("  line {:?} packets {} longest {} start {:?} end {:?}", l.direction, l.packets, l.longest_queue, l.at_start, l.at_end);
            }
        }
    }
}

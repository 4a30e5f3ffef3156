//! Series.
use simnel_lab::linux_reference::{Recording, Situation};
/// Main.
pub fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let seed: u64 = args.next().unwrap().parse().unwrap();
    let flow: usize = args.next().unwrap().parse().unwrap();
    let ms: u64 = args.next().unwrap().parse().unwrap();
    let until: f64 = args.next().unwrap().parse().unwrap();
    let recording = Recording::read(std::path::Path::new(&path)).unwrap();
    let run = &recording.runs[(seed / 1000 - 1) as usize];
    let mut situation = Situation::new(&recording, run).unwrap();
    situation.setup.recording.windows = true;
    situation.setup.recording.interval = simnel_core::Span::from_millis(ms);
    let results = simnel_sim::Run::new(&situation.setup, seed).unwrap().finish();
    let f = &results.flows[flow];
    let mut sum = 0;
    for (n, (w, b)) in f.windows.iter().zip(&f.series).enumerate() {
        sum += b;
        let t = (n as u64 + 1) as f64 * ms as f64 / 1e3;
        if t > until {
            break;
        }
        println!(
            "{t:8.2} cwnd {:5} srtt {:8.2} bytes {:7} total {}",
            w.cwnd,
            w.srtt.0 as f64 / 1e6,
            b,
            sum
        );
    }
}

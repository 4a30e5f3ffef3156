//! Two disciplines on one line, simulated: a table.
//!
//! `cargo run --profile quick -p simnel-scenario --example compare`

use simnel_scenario::{no_files, Scenario, Summary};

const EVENING: &str = r#"
duration = "20s"
[line]
up = "3mbit"
down = "20mbit"
rtt = "50ms"
[[traffic]]
kind = "bulk"
direction = "up"
name = "backup"
[[traffic]]
kind = "ping"
name = "ping"
"#;

fn main() {
    let scenario = Scenario::parse(EVENING, "evening", &no_files).expect("a scenario");
    println!("discipline              backup       queue, 50 and 99 of 100 packets");
    for words in ["pfifo limit 100", "cake bandwidth {rate}"] {
        let simulation = scenario.simulation(Some(words)).expect("a discipline");
        let run = simulation.finish(1).expect("a set-up");
        let summary = Summary::new(&scenario, &run);
        let goodput = summary.groups[0].goodput_mbps;
        let waits = &run.results.lines[0].sojourn[1];
        let ms = |part| waits.quantile(part).map_or(0.0, |span| span.0 as f64 / 1e6);
        let (half, most) = (ms(500), ms(990));
        println!("{words:<22}  {goodput:.2} Mbit/s  {half:6.1} ms  {most:6.1} ms");
        assert!(goodput > 2.0, "the backup does not get through");
    }
}

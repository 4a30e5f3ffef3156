//! Parallel queues beside queues that share the rate only: a table.
//!
//! `cargo run -p simnel-core --example mq`

#[path = "../tests/mq/run.rs"]
mod run;
#[path = "../tests/mq/traffic.rs"]
mod traffic;

use simnel_core::sched::parallel::Timing;
use simnel_core::Span;

fn main() {
    let rate = traffic::RATE;
    println!(
        "{} Mbit/s; a host with one flow in queue 0, others with many; sparse flows in all;",
        rate / 125_000
    );
    println!("shares over 100 ms, worst of all windows after the first\n");
    println!("queues traffic     scheme     hosts  flows  excess     least rate  sparse   asked");
    for count in [2, 4, 8] {
        for (name, flows) in traffic::all(count) {
            for (scheme, mut queues) in traffic::schemes(count, rate, &Timing::KERNEL) {
                let lateness = Span::from_micros(20);
                let report = run::run(&mut queues, &flows, rate, traffic::WINDOWS, lateness);
                let (hosts, within) = traffic::worst(&flows, &report);
                println!(
                    "{count:6} {name:11} {scheme:9} {:5.1}% {:5.1}% {:7} B  {:9.1}% {:5} us {:6.2}",
                    hosts * 100.0,
                    within * 100.0,
                    report.excess,
                    report.least_rate * 100.0,
                    report.worst_sparse.as_micros(),
                    report.asked,
                );
            }
        }
    }
}

//! `simnel test`: its figures are the line's, and its grade tells a full queue from a managed one.

use serde_json::Value;
use simnel_core::qdisc::Config;
use simnel_gateway::config;
use simnel_testbed::Home;

use crate::{text, within, within_tries, Live, Watch, SIMNEL};

/// Payload's share of frames of 1514 bytes.
const PAYLOAD: f64 = 1448.0 / 1514.0;

fn measure(live: &Live, words: &str) -> Value {
    let server = Home::SERVER.to_string();
    let mut all = vec!["test", "--server", &server, "--json"];
    all.extend(words.split_whitespace());
    let output = within(&live.home.lan1, SIMNEL, &all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_measured_line_is_the_line() {
    let Some(live) = Live::beside_others("a_measured_line_is_the_line") else { return };
    let server = Home::SERVER.to_string();
    let serve = ["serve", "--test", "--listen", &server];
    let process = live.home.server.spawn(SIMNEL, &serve).unwrap();
    let line = live.line("rate 3mbit delay 15ms fifo 300p reverse rate 20mbit");
    within_tries("F, 30 ms, and 3 Mbit/s within 4 %", || {
        let watch = Watch::start();
        let report = measure(&live, "--load upload --seconds 2");
        let upload = &report["phases"][0];
        let off = upload["upload_mbit"].as_f64().unwrap() / (3.0 * PAYLOAD) - 1.0;
        let idle = report["idle"]["rtt_ms"].as_f64().unwrap();
        let [up, down, home] = ["added_up_ms_p95", "added_down_ms_p95", "home_added_ms_p95"]
            .map(|name| upload[name].as_f64().unwrap());
        println!("FIFO: {}, idle {idle:.1} ms, upload off by {off:+.3}", report["grade"]);
        println!("  added {up:.0} ms up, {down:.1} ms down, {home:.1} ms at home");
        let exact = off.abs() < 0.04 && (30.0..33.0).contains(&idle);
        watch.judge(report["grade"] == "F" && exact && up > 400.0 && down < 20.0 && home < 20.0)
    });
    let file = live.home.testbed.directory().unwrap().join("etc/simnel.toml");
    let words =
        format!("setup --server {server} --yes --seconds 1 --config {}", file.to_string_lossy());
    within_tries("from F to A, with 90 and 95 % of the line within 5 %", || {
        let watch = Watch::start();
        let said = live.ok(&words);
        println!("{said}");
        let settings = config::read(&file).unwrap();
        let rate = |config: &Option<Config>| match config {
            Some(Config::Cake(cake)) => cake.bandwidth.bits() as f64 / 1e6,
            other => panic!("{other:?}"),
        };
        // The word `ethernet` counts 1538 bytes where the line has 1514.
        let off = [(&settings[0].download, 18.0), (&settings[0].upload, 2.85)]
            .map(|(config, ideal)| rate(config) / (ideal * 1538.0 / 1514.0) - 1.0);
        println!("rates off by {off:+.3?}");
        let grades = said.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
        let good = grades[1] == "F" && grades[2].starts_with('A');
        watch.judge(good && off.iter().all(|off| off.abs() < 0.05))
    });
    // What was tried out has ended.
    assert!(live.is_clean());
    line.stop();
    process.stop();
}

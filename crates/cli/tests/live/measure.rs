//! `simnel test`: its figures are the line's, and its grade tells a full queue from a managed one.

use serde_json::Value;
use simnel_testbed::Home;

use crate::{text, within, within_three_tries, Live, Watch, SIMNEL};

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
    let Some(live) = Live::new("a_measured_line_is_the_line") else { return };
    let server = Home::SERVER.to_string();
    let serve = ["serve", "--test", "--listen", &server];
    let server = live.home.server.spawn(SIMNEL, &serve).unwrap();
    let line = live.line("rate 3mbit delay 15ms fifo 500p reverse rate 20mbit");
    within_three_tries("F, 30 ms, and 3 Mbit/s within 4 %", || {
        let watch = Watch::start();
        let report = measure(&live, "--load upload --seconds 3");
        let upload = &report["phases"][0];
        let rate = upload["upload_mbit"].as_f64().unwrap() / (3.0 * PAYLOAD) - 1.0;
        let idle = report["idle"]["rtt_ms"].as_f64().unwrap();
        let [up, down, home] = ["added_up_ms_p95", "added_down_ms_p95", "home_added_ms_p95"]
            .map(|name| upload[name].as_f64().unwrap());
        println!("FIFO: {}, idle {idle:.1} ms, upload off by {rate:+.3}", report["grade"]);
        println!("  added {up:.0} ms up, {down:.1} ms down, {home:.1} ms at home");
        let exact = rate.abs() < 0.04 && (30.0..33.0).contains(&idle);
        watch.judge(report["grade"] == "F" && exact && up > 400.0 && down < 20.0 && home < 20.0)
    });
    let up = live.start("wan", "up wan download 19mbit upload 2850kbit");
    within_three_tries("A, and 19 and 2.85 Mbit/s within 6 %", || {
        let watch = Watch::start();
        let report = measure(&live, "--load download,upload --seconds 2");
        let rates = ["download", "upload"].map(|way| {
            let phases = report["phases"].as_array().unwrap();
            let phase = phases.iter().find(|phase| phase["load"] == way).unwrap();
            phase[format!("{way}_mbit")].as_f64().unwrap()
        });
        let [down, up] = [rates[0] / (19.0 * PAYLOAD) - 1.0, rates[1] / (2.85 * PAYLOAD) - 1.0];
        println!("shaped: {}, off by {down:+.3} and {up:+.3}", report["grade"]);
        let good = report["grade"] == "A" || report["grade"] == "A+";
        watch.judge(good && down.abs() < 0.06 && up.abs() < 0.06)
    });
    up.stop();
    line.stop();
    server.stop();
}

//! Files as flent reads them; others are refused with a reason.

use std::io::Write;

use simnel_sim::Run;

use super::*;
use simnel_scenario::{no_files, Scenario};

/// A second of a scenario with `traffic`.
fn data(traffic: &str) -> Data {
    let text = format!(
        "duration = \"2s\"\ninterval = \"200ms\"\n[line]\nup = \"1mbit\"\ndown = \"5mbit\"\n\
         rtt = \"20ms\"\n{traffic}"
    );
    let scenario = Scenario::parse(&text, "test", &no_files).expect("a scenario");
    let (setup, qdisc) = scenario.setup(None).expect("a set-up");
    let results = Run::new(&setup, 1).expect("a run").finish();
    Data::of("a title", &Finished { qdisc, setup, results })
}

const BULK: &str = "[[traffic]]\nkind = \"bulk\"\n";
const PING: &str = "[[traffic]]\nkind = \"ping\"\n";

#[test]
fn what_was_written_is_read_again() {
    let data = data(&format!("{BULK}direction = \"both\"\ncount = 4\n{PING}"));
    let bytes = data.write().expect("memory");
    assert_eq!(bytes, data.write().expect("memory"), "the same bytes each time");
    let again = Data::read(&bytes[..]).expect("our own file");
    assert_eq!((again.x_values.len(), again.title()), (10, "a title"));
    assert_eq!(again.results.len(), data.results.len());
    for (name, values) in &data.results {
        // The last digit of a number may be lost in text.
        let near = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs(),
            (a, b) => a == b,
        };
        assert!(values.iter().zip(&again.results[name]).all(near), "{name}");
    }
    assert_eq!(again.metadata["NAME"], "rrul_be");
    for name in ["TCP upload BE4", "TCP download sum", "Ping (ms) UDP BE1", "Ping (ms) avg"] {
        assert!(again.results.contains_key(name), "{name} in {:?}", again.results.keys());
    }
}

#[test]
fn sums_are_those_of_the_transfers_alone() {
    let call = "[[traffic]]\nkind = \"voip\"\n";
    let data = data(&format!("{BULK}direction = \"down\"\ncount = 3\n{call}"));
    assert_eq!(data.metadata["NAME"], "tcp_ndown");
    assert_eq!(data.metadata["TEST_PARAMETERS"]["download_streams"], "3");
    let at = |name: &str| data.results[name][5].expect("a value");
    let flows: f64 = (1..=3).map(|n| at(&format!("TCP download::{n}"))).sum();
    assert!((at("TCP download sum") - flows).abs() < 1e-9 && flows > 0.0);
    assert!(!data.results.contains_key("TCP upload sum"), "{:?}", data.results.keys());
    assert!(!data.results.contains_key("Ping (ms) avg"));
}

#[test]
fn groups_of_short_flows_are_one_series_each() {
    let pages = "[[traffic]]\nkind = \"web\"\nname = \"pages\"\nrate = 20\n";
    let data = data(&format!("{BULK}direction = \"down\"\n{pages}"));
    assert_eq!(data.metadata["NAME"], "tcp_download");
    let sum = |name: &str| data.results[name].iter().flatten().sum::<f64>();
    assert!(sum("TCP download pages") > 0.0, "{:?}", data.results.keys());
    // What belongs to no test of flent's is in none of its sums.
    assert_eq!(sum("TCP download sum"), sum("TCP download"));
    assert_eq!(data.results.keys().filter(|name| name.contains("pages")).count(), 1);
}

#[test]
fn plots_show_flows_and_leave_out_what_was_sampled_beside_them() {
    let data = data(&format!("{BULK}direction = \"down\"\ncount = 3\n{PING}"));
    let ids: Vec<String> = plot::plots(&data).into_iter().map(|figure| figure.id).collect();
    assert_eq!(ids, ["download", "totals", "ping", "ping_cdf", "box_ping", "box_totals"]);
    let figures = plot::plots(&data);
    let crate::figures::Plot::Lines(lines) = &figures[0].plot else { panic!("lines") };
    assert_eq!(lines.len(), 3);
    let mut sampled = data.clone();
    let values = sampled.results["TCP download::1"].clone();
    sampled.results.insert("TCP download::1::tcp_cwnd".into(), values);
    assert_eq!(plot::plots(&sampled), plot::plots(&data));
}

#[test]
fn damaged_and_foreign_files_are_refused_with_a_reason() {
    let good = data(BULK).write().expect("memory");
    let packed = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory")
    };
    let reason = |bytes: &[u8]| Data::read(bytes).expect_err("not readable");
    // 80 KB that unpack to 80 MB.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(b' '), 80 << 20), &mut gzip).unwrap();
    let bomb = gzip.finish().unwrap();
    assert!(bomb.len() < 1 << 17 && reason(&bomb).contains("more than 64 MiB"));
    assert!(reason(&good[..good.len() / 2]).contains("damaged"));
    assert!(reason(b"\xff\xfe\x00").contains("no data file"));
    assert!(reason(&packed("hello")).contains("no JSON"));
    assert!(reason(b"{\"version\": 9}").contains("format 9: only 2 to 4"));
    assert!(reason(b"{\"x_values\": []}").contains("`version`"));
    assert!(reason(b"{\"version\": 4, \"x_values\": []}").contains("`results`"));
    let uneven =
        "{\"version\": 4, \"x_values\": [0, 1], \"results\": {\"A\": [1]}, \"metadata\": {}}";
    assert!(reason(uneven.as_bytes()).contains("`A` has 1 values for 2 points"));
}

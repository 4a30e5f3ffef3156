//! `autorate-ingress`: the shaper follows what arrives (facts A.11).

use simnel_core::qdisc::Config;
use simnel_core::{Span, Time};

use crate::driver::{packet, Driver};

fn rate(driver: &Driver) -> u64 {
    match driver.cake.config() {
        Config::Cake(params) => params.bandwidth.0,
        other => panic!("{other}"),
    }
}

/// `seconds` of packets of 1500 bytes at `bytes` a second, in pairs; sends whatever may be sent.
/// Returns when the rate changed.
fn arrive(driver: &mut Driver, bytes: u64, seconds: u64) -> Vec<Time> {
    let end = driver.now + Span::from_secs(seconds);
    let gap = 3_000 * 1_000_000_000 / bytes;
    let (mut changes, mut before) = (Vec::new(), rate(driver));
    while driver.now < end {
        for pause in [gap / 4, gap * 3 / 4] {
            driver.put(packet(1, 1500));
            if rate(driver) != before {
                (before, _) = (rate(driver), changes.push(driver.now));
            }
            let next = driver.now + Span(pause);
            while let Some(due) = driver.cake.next_event().filter(|due| *due <= next) {
                driver.now = driver.now.max(due);
                driver.take_now();
            }
            driver.now = next;
        }
    }
    changes
}

#[test]
fn the_rate_is_fifteen_sixteenths_of_what_arrives() {
    let mut driver = Driver::new("besteffort bandwidth 100mbit autorate-ingress ingress");
    assert_eq!(driver.stats().capacity_estimate.0, 12_500_000);
    let begin = driver.now;
    let changes = arrive(&mut driver, 1_250_000, 30);
    let estimate = driver.stats().capacity_estimate.0;
    // Windows that end within a pair see more than the mean; the estimate follows peaks.
    assert!((1_200_000..2_000_000).contains(&estimate), "{estimate}");
    assert!(rate(&driver).abs_diff(estimate / 16 * 15) < estimate / 50);
    // At most four times a second.
    assert!(changes.windows(2).all(|two| two[1].since(two[0]) > Span::from_millis(250)));
    // In the end the estimate stands still.
    assert!(changes.len() > 10 && changes[0].since(begin) < Span::from_secs(1));
    // Faster arrivals raise it, and all that follows from the rate.
    let quantum = driver.tin(0).flow_quantum;
    arrive(&mut driver, 5_000_000, 30);
    assert!(driver.stats().capacity_estimate.0 > 4_500_000);
    assert!(driver.tin(0).flow_quantum > quantum);
    assert_eq!(driver.tin(0).threshold_rate.0, rate(&driver));
}

#[test]
fn a_fixed_rate_stays_and_a_given_one_starts_the_estimate_anew() {
    let mut driver = Driver::new("besteffort bandwidth 10mbit");
    assert!(arrive(&mut driver, 5_000_000, 2).is_empty());
    assert_eq!(rate(&driver), 1_250_000);
    driver.change("besteffort bandwidth 20mbit autorate-ingress");
    assert_eq!(driver.stats().capacity_estimate.0, 2_500_000);
    assert!(!arrive(&mut driver, 5_000_000, 2).is_empty());
    driver.change("besteffort bandwidth 20mbit");
    assert!(arrive(&mut driver, 1_000_000, 2).is_empty());
}

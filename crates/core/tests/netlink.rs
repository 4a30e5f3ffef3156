//! Netlink options of random bytes, and recorded ones that are damaged. See `support::netlink`.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use simnel_core::netlink::{Attributes, Options};
use simnel_core::qdisc::{netlink, Device};
use support::netlink::{check, requests, seed};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_options_are_refused_by_name_or_lived_with(bytes in vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }
}

#[test]
fn recorded_options_are_lived_with() {
    let flood: Vec<u8> = (0..200).map(|n| (n * 37) as u8).collect();
    for (name, payload) in requests() {
        let kind = netlink::kinds().position(|kind| kind == name).expect(name);
        check(&seed(kind as u8, &payload, &flood));
    }
}

#[test]
fn cut_and_mistold_lengths_are_refused_by_name_or_ignored() {
    let (device, mut refused) = (Device::default(), 0);
    let mut look = |name: &str, payload: &[u8], at: usize| {
        let is_nested = name == "fq_pie";
        let options = Options { payload, is_nested };
        if let Err(error) = netlink::parse(name, Some(options), None, &device) {
            assert!(error.text().as_str().starts_with("TCA_"), "{name} at {at}: {error}");
            refused += 1;
        }
    };
    let requests = requests();
    assert!(requests.len() > 110, "{}", requests.len());
    for (name, bytes) in &requests {
        for at in 0..bytes.len() {
            look(name, &bytes[..at], at);
        }
        for attribute in Attributes::new(bytes) {
            for length in [0u16, 3, 4, 5, 7, 9, 255, u16::MAX] {
                let mut bytes = bytes.clone();
                bytes[attribute.offset..attribute.offset + 2]
                    .copy_from_slice(&length.to_ne_bytes());
                look(name, &bytes, attribute.offset);
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

//! The configuration file: no text panics; what is understood can be run, and its words read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_core::qdisc;
use simnel_fuzz::{has_wrapped_rate, seeds};
use simnel_gateway::config::parse;

fuzz_target!(init: seeds::write(seeds::files()), |bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(all) => {
            assert!(!all.is_empty());
            for settings in all {
                assert!(!settings.interface.is_empty() && settings.interface.len() < 16);
                let configs = [settings.download, settings.upload];
                assert!(configs.iter().any(Option::is_some));
                for config in configs.into_iter().flatten() {
                    if !has_wrapped_rate(&config) {
                        assert_eq!(qdisc::parse(&config.to_string()), Ok(config));
                    }
                }
            }
        }
        Err(reason) => assert!(!reason.trim().is_empty()),
    }
});

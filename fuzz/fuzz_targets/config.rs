//! The configuration file: no text panics; what is understood can be run, and its words read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_core::qdisc::{self, ConfigError, Device};
use simnel_core::tc::{self, Config};
use simnel_fuzz::seeds;
use simnel_gateway::config::parse;
use simnel_gateway::{BoxedQdisc, Disciplines};

/// All disciplines of the core, as the daemon has them.
struct Core;

impl Disciplines for Core {
    fn build(&self, config: &Config, device: &Device) -> Result<BoxedQdisc, ConfigError> {
        qdisc::build(config, device)
    }
    fn parse(&self, words: &str) -> Result<Config, String> {
        tc::parse(words).map_err(|error| error.to_string())
    }
    fn print(&self, config: &Config) -> String {
        config.to_string()
    }
}

fuzz_target!(init: seeds::write(seeds::files()), |bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text, &Core) {
        Ok(all) => {
            assert!(!all.is_empty());
            for settings in all {
                assert!(!settings.interface.is_empty() && settings.interface.len() < 16);
                let configs = [settings.download, settings.upload];
                assert!(configs.iter().any(Option::is_some));
                for config in configs.into_iter().flatten() {
                    assert_eq!(Core.parse(&Core.print(&config)), Ok(config));
                }
            }
        }
        Err(reason) => assert!(!reason.trim().is_empty()),
    }
});

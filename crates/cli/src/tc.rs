//! The gateway's door to the core's disciplines and their language.

use simnel_core::qdisc::{self, ConfigError, Device};
use simnel_core::tc::{self, Config};
use simnel_gateway::{BoxedQdisc, Disciplines};

/// All disciplines of the core.
pub struct Core;

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

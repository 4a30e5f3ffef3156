//! `tc`'s language: words to settings, settings and statistics to text and JSON.
//!
//! [`parse`] reads what a user writes after the device; [`show()`] and [`show_json`] write what
//! `tc -s qdisc show` and its JSON look like, byte for byte. Each discipline's words stand in one
//! file: a parser, a table of keywords, and writers. To add one: that file, its variant in
//! [`Config`], its entry in `grammar.rs`, its arms in `show.rs`.

mod binary64;
mod blue;
mod bucket;
mod cake;
mod cobalt;
mod codel;
mod delay;
mod drr;
mod dualpi2;
mod error;
mod fifo;
mod fq_codel;
mod fq_pie;
mod grammar;
mod htb;
mod json;
mod line;
mod link;
mod pie;
mod red;
mod sfb;
mod sfq;
mod show;
pub mod stats;
mod tbf;
pub mod units;

pub use error::{ParseError, Problem};
pub use grammar::{
    disciplines, keywords, parse, parse_with_default, parse_words, Discipline, Keyword,
};
pub use htb::write_class;
pub use json::Json;
pub use show::{name, show, show_json, write_options, Parent, QdiscView, Statistics};
pub use units::Digits;

use crate::qdisc::{self, Device};

/// A discipline with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // Cloned at configuration time only.
pub enum Config {
    /// `cake`.
    Cake(qdisc::cake::Params),
    /// `pfifo`, `bfifo`, `pfifo_head_drop`.
    Fifo(qdisc::fifo::Params),
    /// `delay`: every packet waits a fixed time, more or less.
    Delay(qdisc::delay::Params),
    /// `line`: an emulated line with its own rate, queue and delay.
    Line(qdisc::line::Params),
    /// `codel`: one queue under CoDel.
    Codel(qdisc::codel::Params),
    /// `drr`: deficit round robin between flows, users or classes.
    Drr(qdisc::drr::Params),
    /// `fq_codel`: many queues, each under CoDel.
    FqCodel(qdisc::fq_codel::Params),
    /// `fq_pie`: many queues, each under PIE.
    FqPie(qdisc::fq_pie::Params),
    /// `pie`: one queue under PIE.
    Pie(qdisc::pie::Params),
    /// `red`: one queue under RED.
    Red(qdisc::red::Params),
    /// `sfq`: stochastic fair queues.
    Sfq(qdisc::sfq::Params),
    /// `sfb`: one queue under stochastic fair BLUE.
    Sfb(qdisc::sfb::Params),
    /// `blue`: one queue under BLUE.
    Blue(qdisc::blue::Params),
    /// `cobalt`: one queue under cake's AQM.
    Cobalt(qdisc::cobalt::Params),
    /// `dualpi2`: two coupled queues, for low latency and the rest.
    Dualpi2(qdisc::dualpi2::Params),
    /// `tbf`: a token bucket before any discipline.
    Tbf(qdisc::tbf::Params),
    /// `htb`: a hierarchy of token buckets with disciplines below.
    Htb(qdisc::htb::Params),
}

impl Config {
    /// The same with all that `device` decides filled in, as Linux shows it: limits and quanta.
    pub fn resolved(mut self, device: &Device) -> Config {
        match &mut self {
            Config::Fifo(params) => params.limit = Some(params.effective_limit(device)),
            Config::Sfb(params) => params.limit = Some(params.effective_limit(device)),
            Config::Htb(params) => {
                params.direct_qlen.get_or_insert(device.tx_queue_len);
            }
            Config::FqCodel(params) => {
                params.queues.quantum.get_or_insert(device.mtu);
            }
            Config::FqPie(params) => {
                params.queues.quantum.get_or_insert(device.mtu);
            }
            Config::Sfq(params) => {
                params.quantum.get_or_insert(device.mtu);
            }
            _ => {}
        }
        self
    }
}

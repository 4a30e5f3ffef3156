//! Applications: what the hosts do, one file each.
//!
//! An application owns one flow. It is woken at its own request and told what its connections see;
//! everything it does goes through the network. Its random draws come from its own stream, so that
//! one more flow changes no other flow's behaviour.
//!
//! To add one: a file here, its parameters in `setup::Kind`, three arms below.

use simnel_core::random::Random;
use simnel_core::{Span, Time};

use crate::distribution::Distribution;
use crate::network::{Network, Notice, Opening};
use crate::pool::Watch;
use crate::setup::{Kind, Traffic};

use over_time::Moment;

pub mod browser;
mod bulk;
pub mod bursts;
mod dash;
mod datagrams;
mod messages;
pub(crate) mod over_time;
pub(crate) mod ping;
pub mod player;
pub mod web;

/// Surroundings of every application.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Particulars with which its connections are opened.
    pub opening: Opening,
    /// Time at which it stops; `Time::MAX`: never.
    pub stop: Time,
    /// Start of the measured window.
    pub window: Time,
    /// Propagation from its client to its server, and back.
    pub base: (Span, Span),
    /// Length of the intervals of time series.
    pub interval: Span,
    /// Its own random numbers.
    pub random: Random,
}

/// Outcome of a flow's application, beside bytes and packets.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Nothing beyond the flow's own record.
    Transfer,
    /// Datagrams one way.
    Datagrams {
        /// Sent since the window began.
        sent: u64,
        /// Of those, received.
        received: u64,
        /// Time on the way beyond propagation.
        added_delay: Distribution,
        /// Difference of one packet's delay from its predecessor's.
        variation: Distribution,
        /// `added_delay` over the whole run, interval by interval.
        over_time: Vec<Moment>,
    },
    /// Round trips.
    Ping {
        /// Requests sent since the window began.
        sent: u64,
        /// Of those, answered.
        received: u64,
        /// Round-trip time beyond propagation.
        added_rtt: Distribution,
        /// The request's part of it.
        added_there: Distribution,
        /// The answer's part.
        added_back: Distribution,
        /// Propagation both ways.
        base_rtt: Span,
        /// `added_rtt` over the whole run, interval by interval.
        over_time: Vec<Moment>,
    },
    /// HTTP.
    Web {
        /// Connections opened.
        connections: u64,
        /// Pages loaded.
        pages: u64,
        /// Time from a page's first request to its last byte.
        load_time: Distribution,
    },
    /// Video.
    Dash(player::Playback),
    /// Messages over TCP.
    Messages {
        /// Written since the window began.
        sent: u64,
        /// Of those, received whole.
        received: u64,
        /// From being written to being received.
        latency: Distribution,
    },
    /// Repeated transfers.
    Bursts {
        /// Transfers completed.
        completed: u64,
        /// From the first byte written to the last received.
        completion: Distribution,
    },
}

impl Outcome {
    /// Delays beyond propagation over the whole run, interval by interval; empty of traffic that
    /// does not tell them.
    pub fn over_time(&self) -> &[Moment] {
        match self {
            Outcome::Ping { over_time, .. } | Outcome::Datagrams { over_time, .. } => over_time,
            _ => &[],
        }
    }
}

/// A running application.
#[derive(Clone, Debug)]
pub(crate) enum App {
    Bulk(bulk::Bulk),
    Datagrams(Box<datagrams::Datagrams>),
    Ping(Box<ping::Ping>),
    Web(Box<web::Web>),
    Dash(Box<dash::Dash>),
    Messages(Box<messages::Messages>),
    Bursts(Box<bursts::Bursts>),
}

impl App {
    /// The application of one flow of `traffic`; its first timer starts it.
    pub fn new(traffic: &Traffic, mut context: Context) -> App {
        context.opening.watched = match traffic.kind {
            Kind::Bulk { size: None } if traffic.stop.is_none() && traffic.reading.is_none() => {
                Watch::Nothing
            }
            Kind::Bulk { .. } => Watch::Ends,
            _ => Watch::Everything,
        };
        match &traffic.kind {
            Kind::Bulk { size } => App::Bulk(bulk::Bulk::new(*size, traffic.reading, context)),
            Kind::Datagrams { size, interval, ports } => App::Datagrams(Box::new(
                datagrams::Datagrams::new(*size, *interval, *ports, context),
            )),
            Kind::Ping { size, interval, icmp } => {
                let rhythm = ping::Rhythm::Every(*interval);
                App::Ping(Box::new(ping::Ping::new(*size, rhythm, *icmp, context)))
            }
            Kind::RequestResponse { size } => {
                let rhythm = ping::Rhythm::Answered;
                App::Ping(Box::new(ping::Ping::new(*size, rhythm, false, context)))
            }
            Kind::Web(params) => App::Web(Box::new(web::Web::new(params, context))),
            Kind::Dash(params) => App::Dash(Box::new(dash::Dash::new(params, context))),
            Kind::Messages { size, interval } => {
                App::Messages(Box::new(messages::Messages::new(*size, *interval, context)))
            }
            Kind::Bursts { size, pause } => {
                App::Bursts(Box::new(bursts::Bursts::new(*size, *pause, context)))
            }
        }
    }

    /// The time that it asked for has come.
    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        match self {
            App::Bulk(app) => app.on_timer(network, now),
            App::Datagrams(app) => app.on_timer(network, now),
            App::Ping(app) => app.on_timer(network, now),
            App::Web(app) => app.on_timer(network, now),
            App::Dash(app) => app.on_timer(network, now),
            App::Messages(app) => app.on_timer(network, now),
            App::Bursts(app) => app.on_timer(network, now),
        }
    }

    /// One of its connections has news.
    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        match self {
            App::Bulk(app) => app.on_notice(notice, network, now),
            App::Datagrams(app) => app.on_notice(notice, network, now),
            App::Ping(app) => app.on_notice(notice, network, now),
            App::Web(app) => app.on_notice(notice, network, now),
            App::Dash(app) => app.on_notice(notice, network, now),
            App::Messages(app) => app.on_notice(notice, network, now),
            App::Bursts(app) => app.on_notice(notice, network, now),
        }
    }

    /// Its outcome, at the end of the run.
    pub fn outcome(self, now: Time) -> Outcome {
        match self {
            App::Bulk(_) => Outcome::Transfer,
            App::Datagrams(app) => app.outcome(),
            App::Ping(app) => app.outcome(),
            App::Web(app) => app.outcome(),
            App::Dash(app) => Outcome::Dash(app.playback(now)),
            App::Messages(app) => app.outcome(),
            App::Bursts(app) => app.outcome(),
        }
    }
}

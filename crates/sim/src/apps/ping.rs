//! Round-trip probes: requests that are answered at once with the same size and DSCP, at every
//! interval or each when the one before was answered.

use simnel_core::{Span, Time};

use super::over_time::OverTime;
use super::{Context, Outcome};
use crate::distribution::Distribution;
use crate::network::{Connection, Network, Notice, Side};
use crate::pool::Datagram;

/// Time after which netperf's UDP_RR takes a packet for lost and asks anew: Flent's
/// `--socket-timeout`.
pub const PATIENCE: Span = Span::from_secs(2);

/// Rule for the times at which a probe asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rhythm {
    /// At this interval, whatever comes back.
    Every(Span),
    /// As soon as the answer has come, or is overdue.
    Answered,
}

/// A probe.
#[derive(Clone, Debug)]
pub(crate) struct Ping {
    context: Context,
    size: u32,
    rhythm: Rhythm,
    icmp: bool,
    connection: Option<Connection>,
    sequence: u32,
    last_sent: Time,
    sent: u64,
    received: u64,
    /// Requests since the latest one that was answered, and when that was sent.
    since_answer: u64,
    last_answered: Time,
    longest: Span,
    added_rtt: Distribution,
    added_there: Distribution,
    added_back: Distribution,
    over_time: OverTime,
    /// Answers for whoever drives the run, if it wants them: when sent, and the round-trip time.
    pub answers: Option<Vec<(Time, Span)>>,
}

impl Ping {
    pub fn new(size: u32, rhythm: Rhythm, icmp: bool, context: Context) -> Ping {
        Ping {
            over_time: OverTime::new(context.interval),
            context,
            size,
            rhythm,
            icmp,
            connection: None,
            sequence: 0,
            last_sent: Time::ZERO,
            sent: 0,
            received: 0,
            since_answer: 0,
            last_answered: Time::ZERO,
            longest: Span::ZERO,
            added_rtt: Distribution::default(),
            added_there: Distribution::default(),
            added_back: Distribution::default(),
            answers: None,
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        if now >= self.context.stop {
            return;
        }
        let overdue = self.last_sent + PATIENCE;
        if matches!(self.rhythm, Rhythm::Answered) && self.connection.is_some() && now < overdue {
            network.wake(self.context.opening.app, overdue);
            return;
        }
        self.ask(network, now);
        network.wake(self.context.opening.app, now + self.gap());
    }

    /// Until the timer is needed again.
    fn gap(&self) -> Span {
        match self.rhythm {
            Rhythm::Every(interval) => interval,
            Rhythm::Answered => PATIENCE,
        }
    }

    fn ask(&mut self, network: &mut Network, now: Time) {
        let (opening, icmp) = (&self.context.opening, self.icmp);
        let connection =
            *self.connection.get_or_insert_with(|| network.open_datagrams(opening, icmp));
        let request =
            Datagram { sequence: self.sequence, sent: now, answered: Time::ZERO, size: self.size };
        self.sequence = self.sequence.wrapping_add(1);
        let counts = u64::from(now >= self.context.window);
        (self.sent, self.since_answer) = (self.sent + counts, self.since_answer + counts);
        self.last_sent = now;
        network.send_datagram(connection, Side::Client, request, now);
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        match notice {
            Notice::Datagram(connection, Side::Server, request) => {
                let answer = Datagram { answered: now, ..request };
                network.send_datagram(connection, Side::Server, answer, now);
            }
            Notice::Datagram(_, Side::Client, answer) => {
                let (there, back) = self.context.base;
                let added = now.since(answer.sent).saturating_sub(there + back);
                self.over_time.record(answer.sent, added);
                if let Some(answers) = &mut self.answers {
                    answers.push((answer.sent, now.since(answer.sent)));
                }
                let is_latest = answer.sequence.wrapping_add(1) == self.sequence;
                if matches!(self.rhythm, Rhythm::Answered) && is_latest && now < self.context.stop {
                    self.ask(network, now);
                }
                if answer.sent < self.context.window {
                    return;
                }
                self.received += 1;
                self.since_answer = self.sequence.wrapping_sub(answer.sequence + 1).into();
                self.last_answered = answer.sent;
                self.longest = self.longest.max(now.since(answer.sent));
                self.added_rtt.record(added);
                self.added_there.record(answer.answered.since(answer.sent).saturating_sub(there));
                self.added_back.record(now.since(answer.answered).saturating_sub(back));
            }
            _ => {}
        }
    }

    pub fn outcome(self) -> Outcome {
        let (there, back) = self.context.base;
        // Requests whose answers the end of the run cut off; after a longer silence they were lost.
        let silence = self.last_sent.since(self.last_answered);
        let cut_off = if silence > self.longest + self.gap() { 0 } else { self.since_answer };
        Outcome::Ping {
            sent: self.sent - cut_off.min(self.sent - self.received),
            received: self.received,
            added_rtt: self.added_rtt,
            added_there: self.added_there,
            added_back: self.added_back,
            base_rtt: there + back,
            over_time: self.over_time.into_moments(),
        }
    }
}

//! From echoes and counts to the figures of a report.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::load::{Carried, Rate};
use super::probe::Echo;
use super::Options;
use crate::grade::quantile;
use crate::report::{Home, Idle, Phase, Report, Series};
use crate::way::Way;
use crate::Grade;

/// All that was heard in a measurement. Times are since its start.
pub(super) struct Heard {
    /// From the peer.
    pub(super) echoes: Vec<Echo>,
    /// From the router at home, its address, and what it answers to.
    pub(super) home: Option<(Vec<Echo>, IpAddr, &'static str)>,
    /// Beginning and end of the time in which nothing was carried.
    pub(super) idle: (Duration, Duration),
    /// Bytes carried, load by load.
    pub(super) carried: Vec<(Way, Carried)>,
}

impl Heard {
    /// The whole report.
    pub(super) fn report(&self, options: &Options, notes: Vec<String>) -> Report {
        let (from, to) = self.idle;
        let idle = idle(within(&self.echoes, from, to));
        let home = self.home.as_ref().map(|(echoes, gateway, by)| Home {
            gateway: *gateway,
            by: (*by).to_owned(),
            idle_ms: quantile(within(echoes, from, to).map(milliseconds), 50),
        });
        let at_home = home.as_ref().and_then(|home| home.idle_ms);
        let phase = |(way, carried): &(Way, Carried)| self.phase(*way, carried, &idle, at_home);
        let phases: Vec<Phase> = self.carried.iter().map(phase).collect();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Report {
            server: options.peer.address().to_string(),
            time,
            flows: options.flows,
            seconds: options.load.as_secs_f64(),
            grade: phases.iter().filter_map(|phase| phase.grade).max(),
            rpm: phases.iter().filter_map(|phase| phase.rpm).min_by(f64::total_cmp),
            idle,
            phases,
            home,
            notes,
            series: self.series(),
        }
    }

    /// One load: echoes that were sent while it counts, against the idle line's.
    fn phase(&self, load: Way, carried: &Carried, idle: &Idle, at_home: Option<f64>) -> Phase {
        let span = |all| within(all, carried.from, carried.to);
        let above = |ms: f64, idle: f64| (ms - idle).max(0.0);
        let added = |percent| {
            let added = |echo: &Echo| milliseconds(echo).map(|ms| above(ms, idle.rtt_ms));
            quantile(span(&self.echoes).map(added), percent)
        };
        let ways = median_ways(within(&self.echoes, self.idle.0, self.idle.1));
        let one_way = |which: usize| {
            let idle = ways?[which];
            let added = |echo: &Echo| Some(above(echo.ways?[which], idle));
            quantile(span(&self.echoes).map(added), 95)
        };
        let home = self.home.as_ref().zip(at_home).and_then(|((echoes, ..), idle)| {
            let added = |echo: &Echo| milliseconds(echo).map(|ms| above(ms, idle));
            quantile(span(echoes).map(added), 95)
        });
        let echoes = span(&self.echoes).count();
        Phase {
            load,
            download_mbit: carried.down.as_ref().map(|rate| rate.mbit),
            upload_mbit: carried.up.as_ref().map(|rate| rate.mbit),
            added_ms_median: added(50),
            added_ms_p95: added(95),
            added_ms_p99: added(99),
            added_up_ms_p95: one_way(0),
            added_down_ms_p95: one_way(1),
            home_added_ms_p95: home,
            echoes,
            lost: span(&self.echoes).filter(|echo| echo.rtt.is_none()).count(),
            rpm: carried.requests.rpm().map(f64::round),
            grade: (echoes > 0).then(|| Grade::of(added(95))),
        }
    }

    fn series(&self) -> Series {
        let rates = |which: fn(&Carried) -> Option<&Rate>| {
            let rates = self.carried.iter().filter_map(|(_, carried)| which(carried));
            rates.flat_map(|rate| ended(&rate.series)).collect()
        };
        Series {
            rtt: points(&self.echoes),
            home: self.home.as_ref().map(|(echoes, ..)| points(echoes)).unwrap_or_default(),
            download: rates(|carried| carried.down.as_ref()),
            upload: rates(|carried| carried.up.as_ref()),
        }
    }
}

/// Round-trip time; None for what was lost.
pub(super) fn milliseconds(echo: &Echo) -> Option<f64> {
    echo.rtt.map(|rtt| rtt.as_secs_f64() * 1e3)
}

/// Those that were sent in a time.
pub(super) fn within(
    echoes: &[Echo],
    from: Duration,
    to: Duration,
) -> impl Iterator<Item = &Echo> + Clone {
    echoes.iter().filter(move |echo| (from..to).contains(&echo.sent))
}

fn points(echoes: &[Echo]) -> Vec<[f64; 2]> {
    let point = |echo: &Echo| Some([echo.sent.as_secs_f64(), milliseconds(echo)?]);
    echoes.iter().filter_map(point).collect()
}

/// A series that begins and ends at zero: between loads nothing is carried.
fn ended(series: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let zero = |point: Option<&[f64; 2]>| point.map(|[time, _]| [*time, 0.0]);
    let inner = series.iter().copied();
    zero(series.first()).into_iter().chain(inner).chain(zero(series.last())).collect()
}

fn idle<'a>(echoes: impl Iterator<Item = &'a Echo> + Clone) -> Idle {
    Idle {
        rtt_ms: quantile(echoes.clone().map(milliseconds), 50).unwrap_or(0.0),
        rtt_ms_p95: quantile(echoes.clone().map(milliseconds), 95),
        echoes: echoes.clone().count(),
        lost: echoes.filter(|echo| echo.rtt.is_none()).count(),
    }
}

/// Medians of both ways.
fn median_ways<'a>(echoes: impl Iterator<Item = &'a Echo> + Clone) -> Option<[f64; 2]> {
    let median = |which: usize| {
        quantile(echoes.clone().filter_map(|echo| echo.ways).map(|ways| Some(ways[which])), 50)
    };
    Some([median(0)?, median(1)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_counts_as_later_than_any() {
        let echo = |n: u64, ms: Option<u64>| Echo {
            sent: Duration::from_millis(n),
            rtt: ms.map(Duration::from_millis),
            ways: None,
        };
        let echoes: Vec<Echo> = (0..10).map(|n| echo(n, (n != 3).then_some(10 + n))).collect();
        let idle = idle(within(&echoes, Duration::ZERO, Duration::from_secs(1)));
        assert_eq!((idle.rtt_ms, idle.rtt_ms_p95), (15.0, None));
        assert_eq!((idle.echoes, idle.lost), (10, 1));
        assert_eq!(points(&echoes).len(), 9);
    }
}

//! Counters, as OpenMetrics.
//!
//! Names beginning with `node_qdisc_` are node_exporter's, with its labels `device` and `kind`, so
//! that dashboards for Linux's disciplines work; a download is listed as `IFACE:download`. What
//! only we know is named `simnel_`. Times are in seconds, rates in bits a second.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use simnel_gateway::view::{LineView, View};
use simnel_gateway::Direction;

use crate::board::Board;

#[derive(Debug)]
struct Collector {
    board: Board,
    /// True if history is saved; None if it need not be.
    is_saved: Option<bool>,
}

type Labels = Vec<(&'static str, String)>;
/// The value of a line, if it has one.
type Count = fn(&LineView) -> Option<u64>;
type Measure = fn(&LineView) -> Option<f64>;

/// Counters of a line: name, meaning, value.
const COUNTERS: [(&str, &str, Count); 6] = [
    ("node_qdisc_bytes", "Bytes sent", |line| Some(line.bytes)),
    ("node_qdisc_packets", "Packets sent", |line| Some(line.packets)),
    ("node_qdisc_overlimits", "Times that the shaper held a packet back", |line| {
        Some(line.overlimits)
    }),
    ("node_qdisc_requeues", "Packets that the device handed back", |line| Some(line.requeues)),
    ("node_qdisc_drops", "Packets dropped, redundant acknowledgements left out", |line| {
        Some(line.drops)
    }),
    ("simnel_marks", "Packets marked with CE", |line| line.marks),
];

/// Gauges of a line.
const GAUGES: [(&str, &str, Measure); 13] = [
    ("simnel_in_kernel", "1 if the kernel shapes", |line| Some(line.in_kernel.into())),
    ("node_qdisc_current_queue_length", "Packets queued", |line| Some(line.backlog_packets.into())),
    ("node_qdisc_backlog", "Bytes queued", |line| Some(line.backlog_bytes as f64)),
    ("simnel_limit_bits_per_second", "Rate that is shaped to", |line| {
        line.limit_bps.map(|limit| limit as f64)
    }),
    ("simnel_autorate_floor_bits_per_second", "Least rate that autorate sets", |line| {
        line.follows.as_ref().map(|follows| follows.floor_bps as f64)
    }),
    ("simnel_autorate_ceiling_bits_per_second", "Most rate that autorate sets", |line| {
        line.follows.as_ref().map(|follows| follows.ceiling_bps as f64)
    }),
    ("simnel_autorate_reflectors_answering", "Reflectors that answer", |line| {
        line.follows.as_ref().map(|follows| follows.answering as f64)
    }),
    ("simnel_autorate_delay_seconds", "The line's own delay above its baseline", |line| {
        line.follows.as_ref()?.delay_us.map(|delay| delay as f64 / 1e6)
    }),
    ("simnel_rate_bits_per_second", "Rate of the last second", |line| Some(line.rate_bps as f64)),
    ("simnel_packets_per_second", "Packets of the last second", |line| {
        Some(line.packets_per_s as f64)
    }),
    (
        "simnel_added_latency_p50_seconds",
        "Half of the packets of the last ten seconds waited no longer",
        |line| line.delay.map(|delay| delay.p50_ns as f64 / 1e9),
    ),
    (
        "simnel_added_latency_p99_seconds",
        "99 of 100 packets of the last ten seconds waited no longer",
        |line| line.delay.map(|delay| delay.p99_ns as f64 / 1e9),
    ),
    ("simnel_cpu_ratio", "Part of a core that the data path takes", |line| {
        line.cpu_permille.map(|share| share as f64 / 1e3)
    }),
];

impl Collector {
    fn views(&self) -> impl Iterator<Item = &View> {
        self.board.interfaces.values().map(|interface| &interface.view)
    }

    fn lines(&self) -> impl Iterator<Item = &LineView> {
        self.views().flat_map(|view| &view.lines)
    }
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, value) in COUNTERS {
            let values = self.lines().filter_map(|line| Some((labels(line), value(line)?)));
            family(&mut encoder, name, help, values, ConstCounter::new)?;
        }
        for (name, help, value) in GAUGES {
            let values = self.lines().filter_map(|line| Some((labels(line), value(line)?)));
            family(&mut encoder, name, help, values, ConstGauge::new)?;
        }
        let all = [(Labels::new(), f64::from(u8::from(self.board.trouble.is_none())))];
        let help = "1 if all control sockets may be opened";
        let all = all.into_iter();
        family(&mut encoder, "simnel_sockets_open", help, all, ConstGauge::new)?;
        let saved = self.is_saved.map(|is_saved| (Labels::new(), f64::from(u8::from(is_saved))));
        let help = "1 if history survives a restart";
        let saved = saved.into_iter();
        family(&mut encoder, "simnel_history_saved", help, saved, ConstGauge::new)?;
        let tiers =
            || self.lines().flat_map(|line| line.tiers.iter().map(move |tier| (line, tier)));
        let of_tier = |line: &LineView, tier: &str| -> Labels {
            labels(line).into_iter().chain([("tier", escaped(tier))]).collect()
        };
        let drops = tiers().map(|(line, tier)| (of_tier(line, &tier.name), tier.drops));
        family(
            &mut encoder,
            "simnel_tin_drops",
            "Packets a tier dropped",
            drops,
            ConstCounter::new,
        )?;
        let marks = tiers().map(|(line, tier)| (of_tier(line, &tier.name), tier.marks));
        family(
            &mut encoder,
            "simnel_tin_marks",
            "Packets a tier marked",
            marks,
            ConstCounter::new,
        )?;
        let delay =
            tiers().map(|(line, tier)| (of_tier(line, &tier.name), tier.delay_ns as f64 / 1e9));
        let help = "Moving average of sojourn times";
        family(&mut encoder, "simnel_tin_delay_seconds", help, delay, ConstGauge::new)?;
        let backlog =
            tiers().map(|(line, tier)| (of_tier(line, &tier.name), tier.backlog_bytes as f64));
        family(&mut encoder, "simnel_tin_backlog_bytes", "Bytes queued", backlog, ConstGauge::new)
    }
}

/// All values under one name.
fn family<V, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Labels, V)>,
    metric: impl Fn(V) -> M,
) -> std::fmt::Result {
    let mut metrics = values.map(|(labels, value)| (labels, metric(value))).peekable();
    let Some((_, first)) = metrics.peek() else { return Ok(()) };
    let mut all = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    metrics.try_for_each(|(labels, metric)| metric.encode(all.encode_family(&labels)?))
}

fn labels(line: &LineView) -> Labels {
    let device = match line.direction {
        Direction::Upload => line.dev.clone(),
        Direction::Download => format!("{}:download", line.dev),
    };
    let kind = line.config.split_whitespace().next().unwrap_or_default();
    vec![("device", escaped(&device)), ("kind", escaped(kind))]
}

/// The value of a label between its quotation marks, which the encoder does not escape (OpenMetrics
/// 1.0, "Escaping").
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

/// Everything on `board`.
pub(crate) fn write(board: Board, is_saved: Option<bool>) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector { board, is_saved }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use simnel_gateway::view::{Delay, Follows, TierView};

    use super::*;
    use crate::board::Interface;

    /// A board on which nothing is unknown.
    fn full() -> Board {
        let tier = TierView {
            name: "Voice".into(),
            rate_bps: 1,
            backlog_bytes: 2,
            drops: 3,
            marks: 4,
            delay_ns: 5_000_000,
        };
        let line = LineView {
            dev: "wan".into(),
            direction: Direction::Download,
            in_kernel: false,
            config: "cake bandwidth 20mbit".into(),
            limit_bps: Some(20_000_000),
            rate_bps: 1_000,
            packets_per_s: 7,
            bytes: 123,
            packets: 11,
            overlimits: 12,
            requeues: 13,
            backlog_packets: 4,
            backlog_bytes: 6_000,
            drops: 8,
            new_drops: 0,
            marks: Some(9),
            new_marks: Some(0),
            delay: Some(Delay { now_ns: 0, p50_ns: 1_000_000, p99_ns: 4_500_000, last_p99_ns: 9 }),
            tiers: vec![tier],
            cpu_permille: Some(20),
            headroom_bps: None,
            follows: Some(Follows {
                floor_bps: 10_000_000,
                ceiling_bps: 80_000_000,
                reason: None,
                reflectors: 10,
                answering: 4,
                delay_us: Some(2_500),
            }),
        };
        let view = View { lines: vec![line], ..View::default() };
        let interface = Interface { view, ..Interface::default() };
        let mut board = Board::default();
        board.interfaces.insert("wan".into(), Arc::new(interface));
        board
    }

    /// Names of metrics in `text`.
    fn names(text: &str) -> impl Iterator<Item = &str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("simnel_") || word.starts_with("node_"))
    }

    /// A scrape is of ten looks; a chart has a point for each.
    #[test]
    fn a_point_is_of_the_last_look_and_a_scrape_of_ten() {
        let board = full();
        let point = crate::history::Point::of(&board.interfaces["wan"].view, 7);
        assert_eq!((point.at_s, point.p99_ns), (7, [9, 0]));
        assert!(write(board, None).unwrap().contains("p99_seconds{"));
    }

    #[test]
    fn the_dashboard_shows_what_there_is() {
        let dashboard = include_str!("../../../dist/grafana.json");
        serde_json::from_str::<serde_json::Value>(dashboard).expect("JSON");
        let written = write(full(), Some(true)).unwrap();
        let there: Vec<&str> = names(&written).collect();
        let mut shown: Vec<&str> = names(dashboard).collect();
        shown.sort_unstable();
        shown.dedup();
        assert!(shown.len() >= 10, "{shown:?}");
        for name in shown {
            assert!(there.contains(&name), "`{name}` is not among the metrics");
        }
    }

    /// The field of `value` that a template or a filter names, such as `interfaces[0].point`.
    fn field<'a>(mut value: &'a Value, path: &str) -> Option<&'a Value> {
        for part in path.split(['.', '[']) {
            value = match part.strip_suffix(']') {
                Some(index) => value.get(index.parse::<usize>().ok()?)?,
                None => value.get(part)?,
            };
        }
        Some(value)
    }

    #[test]
    fn the_manual_names_what_there_is() {
        let manual = include_str!("../../../docs/OPERATING.md");
        let section = manual.split("### Home Assistant").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let interfaces = full().told();
        let point = field(&interfaces, "interfaces[0].point").unwrap();
        let is_path = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
        let paths: Vec<&str> = section
            .split("value_json.")
            .skip(1)
            .map(|rest| rest.split(|c| !is_path(c)).next().unwrap())
            .collect();
        assert_eq!(paths.len(), 4, "{paths:?}");
        for path in paths {
            // Of an answer, or of a point in a message.
            let there = field(&interfaces, path).or(field(point, path));
            assert!(there.is_some_and(|value| !value.is_object()), "`{path}` is no value");
        }
        for key in ["name", "point"] {
            assert!(section.contains(&format!(".{key}")), "{key}");
            assert!(field(&interfaces, &format!("interfaces[0].{key}")).is_some(), "{key}");
        }
        let written = write(full(), Some(true)).unwrap();
        let there: Vec<&str> = names(&written).collect();
        let inputs = section.split("fieldpass").nth(1).and_then(|rest| rest.split(']').next());
        let named: Vec<&str> = names(inputs.unwrap()).collect();
        assert_eq!(named.len(), 3, "{named:?}");
        for name in named {
            assert!(there.contains(&name), "`{name}` is not among the metrics");
        }
    }

    #[test]
    fn the_meaning_of_a_percentile_names_its_window() {
        let window = simnel_gateway::view::WINDOW as u32 * crate::board::EVERY;
        assert_eq!(window.as_secs(), 10, "the texts say ten seconds");
        let text = write(full(), Some(true)).unwrap();
        let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
        let is_percentile = |name: &str| {
            let is_one =
                |part: &str| part.strip_prefix('p').is_some_and(|n| n.parse::<u8>().is_ok());
            name.split('_').any(is_one)
        };
        let told: Vec<_> = helps.filter(|(name, _)| is_percentile(name)).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told.iter().all(|(_, help)| help.contains("of the last ten seconds")), "{told:?}");
    }

    /// Linux lets an interface's name have what a label must not.
    #[test]
    fn labels_are_escaped() {
        let mut board = full();
        for interface in board.interfaces.values_mut() {
            Arc::make_mut(interface).view.lines[0].dev = r#"a"b\c"#.into();
        }
        let text = write(board, None).unwrap();
        let line = r#"node_qdisc_bytes_total{device="a\"b\\c:download",kind="cake"} 123"#;
        assert!(text.lines().any(|found| found == line), "no `{line}` in:\n{text}");
        assert_eq!(escaped("a\nb"), r"a\nb");
    }

    #[test]
    fn a_scraper_finds_the_names_that_it_knows() {
        let text = write(full(), Some(true)).unwrap();
        let labels = r#"{device="wan:download",kind="cake"}"#;
        for line in [
            format!("node_qdisc_bytes_total{labels} 123"),
            format!("node_qdisc_packets_total{labels} 11"),
            format!("node_qdisc_overlimits_total{labels} 12"),
            format!("node_qdisc_requeues_total{labels} 13"),
            format!("node_qdisc_drops_total{labels} 8"),
            format!("node_qdisc_current_queue_length{labels} 4.0"),
            format!("simnel_limit_bits_per_second{labels} 20000000.0"),
            format!("simnel_added_latency_p99_seconds{labels} 0.0045"),
            format!("simnel_autorate_floor_bits_per_second{labels} 10000000.0"),
            format!("simnel_autorate_ceiling_bits_per_second{labels} 80000000.0"),
            format!("simnel_autorate_reflectors_answering{labels} 4.0"),
            format!("simnel_autorate_delay_seconds{labels} 0.0025"),
            "simnel_history_saved{} 1.0".into(),
            r#"simnel_tin_drops_total{device="wan:download",kind="cake",tier="Voice"} 3"#.into(),
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in:\n{text}");
        }
        let mut unknown = full();
        for interface in unknown.interfaces.values_mut() {
            Arc::make_mut(interface).view.lines[0].cpu_permille = None;
        }
        let less = write(unknown, None).unwrap();
        assert!(text.contains("simnel_cpu_ratio") && !less.contains("simnel_cpu_ratio"), "{less}");
        assert!(text.ends_with("# EOF\n"));
        assert!(text.contains("simnel_sockets_open{} 1.0"), "{text}");
        let empty = "# HELP simnel_sockets_open 1 if all control sockets may be opened\n\
                     # TYPE simnel_sockets_open gauge\nsimnel_sockets_open{} 1.0\n# EOF\n";
        assert_eq!(write(Board::default(), None).unwrap(), empty);
        let refused = Board { trouble: Some("a right is missing".into()), ..Board::default() };
        assert!(write(refused, None).unwrap().contains("simnel_sockets_open{} 0.0"));
    }
}

//! Our reading and printing against the real `tc`: recordings made by scripts/record-tc.sh.
//!
//! Each recorded block holds words, the text and the JSON that `tc` printed for them. Reading the
//! words must give settings that print as that text and that JSON, byte for byte. The numbers of
//! the statistics are taken from the JSON, so that the text is rebuilt from them.

mod netlink;
mod words;

use serde_json::Value;
use simnel_core::qdisc::{
    self, cake, codel, fifo, fq_codel, htb, pie, red, sfb, sfq, Backlog, Chance, Config, Detail,
    Device, DropReason, Parent, QdiscView, Snapshot, Statistics, Totals, UnlessZero,
};
use simnel_core::rate::Rate;
use simnel_core::tc::{units, Digits};
use simnel_core::time::Span;

const OPTIONS: &str = include_str!("../data/tc/options.txt");
const AQM_OPTIONS: &str = include_str!("../data/tc/aqm_options.txt");
const AQM_STATISTICS: &str = include_str!("../data/tc/aqm_statistics.txt");
const FAIR_OPTIONS: &str = include_str!("../data/tc/fair_options.txt");
const FAIR_STATISTICS: &str = include_str!("../data/tc/fair_statistics.txt");
const STATISTICS: &str = include_str!("../data/tc/statistics.txt");
const UNITS: &str = include_str!("../data/tc/units.txt");

/// Words that `tc` 6.1 refuses and we take, because they are what `tc` itself prints (sizes with a
/// unit, packets with a p), or ours.
const WE_ALSO_TAKE: &[&str] = &[
    "pfifo limit 10p",
    "pie limit 100p",
    "codel limit 500p",
    "drr quantum 1000",
    "sfq redflowlimit 20k min 4k max 10k",
];

/// Beginnings of words whose printed form `tc` itself would print otherwise, were it read. It cuts
/// 64 ns units to microseconds, and of a latency it prints three digits.
const DRIFTS: &[&str] = &["pie target 100us", "tbf "];

/// True if what `tc` printed for `words` would print otherwise if it was read. CoDel's units of
/// 1024 ns do not fit microseconds. And fq_codel's `noecn` is not printed, though not the default.
fn drifts(words: &str, text: &str) -> bool {
    DRIFTS.iter().any(|start| words.starts_with(start))
        || text.contains("codel ") && (text.contains("us ") || words.contains("noecn"))
        || text.contains("codel ") && text.contains("us ")
}

/// One recorded block: the words, and the text and the JSON if `tc` took them.
struct Block<'a> {
    words: &'a str,
    answer: Option<(&'a str, &'a str)>,
}

fn blocks(file: &'static str) -> Vec<Block<'static>> {
    let first = file.find("\n$ ").expect("a block") + 3;
    let read = |block: &'static str| {
        let (words, rest) = block.split_once('\n').expect("words");
        let answer = (!rest.starts_with('!')).then(|| {
            let json = rest.find("\n[").expect("JSON") + 1;
            (rest[..json].trim_end_matches('\n'), rest[json..].trim_end_matches('\n'))
        });
        Block { words, answer }
    };
    file[first..].split("\n$ ").map(read).collect()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn handle(text: &str) -> u32 {
    let (major, minor) = text.split_once(':').unwrap();
    let part = |digits: &str| match digits {
        "" => 0,
        digits => u32::from_str_radix(digits, 16).unwrap(),
    };
    part(major) << 16 | part(minor)
}

fn tin(tin: &Value) -> cake::TinStats {
    let n = |key| number(tin, key);
    let small = |key| n(key).try_into().unwrap();
    let count = |key| n(key).try_into().unwrap();
    cake::TinStats {
        threshold_rate: Rate(n("threshold_rate")),
        sent_bytes: n("sent_bytes"),
        sent_packets: n("sent_packets"),
        backlog_bytes: n("backlog_bytes"),
        dropped_bytes: 0,
        target: Span::from_micros(n("target_us")),
        interval: Span::from_micros(n("interval_us")),
        peak_delay: Span::from_micros(n("peak_delay_us")),
        avg_delay: Span::from_micros(n("avg_delay_us")),
        base_delay: Span::from_micros(n("base_delay_us")),
        way_direct_hits: 0,
        way_indirect_hits: count("way_indirect_hits"),
        way_misses: count("way_misses"),
        way_collisions: count("way_collisions"),
        drops: count("drops"),
        ecn_mark: count("ecn_mark"),
        ack_drops: count("ack_drops"),
        sparse_flows: small("sparse_flows"),
        bulk_flows: small("bulk_flows"),
        unresponsive_flows: small("unresponsive_flows"),
        max_pkt_len: small("max_pkt_len"),
        flow_quantum: small("flow_quantum"),
    }
}

fn cake(qdisc: &Value) -> cake::Stats {
    let n = |key| number(qdisc, key);
    let small = |key| n(key).try_into().unwrap();
    let list = qdisc["tins"].as_array().expect("tins");
    let mut stats = cake::Stats {
        memory_used: n("memory_used").try_into().unwrap(),
        memory_limit: n("memory_limit").try_into().unwrap(),
        overruns: 0,
        capacity_estimate: Rate(n("capacity_estimate")),
        min_network_size: small("min_network_size"),
        max_network_size: small("max_network_size"),
        min_adj_size: small("min_adj_size"),
        max_adj_size: small("max_adj_size"),
        avg_hdr_offset: small("avg_hdr_offset"),
        tin_count: list.len().try_into().unwrap(),
        ..cake::Stats::default()
    };
    for (to, from) in stats.tins.iter_mut().zip(list) {
        *to = tin(from);
    }
    stats
}

/// The fraction that the JSON shows, in units of `1/whole`.
fn fraction(qdisc: &Value, key: &str, whole: u64) -> u64 {
    (qdisc[key].as_f64().unwrap_or_else(|| panic!("{key}")) * whole as f64).round() as u64
}

fn pie(qdisc: &Value) -> pie::Stats {
    let n = |key| number(qdisc, key).try_into().unwrap();
    pie::Stats {
        probability: fraction(qdisc, "prob", simnel_core::aqm::pie::MAX_PROB),
        delay: Span::from_micros(number(qdisc, "delay")),
        departure_rate: qdisc["avg_dq_rate"].as_u64(),
        packets_in: n("pkts_in"),
        overlimit: n("overlimit"),
        dropped: n("dropped"),
        max_queue: n("maxq"),
        ecn_mark: n("ecn_mark"),
    }
}

fn sfb(qdisc: &Value) -> sfb::Stats {
    let n = |key| number(qdisc, key).try_into().unwrap();
    let prob = |key| Chance(fraction(qdisc, key, u16::MAX.into()));
    sfb::Stats {
        earlydrop: n("earlydrop"),
        penaltydrop: n("penaltydrop"),
        bucketdrop: n("bucketdrop"),
        queuedrop: n("queuedrop"),
        childdrop: n("childdrop"),
        marked: n("marked"),
        maxqlen: n("maxqlen"),
        maxprob: prob("maxprob"),
        avgprob: prob("avgprob"),
    }
}

fn red(qdisc: &Value) -> red::Stats {
    let n = |key| number(qdisc, key).try_into().unwrap();
    red::Stats { marked: n("marked"), early: n("early"), pdrop: n("pdrop") }
}

fn codel(qdisc: &Value) -> codel::Stats {
    let n = |key| number(qdisc, key).try_into().unwrap();
    codel::Stats {
        count: n("count"),
        lastcount: n("lastcount"),
        last_delay: Span::from_micros(number(qdisc, "ldelay")),
        dropping: qdisc.get("dropping").is_some(),
        drop_next_us: qdisc["drop_next"].as_i64().unwrap().try_into().unwrap(),
        max_packet: n("maxpacket"),
        ecn_mark: n("ecn_mark"),
        drop_overlimit: n("drop_overlimit"),
        ce_mark: qdisc["ce_mark"].as_u64().unwrap_or(0).try_into().unwrap(),
    }
}

fn fq_codel(qdisc: &Value) -> fq_codel::Stats {
    let n = |key| number(qdisc, key).try_into().unwrap();
    let rare = |key| UnlessZero(qdisc[key].as_u64().unwrap_or(0).try_into().unwrap());
    fq_codel::Stats {
        maxpacket: n("maxpacket"),
        drop_overlimit: n("drop_overlimit"),
        ecn_mark: n("ecn_mark"),
        ce_mark: rare("ce_mark"),
        new_flow_count: n("new_flow_count"),
        new_flows_len: n("new_flows_len"),
        old_flows_len: n("old_flows_len"),
        memory_used: rare("memory_used"),
        drop_overmemory: rare("drop_overmemory"),
    }
}

fn sfq(options: &Value) -> sfq::Stats {
    let n = |key| number(options, key).try_into().unwrap();
    sfq::Stats {
        prob_mark: n("prob_mark"),
        prob_mark_head: n("prob_mark_head"),
        prob_drop: n("prob_drop"),
        forced_mark: n("forced_mark"),
        forced_mark_head: n("forced_mark_head"),
        forced_drop: n("forced_drop"),
    }
}

fn snapshot(qdisc: &Value) -> Snapshot {
    let n = |key| number(qdisc, key);
    let mut totals = Totals {
        sent_packets: n("packets"),
        sent_bytes: n("bytes"),
        overlimits: n("overlimits"),
        ..Totals::default()
    };
    totals.dropped[DropReason::Congested as usize] = n("drops");
    let detail = match qdisc["kind"].as_str() {
        Some("cake") => Detail::Cake(cake(qdisc)),
        Some("codel") => Detail::Codel(codel(qdisc)),
        Some("fq_codel") => Detail::FqCodel(fq_codel(qdisc)),
        Some("sfq") => {
            let options = &qdisc["options"];
            Detail::Sfq(options.get("ewma").map(|_| sfq(options)))
        }
        Some("pie") => Detail::Pie(pie(qdisc)),
        Some("red") => Detail::Red(red(qdisc)),
        Some("sfb") => Detail::Sfb(sfb(qdisc)),
        Some("htb") => Detail::Htb(htb::Stats {
            direct_packets: number(&qdisc["options"], "direct_packets_stat").try_into().unwrap(),
        }),
        _ => Detail::Fifo(()),
    };
    let backlog = Backlog { packets: n("qlen").try_into().unwrap(), bytes: n("backlog") };
    Snapshot { totals, backlog, detail }
}

fn view<'a>(qdisc: &'a Value, config: &'a Config, snapshot: Option<&'a Snapshot>) -> QdiscView<'a> {
    QdiscView {
        handle: handle(qdisc["handle"].as_str().unwrap()),
        dev: qdisc["dev"].as_str(),
        parent: match qdisc["parent"].as_str() {
            Some(class) => Parent::Class(handle(class)),
            None => Parent::Root,
        },
        refcnt: qdisc["refcnt"].as_u64().unwrap_or(1).try_into().unwrap(),
        config,
        snapshot,
    }
}

/// Takes the limit from the recording where the words name none: Linux shows the device's then.
fn with_limit(mut config: Config, qdisc: &Value) -> Config {
    if let Config::Fifo(fifo::Params { limit: limit @ None, .. }) = &mut config {
        *limit = Some(number(&qdisc["options"], "limit").try_into().unwrap());
    }
    config.resolved(&Device::default())
}

/// The recording kernel counted 100 jiffies a second, and `pie` its period in jiffies.
fn with_jiffies(mut config: Config) -> Config {
    if let Config::Pie(params) = &mut config {
        let jiffy = Span::from_millis(10);
        params.aqm.tupdate = jiffy * params.aqm.tupdate.0.div_ceil(jiffy.0);
    }
    config
}

/// True if we have the discipline that `words` begin with.
fn known(words: &str) -> bool {
    let name = words.split(' ').next();
    qdisc::disciplines().iter().any(|discipline| Some(discipline.name) == name)
}

/// A rate that autorate found has more digits than the text shows; take it from the JSON.
fn with_rate(mut config: Config, qdisc: &Value) -> Config {
    if let (Config::Cake(params), Some(rate)) =
        (&mut config, qdisc["options"]["bandwidth"].as_u64())
    {
        params.bandwidth = Rate(rate);
    }
    config
}

/// The words of a discipline as `tc` printed them, from the first line of its text.
fn options(text: &str) -> String {
    let line = text.lines().next().unwrap();
    let mut words: Vec<&str> = line.split_whitespace().collect();
    words.remove(0);
    words.remove(1);
    for pair in ["dev", "parent", "refcnt", "direct_packets_stat"] {
        if let Some(at) = words.iter().position(|word| *word == pair) {
            words.drain(at..at + 2);
        }
    }
    words.retain(|word| *word != "root");
    // What `tc` needs and does not print.
    if words[0] == "red" {
        words.extend(["avpkt", "1000"]);
    }
    words.join(" ")
}

#[test]
fn settings_as_recorded() {
    let blocks: Vec<_> =
        [OPTIONS, AQM_OPTIONS, FAIR_OPTIONS].into_iter().flat_map(blocks).collect();
    assert!(blocks.len() > 380, "{} blocks", blocks.len());
    for Block { words, answer } in blocks.into_iter().filter(|block| known(block.words)) {
        let config = qdisc::parse(words);
        let Some((text, json)) = answer else {
            assert_eq!(config.is_ok(), WE_ALSO_TAKE.contains(&words), "{words}: {config:?}");
            continue;
        };
        let parsed: Value = serde_json::from_str(json).unwrap();
        let config = config.unwrap_or_else(|e| panic!("{words}: {e}"));
        let config = with_jiffies(with_limit(config, &parsed[0]));
        let views = [view(&parsed[0], &config, None)];
        let (mut our_text, mut our_json) = (String::new(), String::new());
        qdisc::show(&mut our_text, &views, Statistics::Tc).unwrap();
        qdisc::show_json(&mut our_json, &views, Statistics::Tc).unwrap();
        assert_eq!(our_text.trim_end_matches('\n'), text, "{words}");
        assert_eq!(our_json.trim_end_matches('\n'), json, "{words}");

        // What tc prints can be read, and nothing is lost beyond the digits that tc drops.
        let again = qdisc::parse(&options(text)).unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut printed = String::new();
        again.write_words(Digits::AsTc, &mut printed).unwrap();
        assert!(text.ends_with(&printed) || drifts(words, text), "{text} against {printed}");
    }
}

#[test]
fn statistics_as_recorded() {
    let blocks: Vec<_> =
        [STATISTICS, AQM_STATISTICS, FAIR_STATISTICS].into_iter().flat_map(blocks).collect();
    assert!(blocks.len() > 80, "{} blocks", blocks.len());
    let (mut compared, mut backlogged, mut marked) = (0, 0, 0);
    for Block { words, answer } in blocks {
        let (text, json) = answer.expect("an answer");
        let parsed: Value = serde_json::from_str(json).unwrap();
        let mut texts: Vec<String> = Vec::new();
        for line in text.split_inclusive('\n') {
            match texts.last_mut() {
                Some(last) if !line.starts_with("qdisc ") => last.push_str(line),
                _ => texts.push(line.to_string()),
            }
        }
        let qdiscs = parsed.as_array().unwrap();
        assert_eq!(texts.len(), qdiscs.len(), "{words}");
        let mut found = 0;
        for (qdisc, text) in qdiscs.iter().zip(&texts) {
            // Disciplines that only surround ours in the recording.
            let kind = qdisc["kind"].as_str().unwrap();
            if !known(kind) || (kind == "tbf" && !words.starts_with("tbf")) {
                continue;
            }
            found += 1;
            // What the recorder asked for, where what tc printed is not quite that.
            let asked = words.split(", ").next().unwrap();
            let text_words = if drifts(words, text) { asked.into() } else { options(text) };
            let config = qdisc::parse(&text_words).unwrap_or_else(|e| panic!("{text}: {e}"));
            let config = with_rate(config.resolved(&Device::default()), qdisc);
            let snapshot = snapshot(qdisc);
            backlogged += usize::from(snapshot.backlog.packets > 0);
            marked += usize::from(text.lines().any(|line| {
                line.starts_with("  marks ") && line.bytes().any(|b| (b'1'..=b'9').contains(&b))
            }));
            let views = [view(qdisc, &config, Some(&snapshot))];
            let (mut our_text, mut our_json) = (String::new(), String::new());
            qdisc::show(&mut our_text, &views, Statistics::Tc).unwrap();
            qdisc::show_json(&mut our_json, &views, Statistics::Tc).unwrap();
            // The shell that recorded it dropped line feeds at the end.
            let trim = |text: &str| text.trim_end_matches('\n').to_string();
            assert_eq!(trim(&our_text), trim(text), "{words}");
            let ours = trim(&our_json);
            let ours = &ours[1..ours.len() - 1];
            assert!(json.contains(ours), "{words}\n{json}\n{ours}");
            if qdiscs.len() == 1 {
                assert_eq!(ours, &json[1..json.len() - 1]);
            }
            compared += 1;

            // Our own counters only add: tc's part stays as it is.
            let mut all = String::new();
            qdisc::show(&mut all, &views, Statistics::All).unwrap();
            assert!(all.len() > our_text.len());
            let mut all = String::new();
            qdisc::show_json(&mut all, &views, Statistics::All).unwrap();
            let all: Value = serde_json::from_str(&all).expect("valid JSON");
            for (key, value) in qdisc.as_object().unwrap() {
                if key != "tins" {
                    assert_eq!(&all[0][key], value, "{key}");
                }
            }
        }
        assert!(found > 0 || !known(words), "{words}");
    }
    assert!(compared > 30 && backlogged > 5, "{compared} compared, {backlogged} with a backlog");
    assert!(marked > 0, "no recording with CE marks");
}

/// Words of classes, in pairs with what `tc class show` prints.
#[test]
fn classes_as_recorded() {
    let file = include_str!("../data/tc/aqm_classes.txt");
    let first = file.find("\n$ ").unwrap() + 3;
    let mut compared = 0;
    for block in file[first..].split("\n$ ") {
        let (words, text) = block.split_once('\n').unwrap();
        let tree = "class 1:1 rate 10mbit burst 15000 \
                    class 1:10 parent 1:1 rate 2mbit ceil 10mbit burst 6000 prio 1 \
                    class 1:20 parent 1:1 rate 8mbit ceil 10mbit burst 8000 prio 2 quantum 1514";
        let ours = match words {
            "a tree" => format!("htb {tree}"),
            words => format!("htb class 1:10 {words}"),
        };
        let Ok(Config::Htb(params)) = qdisc::parse(&ours) else { panic!("{ours}") };
        for class in &params.classes {
            let mut line = String::new();
            qdisc::htb::write_class(1, &params, class, None, &mut line).unwrap();
            assert!(text.contains(&line), "{words}: {line}{text}");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
}

#[test]
fn a_table_of_tiers_ends_with_an_empty_line() {
    let config = qdisc::parse("cake").unwrap();
    let detail = Detail::Cake(cake::Stats { tin_count: 1, ..cake::Stats::default() });
    let snapshot = Snapshot { totals: Totals::default(), backlog: Backlog::default(), detail };
    let view = QdiscView {
        handle: 0x8001_0000,
        dev: None,
        parent: Parent::Root,
        refcnt: 2,
        config: &config,
        snapshot: Some(&snapshot),
    };
    let mut text = String::new();
    qdisc::show(&mut text, &[view], Statistics::Tc).unwrap();
    assert!(text.ends_with("  quantum             0\n\n"), "{text:?}");
}

#[test]
fn units_as_recorded() {
    let mut compared = 0;
    for line in UNITS.lines().filter(|line| !line.starts_with('#')) {
        let [kind, word, value, shown] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        // strtod takes a sign and the conversion wraps around: no use to anybody.
        let refused = shown == "-" && value == "-" || word.starts_with('-');
        let mut text = String::new();
        let read = match kind {
            "rate" => units::rate(word).map(|rate| {
                units::write_rate(rate, Digits::AsTc, &mut text).unwrap();
                (rate.0, "unlimited")
            }),
            "time" => units::micros(word).map(|micros| {
                let span = Span::from_micros(micros.into());
                units::write_time(span, Digits::AsTc, &mut text).unwrap();
                (micros.into(), "100ms")
            }),
            "size" => units::size(word).map(|bytes| {
                units::write_size(bytes.into(), Digits::AsTc, &mut text).unwrap();
                (bytes.into(), "-")
            }),
            _ => panic!("{line}"),
        };
        compared += 1;
        match read {
            // A zero is not sent by tc: what is shown is what stands for "not set".
            Ok((0, unset)) => assert_eq!(shown, unset, "{line}"),
            Ok((number, _)) => assert_eq!((number.to_string().as_str(), &*text), (value, shown)),
            Err(_) => assert!(refused, "{line}"),
        }
        assert!(!refused || read.is_err() || kind == "size", "{line}: {read:?}");
    }
    assert!(compared > 500, "{compared} values");
}

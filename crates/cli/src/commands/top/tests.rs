use std::net::IpAddr;

use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use simnel_gateway::flows::{FlowEntry, HeldFlow};
use simnel_gateway::view::{Delay, FlowView, HeldHost, HostView, LineView, TierView, View};
use simnel_gateway::Direction;

use super::screen;
use super::state::{Next, State, Table};

fn line(direction: Direction) -> LineView {
    let tier = |name: &str, drops| TierView {
        name: name.to_owned(),
        rate_bps: 1_000_000,
        backlog_bytes: 3_028,
        drops,
        marks: 0,
        delay_ns: 2_000_000,
    };
    LineView {
        dev: "wan".to_owned(),
        direction,
        in_kernel: false,
        config: "cake bandwidth 10mbit".to_owned(),
        limit_bps: Some(10_000_000),
        rate_bps: 9_700_000,
        packets_per_s: 800,
        bytes: 1_000_000,
        packets: 11,
        overlimits: 12,
        requeues: 13,
        backlog_packets: 20,
        backlog_bytes: 30_280,
        drops: 1_234,
        new_drops: 0,
        marks: Some(7),
        new_marks: Some(0),
        delay: Some(Delay {
            now_ns: 4_200_000,
            p50_ns: 3_000_000,
            p99_ns: 12_000_000,
            last_p99_ns: 5_000_000,
        }),
        tiers: vec![tier("Bulk", 1), tier("Best Effort", 2), tier("Voice", 3)],
        cpu_permille: Some(23),
        headroom_bps: Some(412_000_000),
        follows: None,
    }
}

fn flow(host: &str, address: [u8; 4], port: u16, rate_bps: u64) -> FlowView {
    FlowView {
        entry: FlowEntry {
            dev: "wan".to_owned(),
            direction: Direction::Upload,
            source: IpAddr::from(address),
            destination: IpAddr::from([192, 0, 2, 1]),
            sport: 40_000,
            dport: port,
            protocol: 6,
            packets: 10,
            bytes: 1_000,
            rtt_ns: Some(31_000_000),
            tracked: None,
            held: Some(HeldFlow {
                drops: 3,
                backlog_packets: 1,
                backlog_bytes: 1_514,
                sojourn_ns: 4_000_000,
                sojourn_p99_ns: 9_000_000,
                ..HeldFlow::default()
            }),
        },
        host: Some(host.to_owned()),
        rate_bps,
        class: Some("Best Effort".to_owned()),
    }
}

fn host(name: &str, address: [u8; 4], upload_bps: u64, download_bps: u64) -> HostView {
    HostView {
        address: IpAddr::from(address),
        name: Some(name.to_owned()),
        upload_bps,
        download_bps,
        active_flows: 3,
        flows: 4,
        held: Some(HeldHost { backlog_packets: 9, drops: 5, marks: 0, sojourn_p99_ns: 8_000_000 }),
    }
}

fn state() -> State {
    let (laptop, phone) = ([10, 0, 0, 2], [10, 0, 0, 3]);
    let view = View {
        words: vec!["the upload is full: laptop, 3 flows; calls wait 4.2 ms".to_owned()],
        lines: vec![line(Direction::Upload), line(Direction::Download)],
        hosts: vec![host("laptop", laptop, 9_000_000, 10_000), host("phone", phone, 5, 2_000_000)],
        flows: vec![flow("laptop", laptop, 443, 8_000_000), flow("phone", phone, 5004, 64_000)],
        untold: None,
    };
    State::new("wan".to_owned(), view)
}

fn press(state: &mut State, keys: &str) -> Next {
    let mut last = Next::Stay;
    for c in keys.chars() {
        let code = match c {
            '\t' => KeyCode::Tab,
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        last = state.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

fn shown(state: &State, columns: u16) -> String {
    screen::text(state, (columns, 24))
}

fn order(text: &str, first: &str, second: &str) -> bool {
    let body = &text[text.find("host").expect("a table")..];
    body.find(first).expect(first) < body.find(second).expect(second)
}

#[test]
fn eighty_columns_hold_every_figure() {
    for columns in [80, 100, 160] {
        let text = shown(&state(), columns);
        for figure in [
            "the upload is full: laptop, 3 flows; calls wait 4.2 ms",
            "9.70M 10.0M",
            "3.0 ms",
            "12 ms",
            "30 kB",
            "1234",
            "2.3%",
            "Best Effort",
            "laptop (10.0.0.2)",
            "9.00M",
            "3/4",
        ] {
            assert!(text.contains(figure), "{columns} columns lack `{figure}`:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)));
    }
    let mut flows = state();
    press(&mut flows, "\t");
    let text = shown(&flows, 80);
    let far = "tcp 192.0.2.1:443";
    for figure in ["up ", "laptop", far, "8.00M", "9.0 ms", "31 ms", "Best Effort"] {
        assert!(text.contains(figure), "80 columns lack `{figure}`:\n{text}");
    }
    // Who has no name is told by an address.
    flows.view.flows[0].host = None;
    flows.view.flows[0].entry.source = [192, 168, 177, 111].into();
    let text = shown(&flows, 80);
    assert!(text.contains(&format!("up   192.168.177.111 {far}")), "{text}");
}

/// Numbers with their units.
fn figures(text: &str) -> Vec<&str> {
    let words = text.split([' ', '\n']);
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '.')).collect()
}

#[test]
fn a_narrow_screen_lacks_columns_and_no_digit() {
    let mut state = state();
    state.view.lines[0].limit_bps = Some(2_240_000);
    state.view.lines[0].backlog_bytes = 9_999_999;
    state.view.hosts[0].flows = 1_024;
    state.view.words = vec!["full".to_owned()];
    for keys in ["", "\t"] {
        press(&mut state, keys);
        let wide = shown(&state, 200);
        let all = figures(&wide);
        let mut counts = Vec::new();
        for columns in (20..=160).step_by(5) {
            let text = shown(&state, columns);
            let there = figures(&text);
            for figure in &there {
                let is_cut = figure.ends_with('…');
                assert!(is_cut || all.contains(figure), "{columns} columns: `{figure}`\n{text}");
            }
            counts.push(there.len());
        }
        assert!(counts.first() < counts.last() && counts.is_sorted(), "{counts:?}");
    }
    let text = shown(&state, 40);
    assert!(text.contains("2.24M") && text.contains("12 ms"), "{text}");
}

#[test]
fn a_narrow_screen_lacks_keys_and_cuts_none() {
    let mut state = state();
    let foot = |state: &State, columns| {
        let mut terminal = Terminal::new(TestBackend::new(columns, 24)).unwrap();
        terminal.draw(|frame| screen::draw(state, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells = (0..columns).map(|column| buffer[(column, 23)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    let whole = foot(&state, 200);
    let all: Vec<&str> = whole.split("  ").collect();
    assert_eq!(all.len(), 7, "{all:?}");
    let mut before = 0;
    for columns in 14..=80 {
        let text = foot(&state, columns);
        let there: Vec<&str> = text.split("  ").collect();
        assert!(there.iter().all(|key| all.contains(key)), "{columns} columns: {text}");
        assert!(there.contains(&"q quit") && there.len() >= before, "{columns} columns: {text}");
        before = there.len();
    }
    assert_eq!(before, 7);
    press(&mut state, "/a host of some length\n");
    assert!(foot(&state, 40).ends_with("? help  q quit"), "{}", foot(&state, 40));
    assert!(foot(&state, 20).ends_with('…'));
}

#[test]
fn keys_sort_reverse_filter_and_pause() {
    let mut state = state();
    assert!(order(&shown(&state, 100), "phone", "laptop"), "by download");
    press(&mut state, "S");
    assert!(order(&shown(&state, 100), "laptop", "phone"), "by upload");
    press(&mut state, "r");
    assert!(order(&shown(&state, 100), "phone", "laptop"), "reversed");
    press(&mut state, "/PHO\n");
    let hosts: Vec<_> = state.hosts().iter().map(|host| host.name.clone().unwrap()).collect();
    assert_eq!(hosts, ["phone"]);
    press(&mut state, "\t");
    assert_eq!((state.table, state.flows().len()), (Table::Flows, 1));
    press(&mut state, "\x1b");
    assert_eq!(state.flows().len(), 2);
    press(&mut state, "/q5004");
    assert!(state.typing, "letters go into the filter");
    press(&mut state, "\x1bp");
    state.renew(View::default());
    assert_eq!(state.view.lines.len(), 2, "paused");
    press(&mut state, "p");
    state.renew(View::default());
    assert_eq!(state.view.lines.len(), 0);
    assert_eq!(press(&mut state, "q"), Next::Quit);
}

#[test]
fn help_lies_over_the_rest_until_a_key() {
    let mut state = state();
    press(&mut state, "?");
    assert!(shown(&state, 80).contains("sort by the next column"));
    assert!(shown(&state, 60).contains("that the data path's"), "{}", shown(&state, 60));
    assert_eq!(press(&mut state, "x"), Next::Stay);
    assert!(!shown(&state, 80).contains("sort by the next column"));
}

#[test]
fn what_more_can_be_carried_is_said_while_that_is_known() {
    let mut state = state();
    let words = "upload 412 Mbit/s, download 412 Mbit/s more at this cost";
    assert!(shown(&state, 80).contains(words), "{}", shown(&state, 80));
    state.view.lines[0].headroom_bps = None;
    assert!(shown(&state, 80).contains("room for download 412 Mbit/s"), "{}", shown(&state, 80));
    state.view.lines[1].headroom_bps = None;
    assert!(!shown(&state, 80).contains("at this cost"));
}

#[test]
fn without_news_its_words_are_of_the_past() {
    let mut state = state();
    assert!(shown(&state, 80).starts_with("wan  the upload is full"), "{}", shown(&state, 80));
    state.trouble = Some("the daemon is gone".to_owned());
    let text = shown(&state, 80);
    assert!(text.starts_with("wan  last seen: the upload is full"), "{text}");
}

#[test]
fn of_the_kernels_lines_it_says_what_is_not_known() {
    let mut state = state();
    for line in &mut state.view.lines {
        (line.in_kernel, line.delay, line.marks, line.cpu_permille) = (true, None, None, None);
        line.tiers.clear();
    }
    state.view.hosts.iter_mut().for_each(|host| host.held = None);
    state.view.flows.iter_mut().for_each(|flow| flow.entry.held = None);
    state.view.untold = Some("not everything is told: it is not counted".to_owned());
    for keys in ["", "\t"] {
        press(&mut state, keys);
        let text = shown(&state, 80);
        assert!(text.contains("kernel") && text.contains("not everything is told"), "{text}");
        let laptop = text.lines().rev().find(|line| line.contains("laptop")).unwrap();
        assert!(laptop.split_whitespace().filter(|word| *word == "-").count() >= 2, "{text}");
    }
}

#[test]
fn any_size_is_drawn() {
    let mut state = state();
    for keys in ["", "\t", "?"] {
        press(&mut state, keys);
        for (columns, lines) in [(1, 1), (3, 2), (10, 5), (40, 10), (300, 100)] {
            screen::text(&state, (columns, lines));
        }
    }
    state.scrolled = usize::MAX;
    screen::text(&state, (80, 24));
}

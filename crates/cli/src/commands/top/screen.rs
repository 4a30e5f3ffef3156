//! The screen of `simnel top` at 80 columns; a narrower one shows fewer of them.
//!
//! ```text
//! wan  the upload is full: laptop, 3 flows; calls wait 4.2 ms
//!                       bit/s limit    now    p50    p99 queued drops marks    cpu
//! upload       ███████· 9.70M 10.0M 4.2 ms 3.0 ms  12 ms  30 kB  1234     7   2.3%
//!  Voice                80.5k       1.0 ms
//!                             cpu: room for upload 412 Mbit/s more at this cost
//! hosts or flows
//! ```

use ratatui::backend::TestBackend;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table as Grid, Wrap};
use ratatui::{Frame, Terminal};
use simnel_gateway::view::words::{rate, time};
use simnel_gateway::view::{FlowView, HostView, LineView, TierView};
use simnel_gateway::Direction;

use super::columns::{cut, fit, Column};
use super::state::{State, Table};
use crate::terminal::colours;

const HELP: &str = "\
Tab        hosts or flows
s, S       sort by the next column, by the one before
r          reverse the order
/          filter: hosts, addresses, ports, classes; Enter keeps it, Esc ends it
p, space   pause
arrows     scroll; PgUp, PgDn, Home
q          quit

now, p50, p99   time in the queue: of the last packet, and of half and
                of 99 % of the packets of the last ten looks; below, of
                a flow's last 128 to 256 packets, however long ago, and
                for a host of the flow that waits longest
rtt             from here to the far end and back, without our queue;
                of TCP, smoothed
cpu             share of a core that the data path's thread takes; below
                it, what the rest would carry at what a bit costs now

Any key closes this.";

/// Characters of the bars.
const BAR: usize = 8;

/// Columns of the lines; the name stays longest, then rate, p99 and limit.
const LINES: [Column; 11] = [
    Column::fixed(12, 0),
    Column::fixed(BAR as u16, 7),
    Column::fixed(5, 1),
    Column::fixed(5, 3),
    Column::fixed(6, 4),
    Column::fixed(6, 8),
    Column::fixed(6, 2),
    Column::fixed(6, 5),
    Column::fixed(5, 6),
    Column::fixed(5, 9),
    Column::fixed(6, 10),
];

/// Columns of the hosts.
const HOSTS: [Column; 8] = [
    Column { least: 18, share: 1, rank: 0 },
    Column::fixed(8, 2),
    Column::fixed(10, 1),
    Column::fixed(9, 4),
    Column::fixed(6, 5),
    Column::fixed(6, 3),
    Column::fixed(5, 6),
    Column::fixed(5, 7),
];

/// Columns of the flows.
const FLOWS: [Column; 10] = [
    Column::fixed(4, 3),
    // Room for an address of IPv4, and for another with its protocol and port.
    Column { least: 15, share: 2, rank: 0 },
    Column { least: 21, share: 3, rank: 2 },
    Column::fixed(5, 1),
    Column::fixed(6, 8),
    Column::fixed(6, 9),
    Column::fixed(6, 4),
    Column::fixed(6, 6),
    Column::fixed(5, 7),
    Column::fixed(11, 5),
];

/// Draws all of it.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let lines = line_rows(state);
    let words = state.view.words.len().max(1) as u16;
    let areas = Layout::vertical([
        Constraint::Length(words),
        Constraint::Length(lines.len() as u16 + 2),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [top, upper, lower, foot] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(happening(state, top.width)), top);
    draw_lines(&state.view.lines, lines, frame, upper);
    match state.table {
        Table::Hosts => draw_hosts(state, frame, lower),
        Table::Flows => draw_flows(state, frame, lower),
    }
    frame.render_widget(Paragraph::new(footer(state, foot.width)), foot);
    if state.help {
        let area = frame.area();
        let width = 76.min(area.width);
        let inside = usize::from(width).saturating_sub(2).max(1);
        let rows = HELP.lines().map(|line| line.len().div_ceil(inside).max(1)).sum::<usize>();
        let height = (rows as u16 + 2).min(area.height);
        let (x, y) = ((area.width - width) / 2, (area.height - height) / 2);
        let area = Rect { x, y, width, height };
        frame.render_widget(Clear, area);
        let help = Paragraph::new(HELP).wrap(Wrap { trim: false });
        frame.render_widget(help.block(Block::bordered().title(" help ")), area);
    }
}

/// The screen as text, without what a terminal obeys, for `columns` and as many lines as needed.
pub fn text(state: &State, (columns, lines): (u16, u16)) -> String {
    // Neither writing to memory nor drawing there fails.
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, lines));
    let Ok(_) = terminal.draw(|frame| draw(state, frame));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..lines.saturating_sub(1) {
        let cells = (0..columns).map(|column| buffer[(column, row)].symbol());
        text += cells.collect::<String>().trim_end();
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn style(style: Style) -> Style {
    // Bold and reversed are no colours.
    if colours() {
        style
    } else {
        Style { fg: None, bg: None, ..style }
    }
}

fn happening(state: &State, columns: u16) -> Vec<Line<'_>> {
    let is_past = state.trouble.is_some();
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (index, words) in state.view.words.iter().enumerate() {
        let name = if index == 0 { state.interface.as_str() } else { "" };
        let width = state.interface.chars().count();
        let words = if is_past { format!("last seen: {words}") } else { words.clone() };
        let words = Span::from(cut(&words, columns.saturating_sub(width as u16 + 2)));
        lines.push(Line::from(vec![
            Span::from(format!("{name:width$}  ")).add_modifier(Modifier::BOLD),
            if is_past { words.add_modifier(Modifier::DIM) } else { words },
        ]));
    }
    lines
}

/// Keys, each with its rank: on a narrow screen those of the highest are left out.
const KEYS: [(&str, u8); 7] = [
    ("Tab hosts/flows", 2),
    ("s sort", 4),
    ("r reverse", 6),
    ("/ filter", 3),
    ("p pause", 5),
    ("? help", 0),
    ("q quit", 1),
];

fn footer(state: &State, columns: u16) -> Line<'_> {
    if let Some(trouble) = &state.trouble {
        let words = cut(&format!("no news: {trouble}"), columns);
        return Line::styled(words, style(Style::new().red()));
    }
    let mut text = String::new();
    if state.paused {
        text += "PAUSED  ";
    }
    if state.typing || !state.filter.is_empty() {
        text += &format!("/{}{}  ", state.filter, if state.typing { "_" } else { "" });
    }
    let keys = |most: u8| {
        let kept = KEYS.iter().filter(|(_, rank)| *rank < most);
        kept.map(|(words, _)| *words).collect::<Vec<_>>().join("  ")
    };
    let room = usize::from(columns).saturating_sub(text.chars().count());
    let most = (0..=KEYS.len() as u8).rev().find(|most| keys(*most).len() <= room).unwrap_or(0);
    text += &keys(most);
    Line::from(cut(&text, columns)).add_modifier(Modifier::DIM)
}

/// The cells of a row.
type Cells = Vec<Cell<'static>>;

/// A row a line and a row a tier.
fn line_rows(state: &State) -> Vec<Cells> {
    let mut rows = Vec::new();
    for line in &state.view.lines {
        rows.push(line_row(line));
        if line.tiers.len() > 1 {
            rows.extend(line.tiers.iter().map(tier_row));
        }
    }
    rows
}

fn line_row(line: &LineView) -> Cells {
    let delay = |pick: fn(&simnel_gateway::view::Delay) -> u64| {
        line.delay.as_ref().map_or("-".to_owned(), |delay| time(pick(delay)))
    };
    let full = match line.limit_bps {
        Some(limit) if limit > 0 => (line.rate_bps * BAR as u64 / limit).min(BAR as u64) as usize,
        _ => 0,
    };
    let bar = format!("{}{}", "█".repeat(full), "·".repeat(BAR - full));
    let filled = match full {
        BAR.. => Style::new().red(),
        4.. => Style::new().yellow(),
        _ => Style::new().green(),
    };
    let marks = line.marks.map_or("-".to_owned(), short);
    let cpu = match line.cpu_permille {
        Some(share) => format!("{}.{}%", share / 10, share % 10),
        None => "kernel".to_owned(),
    };
    vec![
        Cell::from(line.direction.name()).style(Style::new().bold()),
        Cell::from(bar).style(style(filled)),
        right(decimal(line.rate_bps)),
        right(line.limit_bps.map_or("-".to_owned(), decimal)),
        right(delay(|delay| delay.now_ns)),
        right(delay(|delay| delay.p50_ns)),
        right(delay(|delay| delay.p99_ns)),
        right(bytes(line.backlog_bytes)),
        right(short(line.drops)),
        right(marks),
        right(cpu),
    ]
}

fn tier_row(tier: &TierView) -> Cells {
    vec![
        Cell::from(format!(" {}", cut(&tier.name, LINES[0].least - 1))),
        Cell::from(""),
        right(decimal(tier.rate_bps)),
        right(String::new()),
        right(time(tier.delay_ns)),
        right(String::new()),
        right(String::new()),
        right(bytes(tier.backlog_bytes)),
        right(short(tier.drops)),
        right(short(tier.marks)),
        right(String::new()),
    ]
}

fn draw_lines(lines: &[LineView], rows: Vec<Cells>, frame: &mut Frame<'_>, area: Rect) {
    let heading =
        ["", "", "bit/s", "limit", "now", "p50", "p99", "queued", "drops", "marks", "cpu"];
    let widths = fit(&LINES, area.width);
    let room = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    let is_full = rows.len() + 1 >= usize::from(area.height);
    draw_grid(heading_cells(&heading, None), rows, &widths, frame, area);
    if let Some(words) = headroom(lines).filter(|_| !is_full) {
        let words = Line::from(cut(&words, room.width)).right_aligned();
        frame.render_widget(Paragraph::new(words.add_modifier(Modifier::DIM)), room);
    }
}

/// Rates that the threads of the data path could carry beside, as far as that is known.
fn headroom(lines: &[LineView]) -> Option<String> {
    let more = |line: &LineView| Some(format!("{} {}", line.direction, rate(line.headroom_bps?)));
    let all: Vec<String> = lines.iter().filter_map(more).collect();
    (!all.is_empty()).then(|| format!("cpu: room for {} more at this cost", all.join(", ")))
}

/// Draws those columns of a table that have a width.
fn draw_grid(
    heading: Cells,
    rows: Vec<Cells>,
    widths: &[Option<u16>],
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let shown = |cells: Cells| -> Row<'static> {
        cells.into_iter().zip(widths).filter_map(|(cell, width)| width.map(|_| cell)).collect()
    };
    let heading = shown(heading);
    let constraints = widths.iter().flatten().map(|width| Constraint::Length(*width));
    let grid = Grid::new(rows.into_iter().map(shown), constraints).header(heading);
    frame.render_widget(grid, area);
}

/// Headings; the one that is sorted by stands out.
fn heading_cells(names: &[&'static str], sorted: Option<usize>) -> Cells {
    let left = ["", "way", "host", "with", "class"];
    let cell = |(index, name): (usize, &&'static str)| {
        let plain = Style::new().add_modifier(Modifier::UNDERLINED);
        let style = match sorted == Some(index) {
            true => plain.add_modifier(Modifier::REVERSED),
            false => plain,
        };
        let line = Line::styled(*name, style);
        Cell::from(if left.contains(name) { line } else { line.right_aligned() })
    };
    names.iter().enumerate().map(cell).collect()
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

/// `1234`, `12k`, `3M`.
fn short(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// `4.82M`: three digits of a rate, in five columns.
fn decimal(bps: u64) -> String {
    let text = rate(bps);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let prefix = unit.chars().next().filter(|&prefix| prefix != 'b');
    format!("{number}{}", prefix.map_or(String::new(), |prefix| prefix.to_string()))
}

/// `30 kB`, in six columns.
fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..1_000_000 => format!("{} kB", count / 1_000),
        1_000_000..10_000_000 => format!("{:.1} MB", (count / 100_000) as f64 / 10.0),
        _ => format!("{} MB", count / 1_000_000),
    }
}

/// Says why a table is not whole; the rest of `area` is the table's.
fn draw_untold(state: &State, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let Some(why) = &state.view.untold else { return area };
    let height = why.chars().count().div_ceil(usize::from(area.width.max(1))) as u16;
    let areas = Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]);
    let [above, below] = areas.areas(area);
    frame.render_widget(Paragraph::new(why.as_str()).wrap(Wrap { trim: true }), above);
    below
}

/// A figure of whoever holds the packets.
fn of_holder<T>(held: Option<T>, figure: impl FnOnce(T) -> String) -> Cell<'static> {
    right(held.map_or("-".to_owned(), figure))
}

fn draw_hosts(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let area = draw_untold(state, frame, area);
    let widths = fit(&HOSTS, area.width);
    let wide = |index: usize| widths[index].unwrap_or(0);
    let row = |host: &HostView| {
        let name = match &host.name {
            Some(name) => format!("{name} ({})", host.address),
            None => host.address.to_string(),
        };
        vec![
            Cell::from(cut(&name, wide(0))),
            right(decimal(host.upload_bps)),
            right(decimal(host.download_bps)),
            right(format!("{}/{}", host.active_flows, host.flows)),
            of_holder(host.held, |held| short(held.backlog_packets)),
            of_holder(host.held, |held| time(held.sojourn_p99_ns)),
            of_holder(host.held, |held| short(held.drops)),
            of_holder(host.held, |held| short(held.marks)),
        ]
    };
    let hosts = state.hosts();
    let rows = hosts.iter().skip(state.scrolled).map(|host| row(host)).collect();
    let heading = heading_cells(state.columns(), Some(state.sorted_by()));
    draw_grid(heading, rows, &widths, frame, area);
}

fn draw_flows(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let area = draw_untold(state, frame, area);
    let widths = fit(&FLOWS, area.width);
    let wide = |index: usize| widths[index].unwrap_or(0);
    let row = |flow: &FlowView| {
        let entry = &flow.entry;
        let (way, port) = match entry.direction {
            Direction::Upload => ("up", entry.dport),
            Direction::Download => ("down", entry.sport),
        };
        let protocol = match entry.protocol {
            1 | 58 => "icmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            other => format!("ip {other}"),
        };
        let far = match flow.remote() {
            std::net::IpAddr::V6(far) => format!("[{far}]"),
            std::net::IpAddr::V4(far) => far.to_string(),
        };
        let host = flow.host.clone().unwrap_or(flow.home().to_string());
        let class = flow.class.as_deref().unwrap_or("-");
        vec![
            Cell::from(way),
            Cell::from(cut(&host, wide(1))),
            Cell::from(cut(&format!("{protocol} {far}:{port}"), wide(2))),
            right(decimal(flow.rate_bps)),
            of_holder(entry.held, |held| bytes(held.backlog_bytes)),
            of_holder(entry.held, |held| time(held.sojourn_ns)),
            of_holder(entry.held, |held| time(held.sojourn_p99_ns)),
            of_holder(entry.rtt_ns, time),
            of_holder(entry.held, |held| short(held.drops)),
            Cell::from(cut(class, wide(9))),
        ]
    };
    let flows = state.flows();
    let rows = flows.iter().skip(state.scrolled).map(|flow| row(flow)).collect();
    let heading = heading_cells(state.columns(), Some(state.sorted_by()));
    draw_grid(heading, rows, &widths, frame, area);
}

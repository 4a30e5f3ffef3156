//! The view of `simnel top`: which table, sorted by what, filtered, paused.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use simnel_gateway::view::{FlowView, HostView, View};

/// The action after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Stay,
    /// End.
    Quit,
}

/// The table below the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Hosts at home.
    Hosts,
    /// Flows.
    Flows,
}

/// Headings of the hosts' columns; each can be sorted by.
pub const HOST_COLUMNS: [&str; 8] =
    ["host", "up bit/s", "down bit/s", "flows", "queued", "p99", "drops", "marks"];
/// Headings of the flows' columns; each can be sorted by.
pub const FLOW_COLUMNS: [&str; 10] =
    ["way", "host", "with", "bit/s", "queued", "now", "p99", "rtt", "drops", "class"];
/// Characters of a filter.
const LONGEST_FILTER: usize = 40;

/// All that the screen is drawn from.
#[derive(Debug)]
pub struct State {
    /// The interface.
    pub interface: String,
    /// The last look's view.
    pub view: View,
    /// A view that came while paused is not shown.
    pub paused: bool,
    /// The help lies over the rest.
    pub help: bool,
    /// Letters go into the filter.
    pub typing: bool,
    /// Rows whose text holds this are shown.
    pub filter: String,
    /// The table that is shown.
    pub table: Table,
    /// Column that each table is sorted by.
    pub sort: [usize; 2],
    /// The smallest comes first.
    pub reversed: bool,
    /// Rows of the table above the first shown.
    pub scrolled: usize,
    /// Reason why the last look failed, if it did.
    pub trouble: Option<String>,
}

impl State {
    /// The first screen: hosts by download.
    pub fn new(interface: String, view: View) -> State {
        State {
            interface,
            view,
            paused: false,
            help: false,
            typing: false,
            filter: String::new(),
            table: Table::Hosts,
            sort: [2, 3],
            reversed: false,
            scrolled: 0,
            trouble: None,
        }
    }

    /// Takes a new view, unless paused.
    pub fn renew(&mut self, view: View) {
        self.trouble = None;
        if !self.paused {
            self.view = view;
        }
    }

    /// Obeys a key.
    pub fn press(&mut self, key: KeyEvent) -> Next {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Next::Quit } else { Next::Stay };
        }
        if self.typing {
            match key.code {
                KeyCode::Enter => self.typing = false,
                KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Char(c) if self.filter.chars().count() < LONGEST_FILTER => {
                    self.filter.push(c);
                }
                _ => {}
            }
            self.scrolled = 0;
            return Next::Stay;
        }
        if self.help {
            self.help = false;
            return if key.code == KeyCode::Char('q') { Next::Quit } else { Next::Stay };
        }
        let rows = self.rows();
        match key.code {
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Tab => {
                self.table = match self.table {
                    Table::Hosts => Table::Flows,
                    Table::Flows => Table::Hosts,
                };
                self.scrolled = 0;
            }
            KeyCode::Char('s') => self.sort_by(1),
            KeyCode::Char('S') => self.sort_by(self.columns().len() - 1),
            KeyCode::Down => self.scrolled = (self.scrolled + 1).min(rows.saturating_sub(1)),
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled = (self.scrolled + 10).min(rows.saturating_sub(1)),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Next::Stay
    }

    /// Headings of the table that is shown.
    pub fn columns(&self) -> &'static [&'static str] {
        match self.table {
            Table::Hosts => &HOST_COLUMNS,
            Table::Flows => &FLOW_COLUMNS,
        }
    }

    /// The column that it is sorted by.
    pub fn sorted_by(&self) -> usize {
        self.sort[self.table as usize]
    }

    fn sort_by(&mut self, further: usize) {
        self.sort[self.table as usize] = (self.sorted_by() + further) % self.columns().len();
    }

    fn rows(&self) -> usize {
        match self.table {
            Table::Hosts => self.hosts().len(),
            Table::Flows => self.flows().len(),
        }
    }

    fn passes(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// Hosts that pass the filter, in order.
    pub fn hosts(&self) -> Vec<&HostView> {
        let text = |host: &HostView| {
            format!("{} {}", host.name.as_deref().unwrap_or_default(), host.address)
        };
        let all = self.view.hosts.iter();
        let mut hosts: Vec<&HostView> = all.filter(|host| self.passes(&text(host))).collect();
        let held = |host: &HostView| host.held.unwrap_or_default();
        let number = |host: &HostView| match self.sorted_by() {
            1 => host.upload_bps,
            2 => host.download_bps,
            3 => host.active_flows as u64,
            4 => held(host).backlog_packets,
            5 => held(host).sojourn_p99_ns,
            6 => held(host).drops,
            _ => held(host).marks,
        };
        match self.sorted_by() {
            0 => hosts.sort_by_key(|host| text(host)),
            _ => hosts.sort_by_key(|host| std::cmp::Reverse(number(host))),
        }
        if self.reversed {
            hosts.reverse();
        }
        hosts
    }

    /// Flows that pass the filter, in order.
    pub fn flows(&self) -> Vec<&FlowView> {
        let host = |flow: &FlowView| flow.host.clone().unwrap_or(flow.home().to_string());
        let text = |flow: &FlowView| {
            let (entry, class) = (&flow.entry, flow.class.as_deref().unwrap_or_default());
            let ports = format!("{} {}", entry.sport, entry.dport);
            let (way, far) = (entry.direction, flow.remote());
            format!("{way} {} {} {far} {ports} {class}", host(flow), flow.home())
        };
        let all = self.view.flows.iter();
        let mut flows: Vec<&FlowView> = all.filter(|flow| self.passes(&text(flow))).collect();
        let held = |flow: &FlowView| flow.entry.held.unwrap_or_default();
        let number = |flow: &FlowView| match self.sorted_by() {
            3 => flow.rate_bps,
            4 => held(flow).backlog_bytes,
            5 => held(flow).sojourn_ns,
            6 => held(flow).sojourn_p99_ns,
            7 => flow.entry.rtt_ns.unwrap_or(0),
            _ => held(flow).drops,
        };
        match self.sorted_by() {
            0 => flows.sort_by_key(|flow| flow.entry.direction),
            1 => flows.sort_by_key(|flow| host(flow)),
            2 => flows.sort_by_key(|flow| flow.remote()),
            9 => flows.sort_by_key(|flow| flow.class.clone()),
            _ => flows.sort_by_key(|flow| std::cmp::Reverse(number(flow))),
        }
        if self.reversed {
            flows.reverse();
        }
        flows
    }
}

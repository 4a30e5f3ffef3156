//! `simnel top` on a terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{kill_process, Pid, Signal};
use simnel_core::qdisc::{Backlog, Detail, Snapshot, Totals};
use simnel_gateway::control::{socket_path, Entry, Reply};
use simnel_gateway::{Counters, Direction, KernelCounters, Lanes};

use crate::SIMNEL;

/// A daemon of `wan` that has nothing to tell.
fn daemon(directory: &Path) {
    let listener = UnixListener::bind(socket_path(directory, "wan")).unwrap();
    let stats = Snapshot {
        totals: Totals::default(),
        backlog: Backlog::default(),
        detail: Detail::Fifo(()),
    };
    let entry = Entry {
        dev: "wan".into(),
        direction: Direction::Upload,
        at_ns: None,
        config: "pfifo".into(),
        stats,
        below: Vec::new(),
        datapath: Counters::default(),
        lanes: Lanes::default(),
        queue: 0,
        kernel: KernelCounters::default(),
    };
    let (lines, flows) = (Some(vec![]), Some(vec![]));
    let reply = Reply { qdiscs: Some(vec![entry]), lines, flows, ..Reply::done() };
    let answer = serde_json::to_string(&reply).unwrap() + "\n";
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut line) = (BufReader::new(stream.unwrap()), String::new());
            while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
                if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
}

#[test]
fn a_signal_from_outside_leaves_the_terminal_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    daemon(directory.path());
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
        let terminal = rustix::pty::openpt(flags).expect("a pseudo-terminal");
        rustix::pty::grantpt(&terminal).expect("leave to use it");
        rustix::pty::unlockpt(&terminal).expect("it is unlocked");
        let name = rustix::pty::ptsname(&terminal, Vec::new()).expect("its name");
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut top = Command::new(SIMNEL)
            .args(["top", "wan", "--no-mdns", "--control-dir"])
            .arg(directory.path())
            .stdin(open())
            .stdout(open())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut terminal = File::from(terminal);
        let mut drawn = Vec::new();
        let mut draws_until = |part: Option<&str>| {
            let mut bytes = [0; 4096];
            // It fails once nobody has the terminal any more.
            while let Ok(length @ 1..) = terminal.read(&mut bytes) {
                drawn.extend_from_slice(&bytes[..length]);
                let text = String::from_utf8_lossy(&drawn);
                if part.is_some_and(|part| text.contains(part)) {
                    break;
                }
            }
            String::from_utf8_lossy(&drawn).into_owned()
        };
        let text = draws_until(Some("\x1b[?25l"));
        assert!(text.contains("\x1b[?1049h") && text.contains("\x1b[?25l"), "{text:?}");
        kill_process(Pid::from_child(&top), signal).unwrap();
        let text = draws_until(None);
        assert!(text.contains("\x1b[?1049l") && text.contains("\x1b[?25h"), "{signal:?}: {text:?}");
        assert!(top.wait().unwrap().success());
    }
}

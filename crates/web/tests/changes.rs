//! Changes over HTTP, down to a control socket whose daemon writes down what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use simnel_core::qdisc::{Backlog, Detail, Snapshot, Totals};
use simnel_gateway::control::{socket_path, Entry, Reply, Request};
use simnel_gateway::trial::{Back, Left};
use simnel_gateway::{Counters, Direction, KernelCounters};
use simnel_web::{Error, Limits, Server, Settings};

const TOKEN: &str = "0123456789abcdef";
const BEFORE: &str = "cake bandwidth 20Mbit";

type Asked = Arc<Mutex<Vec<Request>>>;

fn daemon(directory: &Path) -> Asked {
    let listener = UnixListener::bind(socket_path(directory, "wan")).unwrap();
    let asked = Asked::default();
    let written = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let written = written.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|n| n > 0) {
                    let reply = answer(&written, serde_json::from_str(&line).unwrap());
                    let text = serde_json::to_string(&reply).unwrap() + "\n";
                    stream.get_mut().write_all(text.as_bytes()).unwrap();
                    line.clear();
                }
            });
        }
    });
    asked
}

fn answer(asked: &Mutex<Vec<Request>>, request: Request) -> Reply {
    let mut asked = asked.lock().unwrap();
    match request {
        Request::Show {} => {
            let set = asked.iter().rev().find_map(|request| match request {
                Request::Change { words, .. } => Some(words.clone()),
                _ => None,
            });
            let entry = Entry {
                dev: "wan".into(),
                direction: Direction::Upload,
                at_ns: None,
                config: set.unwrap_or(BEFORE.into()),
                stats: Snapshot {
                    totals: Totals::default(),
                    backlog: Backlog::default(),
                    detail: Detail::Fifo(()),
                },
                below: Vec::new(),
                datapath: Counters::default(),
                lanes: simnel_gateway::Lanes::default(),
                queue: 0,
                kernel: KernelCounters::default(),
            };
            let is_tried = matches!(asked.last(), Some(Request::Trial { .. }));
            let back = Back::Change(Direction::Upload, BEFORE.into());
            let trials = is_tried.then_some(Left { ms: 1000, back }).into_iter().collect();
            Reply { qdiscs: Some(vec![entry]), trials, ..Reply::done() }
        }
        Request::Flows {} => Reply { lines: Some(vec![]), flows: Some(vec![]), ..Reply::done() },
        other => {
            asked.push(other);
            Reply::done()
        }
    }
}

fn settings(directory: &Path, token: Option<&str>) -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        token: token.map(String::from),
        control_dir: directory.to_owned(),
        limits: Limits { patience: Duration::from_millis(500), ..Limits::default() },
        history: None,
        asks: false,
        changes: true,
        notice: |_| {},
    }
}

fn send(address: SocketAddr, what: &str, headers: &str, length: usize, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let place = if what.starts_with('/') { "" } else { "/api/v1/interfaces/" };
    let head = format!(
        "POST {place}{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(body.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn post(address: SocketAddr, what: &str, body: &str) -> String {
    let own = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
    send(address, what, &own, body.len(), body)
}

fn is(answer: &str, status: u16) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} "))
}

#[test]
fn a_change_is_looked_at_tried_kept_and_undone() {
    let room = tempfile::tempdir().unwrap();
    let asked = daemon(room.path());
    let server = Server::bind(settings(room.path(), Some(TOKEN))).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.run().unwrap());
    let so_far = || asked.lock().unwrap().clone();

    let wanted = r#"{"direction":"upload","rate":"8mbit","words":"diffserv4"}"#;
    let looked = post(address, "wan/preview", wanted);
    assert!(is(&looked, 200), "{looked}");
    assert!(looked.contains(BEFORE) && looked.contains("cake bandwidth 8Mbit diffserv4"));
    // Once the interface has been seen, the settings are simulated with what is on it.
    let begin = Instant::now();
    while !post(address, "wan/preview", wanted).contains("small packets wait") {
        assert!(begin.elapsed() < Duration::from_secs(20), "nothing is simulated");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(so_far(), [], "a preview changes nothing");
    // Also with settings that are newer than the last look.
    let words = "cake bandwidth 3Mbit besteffort";
    let newer = Request::Change { direction: Direction::Upload, words: words.into() };
    asked.lock().unwrap().push(newer);
    let looked = post(address, "wan/preview", r#"{"direction":"upload","rate":"2mbit"}"#);
    assert_eq!(looked.matches(words).count(), 2, "before, and in the scenario: {looked}");
    asked.lock().unwrap().clear();
    assert!(is(&post(address, "wan/undo", "{}"), 409), "nothing is on trial");

    let tried = post(
        address,
        "wan/try",
        r#"{"direction":"upload","rate":"8mbit","words":"diffserv4","seconds":60}"#,
    );
    assert!(is(&tried, 200), "{tried}");
    let Some(Request::Trial { direction: Direction::Upload, words, ms: 60_000 }) =
        so_far().last().cloned()
    else {
        panic!("{:?}", so_far())
    };
    assert!(words.starts_with("cake bandwidth 8Mbit diffserv4"), "{words}");
    let undone = post(address, "wan/undo", "{}");
    assert!(is(&undone, 200), "{undone}");
    let back = Request::Change { direction: Direction::Upload, words: BEFORE.into() };
    assert_eq!(so_far().last(), Some(&back));
    assert!(is(&post(address, "wan/keep", "{}"), 200));
    assert_eq!(so_far().last(), Some(&Request::Keep {}));
    // What was kept here can be taken back, once.
    let seconds = r#"{"direction":"upload","rate":"8mbit","seconds":60}"#;
    assert!(is(&post(address, "wan/try", seconds), 200));
    assert!(is(&post(address, "wan/keep", "{}"), 200));
    let undone = post(address, "wan/undo", "{}");
    assert!(is(&undone, 200) && undone.contains(BEFORE), "{undone}");
    assert_eq!(so_far().last(), Some(&back));
    assert!(is(&post(address, "wan/undo", "{}"), 409), "it was taken back already");

    let done = so_far().len();
    for (what, body, status) in [
        ("wan/try", wanted, 400),
        ("wan/try", r#"{"direction":"upload","rate":"8mbit","seconds":1000000}"#, 400),
        ("wan/preview", r#"{"direction":"upload","words":"diffserv9"}"#, 400),
        ("wan/preview", r#"{"direction":"upload","words":""}"#, 400),
        ("wan/preview", r#"{"direction":"upload","rate":""}"#, 400),
        ("wan/preview", r#"{"direction":"download","rate":"8mbit"}"#, 404),
        ("wan/preview", r#"{"direction":"upload","evil":1}"#, 400),
        ("wan/preview", "", 400),
        ("lan/preview", wanted, 404),
        ("..%2fwan/keep", "{}", 404),
        ("%C3%97%9B/keep", "{}", 400),
        ("wan/keep", "\0", 400),
        ("wan/undo", r#"{"all":true}"#, 400),
        ("wan/down", "{}", 404),
        ("/api/v1/nothing", "{}", 404),
        ("/nothing", "{}", 404),
        ("/metrics", "{}", 405),
    ] {
        let answer = post(address, what, body);
        assert!(is(&answer, status), "{what} {body}: {answer}");
    }
    let bare = format!("Authorization: Bearer {TOKEN}\r\n");
    let unread = send(address, "/metrics", &bare, 0, "");
    assert!(is(&unread, 405), "also without JSON: {unread}");
    let long = format!(r#"{{"direction":"upload","words":"{}"}}"#, "x".repeat(20_000));
    assert!(is(&post(address, "wan/preview", &long), 413));
    let own = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
    let endless = send(address, "wan/preview", &own, 100, "{");
    assert!(is(&endless, 408), "{endless}");
    // As a page from elsewhere sends it.
    for headers in [
        format!("{own}Origin: http://evil.example\r\n"),
        format!("Authorization: Bearer {TOKEN}\r\nContent-Type: text/plain\r\n"),
        "Content-Type: application/json\r\n".to_owned(),
    ] {
        let answer = send(address, "wan/keep", &headers, 2, "{}");
        assert!(answer.starts_with("HTTP/1.1 4"), "{headers}: {answer}");
    }
    let queried = send(
        address,
        &format!("wan/keep?token={TOKEN}"),
        "Content-Type: application/json\r\n",
        2,
        "{}",
    );
    assert!(is(&queried, 401) && queried.contains("in the header"), "{queried}");
    assert_eq!(so_far().len(), done, "nothing of that has reached the daemon");
}

#[test]
fn without_being_asked_for_nothing_changes() {
    let room = tempfile::tempdir().unwrap();
    let refused = Server::bind(settings(room.path(), None));
    assert!(matches!(refused, Err(Error::NoTokenForChanges)));
    let asked = daemon(room.path());
    let closed = Settings { changes: false, ..settings(room.path(), Some(TOKEN)) };
    let server = Server::bind(closed).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.run().unwrap());
    assert!(is(&post(address, "wan/keep", "{}"), 405));
    assert!(asked.lock().unwrap().is_empty());
}

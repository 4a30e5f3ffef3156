//! Clients that are slow, many or silent, and what they may not do to the others.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use simnel_web::{Limits, Server, Settings};

/// Patience of the servers here.
const PATIENCE: Duration = Duration::from_millis(400);
/// Time that a busy machine may add.
const SLACK: Duration = Duration::from_secs(4);

/// A server of a directory without gateways, which ends with the test.
fn server(limits: Limits, token: Option<&str>) -> SocketAddr {
    let listen = "127.0.0.1:0".parse().unwrap();
    let token = token.map(String::from);
    let control_dir = "/nowhere/at/all".into();
    let (history, notice) = (None, (|_| {}) as fn(&str));
    let settings = Settings {
        listen,
        token,
        control_dir,
        limits,
        history,
        asks: false,
        changes: false,
        notice,
    };
    let server = Server::bind(settings).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.run().unwrap());
    address
}

fn impatient() -> SocketAddr {
    server(Limits { patience: PATIENCE, ..Limits::default() }, None)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE + SLACK)).unwrap();
    stream
}

fn request(address: SocketAddr, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")
}

/// The next head of an answer; empty if the connection is over before it.
fn head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return String::new(),
        }
    }
    String::from_utf8(head).unwrap()
}

/// Time until the server closes.
fn life(stream: &mut TcpStream) -> Duration {
    let begin = Instant::now();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return begin.elapsed(),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return begin.elapsed(),
            Err(e) => panic!("the server does not close: {e}"),
        }
    }
}

fn in_time(life: Duration) -> bool {
    (PATIENCE / 2..PATIENCE + SLACK).contains(&life)
}

#[test]
fn who_says_nothing_or_goes_on_for_ever_is_closed() {
    let address = impatient();
    let mut silent = connect(address);
    assert!(in_time(life(&mut silent)));

    // One header after the other, and never the last.
    let mut slow = connect(address);
    slow.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n").as_bytes()).unwrap();
    let begin = Instant::now();
    let mut trickle = slow.try_clone().unwrap();
    std::thread::spawn(move || {
        while trickle.write_all(b"X: y\r\n").is_ok() && begin.elapsed() < SLACK * 2 {
            std::thread::sleep(PATIENCE / 10);
        }
    });
    assert!(in_time(life(&mut slow)));

    // After an answer, another request must come in time.
    let mut kept = connect(address);
    for _ in 0..2 {
        kept.write_all(request(address, "/api/v1/interfaces").as_bytes()).unwrap();
        assert!(head(&mut kept).starts_with("HTTP/1.1 200"));
        let mut body = [0; 32];
        kept.read_exact(&mut body).unwrap();
        assert_eq!(&body, br#"{"interfaces":[],"trouble":null}"#);
    }
    assert!(in_time(life(&mut kept)));
}

#[test]
fn who_asks_and_does_not_read_is_closed() {
    let address = impatient();
    let mut deaf = connect(address);
    // More answers than all buffers on the way hold.
    let asked = request(address, "/app.js").repeat(100);
    let begin = Instant::now();
    deaf.set_write_timeout(Some(PATIENCE + SLACK)).unwrap();
    while deaf.write_all(asked.as_bytes()).is_ok() {
        assert!(begin.elapsed() < PATIENCE + SLACK * 2, "it takes requests without end");
    }
    assert!(begin.elapsed() < PATIENCE + SLACK, "nobody closed it: {:?}", begin.elapsed());
}

#[test]
fn of_too_many_clients_the_newest_is_answered_and_the_page_stays() {
    let token = "a token of some length";
    let address = server(Limits::default(), Some(token));
    let authorised = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let mut page = connect(address);
    page.write_all(authorised.as_bytes()).unwrap();
    assert!(head(&mut page).starts_with("HTTP/1.1 200"));

    // Strangers, more than there are places for; none of them says anything.
    let strangers: Vec<TcpStream> = (0..Limits::default().connections + 100)
        .map(|_| {
            let stranger = connect(address);
            stranger.set_nonblocking(true).unwrap();
            stranger
        })
        .collect();
    let begin = Instant::now();
    let mut newest = connect(address);
    newest.write_all(authorised.replace("events", "interfaces").as_bytes()).unwrap();
    assert!(head(&mut newest).starts_with("HTTP/1.1 200"));
    assert!(begin.elapsed() < SLACK, "{:?}", begin.elapsed());

    let open = |mut stream: &TcpStream| {
        stream.read(&mut [0]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    };
    let left = strangers.iter().filter(|stranger| open(stranger)).count();
    assert!(left < Limits::default().connections, "{left} strangers are connected");
    let mut event = [0; 64];
    for _ in 0..3 {
        let read = page.read(&mut event).expect("the stream goes on");
        assert!(read > 0, "the page has lost its stream to strangers");
    }
}

#[test]
fn what_is_too_long_is_refused_and_costs_nothing() {
    let address = impatient();
    let host = format!("Host: {address}\r\n");
    for long in [
        format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(64 * 1024)),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(8 * 1024)),
        format!("GET /?{} HTTP/1.1\r\n{host}\r\n", "x".repeat(64 * 1024)),
    ] {
        let mut stream = connect(address);
        // The server may close before all has come.
        let _ = stream.write_all(long.as_bytes());
        let head = head(&mut stream);
        assert!(head.is_empty() || head.starts_with("HTTP/1.1 4"), "{head}");
    }
    let mut next = connect(address);
    next.write_all(request(address, "/").as_bytes()).unwrap();
    assert!(head(&mut next).starts_with("HTTP/1.1 200"));
}

//! The server against clients that want more than they may have. Over loopback.

mod public;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use simnel_measure::server::{Limits, Server};
use simnel_measure::wire::{self, Answer, Head, Probe};
use simnel_measure::{measure, Error, Options, Peer, Way};

const SECOND: Duration = Duration::from_secs(1);

fn server(token: Option<&str>, limits: Limits) -> SocketAddr {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), token.map(String::from), limits).unwrap();
    let address = server.address();
    thread::spawn(move || server.run());
    address
}

/// Says a first line; gives the connection and the answer's line, empty if there is none.
fn say(address: SocketAddr, line: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SECOND * 8)).unwrap();
    // It may be closed already.
    let _ = stream.write_all(format!("{line}\n").as_bytes());
    let (mut reader, mut answer) = (BufReader::new(stream), String::new());
    let _ = reader.read_line(&mut answer);
    (reader, answer)
}

fn open(address: SocketAddr) -> (BufReader<TcpStream>, wire::Session) {
    let (stream, answer) = say(address, r#"{"simnel":1,"do":"open"}"#);
    let answer: Answer = serde_json::from_str(&answer).unwrap();
    assert!(answer.ok, "{answer:?}");
    (stream, wire::session(&answer.session.unwrap()).unwrap())
}

fn flow(address: SocketAddr, purpose: &str, session: wire::Session) -> BufReader<TcpStream> {
    let name = wire::spell(&session);
    let (stream, answer) =
        say(address, &format!(r#"{{"simnel":1,"do":"{purpose}","session":"{name}"}}"#));
    assert_eq!(answer, "{\"ok\":true}\n");
    stream
}

/// Sends a datagram; gives the bytes of the answer.
fn datagram(address: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SECOND / 5)).unwrap();
    socket.send_to(bytes, address).unwrap();
    let mut answer = [0; 4096];
    socket.recv(&mut answer).ok().map(|count| answer[..count].to_vec())
}

#[test]
fn datagrams_are_answered_for_sessions_only_and_never_by_more() {
    let address = server(None, Limits { probes: 20, ..Limits::default() });
    let (control, session) = open(address);
    let probe = |session| Probe { session, number: 7, echo: false, received: 0, answered: 0 };
    let request = probe(session).encode();
    let answer = datagram(address, &request).expect("an echo");
    assert_eq!(answer.len(), request.len());
    let echo = Probe::decode(&answer).unwrap();
    assert!(echo.echo && echo.number == 7 && echo.answered >= echo.received);
    assert_eq!(datagram(address, &probe([0; 16]).encode()), None, "nobody's session");
    assert_eq!(datagram(address, &answer), None, "an echo: two servers would play ping-pong");
    assert_eq!(datagram(address, &request[..20]), None);
    assert_eq!(datagram(address, &[b'x'; 1400]), None);
    // Two seconds' worth may come at once.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SECOND / 5)).unwrap();
    for _ in 0..200 {
        socket.send_to(&request, address).unwrap();
    }
    let answered = (0..200).take_while(|_| socket.recv(&mut [0; 99]).is_ok()).count();
    assert!((30..=100).contains(&answered), "{answered} of 200");
    // Another address of this machine did not open it.
    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    stranger.set_read_timeout(Some(SECOND / 5)).unwrap();
    stranger.send_to(&request, address).unwrap();
    assert!(stranger.recv(&mut [0; 99]).is_err());
    drop(control);
    thread::sleep(SECOND / 2);
    assert_eq!(datagram(address, &request), None, "the session has ended");
}

#[test]
fn sessions_connections_bytes_and_time_have_an_end() {
    let limits = Limits {
        connections: 100,
        connections_of_one: 4,
        sessions: 1,
        time: SECOND * 2,
        bytes: 3_000_000,
        probes: 100,
        ..Limits::default()
    };
    let address = server(None, limits);
    let (control, session) = open(address);
    let (_, answer) = say(address, r#"{"simnel":1,"do":"open"}"#);
    assert!(answer.contains("others are measuring"), "{answer}");
    let mut down = flow(address, "down", session);
    let mut all = Vec::new();
    let _ = down.read_to_end(&mut all);
    assert!((2_800_000..=3_000_000).contains(&all.len()), "{} bytes", all.len());
    assert!(Head::decode(all[..Head::LEN].try_into().unwrap()).is_some());
    // Silent ones keep their seats, until there is none. Those before may still have theirs.
    let mut held = Vec::new();
    let is_refused = (0..40).any(|_| {
        held.push(TcpStream::connect(address).unwrap());
        thread::sleep(SECOND / 50);
        say(address, r#"{"simnel":1,"do":"open"}"#).1.is_empty()
    });
    assert!(is_refused, "{} connections of one", held.len() + 1);
    drop(held);
    // After its time the session is gone, whether its owner is there or not.
    thread::sleep(SECOND * 2);
    let name = wire::spell(&session);
    let (_, answer) = say(address, &format!(r#"{{"simnel":1,"do":"echo","session":"{name}"}}"#));
    assert!(answer.contains("no such session"), "{answer}");
    drop(control);
}

#[test]
fn nonsense_is_refused_and_silence_is_closed() {
    let address = server(None, Limits { patience: SECOND, ..Limits::default() });
    for line in ["", "GET / HTTP/1.1", "{}", "[]", r#"{"simnel":1,"do":"fly"}"#, "\u{0}\u{ff}"] {
        let (_, answer) = say(address, line);
        assert!(answer.contains("not understood"), "{line:?}: {answer}");
    }
    let (_, answer) = say(address, r#"{"simnel":2,"do":"open"}"#);
    assert!(answer.contains("another version"), "{answer}");
    let (_, answer) = say(address, r#"{"simnel":1,"do":"down","session":"0"}"#);
    assert!(answer.contains("no such session"), "{answer}");
    let (_, answer) = say(address, &"x".repeat(100_000));
    assert_eq!(answer, "", "a line without end");
    // An upload that is no stream of blocks.
    let (_control, session) = open(address);
    let mut up = flow(address, "up", session);
    let _ = up.get_mut().write_all(&[b'x'; 100]);
    assert!(matches!(up.read(&mut [0; 99]), Ok(0) | Err(_)));
    let begin = Instant::now();
    let silent = TcpStream::connect(address).unwrap();
    silent.set_read_timeout(Some(SECOND * 8)).unwrap();
    assert!(matches!((&silent).read(&mut [0]), Ok(0)));
    assert!((SECOND * 9 / 10..SECOND * 2).contains(&begin.elapsed()), "{:?}", begin.elapsed());
}

#[test]
fn a_token_is_asked_for_and_its_lack_is_told() {
    let address = server(Some("secret"), Limits::default());
    let options = |token: Option<&str>| Options {
        idle: SECOND / 5,
        ramp: SECOND / 10,
        load: SECOND / 5,
        ways: vec![Way::Both],
        ..Options::new(Peer::simnel_with(address, token.map(String::from)))
    };
    for (wrong, expected) in [
        (None, "wants a token: --token-file"),
        (Some("secre"), "wants another token"),
        (Some("secret2"), "wants another token"),
    ] {
        let error = measure(&options(wrong), &mut |_| {}).unwrap_err();
        assert!(matches!(&error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let report = measure(&options(Some("secret")), &mut |_| {}).unwrap();
    let both = &report.phases[0];
    assert!(both.download_mbit.unwrap() > 1.0 && both.upload_mbit.unwrap() > 1.0, "{both:?}");
    assert!(both.echoes >= 5 && report.idle.echoes >= 5);
}

#[test]
fn a_load_that_the_server_ends_has_no_rate() {
    // Loopback carries that in some milliseconds of the load.
    let address = server(None, Limits { bytes: 20_000_000, ..Limits::default() });
    for way in [Way::Down, Way::Up] {
        let options = Options {
            idle: SECOND / 5,
            ramp: SECOND / 10,
            load: SECOND * 2,
            ways: vec![way],
            ..Options::new(Peer::simnel(address))
        };
        let error = measure(&options, &mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::Ended(_)), "{way:?}: {error}");
        assert!(error.to_string().contains("16 GiB"), "{error}");
    }
}

#[test]
fn a_load_that_fails_takes_no_earlier_figures_away() {
    // The first load is over after half of it, the third one never.
    let address = server(None, Limits { time: SECOND * 3, ..Limits::default() });
    let options = Options {
        idle: SECOND / 5,
        ramp: SECOND / 10,
        load: SECOND,
        ..Options::new(Peer::simnel(address))
    };
    let error = measure(&options, &mut |_| {}).unwrap_err();
    let Error::Cut { load, report, reason } = &error else { panic!("{error}") };
    assert!(matches!(**reason, Error::Ended(_)), "{reason}");
    assert!(error.to_string().contains(&format!("the load `{load}`")), "{error}");
    assert!((1..3).contains(&report.phases.len()), "{report:?}");
    assert!(report.download_mbit().unwrap() > 1.0 && report.to_json().contains("before it"));
}

#[test]
fn nobody_there_is_an_error_with_the_command_that_is_missing() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = measure(&Options::new(Peer::simnel(free)), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("simnel serve --test"), "{error}");
    // Somebody else's server.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        stream.write_all(b"220 ready\n").unwrap();
        thread::sleep(SECOND);
    });
    let error = measure(&Options::new(Peer::simnel(address)), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

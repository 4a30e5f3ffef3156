//! Others' servers, as their own packages have them, on loopback.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use simnel_measure::{irtt, measure, Error, Options, Peer, Way};

/// A server; ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// None, and loud words, where the program is not installed.
fn start(program: &str, arguments: &[&str]) -> Option<Running> {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => Some(Running(child)),
        Err(error) => {
            eprintln!("NOT RUN: measuring against {program}: {error}");
            None
        }
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Measures until the server, which may need a moment, answers.
fn patiently(options: &Options) -> simnel_measure::Report {
    let begin = Instant::now();
    loop {
        match measure(options, &mut |_| {}) {
            Ok(report) => return report,
            Err(Error::Unreachable { .. }) if begin.elapsed() < Duration::from_secs(10) => {
                thread::sleep(Duration::from_millis(100));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn iperf3_and_irtt_are_understood() {
    let (iperf3, irtt) = (free_address(), free_address());
    let port = iperf3.port().to_string();
    let Some(_iperf3) = start("iperf3", &["-s", "-B", "127.0.0.1", "-p", &port]) else { return };
    let Some(_irtt) = start("irtt", &["server", "-b", &irtt.to_string()]) else { return };
    let second = Duration::from_secs(1);
    let report = patiently(&Options {
        idle: second / 5,
        ramp: second,
        load: second,
        flows: 2,
        ways: vec![Way::Both],
        ..Options::new(Peer::irtt(irtt, Some(iperf3)))
    });
    assert!(report.idle.echoes >= 8 && report.idle.lost == 0, "{:?}", report.idle);
    assert!(report.idle.rtt_ms > 0.0 && report.idle.rtt_ms < 50.0, "{:?}", report.idle);
    let both = &report.phases[0];
    assert!(both.download_mbit.unwrap() > 10.0 && both.upload_mbit.unwrap() > 10.0, "{both:?}");
    // By the server's clock.
    assert!(both.added_up_ms_p95.is_some() && both.added_down_ms_p95.is_some(), "{both:?}");
    assert!(both.echoes >= 30, "{both:?}");
}

#[test]
fn a_session_with_irtt_begins_answers_and_ends() {
    let address = free_address();
    let Some(_irtt) = start("irtt", &["server", "-b", &address.to_string()]) else { return };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let ask = |message: &[u8]| {
        let mut bytes = [0; 512];
        socket.send(message).ok()?;
        let count = socket.recv(&mut bytes).ok()?;
        irtt::answer(&bytes[..count])
    };
    // The server may need a moment, and the machine may be busy.
    let patiently = |message: &[u8]| {
        (0..100).find_map(|_| {
            let answer = ask(message);
            if answer.is_none() {
                thread::sleep(Duration::from_millis(50));
            }
            answer
        })
    };
    let [interval, duration] = [100, 60_000].map(Duration::from_millis);
    let opened = match patiently(&irtt::open(interval, duration)) {
        Some(irtt::Answer::Opened(opened)) => opened,
        other => panic!("{other:?}"),
    };
    assert_eq!((opened.interval, opened.duration), (interval, duration));
    let is_echo = |answer| matches!(answer, Some(irtt::Answer::Echo(echo)) if echo.number == 7);
    assert!(is_echo(patiently(&irtt::request(opened.token, 7))));
    // Messages keep their order here, so nothing that follows the end is answered.
    socket.send(&irtt::close(opened.token)).unwrap();
    for _ in 0..5 {
        let answer = ask(&irtt::request(opened.token, 8));
        assert!(answer.is_none() || is_echo(answer), "{answer:?}");
    }
}

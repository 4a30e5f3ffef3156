//! Load from and to an iperf3 server (3.7 or later for both ways at once).
//!
//! A control connection carries states of a byte each, and parameters and results as JSON with
//! their length before them. Every connection begins with the test's cookie (iperf_api.h,
//! iperf_client_api.c of iperf 3.12). Downloads are counted here as they come. Of uploads the
//! server tells the bytes of the whole time that counts: it leaves the first seconds out itself.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use socket2::SockRef;

use super::load::{Carried, Load, Meter, Plan, Rate, Requests};
use crate::server::{is_wait, prepare, write};
use crate::way::Way;
use crate::Error;

/// Port at which iperf3 listens.
pub const PORT: u16 = 5201;

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a block, and of results at most.
const BLOCK: usize = 16 * 1024;
const MOST: usize = 1 << 20;
/// Time between counts of a download.
const COUNTS: u64 = 20_000_000;
const LOOK: Duration = Duration::from_millis(200);

/// States of a test.
const TEST_START: i8 = 1;
const TEST_RUNNING: i8 = 2;
const TEST_END: i8 = 4;
const PARAM_EXCHANGE: i8 = 9;
const CREATE_STREAMS: i8 = 10;
const EXCHANGE_RESULTS: i8 = 13;
const DISPLAY_RESULTS: i8 = 14;
const IPERF_DONE: i8 = 16;
const ACCESS_DENIED: i8 = -1;
const SERVER_ERROR: i8 = -2;

/// A server.
pub(crate) struct Iperf3 {
    pub(crate) address: SocketAddr,
}

/// Results as the server tells them.
#[derive(Debug, Deserialize)]
struct Results {
    streams: Vec<Stream>,
}

#[derive(Debug, Deserialize)]
struct Stream {
    id: i64,
    bytes: f64,
    #[serde(default)]
    start_time: f64,
    end_time: f64,
}

/// A test under way.
struct Test {
    address: SocketAddr,
    control: TcpStream,
    cookie: [u8; 37],
}

impl Test {
    fn open(address: SocketAddr) -> Result<Test, Error> {
        const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut cookie = [0; 37];
        rustix::rand::getrandom(&mut cookie, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Error::system("making a cookie", error.into()))?;
        cookie.iter_mut().for_each(|byte| *byte = LETTERS[usize::from(*byte) % 32]);
        cookie[36] = 0;
        let failed = |source| unreachable(address, source);
        let control = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
        control.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        control.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        control.set_nodelay(true).map_err(failed)?;
        let mut test = Test { address, control, cookie };
        test.control.write_all(&cookie).map_err(failed)?;
        Ok(test)
    }

    /// A connection for data.
    fn stream(&self) -> Result<TcpStream, Error> {
        let failed = |source| unreachable(self.address, source);
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE).map_err(failed)?;
        stream.write_all(&self.cookie).map_err(failed)?;
        stream.set_read_timeout(Some(LOOK)).map_err(failed)?;
        stream.set_write_timeout(Some(LOOK)).map_err(failed)?;
        Ok(stream)
    }

    /// The next state; refusals are errors.
    fn state(&mut self) -> Result<i8, Error> {
        let mut byte = [0];
        self.control.read_exact(&mut byte).map_err(|source| unreachable(self.address, source))?;
        let refused =
            |reason: &str| Error::Refused { address: self.address, reason: reason.into() };
        match byte[0] as i8 {
            ACCESS_DENIED => Err(refused("another test is running there: try again in a minute")),
            SERVER_ERROR => {
                Err(refused("iperf3 there reports an error: its own output says which"))
            }
            state => Ok(state),
        }
    }

    /// Waits for a state, over those that `may` come before.
    fn expect(&mut self, wanted: i8, may: &[i8]) -> Result<(), Error> {
        loop {
            match self.state()? {
                state if state == wanted => return Ok(()),
                state if may.contains(&state) => {}
                state => return Err(self.strange(format!("state {state} instead of {wanted}"))),
            }
        }
    }

    fn strange(&self, reason: String) -> Error {
        Error::Protocol { address: self.address, expected: "iperf3 --server", reason }
    }

    fn put(&mut self, message: &serde_json::Value) -> io::Result<()> {
        let text = message.to_string();
        self.control.write_all(&(text.len() as u32).to_be_bytes())?;
        self.control.write_all(text.as_bytes())
    }

    fn results(&mut self) -> Result<Results, Error> {
        let failed = |source| unreachable(self.address, source);
        let mut length = [0; 4];
        self.control.read_exact(&mut length).map_err(failed)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MOST {
            return Err(self.strange(format!("results of {length} bytes")));
        }
        let mut text = vec![0; length];
        self.control.read_exact(&mut text).map_err(failed)?;
        serde_json::from_slice(&text).map_err(|error| self.strange(error.to_string()))
    }
}

fn unreachable(address: SocketAddr, source: io::Error) -> Error {
    Error::unreachable(address, "iperf3 --server", source)
}

/// Sends until stopped or closed.
fn send(mut stream: TcpStream, stop: Arc<AtomicBool>) -> JoinHandle<Vec<(u64, u64)>> {
    prepare(&stream);
    thread::spawn(move || {
        let lives = || !stop.load(Ordering::Relaxed);
        while lives() && write(&mut stream, &[0x5a; BLOCK], lives).is_ok() {}
        Vec::new()
    })
}

/// Counts until stopped or closed.
fn receive(
    mut stream: TcpStream,
    stop: Arc<AtomicBool>,
    start: Instant,
) -> JoinHandle<Vec<(u64, u64)>> {
    thread::spawn(move || {
        let now = || start.elapsed().as_nanos() as u64;
        let (mut buffer, mut bytes, mut points) = (vec![0; 1 << 18], 0, vec![(now(), 0)]);
        while !stop.load(Ordering::Relaxed) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => bytes += count as u64,
                Err(error) if is_wait(&error) => {}
                Err(_) => break,
            }
            if points.last().is_none_or(|last| now() >= last.0 + COUNTS) {
                points.push((now(), bytes));
            }
        }
        points
    })
}

impl Load for Iperf3 {
    fn run(&mut self, plan: &Plan) -> Result<Carried, Error> {
        let ways = plan.way.each();
        let (ramp, time) = (plan.ramp.as_secs().max(1), plan.time.as_secs().max(1));
        let mut test = Test::open(self.address)?;
        test.expect(PARAM_EXCHANGE, &[])?;
        let mut wanted = json!({
            "tcp": true, "omit": ramp, "time": time, "num": 0, "blockcount": 0,
            "parallel": plan.flows, "len": 128 * 1024, "pacing_timer": 1000,
            "client_version": "3.12",
        });
        match plan.way {
            Way::Down => wanted["reverse"] = true.into(),
            Way::Both => wanted["bidirectional"] = true.into(),
            Way::Up => {}
        }
        let failed = |source| unreachable(self.address, source);
        test.put(&wanted).map_err(failed)?;
        test.expect(CREATE_STREAMS, &[])?;
        // Those that send come first.
        let mut streams = Vec::new();
        for way in ways {
            for _ in 0..plan.flows {
                streams.push((*way, test.stream()?));
            }
        }
        test.expect(TEST_RUNNING, &[TEST_START])?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut flows = Vec::new();
        for (way, stream) in &streams {
            let stream = stream.try_clone().map_err(failed)?;
            let stop = Arc::clone(&stop);
            flows.push(match way {
                Way::Down => receive(stream, stop, plan.start),
                _ => send(stream, stop),
            });
        }
        thread::sleep(Duration::from_secs(ramp));
        let from = plan.start.elapsed();
        thread::sleep(Duration::from_secs(time));
        let to = plan.start.elapsed();
        stop.store(true, Ordering::Relaxed);
        let points = flows.into_iter().map(|flow| flow.join().unwrap_or_default());
        let meter = Meter(points.filter(|points| !points.is_empty()).collect());
        test.control.write_all(&[TEST_END as u8]).map_err(failed)?;
        // The server ends a test whose data breaks off before it has read of the end.
        test.expect(EXCHANGE_RESULTS, &[])?;
        // What has not left yet must not stand before the results.
        for (_, stream) in streams {
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        }
        let own = json!({
            "cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0,
            "sender_has_retransmits": -1, "streams": own_streams(plan.flows * ways.len(), time),
        });
        test.put(&own).map_err(failed)?;
        let mut results = test.results()?;
        test.expect(DISPLAY_RESULTS, &[])?;
        let _ = test.control.write_all(&[IPERF_DONE as u8]);
        let down = ways.contains(&Way::Down).then(|| Rate {
            mbit: meter.mbit(from.as_nanos() as u64, to.as_nanos() as u64),
            series: meter.series(0),
        });
        let up = ways.contains(&Way::Up).then(|| {
            results.streams.sort_by_key(|stream| stream.id);
            let mbit: f64 = results.streams.iter().take(plan.flows).map(Stream::mbit).sum();
            Rate { mbit, series: vec![[from.as_secs_f64(), mbit], [to.as_secs_f64(), mbit]] }
        });
        for (way, rate) in [("download", &down), ("upload", &up)] {
            if rate.as_ref().is_some_and(|rate| rate.mbit <= 0.0) {
                return Err(Error::NothingCarried { way, seconds: ramp + time });
            }
        }
        Ok(Carried { down, up, from, to, requests: Requests::default() })
    }
}

impl Stream {
    fn mbit(&self) -> f64 {
        let seconds = self.end_time - self.start_time;
        if seconds > 0.0 {
            self.bytes * 8e-6 / seconds
        } else {
            0.0
        }
    }
}

/// Results that the server wants from us, and prints.
fn own_streams(count: usize, seconds: u64) -> Vec<serde_json::Value> {
    // The first has the number 1, the second 3.
    let id = |n: usize| if n == 0 { 1 } else { n + 2 };
    let stream = |n| {
        json!({
            "id": id(n), "bytes": 0, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0,
            "start_time": 0, "end_time": seconds,
        })
    };
    (0..count).map(stream).collect()
}

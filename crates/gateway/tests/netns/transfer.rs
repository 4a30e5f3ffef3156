//! TCP transfers and datagram exchanges to measure by, always with CUBIC.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::world::{bound, cubic, listener, World};

/// One running transfer; counts what its receiver got.
pub struct Transfer {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Transfer {
    /// Sends from one place to an address of another until stopped. The listener is at the
    /// receiver, or with `pull` at the sender, as for a download through address translation.
    pub fn start(world: &World, from: &str, to: &str, at: SocketAddr, pull: bool) -> Transfer {
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, wait) = std::sync::mpsc::channel();
        let (count, end) = (Arc::clone(&received), Arc::clone(&stop));
        let receive = move |mut stream: TcpStream| {
            let mut buffer = vec![0; 256 * 1024];
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            while !end.load(Ordering::Relaxed) {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => drop(count.fetch_add(n as u64, Ordering::Relaxed)),
                    Err(_) => {}
                }
            }
        };
        let end = Arc::clone(&stop);
        let send = move |mut stream: TcpStream| {
            cubic(&stream);
            let buffer = vec![0x55; 64 * 1024];
            stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            while !end.load(Ordering::Relaxed) {
                let _ = stream.write(&buffer);
            }
        };
        let (listening, connecting) = if pull { (from, to) } else { (to, from) };
        type Work = Box<dyn FnOnce(TcpStream) + Send>;
        let work: [(&str, Work); 2] = [(from, Box::new(send)), (to, Box::new(receive))];
        let mut wait = Some(wait);
        let mut threads = Vec::new();
        let mut work: Vec<_> = work.into();
        // The listener first.
        work.sort_by_key(|(place, _)| *place != listening);
        for (place, work) in work {
            if place == listening {
                let ready = ready.clone();
                threads.push(world.spawn(place, move || {
                    let listener = listener(at);
                    cubic(&listener);
                    ready.send(()).unwrap();
                    work(listener.accept().unwrap().0);
                }));
                wait.take().unwrap().recv().unwrap();
            } else {
                assert_eq!(place, connecting);
                threads.push(world.spawn(place, move || {
                    work(TcpStream::connect_timeout(&at, Duration::from_secs(5)).unwrap());
                }));
            }
        }
        Transfer { received, stop, threads }
    }

    /// Bytes that have arrived.
    pub fn bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Goodput over `time` from now, in bit/s.
    pub fn rate(&self, time: Duration) -> f64 {
        let (start, before) = (Instant::now(), self.bytes());
        std::thread::sleep(time);
        (self.bytes() - before) as f64 * 8.0 / start.elapsed().as_secs_f64()
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// Round-trip times of `count` small datagrams from the client to the server and back, sorted.
pub fn round_trips(world: &World, at: SocketAddr, count: usize, gap: Duration) -> Vec<Duration> {
    let (ready, wait) = std::sync::mpsc::channel();
    let echo = world.spawn("s", move || {
        let socket = bound(at);
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        ready.send(()).unwrap();
        let mut buffer = [0; 2048];
        while let Ok((n, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..n], from).unwrap();
        }
    });
    wait.recv().unwrap();
    let times = world.within("c", move || {
        let any = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(at).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut times: Vec<Duration> = (0..count)
            .map(|_| {
                std::thread::sleep(gap);
                let start = Instant::now();
                socket.send(&[0; 32]).unwrap();
                socket.recv(&mut [0; 64]).unwrap();
                start.elapsed()
            })
            .collect();
        times.sort();
        times
    });
    echo.join().unwrap();
    times
}

//! Echoes at a regular interval, whatever answers them, and what became of each.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One request's fate. Times are since the measurement's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Echo {
    /// Time at which it was sent.
    pub(crate) sent: Duration,
    /// Time until it was back; None if it never came.
    pub(crate) rtt: Option<Duration>,
    /// Time to the peer and back from it, in ms, by two clocks whose distance is unknown: only
    /// differences of it mean anything.
    pub(crate) ways: Option<[f64; 2]>,
}

/// Datagrams that somebody answers.
pub(crate) trait Language: Send + Sync + 'static {
    /// The request with this number.
    fn request(&self, number: u32) -> Vec<u8>;
    /// The number that is answered, and the peer's clock in ns as it received and as it answered.
    fn reply(&self, bytes: &[u8]) -> Option<(u32, Option<[u64; 2]>)>;
}

/// Echoes under way; ended when dropped.
pub(crate) struct Prober {
    log: Arc<Log>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

struct Log {
    start: Instant,
    echoes: Mutex<Vec<Echo>>,
}

impl Log {
    fn echoes(&self) -> MutexGuard<'_, Vec<Echo>> {
        self.echoes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; gives its number.
    fn sent(&self) -> u32 {
        let mut echoes = self.echoes();
        echoes.push(Echo { sent: self.start.elapsed(), ..Echo::default() });
        (echoes.len() - 1) as u32
    }

    fn back(&self, number: u32, clock: Option<[u64; 2]>) {
        let now = self.start.elapsed();
        let mut echoes = self.echoes();
        let Some(echo) = echoes.get_mut(number as usize).filter(|echo| echo.rtt.is_none()) else {
            return;
        };
        echo.rtt = Some(now.saturating_sub(echo.sent));
        let ms = |ns: u64| ns as f64 / 1e6;
        let (sent, now) = (echo.sent.as_secs_f64() * 1e3, now.as_secs_f64() * 1e3);
        echo.ways = clock.map(|[received, answered]| [ms(received) - sent, now - ms(answered)]);
    }
}

/// Time between a blocked thread's looks at whether it should end.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Connection attempts at a time.
const ATTEMPTS: usize = 64;

impl Prober {
    /// Sends to the peer of a connected socket.
    pub(crate) fn datagrams(
        socket: UdpSocket,
        language: impl Language,
        interval: Duration,
        start: Instant,
    ) -> io::Result<Prober> {
        socket.set_read_timeout(Some(STOP_CHECK))?;
        let mut prober = Prober::new(start);
        let (back, language) = (socket.try_clone()?, Arc::new(language));
        let (log, stop, speaks) =
            (Arc::clone(&prober.log), Arc::clone(&prober.stop), Arc::clone(&language));
        prober.threads.push(thread::spawn(move || {
            let mut bytes = [0; 2048];
            while !stop.load(Ordering::Relaxed) {
                match back.recv(&mut bytes) {
                    Ok(count) => {
                        if let Some((number, clock)) = speaks.reply(&bytes[..count]) {
                            log.back(number, clock);
                        }
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => {}
                    // For a while nobody may be there.
                    Err(_) => thread::sleep(Duration::from_millis(1)),
                }
            }
        }));
        prober.pace(interval, move |log| {
            let number = log.sent();
            // What cannot be sent is one that does not come back.
            let _ = socket.send(&language.request(number));
        });
        Ok(prober)
    }

    /// Connects again and again; a refusal is an answer as well.
    pub(crate) fn connections(address: SocketAddr, interval: Duration, start: Instant) -> Prober {
        let mut prober = Prober::new(start);
        let under_way = Arc::new(());
        prober.pace(interval, move |log| {
            let number = log.sent();
            if Arc::strong_count(&under_way) > ATTEMPTS {
                return;
            }
            let (log, one) = (Arc::clone(log), Arc::clone(&under_way));
            thread::spawn(move || {
                let _one = one;
                if answers(address, Duration::from_secs(3)) {
                    log.back(number, None);
                }
            });
        });
        prober
    }

    fn new(start: Instant) -> Prober {
        let log = Arc::new(Log { start, echoes: Mutex::default() });
        Prober { log, stop: Arc::default(), threads: Vec::new() }
    }

    fn pace(&mut self, interval: Duration, send: impl Fn(&Arc<Log>) + Send + 'static) {
        let (log, stop) = (Arc::clone(&self.log), Arc::clone(&self.stop));
        self.threads.push(thread::spawn(move || {
            let mut next = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                send(&log);
                next += interval;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        }));
    }

    /// All so far.
    pub(crate) fn echoes(&self) -> Vec<Echo> {
        self.log.echoes().clone()
    }

    /// True once one has come back; waits for it.
    pub(crate) fn is_answered(&self, patience: Duration) -> bool {
        let start = Instant::now();
        loop {
            if self.log.echoes().iter().any(|echo| echo.rtt.is_some()) {
                return true;
            }
            if start.elapsed() > patience {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// True if somebody answers a request to connect, be it by a refusal.
pub(crate) fn answers(address: SocketAddr, patience: Duration) -> bool {
    match TcpStream::connect_timeout(&address, patience) {
        Ok(stream) => {
            // Nothing is left for the kernel to keep.
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            true
        }
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}

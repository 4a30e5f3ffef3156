//! A sparse UDP echo: what a call or a game feels. Sends a small datagram at a regular interval,
//! and notes when each comes back.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Namespace, TestbedError};

/// One datagram's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Time of sending, since the probe was started.
    pub sent: Duration,
    /// Time until it was back; None if it never came.
    pub rtt: Option<Duration>,
}

/// A probe under way.
#[derive(Debug)]
pub struct Probe {
    start: Instant,
    stop: Arc<AtomicBool>,
    sender: JoinHandle<Vec<Duration>>,
    receiver: JoinHandle<Vec<(u32, Duration)>>,
    echo: JoinHandle<()>,
}

/// Payload bytes: a voice frame of 20 ms (G.711).
const PAYLOAD: usize = 172;
/// Interval at which blocked threads look for the order to end.
const STOP_CHECK: Duration = Duration::from_millis(50);

impl Probe {
    /// Starts an echo at the server's `address` and sends to it from the client every `interval`.
    pub fn start(
        client: &Namespace,
        server: &Namespace,
        address: IpAddr,
        interval: Duration,
    ) -> Result<Probe, TestbedError> {
        let failed = |source| TestbedError::Traffic {
            what: format!("cannot open a UDP echo at {address}"),
            source,
        };
        let open = |address: SocketAddr| {
            let socket = UdpSocket::bind(address)?;
            socket.set_read_timeout(Some(STOP_CHECK))?;
            io::Result::Ok(socket)
        };
        let far = server.enter(|| open(SocketAddr::new(address, 0)))?.map_err(failed)?;
        let far_address = far.local_addr().map_err(failed)?;
        let unspecified: SocketAddr =
            if address.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
        let near = client
            .enter(|| {
                let socket = open(unspecified)?;
                socket.connect(far_address)?;
                io::Result::Ok(socket)
            })?
            .map_err(failed)?;
        let back = near.try_clone().map_err(failed)?;

        let (start, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let flag = || Arc::clone(&stop);
        let (stop_echo, stop_sender, stop_receiver) = (flag(), flag(), flag());
        let echo = thread::spawn(move || {
            let mut data = [0; 2 * PAYLOAD];
            while !stop_echo.load(Ordering::Relaxed) {
                if let Ok((count, from)) = far.recv_from(&mut data) {
                    let _ = far.send_to(&data[..count], from);
                }
            }
        });
        let receiver = thread::spawn(move || {
            let mut echoes = Vec::new();
            let mut data = [0; 2 * PAYLOAD];
            while !stop_receiver.load(Ordering::Relaxed) {
                if let Ok(PAYLOAD) = back.recv(&mut data) {
                    let at = start.elapsed();
                    echoes.push((u32::from_be_bytes([data[0], data[1], data[2], data[3]]), at));
                }
            }
            echoes
        });
        let sender = thread::spawn(move || {
            let mut sent = Vec::new();
            while !stop_sender.load(Ordering::Relaxed) {
                let mut data = [0; PAYLOAD];
                data[..4].copy_from_slice(&(sent.len() as u32).to_be_bytes());
                sent.push(start.elapsed());
                // A datagram that cannot be sent is one that does not come back.
                let _ = near.send(&data);
                let next = start + interval * sent.len() as u32;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            sent
        });
        Ok(Probe { start, stop, sender, receiver, echo })
    }

    /// Time since the probe was started: the clock of its results.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Ends the probe. What has not come back by now counts as lost. So wait as long as the line
    /// may delay before this, or leave the last results out.
    pub fn stop(self) -> Vec<Echo> {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.sender.join().unwrap_or_default();
        let echoes = self.receiver.join().unwrap_or_default();
        let _ = self.echo.join();
        let mut results: Vec<Echo> = sent.iter().map(|&sent| Echo { sent, rtt: None }).collect();
        for (number, at) in echoes {
            if let Some(result) = results.get_mut(number as usize) {
                result.rtt.get_or_insert(at.saturating_sub(result.sent));
            }
        }
        results
    }
}

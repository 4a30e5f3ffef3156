//! Bulk TCP flows between namespaces, and how many bytes of payload arrived when.
//!
//! The client opens every connection, whichever way the data goes, so that downloads work through
//! address translation. Senders write as fast as the socket takes it; the receiving ends count.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::SockRef;

use crate::{Namespace, TestbedError};

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Upload,
    /// From the server to the client.
    Download,
}

/// Traffic to send.
#[derive(Clone, Copy, Debug)]
pub struct BulkOptions<'a> {
    /// Direction of the data.
    pub direction: Direction,
    /// Connections.
    pub flows: usize,
    /// Congestion control of the sending ends.
    pub congestion: &'a str,
}

/// Connections that stand and carry nothing yet: several sets can be made ready on an idle line and
/// then be started together.
#[derive(Debug)]
pub struct Connections(Vec<(TcpStream, TcpStream)>);

/// Bulk flows under way; they end when this is dropped.
#[derive(Debug)]
pub struct Bulk {
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
    received: Arc<[AtomicU64]>,
}

/// Bytes handed to the kernel in one call: little, so that senders take turns.
const WRITE_BYTES: usize = 16 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// Longest time for making a connection; lines with seconds of queue exist.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Connections {
    /// Opens connections from the client to the server at `address`.
    pub fn open(
        client: &Namespace,
        server: &Namespace,
        address: IpAddr,
        options: BulkOptions,
    ) -> Result<Connections, TestbedError> {
        let failed = |what: &str, source| TestbedError::Traffic {
            what: format!("cannot {what} {address} for bulk TCP"),
            source,
        };
        let listener = server
            .enter(|| TcpListener::bind(SocketAddr::new(address, 0)))?
            .map_err(|source| failed("listen on", source))?;
        let address = listener.local_addr().map_err(|source| failed("listen on", source))?;
        let mut pairs = Vec::new();
        for _ in 0..options.flows {
            let near = client
                .enter(|| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT))?
                .map_err(|source| failed("connect to", source))?;
            let (far, _) = listener.accept().map_err(|source| failed("accept on", source))?;
            let (sender, receiver) = match options.direction {
                Direction::Upload => (near, far),
                Direction::Download => (far, near),
            };
            SockRef::from(&sender)
                .set_tcp_congestion(options.congestion.as_bytes())
                .map_err(|source| failed("choose the congestion control for", source))?;
            pairs.push((sender, receiver));
        }
        Ok(Connections(pairs))
    }

    /// Starts to send on all of them.
    pub fn start(self) -> Result<Bulk, TestbedError> {
        let failed =
            |source| TestbedError::Traffic { what: "cannot serve bulk TCP".into(), source };
        let received: Arc<[AtomicU64]> = self.0.iter().map(|_| AtomicU64::new(0)).collect();
        let mut bulk = Bulk { streams: Vec::new(), threads: Vec::new(), received };
        for (flow, (mut sender, mut receiver)) in self.0.into_iter().enumerate() {
            for stream in [&sender, &receiver] {
                bulk.streams.push(stream.try_clone().map_err(failed)?);
            }
            bulk.threads.push(thread::spawn(move || {
                let data = [0x5a; WRITE_BYTES];
                while sender.write_all(&data).is_ok() {}
            }));
            let received = Arc::clone(&bulk.received);
            bulk.threads.push(thread::spawn(move || {
                let mut data = vec![0; READ_BYTES];
                while let Ok(count @ 1..) = receiver.read(&mut data) {
                    received[flow].fetch_add(count as u64, Ordering::Relaxed);
                }
            }));
        }
        Ok(bulk)
    }
}

impl Bulk {
    /// Bytes of payload that each flow has delivered so far.
    pub fn received(&self) -> Vec<u64> {
        self.received.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect()
    }

    /// A function that gives all flows' bytes together, for a [`super::wire::Sampler`].
    pub fn counter(&self) -> impl Fn() -> u64 + Send + 'static {
        let received = Arc::clone(&self.received);
        move || received.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        for stream in &self.streams {
            // Unsent data would keep the line busy into the next measurement.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

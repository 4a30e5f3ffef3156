//! Connections: accepted, bounded in number, and closed in time.
//!
//! ```text
//! a request's head          whole within the patience; so long may be between two requests, too
//! an answer                 the client takes some of it within the patience, again and again
//! one too many              the one that has been quiet longest makes room, strangers first
//! ```
//!
//! Strangers have not had an answer to a request that [`crate::guard`] let through. So who comes
//! without a token can neither keep others out nor close what they look at.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::Sleep;
use tower::util::MapRequestLayer;
use tower::Layer;

use crate::Limits;

/// Bytes of a request's head.
const MOST_HEAD: usize = 16 * 1024;
/// Time to wait if no connection can be accepted: out of descriptors, most likely.
const PAUSE: Duration = Duration::from_millis(100);

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Standing {
    begin: Instant,
    /// Time at which bytes last went either way, in milliseconds since `begin` of the server.
    active_ms: AtomicU64,
    known: AtomicBool,
}

impl Standing {
    fn new(begin: Instant) -> Standing {
        let standing = Standing { begin, active_ms: 0.into(), known: false.into() };
        standing.moved();
        standing
    }

    /// A request was let through.
    pub(crate) fn admit(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    fn moved(&self) {
        let now = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.active_ms.store(now, Ordering::Relaxed);
    }

    /// Whoever has the least makes room: strangers before others, then the longest quiet.
    fn rank(&self) -> (bool, u64) {
        (self.known.load(Ordering::Relaxed), self.active_ms.load(Ordering::Relaxed))
    }
}

struct Place {
    standing: Arc<Standing>,
    task: AbortHandle,
}

/// Answers all who come, until the process ends.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits) -> Infallible {
    let begin = Instant::now();
    let mut places: Vec<Place> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        places.retain(|place| !place.task.is_finished());
        if places.len() >= limits.connections {
            let least = (0..places.len()).min_by_key(|&index| places[index].standing.rank());
            if let Some(index) = least {
                places.swap_remove(index).task.abort();
            }
        }
        let standing = Arc::new(Standing::new(begin));
        let client = Client::new(stream, standing.clone(), limits.patience);
        let with_standing = {
            let standing = standing.clone();
            MapRequestLayer::new(move |mut request: Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(standing.clone());
                request
            })
        };
        let service = TowerToHyperService::new(with_standing.layer(router.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.patience)
            .max_buf_size(MOST_HEAD)
            .serve_connection(TokioIo::new(client), service);
        // What ends a connection is the other side's business.
        let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        places.push(Place { standing, task });
    }
}

/// A stream whose other end must take what is written.
struct Client {
    stream: TcpStream,
    standing: Arc<Standing>,
    patience: Duration,
    /// Runs while something waits to be taken.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Client {
    fn new(stream: TcpStream, standing: Arc<Standing>, patience: Duration) -> Client {
        Client { stream, standing, patience, stalled: None }
    }

    /// The result of a write, unless nothing has been taken for too long.
    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            self.standing.moved();
            return written;
        }
        let patience = self.patience;
        let wait = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(wait.as_mut().poll(context));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.standing.moved();
        }
        read
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

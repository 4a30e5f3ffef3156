//! `networkQuality`'s convention against a server of it here, in clear text and by TLS.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{Method, Request, Response, StatusCode};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use simnel_measure::{measure, Options, Peer, Report, Way};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{sleep_until, Instant};
use tokio_rustls::TlsAcceptor;

const BLOCK: usize = 16 * 1024;
/// Bytes a second of all transfers one way: a client waits for goodput that stands still.
const RATE: f64 = 8e6;

/// A server on loopback, and what it was asked.
struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    small: AtomicUsize,
    uploaded: AtomicUsize,
    down: Pace,
    up: Pace,
}

impl Server {
    /// Answers a configuration in which `upload` is the path for uploads.
    fn start(tls: Option<TlsAcceptor>, upload: &'static str) -> Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let server = Server { address, seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let scheme = if tls.is_some() { "https" } else { "http" };
                let place = format!("{scheme}://localhost:{}", address.port());
                let config: Bytes = format!(
                    r#"{{"version": 1, "test_endpoint": "127.0.0.1", "urls": {{
                    "small_https_download_url": "{place}/small",
                    "large_https_download_url": "{place}/large",
                    "small_download_url": "{place}/none", "large_download_url": "{place}/none",
                    "upload_url": "{place}{upload}"}}}}"#
                )
                .into();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    seen.connections.fetch_add(1, Ordering::Relaxed);
                    let (tls, config, seen) = (tls.clone(), config.clone(), Arc::clone(&seen));
                    tokio::spawn(async move {
                        match tls {
                            Some(tls) => {
                                let Ok(stream) = tls.accept(stream).await else { return };
                                serve(stream, config, seen).await;
                            }
                            None => serve(stream, config, seen).await,
                        }
                    });
                }
            });
        });
        server
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    config: Bytes,
    seen: Arc<Seen>,
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond, config.clone(), Arc::clone(&seen)));
    }
}

/// Errors are those of clients that have gone.
async fn answer(
    request: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    config: Bytes,
    seen: Arc<Seen>,
) -> Result<(), h2::Error> {
    let good = || Response::new(());
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/.well-known/nq") => {
            respond.send_response(good(), false)?.send_data(config, true)
        }
        (&Method::GET, "/small") => {
            seen.small.fetch_add(1, Ordering::Relaxed);
            respond.send_response(good(), false)?.send_data(Bytes::from_static(b"x"), true)
        }
        (&Method::GET, "/large") => {
            let mut stream = respond.send_response(good(), false)?;
            // The client has to ask again now and then.
            for _ in 0..10_000 {
                stream.reserve_capacity(BLOCK);
                let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
                let Some(Ok(room)) = room else { return Ok(()) };
                stream.send_data(Bytes::from(vec![0; room.min(BLOCK)]), false)?;
                seen.down.pass(room.min(BLOCK)).await;
            }
            stream.send_data(Bytes::new(), true)
        }
        (&Method::POST, "/upload") => {
            let mut body = request.into_body();
            while let Some(Ok(chunk)) = body.data().await {
                seen.uploaded.fetch_add(chunk.len(), Ordering::Relaxed);
                seen.up.pass(chunk.len()).await;
                body.flow_control().release_capacity(chunk.len())?;
            }
            respond.send_response(good(), true).map(drop)
        }
        _ => {
            let mut none = Response::new(());
            *none.status_mut() = StatusCode::NOT_FOUND;
            respond.send_response(none, true).map(drop)
        }
    }
}

/// Holds transfers to a rate that they share.
#[derive(Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    async fn pass(&self, bytes: usize) {
        let time = Duration::from_secs_f64(bytes as f64 / RATE);
        let end = {
            let mut last = self.0.lock().unwrap();
            let now = Instant::now();
            let begin = last.map_or(now, |last| last.max(now));
            *last.insert(begin + time)
        };
        sleep_until(end).await;
    }
}

/// An acceptor for `localhost`, and the certificate as PEM.
fn tls() -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

fn measured(peer: Peer, ways: &[Way]) -> Result<Report, String> {
    let options = Options {
        idle: Duration::from_millis(300),
        load: Duration::from_secs(2),
        ways: ways.to_vec(),
        ..Options::new(peer)
    };
    measure(&options, &mut |_| {}).map_err(|e| e.to_string())
}

#[test]
fn round_trips_are_measured_in_clear_text() {
    let server = Server::start(None, "/upload");
    let url = format!("http://{}/.well-known/nq", server.address);
    let report = measured(Peer::network_quality(&url, None).unwrap(), &[Way::Both]).unwrap();
    println!("{}", report.to_json());
    let both = &report.phases[0];
    assert!(both.download_mbit.unwrap() > 10.0 && both.upload_mbit.unwrap() > 10.0, "{both:?}");
    assert!(both.rpm.unwrap() > 60.0 && both.echoes > 50, "{both:?}");
    let seen = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    // Two connections a second for the load, and one with each probe.
    assert!(seen(&server.seen.connections) > 20, "{}", seen(&server.seen.connections));
    assert!(seen(&server.seen.small) > 20);
    let sent = both.upload_mbit.unwrap() * report.seconds * 125e3;
    assert!(seen(&server.seen.uploaded) as f64 > sent * 0.9, "what is counted has arrived");
}

#[test]
fn certificates_are_checked() {
    let (acceptor, certificate) = tls();
    let server = Server::start(Some(acceptor), "/upload");
    let host = format!("localhost:{}", server.address.port());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate).unwrap();
    let strange = Peer::network_quality(&host, None).unwrap_err().to_string();
    assert!(strange.contains("certificate"), "{strange}");
    let report = measured(Peer::network_quality(&host, Some(file.path())).unwrap(), &[Way::Down]);
    let down = report.unwrap().phases.remove(0);
    println!("{down:?}");
    assert!(down.download_mbit.unwrap() > 10.0 && down.upload_mbit.is_none(), "{down:?}");
    assert!(down.rpm.unwrap() > 60.0, "{down:?}");
    // The server speaks TLS only.
    let clear = format!("http://{host}/.well-known/nq");
    assert!(Peer::network_quality(&clear, None).is_err());
}

#[test]
fn what_is_wrong_is_named() {
    let server = Server::start(None, "/nowhere");
    let url = |path: &str| format!("http://{}{path}", server.address);
    let error = |text: &str| Peer::network_quality(text, None).unwrap_err().to_string();
    assert!(error("ftp://a.example/").contains("is no host and no URL"));
    assert!(error(&url("/none")).contains("404"), "{}", error(&url("/none")));
    assert!(error(&url("/small")).contains("no configuration in JSON"));
    let peer = Peer::network_quality(&url("/.well-known/nq"), None).unwrap();
    let refused = measured(peer, &[Way::Up]).unwrap_err();
    assert!(refused.contains("/nowhere is answered with 404"), "{refused}");
}

/// nghttp2's own server, whose files are the objects, and one of them the place for uploads.
#[test]
fn nghttpd_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = format!("http://{free}");
    let put =
        |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    put("small", b"x");
    put("large", &vec![0; 32 << 20]);
    let urls = ["small", "large"].map(|name| format!(r#""{name}_download_url": "{place}/{name}""#));
    let urls = format!(r#"{}, "upload_url": "{place}/small""#, urls.join(", "));
    put("config", format!(r#"{{"version": 1, "urls": {{{urls}}}}}"#).as_bytes());
    let mut command = std::process::Command::new("nghttpd");
    command.args(["--no-tls", "-a", "127.0.0.1", "-d"]).arg(directory.path());
    command.arg(free.port().to_string()).stdout(std::process::Stdio::null());
    let mut server = match command.spawn() {
        Ok(server) => server,
        Err(error) => return eprintln!("NOT RUN: measuring against nghttpd: {error}"),
    };
    let begin = std::time::Instant::now();
    let peer = loop {
        match Peer::network_quality(&format!("{place}/config"), None) {
            Ok(peer) => break Ok(peer),
            Err(_) if begin.elapsed() < Duration::from_secs(5) => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    let report = peer.and_then(|peer| measured(peer, &[Way::Down, Way::Up]));
    let _ = (server.kill(), server.wait());
    for phase in report.unwrap().phases {
        println!("{phase:?}");
        let carried = phase.download_mbit.or(phase.upload_mbit).unwrap();
        assert!(carried > 10.0 && phase.rpm.unwrap() > 60.0, "{phase:?}");
    }
}

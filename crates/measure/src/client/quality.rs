//! Round trips per minute over HTTP/2, against servers of the networkQuality convention
//! (draft-ietf-ippm-responsiveness-08).
//!
//! The configuration that such a server hands out names a small and a large object and a place for
//! uploads. Each second another connection loads the line, until the goodput's moving average
//! stands still (section 4.1). Then, beside the load, small requests go out on new connections and
//! on those that carry it (section 4.2).
//!
//! Downloads are counted as they come, uploads as HTTP/2's flow control lets them go. What the
//! system still holds is the same at both ends of the time that counts.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request, StatusCode, Uri};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout, Instant};
use tokio_rustls::TlsConnector;

use super::load::{Carried, Load, Meter, Plan, Rate, Requests};
use super::Peer;
use crate::error::late;
use crate::way::Way;
use crate::Error;

/// Path of the configuration on a host that is named without one.
const WELL_KNOWN: &str = "/.well-known/nq";
/// Keys of what a server is asked for, by either name that is in use.
const KEYS: [[&str; 2]; 3] = [
    ["small_https_download_url", "small_download_url"],
    ["large_https_download_url", "large_download_url"],
    ["https_upload_url", "upload_url"],
];
/// Bytes of a configuration, at most.
const MOST: usize = 64 * 1024;
/// Bytes that may be on their way unread: no limit to a line of 1 Gbit/s and 500 ms.
const WINDOW: u32 = 64 << 20;
/// Bytes of an upload that are handed over at a time.
const BLOCK: usize = 64 * 1024;
/// Time between connections that are added, and between looks at the goodput (the draft's ID).
const INTERVAL: Duration = Duration::from_secs(1);
/// Moving averages of so many looks; so many of these must stand still (MAD).
const LOOKS: usize = 4;
/// They do if they deviate by a twentieth (SDT).
const DEVIATION: f64 = 0.05;
/// A goodput that never stands still is taken as it is.
const LONGEST: Duration = Duration::from_secs(15);
/// Time between probes, and how many may be on their way.
const PROBES: Duration = Duration::from_millis(100);
const UNDER_WAY: usize = 64;
/// Time between counts.
const COUNTS: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);

/// A server, as its configuration describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quality {
    pub(crate) address: SocketAddr,
    /// The small and the large object, the place for uploads.
    small: Uri,
    large: Uri,
    upload: Uri,
    ca: Option<PathBuf>,
}

impl Quality {
    /// Asks for the configuration: a URL of it, or a host that has it at the usual place.
    /// Certificates are checked by those of `ca`, or by the system's.
    pub(crate) fn find(text: &str, ca: Option<&Path>) -> Result<Quality, Error> {
        let url = match text.contains("://") {
            true => text.to_owned(),
            false => format!("https://{text}{WELL_KNOWN}"),
        };
        let url = uri(&url).ok_or_else(|| Error::NoUrl(text.to_owned()))?;
        let address = resolve(host_and_port(&url))?;
        let client = Client::new(address, ca)?;
        let runtime = runtime()?;
        let config = runtime.block_on(async {
            let fetched = async {
                let (mut connection, _) = client.connect(&url).await?;
                get(&mut connection, &url, MOST).await
            };
            timeout(PATIENCE, fetched).await.unwrap_or_else(|_| Err(late()))
        });
        let config = config.map_err(|source| unreachable(address, source))?;
        let strange = |reason: String| Error::Protocol {
            address,
            expected: "networkQuality's servers",
            reason,
        };
        let config: serde_json::Value = serde_json::from_slice(&config)
            .map_err(|e| strange(format!("{url} is no configuration in JSON ({e})")))?;
        let [small, large, upload] = KEYS.map(|keys| {
            let named = keys.iter().find_map(|key| config["urls"][key].as_str());
            named.and_then(uri).ok_or_else(|| strange(format!("{url} says no `{}`", keys[1])))
        });
        let (small, large, upload) = (small?, large?, upload?);
        // Some name the host nearest to whoever asks.
        let (host, port) = host_and_port(&large);
        let host = config["test_endpoint"].as_str().unwrap_or(host);
        let address = resolve((host, port))?;
        Ok(Quality { address, small, large, upload, ca: ca.map(Path::to_owned) })
    }

    /// Load by this server.
    pub(crate) fn load(&self) -> Result<QualityLoad, Error> {
        let client = Arc::new(Client::new(self.address, self.ca.as_deref())?);
        Ok(QualityLoad { quality: self.clone(), client, runtime: runtime()? })
    }
}

fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("starting the client for HTTP", e))
}

/// A URL with a scheme that is understood, and a host.
fn uri(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    (uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))).then_some(uri)
}

fn is_secure(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

fn host_and_port(uri: &Uri) -> (&str, u16) {
    let port = uri.port_u16().unwrap_or(if is_secure(uri) { 443 } else { 80 });
    (uri.host().unwrap_or_default(), port)
}

fn resolve((host, port): (&str, u16)) -> Result<SocketAddr, Error> {
    Peer::find(host, port)
}

fn unreachable(address: SocketAddr, source: io::Error) -> Error {
    Error::unreachable(address, "networkQuality server", source)
}

/// TCP, or TLS above it.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Makes connections.
struct Client {
    address: SocketAddr,
    tls: TlsConnector,
}

/// Milliseconds of a connection's handshakes.
struct Handshakes {
    tcp: f64,
    /// Each round trip of TLS.
    tls: Option<f64>,
}

impl Client {
    fn new(address: SocketAddr, ca: Option<&Path>) -> Result<Client, Error> {
        let mut roots = RootCertStore::empty();
        // Without any, the handshake says what is missing.
        let file = ca.map(Path::to_owned).or_else(|| openssl_probe::probe().cert_file);
        if let Some(path) = file {
            let failed = |e: rustls::pki_types::pem::Error| {
                let doing = format!("reading certificates from {}", path.display());
                Error::system(doing, io::Error::other(e.to_string()))
            };
            let all = CertificateDer::pem_file_iter(&path).map_err(failed)?;
            let all = all.collect::<Result<Vec<_>, _>>().map_err(failed)?;
            roots.add_parsable_certificates(all);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::system("setting up TLS", io::Error::other(e)))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        // Each handshake is to take its whole time.
        config.resumption = Resumption::disabled();
        Ok(Client { address, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// A connection for requests to `uri`: TLS, or HTTP/2 by prior knowledge.
    async fn connect(&self, uri: &Uri) -> io::Result<(SendRequest<Bytes>, Handshakes)> {
        let begin = Instant::now();
        let tcp = TcpStream::connect(self.address).await?;
        tcp.set_nodelay(true)?;
        let mut handshakes = Handshakes { tcp: milliseconds(begin), tls: None };
        let stream: Box<dyn Stream> = if is_secure(uri) {
            let name = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let name = ServerName::try_from(name).map_err(io::Error::other)?;
            let begin = Instant::now();
            let stream = self.tls.connect(name, tcp).await?;
            let (_, session) = stream.get_ref();
            if session.alpn_protocol() != Some(b"h2") {
                return Err(io::Error::other("the server does not speak HTTP/2"));
            }
            let rounds = match session.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => 2.0,
                _ => 1.0,
            };
            handshakes.tls = Some(milliseconds(begin) / rounds);
            Box::new(stream)
        } else {
            Box::new(tcp)
        };
        let (send, connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream)
            .await
            .map_err(io::Error::other)?;
        // Its end is seen by whoever uses it.
        tokio::spawn(async { drop(connection.await) });
        Ok((send, handshakes))
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Begins a request.
async fn request(
    connection: &mut SendRequest<Bytes>,
    method: Method,
    uri: &Uri,
) -> io::Result<(h2::client::ResponseFuture, h2::SendStream<Bytes>)> {
    let is_whole = method == Method::GET;
    poll_fn(|context| connection.poll_ready(context)).await.map_err(io::Error::other)?;
    let request = Request::builder().method(method).uri(uri.clone()).body(());
    let request = request.map_err(io::Error::other)?;
    connection.send_request(request, is_whole).map_err(io::Error::other)
}

/// The body that comes as the answer, which must be a good one.
async fn body(uri: &Uri, response: h2::client::ResponseFuture) -> io::Result<h2::RecvStream> {
    let response = response.await.map_err(io::Error::other)?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(io::Error::other(format!("{uri} is answered with {status}"))),
    }
}

/// The object at `uri`, as far as `most` bytes.
async fn get(connection: &mut SendRequest<Bytes>, uri: &Uri, most: usize) -> io::Result<Vec<u8>> {
    let (response, _) = request(connection, Method::GET, uri).await?;
    let mut body = body(uri, response).await?;
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(io::Error::other)?;
        let _ = body.flow_control().release_capacity(chunk.len());
        bytes.extend(chunk);
        if bytes.len() > most {
            return Err(io::Error::other(format!("{uri} has more than {most} bytes")));
        }
    }
    Ok(bytes)
}

/// Fetches the large object again and again.
async fn download(
    mut connection: SendRequest<Bytes>,
    uri: Uri,
    count: Arc<AtomicU64>,
) -> io::Result<()> {
    loop {
        let (response, _) = request(&mut connection, Method::GET, &uri).await?;
        let mut body = body(&uri, response).await?;
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(io::Error::other)?;
            let _ = body.flow_control().release_capacity(chunk.len());
            count.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Sends without an end.
async fn upload(
    mut connection: SendRequest<Bytes>,
    uri: Uri,
    count: Arc<AtomicU64>,
) -> io::Result<()> {
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let (response, mut stream) = request(&mut connection, Method::POST, &uri).await?;
    let mut response = std::pin::pin!(body(&uri, response));
    loop {
        stream.reserve_capacity(BLOCK);
        tokio::select! {
            // No server has reason to answer before the end, but to refuse.
            answer = &mut response => {
                return answer.and(Err(io::Error::other(format!("{uri} takes no upload"))));
            }
            room = poll_fn(|context| stream.poll_capacity(context)) => {
                let Some(room) = room else {
                    return response.await.and(Err(io::ErrorKind::ConnectionReset.into()));
                };
                let room = room.map_err(io::Error::other)?.min(BLOCK);
                stream.send_data(block.slice(..room), false).map_err(io::Error::other)?;
                count.fetch_add(room as u64, Ordering::Relaxed);
            }
        }
    }
}

/// A connection that carries load.
struct Flow {
    way: Way,
    connection: SendRequest<Bytes>,
    count: Arc<AtomicU64>,
    points: Vec<(u64, u64)>,
    task: AbortHandle,
}

/// Load by such a server.
pub(crate) struct QualityLoad {
    quality: Quality,
    client: Arc<Client>,
    runtime: Runtime,
}

impl Load for QualityLoad {
    fn run(&mut self, plan: &Plan) -> Result<Carried, Error> {
        let QualityLoad { quality, client, runtime } = self;
        let mut run = Run { quality, client, plan, flows: Vec::new(), carrying: JoinSet::new() };
        runtime.block_on(run.run()).map_err(|source| unreachable(quality.address, source))
    }
}

/// One load as it runs.
struct Run<'a> {
    quality: &'a Quality,
    client: &'a Arc<Client>,
    plan: &'a Plan,
    flows: Vec<Flow>,
    carrying: JoinSet<io::Result<()>>,
}

/// A small request's times.
enum Probe {
    New(Handshakes, f64),
    Loaded(f64),
}

impl Run<'_> {
    async fn run(&mut self) -> io::Result<Carried> {
        let begin = Instant::now();
        let mut goodputs = Vec::new();
        while !is_steady(&goodputs) && begin.elapsed() < LONGEST {
            for way in [Way::Down, Way::Up] {
                if self.plan.way == way || self.plan.way == Way::Both {
                    self.add(way).await?;
                }
            }
            let (since, before) = (Instant::now(), self.bytes());
            self.wait(INTERVAL).await?;
            goodputs.push((self.bytes() - before) as f64 / since.elapsed().as_secs_f64());
        }
        let from = self.plan.start.elapsed();
        let mut probes: JoinSet<io::Result<Probe>> = JoinSet::new();
        let mut requests = Requests::default();
        for number in 0.. {
            if self.plan.start.elapsed() >= from + self.plan.time {
                break;
            }
            if probes.len() < UNDER_WAY {
                self.probe(number, &mut probes);
            }
            self.wait(PROBES).await?;
            while let Some(probe) = probes.try_join_next() {
                keep(&mut requests, probe.map_err(io::Error::other)?);
            }
        }
        let to = self.plan.start.elapsed();
        // Who would count only what is back, would leave out the slowest.
        let end = Instant::now() + PATIENCE;
        while !probes.is_empty() && Instant::now() < end {
            self.wait(COUNTS).await?;
            while let Some(probe) = probes.try_join_next() {
                keep(&mut requests, probe.map_err(io::Error::other)?);
            }
        }
        self.flows.iter().for_each(|flow| flow.task.abort());
        let rate = |way| {
            let flows = self.flows.iter().filter(|flow| flow.way == way);
            let meter = Meter(flows.map(|flow| flow.points.clone()).collect());
            let nanos = |time: Duration| time.as_nanos() as u64;
            meter
                .ends()
                .map(|_| Rate { mbit: meter.mbit(nanos(from), nanos(to)), series: meter.series(0) })
        };
        Ok(Carried { down: rate(Way::Down), up: rate(Way::Up), from, to, requests })
    }

    /// Another connection that carries load.
    async fn add(&mut self, way: Way) -> io::Result<()> {
        let uri = if way == Way::Up { &self.quality.upload } else { &self.quality.large };
        let connecting = timeout(PATIENCE, self.client.connect(uri));
        let (connection, _) = connecting.await.unwrap_or_else(|_| Err(late()))?;
        let count = Arc::new(AtomicU64::new(0));
        let (carrier, uri, counter) = (connection.clone(), uri.clone(), Arc::clone(&count));
        let task = match way {
            Way::Up => self.carrying.spawn(upload(carrier, uri, counter)),
            _ => self.carrying.spawn(download(carrier, uri, counter)),
        };
        self.flows.push(Flow { way, connection, count, points: Vec::new(), task });
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.count.load(Ordering::Relaxed)).sum()
    }

    /// Lets time pass, counting; an error if a flow has ended.
    async fn wait(&mut self, span: Duration) -> io::Result<()> {
        let end = Instant::now() + span;
        while Instant::now() < end {
            sleep(COUNTS.min(end - Instant::now())).await;
            let at = self.plan.start.elapsed().as_nanos() as u64;
            for flow in &mut self.flows {
                flow.points.push((at, flow.count.load(Ordering::Relaxed)));
            }
            if let Some(ended) = self.carrying.try_join_next() {
                return ended.map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    /// Small requests: on a new connection, and on the next one that carries load.
    fn probe(&self, number: usize, probes: &mut JoinSet<io::Result<Probe>>) {
        let (client, uri) = (Arc::clone(self.client), self.quality.small.clone());
        probes.spawn(async move {
            let (mut connection, handshakes) = client.connect(&uri).await?;
            let begin = Instant::now();
            get(&mut connection, &uri, MOST).await?;
            Ok(Probe::New(handshakes, milliseconds(begin)))
        });
        let (uri, flow) = (self.quality.small.clone(), &self.flows[number % self.flows.len()]);
        let mut connection = flow.connection.clone();
        probes.spawn(async move {
            let begin = Instant::now();
            get(&mut connection, &uri, MOST).await?;
            Ok(Probe::Loaded(milliseconds(begin)))
        });
    }
}

/// Takes a probe's times; one that failed has none.
fn keep(requests: &mut Requests, probe: io::Result<Probe>) {
    match probe {
        Ok(Probe::New(handshakes, request)) => {
            requests.tcp.push(handshakes.tcp);
            requests.tls.extend(handshakes.tls);
            requests.new.push(request);
        }
        Ok(Probe::Loaded(request)) => requests.loaded.push(request),
        Err(_) => {}
    }
}

/// True if the last moving averages deviate little (the draft's section 4.1).
fn is_steady(goodputs: &[f64]) -> bool {
    let averages: Vec<f64> =
        goodputs.windows(LOOKS).map(|window| window.iter().sum::<f64>() / LOOKS as f64).collect();
    let Some(last) = averages.len().checked_sub(LOOKS).map(|first| &averages[first..]) else {
        return false;
    };
    let mean = last.iter().sum::<f64>() / LOOKS as f64;
    let variance = last.iter().map(|average| (average - mean).powi(2)).sum::<f64>() / LOOKS as f64;
    variance.sqrt() < DEVIATION * last[LOOKS - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_steady_when_its_averages_are() {
        let steady = [9.0, 10.0, 11.0, 10.0, 9.0, 10.0, 11.0];
        assert!(is_steady(&steady));
        assert!(!is_steady(&steady[1..]), "three averages only");
        let rising: Vec<f64> = (0..20).map(|n| f64::from(n) * 4.0).collect();
        assert!(!is_steady(&rising[..10]));
        assert!(!is_steady(&[0.0; 9]), "nothing comes through");
    }

    #[test]
    fn urls_have_a_scheme_and_a_host() {
        let place = |text: &str| {
            uri(text).map(|uri| {
                let (host, port) = host_and_port(&uri);
                (host.to_owned(), port)
            })
        };
        assert_eq!(place("https://a.example/x"), Some(("a.example".into(), 443)));
        assert_eq!(place("http://[::1]:8080/x"), Some(("[::1]".into(), 8080)));
        assert_eq!(place("ftp://a.example/x"), None);
        assert_eq!(place("/x"), None);
    }
}

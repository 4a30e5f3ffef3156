//! The server, asked as anybody can ask.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use simnel_web::{Error, Limits, Server, Settings};

/// A server of a directory without gateways, which ends with the test.
fn server(token: Option<&str>) -> SocketAddr {
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        token: token.map(String::from),
        control_dir: "/nowhere/at/all".into(),
        limits: Limits::default(),
        history: None,
        asks: false,
        changes: false,
        notice: |_| {},
    };
    let server = Server::bind(settings).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.run().unwrap());
    address
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // The server may refuse it, and close, before all has come.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    // The stream of events does not end.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn everything_that_is_promised_is_there_and_protected() {
    let address = server(None);
    for (path, inside) in [
        ("/", "<title>Simnel</title>"),
        ("/app.js", "EventSource"),
        ("/style.css", "color-scheme"),
        ("/metrics", "# EOF"),
        ("/api/v1/interfaces", r#"{"interfaces":[],"trouble":null}"#),
        ("/api/v1/history", r#""interfaces":[]"#),
        ("/api/v1/history?span=30d", r#""step_s":1800"#),
        ("/api/openapi.json", r#""openapi": "3.1.0""#),
    ] {
        let answer = get(address, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(answer.contains(inside), "{path}: {answer}");
        for header in
            ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff"]
        {
            assert!(answer.contains(header), "{path}: {answer}");
        }
    }
    for wrong in ["1h", "", "24h%20"] {
        let answer = get(address, &format!("/api/v1/history?span={wrong}"));
        assert!(answer.starts_with("HTTP/1.1 400"), "{wrong}: {answer}");
    }
    for path in ["/../../etc/passwd", "/%2e%2e/etc/passwd", "/api/v1/nothing"] {
        assert!(get(address, path).starts_with("HTTP/1.1 404"), "{path}");
    }
}

#[test]
fn others_are_refused() {
    let address = server(None);
    let post = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert!(ask(address, &post).starts_with("HTTP/1.1 405"));
    let rebound = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(ask(address, rebound).starts_with("HTTP/1.1 403"));
    for nonsense in ["\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET\r\n\r\n"] {
        assert!(!ask(address, nonsense).contains(" 200 "), "{nonsense:?}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: {address}\r\n\r\n", "x".repeat(1 << 20));
    assert!(!ask(address, &long).contains(" 200 "));
    assert!(get(address, "/").starts_with("HTTP/1.1 200"), "it answers still");

    let address = server(Some("secret"));
    for path in ["/", "/metrics", "/api/v1/history", "/api/v1/events", "/api/openapi.json"] {
        assert!(get(address, path).starts_with("HTTP/1.1 401"), "{path}");
    }
    for path in ["/app.js", "/style.css"] {
        let answer = get(address, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "the page cannot ask with a token: {answer}");
    }
    assert!(get(address, "/metrics?token=secret").starts_with("HTTP/1.1 200"));
}

#[test]
fn nothing_listens_beyond_loopback_without_a_token() {
    let settings = Settings {
        listen: "0.0.0.0:0".parse().unwrap(),
        token: None,
        control_dir: "/run/simnel".into(),
        limits: Limits::default(),
        history: None,
        asks: false,
        changes: false,
        notice: |_| {},
    };
    let refused = Server::bind(settings.clone());
    assert!(matches!(refused, Err(Error::NoToken(_))));
    assert!(Server::bind(Settings { token: Some("secret".into()), ..settings }).is_ok());
}

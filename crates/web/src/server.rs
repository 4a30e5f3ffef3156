//! Routes, and the server that answers them.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{header, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{json, Value};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};

use crate::board::{self, Seen};
use crate::changes::Changes;
use crate::connections::{self, Standing};
use crate::guard::{self, Guard, Refused};
use crate::history::SPANS;
use crate::{metrics, Error, Limits, Settings};

/// Everything comes from here, nothing is written into the page, and nobody may frame it.
const POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Listens, and has not answered yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    settings: Settings,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// Not loopback and no token; or the address cannot be had.
    pub fn bind(settings: Settings) -> Result<Server, Error> {
        if settings.token.is_none() && !settings.listen.ip().is_loopback() {
            return Err(Error::NoToken(settings.listen));
        }
        if settings.token.is_none() && settings.changes {
            return Err(Error::NoTokenForChanges);
        }
        Ok(Server { listener: listen(settings.listen)?, settings })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.settings.listen)
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// No thread can be started, or the listener fails.
    pub fn run(self) -> Result<(), Error> {
        let Settings { control_dir, history, asks, notice, token, limits, changes, .. } =
            self.settings;
        let mut seen =
            board::watch(control_dir.clone(), history, asks, notice).map_err(Error::Start)?;
        let changes =
            changes.then(|| Changes::new(control_dir, seen.board.clone(), limits.patience));
        seen.may_change = changes.is_some();
        serve(self.listener, router(seen, token, changes), limits)
    }
}

/// Takes an address.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| Error::Listen(address, error))
}

/// Answers on this thread until the process ends.
pub(crate) fn serve(listener: TcpListener, router: Router, limits: Limits) -> Result<(), Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Start)?;
        match connections::serve(listener, router, limits).await {}
    })
}

/// Rules before all routes.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The check of who asks.
    pub guard: Guard,
    /// Sources that a page may take things from (`Content-Security-Policy`).
    pub policy: &'static str,
}

impl Rules {
    /// `router` behind these rules.
    pub fn before(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::new(self), enter))
    }
}

/// All routes, over what was seen.
fn router(seen: Seen, token: Option<String>, changes: Option<Changes>) -> Router {
    let guard = Guard::new(token, changes.is_some());
    let change = |Path((name, what)): Path<(String, String)>, body: Body| async move {
        let Some(changes) = changes else { return refuse(StatusCode::NOT_FOUND, "no changes") };
        match changes.make(name, what, body).await {
            Ok(done) => Json(done).into_response(),
            Err((status, why)) => refuse(status, &why),
        }
    };
    let router = Router::new()
        .route("/api/v1/interfaces/{name}/{what}", post(change))
        .route("/", get(|| async { Html(include_str!("page/index.html")) }))
        .route("/app.js", get(|| async { text("text/javascript", include_str!("page/app.js")) }))
        .route("/style.css", get(|| async { text("text/css", include_str!("page/style.css")) }))
        .route("/metrics", get(numbers))
        .route("/api/v1/interfaces", get(interfaces))
        .route("/api/v1/history", get(history))
        .route("/api/v1/events", get(events))
        .route(
            "/api/openapi.json",
            get(|| async { text("application/json", include_str!("page/openapi.json")) }),
        )
        .with_state(seen);
    Rules { guard, policy: POLICY }.before(router)
}

fn text(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Checks a request, and gives its answer the headers that protect it.
async fn enter(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    let checked = rules.guard.check(request.method(), request.uri(), request.headers());
    let mut response = match checked {
        Err(Refused::Method) => refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD; changes by POST, if --allow-changes was said",
        ),
        Err(Refused::Origin) => {
            refuse(StatusCode::FORBIDDEN, "another site's page changes nothing")
        }
        Err(Refused::Kind) => refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a change is JSON: Content-Type: application/json",
        ),
        Err(Refused::Host) => refuse(
            StatusCode::FORBIDDEN,
            "this name is not known here: use an address, `localhost` or the machine's own name",
        ),
        Err(Refused::Token) if request.method() == Method::POST => refuse(
            StatusCode::UNAUTHORIZED,
            "changes need the token in the header: `Authorization: Bearer TOKEN`",
        ),
        Err(Refused::Token) => refuse(
            StatusCode::UNAUTHORIZED,
            "a token is needed: `Authorization: Bearer TOKEN`, or `?token=TOKEN`",
        ),
        Ok(()) => {
            let standing = request.extensions().get::<Arc<Standing>>();
            // Whoever asks for what all may have is still a stranger.
            if let Some(standing) = standing.filter(|_| !guard::is_public(request.uri())) {
                standing.admit();
            }
            next.run(request).await
        }
    };
    let protect: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, rules.policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in protect {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn refuse(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

async fn numbers(State(seen): State<Seen>) -> Response {
    const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let board = seen.board.borrow().clone();
    let is_saved = {
        let past = seen.past();
        past.has_file.then_some(past.trouble.is_none())
    };
    match metrics::write(board, is_saved) {
        Ok(text) => ([(header::CONTENT_TYPE, KIND)], text).into_response(),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"),
    }
}

async fn interfaces(State(seen): State<Seen>) -> Json<Value> {
    Json(seen.board.borrow().told())
}

async fn history(State(seen): State<Seen>, uri: Uri) -> Response {
    let asked = uri.query().unwrap_or_default().split('&');
    let asked = asked.filter_map(|pair| pair.strip_prefix("span=")).next().unwrap_or("10m");
    let Some(index) = SPANS.iter().position(|span| span.name == asked) else {
        return refuse(StatusCode::BAD_REQUEST, "span is 10m, 24h or 30d");
    };
    let (span, now_s) = (SPANS[index], board::now_s());
    let past = seen.past();
    let of_each = past
        .history
        .interfaces()
        .map(|name| json!({ "name": name, "points": past.history.points(name, index, now_s) }));
    Json(json!({
        "span_s": span.seconds(),
        "step_s": span.step_s,
        "now_s": now_s,
        "saved": past.has_file && past.trouble.is_none(),
        "trouble": past.trouble,
        "changes": seen.may_change,
        "interfaces": of_each.collect::<Vec<Value>>(),
    }))
    .into_response()
}

async fn events(State(seen): State<Seen>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let looks = WatchStream::new(seen.board)
        .map(|board| Ok(Event::default().data(board.told().to_string())));
    Sse::new(looks).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

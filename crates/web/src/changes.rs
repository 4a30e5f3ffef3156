//! Changes: looked at first, tried for a time, kept or taken back. Only where that is asked for.
//!
//! Everything is the daemon's own doing: a trial ends by itself unless it is kept, also if this
//! process or the daemon dies meanwhile. What the kernel shapes has nobody to end a trial, and this
//! process has no rights to change it.
//!
//! ```text
//! POST /api/v1/interfaces/NAME/preview   what the words come to, and what is wrong with them
//! POST /api/v1/interfaces/NAME/try       the same, in force for `seconds`
//! POST /api/v1/interfaces/NAME/keep      what is on trial stays
//! POST /api/v1/interfaces/NAME/undo      what is on trial ends at once
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{to_bytes, Body};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{json, Value};
use simnel_gateway::control::Client;
use simnel_gateway::trial::Back;
use simnel_gateway::words::{changed, misgiving};
use simnel_gateway::{check_name, Direction, Error};
use tokio::sync::Semaphore;

/// Bytes of a request.
const MOST_BYTES: usize = 8 * 1024;
/// Seconds of a trial.
const TRIAL_S: std::ops::RangeInclusive<u64> = 5..=24 * 3600;

/// The result of a request, or why it was not done.
pub(crate) type Answer = Result<Value, (StatusCode, String)>;

/// Carries changes out, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    control_dir: PathBuf,
    turn: Arc<Semaphore>,
    patience: Duration,
}

/// Settings of one direction, as `simnel change` takes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    direction: Direction,
    #[serde(default)]
    rate: Option<String>,
    #[serde(default)]
    words: String,
    /// Of a trial.
    #[serde(default)]
    seconds: Option<u64>,
}

/// Arguments of `keep` and `undo`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Changes {
    pub(crate) fn new(control_dir: PathBuf, patience: Duration) -> Changes {
        Changes { control_dir, turn: Arc::new(Semaphore::new(1)), patience }
    }

    /// Does `what` with `interface`.
    pub(crate) async fn make(&self, interface: String, what: String, body: Body) -> Answer {
        let read = tokio::time::timeout(self.patience, to_bytes(body, MOST_BYTES)).await;
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => return Err((StatusCode::PAYLOAD_TOO_LARGE, "too long".into())),
            Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "the request has no end".into())),
        };
        let turn = tokio::time::timeout(self.patience, self.turn.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            let why = "another change is under way: try again";
            return Err((StatusCode::SERVICE_UNAVAILABLE, why.into()));
        };
        let directory = self.control_dir.clone();
        let work = tokio::task::spawn_blocking(move || {
            let answer = carry_out(&directory, &interface, &what, &bytes);
            drop(turn);
            answer
        });
        let failed = |_| (StatusCode::INTERNAL_SERVER_ERROR, "the change failed".into());
        work.await.map_err(failed)?
    }
}

fn carry_out(directory: &Path, interface: &str, what: &str, bytes: &[u8]) -> Answer {
    if !["preview", "try", "keep", "undo"].contains(&what) {
        return Err((StatusCode::NOT_FOUND, "preview, try, keep or undo".into()));
    }
    check_name(interface).map_err(|error| (StatusCode::NOT_FOUND, error.to_string()))?;
    let wanted = match what {
        "preview" | "try" => Some(serde_json::from_slice(bytes).map_err(wrong)?),
        _ => serde_json::from_slice(bytes).map(|Nothing {}| None).map_err(wrong)?,
    };
    let mut client = Client::connect(directory, interface).map_err(refused)?;
    match (what, wanted) {
        (_, Some(wanted)) => settle(&mut client, interface, &wanted, what == "try"),
        ("keep", _) => client.keep().map_err(refused).map(|()| json!({})),
        _ => undo(&mut client, interface),
    }
}

/// Says what `wanted` comes to, and does it for a time if it `is_tried`.
fn settle(client: &mut Client, interface: &str, wanted: &Wanted, is_tried: bool) -> Answer {
    let Wanted { direction, rate, words, seconds } = wanted;
    let present = client.show().map_err(refused)?;
    let Some(present) = present.into_iter().find(|entry| entry.direction == *direction) else {
        return Err((StatusCode::NOT_FOUND, format!("the {direction} is not shaped")));
    };
    let after = changed(*direction, &present.config, rate.as_deref(), words.as_str());
    let after = after.map_err(wrong)?;
    // A preview may leave them out, and says as well if they are wrong.
    let seconds = seconds.unwrap_or(if is_tried { 0 } else { *TRIAL_S.start() });
    if !TRIAL_S.contains(&seconds) {
        let (least, most) = (TRIAL_S.start(), TRIAL_S.end());
        return Err(wrong(format!("`seconds` of the trial: {least} to {most}")));
    }
    if is_tried {
        let time = Duration::from_secs(seconds);
        client.try_out(*direction, &after.to_string(), time).map_err(refused)?;
    }
    Ok(json!({
        "before": present.config,
        "after": after.to_string(),
        "warning": misgiving(interface, *direction, &after),
    }))
}

/// Ends all trials of settings; one of the interface as a whole is its starter's business.
fn undo(client: &mut Client, interface: &str) -> Answer {
    let mut undone = Vec::new();
    for trial in client.trials().map_err(refused)? {
        if let Back::Change(direction, words) = trial.back {
            client.change(direction, &words).map_err(refused)?;
            undone.push(json!({ "direction": direction, "after": words }));
        }
    }
    match undone.is_empty() {
        true => Err((StatusCode::CONFLICT, format!("no change of `{interface}` is on trial"))),
        false => Ok(json!({ "undone": undone })),
    }
}

fn wrong(error: impl ToString) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, error.to_string())
}

fn refused(error: Error) -> (StatusCode, String) {
    let status = match error {
        Error::NotUp { .. } => StatusCode::NOT_FOUND,
        Error::Remote(_) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_GATEWAY,
    };
    (status, error.to_string())
}

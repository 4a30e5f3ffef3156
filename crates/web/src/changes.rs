//! Changes: looked at first, tried for a time, kept or taken back. Only where that is asked for.
//!
//! Everything is the daemon's own doing: a trial ends by itself unless it is kept, also if this
//! process or the daemon dies meanwhile. What the kernel shapes without a daemon is not changed
//! here: this process has no rights to.
//!
//! ```text
//! POST /api/v1/interfaces/NAME/preview   what the words come to, what is wrong with them, and what
//!                                        they would do (effect/mod.rs)
//! POST /api/v1/interfaces/NAME/try       the same, in force for `seconds`
//! POST /api/v1/interfaces/NAME/keep      what is on trial stays
//! POST /api/v1/interfaces/NAME/undo      what is on trial ends at once; or what was kept here
//! ```

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{to_bytes, Body};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{json, Value};
use simnel_gateway::control::Client;
use simnel_gateway::trial::Back;
use simnel_gateway::view::View;
use simnel_gateway::words::{changed, misgiving};
use simnel_gateway::{check_name, Direction, Error};
use tokio::sync::{watch, Semaphore};

use crate::board::Board;
use crate::effect::effect;

/// Bytes of a request.
const MOST_BYTES: usize = 8 * 1024;
/// Changes that can be undone after they were kept.
const MOST_KEPT: usize = 32;
/// Seconds of a trial.
const TRIAL_S: std::ops::RangeInclusive<u64> = 5..=24 * 3600;

/// The result of a request, or why it was not done.
pub(crate) type Answer = Result<Value, (StatusCode, String)>;

/// Carries changes out, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    control_dir: PathBuf,
    board: watch::Receiver<Board>,
    kept: Arc<Mutex<Vec<Kept>>>,
    turn: Arc<Semaphore>,
    patience: Duration,
}

/// A change that was kept here.
#[derive(Debug)]
struct Kept {
    interface: String,
    direction: Direction,
    before: String,
    after: String,
}

/// Settings of one direction, as `simnel change` takes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `direction`, and `rate` or `words`")]
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
#[serde(deny_unknown_fields, expecting = "an empty object, {}")]
struct Nothing {}

impl Changes {
    pub(crate) fn new(
        control_dir: PathBuf,
        board: watch::Receiver<Board>,
        patience: Duration,
    ) -> Changes {
        let kept = Arc::default();
        Changes { control_dir, board, kept, turn: Arc::new(Semaphore::new(1)), patience }
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
        let changes = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let answer = changes.carry_out(&interface, &what, &bytes);
            drop(turn);
            answer
        });
        let failed = |_| (StatusCode::INTERNAL_SERVER_ERROR, "the change failed".into());
        work.await.map_err(failed)?
    }

    fn carry_out(&self, interface: &str, what: &str, bytes: &[u8]) -> Answer {
        if !["preview", "try", "keep", "undo"].contains(&what) {
            return Err((StatusCode::NOT_FOUND, "preview, try, keep or undo".into()));
        }
        check_name(interface).map_err(|error| (StatusCode::NOT_FOUND, error.to_string()))?;
        let wanted = match what {
            "preview" | "try" => Some(serde_json::from_slice(bytes).map_err(wrong)?),
            _ => serde_json::from_slice(bytes).map(|Nothing {}| None).map_err(wrong)?,
        };
        let mut client = Client::connect(&self.control_dir, interface).map_err(refused)?;
        match (what, wanted) {
            (_, Some(wanted)) => self.settle(&mut client, interface, &wanted, what == "try"),
            ("keep", _) => self.keep(&mut client, interface),
            _ => self.undo(&mut client, interface),
        }
    }

    /// Says what `wanted` comes to, and does it for a time if it `is_tried`.
    fn settle(
        &self,
        client: &mut Client,
        interface: &str,
        wanted: &Wanted,
        is_tried: bool,
    ) -> Answer {
        let Wanted { direction, rate, words, seconds } = wanted;
        if rate.is_none() && words.trim().is_empty() {
            return Err(wrong("neither `rate` nor `words` says what to change"));
        }
        let present = in_force(client, *direction)?;
        let after = changed(*direction, &present, rate.as_deref(), words.as_str());
        let after = after.map_err(wrong)?;
        // A preview may leave them out, and says as well if they are wrong.
        let seconds = seconds.unwrap_or(if is_tried { 0 } else { *TRIAL_S.start() });
        if !TRIAL_S.contains(&seconds) {
            let (least, most) = (TRIAL_S.start(), TRIAL_S.end());
            return Err(wrong(format!("`seconds` of the trial: {least} to {most}")));
        }
        let settings = after.to_string();
        let mut answer = json!({
            "before": present,
            "after": settings,
            "warning": misgiving(interface, *direction, &after),
        });
        if is_tried {
            let time = Duration::from_secs(seconds);
            client.try_out(*direction, &settings, time).map_err(refused)?;
        } else {
            let limit = after.rate().map(|rate| rate.bits());
            let view = self.view(interface).map(|mut view| {
                let line = view.lines.iter_mut().find(|line| line.direction == *direction);
                if let Some(line) = line {
                    line.update_config(present);
                }
                view
            });
            let effect = view.and_then(|view| effect(&view, *direction, (&settings, limit)));
            // What cannot be simulated can be tried all the same.
            match effect {
                Ok(effect) => answer["effect"] = json!(effect),
                Err(why) => answer["unknown"] = json!(why),
            }
        }
        Ok(answer)
    }

    /// View of `interface` over the last second.
    fn view(&self, interface: &str) -> Result<View, String> {
        let board = self.board.borrow();
        let seen = board.interfaces.get(interface);
        seen.map(|seen| seen.view.clone()).ok_or_else(|| "nothing was seen of it yet".into())
    }

    /// Ends trials, and remembers what they changed.
    fn keep(&self, client: &mut Client, interface: &str) -> Answer {
        let trials = client.trials().map_err(refused)?;
        let mut changes = Vec::new();
        for trial in trials {
            if let Back::Change(direction, before) = trial.back {
                let after = in_force(client, direction)?;
                changes.push(Kept { interface: interface.to_owned(), direction, before, after });
            }
        }
        client.keep().map_err(refused)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(changes);
        let surplus = kept.len().saturating_sub(MOST_KEPT);
        kept.drain(..surplus);
        Ok(json!({}))
    }

    /// Ends all trials of settings; one of the interface as a whole is its starter's business.
    /// Without any, takes back what was kept here last, unless somebody has changed it since.
    fn undo(&self, client: &mut Client, interface: &str) -> Answer {
        let mut undone = Vec::new();
        for trial in client.trials().map_err(refused)? {
            if let Back::Change(direction, words) = trial.back {
                client.change(direction, &words).map_err(refused)?;
                undone.push(json!({ "direction": direction, "after": words }));
            }
        }
        if undone.is_empty() {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(last) = kept.iter().rposition(|kept| kept.interface == interface) else {
                let why = format!("no change of `{interface}` is on trial, and none was kept here");
                return Err((StatusCode::CONFLICT, why));
            };
            let Kept { direction, before, after, .. } = &kept[last];
            if in_force(client, *direction)? != *after {
                let why = format!("the {direction} was changed since by somebody else");
                kept.remove(last);
                return Err((StatusCode::CONFLICT, why));
            }
            client.change(*direction, before).map_err(refused)?;
            // What the daemon refused can be taken back later.
            let Kept { direction, before, .. } = kept.remove(last);
            undone.push(json!({ "direction": direction, "after": before }));
        }
        Ok(json!({ "undone": undone }))
    }
}

/// Settings of `direction` in `tc`'s words.
fn in_force(client: &mut Client, direction: Direction) -> Result<String, (StatusCode, String)> {
    let why = || (StatusCode::NOT_FOUND, format!("the {direction} is not shaped"));
    client.words(direction).map_err(refused)?.ok_or_else(why)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kind_of_json_is_told_what_is_expected() {
        for text in ["[]", "7", "\"upload\"", "[\"upload\", 7]"] {
            let wanted = serde_json::from_str::<Wanted>(text).unwrap_err().to_string();
            assert!(!wanted.contains("Wanted"), "{text}: {wanted}");
        }
        let wanted = serde_json::from_str::<Wanted>("7").unwrap_err().to_string();
        assert!(wanted.contains("expected an object with `direction`"), "{wanted}");
        let nothing = serde_json::from_str::<Nothing>("7").unwrap_err().to_string();
        assert!(nothing.contains("expected an empty object, {}"), "{nothing}");
    }
}

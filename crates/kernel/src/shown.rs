//! Settings and statistics under our own name: text and JSON, so that whoever prints them need not
//! know any discipline.

use alloc::string::String;
use core::fmt;

use simnel_core::netlink::{Full, Writer};
use simnel_core::qdisc::{show_own, show_own_json, Config, Snapshot};
use simnel_core::sojourns::Sojourns;
use simnel_core::tc::Json;

use crate::settings::{Form, PARALLEL, WORDS};

/// Numbers of the attributes beside [`WORDS`].
const TEXT: u16 = 2;
const JSON: u16 = 3;

/// Writes the settings: words that make them again.
pub(crate) fn options(config: &Config, form: Form, out: &mut [u8]) -> Result<usize, Full> {
    let words = match form {
        Form::Parallel => alloc::format!("{PARALLEL} {config}\0"),
        _ => alloc::format!("{config}\0"),
    };
    let mut out = Writer::new(out);
    out.attribute(WORDS, words.as_bytes());
    out.finish()
}

/// Writes the statistics that are the discipline's own; in JSON with sojourn times, of the packets
/// that it has queued. Without room for both only the text, or nothing.
pub(crate) fn statistics(
    snapshot: &Snapshot,
    sojourns: &Sojourns,
    out: &mut [u8],
) -> Result<usize, Full> {
    let (mut text, mut json) = (String::new(), String::new());
    let written = show_own(snapshot, &mut text).and_then(|()| whole(snapshot, sojourns, &mut json));
    written.map_err(|_| Full)?;
    text.push('\0');
    json.push('\0');
    let mut write = |attributes: &[(u16, &str)]| {
        let mut out = Writer::new(&mut *out);
        attributes.iter().for_each(|&(number, value)| out.attribute(number, value.as_bytes()));
        out.finish()
    };
    let written = write(&[(TEXT, &text), (JSON, &json)]).or_else(|_| write(&[(TEXT, &text)]));
    Ok(written.unwrap_or(0))
}

fn whole(snapshot: &Snapshot, sojourns: &Sojourns, out: &mut String) -> fmt::Result {
    let mut own = String::new();
    show_own_json(snapshot, &mut own)?;
    let mut json = Json::new(out);
    json.begin_object()?;
    json.members(&own)?;
    sojourns.write_json(&mut json)?;
    json.end_object()
}

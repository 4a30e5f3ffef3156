//! Commands to a discipline between packets: its settings change, it is emptied, it is asked.
//!
//! Lines of a recording's `.csv` beside arrivals: `T,change,HEX[,WORDS]`, `T,reset`, `T,stats`. HEX
//! is the body of `TCA_OPTIONS` that Linux was given. Ours reads the same, so that what is absent
//! stays as it is in both. Disciplines whose attributes ours does not read have WORDS, which say
//! all.

use simnel_core::netlink::Options;
use simnel_core::qdisc::{self, Config, Device, Managed};
use simnel_core::Time;

use super::row::number;

/// A command, and when it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// When.
    pub time: Time,
    /// Number of packets that have arrived by then.
    pub arrived: usize,
    /// The command.
    pub what: What,
}

/// The command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Other settings, as bytes of `TCA_OPTIONS`.
    Change(Vec<u8>),
    /// Other settings, as words that say all of them.
    ChangeTo(String),
    /// The discipline is emptied.
    Reset,
    /// Its statistics are looked at.
    Look,
}

/// The command of a line; None if the line is another one. Time goes on to `clock`.
pub(super) fn parse_line(
    line: &str,
    clock: &mut Time,
    arrived: usize,
) -> Result<Option<Command>, String> {
    let mut columns = line.splitn(4, ',');
    let (first, operation) = (columns.next().unwrap_or(""), columns.next().unwrap_or(""));
    let what = match operation {
        "change" => match (columns.next(), columns.next()) {
            (_, Some(words)) => What::ChangeTo(words.into()),
            (hex, None) => What::Change(bytes(hex.unwrap_or(""))?),
        },
        "reset" => What::Reset,
        "stats" => What::Look,
        _ => return Ok(None),
    };
    let time = Time(number(first, "time")?);
    if time < *clock {
        return Err(format!("time goes back from {} to {}", clock.0, time.0));
    }
    *clock = time;
    Ok(Some(Command { time, arrived, what }))
}

/// The settings that `what` makes of those of `qdisc`; None if it changes none.
pub(super) fn settings(
    what: &What,
    qdisc: &dyn Managed,
    device: &Device,
) -> Result<Option<Config>, String> {
    match what {
        What::Reset | What::Look => Ok(None),
        What::ChangeTo(words) => {
            let config = qdisc::parse(words).map_err(|error| error.to_string())?;
            Ok(Some(config.resolved(device)))
        }
        What::Change(payload) => {
            let old = qdisc.config();
            let options = Options { payload, is_nested: true };
            let config = qdisc::netlink::parse(old.name(), Some(options), Some(&old), device);
            config.map(Some).map_err(|error| format!("{error:?}"))
        }
    }
}

/// Bytes of hexadecimal digits.
fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let fail = || format!("`{hex}` is no bytes in hexadecimal");
    if !hex.len().is_multiple_of(2) {
        return Err(fail());
    }
    (0..hex.len() / 2)
        .map(|n| hex.get(2 * n..2 * n + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<_>>()
        .ok_or_else(fail)
}

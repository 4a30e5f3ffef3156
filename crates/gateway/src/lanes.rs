//! Lanes of a direction, as the command line, the configuration file and answers name them.

use serde::de::value::{Error, StrDeserializer};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use simnel_core::qdisc::cake::{Member, Params};
use simnel_core::qdisc::Config;

use crate::vitals::MOST_LANES;

/// The choice of a lane for a packet. Either keeps a flow in one lane, and so in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// By a hash of both addresses.
    #[default]
    Address,
    /// By the processor that handles it: by the receive queues of a card that has several.
    Cpu,
}

/// Queues and threads of each direction, which share a rate if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Their number: 1 to 4.
    pub count: u16,
    /// The choice of a lane for each packet.
    pub by: Spread,
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes { count: 1, by: Spread::default() }
    }
}

impl Lanes {
    /// Lanes as somebody says them: how many, and how packets are spread.
    ///
    /// # Errors
    /// No interface can have so many, nothing spreads packets so, or there is nothing to spread
    /// them over.
    pub fn said(count: Option<i64>, by: Option<&str>) -> Result<Lanes, String> {
        let most = MOST_LANES as i64;
        let count = match (count, by) {
            (None, None) => return Ok(Lanes::default()),
            (None, Some(by)) => {
                return Err(format!(
                    "packets are to be spread by `{by}`, but not over how many: add `lanes` and a \
                     number from 2 to {most}"
                ));
            }
            (Some(count), _) if (1..=most).contains(&count) => count as u16,
            (Some(count), _) => {
                return Err(format!(
                    "{count} lanes: expected 1 to {most}, because each is a thread that shares the \
                     rate with the others"
                ));
            }
        };
        let spread = |by: &str| {
            let word: StrDeserializer<'_, Error> = by.into_deserializer();
            let lanes_are_spread = |e| format!("lanes are spread by address or cpu: {e}");
            Spread::deserialize(word).map_err(lanes_are_spread)
        };
        Ok(Lanes { count, by: by.map(spread).transpose()?.unwrap_or_default() })
    }

    /// Settings of a direction that several lanes share.
    ///
    /// # Errors
    /// It is not cake, which alone can be shared, or has words that lanes cannot have.
    pub(crate) fn shared(self, config: &Config) -> Result<&Params, String> {
        let Config::Cake(params) = config else {
            let why = "only cake shares a rate over several lanes, and without shares";
            return Err(format!("{why}: leave `lanes` out"));
        };
        Member::suits(params).map_err(|e| format!("{e}; with one lane it can be had"))?;
        Ok(params)
    }

    /// True if there is more than one.
    pub fn are_several(self) -> bool {
        self.count > 1
    }
}

impl Spread {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Spread::Address => "address",
            Spread::Cpu => "cpu",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_as_they_are_said() {
        assert_eq!(Lanes::said(None, None), Ok(Lanes::default()));
        for by in [Spread::Address, Spread::Cpu] {
            assert_eq!(Lanes::said(Some(4), Some(by.name())), Ok(Lanes { count: 4, by }));
        }
        assert_eq!(Lanes::said(Some(2), None), Ok(Lanes { count: 2, by: Spread::Address }));
        for (count, by, expected) in [
            (Some(0), None, "0 lanes: expected 1 to 4, because each"),
            (Some(5), None, "5 lanes: expected 1 to 4"),
            (Some(2), Some("core"), "unknown variant `core`, expected `address` or `cpu`"),
            (None, Some("cpu"), "add `lanes` and a number from 2 to 4"),
        ] {
            let error = Lanes::said(count, by).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}

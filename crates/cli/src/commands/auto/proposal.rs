//! Rates and words that fit a measured line, each with its reason.

use simnel_core::Rate;
use simnel_gateway::check::{LinkType, Overhead};
use simnel_measure::report::delay;
use simnel_measure::Report;

/// Shares of what came through, in percent. Less for downloads: their queue stands before us, at
/// the provider, and is kept empty only if we take less than the line brings.
const UPLOAD_SHARE: u64 = 95;
const DOWNLOAD_SHARE: u64 = 90;
/// Payload of a full packet, and its bytes as IP counts them.
const PAYLOAD: f64 = 1448.0;
const PACKET: f64 = 1500.0;
/// Acknowledgements fill an upload that is so many times slower than the download.
const LOPSIDED: f64 = 15.0;

/// Settings for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// As `tc` writes it.
    pub download: Rate,
    /// As `tc` writes it.
    pub upload: Rate,
    /// The discipline and its words.
    pub words: String,
    /// Why, a line each.
    pub reasons: Vec<String>,
}

/// A rate as it is written in a file.
pub fn rate(rate: Rate) -> String {
    format!("{}kbit", rate.bits() / 1000)
}

impl Proposal {
    /// One that stands in before anything is measured: no cap is above its rates.
    pub fn placeholder(words: String) -> Proposal {
        let most = Rate::from_bits(1_000_000_000_000);
        Proposal { download: most, upload: most, words, reasons: Vec::new() }
    }

    /// Settings that fit `before`, a measurement of the line as it is; None if it lacks one way.
    pub fn of(before: &Report, link: LinkType) -> Option<Proposal> {
        let (down, up) = (before.download_mbit()?, before.upload_mbit()?);
        let Overhead { word, bytes, why } = link.overhead();
        // What the shaper counts for each byte of payload.
        let counted = (PACKET + f64::from(bytes)) / PAYLOAD;
        let share = |mbit: f64, percent: u64| {
            let bits = mbit * 1e6 * counted * percent as f64 / 100.0;
            Rate::from_bits((bits / 10_000.0).floor().max(7.0) as u64 * 10_000)
        };
        let (download, upload) = (share(down, DOWNLOAD_SHARE), share(up, UPLOAD_SHARE));
        let mut words = vec!["cake"];
        let mut reasons = vec![
            format!(
                "download {}: {DOWNLOAD_SHARE} % of {down:.2} Mbit/s of payload, with headers",
                rate(download)
            ),
            format!(
                "upload {}: {UPLOAD_SHARE} % of {up:.2} Mbit/s of payload, with headers",
                rate(upload)
            ),
        ];
        words.extend(word);
        reasons.push(format!("{}: {why}", word.unwrap_or("no word for overhead")));
        if down / up >= LOPSIDED {
            words.push("ack-filter");
            reasons.push(format!(
                "ack-filter: {:.0} times the upload comes down, and its acknowledgements go up",
                down / up
            ));
        }
        Some(Proposal { download, upload, words: words.join(" "), reasons })
    }

    /// A slower one where `after`, measured with this one, still has a queue; None if it has none.
    pub fn slower(&self, after: &Report) -> Option<Proposal> {
        const ENOUGH_MS: f64 = 30.0;
        let worst = after.worst()?;
        if worst.added_ms_p95.is_some_and(|ms| ms < ENOUGH_MS) {
            return None;
        }
        let less = |rate: Rate| Rate::from_bits(rate.bits() / 100 * 90 / 10_000 * 10_000);
        let stands = |ms: Option<f64>| ms.is_none_or(|ms| ms >= ENOUGH_MS / 2.0);
        let (up, down) = (stands(worst.added_up_ms_p95), stands(worst.added_down_ms_p95));
        let mut next = self.clone();
        if up || !down {
            next.upload = less(self.upload);
        }
        if down || !up {
            next.download = less(self.download);
        }
        next.reasons = vec![format!(
            "download {}, upload {}: 10 % less where {} are still added",
            rate(next.download),
            rate(next.upload),
            delay(worst.added_ms_p95)
        )];
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report with these rates and delays, as `--json` writes one.
    fn report(down: f64, up: f64, added: [f64; 3]) -> Report {
        let phase = |load: &str| {
            format!(
                r#"{{"load":"{load}","download_mbit":{down},"upload_mbit":{up},"echoes":9,"lost":0,
                "added_ms_p95":{},"added_up_ms_p95":{},"added_down_ms_p95":{}}}"#,
                added[0], added[1], added[2]
            )
        };
        let text = format!(
            r#"{{"server":"x","time":0,"flows":4,"seconds":1,"notes":[],"phases":[{}],
            "idle":{{"rtt_ms":20,"echoes":9,"lost":0}}}}"#,
            phase("both")
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn rates_are_shares_of_what_came_through_with_its_headers() {
        let before = report(19.13, 2.87, [900.0, 900.0, 1.0]);
        let proposal = Proposal::of(&before, LinkType::Ethernet).unwrap();
        // 90 % of 19.13 · 1538 / 1448, and 95 % of 2.87 · 1538 / 1448.
        assert_eq!(rate(proposal.download), "18280kbit");
        assert_eq!(rate(proposal.upload), "2890kbit");
        assert_eq!(proposal.words, "cake ethernet");
        assert_eq!(proposal.reasons.len(), 3);
        let bare = Proposal::of(&report(300.0, 10.0, [9.0; 3]), LinkType::Mobile).unwrap();
        assert_eq!(bare.words, "cake ack-filter");
        // What is nearly nothing is still a rate that `simnel up` takes.
        let slow = Proposal::of(&report(0.001, 0.001, [9.0; 3]), LinkType::Pppoe).unwrap();
        assert_eq!(rate(slow.upload), "70kbit");
    }

    #[test]
    fn what_still_queues_is_slowed_down_there() {
        let first = Proposal::of(&report(20.0, 3.0, [0.0; 3]), LinkType::Mobile).unwrap();
        assert_eq!(first.slower(&report(18.0, 2.8, [29.0, 29.0, 0.0])), None);
        let up = first.slower(&report(18.0, 2.8, [80.0, 78.0, 2.0])).unwrap();
        assert_eq!(up.download, first.download);
        assert_eq!(rate(up.upload), "2650kbit");
        let both = first.slower(&report(18.0, 2.8, [80.0, 40.0, 40.0])).unwrap();
        assert!(both.download < first.download && both.upload < first.upload);
    }
}

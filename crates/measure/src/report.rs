//! Results of a measurement: figures with their units in their names, and words for people.

use std::fmt::Write;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::grade::HOW;
use crate::way::Way;
use crate::Grade;

/// A measurement. Serialises as JSON; None where nothing could be measured, or where it was lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The other end.
    pub server: String,
    /// When, in seconds since 1970.
    pub time: u64,
    /// TCP connections each way.
    pub flows: usize,
    /// Seconds of each load that count.
    pub seconds: f64,
    /// The worst of all loads.
    pub grade: Option<Grade>,
    /// Round trips per minute under load (draft-ietf-ippm-responsiveness), the least of all loads.
    pub rpm: Option<f64>,
    /// The line without load.
    pub idle: Idle,
    /// The line under each load.
    pub phases: Vec<Phase>,
    /// The way to the router at home.
    pub home: Option<Home>,
    /// Further remarks for the reader.
    pub notes: Vec<String>,
    /// Everything over time, for pages.
    #[serde(skip)]
    pub series: Series,
}

/// The line without load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Median round-trip time.
    pub rtt_ms: f64,
    /// Round-trip time that 95 of 100 do not exceed.
    pub rtt_ms_p95: Option<f64>,
    /// Echoes sent.
    pub echoes: usize,
    /// Of these, not back.
    pub lost: usize,
}

/// The line under a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Direction of the load.
    pub load: Way,
    /// Payload that came to us.
    pub download_mbit: Option<f64>,
    /// Payload that came from us to the server.
    pub upload_mbit: Option<f64>,
    /// Added delay of a typical echo.
    pub added_ms_median: Option<f64>,
    /// Added delay that 95 of 100 echoes do not exceed.
    pub added_ms_p95: Option<f64>,
    /// Added delay that 99 of 100 echoes do not exceed.
    pub added_ms_p99: Option<f64>,
    /// The same as `added_ms_p95` on the way to the server.
    pub added_up_ms_p95: Option<f64>,
    /// And on the way back.
    pub added_down_ms_p95: Option<f64>,
    /// Of `added_ms_p95` what arises before the router at home.
    pub home_added_ms_p95: Option<f64>,
    /// Echoes sent while it counts.
    pub echoes: usize,
    /// Of these, not back.
    pub lost: usize,
    /// Round trips per minute.
    pub rpm: Option<f64>,
    /// Of `added_ms_p95`.
    pub grade: Option<Grade>,
}

/// The way to the router at home.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Home {
    /// Its address.
    pub gateway: IpAddr,
    /// The kind of echo that it answers.
    pub by: String,
    /// Median round-trip time without load.
    pub idle_ms: Option<f64>,
}

/// Points over time: seconds since the start, and ms or Mbit/s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Round trips to the server.
    pub rtt: Vec<[f64; 2]>,
    /// Round trips to the router at home.
    pub home: Vec<[f64; 2]>,
    /// Payload to us.
    pub download: Vec<[f64; 2]>,
    /// Payload from us.
    pub upload: Vec<[f64; 2]>,
}

/// A table of a measurement: heading and rows of cells.
pub type Table = (Vec<&'static str>, Vec<Vec<String>>);

impl Report {
    /// The largest rate of payload that came to us.
    pub fn download_mbit(&self) -> Option<f64> {
        self.phases.iter().filter_map(|phase| phase.download_mbit).max_by(f64::total_cmp)
    }

    /// The largest rate of payload that came from us.
    pub fn upload_mbit(&self) -> Option<f64> {
        self.phases.iter().filter_map(|phase| phase.upload_mbit).max_by(f64::total_cmp)
    }

    /// The load under which delay grew most.
    pub fn worst(&self) -> Option<&Phase> {
        let added = |phase: &&Phase| phase.added_ms_p95.unwrap_or(f64::INFINITY);
        self.phases.iter().max_by(|a, b| added(a).total_cmp(&added(b)))
    }

    /// One JSON object.
    pub fn to_json(&self) -> String {
        // Numbers and strings always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// All loads, a row each.
    pub fn table(&self) -> Table {
        let mut head = vec!["load", "download", "upload", "adds", "95 of 100", "99 of 100"];
        let ways = self.phases.iter().any(|phase| phase.added_up_ms_p95.is_some());
        let home = self.phases.iter().any(|phase| phase.home_added_ms_p95.is_some());
        head.extend(ways.then_some(["on the way up", "down"]).into_iter().flatten());
        head.extend(home.then_some("at home"));
        head.extend(["lost", "RPM", "grade"]);
        let rate = |mbit: Option<f64>| mbit.map_or("-".into(), |mbit| format!("{mbit:.2} Mbit/s"));
        let row = |phase: &Phase| {
            let mut row = vec![
                phase.load.name().into(),
                rate(phase.download_mbit),
                rate(phase.upload_mbit),
                delay(phase.added_ms_median),
                delay(phase.added_ms_p95),
                delay(phase.added_ms_p99),
            ];
            if ways {
                row.extend([delay(phase.added_up_ms_p95), delay(phase.added_down_ms_p95)]);
            }
            row.extend(home.then(|| delay(phase.home_added_ms_p95)));
            row.push(share(phase.lost, phase.echoes));
            row.push(phase.rpm.map_or("-".into(), |rpm| format!("{rpm:.0}")));
            row.push(phase.grade.map_or("-".into(), |grade| grade.name().into()));
            row
        };
        (head, self.phases.iter().map(row).collect())
    }

    /// The result in sentences.
    pub fn verdict(&self) -> Vec<String> {
        let mut words = Vec::new();
        let Idle { rtt_ms, lost, echoes, .. } = &self.idle;
        words.push(format!(
            "Idle, {} is {} away, {} lost.",
            self.server,
            delay(Some(*rtt_ms)),
            share(*lost, *echoes)
        ));
        let Some(worst) = self.worst() else { return words };
        let meaning = match worst.grade.unwrap_or(Grade::F) {
            Grade::APlus | Grade::A => "nobody notices the load.",
            Grade::B => "most people do not notice the load.",
            Grade::C => "calls and games suffer from the load.",
            Grade::D => "calls stutter and games stall under load.",
            Grade::F => "calls fail and pages hang under load: this is bufferbloat.",
        };
        let added = match worst.added_ms_p95 {
            Some(_) => format!("95 of 100 packets come up to {} later", delay(worst.added_ms_p95)),
            None => "packets come later, or never".into(),
        };
        let load = match worst.load {
            Way::Down => "a download",
            Way::Up => "an upload",
            Way::Both => "load both ways",
        };
        words.push(format!("Under {load} {added}: {meaning}"));
        // Where echoes are lost, a typical one tells.
        let all = worst.added_ms_p95.or(worst.added_ms_median);
        if let (Some(all), Some(home)) = (all, worst.home_added_ms_p95) {
            let whose = if all < 5.0 {
                "next to nothing is added anywhere".into()
            } else if home > all / 2.0 {
                format!("{} of it at home, before your router (WiFi?)", delay(Some(home.min(all))))
            } else {
                format!("{} of it at home, the rest on the line", delay(Some(home)))
            };
            words.push(format!("Where: {whose}."));
        }
        words.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        words
    }

    /// As text; `grade` may colour a grade.
    pub fn render(&self, grade: impl Fn(Grade) -> String) -> String {
        let mut text = String::new();
        for line in self.verdict() {
            text += &(line + "\n");
        }
        let (head, rows) = self.table();
        if rows.is_empty() {
            return text;
        }
        let head: Vec<String> = head.into_iter().map(String::from).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&head).chain(&rows).collect();
        let width = |n: usize| all.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
        text.push('\n');
        for row in &all {
            let mut line = String::new();
            for (n, cell) in row.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = match n {
                    0 => write!(line, "{cell:<width$}", width = width(n)),
                    _ => write!(line, "  {cell:>width$}", width = width(n)),
                };
            }
            text += &(line + "\n");
        }
        if let Some(worst) = self.grade {
            let _ = write!(text, "\nGrade {}", grade(worst));
            if let Some(rpm) = self.rpm {
                let _ = write!(text, ", {rpm:.0} round trips per minute (RPM)");
            }
            text += ".\n";
        }
        text + HOW
    }
}

/// A delay as people read it.
pub fn delay(ms: Option<f64>) -> String {
    match ms {
        None => "lost".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 1000.0 => format!("{ms:.0} ms"),
        Some(ms) => format!("{:.2} s", ms / 1e3),
    }
}

fn share(lost: usize, all: usize) -> String {
    format!("{:.1} %", 100.0 * lost as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(load: Way, added: Option<f64>, home: Option<f64>) -> Phase {
        Phase {
            load,
            download_mbit: Some(19.1),
            upload_mbit: None,
            added_ms_median: added,
            added_ms_p95: added,
            added_ms_p99: added,
            added_up_ms_p95: None,
            added_down_ms_p95: None,
            home_added_ms_p95: home,
            echoes: 100,
            lost: 1,
            rpm: Some(400.0),
            grade: Some(Grade::of(added)),
        }
    }

    fn report(phases: Vec<Phase>) -> Report {
        Report {
            server: "192.0.2.1:7730".into(),
            time: 0,
            flows: 4,
            seconds: 6.0,
            grade: phases.iter().filter_map(|phase| phase.grade).max(),
            rpm: None,
            idle: Idle { rtt_ms: 20.0, rtt_ms_p95: Some(21.0), echoes: 100, lost: 0 },
            phases,
            home: None,
            notes: Vec::new(),
            series: Series::default(),
        }
    }

    #[test]
    fn the_worst_load_is_the_one_that_is_told() {
        let mild = phase(Way::Down, Some(8.0), None);
        let text = |phases| report(phases).render(|grade| grade.name().into());
        let bad = text(vec![mild.clone(), phase(Way::Up, Some(1234.0), Some(3.0))]);
        assert!(bad.contains("Under an upload 95 of 100 packets come up to 1.23 s later"), "{bad}");
        assert!(bad.contains("3.0 ms of it at home, the rest on the line"), "{bad}");
        assert!(bad.contains("Grade F"), "{bad}");
        let wifi = text(vec![phase(Way::Both, Some(50.0), Some(45.0))]);
        assert!(wifi.contains("45 ms of it at home, before your router"), "{wifi}");
        let half = Phase {
            added_ms_p95: None,
            added_ms_median: Some(700.0),
            ..phase(Way::Both, None, Some(777.0))
        };
        let wifi = text(vec![half]);
        assert!(wifi.contains("700 ms of it at home, before your router"), "{wifi}");
        let lost = text(vec![mild, phase(Way::Both, None, None)]);
        assert!(lost.contains("later, or never") && lost.contains("Grade F"), "{lost}");
        assert!(text(vec![]).contains("20 ms away"));
    }

    #[test]
    fn what_is_written_as_json_is_read_again() {
        let report = report(vec![phase(Way::Both, None, Some(1.0))]);
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
        assert!(report.to_json().contains("\"grade\": \"F\""));
    }
}

//! Times at which a rule holds: hours of the local clock, and days of the week.

use std::fmt;

use crate::sys;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Names of the days, from that which Unix counts as the first.
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A moment of the local clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Day of the week, 0 is Sunday.
    pub(crate) day: u8,
    /// Minute of that day.
    pub(crate) minute: u16,
}

impl Moment {
    /// Now. The first call must come before files can no longer be read.
    pub(crate) fn now() -> Moment {
        let (day, minute) = sys::local_clock();
        Moment { day, minute }
    }
}

/// Hours and days at which a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// Minutes of the day from which on and until when; the second may be on the next day.
    between: (u16, u16),
    /// Days on which they begin, a bit each.
    days: u8,
}

impl Hours {
    /// From `hours` such as `22:00-06:30` and names of days; None if neither is said.
    pub(super) fn read(hours: Option<&str>, days: &[usize]) -> Result<Option<Hours>, String> {
        let expected = "expected hours such as \"22:00-06:30\"";
        let between = match hours {
            None if days.is_empty() => return Ok(None),
            None => (0, DAY),
            Some(text) => {
                let both =
                    text.split_once('-').and_then(|(from, to)| Some((time(from)?, time(to)?)));
                let apart = both.filter(|(from, to)| from != to && *from < DAY);
                apart.ok_or_else(|| format!("`hours = \"{text}\"`: {expected}"))?
            }
        };
        let all = if days.is_empty() { 0x7f } else { 0 };
        let days = days.iter().fold(all, |bits, day| bits | 1 << day);
        Ok(Some(Hours { between, days }))
    }

    /// True at `moment`.
    pub(crate) fn hold(&self, moment: Moment) -> bool {
        let (from, to) = self.between;
        let begins_on = |day: u8| self.days >> (day % 7) & 1 == 1;
        let at = moment.minute;
        match from < to {
            true => from <= at && at < to && begins_on(moment.day),
            false => from <= at && begins_on(moment.day) || at < to && begins_on(moment.day + 6),
        }
    }
}

/// Minutes of `06:30`, or of the day's end, `24:00`.
fn time(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u16>().ok()).flatten()
    };
    let (hour, minute) = (number(hour)?, number(minute).filter(|minute| *minute < 60)?);
    Some(hour.checked_mul(60)? + minute).filter(|at| *at <= DAY)
}

/// The number of a day of the week.
pub(super) fn day(text: &str) -> Result<usize, String> {
    let begins = text.get(..3).unwrap_or_default();
    let found = DAYS.iter().position(|name| name.eq_ignore_ascii_case(begins));
    found.ok_or_else(|| format!("a day of the week: {}", DAYS.join(", ")))
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.between;
        let clock = |at: u16| format!("{:02}:{:02}", at / 60, at % 60);
        write!(f, "{}-{}", clock(from), clock(to))?;
        if self.days != 0x7f {
            let on = DAYS.iter().enumerate().filter(|(day, _)| self.days >> day & 1 == 1);
            let names: Vec<&str> = on.map(|(_, name)| *name).collect();
            write!(f, " {}", names.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(text: &str, days: &[&str]) -> Hours {
        let days: Vec<usize> = days.iter().map(|name| day(name).unwrap()).collect();
        Hours::read(Some(text), &days).unwrap().unwrap()
    }

    #[test]
    fn a_night_belongs_to_the_day_on_which_it_begins() {
        let at = |day, hour: u16, minute| Moment { day, minute: hour * 60 + minute };
        let night = hours("22:00-06:30", &["fri", "Saturday"]);
        for (moment, holds) in [
            (at(5, 21, 59), false),
            (at(5, 22, 0), true),
            (at(6, 6, 29), true),
            (at(6, 6, 30), false),
            (at(0, 0, 0), true),
            (at(0, 22, 0), false),
            (at(5, 3, 0), false),
        ] {
            assert_eq!(night.hold(moment), holds, "{moment:?}");
        }
        assert_eq!(night.to_string(), "22:00-06:30 fri,sat");
        assert_eq!(hours("22:00-06:30", &["fri", "sat", "friday"]), night);
        let sunday = hours("20:00-01:00", &["sun"]);
        assert!(sunday.hold(at(1, 0, 59)) && !sunday.hold(at(0, 0, 59)));
        let lunch = hours("12:00-13:00", &[]);
        assert!(lunch.hold(at(3, 12, 0)) && lunch.hold(at(3, 12, 59)) && !lunch.hold(at(3, 13, 0)));
        let noon = hours("12:00-24:00", &[]);
        assert!(noon.hold(at(3, 23, 59)) && !noon.hold(at(3, 11, 59)));
        let weekend = Hours::read(None, &[6, 0]).unwrap().unwrap();
        assert!(
            weekend.hold(at(6, 0, 0)) && weekend.hold(at(0, 23, 59)) && !weekend.hold(at(1, 0, 0))
        );
        assert_eq!(Hours::read(None, &[]), Ok(None));
    }

    #[test]
    fn other_words_are_no_hours() {
        for text in [
            "",
            "22",
            "22:00",
            "22:00-22:00",
            "25:00-26:00",
            "21:60-23:00",
            "24:00-06:00",
            "+2:00-3:00",
        ] {
            let error = Hours::read(Some(text), &[]).unwrap_err();
            assert!(error.contains("expected hours such as"), "{text}");
        }
        assert!(
            day("mo").is_err() && day("monday").is_ok_and(|day| day == 1) && day("tägl").is_err()
        );
    }

    /// `date` knows the local clock as well. The minute may turn in between.
    #[test]
    fn now_is_what_the_local_clock_says() {
        let said = || {
            let output = std::process::Command::new("date").arg("+%w %H %M").output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let numbers: Vec<u16> =
                text.split_whitespace().map(|word| word.parse().unwrap()).collect();
            Moment { day: numbers[0] as u8, minute: 60 * numbers[1] + numbers[2] }
        };
        let (before, now, after) = (said(), Moment::now(), said());
        assert!([before, after].contains(&now), "{before:?} {now:?} {after:?}");
    }
}

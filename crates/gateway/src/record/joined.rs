//! Recordings of several lanes as one: each is in the order of time, and so is what they make.

use std::time::Duration;

use simnel_core::Time;

use super::{Recorded, HEAD};

/// Arrivals of a direction's lanes that are kept back: others may have come before them.
#[derive(Default)]
pub(crate) struct Joined(Vec<u8>);

impl Joined {
    /// Records of `parts`, and those that were kept back, from before `until`, when no lane had
    /// been asked yet. One lane alone keeps nothing back.
    pub(crate) fn add(&mut self, mut parts: Vec<Recorded>, until: Time) -> Recorded {
        if parts.len() < 2 {
            return parts.pop().unwrap_or_default();
        }
        let lost = parts.iter().map(|part| part.lost).sum();
        let kept = std::mem::take(&mut self.0);
        let mut all: Vec<(Duration, &[u8])> = records(&kept).collect();
        parts.iter().for_each(|part| all.extend(records(&part.raw)));
        // Of one lane's that came at the same time the order stays.
        all.sort_by_key(|(time, _)| *time);
        let told = all.partition_point(|(time, _)| *time < Duration::from_nanos(until.0));
        let join = |records: &[(Duration, &[u8])]| -> Vec<u8> {
            records.iter().flat_map(|(_, record)| *record).copied().collect()
        };
        self.0 = join(&all[told..]);
        let raw = join(&all[..told]);
        Recorded { packets: told as u64, lost, bytes: raw.len(), raw }
    }
}

/// Records with their times.
fn records(mut raw: &[u8]) -> impl Iterator<Item = (Duration, &[u8])> {
    std::iter::from_fn(move || {
        let head = raw.first_chunk::<HEAD>()?;
        let word = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|word| word.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes)
        };
        let [seconds, nanos, captured] = [0, 4, 8].map(word);
        let (record, rest) = raw.split_at_checked(HEAD + captured as usize)?;
        raw = rest;
        Some((Duration::new(seconds.into(), nanos), record))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals at these times, each with its own number as the only byte of its header.
    fn recorded(arrivals: &[(u64, u8)]) -> Recorded {
        let raw: Vec<u8> = arrivals
            .iter()
            .flat_map(|(time, number)| {
                let words = [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, 1, 99];
                words.into_iter().flat_map(u32::to_le_bytes).chain([*number])
            })
            .collect();
        Recorded { packets: arrivals.len() as u64, lost: 1, bytes: raw.len(), raw }
    }

    fn numbers(recorded: &Recorded) -> Vec<u8> {
        assert_eq!(recorded.bytes, recorded.raw.len());
        records(&recorded.raw).map(|(_, record)| record[HEAD]).collect()
    }

    #[test]
    fn lanes_are_told_in_the_order_of_time_and_nothing_twice() {
        const SECOND: u64 = 1_000_000_000;
        let mut joined = Joined::default();
        let one = recorded(&[(SECOND - 1, 1), (SECOND + 5, 4)]);
        let other = recorded(&[(SECOND, 2), (SECOND + 5, 5), (SECOND + 9, 7)]);
        let told = joined.add(vec![one, other], Time(SECOND + 5));
        assert_eq!((numbers(&told), told.packets, told.lost), (vec![1, 2], 2, 2));
        let told = joined.add(vec![recorded(&[(SECOND + 7, 6)]), recorded(&[])], Time(2 * SECOND));
        assert_eq!((numbers(&told), told.packets), (vec![4, 5, 6, 7], 4));
        assert_eq!(joined.add(vec![recorded(&[]), recorded(&[])], Time(3 * SECOND)).packets, 0);
    }

    #[test]
    fn one_lane_is_told_as_it_is() {
        let alone = recorded(&[(7, 1), (9, 2)]);
        assert_eq!(Joined::default().add(vec![alone.clone()], Time(8)), alone);
    }
}

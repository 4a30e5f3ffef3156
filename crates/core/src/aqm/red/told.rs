//! Settings of RED from what Linux's kernel is told: the average's weight and a table of shifts.
//! Many rates, bursts and sizes of packets lead to the same weight and table. Any of them will do.

use super::{idle_shifts, idle_shifts_of_ticks, weight, Law, Rate, RedParams, MAX_SHIFT, SHIFTS};

/// Sizes of packets that are tried, in bytes: the one that people say first.
const SIZES: [u32; 10] = [1000, 500, 1500, 250, 125, 64, 32, 2000, 8000, 1];
/// Longest time of a packet that is tried, in microseconds or ticks.
const LONGEST: u64 = 1 << 48;

impl Law {
    /// Microseconds of idleness to an entry of the table, as a power of two.
    pub fn scell_log(&self) -> u32 {
        self.scell_log
    }

    /// Powers of two by which the average falls, for each entry's idleness.
    pub fn shifts(&self) -> &[u8; SHIFTS] {
        &self.shifts
    }
}

impl RedParams {
    /// The same with a size of packets and a burst for which the average's weight is 2^-`wlog`.
    pub fn with_weight(self, wlog: u32) -> Option<RedParams> {
        SIZES.into_iter().find_map(|avpkt| {
            let burst = burst_for(wlog, self.min, avpkt)?;
            Some(RedParams { avpkt, burst, ..self })
        })
    }

    /// The same with a size of packets, a burst and a rate for which the average has this weight
    /// and this table. What `tc` makes of a table counts as that. None if no line has them.
    pub fn with_table(self, wlog: u32, scell_log: u32, table: &[u8; SHIFTS]) -> Option<RedParams> {
        // `tc` has no smaller or larger ones.
        let known = Some(wlog).filter(|wlog| (1..32).contains(wlog))?;
        if is_void(scell_log, table) {
            let (scell_log, instant) = idle_shifts(known, 0)?;
            return self.of_line(known, (scell_log, &instant));
        }
        let whole = (scell_log, table.as_slice());
        let sure = || Some((scell_log, sure(scell_log, table)?));
        self.of_line(known, whole)
            .or_else(|| self.of_line(known, sure()?))
            .or_else(|| self.near_line(known, whole))
            .or_else(|| self.near_line(known, sure()?))
    }

    /// The same with a line that has this weight, and a table that begins so.
    fn of_line(self, wlog: u32, (scell_log, table): (u32, &[u8])) -> Option<RedParams> {
        let shifts = |micros: u64| idle_shifts(wlog, micros.into());
        let micros = packet_time(shifts, scell_log, table)?;
        self.lines(wlog, micros).find(|params| {
            Law::new(params).is_ok_and(|law| {
                (law.wlog, law.scell_log) == (wlog, scell_log) && law.shifts.starts_with(table)
            })
        })
    }

    /// The same with a line that has this weight, and nearly a table that begins so. Since 6.15 at
    /// the latest `tc` counts a packet's time in ticks, and no longer in whole microseconds.
    fn near_line(self, wlog: u32, (scell_log, table): (u32, &[u8])) -> Option<RedParams> {
        let shifts = |ticks: u64| idle_shifts_of_ticks(wlog, ticks.max(1).into());
        let ticks = packet_time(shifts, scell_log, table)?;
        let micros = (ticks * 8 + 62) / 125;
        self.lines(wlog, micros.max(1))
            .find(|params| Law::new(params).is_ok_and(|law| law.wlog == wlog))
    }

    /// The same with lines at which a packet takes so long.
    fn lines(self, wlog: u32, micros: u64) -> impl Iterator<Item = RedParams> {
        SIZES.into_iter().filter_map(move |avpkt| {
            // The largest at which a packet still takes so long: its time is rounded down.
            let rate = u64::from(avpkt) * 1_000_000 / micros.max(1);
            let bandwidth = if micros == 0 { Rate(u64::MAX) } else { Rate(rate) };
            let burst = burst_for(wlog, self.min, avpkt)?;
            Some(RedParams { avpkt, burst, bandwidth, ..self })
        })
    }
}

/// The least burst of packets of `avpkt` bytes whose weight is 2^-`wlog`.
pub fn burst_for(wlog: u32, min: u32, avpkt: u32) -> Option<u32> {
    // Below it there is no weight at all, and from there on it falls as bursts grow.
    let (mut low, mut high) = (min.div_ceil(avpkt.max(1)), u32::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        match weight(min, middle, avpkt) {
            Some(known) if known < wlog => low = middle + 1,
            _ => high = middle,
        }
    }
    (weight(min, low, avpkt) == Some(wlog)).then_some(low)
}

/// The entries of a table of long times that can be right, if there are others. `tc` computes in
/// integers of 32 bits with a sign. On slow lines the last entries are beyond that.
fn sure(scell_log: u32, table: &[u8; SHIFTS]) -> Option<&[u8]> {
    // With fewer than sixteen no line would be known again.
    (24..28).contains(&scell_log).then(|| table.get(..(1 << 31) >> scell_log)).flatten()
}

/// True for the table of packets that take less than a microsecond: `tc` divides by zero, of which
/// processors make nothing, or all there is.
fn is_void(scell_log: u32, table: &[u8; SHIFTS]) -> bool {
    let [_, shifts @ .., _] = table;
    let all = |wanted: u8| shifts.iter().all(|shift| *shift == wanted);
    scell_log == 0 && (all(0) || all(MAX_SHIFT))
}

/// The least time of a packet whose table, by `shifts`, begins so.
fn packet_time(
    shifts: impl Fn(u64) -> Option<(u32, [u8; SHIFTS])>,
    scell_log: u32,
    table: &[u8],
) -> Option<u64> {
    // The longer a packet takes, the less an average falls in a cell, or the longer are cells.
    let (mut low, mut high) = (0, LONGEST);
    while low < high {
        let middle = low + (high - low) / 2;
        match shifts(middle) {
            Some((cell, shifts)) if (cell, table) < (scell_log, beginning(&shifts, table)) => {
                low = middle + 1;
            }
            _ => high = middle,
        }
    }
    shifts(low)
        .is_some_and(|(cell, shifts)| cell == scell_log && shifts.starts_with(table))
        .then_some(low)
}

/// As many entries of `shifts` as `table` has.
fn beginning<'a>(shifts: &'a [u8; SHIFTS], table: &[u8]) -> &'a [u8] {
    shifts.get(..table.len()).unwrap_or(shifts)
}

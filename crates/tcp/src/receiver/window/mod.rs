//! The receive window that is offered to the sender, and its autotuning.
//!
//! Linux counts memory, of which half is window. The buffer starts at 128 KiB and grows once a
//! round trip by what the application took in the last one. It becomes twice that, more while the
//! rate still rises, up to the cap (dynamic right-sizing, Feng and Fisk; Linux's
//! `tcp_rcv_space_adjust`). Within the buffer the offer itself grows by two segments per segment
//! received. It is never taken back, and shrinks to nothing only if the application does not read.

use crate::clock::Now;
use crate::config::Config;
use crate::segment::Segment;

/// Segments below this do not make the offer grow.
pub(crate) const GROWTH_LEN: u32 = 128;
/// Pieces of neighbouring segments that share one buffer, and its overhead, at most
/// (`MAX_SKB_FRAGS`).
pub(crate) const MERGED: u32 = 17;
/// A sender copies what is written into blocks of so many bytes (`SKB_FRAG_PAGE_ORDER`); a segment
/// that lies in two is two pieces.
const BLOCK: u64 = 32 << 10;
/// Memory per segment that Linux reckons with when it sizes the buffer, beyond the MSS.
const SIZING_OVERHEAD: u64 = 896;
/// Step of that reckoning.
const SIZING_STEP: u64 = 128;
/// Largest window without scaling.
const UNSCALED: u32 = 65_535;
/// The peer's MSS until a segment shows it (`TCP_MSS_DEFAULT`).
const UNKNOWN_MSS: u32 = 536;
/// The least that it is taken for (`TCP_MIN_MSS`).
const LEAST_MSS: u32 = 88;

/// State of the receive window.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    /// Our last ACK acknowledged up to here.
    pub acked: u64,
    /// It offered so much beyond.
    pub offered: u32,
    /// Payload of the peer's full segments, as seen.
    pub peer_mss: u32,
    /// MSS that we announced, less the options of each segment.
    pub advertised_mss: u32,
    /// Buffer, its cap, and what of it may become window.
    buffer: u32,
    buffer_max: u32,
    clamp: u32,
    /// Most that is offered for now.
    threshold: u32,
    scaling: bool,
    /// Offers are multiples of two to this power: the unit in which segments tell them.
    shift: u8,
    /// Up to here the application has read; automatic reading keeps up with the moment.
    read: u64,
    auto_read: bool,
    /// More data comes in this moment, before the application gets to read.
    more_comes: bool,
    /// Buffers of what is unread, where the first ends, and the pieces in the last.
    buffers: u32,
    first_end: u64,
    last_pieces: u8,
    /// Bytes of the first that were read: a buffer is freed as a whole.
    eaten: u32,
    /// Memory of what came out of order; no more than counts.
    held_memory: u32,
    /// Memory of a segment beside its payload.
    overhead: u32,
    /// The window may have changed although nothing has come in order.
    changed: bool,

    /// Sequence number and time at the start of the present measurement, and what the last gave.
    space_seq: u64,
    space_us: u32,
    space: u32,
    /// Time at which data last came, in microseconds, wrapping.
    came_us: u32,
    /// The RTT as the receiver sees it, in 1/8 µs.
    rtt8_us: u32,
    last_echo: u32,
    /// End of the window whose arrival is timed, and the start of timing in microseconds; both
    /// wrapping. The latter is zero before data.
    timed_end: u32,
    pub(super) timed_us: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(config: &Config) -> ReceiveWindow {
        let mss = u32::from(config.advertised_mss()).max(1);
        let offered = first_offer(config.rcvbuf, mss);
        ReceiveWindow {
            acked: 0,
            offered,
            peer_mss: UNKNOWN_MSS,
            advertised_mss: mss,
            buffer: config.rcvbuf,
            buffer_max: config.rcvbuf_max.max(config.rcvbuf),
            clamp: config.rcvbuf / 2,
            threshold: offered,
            scaling: config.window_scaling,
            shift: 0,
            read: 1,
            auto_read: true,
            more_comes: false,
            buffers: 0,
            first_end: 1,
            last_pieces: 0,
            eaten: 0,
            held_memory: 0,
            overhead: config.segment_overhead,
            changed: true,
            space_seq: 1,
            space_us: 0,
            came_us: 0,
            space: 0,
            rtt8_us: 0,
            last_echo: 0,
            timed_end: 0,
            timed_us: 0,
        }
    }

    /// Options are known; each segment of the peer spends `options` bytes on them. An `answer` to
    /// a SYN already reckons with that.
    pub(crate) fn start(&mut self, peer_mss: u32, options: u32, answer: bool) {
        self.advertised_mss = self.advertised_mss.saturating_sub(options).max(1);
        let mss = self.advertised_mss;
        if answer {
            self.offered = first_offer(self.buffer, mss);
            self.threshold = self.offered;
        }
        self.peer_mss = UNKNOWN_MSS.min(peer_mss.saturating_sub(options)).min(mss);
        self.peer_mss = self.peer_mss.min(self.offered / 2).max(LEAST_MSS);
        if !self.scaling {
            self.clamp = self.clamp.min(UNSCALED);
        }
        // One segment of the buffer is kept back.
        self.clamp = self.clamp.min((self.buffer / 2).saturating_sub(mss).max(2 * mss));
        self.threshold = self.threshold.min(self.clamp);
        self.changed = true;
        self.space = self.threshold.min(self.offered).min(10 * mss);
    }

    /// The connection stands: the first round trip of reading begins.
    pub(crate) fn start_measuring(&mut self, now: &Now) {
        self.space_us = now.us;
    }

    pub(crate) fn disable_scaling(&mut self) {
        self.scaling = false;
    }

    /// Both sides scale windows; ours are told in multiples of `2^shift`.
    pub(crate) fn scale_by(&mut self, shift: u8) {
        self.shift = shift;
    }

    pub(crate) fn set_auto_read(&mut self, automatic: bool) {
        self.auto_read = automatic;
    }

    /// The application does not get to read what has just come: more does in the same moment.
    pub(crate) fn await_more(&mut self) {
        self.more_comes = true;
    }

    /// True while more is awaited in the same moment.
    #[inline]
    pub(crate) fn more_comes(&self) -> bool {
        self.more_comes
    }

    /// Bytes in order that the application has not read. `nxt` excludes FIN.
    pub(crate) fn unread(&self, nxt: u64) -> u64 {
        if self.auto_read {
            0
        } else {
            nxt.saturating_sub(self.read)
        }
    }

    /// The application has taken `bytes`. True if the window now deserves an ACK of its own.
    pub(crate) fn consume(&mut self, bytes: u64, nxt: u64, now: &Now) -> bool {
        self.read += bytes;
        self.eaten += bytes as u32;
        // Those behind the first are mostly full.
        while self.buffers > 1 && self.first_end <= self.read {
            self.buffers -= 1;
            self.eaten = (self.read - self.first_end) as u32;
            self.first_end = self.full_end(self.first_end);
        }
        self.changed = true;
        self.adjust_buffer(self.read, now.us);
        let left = self.edge().saturating_sub(nxt) as u32;
        if u64::from(left) * 2 > u64::from(self.clamp) {
            return false;
        }
        let fresh = self.room(nxt.saturating_sub(self.read));
        fresh > 0 && fresh >= 2 * left
    }

    /// The right edge of what was offered.
    #[inline]
    fn edge(&self) -> u64 {
        self.acked + u64::from(self.offered)
    }

    /// Nothing more may come until the application reads.
    #[inline]
    pub(crate) fn is_shut(&self, nxt: u64) -> bool {
        !self.auto_read && self.edge() <= nxt
    }

    /// Everything in order was read.
    #[inline]
    pub(crate) fn all_read(&self, nxt: u64) -> bool {
        self.auto_read || self.read >= nxt
    }

    /// An ACK could move the right edge on (else reading will send one).
    #[inline]
    pub(crate) fn may_advance(&self, nxt: u64, now: &Now) -> bool {
        let unread = self.waiting(nxt, now);
        unread == 0 || self.room(unread) >= self.offered
    }

    /// The application reads what there is; false if it does so only when told.
    #[inline]
    pub(crate) fn reads(&mut self, nxt: u64) -> bool {
        if self.auto_read && nxt > self.read {
            self.read_all(nxt);
        }
        self.auto_read
    }

    /// Bytes in order that wait for the application. One that reads at once is woken when the
    /// segments of the moment have been taken in.
    #[inline]
    fn waiting(&self, nxt: u64, now: &Now) -> u64 {
        if self.auto_read && now.us != self.came_us {
            return 0;
        }
        nxt.saturating_sub(self.read)
    }

    /// Data from `start` to `end`, in so many `segments`, joins the queue to the application. It
    /// goes into the last buffer if there is room in it.
    #[inline]
    pub(crate) fn queue(&mut self, start: u64, end: u64, segments: u32) {
        if self.read >= start {
            (self.buffers, self.eaten) = (0, 0);
        }
        let pieces = segments + u32::from(is_split(start, end));
        let pieces_of_last = u32::from(self.last_pieces) + pieces;
        if self.buffers > 0 && pieces_of_last <= MERGED {
            self.last_pieces = pieces_of_last as u8;
        } else {
            self.buffers += 1;
            self.last_pieces = pieces.min(MERGED) as u8;
        }
        if self.buffers == 1 {
            self.first_end = end;
        }
    }

    /// The end of a buffer that begins at `start` and has no room for another piece.
    fn full_end(&self, start: u64) -> u64 {
        let mss = u64::from(self.peer_mss);
        let end = start + u64::from(MERGED) * mss;
        if is_split(start, end) {
            end - mss
        } else {
            end
        }
    }

    /// Memory of `bytes` out of order in so many `buffers`.
    pub(crate) fn hold(&mut self, bytes: u32, buffers: usize) {
        let memory = u64::from(bytes) + buffers as u64 * u64::from(self.overhead);
        self.held_memory = memory.min(self.buffer_max.into()) as u32;
        self.changed = true;
    }

    /// Smoothed RTT in µs; zero if unknown.
    pub(crate) fn rtt_us(&self) -> u32 {
        self.rtt8_us >> 3
    }

    /// Takes an RTT from the timestamp that a full segment echoes. A lower one counts at once, a
    /// higher one by an eighth. The buffer is sized by what comes in one RTT, and queues are not to
    /// enlarge it.
    #[inline]
    pub(crate) fn measure_rtt(&mut self, segment: &Segment, now: &Now) {
        if segment.ts_echo == self.last_echo {
            return;
        }
        self.last_echo = segment.ts_echo;
        if segment.len < self.peer_mss {
            return;
        }
        let ms = now.timestamp().wrapping_sub(segment.ts_echo);
        if segment.ts_echo == 0 || ms > 1_000_000 {
            return;
        }
        let sample = ms.max(1) * 1_000;
        if !self.lower_rtt(sample) {
            self.rtt8_us = self.rtt8_us - (self.rtt8_us >> 3) + sample;
        }
    }

    /// The first RTT, or one below all before, counts at once.
    fn lower_rtt(&mut self, us: u32) -> bool {
        let sample = u64::from(us) << 3;
        let counts = self.rtt8_us == 0 || sample < u64::from(self.rtt8_us);
        if counts {
            self.rtt8_us = sample as u32;
        }
        counts
    }

    /// Data has come in order up to `nxt`. A window of data takes a round trip or more to come
    /// (`tcp_rcv_rtt_measure`). Without timestamps this is the only measure of the RTT. With them
    /// it counts where it is less, though it is too short where little is offered.
    #[inline]
    pub(crate) fn time_window(&mut self, nxt: u64, now: &Now) {
        if self.timed_us > 0 {
            if ((nxt as u32).wrapping_sub(self.timed_end) as i32) < 0 {
                return;
            }
            self.lower_rtt(now.us.wrapping_sub(self.timed_us).max(1));
        }
        self.timed_end = (nxt as u32).wrapping_add(self.offered);
        self.timed_us = now.us.max(1);
    }

    /// A segment of `len` bytes has come: offers two more. True if the offer grew. All in order up
    /// to `nxt` fills the buffer, since nobody has read it yet. What has `joined` a buffer, or is
    /// about to, has no overhead of its own.
    #[inline]
    pub(crate) fn grow(&mut self, nxt: u64, len: u32, joined: bool) -> bool {
        if self.threshold >= self.clamp {
            return false;
        }
        let unread = nxt.saturating_sub(self.read);
        let free = self.free(unread).min(u64::from(self.clamp));
        let room = free.saturating_sub(u64::from(self.threshold)) as u32;
        if room == 0 {
            return false;
        }
        let memory = u64::from(len + if joined { 0 } else { self.overhead });
        let step = if memory / 2 <= u64::from(len) {
            2 * self.advertised_mss
        } else {
            // Small segments waste memory: grow only while there is plenty.
            let mut window = u64::from(self.buffer_max) / 4;
            let mut needed = memory / 4;
            while u64::from(self.threshold) <= window && needed > u64::from(len) {
                needed /= 2;
                window /= 2;
            }
            if u64::from(self.threshold) > window {
                return false;
            }
            2 * self.peer_mss
        };
        self.threshold += room.min(step.max(2 * len));
        true
    }

    /// Bytes of window that memory allows with `unread` bytes waiting.
    #[inline]
    fn free(&self, unread: u64) -> u64 {
        let used = u64::from(self.held_memory) + self.queued_memory(unread);
        u64::from(self.buffer).saturating_sub(used) / 2
    }

    /// Window that could be offered with `unread` bytes waiting.
    fn room(&self, unread: u64) -> u32 {
        let full = self.clamp.min(self.buffer / 2);
        let mut free = self.free(unread) as u32;
        if free < full / 2 {
            // Little room is not to become more by being told.
            free &= !self.below_unit();
            if free < self.buffer / 2 / 16 || free < self.peer_mss.min(full) {
                free = 0;
            }
        }
        free = free.min(self.threshold);
        if self.scaling {
            self.whole(free)
        } else {
            self.in_segments(free).min(UNSCALED)
        }
    }

    /// Without scaling the offer is a whole number of segments, and moves by no less
    /// (`__tcp_select_window`).
    fn in_segments(&self, free: u32) -> u32 {
        let mss = self.peer_mss.min(self.clamp).max(1);
        let keeps = self.offered <= free && self.offered > free.saturating_sub(mss);
        if keeps {
            self.offered
        } else {
            free / mss * mss
        }
    }

    /// The next multiple of the unit, so that telling it loses nothing.
    #[inline]
    fn whole(&self, window: u32) -> u32 {
        let most = u32::MAX - self.below_unit();
        (window.min(most) + self.below_unit()) & !self.below_unit()
    }

    /// The bits of a window that are not told.
    #[inline]
    fn below_unit(&self) -> u32 {
        (1 << self.shift) - 1
    }

    /// The window of a segment that leaves now and acknowledges up to `nxt`. Where little room is
    /// left, `leave_quick` is called.
    #[inline]
    pub(crate) fn offer(&mut self, nxt: u64, leave_quick: impl FnOnce(), now: &Now) -> u32 {
        if nxt == self.acked && !self.changed {
            return self.offered;
        }
        self.changed = false;
        let left = self.edge().saturating_sub(nxt) as u32;
        let unread = self.waiting(nxt, now);
        let room = self.room(unread);
        if room < self.clamp / 2 && self.free(unread) < u64::from(self.clamp / 2) {
            leave_quick();
        }
        self.acked = nxt;
        self.offered = if room < left { self.whole(left) } else { room };
        self.offered
    }

    /// Data comes; all before it, up to `nxt`, has come earlier. With automatic reading the
    /// application has read that, at once, but segments of the same moment together.
    #[inline]
    pub(crate) fn auto_consume(&mut self, nxt: u64, now: &Now) {
        self.more_comes = false;
        if now.us == self.came_us {
            return;
        }
        // What comes out of order is not read, and ends no measurement.
        if self.auto_read && nxt > self.read {
            self.read_all(nxt);
        }
        self.came_us = now.us;
    }

    /// The application has read up to `nxt` when data last came. Linux looks at the measurement
    /// after each buffer, so that a new one begins in the midst of what a filled gap sets free.
    #[inline]
    fn read_all(&mut self, nxt: u64) {
        self.read = nxt;
        self.adjust_buffer(self.first_end.min(nxt), self.came_us);
    }

    /// Once a round trip: is the buffer large enough for what was read?
    #[inline]
    fn adjust_buffer(&mut self, read: u64, now_us: u32) {
        let passed = now_us.wrapping_sub(self.space_us);
        if self.rtt8_us == 0 || passed < self.rtt8_us >> 3 {
            return;
        }
        let copied = read - self.space_seq;
        if copied > u64::from(self.space) {
            self.enlarge(copied);
            self.space = copied.min(u32::MAX.into()) as u32;
        }
        self.space_seq = read;
        self.space_us = now_us;
    }

    fn enlarge(&mut self, copied: u64) {
        if self.buffer >= self.buffer_max {
            return;
        }
        let mss = u64::from(self.advertised_mss);
        let mut window = 2 * copied + 16 * mss;
        let last = u64::from(self.space.max(1));
        window += (window as u128 * u128::from(copied - last) / u128::from(last)) as u64 * 2;
        let mut memory = mss + SIZING_OVERHEAD;
        while memory / 2 < mss {
            memory += SIZING_STEP;
        }
        let buffer = (window / mss).saturating_mul(memory).min(u64::from(self.buffer_max)) as u32;
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = buffer / 2;
            self.changed = true;
        }
    }

    /// Memory of `unread` bytes that wait for the application.
    #[inline]
    fn queued_memory(&self, unread: u64) -> u64 {
        match unread {
            0 => 0,
            _ => {
                let buffers = u64::from(self.buffers.max(1));
                unread + u64::from(self.eaten) + buffers * u64::from(self.overhead)
            }
        }
    }
}

/// A SYN's offer: half of the buffer in whole segments, as far as 16 bits say so, but one segment
/// (`tcp_select_initial_window`).
fn first_offer(buffer: u32, mss: u32) -> u32 {
    (buffer / 2 / mss * mss).min(UNSCALED).max(mss)
}

/// True if data from `start` to `end` lies in more than one block of the sender's.
#[inline]
fn is_split(start: u64, end: u64) -> bool {
    (start - 1) / BLOCK != (end - 2) / BLOCK
}

#[cfg(test)]
mod tests;

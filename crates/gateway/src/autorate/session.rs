//! A session with one irtt server, from the first request to open it on. No I/O, no clock.
//!
//! ```text
//! closed --next: open--> opening --opened--> open --next: echoes…
//!    ^                                        |
//!    +-- refused, closed, its time is over, two echoes in turn lost (the server was started anew)
//! ```

use std::time::Duration;

use simnel_core::{Span, Time};
use simnel_measure::irtt::{close, open, request, Opened};

/// Least time between two requests that is asked for.
const INTERVAL: Span = Span::from_millis(100);
/// A server that wants to be asked seldomer than so says too little of a line.
const SELDOM: Span = Span::from_millis(500);
/// Time that a session is asked to last, and the least that is worth it.
const DURATION: Span = Span::from_secs(24 * 3_600);
const SHORT: Span = Span::from_secs(5);
/// A session is left so long before the server forgets it.
const BEFORE_END: Span = Span::from_secs(1);
/// Echoes lost in turn after which a session is thought to be forgotten.
const FORGOTTEN: u8 = 2;

const SELDOM_TEXT: &str = "it lets itself be asked too seldom: twice a second at least";
const SHORT_TEXT: &str = "its sessions end too soon: five seconds at least";

/// A message for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A request to open a session.
    Open(Vec<u8>),
    /// A request for an echo.
    Echo(Vec<u8>),
}

/// A session, or the lack of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    token: u64,
    interval: Span,
    ends: Time,
    /// Earliest time of the next request for an echo.
    next: Time,
    /// Echoes lost in turn.
    lost: u8,
}

impl Session {
    /// The message whose turn it is: one that opens a session, or a request for an echo with this
    /// `number`. None while the server is to be left in peace.
    pub(crate) fn next(&mut self, number: u32, now: Time) -> Option<Message> {
        self.open = self.open.filter(|open| now < open.ends);
        let Some(open) = &mut self.open else {
            let [interval, duration] =
                [INTERVAL, DURATION].map(|span| Duration::from_nanos(span.0));
            return Some(Message::Open(self::open(interval, duration)));
        };
        if now < open.next {
            return None;
        }
        open.next = now + open.interval;
        Some(Message::Echo(request(open.token, number).into()))
    }

    /// The server has opened a session: None, or a message that ends it again, because there is
    /// one already or it is of no use.
    ///
    /// # Errors
    /// The session is of no use: the reason, and the message that ends it.
    pub(crate) fn opened(&mut self, by: Opened, now: Time) -> Result<Option<Vec<u8>>, Useless> {
        let span = |time: Duration| {
            Span(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(DURATION.0))
        };
        let (interval, duration) = (span(by.interval), span(by.duration));
        let end = close(by.token).to_vec();
        let useless = |reason| Err(Useless { reason, end: end.clone() });
        if interval > SELDOM {
            return useless(SELDOM_TEXT);
        }
        if duration < SHORT {
            return useless(SHORT_TEXT);
        }
        if self.open.is_some() {
            return Ok(Some(end));
        }
        let ends = now + duration.saturating_sub(BEFORE_END);
        self.open = Some(Open { token: by.token, interval, ends, next: now, lost: 0 });
        Ok(None)
    }

    /// True if an echo with this `token` is of the session; it was heard.
    pub(crate) fn echoed(&mut self, token: u64) -> bool {
        match self.open.as_mut().filter(|open| open.token == token) {
            Some(open) => {
                open.lost = 0;
                true
            }
            None => false,
        }
    }

    /// An echo is lost. A message ends the session, if it is given up for that.
    pub(crate) fn lost(&mut self) -> Option<Vec<u8>> {
        let open = self.open.as_mut()?;
        open.lost += 1;
        let is_forgotten = open.lost >= FORGOTTEN;
        is_forgotten.then(|| self.end()).flatten()
    }

    /// The server has ended the session with this `token`.
    pub(crate) fn closed(&mut self, token: u64) {
        self.open = self.open.filter(|open| open.token != token);
    }

    /// Gives the session up; what tells the server so, if there was one.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        self.open.take().map(|open| close(open.token).to_vec())
    }
}

/// A session that tells too little, and the message that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Useless {
    pub(crate) reason: &'static str,
    pub(crate) end: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Time = Time(1_000_000_000);

    fn given(token: u64, interval_ms: u64, duration_s: u64) -> Opened {
        Opened {
            token,
            interval: Duration::from_millis(interval_ms),
            duration: Duration::from_secs(duration_s),
        }
    }

    fn opens(session: &mut Session, now: Time) -> bool {
        matches!(session.next(1, now), Some(Message::Open(_)))
    }

    #[test]
    fn a_session_is_opened_asked_and_ended() {
        let mut session = Session::default();
        assert!(opens(&mut session, T0) && opens(&mut session, T0));
        assert_eq!(session.opened(given(7, 100, 3_600), T0), Ok(None));
        // The second request to open has made another one.
        let extra = session.opened(given(8, 100, 3_600), T0);
        assert_eq!(extra, Ok(Some(close(8).to_vec())));
        assert_eq!(session.next(5, T0), Some(Message::Echo(request(7, 5).to_vec())));
        assert!(session.echoed(7) && !session.echoed(8));
        assert_eq!(session.end(), Some(close(7).to_vec()));
        assert_eq!(session.end(), None);
    }

    #[test]
    fn the_server_s_pauses_are_kept() {
        let mut session = Session::default();
        session.opened(given(7, 300, 3_600), T0).unwrap();
        assert!(session.next(1, T0).is_some());
        assert_eq!(session.next(2, T0 + Span::from_millis(299)), None);
        assert!(session.next(2, T0 + Span::from_millis(300)).is_some());
    }

    #[test]
    fn a_session_is_opened_anew_before_it_ends_and_when_it_is_forgotten() {
        let mut session = Session::default();
        session.opened(given(7, 100, 60), T0).unwrap();
        assert!(!opens(&mut session, T0 + Span::from_secs(58)));
        assert!(opens(&mut session, T0 + Span::from_secs(59)));
        session.opened(given(8, 100, 60), T0).unwrap();
        assert_eq!(session.lost(), None);
        assert!(session.echoed(8));
        assert_eq!((session.lost(), session.lost()), (None, Some(close(8).to_vec())));
        assert!(opens(&mut session, T0) && session.lost().is_none());
        session.opened(given(9, 100, 60), T0).unwrap();
        session.closed(8);
        assert!(!opens(&mut session, T0));
        session.closed(9);
        assert!(opens(&mut session, T0));
    }

    #[test]
    fn sessions_that_tell_too_little_are_ended_with_a_reason() {
        for (interval, duration, said) in [(501, 60, "seldom"), (100, 4, "too soon")] {
            let mut session = Session::default();
            let useless = session.opened(given(7, interval, duration), T0).unwrap_err();
            assert!(useless.reason.contains(said), "{useless:?}");
            assert_eq!(useless.end, close(7));
            assert!(opens(&mut session, T0));
        }
        // Just often enough, and just long enough.
        assert_eq!(Session::default().opened(given(7, 500, 5), T0), Ok(None));
        // Numbers of any size.
        let forever = Opened { token: 1, interval: Duration::ZERO, duration: Duration::MAX };
        assert_eq!(Session::default().opened(forever, T0), Ok(None));
    }
}

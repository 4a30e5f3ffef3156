//! Our own protocol between a measurement and its server: one port, TCP and UDP.
//!
//! Every TCP connection begins with one line of JSON from the client ([`Request`]) and one from the
//! server ([`Answer`]). The first opens a session; it lasts as long as that connection. All others
//! name the session and are for one thing:
//!
//! ```text
//! {"simnel":1,"do":"open","token":"…"}   → {"ok":true,"session":"…32 digits…","seconds":120}
//! {"simnel":1,"do":"echo","session":"…"} → {"ok":true}, and the end: a request and its answer
//! {"simnel":1,"do":"down","session":"…"} → {"ok":true}, then blocks; the client may send tokens
//! {"simnel":1,"do":"up","session":"…"}   → {"ok":true}; the client sends blocks, the server counts
//! ```
//!
//! A block is a [`Head`] and as many bytes as it says. A token (8 bytes) that the client sends on a
//! download comes back in the next block's head. One in the head of an upload's block comes back in
//! the server's next [`Count`]. Either is a round trip of a request on a busy connection.
//!
//! A datagram is a [`Probe`], answered by one of the same length, and only if it names a session.
//! Whoever has none, or forged the address, gets nothing. Numbers are big-endian.

use serde::{Deserialize, Serialize};

/// Port at which servers listen unless told otherwise.
pub const PORT: u16 = 7730;
/// Version of the protocol.
pub const VERSION: u32 = 1;
/// Bytes of a first line, at most.
pub const MAX_LINE: usize = 512;

/// Names a session: nobody can guess it.
pub type Session = [u8; 16];

/// The client's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`].
    pub simnel: u32,
    /// The connection's purpose.
    #[serde(rename = "do")]
    pub purpose: Purpose,
    /// For those of a session: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// For a server that wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Purposes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A session begins.
    Open,
    /// One request on a connection of its own.
    Echo,
    /// Blocks to the client.
    Down,
    /// Blocks to the server.
    Up,
}

/// The server's first line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// True if the peer does what was asked.
    pub ok: bool,
    /// Reason why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The session's name, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Seconds that a session may last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// The head of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Bytes that follow it.
    pub bytes: u32,
    /// Token that is passed on, or zero.
    pub token: u64,
}

impl Head {
    /// Bytes of a head.
    pub const LEN: usize = 16;
    const MAGIC: u32 = 0x534d_4e42;

    /// As it is sent.
    pub fn encode(self) -> [u8; Head::LEN] {
        let mut bytes = [0; Head::LEN];
        bytes[..4].copy_from_slice(&Head::MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[8..].copy_from_slice(&self.token.to_be_bytes());
        bytes
    }

    /// None if it is none.
    pub fn decode(bytes: &[u8; Head::LEN]) -> Option<Head> {
        let [magic, length] = [word(bytes, 0)?, word(bytes, 4)?];
        (magic == Head::MAGIC).then_some(())?;
        Some(Head { bytes: length, token: long(bytes, 8)? })
    }
}

/// Finds heads in a stream of blocks, in whatever pieces it comes.
#[derive(Debug, Default)]
pub struct Blocks {
    head: Vec<u8>,
    left: usize,
}

impl Blocks {
    /// Takes the next piece; tells every token in it. False: this is no stream of blocks.
    pub fn read(&mut self, mut piece: &[u8], mut told: impl FnMut(u64)) -> bool {
        while !piece.is_empty() {
            let body = self.left.min(piece.len());
            self.left -= body;
            piece = &piece[body..];
            let part = (Head::LEN - self.head.len()).min(piece.len());
            self.head.extend_from_slice(&piece[..part]);
            piece = &piece[part..];
            let Ok(whole) = <&[u8; Head::LEN]>::try_from(self.head.as_slice()) else { continue };
            let Some(head) = Head::decode(whole) else { return false };
            self.head.clear();
            self.left = head.bytes as usize;
            if head.token != 0 {
                told(head.token);
            }
        }
        true
    }
}

/// The server's account of an upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Bytes that have come so far.
    pub bytes: u64,
    /// The server's clock, in ns.
    pub time: u64,
    /// Token of a block that has come, or zero.
    pub token: u64,
}

impl Count {
    /// Bytes of a count.
    pub const LEN: usize = 24;

    /// As it is sent.
    pub fn encode(self) -> [u8; Count::LEN] {
        let mut bytes = [0; Count::LEN];
        bytes[..8].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_be_bytes());
        bytes[16..].copy_from_slice(&self.token.to_be_bytes());
        bytes
    }

    /// As it was sent.
    pub fn decode(bytes: &[u8; Count::LEN]) -> Option<Count> {
        Some(Count { bytes: long(bytes, 0)?, time: long(bytes, 8)?, token: long(bytes, 16)? })
    }
}

/// A datagram and its echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Session that it belongs to.
    pub session: Session,
    /// Number of the probe.
    pub number: u32,
    /// True for an echo.
    pub echo: bool,
    /// Time at which the server received it, by its clock in ns.
    pub received: u64,
    /// Time at which the server answered, by the same clock.
    pub answered: u64,
}

impl Probe {
    /// Bytes of a probe, and of its echo.
    pub const LEN: usize = 44;
    const MAGIC: u32 = 0x534d_4e50;

    /// As it is sent.
    pub fn encode(&self) -> [u8; Probe::LEN] {
        let mut bytes = [0; Probe::LEN];
        let magic = Probe::MAGIC ^ u32::from(self.echo);
        bytes[..4].copy_from_slice(&magic.to_be_bytes());
        bytes[4..20].copy_from_slice(&self.session);
        bytes[20..24].copy_from_slice(&self.number.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.received.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.answered.to_be_bytes());
        bytes
    }

    /// None if it is none.
    pub fn decode(bytes: &[u8]) -> Option<Probe> {
        (bytes.len() == Probe::LEN).then_some(())?;
        let magic = word(bytes, 0)? ^ Probe::MAGIC;
        Some(Probe {
            session: bytes.get(4..20)?.try_into().ok()?,
            number: word(bytes, 20)?,
            echo: (magic <= 1).then_some(magic == 1)?,
            received: long(bytes, 24)?,
            answered: long(bytes, 32)?,
        })
    }
}

/// A session's name as text.
pub fn spell(session: &Session) -> String {
    session.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The session that a text names.
pub fn session(text: &str) -> Option<Session> {
    (text.len() == 32 && text.is_ascii()).then_some(())?;
    let mut session = Session::default();
    for (n, byte) in session.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(session)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_read() {
        let probe =
            Probe { session: [7; 16], number: 9, echo: true, received: 1 << 40, answered: 3 };
        assert_eq!(Probe::decode(&probe.encode()), Some(probe));
        assert_eq!(Probe::decode(&probe.encode()[1..]), None);
        assert_eq!(Probe::decode(&[0; Probe::LEN]), None);
        let count = Count { bytes: 1, time: 2, token: 3 };
        assert_eq!(Count::decode(&count.encode()), Some(count));
        assert_eq!(session(&spell(&[0xa5; 16])), Some([0xa5; 16]));
        assert_eq!(session(&"é".repeat(16)), None);
        assert_eq!(session(&"+".repeat(32)), None);
    }

    #[test]
    fn tokens_are_found_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        for (token, bytes) in [(0, 5), (11, 0), (12, 40)] {
            stream.extend(Head { bytes, token }.encode());
            stream.resize(stream.len() + bytes as usize, 0);
        }
        for size in 1..stream.len() {
            let (mut blocks, mut tokens) = (Blocks::default(), Vec::new());
            assert!(stream.chunks(size).all(|part| blocks.read(part, |token| tokens.push(token))));
            assert_eq!(tokens, [11, 12], "in pieces of {size}");
        }
        assert!(!Blocks::default().read(&[1; 40], |_| {}));
    }
}

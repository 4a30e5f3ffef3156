//! Bulk data of a session: blocks that are sent, and blocks that are counted.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;
use socket2::SockRef;

use super::{is_wait, Live, Shared};
use crate::wire::{Blocks, Count, Head};

/// A block is what a flow carries in so much time, so that a token waits no longer.
const BLOCK_TIME: Duration = Duration::from_millis(2);
/// Unsent bytes that the kernel keeps: a token waits behind them.
const UNSENT: u32 = 32 * 1024;
/// The congestion control of nearly all senders; a line that is good with another one may be bad.
const CONGESTION: &[u8] = b"cubic";
/// Time between counts.
const COUNTS: Duration = Duration::from_millis(50);

/// Size of a flow's next block.
#[derive(Debug)]
pub(crate) struct Size {
    since: Instant,
    bytes: usize,
}

impl Size {
    /// Bytes of a block, at first and at most: small ones bring tokens back soon, large ones cost
    /// less.
    pub(crate) const LEAST: usize = 1024;
    pub(crate) const MOST: usize = 64 * 1024;

    pub(crate) fn new() -> Size {
        Size { since: Instant::now(), bytes: 0 }
    }

    /// After a block of so many bytes.
    pub(crate) fn next(&mut self, sent: usize) -> usize {
        self.bytes += sent;
        let share = BLOCK_TIME.as_secs_f64() / self.since.elapsed().as_secs_f64().max(1e-3);
        let wanted = (self.bytes as f64 * share) as usize;
        if self.since.elapsed() > Duration::from_secs(1) {
            *self = Size::new();
        }
        wanted.clamp(Size::LEAST, Size::MOST)
    }
}

/// Makes a connection send as most do. What the kernel refuses stays as it is.
pub(crate) fn prepare(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_tcp_congestion(CONGESTION);
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT);
}

/// Sends blocks until the client or the session ends, or its bytes are spent.
pub(super) fn send(stream: &mut TcpStream, live: &Live) -> io::Result<()> {
    prepare(stream);
    stream.set_write_timeout(Some(super::LOOK))?;
    let mut data = vec![0; Head::LEN + Size::MOST];
    let (mut bytes, mut size) = (Size::LEAST, Size::new());
    let mut tokens = Vec::new();
    while live.lives() && live.spend((Head::LEN + bytes) as u64) {
        let token = token(stream, &mut tokens)?;
        let head = Head { bytes: bytes as u32, token };
        data[..Head::LEN].copy_from_slice(&head.encode());
        write(stream, &data[..Head::LEN + bytes], || live.lives())?;
        bytes = size.next(Head::LEN + bytes);
    }
    Ok(())
}

/// Writes all of it, while `lives`.
pub(crate) fn write(
    stream: &mut TcpStream,
    mut bytes: &[u8],
    lives: impl Fn() -> bool,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_wait(&error) && lives() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The last token that has come, or zero; waits for none.
fn token(stream: &TcpStream, begun: &mut Vec<u8>) -> io::Result<u64> {
    let mut last = 0;
    loop {
        let mut bytes = [0; 64];
        match rustix::net::recv(stream, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => begun.extend(&bytes[..count]),
            Err(error) if is_wait(&error.into()) => return Ok(last),
            Err(error) => return Err(error.into()),
        }
        while begun.len() >= 8 {
            let token: Vec<u8> = begun.drain(..8).collect();
            last = token.try_into().map_or(0, u64::from_be_bytes);
        }
    }
}

/// Takes blocks and tells their count until the client or the session ends.
pub(super) fn receive(stream: &mut TcpStream, live: &Live, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(COUNTS))?;
    let mut buffer = vec![0; 256 * 1024];
    let (mut blocks, mut bytes) = (Blocks::default(), 0);
    let mut told = Instant::now();
    while live.lives() {
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if is_wait(&error) => 0,
            Err(error) => return Err(error),
        };
        if !live.spend(count as u64) {
            return Ok(());
        }
        bytes += count as u64;
        let mut token = 0;
        if !blocks.read(&buffer[..count], |one| token = one) {
            return Err(ErrorKind::InvalidData.into());
        }
        if token != 0 || told.elapsed() >= COUNTS {
            told = Instant::now();
            stream.write_all(&Count { bytes, time: shared.now(), token }.encode())?;
        }
    }
    Ok(())
}

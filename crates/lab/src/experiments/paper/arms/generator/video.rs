//! Video in chunks, for which the simulator's player asks, over one TCP connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use simnel_core::Time;
use simnel_sim::apps::player::{Chunk, Next, Playback, Player, REQUEST};
use simnel_sim::setup::dash::Params;

use super::stream::{self, Manner, READ_BYTES};
use super::{Course, Heard, Join, Sides};
use crate::experiments::paper::arms::plan::{moment, real, span, Flow};
use simnel_testbed::TestbedError;

/// [`Playback`] of a video, as it is written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Played {
    /// Of each chunk when it was asked for, its rate and its throughput.
    chunks: Vec<(Duration, u64, u64)>,
    startup: Option<Duration>,
    stalls: u64,
    stalled: Duration,
    played: Duration,
}

impl From<Playback> for Played {
    fn from(playback: Playback) -> Played {
        let chunk = |one: Chunk| (real(one.asked.since(Time::ZERO)), one.rate, one.throughput);
        Played {
            chunks: playback.chunks.into_iter().map(chunk).collect(),
            startup: playback.startup.map(real),
            stalls: playback.stalls,
            stalled: real(playback.stalled),
            played: real(playback.played),
        }
    }
}

impl From<&Played> for Playback {
    fn from(played: &Played) -> Playback {
        let chunk = |(asked, rate, throughput): &(Duration, u64, u64)| Chunk {
            asked: moment(*asked),
            rate: *rate,
            throughput: *throughput,
        };
        Playback {
            chunks: played.chunks.iter().map(chunk).collect(),
            startup: played.startup.map(span),
            stalls: played.stalls,
            stalled: span(played.stalled),
            played: span(played.played),
        }
    }
}

/// Makes a connection over which the host at home asks for chunks.
pub(super) fn start(
    flow: &Flow,
    params: Params,
    manner: Manner,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let (begin, stop) = (moment(flow.start), flow.stop.map_or(Time::MAX, moment));
    let player = Player::new(&params, begin, stop);
    let (here, there) = (course.clone(), course.clone());
    let client = move |stream| watch(stream, player, begin, &here);
    let server = move |stream| answer(stream, &there);
    stream::start(flow, manner, (sides, course), client, server, |(bytes, playback), ()| Heard {
        bytes,
        played: Some(playback.into()),
        ..Heard::default()
    })
}

/// Asks for chunks from `begin` to the run's end; the bytes that came, and how the video played.
fn watch(
    stream: Option<TcpStream>,
    mut player: Player,
    begin: Time,
    course: &Course,
) -> io::Result<(Vec<u64>, Playback)> {
    let end = moment(course.duration);
    let mut bytes = vec![0; course.intervals];
    let mut now = begin;
    if let Some(mut stream) = stream {
        while now < end {
            match player.next(now) {
                Next::Ask(size) => match fetch(&mut stream, size, &mut bytes, course) {
                    // What comes after the end is not there at the end.
                    Ok(()) if course.now() < course.duration => {
                        player.fetched(moment(course.now()))
                    }
                    Err(error) if !course.over() => return Err(error),
                    _ => break,
                },
                Next::Wait(until) => course.wait(real(until.since(Time::ZERO))),
                Next::Nothing | Next::Stop => break,
            }
            now = moment(course.now());
        }
    }
    Ok((bytes, player.playback(end)))
}

/// Asks for a chunk, by its size, and receives it.
fn fetch(stream: &mut TcpStream, size: u64, bytes: &mut [u64], course: &Course) -> io::Result<()> {
    let mut request = [0; REQUEST as usize];
    request[..8].copy_from_slice(&size.to_be_bytes());
    stream.write_all(&request)?;
    let mut data = vec![0; READ_BYTES];
    let mut left = size;
    while left > 0 {
        let room = left.min(READ_BYTES as u64) as usize;
        let count = match stream.read(&mut data[..room])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => count,
        };
        course.count(bytes, count);
        left -= count as u64;
    }
    Ok(())
}

/// Sends each chunk as soon as its request is whole, in one call: where one ends, a segment may.
fn answer(stream: Option<TcpStream>, course: &Course) -> io::Result<()> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut data = Vec::new();
    let mut request = [0; REQUEST as usize];
    loop {
        match stream.read_exact(&mut request) {
            Ok(()) => {}
            // The client has stopped.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(_) if course.over() => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut size = [0; 8];
        size.copy_from_slice(&request[..8]);
        let size = u64::from_be_bytes(size) as usize;
        data.resize(size.max(data.len()), 0x5a);
        stream::write(&mut stream, &data[..size], course)?;
    }
}

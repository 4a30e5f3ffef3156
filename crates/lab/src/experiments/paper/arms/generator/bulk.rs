//! A TCP transfer without end.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use super::stream::{self, Manner};
use super::{Course, Heard, Join, PaceSender, Sides};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::TestbedError;

/// Bytes handed to the kernel in one call: little, so that senders take turns.
const WRITE_BYTES: usize = 16 * 1024;

/// Makes a connection whose one end sends from the flow's start to its stop.
pub(super) fn start(
    flow: &Flow,
    manner: Manner,
    pace: Option<PaceSender>,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let stop = flow.stop.unwrap_or(course.duration);
    let side = |sends: bool| Side { sends, pace, stop, course: course.clone() };
    let (here, there) = (side(flow.up), side(!flow.up));
    let ends = (move |stream| here.transfer(stream), move |stream| there.transfer(stream));
    stream::start(flow, manner, (sides, course), ends.0, ends.1, |here, there| Heard {
        bytes: here.or(there).unwrap_or_default(),
        ..Heard::default()
    })
}

/// One end of the connection.
struct Side {
    sends: bool,
    pace: Option<PaceSender>,
    stop: Duration,
    course: Course,
}

impl Side {
    /// Sends until the flow's end, or receives and counts. An end of the run is no failure.
    fn transfer(&self, stream: Option<TcpStream>) -> io::Result<Option<Vec<u64>>> {
        match (stream, self.sends) {
            (stream, false) => stream::receive(stream, &self.course, |_| {}).map(Some),
            (Some(stream), true) => self.send(stream).map(|()| None),
            (None, true) => Ok(None),
        }
    }

    fn send(&self, mut stream: TcpStream) -> io::Result<()> {
        if let Some(pace) = self.pace {
            pace(&stream)?;
        }
        let data = [0x5a; WRITE_BYTES];
        while self.course.now() < self.stop && !self.course.over() {
            stream::write(&mut stream, &data, &self.course)?;
        }
        Ok(())
    }
}

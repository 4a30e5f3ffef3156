//! The program that is Linux: one process that is asked many times.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Last line of an answer: how the case ended.
const STATUS: &str = "# status ";

/// Programs for each HZ, started when they are first needed.
#[derive(Debug)]
pub struct Oracles {
    path: PathBuf,
    running: BTreeMap<u32, Oracle>,
}

impl Oracles {
    /// Those whose names are `path` with `-HZ` behind it.
    pub fn new(path: PathBuf) -> Oracles {
        Oracles { path, running: BTreeMap::new() }
    }

    /// The one for `hz`.
    pub fn of(&mut self, hz: u32) -> io::Result<&mut Oracle> {
        if !self.running.contains_key(&hz) {
            let mut program = self.path.clone().into_os_string();
            program.push(format!("-{hz}"));
            self.running.insert(hz, Oracle::start(&PathBuf::from(program))?);
        }
        self.running.get_mut(&hz).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The running program. It ends with this.
#[derive(Debug)]
pub struct Oracle {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    answer: String,
}

impl Oracle {
    /// Starts `program`.
    pub fn start(program: &PathBuf) -> io::Result<Oracle> {
        let mut child = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipe"));
        };
        let output = BufReader::with_capacity(1 << 16, output);
        Ok(Oracle { child, input: Some(input), output, answer: String::new() })
    }

    /// Status and answer to the text of a case.
    pub fn ask(&mut self, case: &str) -> io::Result<(i32, &str)> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{}", case.len())?;
        input.write_all(case.as_bytes())?;
        input.flush()?;
        self.answer.clear();
        loop {
            let before = self.answer.len();
            if self.output.read_line(&mut self.answer)? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended"));
            }
            let Some(status) = self.answer[before..].strip_prefix(STATUS) else { continue };
            let status = status.trim().parse().map_err(io::Error::other)?;
            return Ok((status, &self.answer[..before]));
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // With its input it ends; what it still says is not read.
        self.input = None;
        let _ = io::copy(&mut self.output.by_ref(), &mut io::sink());
        let _ = self.child.wait();
    }
}

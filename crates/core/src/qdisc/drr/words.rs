//! The words of `drr`. Linux's has none, and gets its classes one by one (`tc class add … drr
//! quantum N`); here they stand in the same line: `drr class 1:10 quantum 1514 pfifo limit 30 class
//! 1:20 weight 2`. What follows a class up to the next is its own, its discipline last. Without
//! classes the words are ours: `drr srchost buffer 20 savings 15kb`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::{Class, Drr, Params, User, DEFAULT_BUFFER, DEFAULT_QUEUES};
use crate::qdisc::{parse_child, Config, ConfigError, Described, Device, Managed, Names};
use crate::tc::units::{count, hexadecimal, packet_count, shown_size, shown_time, ValueError};
use crate::tc::{
    savings, units, Digits, Json, Keyword, Keywords, ParseError, Problem, Value, Words,
};
use crate::time::Span;

const QUANTUM: Value<u32> = Value::new("a SIZE above zero, such as 1514", quantum)
    .within("a SIZE above zero and less than 4gb");
const CLASS: Value<u32> = Value::new("MAJOR:MINOR, both hexadecimal, such as 1:10", class_id);
const BUFFER: Value<u32> = Value::new("a number of packets, 1 to 4294967295", buffer);
const TIME: Value<Span> = Value::new("a TIME such as 24ms", units::time);
const QUEUES: Value<u32> = Value::new("a power of two from 8 to 65536", queues);
const WEIGHT: (i64, i64) = (1, 1 << 20);
const WEIGHT_RANGE: &str = "a whole number, 1 to 1048576";

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("flow", "", "a queue for each flow (default)"),
        Keyword::new("srchost", "", "a queue for each source host"),
        Keyword::new("dsthost", "", "a queue for each destination host"),
        Keyword::new("queues", "N", "queues, a power of two, default 1024"),
        Keyword::new("buffer", "N", "when so many wait the longest queue loses, default 1000"),
        Keyword::new("max-age", "TIME", "drop what has waited longer, when its turn comes"),
    ],
    &[
        Keyword::new("quantum", "SIZE", "bytes earned in a turn, default one full frame"),
        savings::KEYWORD,
        Keyword::new("class", "MAJOR:MINOR", "a class instead; its words and discipline follow"),
        Keyword::new("weight", "N", "quanta that the class earns, default 1"),
    ],
];

impl Described for Params {
    const NAMES: Names = &[("drr", "deficit round robin between flows, users or classes")];
    const KEYWORDS: Keywords = KEYWORDS;
    type Stats = ();

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params::default();
        let mut ours = None;
        let end = words.until("class");
        while let Some(word) = words.next() {
            match word {
                "flow" => params.user = User::Flow,
                "srchost" => params.user = User::SrcHost,
                "dsthost" => params.user = User::DstHost,
                "queues" => params.queues = words.take(&QUEUES)?,
                "buffer" => params.buffer = words.take(&BUFFER)?,
                "max-age" => params.max_age = Some(words.take(&TIME)?),
                "quantum" => {
                    params.quantum = Some(words.take(&QUANTUM)?);
                    continue;
                }
                "savings" => {
                    params.savings = Some(savings::take(words)?);
                    continue;
                }
                _ => return Err(words.unknown()),
            }
            ours = Some(words.error_here(Problem::OutOfRange {
                keyword: "drr",
                range: "this word or classes, not both",
            }));
        }
        words.until_end(end);
        while words.next().is_some() {
            params.classes.push(class(words)?);
        }
        match ours {
            Some(error) if !params.classes.is_empty() => Err(error),
            _ => Ok(params),
        }
    }

    /// As text, `tc` shows classes on lines of their own.
    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        match self.user {
            User::Flow => {}
            User::SrcHost => out.write_str("srchost ")?,
            User::DstHost => out.write_str("dsthost ")?,
        }
        if self.queues != DEFAULT_QUEUES {
            write!(out, "queues {} ", self.queues)?;
        }
        if self.buffer != DEFAULT_BUFFER {
            write!(out, "buffer {}p ", self.buffer)?;
        }
        if let Some(age) = self.max_age {
            write!(out, "max-age {} ", shown_time(age, digits))?;
        }
        write_quantum(self.quantum, digits, out)?;
        savings::write(self.savings, digits, out)?;
        for class in self.classes.iter().filter(|_| digits == Digits::Exact) {
            write!(out, "class {:x}:{:x} ", class.id >> 16, class.id & 0xffff)?;
            write_quantum(class.quantum, digits, out)?;
            if class.weight != 1 {
                write!(out, "weight {} ", class.weight)?;
            }
            if let Some(child) = &class.child {
                write!(out, "{child} ")?;
            }
        }
        Ok(())
    }

    /// Ages in nanoseconds, as the name says.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        match self.user {
            User::Flow => {}
            User::SrcHost => json.key("user")?.string("srchost")?,
            User::DstHost => json.key("user")?.string("dsthost")?,
        }
        if self.queues != DEFAULT_QUEUES {
            json.key("queues")?.number(self.queues.into())?;
        }
        if self.buffer != DEFAULT_BUFFER {
            json.key("buffer")?.number(self.buffer.into())?;
        }
        if let Some(age) = self.max_age {
            json.key("max_age_ns")?.number(age.0)?;
        }
        if let Some(quantum) = self.quantum {
            json.key("quantum")?.number(quantum.into())?;
        }
        savings::write_json(self.savings, json)
    }

    fn is_surely(&self, _: &Params) -> bool {
        false
    }

    fn children(&self) -> Vec<(u32, &Config)> {
        let classes = self.classes.iter();
        classes.filter_map(|class| Some((class.id, class.child.as_deref()?))).collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Config> {
        self.classes.iter_mut().filter_map(|class| class.child.as_deref_mut()).collect()
    }

    fn shows_classes_apart(&self) -> bool {
        !self.classes.is_empty()
    }

    fn own_host_prefix(&self) -> Option<u8> {
        (self.user != User::Flow).then_some(128)
    }

    fn own_tells_flows(&self) -> bool {
        self.classes.is_empty()
    }

    fn drops_all(&self, _: &Device) -> Option<String> {
        let reason = "`drr` drops packets whose priority names none of its classes";
        (!self.classes.is_empty()).then(|| String::from(reason))
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Drr::new(self, device)?))
    }
}

/// Reads what follows `class`.
fn class(words: &mut Words<'_>) -> Result<Class, ParseError> {
    let id = words.take(&CLASS)?;
    let mut class = Class { id, quantum: None, weight: 1, child: None };
    let end = words.until("class");
    while let Some(word) = words.next() {
        match word {
            "quantum" => class.quantum = Some(words.take(&QUANTUM)?),
            "weight" => class.weight = words.number(WEIGHT, WEIGHT_RANGE)? as u32,
            _ => match parse_child(words, word)? {
                Some(child) => class.child = Some(Box::new(child)),
                None => return Err(words.unknown()),
            },
        }
    }
    words.until_end(end);
    Ok(class)
}

fn queues(word: &str) -> Result<u32, ValueError> {
    let queues = count(word)?;
    match (8..=65_536).contains(&queues) && queues.is_power_of_two() {
        true => Ok(queues),
        false => Err(ValueError::TooLarge),
    }
}

fn quantum(word: &str) -> Result<u32, ValueError> {
    match units::size(word)? {
        0 => Err(ValueError::TooLarge),
        bytes => Ok(bytes),
    }
}

fn buffer(word: &str) -> Result<u32, ValueError> {
    match packet_count(word)? {
        0 => Err(ValueError::TooLarge),
        packets => Ok(packets),
    }
}

/// Reads `1:10`, both numbers hexadecimal.
fn class_id(word: &str) -> Result<u32, ValueError> {
    let (major, minor) = word.split_once(':').ok_or(ValueError::Invalid)?;
    match (hexadecimal(major)?, hexadecimal(minor)?) {
        (_, 0) => Err(ValueError::TooLarge),
        (major, minor) => Ok(u32::from(major) << 16 | u32::from(minor)),
    }
}

fn write_quantum(quantum: Option<u32>, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    let Some(quantum) = quantum else { return Ok(()) };
    write!(out, "quantum {} ", shown_size(quantum.into(), digits))
}

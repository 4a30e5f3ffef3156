//! DNS messages (RFC 1035): a question, and the addresses or names that answer it.
//!
//! Any bytes give a message or none. Pointers of compressed names lead anywhere, so parts of a name
//! are counted; of the records only the first [`RECORDS`] are read.

use std::net::IpAddr;

/// Records of an answer that are read; a whole one over UDP has hardly more.
const RECORDS: u16 = 128;
/// Aliases that are followed, as resolvers do.
const ALIASES: usize = 16;
/// Longest name, dots included.
const LONGEST: usize = 253;
/// Labels and pointers of one name.
const PARTS: usize = 256;
/// Header before the question.
const HEADER: usize = 12;

const ANSWER: u16 = 0x8000;
/// Any of these: not a plain query, or not answered.
const OPCODE_OR_ERROR: u16 = 0x780f;
const ADDRESS: u16 = 1;
const ALIAS: u16 = 5;
/// The type of a name that stands for an address.
pub(crate) const POINTER: u16 = 12;
const ADDRESS_V6: u16 = 28;
const INTERNET: u16 = 1;
/// All of a class but the bit that is multicast DNS's own (RFC 6762, section 18).
const CLASS: u16 = 0x7fff;

/// A message with one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: u16,
    pub(crate) question: Question,
    /// None in a query.
    pub(crate) answer: Option<Answer>,
}

/// The name and the type that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// In lower case, without a final dot.
    pub(crate) name: String,
    pub(crate) kind: u16,
}

/// Addresses of a name, or names of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Names that it stands for, by aliases.
    pub(crate) aliases: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    /// Names that pointers lead to.
    pub(crate) names: Vec<String>,
    /// Seconds for which all of that holds.
    pub(crate) ttl: u32,
}

/// The message that `bytes` are, if they are one of DNS with one question of the Internet's class.
pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
    let word = |at: usize| number(bytes, at);
    let (id, flags, answers) = (word(0)?, word(2)?, word(6)?);
    if flags & OPCODE_OR_ERROR != 0 || word(4)? != 1 {
        return None;
    }
    let (name, at) = name(bytes, HEADER)?;
    let (kind, class) = (word(at)?, word(at + 2)? & CLASS);
    let question = Question { name, kind };
    let answer = (flags & ANSWER != 0).then(|| answer(bytes, at + 4, answers, &question.name));
    (class == INTERNET).then_some(Message { id, question, answer })
}

/// Statements about `asked` in the records from `at` on.
fn answer(bytes: &[u8], mut at: usize, records: u16, asked: &str) -> Answer {
    let mut aliases = Vec::new();
    let mut addresses = Vec::new();
    let mut names = Vec::new();
    for _ in 0..records.min(RECORDS) {
        let Some(record) = record(bytes, at) else { break };
        at = record.end;
        let data = &bytes[record.data..record.end];
        match record.kind {
            ALIAS => {
                let target = name(bytes, record.data).map(|(target, _)| target);
                aliases.extend(target.map(|target| (record.owner, target, record.ttl)));
            }
            POINTER => {
                let target = name(bytes, record.data).map(|(target, _)| target);
                names.extend(target.map(|target| (record.owner, target, record.ttl)));
            }
            ADDRESS => {
                let address = <[u8; 4]>::try_from(data).map(IpAddr::from);
                addresses.extend(address.map(|address| (record.owner, address, record.ttl)));
            }
            ADDRESS_V6 => {
                let address = <[u8; 16]>::try_from(data).map(IpAddr::from);
                addresses.extend(address.map(|address| (record.owner, address, record.ttl)));
            }
            _ => {}
        }
    }
    let mut answer = Answer { ttl: u32::MAX, ..Answer::default() };
    let mut last = asked;
    while answer.aliases.len() < ALIASES {
        let Some((_, target, ttl)) = aliases.iter().find(|(owner, ..)| owner == last) else {
            break;
        };
        answer.ttl = answer.ttl.min(*ttl);
        answer.aliases.push(target.clone());
        last = target;
    }
    for (_, address, ttl) in addresses.iter().filter(|(owner, ..)| owner == last) {
        answer.ttl = answer.ttl.min(*ttl);
        answer.addresses.push(*address);
    }
    for (_, name, ttl) in names.iter().filter(|(owner, ..)| owner == last) {
        answer.ttl = answer.ttl.min(*ttl);
        answer.names.push(name.clone());
    }
    answer
}

struct Record {
    owner: String,
    kind: u16,
    ttl: u32,
    /// Offset of its data in the message; `end` is that of their end.
    data: usize,
    end: usize,
}

fn record(bytes: &[u8], at: usize) -> Option<Record> {
    let (owner, at) = name(bytes, at)?;
    let [k0, k1, c0, c1, t0, t1, t2, t3, l0, l1] = *bytes.get(at..)?.first_chunk()?;
    let (data, length) = (at + 10, usize::from(u16::from_be_bytes([l0, l1])));
    let kind = match u16::from_be_bytes([c0, c1]) & CLASS {
        INTERNET => u16::from_be_bytes([k0, k1]),
        _ => 0,
    };
    // One with the highest bit is none at all (RFC 2181, section 8).
    let ttl = u32::from_be_bytes([t0, t1, t2, t3]);
    let ttl = if ttl >> 31 == 0 { ttl } else { 0 };
    (data + length <= bytes.len()).then_some(Record { owner, kind, ttl, data, end: data + length })
}

/// The name at `at`, in lower case, and where it ends there. None if a label has what no host
/// name has.
fn name(bytes: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut end = None;
    for _ in 0..PARTS {
        let length = *bytes.get(at)?;
        match length {
            0 => return Some((text, end.unwrap_or(at + 1))),
            1..=63 => {
                let label = bytes.get(at + 1..)?.get(..usize::from(length))?;
                if !label.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'.') {
                    return None;
                }
                if !text.is_empty() {
                    text.push('.');
                }
                text.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
                at += 1 + usize::from(length);
            }
            0xc0.. => {
                end.get_or_insert(at + 2);
                at = usize::from(number(bytes, at)? & 0x3fff);
            }
            _ => return None,
        }
        if text.len() > LONGEST {
            return None;
        }
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn labels(name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes
    }

    fn header(flags: u16, answers: u16) -> Vec<u8> {
        [0x1234, flags, 1, answers, 0, 0].map(u16::to_be_bytes).concat()
    }

    fn question(name: &str, kind: u16) -> Vec<u8> {
        [labels(name), kind.to_be_bytes().to_vec(), vec![0, 1]].concat()
    }

    fn record(owner: &[u8], kind: u8, ttl: u32, data: &[u8]) -> Vec<u8> {
        let fixed = [&[0, kind, 0, 1][..], &ttl.to_be_bytes(), &[0, data.len() as u8]].concat();
        [owner, &fixed[..], data].concat()
    }

    /// An answer to `www.Example.org` by an alias, whose name is compressed.
    fn aliased() -> Vec<u8> {
        let alias = [&[3][..], b"cdn", &[0xc0, 16]].concat();
        [
            header(0x8180, 3),
            question("www.Example.org", 1),
            record(&[0xc0, 12], 5, 300, &alias),
            record(&labels("cdn.example.org"), 1, 60, &[192, 0, 2, 7]),
            record(&labels("other.example.org"), 1, 5, &[192, 0, 2, 8]),
        ]
        .concat()
    }

    #[test]
    fn aliases_are_followed_and_the_least_time_counts() {
        let message = read(&aliased()).unwrap();
        assert_eq!((message.id, &*message.question.name), (0x1234, "www.example.org"));
        let answer = message.answer.unwrap();
        assert_eq!(answer.aliases, ["cdn.example.org"]);
        assert_eq!(answer.addresses, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(answer.ttl, 60);
    }

    #[test]
    fn queries_errors_and_other_classes_have_no_addresses() {
        let query = [header(0x0100, 0), question("a.example", 28)].concat();
        assert_eq!(read(&query).unwrap().answer, None);
        let mut refused = aliased();
        refused[3] |= 5;
        assert_eq!(read(&refused), None);
        let mut chaos = aliased();
        chaos[32] = 3;
        assert_eq!(read(&chaos), None);
    }

    #[test]
    fn pointers_in_a_circle_and_any_bytes_end() {
        let circle = [header(0x8180, 1), question("a", 1), vec![0xc0, 19, 0, 1]].concat();
        assert_eq!(read(&circle).unwrap().answer.unwrap().addresses, [] as [IpAddr; 0]);
        let own = [header(0x8180, 0), vec![1, b'a', 0xc0, 12, 0, 1, 0, 1]].concat();
        assert_eq!(read(&own), None);
        let whole = aliased();
        for length in 0..whole.len() {
            let _ = read(&whole[..length]);
        }
        let mut random = simnel_core::random::Random::new(53);
        for _ in 0..50_000 {
            let mut bytes = whole.clone();
            for _ in 0..random.below(6) {
                let at = random.below(bytes.len() as u32) as usize;
                bytes[at] = random.u32() as u8;
            }
            let _ = read(&bytes);
        }
    }

    #[test]
    fn names_are_as_long_as_a_hosts_may_be() {
        let name = |last: usize| {
            ["a".repeat(63), "b".repeat(63), "c".repeat(63)].join(".") + "." + &"d".repeat(last)
        };
        let asked = |name: &str| read(&[header(0x0100, 0), question(name, 1)].concat());
        // 255 bytes with the lengths of the labels (RFC 1035, section 2.3.4).
        assert_eq!(asked(&name(61)).map(|message| message.question.name), Some(name(61)));
        assert_eq!(asked(&name(62)), None);
        for odd in ["a b.example", "a\u{7f}.example", "a\0.example"] {
            assert_eq!(asked(odd), None, "{odd:?}");
        }
        let dotted = [header(0x0100, 0), vec![3, b'a', b'.', b'b', 0, 0, 1, 0, 1]].concat();
        assert_eq!(read(&dotted), None);
    }

    #[test]
    fn no_more_aliases_are_followed_than_resolvers_follow() {
        let link = |n: usize| {
            record(&labels(&format!("n{n}.example")), 5, 9, &labels(&format!("n{}.example", n + 1)))
        };
        let links: Vec<u8> = (0..20).rev().flat_map(link).collect();
        let bytes = [header(0x8180, 20), question("n0.example", 1), links].concat();
        let answer = read(&bytes).unwrap().answer.unwrap();
        assert_eq!(answer.aliases.len(), 16);
        assert_eq!(answer.aliases[15], "n16.example");
    }

    #[test]
    fn a_time_with_the_highest_bit_is_none_at_all() {
        let ttl = |ttl| {
            let record = record(&[0xc0, 12], 1, ttl, &[192, 0, 2, 7]);
            let bytes = [header(0x8180, 1), question("a.example", 1), record].concat();
            read(&bytes).unwrap().answer.unwrap().ttl
        };
        assert_eq!([ttl(0x7fff_ffff), ttl(0x8000_0000), ttl(u32::MAX)], [0x7fff_ffff, 0, 0]);
    }

    #[test]
    fn addresses_of_both_versions_are_read_if_they_have_their_length() {
        let [v4, v6] = ["192.0.2.7", "2001:db8::7"].map(|text| text.parse::<IpAddr>().unwrap());
        let IpAddr::V6(bytes) = v6 else { unreachable!() };
        let records = [
            record(&[0xc0, 12], 28, 9, &bytes.octets()),
            record(&[0xc0, 12], 1, 9, &[192, 0, 2, 7]),
            record(&[0xc0, 12], 28, 9, &[192, 0, 2, 7]),
            record(&[0xc0, 12], 1, 9, &bytes.octets()),
        ];
        let bytes = [header(0x8180, 4), question("a.example", 28), records.concat()].concat();
        assert_eq!(read(&bytes).unwrap().answer.unwrap().addresses, [v6, v4]);
    }
}

//! Trees of classes: an htb of several or a drr, and the filters that choose among them by mark.
//!
//! A tree becomes the words of the core's own htb or drr. Its filters become a discipline before
//! it, which says of each packet the class that they choose.

use simnel_core::qdisc::{
    self, Backlog, Config, ConfigError, Device, Managed, PacketOwner, Qdisc, Snapshot,
};
use simnel_core::{Packet, Time};

/// Code points.
const MARKS: usize = 64;
/// Child of a class that has been given nothing: a FIFO of the device's length.
pub(super) const DEFAULT_LEAF: &str = "pfifo limit 1000";

/// The tree of a port.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Its classes and what is below them, in the core's words.
    pub words: String,
    /// Handle of the discipline whose classes they are, as a class of it has it.
    handle: u32,
    /// The class of each code point; 0 where no filter matches.
    classes: [u32; MARKS],
    /// Its commands.
    lines: Vec<usize>,
}

/// A command about a port.
struct Entry<'a> {
    number: usize,
    object: &'a str,
    parent: &'a str,
    /// The handle, or the class's name.
    id: &'a str,
    rest: &'a [&'a str],
}

impl Tree {
    /// The tree that the commands which name `device` make, if they make one.
    pub fn read(lines: &[String], device: &str) -> Result<Option<Tree>, String> {
        let split: Vec<Vec<&str>> =
            lines.iter().map(|line| line.split_whitespace().collect()).collect();
        let of = |(number, words): (usize, &'_ Vec<&'_ str>)| {
            words.windows(2).any(|pair| pair == ["dev", device]).then_some(number)
        };
        let numbers: Vec<usize> = split.iter().enumerate().filter_map(of).collect();
        let entries: Vec<Entry<'_>> =
            numbers.iter().map(|n| entry(*n, &split[*n], device)).collect();
        let named = |kind: &str| {
            let is =
                |entry: &&Entry<'_>| entry.object == "class" && entry.rest.first() == Some(&kind);
            entries.iter().filter(is).collect::<Vec<_>>()
        };
        let (htb, drr) = (named("htb"), named("drr"));
        let Some(first) = drr.first().or((htb.len() > 1).then(|| &htb[0])) else {
            return Ok(None);
        };
        let (major, _) = first.id.split_once(':').ok_or("a class needs a name")?;
        let top = format!("{major}:");
        let root = entries.iter().find(|entry| entry.object == "qdisc" && entry.id == top);
        let root = root.ok_or_else(|| format!("no discipline `{top}`"))?;
        let mut tree = Tree {
            words: root.rest.join(" "),
            handle: class_of(&format!("{top}0"))?,
            classes: [0; MARKS],
            lines: vec![root.number],
        };
        let is_ours = |entry: &&Entry<'_>| entry.object == "class" && entry.id.starts_with(&top);
        for class in entries.iter().filter(is_ours) {
            tree.add(class, &top, &entries)?;
        }
        for filter in entries.iter().filter(|entry| entry.object == "filter") {
            tree.choose(filter.rest)?;
            tree.lines.push(filter.number);
        }
        Ok(Some(tree))
    }

    /// Takes in a class and the discipline below it.
    fn add(&mut self, class: &Entry<'_>, top: &str, entries: &[Entry<'_>]) -> Result<(), String> {
        self.lines.push(class.number);
        self.words.push_str(&format!(" class {}", class.id));
        if class.parent != top {
            self.words.push_str(&format!(" parent {}", class.parent));
        }
        let settings = class.rest.get(1..).unwrap_or_default();
        let below = entries.iter().filter(|entry| entry.parent == class.id);
        let (disciplines, classes): (Vec<_>, Vec<_>) = below.partition(|e| e.object == "qdisc");
        let leaf = match (disciplines.first(), classes.is_empty()) {
            (Some(leaf), true) => {
                self.lines.push(leaf.number);
                leaf.rest.join(" ")
            }
            (None, true) => DEFAULT_LEAF.into(),
            (None, false) => String::new(),
            (Some(_), false) => return Err(format!("`{}` has both classes and a leaf", class.id)),
        };
        for word in settings.iter().copied().chain(leaf.split_whitespace()) {
            self.words.push(' ');
            self.words.push_str(word);
        }
        Ok(())
    }

    /// Takes in a filter; the first that matches counts.
    fn choose(&mut self, words: &[&str]) -> Result<(), String> {
        let ["protocol", "ip", "u32", "match", "ip", "tos", tos, "0xfc", "flowid", class] = words
        else {
            return Err(format!("a filter that is not simulated: `{}`", words.join(" ")));
        };
        let tos = tos.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let mark = tos.ok_or("a filter's `tos` is a hexadecimal number")? >> 2;
        let chosen = &mut self.classes[usize::from(mark)];
        if *chosen == 0 {
            *chosen = class_of(class)?;
        }
        Ok(())
    }

    /// True if the tree has what the command with this number says.
    pub fn has(&self, number: usize) -> bool {
        self.lines.contains(&number)
    }

    /// The discipline, with the filters before it.
    pub fn build(
        &self,
        config: &Config,
        device: &Device,
    ) -> Result<Box<dyn Managed + Send>, ConfigError> {
        let device = Device { handle: self.handle, ..*device };
        let below = qdisc::build(config, &device)?;
        Ok(Box::new(Filtered { below, classes: self.classes }))
    }
}

fn entry<'a>(number: usize, words: &'a [&'a str], device: &str) -> Entry<'a> {
    let after = |keys: &[&str]| {
        let pair = words.windows(2).find(|pair| keys.contains(&pair[0]));
        pair.map_or("", |pair| pair[1])
    };
    let objects = ["qdisc", "class", "filter"];
    let object = words.iter().find(|word| objects.contains(word)).copied().unwrap_or_default();
    let at = words.windows(2).position(|pair| pair == ["dev", device]).unwrap_or_default();
    let rest = skip_place(&words[at + 2..]);
    Entry { number, object, parent: after(&["parent"]), id: after(&["handle", "classid"]), rest }
}

/// A class's name as `tc` counts it.
fn class_of(name: &str) -> Result<u32, String> {
    let number = |digits| u16::from_str_radix(digits, 16).map(u32::from);
    let parts = name.split_once(':').map(|(major, minor)| (number(major), number(minor)));
    match parts {
        Some((Ok(major), Ok(minor))) => Ok(major << 16 | minor),
        _ => Err(format!("`{name}` is no class")),
    }
}

/// A discipline behind filters.
struct Filtered {
    below: Box<dyn Managed + Send>,
    classes: [u32; MARKS],
}

impl Qdisc for Filtered {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let mut packet = *packet;
        packet.class = self.classes[usize::from(packet.dscp()) % MARKS];
        self.below.enqueue(&packet, now, owner);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.below.dequeue(now, owner)
    }

    fn next_event(&self) -> Option<Time> {
        self.below.next_event()
    }

    fn backlog(&self) -> Backlog {
        self.below.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.below.reset(owner);
    }
}

impl Managed for Filtered {
    fn snapshot(&self) -> Snapshot {
        self.below.snapshot()
    }

    fn config(&self) -> Config {
        self.below.config()
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.below.prepare(config, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        self.below.adopt(spare, now, owner);
    }
}

/// Leaves out where the discipline stands: `root`, `parent X`, `handle X`, `classid X`.
pub(super) fn skip_place<'a>(mut words: &'a [&'a str]) -> &'a [&'a str] {
    loop {
        words = match words {
            ["root" | "add" | "replace", rest @ ..] => rest,
            ["parent" | "handle" | "classid", _, rest @ ..] => rest,
            _ => return words,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(lines: &[&str]) -> Result<Option<Tree>, String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_string()).collect();
        Tree::read(&lines, "r1")
    }

    #[test]
    fn classes_are_said_in_one_line() {
        let tree = tree(&[
            "tc qdisc add dev r0 root codel",
            "tc qdisc add dev r1 root handle 1: htb default 20",
            "tc class add dev r1 parent 1: classid 1:1 htb rate 10mbit",
            "tc class add dev r1 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0",
            "tc qdisc add dev r1 parent 1:10 handle 10: pfifo limit 50",
            "tc filter add dev r1 parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10",
            "tc class add dev r1 parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit prio 1",
        ])
        .expect("commands")
        .expect("a tree");
        let expected = "htb default 20 class 1:1 rate 10mbit class 1:10 parent 1:1 rate 2mbit \
                        ceil 10mbit prio 0 pfifo limit 50 class 1:20 parent 1:1 rate 8mbit ceil \
                        10mbit prio 1 pfifo limit 1000";
        assert_eq!(tree.words, expected);
        assert_eq!((tree.handle, tree.classes[46], tree.classes[0]), (0x1_0000, 0x1_0010, 0));
        assert_eq!((0..7).map(|line| tree.has(line)).collect::<Vec<_>>()[..2], [false, true]);
    }

    /// One class of htb is the line's bucket; a drr stands below it.
    #[test]
    fn a_drr_is_a_tree_and_one_class_of_htb_is_none() {
        let htb = [
            "tc qdisc add dev r1 root handle 1: htb default 1",
            "tc class add dev r1 parent 1: classid 1:1 htb rate 10mbit",
        ];
        assert!(tree(&htb).expect("commands").is_none());
        let drr = [
            "tc qdisc add dev r1 parent 1:1 handle 2: drr",
            "tc class add dev r1 parent 2: classid 2:1 drr quantum 3028",
            "tc qdisc add dev r1 parent 2:1 handle 10: fq_codel",
            "tc filter add dev r1 parent 2: protocol ip u32 match ip tos 0x00 0xfc flowid 2:1",
        ];
        let both = [&htb[..], &drr[..]].concat();
        let found = tree(&both).expect("commands").expect("a tree");
        assert_eq!(found.words, "drr class 2:1 quantum 3028 fq_codel");
        assert_eq!((found.has(1), found.has(2), found.classes[0]), (false, true, 0x2_0001));
        let strange =
            "tc filter add dev r1 parent 2: protocol ip u32 match ip dport 80 0xffff flowid 2:1";
        assert!(tree(&[&drr[..], &[strange]].concat()).is_err());
    }
}

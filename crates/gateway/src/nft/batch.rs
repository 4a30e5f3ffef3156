//! A transaction of nftables, message by message, and the expressions of its rules.

use super::lists::{name, Key, List, Lists};
use super::refused::Refused;
use super::table::Family;
use crate::lanes::Spread;
use crate::netlink::{Socket, Writer, BEGIN};
use crate::rules::forms::{merged, Interval};

const SUBSYSTEM: i32 = libc::NFNL_SUBSYS_NFTABLES << 8;
/// NFT_TABLE_F_OWNER.
const OWNER: i32 = 2;
/// NFT_SET_CONSTANT and NFT_SET_INTERVAL.
const LISTED: i32 = 2 | 4;
/// NFT_SET_ELEM_INTERVAL_END.
const END: i32 = 1;

/// NFQUEUEs with consecutive numbers, over which one rule spreads packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queues {
    pub(crate) first: u16,
    pub(crate) count: u16,
    pub(crate) spread: Spread,
}

impl Queues {
    /// One queue.
    pub(crate) const fn one(first: u16) -> Queues {
        Queues { first, count: 1, spread: Spread::Address }
    }
}

/// One nftables transaction. Message `n` has the sequence number `n`, so that errors can be placed.
pub(super) struct Batch<'a> {
    pub(super) writer: Writer,
    sequence: u32,
    /// Those that rules refer to. They must have been made before.
    pub(super) lists: Lists,
    family: Family,
    pub(super) table: &'a str,
}

impl<'a> Batch<'a> {
    pub(super) fn new(family: Family, table: &'a str) -> Batch<'a> {
        let mut writer = Writer::default();
        let subsystem = libc::NFNL_SUBSYS_NFTABLES as u16;
        writer.begin(libc::NFNL_MSG_BATCH_BEGIN, 0, BEGIN, 0, subsystem);
        writer.finish();
        Batch { writer, sequence: 0, lists: Lists::default(), family, table }
    }

    pub(super) fn end(mut self) -> Writer {
        let subsystem = libc::NFNL_SUBSYS_NFTABLES as u16;
        self.writer.begin(libc::NFNL_MSG_BATCH_END, 0, self.sequence + 1, 0, subsystem);
        self.writer.finish();
        self.writer
    }

    pub(super) fn commit(mut self, socket: &Socket) -> Result<(), Refused> {
        let last = self.sequence;
        if last == BEGIN {
            return Ok(());
        }
        self.writer.ask();
        let writer = self.end();
        socket.transact(&writer, last..=last).map_err(|failure| Refused::of(failure, &writer))
    }

    /// Lets the kernel judge the transaction, which does not end and so changes nothing.
    pub(super) fn judge(mut self, socket: &Socket) -> Result<(), Refused> {
        self.writer.ask();
        let writer = &self.writer;
        let result = socket.transact(writer, self.sequence..=self.sequence);
        result.map_err(|failure| Refused::of(failure, writer))
    }

    /// Begins a message. Of errors the kernel tells unasked.
    pub(super) fn begin(&mut self, kind: i32, flags: i32) {
        self.sequence += 1;
        let family = match self.family {
            Family::Routed => libc::NFPROTO_INET,
            Family::Bridged => libc::NFPROTO_BRIDGE,
        };
        self.writer.begin(SUBSYSTEM | kind, flags, self.sequence, family as u8, 0);
    }

    pub(super) fn table(&mut self) {
        self.begin(libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        self.writer.string(1, self.table);
        self.writer.number(2, OWNER);
        self.writer.finish();
    }

    pub(super) fn chain(&mut self, name: &str, hook: i32, priority: i32) {
        self.begin(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(3, name);
        let open = self.writer.start(4);
        self.writer.number(1, hook);
        self.writer.number(2, priority);
        self.writer.end(open);
        self.writer.string(7, "filter");
        self.writer.finish();
    }

    pub(super) fn delete_table(&mut self) {
        self.begin(libc::NFT_MSG_DELTABLE, 0);
        self.writer.string(1, self.table);
        self.writer.finish();
    }

    pub(super) fn flush_chain(&mut self, chain: &str) {
        self.begin(libc::NFT_MSG_DELRULE, 0);
        self.writer.string(1, self.table);
        self.writer.string(2, chain);
        self.writer.finish();
    }

    /// A chain that no hook leads to: others jump to it.
    pub(super) fn branch(&mut self, name: &str) {
        self.begin(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(3, name);
        self.writer.finish();
    }

    /// Begins a set.
    pub(super) fn begin_set(&mut self, name: &str, key: Key, flags: i32) {
        self.begin(libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(2, name);
        self.writer.number(3, flags);
        self.writer.number(4, key.kind);
        self.writer.number(5, key.length as i32);
        self.writer.number(10, self.sequence as i32);
    }

    /// A set whose elements rules add; one that is there stays as it is.
    pub(super) fn set(&mut self, name: &str, key: Key, flags: i32, ms: u64, size: i32) {
        self.begin_set(name, key, flags);
        let open = self.writer.start(9);
        self.writer.number(1, size);
        self.writer.end(open);
        self.writer.attribute(11, &ms.to_be_bytes());
        self.writer.finish();
    }

    /// Keeps `elements` in `set` for so many ms each. Linux before 6.12 leaves the time of one that
    /// is there as it is, so each goes and comes again.
    pub(super) fn elements(&mut self, set: &str, elements: &[(Vec<u8>, u64)]) {
        let (new, delete) = (libc::NFT_MSG_NEWSETELEM, libc::NFT_MSG_DELSETELEM);
        for kind in [new, delete, new] {
            self.begin(kind, if kind == new { libc::NLM_F_CREATE } else { 0 });
            self.writer.string(1, self.table);
            self.writer.string(2, set);
            let list = self.writer.start(3);
            for (key, ms) in elements {
                let element = self.writer.start(1); // NFTA_LIST_ELEM
                let open = self.writer.start(1);
                self.writer.attribute(1, key);
                self.writer.end(open);
                if kind == new {
                    self.writer.attribute(4, &ms.to_be_bytes());
                }
                self.writer.end(element);
            }
            self.writer.end(list);
            self.writer.finish();
        }
    }

    /// Makes those of `lists` that are needed and not there.
    pub(super) fn make_lists(&mut self, lists: &Lists) {
        lists.missing().for_each(|(list, number)| self.make_list(&name(*number), list));
    }

    /// Removes those of `lists` that are there and not needed.
    pub(super) fn remove_lists(&mut self, lists: &Lists) {
        for number in lists.left_over() {
            self.begin(libc::NFT_MSG_DELSET, 0);
            self.writer.string(1, self.table);
            self.writer.string(2, &name(*number));
            self.writer.finish();
        }
    }

    fn make_list(&mut self, name: &str, list: &List) {
        self.begin_set(name, list.key, LISTED);
        self.writer.finish();
        self.begin(libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(2, name);
        let all = self.writer.start(3);
        for &(first, last) in &list.intervals {
            // The greatest value has none behind it.
            let end = last.checked_add(1).filter(|end| list.key.holds(*end));
            for (value, flags) in [(Some(first), 0), (end, END)] {
                let Some(value) = value else { continue };
                let element = self.writer.start(1); // NFTA_LIST_ELEM
                let key = self.writer.start(1);
                self.writer.attribute(1, &list.key.bytes(value));
                self.writer.end(key);
                self.writer.number(3, flags);
                self.writer.end(element);
            }
        }
        self.writer.end(all);
        self.writer.finish();
    }

    pub(super) fn rule(&mut self, chain: &str, expressions: impl FnOnce(&mut Expressions<'_>)) {
        self.rule_called(chain, "", expressions);
    }

    /// A rule with a comment, as nft shows it.
    pub(super) fn rule_called(
        &mut self,
        chain: &str,
        comment: &str,
        expressions: impl FnOnce(&mut Expressions<'_>),
    ) {
        let mut rule = Expressions { writer: Writer::default(), lists: &mut self.lists };
        expressions(&mut rule);
        let rule = rule.writer;
        self.begin(libc::NFT_MSG_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND);
        self.writer.string(1, self.table);
        self.writer.string(2, chain);
        self.writer.attribute(4 | libc::NLA_F_NESTED, rule.bytes());
        if !comment.is_empty() {
            // nft's own form: a type (0, a comment), a length, a string with its final zero.
            let mut bytes = vec![0, comment.len() as u8 + 1];
            bytes.extend(comment.as_bytes());
            bytes.push(0);
            self.writer.attribute(7, &bytes);
        }
        self.writer.finish();
    }
}

/// The expressions of one rule, their attributes by their numbers in linux/netfilter/nf_tables.h.
/// All work on register 1, NFT_REG_1.
pub(super) struct Expressions<'a> {
    writer: Writer,
    lists: &'a mut Lists,
}

impl Expressions<'_> {
    fn expression(&mut self, name: &str, data: impl FnOnce(&mut Writer)) {
        let element = self.writer.start(1); // NFTA_LIST_ELEM
        self.writer.string(1, name);
        let open = self.writer.start(2);
        data(&mut self.writer);
        self.writer.end(open);
        self.writer.end(element);
    }

    pub(super) fn meta(&mut self, key: i32) {
        self.expression("meta", |w| {
            w.number(1, 1);
            w.number(2, key);
        });
    }

    pub(super) fn route(&mut self, key: i32) {
        self.expression("rt", |w| {
            w.number(1, 1);
            w.number(2, key);
        });
    }

    fn value(writer: &mut Writer, kind: i32, bytes: &[u8]) {
        let open = writer.start(kind);
        writer.attribute(1, bytes);
        writer.end(open);
    }

    pub(super) fn compare(&mut self, operator: i32, bytes: &[u8]) {
        self.expression("cmp", |w| {
            w.number(1, 1);
            w.number(2, operator);
            Self::value(w, 3, bytes);
        });
    }

    pub(super) fn bitwise(&mut self, mask: &[u8], xor: &[u8]) {
        self.expression("bitwise", |w| {
            w.number(1, 1);
            w.number(2, 1);
            w.number(3, mask.len() as i32);
            Self::value(w, 4, mask);
            Self::value(w, 5, xor);
        });
    }

    pub(super) fn interface(&mut self, key: i32, name: &str) {
        let mut padded = [0; libc::IFNAMSIZ];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        self.meta(key);
        self.compare(libc::NFT_CMP_EQ, &padded);
    }

    pub(super) fn mark_has(&mut self, bits: u32) {
        self.meta(libc::NFT_META_MARK);
        self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
        self.compare(libc::NFT_CMP_NEQ, &[0; 4]);
    }

    /// Goes on if the mark's `bits` are one of `values`.
    pub(super) fn mark_is(&mut self, bits: u32, values: &[u32]) {
        self.meta(libc::NFT_META_MARK);
        self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
        let value = |value: &u32| u32::from_be_bytes(value.to_ne_bytes()).into();
        self.one_of(Key::MARK, values.iter().map(value));
    }

    pub(super) fn mark_lacks(&mut self, bits: u32) {
        self.mark_is(bits, &[0]);
    }

    pub(super) fn clear_mark(&mut self, bits: u32) {
        self.write_mark(bits, 0);
    }

    /// Sets those of `bits` that `value` has, and clears the others of them.
    pub(super) fn write_mark(&mut self, bits: u32, value: u32) {
        self.meta(libc::NFT_META_MARK);
        self.bitwise(&(!bits).to_ne_bytes(), &value.to_ne_bytes());
        self.expression("meta", |w| {
            w.number(2, libc::NFT_META_MARK);
            w.number(3, 1);
        });
    }

    /// Loads what connection tracking knows of the packet; without a connection the rule ends.
    fn connection(&mut self, key: i32) {
        self.expression("ct", |w| {
            w.number(1, 1);
            w.number(2, key);
        });
    }

    /// As [`Expressions::write_mark`], of the packet's connection.
    pub(super) fn write_connection_mark(&mut self, bits: u32, value: u32) {
        self.connection(libc::NFT_CT_MARK);
        self.bitwise(&(!bits).to_ne_bytes(), &value.to_ne_bytes());
        self.expression("ct", |w| {
            w.number(2, libc::NFT_CT_MARK);
            w.number(4, 1);
        });
    }

    /// Goes on if no packet of the connection has come back.
    pub(super) fn connection_is_new(&mut self) {
        /// NF_CT_STATE_BIT of IP_CT_NEW.
        const NEW: u32 = 1 << 3;
        self.connection(libc::NFT_CT_STATE);
        self.bitwise(&NEW.to_ne_bytes(), &[0; 4]);
        self.compare(libc::NFT_CMP_NEQ, &[0; 4]);
    }

    pub(super) fn rewrite_first_word(&mut self, keep: u16, set: u16, checksum: bool) {
        let place = |w: &mut Writer| {
            w.number(2, libc::NFT_PAYLOAD_NETWORK_HEADER);
            w.number(3, 0);
            w.number(4, 2);
        };
        self.expression("payload", |w| {
            w.number(1, 1);
            place(w);
        });
        self.bitwise(&keep.to_be_bytes(), &set.to_be_bytes());
        self.expression("payload", |w| {
            w.number(5, 1);
            place(w);
            if checksum {
                w.number(6, libc::NFT_PAYLOAD_CSUM_INET);
                w.number(7, 10);
            }
        });
    }

    /// Bypass in both forms: nobody listening means accept.
    pub(super) fn queue(&mut self, queues: Queues, native: bool) {
        const BYPASS: u16 = 1;
        const CPU_FANOUT: u16 = 2;
        let Queues { first, count, spread } = queues;
        let flags = BYPASS | if spread == Spread::Cpu { CPU_FANOUT } else { 0 };
        if native {
            return self.expression("queue", |w| {
                w.attribute(1, &first.to_be_bytes());
                w.attribute(2, &count.to_be_bytes());
                w.attribute(3, &flags.to_be_bytes());
            });
        }
        self.expression("target", |w| {
            // struct xt_NFQ_info_v3 in host order, padded to eight bytes: number, queues, flags.
            let words = [first, count, flags, 0];
            w.string(1, "NFQUEUE");
            w.number(2, 3);
            w.attribute(3, &words.map(u16::to_ne_bytes).concat());
        });
    }

    /// Loads bytes of a header.
    pub(super) fn payload(&mut self, header: i32, at: i32, length: i32) {
        self.expression("payload", |w| {
            w.number(1, 1);
            w.number(2, header);
            w.number(3, at);
            w.number(4, length);
        });
    }

    /// Goes on if what was loaded is one of `values`.
    pub(super) fn one_of(&mut self, key: Key, values: impl IntoIterator<Item = u128>) {
        self.within(key, &merged(values.into_iter().map(|value| (value, value))));
    }

    /// Goes on if what was loaded is in one of `intervals`, which neither overlap nor touch.
    pub(super) fn within(&mut self, key: Key, intervals: &[Interval]) {
        match *intervals {
            [(first, last)] if first == last => {
                self.compare(libc::NFT_CMP_EQ, &key.bytes(first));
            }
            [(first, last)] => {
                self.compare(libc::NFT_CMP_GTE, &key.bytes(first));
                self.compare(libc::NFT_CMP_LTE, &key.bytes(last));
            }
            _ => {
                let list = List { key, intervals: intervals.to_vec() };
                let name = self.lists.name(list);
                self.lookup(&name);
            }
        }
    }

    /// Goes on if what was loaded is in `set`.
    pub(super) fn lookup(&mut self, set: &str) {
        self.expression("lookup", |w| {
            w.string(1, set);
            w.number(2, 1);
        });
    }

    /// Adds what was loaded to `set`, or makes it stay there for longer.
    pub(super) fn add_to_set(&mut self, set: &str, ms: u64) {
        self.expression("dynset", |w| {
            w.string(1, set);
            w.number(3, libc::NFT_DYNSET_OP_UPDATE);
            w.number(4, 1);
            w.attribute(6, &ms.to_be_bytes());
        });
    }

    /// Goes on if the socket's control group, or one above it, at `level` has one of these numbers.
    pub(super) fn cgroup(&mut self, level: u8, ids: &[u64]) {
        /// NFT_SOCKET_CGROUPV2.
        const CGROUP: i32 = 3;
        self.expression("socket", |w| {
            w.number(1, CGROUP);
            w.number(2, 1);
            w.number(3, level.into());
        });
        let value = |id: &u64| u64::from_be_bytes(id.to_ne_bytes()).into();
        self.one_of(Key::CGROUP, ids.iter().map(value));
    }

    /// Writes the packet's priority.
    pub(super) fn write_priority(&mut self, class: u32) {
        self.expression("immediate", |w| {
            w.number(1, 1);
            Self::value(w, 2, &class.to_ne_bytes());
        });
        self.expression("meta", |w| {
            w.number(2, libc::NFT_META_PRIORITY);
            w.number(3, 1);
        });
    }

    /// Copies the packet's first bytes to whoever reads the log `group`, at once.
    pub(super) fn log(&mut self, group: u16, bytes: u32) {
        self.expression("log", |w| {
            w.attribute(1, &group.to_be_bytes());
            w.attribute(3, &bytes.to_be_bytes());
            w.attribute(4, &1u16.to_be_bytes());
        });
    }

    pub(super) fn counter(&mut self) {
        self.expression("counter", |_| {});
    }

    /// Ends the rule; a jump goes to `chain`.
    pub(super) fn verdict(&mut self, code: i32, chain: Option<&str>) {
        self.expression("immediate", |w| {
            w.number(1, libc::NFT_REG_VERDICT);
            let data = w.start(2);
            let verdict = w.start(2);
            w.number(1, code);
            if let Some(chain) = chain {
                w.string(2, chain);
            }
            w.end(verdict);
            w.end(data);
        });
    }
}

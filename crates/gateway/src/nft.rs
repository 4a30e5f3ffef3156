//! The nftables table that leads packets to our queues, and carries out what disciplines decide.
//!
//! One table `inet simnel_<interface>` with four base chains, and others for rules that somebody
//! has set (`rules`):
//!
//! ```text
//! arriving  prerouting  -90   iifname WAN, not decapsulated → queue M bypass      (download)
//! arrived   prerouting  -89   iifname WAN, marked → set CE / clear DSCP, restore the mark
//! leaving   postrouting  90   oifname WAN, not to be encapsulated → queue N bypass  (upload)
//! left      postrouting  91   oifname WAN, marked → the same
//! ```
//!
//! The two hooks see each packet of the line once, forwarded or the router's own, on the inner side
//! of address translation: destination NAT has been undone (-100), source NAT has not been done
//! (100). OUTPUT is avoided on purpose: a verdict with a mark there makes the kernel route the
//! packet again, with our mark in it. IPsec packets pass both hooks twice; their clear-text pass is
//! not queued.
//!
//! CE and DSCP: a verdict that carries one of two mark bits makes the chain one step later rewrite
//! the header (with the IPv4 checksum) and take the bits away again, before anything else sees
//! them.
//!
//! For a port of a bridge the table is one of the family `bridge`: its hooks of the same names see
//! each frame of the port once, too.
//!
//! The table is created with NFT_TABLE_F_OWNER (Linux 5.12) on a socket that lives as long as the
//! [`Table`]: the kernel removes it when the process dies, however it dies. To stop, the *rules* go
//! first: removing a base chain makes the kernel drop every packet that is queued in the namespace
//! (`nf_queue_nf_hook_drop`), removing rules does not.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::direction::Direction;
use crate::error::Error;
use crate::netlink::{Socket, Writer};
use crate::rules::{self, Mac, Plan};

const SUBSYSTEM: i32 = libc::NFNL_SUBSYS_NFTABLES << 8;
/// NFT_TABLE_F_OWNER.
const OWNER: i32 = 2;

/// After destination NAT (-100).
const ARRIVING: i32 = -90;
/// Before source NAT (100), after mangling and filtering.
const LEAVING: i32 = 90;

/// NFT_META_SECPATH.
const SECURITY_PATH: i32 = 25;
/// NFT_RT_XFRM.
const ROUTE_TRANSFORM: i32 = 4;

/// The two bits of the packet mark that carry a discipline's decision from the verdict to the chain
/// behind it. They belong to us; all other bits stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkBits {
    mask: u32,
}

impl MarkBits {
    /// Bits 28 and 29, unless somebody uses them (`marks.rs`).
    pub const DEFAULT: MarkBits = MarkBits { mask: 0x3000_0000 };

    /// The bits of `mask`, which must be two.
    ///
    /// # Errors
    /// [`Error::MarkMask`] if there are more or fewer.
    pub fn new(mask: u32) -> Result<MarkBits, Error> {
        if mask.count_ones() == 2 {
            Ok(MarkBits { mask })
        } else {
            Err(Error::MarkMask(mask))
        }
    }

    /// Both bits.
    pub const fn mask(self) -> u32 {
        self.mask
    }

    /// Set CE.
    pub(crate) const fn ce(self) -> u32 {
        1 << self.mask.trailing_zeros()
    }

    /// Clear the DSCP.
    pub(crate) const fn wash(self) -> u32 {
        self.mask & !self.ce()
    }
}

impl Default for MarkBits {
    fn default() -> MarkBits {
        MarkBits::DEFAULT
    }
}

/// Which packets pass the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// Those that the machine routes, sends or takes.
    #[default]
    Routed,
    /// Frames of a bridge's ports.
    Bridged,
}

/// What a table is made for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) family: Family,
    pub(crate) interface: String,
    /// Number of the NFQUEUE of what arrives.
    pub(crate) download: Option<u16>,
    /// Number of the NFQUEUE of what leaves.
    pub(crate) upload: Option<u16>,
    pub(crate) bits: MarkBits,
    /// Bits of the mark that name a tier; zero if no rule needs them.
    pub(crate) tiers: u32,
    /// Identifier of echoes of our own, which pass the queues: they measure the line.
    pub(crate) probes: Option<u16>,
    /// Rules of what arrives and of what leaves.
    pub(crate) plans: [Plan; 2],
}

impl Wanted {
    /// The directions that run, with queue, chains and rules.
    fn directions(&self) -> impl Iterator<Item = (u16, &'static Place, &Plan)> {
        let queues = [(self.download, &ARRIVE), (self.upload, &LEAVE)];
        let both = queues.into_iter().zip(&self.plans);
        both.filter_map(|((queue, place), plan)| Some((queue?, place, plan)))
    }

    /// Hardware addresses whose hosts' addresses rules need.
    fn macs(&self) -> Vec<Mac> {
        let mut macs: Vec<Mac> = self.plans.iter().flat_map(Plan::macs).collect();
        macs.sort_unstable();
        macs.dedup();
        macs
    }
}

/// Our table in the kernel, as long as this value lives.
pub(crate) struct Table {
    socket: Socket,
    name: String,
    wanted: Wanted,
    kernel: Kernel,
    /// Chains whose rules queue.
    queue_chains: Vec<&'static str>,
}

/// Name of the table of `interface`. Bytes that nftables' own language cannot spell become `_` and
/// hex.
pub fn table_name(interface: &str) -> String {
    let mut name = String::from("simnel_");
    for byte in interface.bytes() {
        if byte.is_ascii_alphanumeric() {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("_{byte:02x}"));
        }
    }
    name
}

impl Table {
    /// Creates the table in one transaction; from then on packets are queued.
    pub(crate) fn create(wanted: Wanted) -> Result<Table, Error> {
        let whole = Kernel { queue_expression: true, security_paths: true };
        Table::create_on(whole, wanted)
    }

    fn create_on(mut kernel: Kernel, wanted: Wanted) -> Result<Table, Error> {
        let socket = Socket::open().map_err(kernel_lacks)?;
        let name = table_name(&wanted.interface);
        let attempt = |kernel: Kernel| {
            let mut batch = Batch::new(wanted.family, &name);
            batch.table();
            for (_, place, _) in wanted.directions() {
                batch.chain(place.queue_chain, place.hook, place.priority);
                batch.chain(place.act_chain, place.hook, place.priority + 1);
            }
            batch.fill(&wanted, kernel);
            batch.commit(&socket)
        };
        let result = loop {
            let result = attempt(kernel);
            match result.as_ref().map_err(|(_, e)| e.raw_os_error()) {
                Err(Some(libc::ENOENT)) if kernel.queue_expression => {
                    kernel.queue_expression = false;
                }
                Err(Some(libc::EOPNOTSUPP)) if kernel.security_paths => {
                    kernel.security_paths = false;
                }
                _ => break result,
            }
        };
        match result {
            Ok(()) => {
                let queue_chains =
                    wanted.directions().map(|(_, place, _)| place.queue_chain).collect();
                Ok(Table { socket, name, wanted, kernel, queue_chains })
            }
            Err((sequence, error)) => {
                Err(explain(sequence, error, wanted.family, &wanted.interface, &name))
            }
        }
    }

    /// Other rules in front of the queues, in one transaction: no packet sees half of it.
    pub(crate) fn set_plans(&mut self, plans: [Plan; 2], tiers: u32) -> Result<(), Error> {
        let wanted = Wanted { plans, tiers, ..self.wanted.clone() };
        let mut batch = Batch::new(self.wanted.family, &self.name);
        for (_, place, plan) in self.wanted.directions() {
            batch.flush_chain(place.queue_chain);
            batch.flush_chain(place.act_chain);
            if *plan != Plan::default() {
                batch.flush_chain(place.rule_chain);
            }
        }
        if !self.wanted.macs().is_empty() {
            batch.flush_chain(LEARN_CHAIN);
        }
        batch.fill(&wanted, self.kernel);
        batch.commit(&self.socket).map_err(|(_, e)| Error::system("setting the rules", e))?;
        self.wanted = wanted;
        Ok(())
    }

    /// What the rules have counted, by their direction and number.
    pub(crate) fn counted(&self) -> io::Result<BTreeMap<(Direction, usize), rules::Counted>> {
        let all = rules::counted(&self.name)?;
        let known = |((chain, number), counted): ((String, usize), _)| {
            let places = [(Direction::Download, &ARRIVE), (Direction::Upload, &LEAVE)];
            let (direction, _) = places.into_iter().find(|(_, p)| p.rule_chain == chain)?;
            Some(((direction, number), counted))
        };
        Ok(all.into_iter().filter_map(known).collect())
    }

    /// Takes the queue rules away: packets pass by us from now on, those queued stay queued, and
    /// their verdicts' marks still work.
    pub(crate) fn stop_queueing(&mut self) -> Result<(), Error> {
        if self.queue_chains.is_empty() {
            return Ok(());
        }
        let result = self.stop_batch(libc::NLM_F_ACK).commit(&self.socket);
        self.queue_chains.clear();
        result.map_err(|(_, e)| Error::system("removing the queue rules", e))
    }

    /// Messages that do the same when somebody else sends them on [`Table::socket`].
    pub(crate) fn stop_messages(&self) -> Vec<u8> {
        self.stop_batch(0).end().bytes().to_vec()
    }

    fn stop_batch(&self, flags: i32) -> Batch<'_> {
        let mut batch = Batch::new(self.wanted.family, &self.name);
        batch.flags = flags;
        self.queue_chains.iter().for_each(|chain| batch.flush_chain(chain));
        batch
    }

    /// The socket that owns the table.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Removes the table at once, also where another process has its socket, too.
    pub(crate) fn remove(self) -> Result<(), Error> {
        let mut batch = Batch::new(self.wanted.family, &self.name);
        batch.delete_table();
        batch.commit(&self.socket).map_err(|(_, e)| Error::system("removing the table", e))
    }
}

/// How rules hand packets to NFQUEUE on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queueing {
    /// By the expression `queue`.
    Native,
    /// By iptables' target only.
    Iptables,
}

/// Lets the kernel judge a rule that queues, without keeping it: a transaction that does not end is
/// only checked. Its chain has no hook, so that no queue is touched when it goes again.
pub(crate) fn judge_queueing() -> io::Result<Queueing> {
    let socket = Socket::open()?;
    let judge = |native: bool| {
        let mut batch = Batch::new(Family::Routed, "simnel_check");
        batch.table();
        batch.plain_chain("judged");
        batch.rule("judged", |rule| rule.queue(0, native));
        let last = batch.sequence;
        socket.transact(&batch.writer, 1..=last).map_err(|(_, error)| error)
    };
    match judge(true) {
        Ok(()) => Ok(Queueing::Native),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            judge(false).map(|()| Queueing::Iptables)
        }
        Err(error) => Err(error),
    }
}

/// Abilities of the kernel; found out by trying.
#[derive(Clone, Copy)]
struct Kernel {
    /// CONFIG_NFT_QUEUE. Without it, iptables' NFQUEUE target does the same through nft_compat.
    queue_expression: bool,
    /// CONFIG_XFRM. Without it there are no security paths, and no exception for them is needed.
    security_paths: bool,
}

/// Where one direction's chains stand.
struct Place {
    direction: Direction,
    queue_chain: &'static str,
    act_chain: &'static str,
    rule_chain: &'static str,
    hook: i32,
    priority: i32,
    name_key: i32,
}

static ARRIVE: Place = Place {
    direction: Direction::Download,
    queue_chain: "arriving",
    act_chain: "arrived",
    rule_chain: "rules_down",
    hook: libc::NF_INET_PRE_ROUTING,
    priority: ARRIVING,
    name_key: libc::NFT_META_IIFNAME,
};
static LEAVE: Place = Place {
    direction: Direction::Upload,
    queue_chain: "leaving",
    act_chain: "left",
    rule_chain: "rules_up",
    hook: libc::NF_INET_POST_ROUTING,
    priority: LEAVING,
    name_key: libc::NFT_META_OIFNAME,
};

/// The chain that learns addresses of hosts, in front of the rules.
const LEARN_CHAIN: &str = "learning";

/// Sequence number of the message that creates the table.
const TABLE_SEQUENCE: u32 = 1;

/// One nftables transaction. Message `n` has the sequence number `n`, so that errors can be placed.
pub(crate) struct Batch<'a> {
    writer: Writer,
    sequence: u32,
    /// NLM_F_ACK, unless nobody will read the answers.
    flags: i32,
    family: Family,
    table: &'a str,
}

impl<'a> Batch<'a> {
    fn new(family: Family, table: &'a str) -> Batch<'a> {
        let mut writer = Writer::default();
        writer.begin(libc::NFNL_MSG_BATCH_BEGIN, 0, 0, 0, libc::NFNL_SUBSYS_NFTABLES as u16);
        writer.finish();
        Batch { writer, sequence: 0, flags: libc::NLM_F_ACK, family, table }
    }

    fn end(mut self) -> Writer {
        let subsystem = libc::NFNL_SUBSYS_NFTABLES as u16;
        self.writer.begin(libc::NFNL_MSG_BATCH_END, 0, self.sequence + 1, 0, subsystem);
        self.writer.finish();
        self.writer
    }

    fn commit(self, socket: &Socket) -> Result<(), (u32, io::Error)> {
        let last = self.sequence;
        socket.transact(&self.end(), 1..=last)
    }

    fn begin(&mut self, kind: i32, flags: i32) {
        self.sequence += 1;
        let (kind, flags) = (SUBSYSTEM | kind, flags | self.flags);
        let family = match self.family {
            Family::Routed => libc::NFPROTO_INET,
            Family::Bridged => libc::NFPROTO_BRIDGE,
        };
        self.writer.begin(kind, flags, self.sequence, family as u8, 0);
    }

    fn table(&mut self) {
        self.begin(libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        self.writer.string(1, self.table);
        self.writer.number(2, OWNER);
        self.writer.finish();
    }

    fn chain(&mut self, name: &str, hook: i32, priority: i32) {
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

    /// A chain that no hook leads to.
    fn plain_chain(&mut self, name: &str) {
        self.begin(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(3, name);
        self.writer.finish();
    }

    fn delete_table(&mut self) {
        self.begin(libc::NFT_MSG_DELTABLE, 0);
        self.writer.string(1, self.table);
        self.writer.finish();
    }

    fn flush_chain(&mut self, chain: &str) {
        self.begin(libc::NFT_MSG_DELRULE, 0);
        self.writer.string(1, self.table);
        self.writer.string(2, chain);
        self.writer.finish();
    }

    /// A chain that others jump to.
    fn branch(&mut self, name: &str) {
        self.begin(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(3, name);
        self.writer.finish();
    }

    /// A set whose elements rules add; one that is there stays as it is. `key` is its type, as nft
    /// calls it, and its length.
    pub(crate) fn set(&mut self, name: &str, key: (i32, i32), flags: i32, ms: u64, size: i32) {
        self.begin(libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE);
        self.writer.string(1, self.table);
        self.writer.string(2, name);
        self.writer.number(3, flags);
        self.writer.number(4, key.0);
        self.writer.number(5, key.1);
        let open = self.writer.start(9);
        self.writer.number(1, size);
        self.writer.end(open);
        self.writer.number(10, self.sequence as i32);
        self.writer.attribute(11, &ms.to_be_bytes());
        self.writer.finish();
    }

    pub(crate) fn rule(&mut self, chain: &str, expressions: impl FnOnce(&mut Expressions<'_>)) {
        self.rule_called(chain, "", expressions);
    }

    /// A rule with a comment, as nft shows it.
    pub(crate) fn rule_called(
        &mut self,
        chain: &str,
        comment: &str,
        expressions: impl FnOnce(&mut Expressions<'_>),
    ) {
        self.begin(libc::NFT_MSG_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND);
        self.writer.string(1, self.table);
        self.writer.string(2, chain);
        let open = self.writer.start(4);
        expressions(&mut Expressions(&mut self.writer));
        self.writer.end(open);
        if !comment.is_empty() {
            // nft's own form: a type (0, a comment), a length, a string with its final zero.
            let mut bytes = vec![0, comment.len() as u8 + 1];
            bytes.extend(comment.as_bytes());
            bytes.push(0);
            self.writer.attribute(7, &bytes);
        }
        self.writer.finish();
    }

    /// All rules of all chains, which must be empty.
    fn fill(&mut self, wanted: &Wanted, kernel: Kernel) {
        let macs = wanted.macs();
        if !macs.is_empty() {
            self.chain(LEARN_CHAIN, LEAVE.hook, LEAVE.priority - 1);
            rules::learn(self, LEARN_CHAIN, &wanted.interface, &macs);
        }
        for (queue, place, plan) in wanted.directions() {
            self.direction(place, wanted, queue, plan, kernel);
        }
    }

    fn direction(
        &mut self,
        place: &Place,
        wanted: &Wanted,
        queue: u16,
        plan: &Plan,
        kernel: Kernel,
    ) {
        let (interface, bits) = (&*wanted.interface, wanted.bits);
        let all = bits.mask() | wanted.tiers;

        // Nobody else may seem to have asked for CE or washing.
        self.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.mark_has(all);
            rule.clear_mark(all);
        });
        if let Some(ident) = wanted.probes {
            self.probes_pass(place, interface, ident);
        }
        if *plan != Plan::default() {
            self.branch(place.rule_chain);
            plan.write(self, place.rule_chain, place.direction, wanted.tiers);
            self.rule(place.queue_chain, |rule| {
                rule.interface(place.name_key, interface);
                rule.verdict(libc::NFT_JUMP, Some(place.rule_chain));
            });
        }
        self.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            if kernel.security_paths {
                match place.hook {
                    libc::NF_INET_PRE_ROUTING => rule.meta(SECURITY_PATH),
                    _ => rule.route(ROUTE_TRANSFORM),
                }
                rule.compare(libc::NFT_CMP_EQ, &[0]);
            }
            rule.queue(queue, kernel.queue_expression);
        });

        // The device's own discipline is not to see our classes.
        for class in plan.classes() {
            self.rule(place.act_chain, |rule| {
                rule.interface(place.name_key, interface);
                rule.meta(libc::NFT_META_PRIORITY);
                rule.compare(libc::NFT_CMP_EQ, &class.to_ne_bytes());
                rule.write_priority(0);
            });
        }
        // The common case first: nothing to do.
        self.rule(place.act_chain, |rule| {
            rule.mark_lacks(all);
            rule.verdict(libc::NF_ACCEPT, None);
        });
        // The first 16 bits: version, header length, TOS; version, traffic class, flow label.
        let headers = [(libc::ETH_P_IP, 0x00fcu16, 3), (libc::ETH_P_IPV6, 0x0fc0, 0x30)];
        for (protocol, dscp, ecn) in headers {
            for (bit, clear, set) in [(bits.ce(), ecn, ecn), (bits.wash(), dscp, 0)] {
                self.rule(place.act_chain, |rule| {
                    rule.interface(place.name_key, interface);
                    rule.mark_has(bit);
                    rule.meta(libc::NFT_META_PROTOCOL);
                    rule.compare(libc::NFT_CMP_EQ, &(protocol as u16).to_be_bytes());
                    rule.rewrite_first_word(!clear, set, protocol == libc::ETH_P_IP);
                });
            }
        }
        self.rule(place.act_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.clear_mark(all);
        });
    }
}

impl Batch<'_> {
    /// Lets echoes of our own by; nobody else's leave, for only ours come from no interface.
    fn probes_pass(&mut self, place: &Place, interface: &str, ident: u16) {
        let leaves = place.direction == Direction::Upload;
        // Requests and replies of ICMP and ICMPv6.
        let kinds = [(libc::IPPROTO_ICMP, 8, 0), (libc::IPPROTO_ICMPV6, 128, 129)];
        for (protocol, request, reply) in kinds {
            self.rule(place.queue_chain, |rule| {
                rule.interface(place.name_key, interface);
                if leaves {
                    rule.meta(libc::NFT_META_IIF);
                    rule.compare(libc::NFT_CMP_EQ, &[0; 4]);
                }
                rule.meta(libc::NFT_META_L4PROTO);
                rule.compare(libc::NFT_CMP_EQ, &[protocol as u8]);
                rule.payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
                rule.compare(libc::NFT_CMP_EQ, &[if leaves { request } else { reply }]);
                rule.payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 4, 2);
                rule.compare(libc::NFT_CMP_EQ, &ident.to_be_bytes());
                rule.verdict(libc::NF_ACCEPT, None);
            });
        }
    }
}

/// The expressions of one rule, their attributes by their numbers in linux/netfilter/nf_tables.h.
/// All work on register 1, NFT_REG_1.
pub(crate) struct Expressions<'a>(&'a mut Writer);

impl Expressions<'_> {
    fn expression(&mut self, name: &str, data: impl FnOnce(&mut Writer)) {
        let element = self.0.start(1); // NFTA_LIST_ELEM
        self.0.string(1, name);
        let open = self.0.start(2);
        data(self.0);
        self.0.end(open);
        self.0.end(element);
    }

    pub(crate) fn meta(&mut self, key: i32) {
        self.expression("meta", |w| {
            w.number(1, 1);
            w.number(2, key);
        });
    }

    fn route(&mut self, key: i32) {
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

    pub(crate) fn compare(&mut self, operator: i32, bytes: &[u8]) {
        self.expression("cmp", |w| {
            w.number(1, 1);
            w.number(2, operator);
            Self::value(w, 3, bytes);
        });
    }

    pub(crate) fn bitwise(&mut self, mask: &[u8], xor: &[u8]) {
        self.expression("bitwise", |w| {
            w.number(1, 1);
            w.number(2, 1);
            w.number(3, mask.len() as i32);
            Self::value(w, 4, mask);
            Self::value(w, 5, xor);
        });
    }

    pub(crate) fn interface(&mut self, key: i32, name: &str) {
        let mut padded = [0; libc::IFNAMSIZ];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        self.meta(key);
        self.compare(libc::NFT_CMP_EQ, &padded);
    }

    fn mark_has(&mut self, bits: u32) {
        self.meta(libc::NFT_META_MARK);
        self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
        self.compare(libc::NFT_CMP_NEQ, &[0; 4]);
    }

    fn mark_lacks(&mut self, bits: u32) {
        self.meta(libc::NFT_META_MARK);
        self.bitwise(&bits.to_ne_bytes(), &[0; 4]);
        self.compare(libc::NFT_CMP_EQ, &[0; 4]);
    }

    fn clear_mark(&mut self, bits: u32) {
        self.write_mark(bits, 0);
    }

    /// Sets those of `bits` that `value` has, and clears the others of them.
    pub(crate) fn write_mark(&mut self, bits: u32, value: u32) {
        self.meta(libc::NFT_META_MARK);
        self.bitwise(&(!bits).to_ne_bytes(), &value.to_ne_bytes());
        self.expression("meta", |w| {
            w.number(2, libc::NFT_META_MARK);
            w.number(3, 1);
        });
    }

    fn rewrite_first_word(&mut self, keep: u16, set: u16, checksum: bool) {
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
    fn queue(&mut self, number: u16, native: bool) {
        if native {
            return self.expression("queue", |w| {
                w.attribute(1, &number.to_be_bytes());
                w.attribute(2, &1u16.to_be_bytes());
                w.attribute(3, &1u16.to_be_bytes());
            });
        }
        self.expression("target", |w| {
            // struct xt_NFQ_info_v3 in host order, padded to eight bytes: number, queues, flags.
            let words = [number, 1, 1, 0];
            w.string(1, "NFQUEUE");
            w.number(2, 3);
            w.attribute(3, &words.map(u16::to_ne_bytes).concat());
        });
    }

    /// Loads bytes of a header.
    pub(crate) fn payload(&mut self, header: i32, at: i32, length: i32) {
        self.expression("payload", |w| {
            w.number(1, 1);
            w.number(2, header);
            w.number(3, at);
            w.number(4, length);
        });
    }

    /// Goes on if what was loaded is in `set`.
    pub(crate) fn lookup(&mut self, set: &str) {
        self.expression("lookup", |w| {
            w.string(1, set);
            w.number(2, 1);
        });
    }

    /// Adds what was loaded to `set`, or makes it stay there for longer.
    pub(crate) fn add_to_set(&mut self, set: &str, ms: u64) {
        self.expression("dynset", |w| {
            w.string(1, set);
            w.number(3, libc::NFT_DYNSET_OP_UPDATE);
            w.number(4, 1);
            w.attribute(6, &ms.to_be_bytes());
        });
    }

    /// Writes the packet's priority.
    pub(crate) fn write_priority(&mut self, class: u32) {
        self.expression("immediate", |w| {
            w.number(1, 1);
            Self::value(w, 2, &class.to_ne_bytes());
        });
        self.expression("meta", |w| {
            w.number(2, libc::NFT_META_PRIORITY);
            w.number(3, 1);
        });
    }

    pub(crate) fn counter(&mut self) {
        self.expression("counter", |_| {});
    }

    /// Ends the rule; a jump goes to `chain`.
    pub(crate) fn verdict(&mut self, code: i32, chain: Option<&str>) {
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

fn kernel_lacks(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT) => Error::KernelLacks {
            what: "netfilter's netlink interface (nfnetlink)",
            fix: "`modprobe nfnetlink`, or a kernel with CONFIG_NETFILTER_NETLINK",
        },
        _ => Error::system("opening a netlink socket", error),
    }
}

fn explain(sequence: u32, error: io::Error, family: Family, interface: &str, table: &str) -> Error {
    let code = error.raw_os_error().unwrap_or(0);
    match (sequence, code) {
        (0, libc::EPERM) => Error::Privilege,
        (0, libc::EOPNOTSUPP | libc::EINVAL) => Error::KernelLacks {
            what: "nf_tables",
            fix: "`modprobe nf_tables` (OpenWrt: the package kmod-nft-core)",
        },
        // The owner's sockets alone may touch the table, or even see that it is theirs to create.
        (TABLE_SEQUENCE, libc::EPERM) => {
            Error::AlreadyUp { interface: interface.to_owned(), owner: String::from("?") }
        }
        (TABLE_SEQUENCE, libc::EEXIST) => Error::TableExists { table: table.to_owned() },
        (TABLE_SEQUENCE, libc::EOPNOTSUPP | libc::EINVAL) => Error::KernelLacks {
            what: "nftables tables with an owner",
            fix: "Linux 5.12 or later, with nf_tables' inet family",
        },
        (_, libc::ENOENT) if family == Family::Bridged => Error::KernelLacks {
            what: "nft_queue, without which a bridge's frames cannot be queued",
            fix: "`modprobe nft_queue` (OpenWrt: the package kmod-nft-queue)",
        },
        (_, libc::ENOENT) => Error::KernelLacks {
            what: "both nft_queue and xt_NFQUEUE with nft_compat, one of which the rules need",
            fix: "`modprobe nft_queue` (OpenWrt: the package kmod-nft-queue)",
        },
        _ => Error::system(format!("creating the nftables table {table} (step {sequence})"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_spellable_and_distinct() {
        assert_eq!(table_name("eth0"), "simnel_eth0");
        assert_eq!(table_name("eth0.1"), "simnel_eth0_2e1");
        assert_ne!(table_name("a_2e"), table_name("a."));
    }

    /// With either way to queue that the kernel may have.
    #[test]
    fn without_a_listener_packets_pass() {
        use std::net::UdpSocket;
        let check = || {
            // SAFETY: takes an integer; only the calling thread leaves its network namespace.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                eprintln!("NOT RUN: without_a_listener_packets_pass needs root");
                return;
            }
            let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(up.unwrap().success());
            for queue_expression in [true, false] {
                let kernel = Kernel { queue_expression, security_paths: true };
                let interface = String::from("lo");
                let wanted = Wanted { interface, download: Some(7), ..Wanted::default() };
                let table = Table::create_on(kernel, wanted);
                if let Err(Error::KernelLacks { what, .. }) = table {
                    eprintln!("NOT RUN: without_a_listener_packets_pass lacks {what}");
                    continue;
                }
                let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
                receiver.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
                let address = receiver.local_addr().unwrap();
                receiver.send_to(b"passes", address).unwrap();
                let mut bytes = [0; 16];
                assert_eq!(receiver.recv(&mut bytes).expect("the packet was dropped"), 6);
                table.unwrap().remove().unwrap();
            }
        };
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn marks_are_two_bits() {
        let bits = MarkBits::new(0x8001_0000).unwrap();
        assert_eq!((bits.ce(), bits.wash()), (0x1_0000, 0x8000_0000));
        assert!(MarkBits::new(0x7).is_err() && MarkBits::new(0).is_err());
    }
}

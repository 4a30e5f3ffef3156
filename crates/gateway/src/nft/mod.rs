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
//! each frame of the port once, too. Where the kernel cannot queue a bridge's frames, a chain
//! `passing` keeps it from passing on those that we do (`frames`).
//!
//! The table is created with NFT_TABLE_F_OWNER (Linux 5.12) on a socket that lives as long as the
//! [`Table`]: the kernel removes it when the process dies, however it dies. To stop, the *rules* go
//! first: removing a base chain makes the kernel drop every packet that is queued in the namespace
//! (`nf_queue_nf_hook_drop`), removing rules does not.

mod batch;
mod chains;
mod judge;
mod lists;
mod others;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::autorate::Own;
use crate::direction::Direction;
use crate::error::Error;
use crate::names::Known;
use crate::netlink::Socket;
use crate::rules::cgroup::Found;
use crate::rules::{Counted, HostName, Mac, Plan};

use batch::{Batch, TABLE_SEQUENCE};
pub(crate) use batch::{Family, Queues};
pub(crate) use judge::{judge_cgroups, judge_logging, judge_queueing, Queueing};
use lists::Lists;
pub(crate) use others::{in_others, Other};

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

/// Contents wanted of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) family: Family,
    pub(crate) interface: String,
    /// NFQUEUEs of what arrives.
    pub(crate) download: Option<Queues>,
    /// NFQUEUEs of what leaves.
    pub(crate) upload: Option<Queues>,
    /// Ways between a bridge's ports that are ours, from and to: the bridge does not pass on there.
    pub(crate) ours: Vec<(String, String)>,
    pub(crate) bits: MarkBits,
    pub(crate) own: Own,
    pub(crate) rules: Ruling,
}

/// Rules, and what they need beside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ruling {
    /// Of what arrives and of what leaves.
    pub(crate) plans: [Plan; 2],
    /// Bits of the mark that name a tier; zero if no rule needs them.
    pub(crate) tiers: u32,
    /// Log group of those who learn addresses of host names, if rules have such.
    pub(crate) names: Option<u16>,
    /// Control groups that rules speak of.
    pub(crate) cgroups: Vec<Found>,
}

impl Wanted {
    /// The directions that run, with queue, chains and rules.
    fn directions(&self) -> impl Iterator<Item = (Queues, &'static Place, &Plan)> {
        let queues = [(self.download, &ARRIVE), (self.upload, &LEAVE)];
        let both = queues.into_iter().zip(&self.rules.plans);
        both.filter_map(|((queue, place), plan)| Some((queue?, place, plan)))
    }

    /// Makes the chains of queues, and of ways that are ours.
    fn chains(&self, batch: &mut Batch<'_>) {
        if !self.ours.is_empty() {
            batch.chain(PASS_CHAIN, libc::NF_INET_FORWARD, 0);
        }
        for (_, place, _) in self.directions() {
            batch.chain(place.queue_chain, place.hook, place.priority);
            batch.chain(place.act_chain, place.hook, place.priority + 1);
        }
    }

    /// Empties all chains that may hold rules.
    fn empty(&self, batch: &mut Batch<'_>) {
        if !self.ours.is_empty() {
            batch.flush_chain(PASS_CHAIN);
        }
        for (_, place, plan) in self.directions() {
            batch.flush_chain(place.queue_chain);
            batch.flush_chain(place.act_chain);
            if *plan != Plan::default() {
                batch.flush_chain(place.rule_chain);
            }
        }
        if !self.macs().is_empty() {
            batch.flush_chain(LEARN_CHAIN);
        }
        if self.knows_own() {
            batch.flush_chain(SEND_CHAIN);
        }
        if self.rules.names.is_some() {
            batch.flush_chain(ASK_CHAIN);
            batch.flush_chain(ANSWER_CHAIN);
        }
    }

    /// Lists of hardware addresses whose hosts' addresses rules need.
    fn macs(&self) -> Vec<Vec<Mac>> {
        distinct(self.rules.plans.iter().flat_map(Plan::macs))
    }

    /// True if packets of the machine's own programs are told apart as they leave.
    fn knows_own(&self) -> bool {
        self.upload.is_some() && !self.rules.cgroups.is_empty()
    }

    /// Lists of host names whose addresses rules need.
    fn hosts(&self) -> Vec<Vec<HostName>> {
        distinct(self.rules.plans.iter().flat_map(Plan::hosts))
    }
}

/// Each of `lists` once, whatever the order of its items.
fn distinct<'a, T: Clone + Ord + 'a>(lists: impl Iterator<Item = &'a [T]>) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = lists.map(<[T]>::to_vec).collect();
    all.iter_mut().for_each(|list| list.sort_unstable());
    all.sort_unstable();
    all.dedup();
    all
}

/// Our table in the kernel, as long as this value lives.
pub(crate) struct Table {
    socket: Socket,
    name: String,
    wanted: Wanted,
    kernel: Kernel,
    /// Chains whose rules queue, or keep.
    queue_chains: Vec<&'static str>,
    lists: Lists,
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
    /// Creates the table; from then on packets are queued. What rules look at is there before them,
    /// with all that is `known` of host names.
    pub(crate) fn create(wanted: Wanted, known: &[Known]) -> Result<Table, Error> {
        let whole = Kernel { queue_expression: true, security_paths: true };
        Table::create_on(whole, wanted, known)
    }

    fn create_on(mut kernel: Kernel, wanted: Wanted, known: &[Known]) -> Result<Table, Error> {
        let socket = Socket::open().map_err(kernel_lacks)?;
        let name = table_name(&wanted.interface);
        let explained = |(sequence, error): (u32, io::Error)| {
            explain(sequence, error, wanted.family, &wanted.interface, &name)
        };
        let mut first = Batch::new(wanted.family, &name);
        first.table();
        first.commit(&socket).map_err(explained)?;

        let needed = rules(&name, &wanted, kernel, Lists::default(), |_| ()).lists;
        let lists = make(&socket, &name, &wanted, &needed, known)?;
        loop {
            let batch = rules(&name, &wanted, kernel, lists.clone(), |batch| wanted.chains(batch));
            let result = batch.commit(&socket);
            match result.as_ref().map_err(|(_, e)| e.raw_os_error()) {
                Err(Some(libc::ENOENT)) if kernel.queue_expression => {
                    kernel.queue_expression = false;
                }
                Err(Some(libc::EOPNOTSUPP)) if kernel.security_paths => {
                    kernel.security_paths = false;
                }
                _ => {
                    // Behind the table's.
                    let later = |(sequence, error)| (sequence + TABLE_SEQUENCE, error);
                    result.map_err(later).map_err(explained)?;
                    break;
                }
            }
        }
        let kept = (!wanted.ours.is_empty()).then_some(PASS_CHAIN);
        let queue_chains =
            wanted.directions().map(|(_, place, _)| place.queue_chain).chain(kept).collect();
        Ok(Table { socket, name, wanted, kernel, queue_chains, lists })
    }

    /// Other rules in front of the queues, in one transaction: no packet sees half of it. What they
    /// look at is there before, with all that is `known` of host names.
    pub(crate) fn set_rules(&mut self, ruling: Ruling, known: &[Known]) -> Result<(), Error> {
        let wanted = Wanted { rules: ruling, ..self.wanted.clone() };
        let empty = |batch: &mut Batch<'_>| self.wanted.empty(batch);
        let mut batch = rules(&self.name, &wanted, self.kernel, self.lists.clone(), empty);
        let needed = batch.lists.clone();
        batch.remove_lists(&needed);
        // Those of rules that are refused are left behind.
        self.lists = make(&self.socket, &self.name, &wanted, &needed, known)?;
        batch.commit(&self.socket).map_err(|(_, e)| Error::system(SETTING, e))?;
        (self.wanted, self.lists) = (wanted, needed.removed());
        Ok(())
    }

    /// Other ways between a bridge's ports that are ours.
    pub(crate) fn set_ours(&mut self, ours: Vec<(String, String)>) -> Result<(), Error> {
        let wanted = Wanted { ours, ..self.wanted.clone() };
        let mut batch = Batch::new(wanted.family, &self.name);
        batch.flush_chain(PASS_CHAIN);
        fill_ours(&mut batch, &wanted);
        batch.commit(&self.socket).map_err(|(_, e)| Error::system(SETTING, e))?;
        self.wanted = wanted;
        Ok(())
    }

    /// Keeps addresses of host names for as long as they say; of names without a rule nothing.
    pub(crate) fn keep(&self, known: &[Known]) -> Result<(), Error> {
        // At most turns nothing is new.
        if known.is_empty() {
            return Ok(());
        }
        keep(&self.socket, &self.name, &self.wanted, known)
    }

    /// Counters of the rules, by their direction and number.
    pub(crate) fn counted(&self) -> io::Result<BTreeMap<(Direction, usize), Counted>> {
        let all = chains::counted(&self.name)?;
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
        let result = self.stop_batch().commit(&self.socket);
        self.queue_chains.clear();
        result.map_err(|(_, e)| Error::system("removing the queue rules", e))
    }

    /// Messages that do the same when somebody else sends them on [`Table::socket`].
    pub(crate) fn stop_messages(&self) -> Vec<u8> {
        self.stop_batch().end().bytes().to_vec()
    }

    fn stop_batch(&self) -> Batch<'_> {
        let mut batch = Batch::new(self.wanted.family, &self.name);
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

/// The attempt that rules are.
const SETTING: &str = "setting the rules";

/// A transaction of all rules that are `wanted`, behind what `begin` says of their chains; `laid`
/// are the lists that there are.
fn rules<'a>(
    table: &'a str,
    wanted: &Wanted,
    kernel: Kernel,
    laid: Lists,
    begin: impl FnOnce(&mut Batch<'_>),
) -> Batch<'a> {
    let mut batch = Batch::new(wanted.family, table);
    batch.lists = laid;
    begin(&mut batch);
    fill(&mut batch, wanted, kernel);
    batch
}

/// Makes what `wanted` rules look at, in transactions of its own: rules of one hold sooner than its
/// sets. Tells the lists that there are then.
fn make(
    socket: &Socket,
    table: &str,
    wanted: &Wanted,
    needed: &Lists,
    known: &[Known],
) -> Result<Lists, Error> {
    let mut batch = Batch::new(wanted.family, table);
    chains::host_sets(&mut batch, &wanted.hosts());
    batch.make_lists(needed);
    batch.commit(socket).map_err(|(_, e)| Error::system(SETTING, e))?;
    keep(socket, table, wanted, known)?;
    Ok(needed.made())
}

/// Keeps addresses of host names, in the sets of the rules that are `wanted`.
fn keep(socket: &Socket, table: &str, wanted: &Wanted, known: &[Known]) -> Result<(), Error> {
    for hosts in &wanted.hosts() {
        // A transaction each: the longest would hold up what else the core has to do.
        for (set, elements) in chains::kept(hosts, known) {
            let mut batch = Batch::new(wanted.family, table);
            batch.elements(&set, &elements);
            batch.commit(socket).map_err(|(_, e)| {
                let names: Vec<String> = hosts.iter().map(HostName::to_string).collect();
                Error::system(format!("keeping addresses of {}", names.join(", ")), e)
            })?;
        }
    }
    Ok(())
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

/// The chains that copy questions to resolvers and their answers.
const ASK_CHAIN: &str = "asking";
const ANSWER_CHAIN: &str = "answering";

/// The chain that keeps a bridge from passing on what we do.
const PASS_CHAIN: &str = "passing";

/// The chain that marks what the machine's own programs send.
const SEND_CHAIN: &str = "sending";

/// Writes all rules of all chains, which must be empty.
fn fill(batch: &mut Batch<'_>, wanted: &Wanted, kernel: Kernel) {
    let macs = wanted.macs();
    if !macs.is_empty() {
        batch.chain(LEARN_CHAIN, LEAVE.hook, LEAVE.priority - 1);
        chains::learn(batch, LEARN_CHAIN, &wanted.interface, &macs);
    }
    chains::host_sets(batch, &wanted.hosts());
    if wanted.knows_own() {
        let Ruling { tiers, cgroups, .. } = &wanted.rules;
        batch.chain(SEND_CHAIN, libc::NF_INET_LOCAL_OUT, LEAVE.priority);
        chains::mark_own(batch, SEND_CHAIN, &wanted.interface, *tiers, cgroups);
    }
    if let Some(group) = wanted.rules.names {
        let chains =
            [(ASK_CHAIN, &LEAVE, LEAVE.priority - 2), (ANSWER_CHAIN, &ARRIVE, ARRIVE.priority - 1)];
        for (chain, place, priority) in chains {
            batch.chain(chain, place.hook, priority);
            chains::log_names(batch, chain, &wanted.interface, place.name_key, group);
        }
    }
    fill_ours(batch, wanted);
    for (queues, place, plan) in wanted.directions() {
        fill_direction(batch, place, wanted, queues, plan, kernel);
    }
}

/// Keeps the bridge from what we pass on.
fn fill_ours(batch: &mut Batch<'_>, wanted: &Wanted) {
    for (from, to) in &wanted.ours {
        batch.rule(PASS_CHAIN, |rule| {
            rule.interface(libc::NFT_META_IIFNAME, from);
            rule.interface(libc::NFT_META_OIFNAME, to);
            rule.verdict(libc::NF_DROP, None);
        });
    }
}

/// Writes the rules of one direction.
fn fill_direction(
    batch: &mut Batch<'_>,
    place: &Place,
    wanted: &Wanted,
    queues: Queues,
    plan: &Plan,
    kernel: Kernel,
) {
    let (interface, bits) = (&*wanted.interface, wanted.bits);
    let tiers = wanted.rules.tiers;
    let all = bits.mask() | tiers;
    let knows_own = wanted.knows_own() && place.direction == Direction::Upload;

    // Nobody else may seem to have asked for CE or washing.
    let foreign = if knows_own { bits.mask() } else { all };
    batch.rule(place.queue_chain, |rule| {
        rule.interface(place.name_key, interface);
        rule.mark_has(foreign);
        rule.clear_mark(foreign);
    });
    if knows_own {
        // The machine's own have the numbers of their groups there.
        batch.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.meta(libc::NFT_META_IIF);
            rule.compare(libc::NFT_CMP_NEQ, &[0; 4]);
            rule.clear_mark(tiers);
        });
    }
    pass_own(batch, place, interface, &wanted.own);
    if *plan != Plan::default() {
        batch.branch(place.rule_chain);
        let cgroups = &wanted.rules.cgroups;
        chains::write(plan, batch, place.rule_chain, place.direction, tiers, cgroups);
        batch.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.verdict(libc::NFT_JUMP, Some(place.rule_chain));
        });
    }
    batch.rule(place.queue_chain, |rule| {
        rule.interface(place.name_key, interface);
        if kernel.security_paths {
            match place.hook {
                libc::NF_INET_PRE_ROUTING => rule.meta(SECURITY_PATH),
                _ => rule.route(ROUTE_TRANSFORM),
            }
            rule.compare(libc::NFT_CMP_EQ, &[0]);
        }
        rule.queue(queues, kernel.queue_expression);
    });

    // The device's own discipline is not to see our classes.
    for class in plan.classes() {
        batch.rule(place.act_chain, |rule| {
            rule.interface(place.name_key, interface);
            rule.meta(libc::NFT_META_PRIORITY);
            rule.compare(libc::NFT_CMP_EQ, &class.to_ne_bytes());
            rule.write_priority(0);
        });
    }
    // The common case first: nothing to do.
    batch.rule(place.act_chain, |rule| {
        rule.mark_lacks(all);
        rule.verdict(libc::NF_ACCEPT, None);
    });
    // The first 16 bits: version, header length, TOS; version, traffic class, flow label.
    let headers = [(libc::ETH_P_IP, 0x00fcu16, 3), (libc::ETH_P_IPV6, 0x0fc0, 0x30)];
    for (protocol, dscp, ecn) in headers {
        for (bit, clear, set) in [(bits.ce(), ecn, ecn), (bits.wash(), dscp, 0)] {
            batch.rule(place.act_chain, |rule| {
                rule.interface(place.name_key, interface);
                rule.mark_has(bit);
                rule.meta(libc::NFT_META_PROTOCOL);
                rule.compare(libc::NFT_CMP_EQ, &(protocol as u16).to_be_bytes());
                rule.rewrite_first_word(!clear, set, protocol == libc::ETH_P_IP);
            });
        }
    }
    batch.rule(place.act_chain, |rule| {
        rule.interface(place.name_key, interface);
        rule.clear_mark(all);
    });
}

/// Lets probes of our own by; nobody else's leave, for only ours come from no interface.
fn pass_own(batch: &mut Batch<'_>, place: &Place, interface: &str, own: &Own) {
    let leaves = place.direction == Direction::Upload;
    let mut pass = |protocol: i32, fields: &[(i32, &[u8])]| {
        batch.rule(place.queue_chain, |rule| {
            rule.interface(place.name_key, interface);
            if leaves {
                rule.meta(libc::NFT_META_IIF);
                rule.compare(libc::NFT_CMP_EQ, &[0; 4]);
            }
            rule.meta(libc::NFT_META_L4PROTO);
            rule.compare(libc::NFT_CMP_EQ, &[protocol as u8]);
            for (at, bytes) in fields {
                rule.payload(libc::NFT_PAYLOAD_TRANSPORT_HEADER, *at, bytes.len() as i32);
                rule.compare(libc::NFT_CMP_EQ, bytes);
            }
            rule.verdict(libc::NF_ACCEPT, None);
        });
    };
    // Requests and replies of ICMP and ICMPv6; ICMP's ask for the time, too.
    let kinds = [
        (libc::IPPROTO_ICMP, [8, 0]),
        (libc::IPPROTO_ICMP, [13, 14]),
        (libc::IPPROTO_ICMPV6, [128, 129]),
    ];
    if let Some(ident) = own.echo {
        for (protocol, [request, reply]) in kinds {
            let kind = if leaves { request } else { reply };
            pass(protocol, &[(0, &[kind]), (4, &ident.to_be_bytes())]);
        }
    }
    if let Some((here, servers)) = &own.datagrams {
        for there in servers {
            let mut ports = [here.to_be_bytes(), there.to_be_bytes()];
            if !leaves {
                ports.reverse();
            }
            pass(libc::IPPROTO_UDP, &[(0, ports.as_flattened())]);
        }
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
        crate::apart::apart("without_a_listener_packets_pass", || {
            for queue_expression in [true, false] {
                let kernel = Kernel { queue_expression, security_paths: true };
                let interface = String::from("lo");
                let wanted =
                    Wanted { interface, download: Some(Queues::one(7)), ..Wanted::default() };
                let table = Table::create_on(kernel, wanted, &[]);
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
        });
    }

    #[test]
    fn marks_are_two_bits() {
        let bits = MarkBits::new(0x8001_0000).unwrap();
        assert_eq!((bits.ce(), bits.wash()), (0x1_0000, 0x8000_0000));
        assert!(MarkBits::new(0x7).is_err() && MarkBits::new(0).is_err());
    }
}

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
//! The two hooks see each packet of the line once, forwarded or the router's own. They are on the
//! inner side of address translation: destinations are translated already (-100), sources not
//! yet (100). OUTPUT is avoided on purpose: a verdict with a mark there makes the kernel
//! route the packet again, with our mark in it. IPsec packets pass both hooks twice; their
//! clear-text pass is not queued.
//!
//! CE and DSCP: a verdict that carries one of two mark bits makes the chain one step later rewrite
//! the header (with the IPv4 checksum). That chain takes the bits away again, before anything else
//! sees them.
//!
//! For a port of a bridge the table is one of the family `bridge`. Its hooks of the same names see
//! each frame of the port once, too. Where the kernel cannot queue a bridge's frames, a chain
//! `passing` keeps it from passing on those that we do (`frames`).
//!
//! Where the kernel shapes, no chain queues, and rules are laid as `marking` says.
//!
//! The table is created with NFT_TABLE_F_OWNER (Linux 5.12) on a socket that lives as long as the
//! [`Table`]. The kernel removes it when the process dies, however it dies. To stop, the *rules* go
//! first. Removing a base chain makes the kernel drop every packet that is queued in the namespace
//! (`nf_queue_nf_hook_drop`); removing rules does not.

mod batch;
mod bits;
mod chains;
mod fill;
mod judge;
mod lists;
mod marking;
mod others;
mod place;
mod refused;
mod table;

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

use batch::Batch;
pub(crate) use batch::Queues;
pub use bits::MarkBits;
use fill::{fill, fill_ours, Kernel, ANSWER_CHAIN, ASK_CHAIN, LEARN_CHAIN, PASS_CHAIN, SEND_CHAIN};
pub(crate) use judge::{judge_cgroups, judge_logging, judge_queueing, Queueing};
use lists::Lists;
use marking::{OPEN_CHAIN, OPEN_RULES};
pub(crate) use others::{in_others, Other};
use place::{Place, ARRIVE, LEAVE};
use refused::kernel_lacks;
pub(crate) use table::Family;

/// Whoever has the packets of a direction behind its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A process, with these NFQUEUEs.
    Process(Queues),
    /// A discipline of the kernel (`marking`).
    Kernel,
}

/// Contents wanted of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) family: Family,
    pub(crate) interface: String,
    /// Holder of what arrives.
    pub(crate) download: Option<Holder>,
    /// Holder of what leaves.
    pub(crate) upload: Option<Holder>,
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
    /// The directions that run, with chains and rules.
    fn directions(&self) -> impl Iterator<Item = (Holder, &'static Place, &Plan)> {
        let holders = [(self.download, &ARRIVE), (self.upload, &LEAVE)];
        let both = holders.into_iter().zip(&self.rules.plans);
        both.filter_map(|((holder, place), plan)| Some((holder?, place, plan)))
    }

    /// Makes the chains of queues, and of ways that are ours.
    fn chains(&self, batch: &mut Batch<'_>) {
        if !self.ours.is_empty() {
            batch.chain(PASS_CHAIN, libc::NF_INET_FORWARD, 0);
        }
        for (holder, place, _) in self.directions() {
            batch.chain(place.queue_chain, place.hook, place.priority);
            if let Some(priority) = place.act_priority(holder) {
                batch.chain(place.act_chain, place.hook, priority);
            }
        }
    }

    /// Empties all chains that may hold rules.
    fn empty(&self, batch: &mut Batch<'_>) {
        if !self.ours.is_empty() {
            batch.flush_chain(PASS_CHAIN);
        }
        for (holder, place, plan) in self.directions() {
            batch.flush_chain(place.queue_chain);
            if place.act_priority(holder).is_some() {
                batch.flush_chain(place.act_chain);
            }
            if *plan != Plan::default() {
                batch.flush_chain(place.rule_chain);
            }
        }
        if marking::opening(self).is_some() {
            batch.flush_chain(OPEN_CHAIN);
            batch.flush_chain(OPEN_RULES);
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
        // Tried with one rule: all rules twice would take twice as long.
        let queue_expression = !matches!(judge_queueing(), Ok(Queueing::Iptables));
        let kernel = Kernel { queue_expression, security_paths: true };
        Table::create_on(kernel, wanted, known)
    }

    fn create_on(mut kernel: Kernel, wanted: Wanted, known: &[Known]) -> Result<Table, Error> {
        let socket = Socket::open().map_err(kernel_lacks)?;
        let name = table_name(&wanted.interface);
        let mut first = Batch::new(wanted.family, &name);
        first.table();
        first
            .commit(&socket)
            .map_err(|refused| refused.creating_table(&wanted.interface, &name))?;

        let needed = rules(&name, &wanted, kernel, Lists::default(), |_| ()).lists;
        let lists = make(&socket, &name, &wanted, &needed, known)?;
        loop {
            let batch = rules(&name, &wanted, kernel, lists.clone(), |batch| wanted.chains(batch));
            match batch.commit(&socket) {
                Err(refused) if kernel.queue_expression && refused.lacks("queue") => {
                    kernel.queue_expression = false;
                }
                Err(refused) if kernel.security_paths && refused.code() == libc::EOPNOTSUPP => {
                    kernel.security_paths = false;
                }
                result => {
                    result.map_err(|refused| refused.creating_rules(wanted.family, &name))?;
                    break;
                }
            }
        }
        let kept = (!wanted.ours.is_empty()).then_some(PASS_CHAIN);
        let queueing = |(holder, place, _): (Holder, &'static Place, &Plan)| {
            matches!(holder, Holder::Process(_)).then_some(place.queue_chain)
        };
        let queue_chains = wanted.directions().filter_map(queueing).chain(kept).collect();
        Ok(Table { socket, name, wanted, kernel, queue_chains, lists })
    }

    /// Packets that its rules are for.
    pub(crate) fn family(&self) -> Family {
        self.wanted.family
    }

    /// Makes the kernel refuse what is asked of the table from now on.
    #[cfg(test)]
    pub(crate) fn lose(&mut self) {
        self.name.push_str("_of_nobody");
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
        batch.commit(&self.socket).map_err(|refused| refused.doing(SETTING))?;
        (self.wanted, self.lists) = (wanted, needed.removed());
        Ok(())
    }

    /// Other ways between a bridge's ports that are ours.
    pub(crate) fn set_ours(&mut self, ours: Vec<(String, String)>) -> Result<(), Error> {
        let wanted = Wanted { ours, ..self.wanted.clone() };
        let mut batch = Batch::new(wanted.family, &self.name);
        batch.flush_chain(PASS_CHAIN);
        fill_ours(&mut batch, &wanted);
        batch.commit(&self.socket).map_err(|refused| refused.doing(SETTING))?;
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
        result.map_err(|refused| refused.doing("removing the queue rules"))
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
        batch.commit(&self.socket).map_err(|refused| refused.doing("removing the table"))
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
    batch.commit(socket).map_err(|refused| refused.doing(SETTING))?;
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
            batch.commit(socket).map_err(|refused| {
                let names: Vec<String> = hosts.iter().map(HostName::to_string).collect();
                refused.doing(&format!("keeping addresses of {}", names.join(", ")))
            })?;
        }
    }
    Ok(())
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
                let wanted = Wanted {
                    interface,
                    download: Some(Holder::Process(Queues::one(7))),
                    ..Wanted::default()
                };
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
}

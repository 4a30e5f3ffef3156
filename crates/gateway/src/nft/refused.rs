//! The message of a transaction that the kernel refused: which part of it, and what that means.
//!
//! The kernel tells the attribute at fault by its place in the message (NLMSGERR_ATTR_OFFS).

use std::io;

use super::table::{Family, TABLE_SEQUENCE};
use crate::error::Error;
use crate::netlink::{
    attribute, attributes, text, Failure, Message, Messages, Writer, BEGIN, HEADER,
};

/// A message that was refused.
#[derive(Debug)]
pub(super) struct Refused {
    /// Its number in the transaction.
    pub(super) sequence: u32,
    pub(super) error: io::Error,
    /// In words.
    pub(super) part: String,
    /// Name of the expression at fault, of a rule; None also if the kernel does not tell.
    expression: Option<String>,
}

impl Refused {
    /// The message of those in `writer` that `failure` is about.
    pub(super) fn of(failure: Failure, writer: &Writer) -> Refused {
        let Failure { sequence, error, fault } = failure;
        let message = Messages(writer.bytes()).find(|message| message.seq == sequence);
        let message = message.filter(|_| sequence != BEGIN);
        let at_fault = |message: &Message<'_>| expression_at(message, fault?);
        let expression = message.as_ref().and_then(at_fault);
        let part = match (message.as_ref().map(described), &expression) {
            (None, _) => String::from("the transaction"),
            (Some(part), None) => part,
            (Some(part), Some(expression)) => format!("`{expression}` in {part}"),
        };
        Refused { sequence, error, part, expression }
    }

    /// The error's number.
    pub(super) fn code(&self) -> i32 {
        self.error.raw_os_error().unwrap_or(0)
    }

    /// True if the kernel does not know the expression `name`, as far as it tells.
    pub(super) fn lacks(&self, name: &str) -> bool {
        let may_be = |expression: &String| expression == name;
        self.code() == libc::ENOENT && self.expression.as_ref().is_none_or(may_be)
    }

    /// The error of somebody who was `doing` it.
    pub(super) fn doing(self, doing: &str) -> Error {
        Error::system(format!("{doing}: {}", self.part), self.error)
    }

    /// The error of who creates `table`, of `interface`, without anything in it.
    pub(super) fn creating_table(self, interface: &str, table: &str) -> Error {
        match (self.sequence, self.code()) {
            (BEGIN, libc::EPERM) => Error::Privilege,
            (BEGIN, libc::EOPNOTSUPP | libc::EINVAL) => Error::KernelLacks {
                what: "nf_tables",
                fix: "`modprobe nf_tables` (OpenWrt: the package kmod-nft-core)",
            },
            // The owner's sockets alone may touch the table, or even see that it is theirs.
            (TABLE_SEQUENCE, libc::EPERM) => {
                let owner = String::from("a process with another --control-dir: say it as well");
                Error::AlreadyUp { interface: interface.to_owned(), owner }
            }
            (TABLE_SEQUENCE, libc::EEXIST) => Error::TableExists { table: table.to_owned() },
            (TABLE_SEQUENCE, libc::EOPNOTSUPP | libc::EINVAL) => Error::KernelLacks {
                what: "nftables tables with an owner",
                fix: "Linux 5.12 or later, with nf_tables' inet family",
            },
            _ => self.creating(table),
        }
    }

    /// The error of who gives `table` its chains and rules, by each way to queue that there is.
    pub(super) fn creating_rules(self, family: Family, table: &str) -> Error {
        match &self.expression {
            Some(expression) if expression == "ct" => Error::KernelLacks {
                what: "nft_ct with marks of connections, which rules for what arrives need",
                fix: "`modprobe nft_ct` (OpenWrt: the package kmod-nft-core), a kernel with \
                      CONFIG_NF_CONNTRACK_MARK, or `backend = \"userspace\"`",
            },
            _ if !self.lacks("queue") && !self.lacks("target") => self.creating(table),
            _ if family == Family::Bridged => Error::KernelLacks {
                what: "nft_queue, without which a bridge's frames cannot be queued",
                fix: "`modprobe nft_queue` (OpenWrt: the package kmod-nft-queue)",
            },
            _ => Error::KernelLacks {
                what: "both nft_queue and xt_NFQUEUE with nft_compat, one of which the rules need",
                fix: "`modprobe nft_queue` (OpenWrt: the package kmod-nft-queue)",
            },
        }
    }

    fn creating(self, table: &str) -> Error {
        self.doing(&format!("creating the nftables table {table}"))
    }
}

/// The part of the table that a message is about.
fn described(message: &Message<'_>) -> String {
    let name = |wanted: i32| message.attribute(wanted).map(text).unwrap_or_default();
    match message.kind & 0xff {
        libc::NFT_MSG_NEWTABLE | libc::NFT_MSG_DELTABLE => String::from("the table"),
        libc::NFT_MSG_NEWCHAIN => format!("the chain `{}`", name(3)),
        libc::NFT_MSG_NEWRULE | libc::NFT_MSG_DELRULE => {
            format!("a rule of the chain `{}`", name(2))
        }
        libc::NFT_MSG_NEWSETELEM | libc::NFT_MSG_DELSETELEM => {
            format!("elements of the set `{}`", name(2))
        }
        _ => format!("the set `{}`", name(2)),
    }
}

/// Name of the expression of a rule in which place `fault` of its message lies.
fn expression_at(message: &Message<'_>, fault: usize) -> Option<String> {
    const EXPRESSIONS: i32 = 4;
    if message.kind & 0xff != libc::NFT_MSG_NEWRULE {
        return None;
    }
    // From here on places are those in the body.
    let fault = fault.checked_sub(HEADER - 4)?;
    let place = |data: &[u8]| data.as_ptr().addr() - message.body.as_ptr().addr();
    let list = message.attribute(EXPRESSIONS)?;
    // Each is told by its header, in front of its data.
    let is_meant = |data: &[u8]| (place(data) - 4..place(data) + data.len()).contains(&fault);
    let (_, expression) = attributes(list).find(|(_, data)| is_meant(data))?;
    attribute(expression, 1).map(text)
}

/// The error of who cannot open a socket for transactions.
pub(super) fn kernel_lacks(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT) => Error::KernelLacks {
            what: "netfilter's netlink interface (nfnetlink)",
            fix: "`modprobe nfnetlink`, or a kernel with CONFIG_NETFILTER_NETLINK",
        },
        _ => Error::system("opening a netlink socket", error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Batch, Queues};
    use super::*;

    /// A table with a chain and a rule; places of the rule's last two expressions in its message.
    fn transaction(queue: bool) -> (Writer, [usize; 2]) {
        let mut batch = Batch::new(Family::Routed, "simnel_lo");
        batch.table();
        batch.chain("leaving", libc::NF_INET_POST_ROUTING, 90);
        batch.rule("leaving", |rule| {
            rule.counter();
            rule.queue(Queues::one(7), queue);
        });
        let writer = batch.end();
        let message = Messages(writer.bytes()).find(|message| message.seq == 3).unwrap();
        let begin = message.body.as_ptr().addr() - 16;
        let list = message.attribute(4).unwrap();
        let places: Vec<usize> =
            attributes(list).map(|(_, data)| data.as_ptr().addr() - 4 - begin).collect();
        (writer, places.try_into().unwrap())
    }

    fn refused(writer: &Writer, sequence: u32, code: i32, fault: Option<usize>) -> Refused {
        let error = io::Error::from_raw_os_error(code);
        Refused::of(Failure { sequence, error, fault }, writer)
    }

    #[test]
    fn the_part_that_was_refused_is_named() {
        let (writer, [counter, queue]) = transaction(true);
        for (sequence, fault, part) in [
            (0, None, "the transaction"),
            (0, Some(20), "the transaction"),
            (1, None, "the table"),
            (2, Some(24), "the chain `leaving`"),
            (3, None, "a rule of the chain `leaving`"),
            (3, Some(0), "a rule of the chain `leaving`"),
            (3, Some(counter - 1), "a rule of the chain `leaving`"),
            (3, Some(counter), "`counter` in a rule of the chain `leaving`"),
            (3, Some(queue - 1), "`counter` in a rule of the chain `leaving`"),
            (3, Some(queue), "`queue` in a rule of the chain `leaving`"),
            (3, Some(10_000), "a rule of the chain `leaving`"),
            (9, Some(queue), "the transaction"),
        ] {
            let refused = refused(&writer, sequence, libc::ENOENT, fault);
            assert_eq!(refused.part, part, "{sequence} {fault:?}");
        }
    }

    /// A kernel that does not tell the place may lack either.
    #[test]
    fn a_way_to_queue_is_missing_only_if_it_was_that() {
        for (native, name) in [(true, "queue"), (false, "target")] {
            let (writer, [counter, queue]) = transaction(native);
            let is_lacking = |code, fault| {
                let family = Family::Routed;
                let error = refused(&writer, 3, code, fault).creating_rules(family, "simnel_lo");
                assert_eq!(refused(&writer, 3, code, fault).lacks(name), {
                    matches!(error, Error::KernelLacks { .. })
                });
                matches!(error, Error::KernelLacks { what, .. } if what.contains("nft_queue"))
            };
            assert!(is_lacking(libc::ENOENT, Some(queue)) && is_lacking(libc::ENOENT, None));
            assert!(!is_lacking(libc::ENOENT, Some(counter)));
            assert!(!is_lacking(libc::EINVAL, Some(queue)));
            let error = refused(&writer, 3, libc::ENOENT, Some(counter));
            let error = error.creating_rules(Family::Routed, "simnel_lo").to_string();
            let part = "creating the nftables table simnel_lo: `counter` in a rule of the chain";
            assert!(error.starts_with(part), "{error}");
        }
    }
}

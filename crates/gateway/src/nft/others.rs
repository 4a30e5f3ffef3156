//! Rules of nftables in tables that are not ours, also those that iptables has made there.

use std::io;

use crate::netlink::{text, Message, Socket, Writer};

/// A rule of somebody else's.
pub(crate) struct Other<'a> {
    pub(crate) table: String,
    pub(crate) chain: String,
    /// The list of its expressions.
    pub(crate) expressions: &'a [u8],
}

impl<'a> Other<'a> {
    /// The rule that the kernel tells of; None if it is ours.
    pub(crate) fn read(message: &Message<'a>) -> Option<Other<'a>> {
        let mut rule = Other { table: String::new(), chain: String::new(), expressions: &[] };
        for (kind, data) in message.attributes() {
            match kind {
                1 => rule.table = text(data),
                2 => rule.chain = text(data),
                4 => rule.expressions = data,
                _ => {}
            }
        }
        (!rule.table.starts_with("simnel_")).then_some(rule)
    }
}

/// Findings of `find` in all rules of others.
///
/// # Errors
/// The kernel does not tell its rules.
pub(crate) fn in_others<T>(find: impl Fn(&Other<'_>) -> Option<T>) -> io::Result<Vec<T>> {
    const GET_RULE: i32 = libc::NFNL_SUBSYS_NFTABLES << 8 | libc::NFT_MSG_GETRULE;
    let mut writer = Writer::default();
    writer.begin(GET_RULE, libc::NLM_F_DUMP, 1, 0, 0);
    writer.finish();
    let mut found = Vec::new();
    Socket::open()?.dump(&writer, |message| {
        found.extend(Other::read(&message).and_then(|rule| find(&rule)))
    })?;
    Ok(found)
}

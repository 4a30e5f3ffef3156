//! Addresses of an interface over rtnetlink (linux/if_addr.h): those by which others reach it.

use std::io;
use std::net::IpAddr;

use crate::netlink::{Message, Socket, Writer};

/// Bytes of a `struct ifaddrmsg`: family, prefix, flags, scope; number of the interface.
const FIXED: usize = 8;
const IFA_ADDRESS: i32 = 1;
const IFA_LOCAL: i32 = 2;
const IFA_FLAGS: i32 = 8;
/// Scopes from here on are the link's or the host's own.
const RT_SCOPE_LINK: u8 = 253;
/// IPv6: made up for privacy, a double, on the way out, not yet known to be nobody else's.
const PASSING: u32 = 0x01 | 0x08 | 0x20 | 0x40;

/// Addresses of interface number `index`, sorted; of those that [`all`] tells.
pub(crate) fn of(index: u32) -> io::Result<Vec<IpAddr>> {
    let here = all()?.into_iter().filter(|(number, _)| *number == index);
    let mut addresses: Vec<IpAddr> = here.map(|(_, address)| address).collect();
    addresses.sort();
    Ok(addresses)
}

/// Addresses of all interfaces, by their numbers. Left out are those of the link alone and, of
/// IPv6, those that come and go by themselves.
pub(crate) fn all() -> io::Result<Vec<(u32, IpAddr)>> {
    let mut question = Writer::default();
    question.begin_with(libc::RTM_GETADDR.into(), libc::NLM_F_DUMP, 1, &[0; FIXED]);
    question.finish();
    let mut addresses = Vec::new();
    Socket::open_routing()?.dump(&question, |message| addresses.extend(address(&message)))?;
    Ok(addresses)
}

fn address(message: &Message<'_>) -> Option<(u32, IpAddr)> {
    let &[family, _, flags, scope, ref number @ ..] = message.body.first_chunk::<FIXED>()?;
    if scope >= RT_SCOPE_LINK {
        return None;
    }
    let number = u32::from_ne_bytes(*number);
    let attribute = |wanted| {
        let mut attributes = message.attributes_after(FIXED);
        attributes.find(|(kind, _)| *kind == wanted).map(|(_, data)| data)
    };
    let data = attribute(IFA_LOCAL).or_else(|| attribute(IFA_ADDRESS))?;
    if i32::from(family) == libc::AF_INET {
        return Some((number, IpAddr::from(*data.first_chunk::<4>()?)));
    }
    let all = attribute(IFA_FLAGS).and_then(<[u8]>::first_chunk).copied();
    let flags = all.map_or(flags.into(), u32::from_ne_bytes);
    (flags & PASSING == 0).then_some((number, IpAddr::from(*data.first_chunk::<16>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    fn told(fixed: [u8; 4], index: u32, attributes: &[(i32, &[u8])]) -> Option<(u32, IpAddr)> {
        let mut writer = Writer::default();
        let fixed = [fixed, index.to_ne_bytes()].concat();
        writer.begin_with(libc::RTM_NEWADDR.into(), 0, 1, &fixed);
        attributes.iter().for_each(|(kind, data)| writer.attribute(*kind, data));
        writer.finish();
        Messages(writer.bytes()).next().and_then(|message| address(&message))
    }

    #[test]
    fn addresses_that_last_are_told_from_others() {
        let (inet, inet6) = (libc::AF_INET as u8, libc::AF_INET6 as u8);
        let (ours, peer) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let both = [(IFA_ADDRESS, &peer[..]), (IFA_LOCAL, &ours[..])];
        let expected = Some((7, IpAddr::from(ours)));
        assert_eq!(told([inet, 32, 0, 0], 7, &both), expected);
        // The same bit is another thing for IPv4: one of several of a network.
        assert_eq!(told([inet, 24, 1, 0], 7, &both), expected);
        assert_eq!(told([inet, 16, 0, RT_SCOPE_LINK], 7, &both), None);
        assert_eq!(told([inet, 32, 0, 0], 7, &[(IFA_LOCAL, &[1, 2])]), None);
        let six = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let flags = |flags: u32| flags.to_ne_bytes();
        for (all, expected) in [(0x80, Some((7, IpAddr::from(six)))), (0x01, None), (0x40, None)] {
            let attributes = [(IFA_ADDRESS, &six[..]), (IFA_FLAGS, &flags(all)[..])];
            assert_eq!(told([inet6, 64, 0x80, 0], 7, &attributes), expected, "{all:#x}");
        }
    }
}

//! The tin of a packet by code point, mark and class; and washing.

use simnel_core::packet::{Ecn, Flags};
use simnel_core::Packet;

use crate::driver::{packet, with, Driver};

/// Expedited forwarding, as it stands in the header.
const EF: u8 = 46 << 2;
const MODES: [&str; 5] = ["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"];

/// Internal tin (a higher one has priority) of `dscp`, from the lists of facts A.2.
fn tin_of(mode: &str, dscp: u8) -> u8 {
    let find = |lists: &[(u8, &[u8])], default| {
        lists.iter().find(|(_, list)| list.contains(&dscp)).map_or(default, |(tin, _)| *tin)
    };
    match mode {
        "besteffort" => 0,
        "precedence" => dscp >> 3,
        "diffserv3" => find(&[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])], 0),
        "diffserv4" => {
            let video = [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38];
            find(&[(1, &[1, 8]), (2, &video), (3, &[32, 40, 44, 46, 48, 56])], 0)
        }
        _ => find(
            &[
                (0, &[1]),
                (1, &[2, 8, 10, 12, 14]),
                (3, &[24, 26, 28, 30, 34, 36, 38]),
                (4, &[4, 18, 20, 22]),
                (5, &[16]),
                (6, &[32, 40, 44, 46]),
                (7, &[48, 56]),
            ],
            2,
        ),
    }
}

/// Internal tin of the one that `tc -s` lists as number `index`.
fn listed(mode: &str, index: usize) -> u8 {
    match (mode, index) {
        ("diffserv3" | "diffserv4", 0) => 1,
        ("diffserv3" | "diffserv4", 1) => 0,
        _ => index as u8,
    }
}

fn tin_for(driver: &mut Driver, packet: Packet) -> u8 {
    driver.put(packet);
    driver.take().expect("a packet waits");
    driver.place().0
}

#[test]
fn every_code_point_in_every_mode() {
    for mode in MODES {
        for shaper in ["", "bandwidth 1gbit"] {
            let mut driver = Driver::new(&format!("{mode} {shaper}"));
            let tins = usize::from(driver.stats().tin_count);
            let mut packets = [0; 8];
            for dscp in 0..64 {
                for ecn in 0..4 {
                    let tos = dscp << 2 | ecn;
                    let flags = if ecn & 1 == 0 { Flags::IPV4 } else { Flags::IPV6 };
                    let tin = tin_for(
                        &mut driver,
                        with(packet(3, 100), |p| (p.tos, p.flags) = (tos, flags)),
                    );
                    assert_eq!(tin, tin_of(mode, dscp), "{mode}, DSCP {dscp}");
                    packets[usize::from(tin)] += 1;
                }
            }
            for index in 0..tins {
                let expected = packets[usize::from(listed(mode, index))];
                assert_eq!(driver.tin(index).sent_packets, expected, "{mode}, listed {index}");
            }
        }
    }
}

#[test]
fn address_resolution_is_network_control_and_the_rest_best_effort() {
    for mode in MODES {
        let mut driver = Driver::new(mode);
        let arp = with(packet(1, 60), |p| (p.flags, p.tos) = (Flags::ARP, 8 << 2));
        assert_eq!(tin_for(&mut driver, arp), tin_of(mode, 56), "{mode}");
        let other = with(packet(1, 60), |p| (p.flags, p.tos) = (Flags(0), 46 << 2));
        assert_eq!(tin_for(&mut driver, other), tin_of(mode, 0), "{mode}");
    }
}

#[test]
fn a_firewall_mark_overrides_the_code_point() {
    for mode in MODES {
        let mut driver = Driver::new(&format!("{mode} fwmark 0x0f00"));
        let tins = usize::from(driver.stats().tin_count);
        for dscp in [0, 8, 46] {
            for value in 0..16 {
                let mark = value << 8 | 0xffff_00ff;
                let marked = with(packet(1, 100), |p| (p.mark, p.tos) = (mark, dscp << 2));
                // Tins are numbered from 1 as listed; beyond them the mark says nothing.
                let expected = match value as usize {
                    0 => tin_of(mode, dscp),
                    value if value <= tins => listed(mode, value - 1),
                    _ => tin_of(mode, dscp),
                };
                assert_eq!(tin_for(&mut driver, marked), expected, "{mode}, mark {mark:#x}");
            }
        }
    }
    // A class that is as large as the mask changes nothing.
    let mut driver = Driver::new("diffserv4 fwmark 0xff");
    let marked = with(packet(1, 100), |p| (p.mark, p.class, p.tos) = (4, 0xff, 0));
    assert_eq!(tin_for(&mut driver, marked), 3);
    // Without a mask, marks are somebody else's.
    let mut driver = Driver::new("diffserv4");
    assert_eq!(tin_for(&mut driver, with(packet(1, 100), |p| p.mark = 4)), 0);
}

#[test]
fn a_class_of_our_handle_overrides_the_code_point_but_not_the_mark() {
    const OURS: u32 = 0x8001_0000;
    for mode in MODES {
        let mut driver = Driver::new(&format!("{mode} fwmark 0xff"));
        let tins = u32::from(driver.stats().tin_count);
        for minor in [0, 1, 2, 3, 4, 8, 9, 0xffff] {
            for (class, mark) in [(OURS | minor, 0), (0x8002_0000 | minor, 0), (OURS | minor, 1)] {
                let classed =
                    with(packet(1, 100), |p| (p.class, p.mark, p.tos) = (class, mark, 46 << 2));
                let expected = match () {
                    () if mark == 1 => listed(mode, 0),
                    () if class & OURS == OURS && (1..=tins).contains(&minor) => {
                        listed(mode, minor as usize - 1)
                    }
                    () => tin_of(mode, 46),
                };
                assert_eq!(tin_for(&mut driver, classed), expected, "{mode}, {class:#x}");
            }
        }
    }
}

#[test]
fn washing_clears_the_code_point_after_it_was_read() {
    for mode in MODES {
        for (words, washes) in [("wash", true), ("nowash", false), ("", false)] {
            let mut driver = Driver::new(&format!("{mode} {words}"));
            for (dscp, ecn) in [(46, 0), (46, 2), (8, 1), (34, 3), (0, 2)] {
                driver.put(with(packet(1, 100), |p| p.tos = dscp << 2 | ecn));
                let sent = driver.take().unwrap();
                assert_eq!(driver.place().0, tin_of(mode, dscp), "{mode} {words}");
                let left = if washes { 0 } else { dscp };
                assert_eq!((sent.dscp(), sent.ecn() as u8), (left, ecn), "{mode} {words}");
                // The owner is told to rewrite what was changed, and only that.
                let rewrite = washes && dscp != 0;
                assert_eq!(sent.flags.has(Flags::WASHED), rewrite, "{mode} {words}");
            }
        }
    }
    // Marks and classes choose the tin; the code point goes all the same.
    let mut driver = Driver::new("diffserv4 wash fwmark 0xff");
    driver.put(with(packet(1, 100), |p| (p.mark, p.tos) = (1, 46 << 2 | 2)));
    let sent = driver.take().unwrap();
    assert_eq!((driver.place().0, sent.dscp(), sent.ecn()), (1, 0, Ecn::Ect0));
}

/// Video may have half of the line and voice a quarter. What is left over goes to the tin that is
/// due first, and so to both, as 2 to 1.
#[test]
fn what_no_tin_has_a_right_to_goes_to_the_one_that_is_due_first() {
    let mut driver = Driver::new("diffserv4 bandwidth 8mbit raw");
    let tins = [with(packet(1, 1000), |p| p.tos = 34 << 2), with(packet(2, 1000), |p| p.tos = EF)];
    for tin in tins {
        driver.put_all(tin, 2);
    }
    let mut sent = [0u64; 2];
    for _ in 0..3_000 {
        let packet = driver.take().expect("packets wait");
        let index = usize::from(packet.tos == EF);
        sent[index] += 1;
        driver.put(tins[index]);
    }
    assert!(sent[0].abs_diff(2_000) <= 2, "{sent:?}");
}

/// Of two tins that are due at the same moment, the higher one goes first.
#[test]
fn of_tins_that_are_due_together_the_higher_one_goes() {
    // 500 bytes at 4 Mbit/s and 250 at 2 take a millisecond each.
    let mut driver = Driver::new("diffserv4 bandwidth 8mbit raw");
    driver.put_all(with(packet(1, 500), |p| p.tos = 34 << 2), 2);
    driver.put_all(with(packet(2, 250), |p| p.tos = EF), 2);
    let order: Vec<u32> = driver.take_all().iter().map(|packet| packet.len).collect();
    // On schedule: the higher one, then the other. Then both are due a millisecond after the first.
    assert_eq!(order, [250, 500, 250, 500]);
}

//! Netlink options of random bytes, and recorded ones that are damaged. See `support::netlink`.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use simnel_core::netlink::{Attributes, Options};
use simnel_core::qdisc::{netlink, Class, Config, Device, Discard, Managed};
use simnel_core::{Packet, Span, Time};
use support::netlink::{check, requests, seed};
use support::table::make;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_options_are_refused_by_name_or_lived_with(bytes in vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }
}

#[test]
fn recorded_options_are_lived_with() {
    let flood: Vec<u8> = (0..200).map(|n| (n * 37) as u8).collect();
    for (name, payload) in requests() {
        let kind = netlink::kinds().position(|kind| kind == name).expect(name);
        check(&seed(kind as u8, &payload, &flood));
    }
}

/// `tc` sends 64 bits of bytes a second: seven eighths of them are more than fit, when seven come
/// first.
#[test]
fn the_greatest_rate_has_tiers() {
    let kind = netlink::kinds().position(|kind| kind == "cake").expect("cake");
    let (base_rate, diffserv_mode, memory, diffserv8) = (2u16, 3u16, 10u16, 2u32);
    let mut payload = Vec::new();
    for (attribute, value) in [
        (base_rate, (u64::MAX - 1).to_ne_bytes().as_slice()),
        (diffserv_mode, diffserv8.to_ne_bytes().as_slice()),
        (memory, 100_000u32.to_ne_bytes().as_slice()),
    ] {
        payload.extend((4 + value.len() as u16).to_ne_bytes());
        payload.extend(attribute.to_ne_bytes());
        payload.extend(value);
    }
    check(&seed(kind as u8, &payload, &[]));
}

/// Linux's own steps of SFB, for those who say nothing, are not `tc`'s.
#[test]
fn sfb_without_options_has_steps_of_its_own() {
    let said = netlink::parse("sfb", None, None, &Device::default()).expect("sfb");
    let Config::Sfb(params) = said else { panic!("{said}") };
    assert_eq!((params.increment, params.decrement), (66, 11));
}

#[test]
fn cut_and_mistold_lengths_are_refused_by_name_or_ignored() {
    let (device, mut refused) = (Device::default(), 0);
    let mut look = |name: &str, payload: &[u8], at: usize| {
        let is_nested = name == "fq_pie";
        let options = Options { payload, is_nested };
        if let Err(error) = netlink::parse(name, Some(options), None, &device) {
            assert!(error.text().as_str().starts_with("TCA_"), "{name} at {at}: {error}");
            refused += 1;
        }
    };
    let requests = requests();
    assert!(requests.len() > 110, "{}", requests.len());
    for (name, bytes) in &requests {
        for at in 0..bytes.len() {
            look(name, &bytes[..at], at);
        }
        for attribute in Attributes::new(bytes) {
            for length in [0u16, 3, 4, 5, 7, 9, 255, u16::MAX] {
                let mut bytes = bytes.clone();
                bytes[attribute.offset..attribute.offset + 2]
                    .copy_from_slice(&length.to_ne_bytes());
                look(name, &bytes, attribute.offset);
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn classes_are_the_queues_and_nothing_else() {
    let packet = |n: u64| {
        let mut packet = Packet::new(n, 100 + n as u32);
        packet.flow = (n % 7) << 29;
        packet.tos = (n % 3 * 0x20) as u8;
        packet
    };
    for (words, classes) in [
        ("cake bandwidth 1mbit", 3 * 1024),
        ("cake diffserv8 queues 64", 8 * 64),
        ("fq_codel flows 50", 50),
        ("fq_pie flows 50", 50),
    ] {
        let mut qdisc = make(words);
        let is_waiting = |qdisc: &dyn Managed, n| {
            let queue = qdisc.queue_of(&packet(n))?;
            Some(qdisc.class(queue).expect(words).backlog.packets > 0)
        };
        assert!((0..7).all(|n| is_waiting(&*qdisc, n) != Some(true)), "{words}");
        for n in 0..300u64 {
            qdisc.enqueue(&packet(n), Time(n), &mut Discard);
            assert_eq!(is_waiting(&*qdisc, n), Some(true), "{words}");
        }
        for n in 0..5 {
            let _ = qdisc.dequeue(Time(1000 + n), &mut Discard);
        }
        let all: Vec<Class> = (0..classes).map(|n| qdisc.class(n).expect(words)).collect();
        assert_eq!(qdisc.class(classes), None, "{words}");
        let packets: u32 = all.iter().map(|class| class.backlog.packets).sum();
        let bytes: u64 = all.iter().map(|class| class.backlog.bytes).sum();
        assert_eq!((packets, bytes), (qdisc.backlog().packets, qdisc.backlog().bytes), "{words}");
        assert!(all.iter().filter(|class| class.is_used).count() >= 7, "{words}");
        assert!(all.iter().all(|class| class.is_used || class.backlog.packets == 0), "{words}");
    }
    assert_eq!(make("pfifo").class(0), None);
}

#[test]
fn classes_are_dumped_as_linux_dumps_them() {
    let now = Time(5_000_000_000);
    let class = Class {
        deficit: -5,
        count: 3,
        lastcount: 2,
        drop_next: Some(now + Span::from_millis(2)),
        p_drop: 7,
        blue_timer: Time(4_999_000_000),
        ..Class::default()
    };
    let mut room = [0; 64];
    let len = netlink::write_class("fq_codel", &class, now, &mut room).unwrap();
    let number = |bytes: &[u8]| i32::from_ne_bytes(bytes.try_into().unwrap());
    let words: Vec<i32> = room[..len].chunks(4).map(number).collect();
    // struct tc_fq_codel_xstats: type, deficit, ldelay, count, lastcount, dropping, drop_next.
    assert_eq!(words, [1, -5, 0, 3, 2, 1, 2000, 0, 0, 0]);

    let written = |class: &Class| {
        let mut room = [0; 64];
        let len = netlink::write_class("cake", class, now, &mut room).unwrap();
        let found = Attributes::new(&room[..len]);
        found.map(|found| (found.number, number(found.payload))).collect::<Vec<_>>()
    };
    // TCA_CAKE_STATS_: DEFICIT, DROPPING, COBALT_COUNT, P_DROP, BLUE_TIMER_US, DROP_NEXT_US.
    let all = [(11, -5), (13, 1), (12, 3), (15, 7), (16, 1000), (14, -2000)];
    assert_eq!(written(&class), all);
    let calm = Class { drop_next: None, p_drop: 0, ..class };
    assert_eq!(written(&calm), [(11, -5), (13, 0), (12, 3), (15, 0)]);
    // struct tc_sfq_xstats: allot.
    let len = netlink::write_class("sfq", &class, now, &mut room).unwrap();
    assert_eq!(room[..len], (-5i32).to_ne_bytes());
    assert_eq!(netlink::write_class("red", &class, now, &mut room), Ok(0));
}

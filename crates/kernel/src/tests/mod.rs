//! The functions that C calls, called as C does, with a C side of the test's own.

use core::ffi::c_void;
use std::collections::BTreeMap;
use std::vec::Vec;

use simnel_core::netlink::{Attributes, Writer};
use simnel_core::packet::{Flags, Packet};
use simnel_core::qdisc::Detail;
use simnel_core::sojourns::{bucket, BUCKETS};
use simnel_core::time::Span;

use crate::arrival::Unusual;
use crate::below::*;
use crate::line::*;
use crate::parallel::*;
use crate::settings::{wants, Request};

mod short_memory;

/// The C side: packets given back, by handle and reason, and the headers of those that have some.
#[derive(Default)]
struct Host {
    dropped: Vec<(u64, u32)>,
    headers: BTreeMap<u64, Vec<u8>>,
}

#[no_mangle]
extern "C" fn simnel_host_dropped(call: *mut c_void, packet: u64, reason: u32) {
    // SAFETY: the tests pass a `Host` that lives as long as the line.
    unsafe { &mut *call.cast::<Host>() }.dropped.push((packet, reason));
}

#[no_mangle]
extern "C" fn simnel_host_headers(
    call: *mut c_void,
    packet: u64,
    _: u32,
    length: *mut u32,
) -> *const u8 {
    // SAFETY: as above; the headers stay until the host goes.
    let Some(headers) = (unsafe { &*call.cast::<Host>() }).headers.get(&packet) else {
        return core::ptr::null();
    };
    // SAFETY: the line gives a place for it.
    unsafe { *length = headers.len() as u32 };
    headers.as_ptr()
}

#[no_mangle]
extern "C" fn simnel_host_keyed_hash(_: u64, first: u64, _: u64) -> u32 {
    first as u32
}

/// The attribute that holds `words`.
fn attribute(words: &str) -> Vec<u8> {
    let mut room = std::vec![0; words.len() + 8];
    let mut out = Writer::new(&mut room);
    out.attribute(1, words.as_bytes());
    let length = out.finish().unwrap();
    room.truncate(length);
    room
}

/// An IPv4 UDP packet of the flow `n`, from its network header on.
fn packet(n: u8) -> Vec<u8> {
    let mut bytes = std::vec![0; 28];
    bytes[0] = 0x45;
    bytes[3] = 28;
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[21] = n;
    bytes[25] = 8;
    bytes
}

/// An acknowledgement of `number` without data, from port `port` of 10.0.0.1.
fn acknowledgement(port: u8, number: u8) -> Vec<u8> {
    let mut bytes = packet(port);
    bytes.truncate(24);
    bytes.resize(40, 0);
    (bytes[3], bytes[9]) = (40, 6);
    bytes[31] = number;
    (bytes[32], bytes[33]) = (0x50, 0x10);
    bytes
}

struct Guest {
    line: *mut Line,
    host: Box<Host>,
    /// Packets that leave up to the next that is looked at, that one included.
    unseen: u32,
}

/// Surroundings of a discipline with C's pointer `context`.
fn surroundings(context: *mut c_void) -> Surroundings {
    Surroundings { context, handle: 0x8001_0000, hz: 0, wheel: 0, now: 0, seed: 1, key: [1, 2] }
}

impl Guest {
    fn new(words: &str) -> Result<Guest, String> {
        Guest::with_options(&attribute(words))
    }

    fn with_options(options: &[u8]) -> Result<Guest, String> {
        Guest::of(Request::new("simnel", options))
    }

    fn of(request: Request) -> Result<Guest, String> {
        let mut host = Box::<Host>::default();
        let surroundings = surroundings((&raw mut *host).cast());
        let mut message = Message::EMPTY;
        // SAFETY: all pointers are of values that live.
        let line = unsafe { simnel_create(&request, &surroundings, &mut message) };
        if line.is_null() {
            return Err(message.to_string());
        }
        Ok(Guest { line, host, unseen: 1 })
    }

    /// Parallel queues: a guest for each.
    fn parallel(words: &str, count: u32) -> Result<Vec<Guest>, String> {
        let mut message = Message::EMPTY;
        let options = attribute(words);
        let request = Request::new("simnel", &options);
        let mut guests = Vec::new();
        // SAFETY: all pointers are of values that live; the lines are freed once.
        unsafe {
            assert_eq!(simnel_is_parallel(&request), 1, "{words}");
            let none = surroundings(core::ptr::null_mut());
            let lines = simnel_create_parallel(&request, &none, count, &mut message);
            let Some(ready) = lines.as_mut() else { return Err(message.to_string()) };
            loop {
                let mut host = Box::<Host>::default();
                let line = simnel_take_line(ready, (&raw mut *host).cast());
                if line.is_null() {
                    break;
                }
                guests.push(Guest { line, host, unseen: 1 });
            }
            simnel_lines_free(lines);
        }
        Ok(guests)
    }

    fn line(&mut self) -> &mut Line {
        // SAFETY: it lives until this is dropped.
        unsafe { &mut *self.line }
    }

    fn enqueue(&mut self, handle: u64, flow: u8, now: u64) {
        self.enqueue_long(handle, flow, 1514, now);
    }

    fn enqueue_long(&mut self, handle: u64, flow: u8, len: u32, now: u64) {
        let bytes = packet(flow);
        let line = self.line();
        line.arrival.packet = Packet::new(handle, len);
        (line.arrival.start, line.arrival.captured) = (bytes.as_ptr(), bytes.len() as u32);
        // SAFETY: the arrival's bytes live during the call.
        unsafe { simnel_enqueue(line, None, now) }
    }

    /// A packet for which a filter has chosen `class`; its descriptor.
    fn enqueue_chosen(&mut self, handle: u64, bytes: Vec<u8>, class: u32) -> Packet {
        let remaining = bytes.len() as u32;
        let kept = self.host.headers.entry(handle).or_insert(bytes).as_ptr();
        let translation = core::ptr::null();
        let line = self.line();
        line.arrival.packet = Packet::new(handle, remaining + 14);
        (line.arrival.start, line.arrival.captured) = (kept, remaining);
        let unusual = Unusual { translation, remaining, class, is_ethernet: 0 };
        // SAFETY: the host keeps the arrival's bytes.
        unsafe { simnel_enqueue(line, Some(&unusual), 0) };
        line.arrival.packet
    }

    fn dequeue(&mut self, now: u64) -> u64 {
        let Some(&Packet { handle, enqueued, .. }) = simnel_dequeue(self.line(), now) else {
            return 0;
        };
        self.unseen -= 1;
        if self.unseen == 0 {
            self.unseen = simnel_look(self.line(), now - enqueued.0, now);
        }
        handle
    }

    fn change(&mut self, words: &str) -> Result<(), String> {
        let options = attribute(words);
        self.change_as(Request::new("simnel", &options))
    }

    fn change_as(&mut self, request: Request) -> Result<(), String> {
        let mut message = Message::EMPTY;
        // SAFETY: all pointers are of values that live; the change is forgotten once.
        unsafe {
            let change = simnel_prepare(self.line(), &request, 0, &mut message);
            let Some(ready) = change.as_mut() else { return Err(message.to_string()) };
            simnel_apply(self.line(), ready, 0);
            simnel_inherit(self.line(), ready);
            simnel_forget(change);
        }
        Ok(())
    }

    fn words(&mut self) -> String {
        let mut room = std::vec![0; 18_432];
        // SAFETY: there is as much room as stated.
        let length = unsafe { simnel_options(self.line(), room.as_mut_ptr(), room.len() as u32) };
        let mut attributes = Attributes::new(&room[..length as usize]);
        let words = attributes.next().unwrap().payload;
        let words = std::ffi::CStr::from_bytes_with_nul(words).unwrap();
        words.to_str().unwrap().to_owned()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // SAFETY: it was made by `simnel_create`.
        unsafe { simnel_destroy(self.line) }
    }
}

/// Only what Linux's look at again does: of cake the MTU, of sfb the queue length.
#[test]
fn a_change_goes_by_the_device_as_it_is_now() {
    // The first tin's target is the time that one and a half of the longest frames take.
    let target = |guest: &mut Guest| match guest.line().qdisc.snapshot().detail {
        Detail::Cake(stats) => stats.tins[0].target,
        other => panic!("{other:?}"),
    };
    let options = attribute("");
    let longer = || Request::new("simnel", &options).on(9014, 7);
    let mut alone = std::vec![Guest::new("cake bandwidth 1mbit besteffort").unwrap()];
    let parallel = Guest::parallel("mq cake bandwidth 1mbit", 1).unwrap();
    for guest in alone.iter_mut().chain(&mut { parallel }) {
        assert_eq!(target(guest), Span(1514 * 8000 * 3 / 2));
        guest.change("").unwrap();
        assert_eq!(target(guest), Span(1514 * 8000 * 3 / 2));
        guest.change_as(longer()).unwrap();
        assert_eq!(target(guest), Span(9014 * 8000 * 3 / 2));
        guest.change("").unwrap();
        assert_eq!(target(guest), Span(1514 * 8000 * 3 / 2));
    }

    // `struct tc_sfb_qopt` without a limit.
    let mut room = [0; 40];
    let mut out = Writer::new(&mut room);
    out.nest(1, |out| out.words(&[0, 0, 25, 20, 33, 3, 0, 10, 20]));
    out.finish().unwrap();
    for (kind, options, before, after) in [
        ("sfb", &room[..], "limit 1000p", "limit 7p"),
        ("fq_codel", &[], "quantum 1514", "quantum 1514"),
        ("fq_pie", &[], "quantum 1514", "quantum 1514"),
        ("sfq", &[0; 72], "quantum 1514b", "quantum 1514b"),
    ] {
        let mut guest = Guest::of(Request::new(kind, options)).unwrap();
        let words = |guest: &mut Guest| guest.line().qdisc.config().to_string();
        assert!(words(&mut guest).contains(before), "{}", words(&mut guest));
        guest.change_as(Request::new(kind, options).on(9014, 7)).unwrap();
        assert!(words(&mut guest).contains(after), "{}", words(&mut guest));
    }
}

/// As with Linux's sfb: a device without a queue lets none wait.
#[test]
fn a_change_of_sfb_on_a_device_without_a_queue_lets_nothing_wait() {
    let mut room = [0; 40];
    let mut out = Writer::new(&mut room);
    out.nest(1, |out| out.words(&[0, 0, 25, 20, 33, 3, 0, 10, 20]));
    out.finish().unwrap();
    let mut guest = Guest::of(Request::new("sfb", &room)).unwrap();
    guest.enqueue(1, 1, 0);
    assert_eq!(guest.host.dropped.len(), 0);
    guest.change_as(Request::new("sfb", &room).on(1514, 0)).unwrap();
    guest.enqueue(2, 1, 0);
    assert_eq!((guest.host.dropped.len(), guest.dequeue(0)), (2, 0));
}

/// Packets go past an empty queue where Linux's do. A shaper, or a discipline that keeps accounts
/// of a flow while it is idle, must see each packet.
#[test]
fn an_empty_queue_is_passed_by_only_where_nothing_is_kept_of_it() {
    for (words, passes) in [
        ("codel", true),
        ("fq_codel", true),
        ("fq_codel savings 15kb", false),
        ("sfq", true),
        ("pfifo", true),
        ("pfifo limit 0", false),
        ("bfifo limit 1000", false),
        ("pie", false),
        ("cake", false),
        ("tbf rate 1mbit burst 15k limit 30k codel", false),
    ] {
        let mut guest = Guest::new(words).unwrap();
        assert_eq!(simnel_wants(guest.line()) & wants::BYPASS != 0, passes, "{words}");
    }
    let mut guest = Guest::new("codel").unwrap();
    guest.change("pie").unwrap();
    assert_eq!(simnel_wants(guest.line()) & wants::BYPASS, 0);
}

/// Of others only while they have nothing in mind.
#[test]
fn a_queue_at_rest_is_passed_by() {
    let red = "red limit 100kb min 3000 max 9000 burst 4 avpkt 1000";
    let full = "red limit 1000 min 300 max 900 burst 4 avpkt 100";
    for (words, rests) in [("pie", true), (red, true), (full, false), ("cake", false)] {
        let mut guest = Guest::new(words).unwrap();
        assert_eq!(simnel_wants(guest.line()) & wants::REST != 0, rests, "{words}");
    }
    let mut guest = Guest::new(red).unwrap();
    assert_eq!(simnel_is_at_rest(guest.line()), 1);
    (0..3).for_each(|n| guest.enqueue(n + 1, 1, n));
    assert_eq!(simnel_is_at_rest(guest.line()), 0);
    while guest.dequeue(10) != 0 {}
    // The average is of a queue that was not always empty.
    assert_eq!(simnel_is_at_rest(guest.line()), 0);
}

/// A packet that the parent has taken out to look at counts against the limit, until it leaves.
/// Where the queue can show its first packet, that stays there.
#[test]
fn a_packet_that_the_parent_looks_at_counts_as_queued() {
    for (words, shows) in [
        ("codel limit 3", false),
        ("fq_codel limit 3 drop_batch 1", false),
        ("fq_pie limit 3", false),
        ("pie limit 3", false),
        ("sfq limit 3", false),
        ("sfb limit 3", true),
        ("pfifo limit 3", true),
    ] {
        let mut guest = Guest::new(words).unwrap();
        guest.enqueue(1, 1, 0);
        assert_eq!(simnel_peek(guest.line()).map(|packet| packet.handle), shows.then_some(1));
        if !shows {
            assert_eq!(guest.dequeue(0), 1);
            simnel_lend(guest.line(), 1, 1514, 0);
        }
        (2..=4).for_each(|handle| guest.enqueue(handle, 1, 0));
        assert_eq!(guest.host.dropped.len(), 1, "{words}");
        match shows {
            true => assert_eq!(guest.dequeue(0), 1),
            false => simnel_lend(guest.line(), 0, 0, 0),
        }
        (5..=6).for_each(|handle| guest.enqueue(handle, 1, 0));
        assert_eq!(guest.host.dropped.len(), 2, "{words}");
    }
}

/// The C side subtracts what the descriptor says of a packet that leaves.
#[test]
fn what_leaves_is_as_long_as_what_came() {
    let shaper = "tbf rate 1gbit burst 600kb limit 2mb";
    for words in
        ["cake", "cake bandwidth 1gbit atm", shaper, "htb", "drr", "fq_codel", "pie", "sfq"]
    {
        for len in [2, 1514, (1 << 19) - 1] {
            let mut guest = Guest::new(words).unwrap();
            guest.enqueue_long(1, 1, len, 0);
            let left = simnel_dequeue(guest.line(), 0).map(|left| (left.len, left.segments()));
            assert_eq!(left, Some((len, 1)), "{words}");
        }
    }
}

#[test]
fn packets_come_back_flow_by_flow_at_the_rate() {
    let mut guest = Guest::new("cake bandwidth 1mbit besteffort raw").unwrap();
    for (handle, flow) in [(1, 7), (2, 7), (3, 7), (4, 8)] {
        guest.enqueue(handle, flow, 0);
    }
    assert_eq!((guest.dequeue(0), guest.dequeue(0)), (1, 0));
    let due = simnel_next_event(guest.line());
    assert_eq!(due, 12_112_000);
    // The new flow goes first.
    assert_eq!(guest.dequeue(due), 4);
    simnel_reset(guest.line());
    assert_eq!(guest.host.dropped.len(), 2);
    assert_eq!(simnel_next_event(guest.line()), u64::MAX);
}

/// Each packet counts with the time from its arrival to its end in the queue.
#[test]
fn times_in_the_queue_are_counted() {
    let mut guests = Guest::parallel("mq cake bandwidth 12112kbit raw", 2).unwrap();
    let mut both = Told::new();
    for (guest, waits) in guests.iter_mut().zip([2_000_000, 40_000_000]) {
        guest.enqueue(1, 1, 100);
        assert_eq!(guest.dequeue(100 + waits), 1);
        guest.enqueue(2, 1, 100 + waits);
        simnel_reset(guest.line());
        both.read(guest);
    }
    let told = both.statistics(&mut guests[0]);
    assert!(told.contains(r#""sojourn_ns":40000000"#), "{told}");
    let expected: Vec<u64> = (0..BUCKETS)
        .map(|n| [2, 40].map(Span::from_millis).map(bucket).contains(&n).into())
        .collect();
    assert_eq!(counts(&told), expected);
}

/// Of a fast line's packets some stand for all, whichever flow's turn it is; of a slow one's each
/// does for itself.
#[test]
fn packets_of_a_fast_line_stand_for_others() {
    let waited = bucket(Span::from_millis(3));
    // Packets in all, and of these each sixteenth, which has waited.
    let passed = |apart: u64, packets: u64| {
        let mut guest = Guest::new("pfifo").unwrap();
        for n in 0..packets {
            let now = 1_000_000_000 + n * apart;
            guest.enqueue(1, 1, if n % 16 == 0 { now - 3_000_000 } else { now });
            assert_eq!(guest.dequeue(now), 1);
        }
        let mut told = Told::new();
        told.read(&mut guest);
        let counts = counts(&told.statistics(&mut guest));
        (counts.iter().sum::<u64>(), counts[waited])
    };
    assert_eq!(passed(60_000, 1_600), (1_600, 100));
    let (all, late) = passed(1_000, 160_000);
    assert!((159_960..=160_000).contains(&all), "{all}");
    assert!((9_000..11_000).contains(&late), "{late}");
}

/// The counts of sojourns in statistics as JSON.
fn counts(told: &str) -> Vec<u64> {
    let (_, counts) = told.split_once(r#""sojourns":["#).unwrap();
    counts.split_once(']').unwrap().0.split(',').map(|n| n.parse().unwrap()).collect()
}

/// Counters as C reads them.
struct Told(*mut Counters);

impl Told {
    fn new() -> Told {
        Told(simnel_counters())
    }

    /// The guest's `overlimits`.
    fn read(&mut self, guest: &mut Guest) -> u32 {
        // SAFETY: it is freed with this value, and nobody else has it.
        simnel_read(guest.line(), unsafe { &mut *self.0 })
    }

    /// Contents of `TCA_STATS_APP`.
    fn statistics(&mut self, guest: &mut Guest) -> String {
        let mut room = std::vec![0; 12_288];
        // SAFETY: as above; the room has the size that is said.
        let length = unsafe {
            simnel_statistics(guest.line(), &*self.0, room.as_mut_ptr(), room.len() as u32)
        };
        std::string::String::from_utf8_lossy(&room[..length as usize]).into_owned()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // SAFETY: it comes from `simnel_counters`.
        unsafe { simnel_counters_free(self.0) }
    }
}

/// The kernel's own counters go on where another discipline takes the place of one.
#[test]
fn overlimits_survive_changes() {
    let mut guest = Guest::new("tbf rate 1mbit burst 2kb limit 100kb").unwrap();
    let mut told = 0;
    for words in [
        "rate 2mbit",
        "cake bandwidth 1mbit",
        "bandwidth 2mbit",
        "tbf rate 1mbit burst 2kb limit 100kb",
    ] {
        for handle in 1..=3 {
            guest.enqueue(handle, 1, 0);
        }
        assert_eq!([guest.dequeue(0), guest.dequeue(0)], [1, 0], "{words}");
        let before = Told::new().read(&mut guest);
        assert!(before > told, "{words}: {before} after {told}");
        simnel_reset(guest.line());
        guest.change(words).unwrap();
        told = Told::new().read(&mut guest);
        assert_eq!(told, before, "{words}");
    }
}

/// If a message has no room for all, the text comes first.
#[test]
fn statistics_are_as_long_as_there_is_room() {
    let mut guest = Guest::new("cake bandwidth 10mbit diffserv8").unwrap();
    let mut told = Told::new();
    told.read(&mut guest);
    let numbers = |room: &[u8]| Attributes::new(room).map(|one| one.number).collect::<Vec<_>>();
    let mut write = |most: usize| {
        let mut room = std::vec![0; most];
        let out = room.as_mut_ptr();
        // SAFETY: the counters are freed with `told`; the room has the size that is said.
        let length = unsafe { simnel_statistics(guest.line(), &*told.0, out, most as u32) };
        room.truncate(length as usize);
        room
    };
    let all = write(12_288);
    assert_eq!(numbers(&all), [2, 3]);
    let text = write(all.len() - 1);
    assert_eq!(numbers(&text), [2]);
    assert!(all.starts_with(&text));
    assert_eq!(numbers(&write(text.len())), [2]);
    assert_eq!(write(text.len() - 1), []);
    assert_eq!(write(0), []);
}

#[test]
fn a_full_queue_gives_packets_back() {
    let mut guest = Guest::new("pfifo limit 2").unwrap();
    for handle in 1..=3 {
        guest.enqueue(handle, 1, 0);
    }
    assert_eq!(guest.host.dropped, [(3, 0)]);
    assert_eq!([guest.dequeue(0), guest.dequeue(0), guest.dequeue(0)], [1, 2, 0]);
}

/// Each segment of a super-packet is paid for once with its headers, at a byte per microsecond. It
/// has 14 + 28 bytes of headers and 500 of payload, the last one 100.
#[test]
fn a_super_packet_costs_what_its_segments_do() {
    let (headers, segments, payload) = (14 + 28, 10, 9 * 500 + 100);
    let whole = headers + payload;
    for (words, len, counted, expected) in [
        ("raw", whole + 9 * headers, segments, payload + 10 * headers),
        // From a guest.
        ("raw", whole + 9 * headers, 0, payload + 10 * headers),
        // The kernel did not find the headers.
        ("raw", whole, segments, payload + 10 * headers),
        // 14 bytes less and 20 more.
        ("noatm overhead 20", whole + 9 * headers, segments, payload + 10 * (headers + 6)),
        ("noatm overhead 20 mpu 200", whole + 9 * headers, 0, payload + 10 * (headers + 6) + 52),
        // 548 bytes are 12 cells, 148 are 4.
        ("atm overhead 20", whole + 9 * headers, 0, 53 * (9 * 12 + 4)),
    ] {
        let words = format!("cake bandwidth 8mbit besteffort no-split-gso {words}");
        let mut guest = Guest::new(&words).unwrap();
        let bytes = packet(1);
        for handle in 1..=2 {
            let line = guest.line();
            line.arrival.packet = Packet::new(handle, len);
            line.arrival.packet.gso_size = 500;
            line.arrival.packet.gso_segs = counted as u16;
            (line.arrival.start, line.arrival.captured) = (bytes.as_ptr(), bytes.len() as u32);
            let translation = core::ptr::null();
            let unusual = Unusual { translation, remaining: whole - 14, class: 0, is_ethernet: 0 };
            // SAFETY: the arrival's bytes live during the call.
            unsafe { simnel_enqueue(line, Some(&unusual), 0) };
        }
        let left = simnel_dequeue(guest.line(), 0).map(|left| (left.len, left.segments()));
        assert_eq!(left, Some((len, segments)), "{words}");
        let due = simnel_next_event(guest.line());
        assert_eq!(due, u64::from(expected) * 1_000, "{words}, {len} bytes");
    }
}

/// A filter picks the queue; whose acknowledgement a packet is, its headers tell.
#[test]
fn acknowledgements_of_others_stay_in_a_chosen_queue() {
    let mut guest = Guest::new("cake bandwidth 64kbit besteffort ack-filter").unwrap();
    for port in 1..=30 {
        guest.enqueue_chosen(port.into(), acknowledgement(port, port), 0x8001_0005);
    }
    assert_eq!(guest.host.dropped, []);
    for number in 31..=33 {
        guest.enqueue_chosen(number.into(), acknowledgement(1, number), 0x8001_0005);
    }
    assert_eq!(guest.host.dropped, [(1, 3), (31, 3)]);
}

/// Numbers that Linux's cake takes for none leave the hashes as they are.
#[test]
fn a_filter_of_cake_names_queues_and_hosts_to_1024() {
    let mut guest = Guest::new("cake").unwrap();
    let plain = guest.enqueue_chosen(1, packet(7), 0);
    for (handle, class, queue, host) in [
        (2, 0x8001_0005, Some(4), None),
        (3, 0x0007_0400, Some(1023), Some(7)),
        (4, 0x0400_0401, None, Some(1024)),
        (5, 0x0401_0000, None, None),
        (6, 0x0000_0001, Some(0), None),
    ] {
        let found = guest.enqueue_chosen(handle, packet(7), class);
        assert_eq!(found.flow as u32, queue.unwrap_or(plain.flow as u32), "{class:x}");
        assert_eq!(found.flow >> 32, plain.flow >> 32, "{class:x}");
        let hosts = host.map_or((plain.src_host, plain.dst_host), |host| (host, host));
        assert_eq!((found.src_host, found.dst_host), hosts, "{class:x}");
    }
}

/// Packets that no filter knows are dropped where Linux drops them; priorities go before filters.
#[test]
fn a_filter_names_a_flow_of_sfb_and_a_queue_of_dualpi2() {
    for (words, must_choose, queues) in [
        ("cake", false, 0),
        ("dualpi2", false, 2),
        ("fq_codel flows 9", true, 9),
        ("htb", false, 0),
        ("sfb", true, 0),
        ("sfq divisor 64", true, 64),
    ] {
        let mut guest = Guest::new(words).unwrap();
        assert_eq!(simnel_wants(guest.line()) & wants::CHOICE != 0, must_choose, "{words}");
        assert_eq!(simnel_queues(guest.line()), queues, "{words}");
    }
    let mut guest = Guest::new("sfb").unwrap();
    assert_eq!(guest.enqueue_chosen(1, packet(7), 0x8001_0005).flow, 5);
    assert_eq!(guest.enqueue_chosen(2, packet(8), 0x0007_0005).flow, 5);
    assert!(guest.enqueue_chosen(3, packet(7), 0).flow > 0xffff);
    let mut guest = Guest::new("dualpi2").unwrap();
    for (chosen, class) in [(0x8001_0001, 1), (0x0007_0002, 2), (0x8001_0003, 0)] {
        let found = guest.enqueue_chosen(chosen, packet(7), chosen as u32);
        assert_eq!(found.class, 0x8001_0000 | class, "{chosen:x}");
    }
}

#[test]
fn settings_change_in_place_and_mistakes_are_told() {
    let mut guest = Guest::new("cake bandwidth 1mbit").unwrap();
    guest.enqueue(1, 1, 0);
    guest.change("bandwidth 5mbit diffserv4").unwrap();
    assert!(guest.words().starts_with("cake bandwidth 5Mbit diffserv4 "), "{}", guest.words());
    assert_eq!(guest.dequeue(0), 1);
    guest.enqueue(2, 1, 0);
    guest.change("fq_codel limit 7").unwrap();
    assert_eq!(guest.host.dropped, [(2, 4)]);
    assert!(guest.words().starts_with("fq_codel limit 7p "), "{}", guest.words());
    guest.change("cake").unwrap();
    let error = guest.change("bandwith 1mbit").unwrap_err();
    assert!(error.starts_with("simnel: `bandwith` (word 1) "), "{error}");
    assert!(error.contains("`bandwidth`"), "{error}");
    let mut red = Guest::new("red limit 400kb avpkt 1000 min 10kb").unwrap();
    let error = red.change("min 60kb").unwrap_err();
    assert!(error.starts_with("simnel: in what runs, `30Kb` (word 7) is out of"), "{error}");
    let error = Guest::new("caek").err().unwrap();
    assert!(error.contains("`cake`"), "{error}");
    let mut options = attribute("cake nat");
    // Behind the attribute's header of four bytes.
    for (bytes, place) in [([0xff, b'a'], 6), ([b'n', 0xc3], 7)] {
        options[9..11].copy_from_slice(&bytes);
        let error = Guest::with_options(&options).err().unwrap();
        assert_eq!(error, std::format!("simnel: the words are not UTF-8 (byte {place})"));
    }
}

/// Settings without room in a message hide, and so do the disciplines behind them.
#[test]
fn settings_that_cannot_be_shown_are_refused() {
    let tree = |classes: u32| {
        let class = |n| format!(" class 1:{n:x} rate 1mbit ceil 10mbit fq_codel");
        "htb default 10".to_owned() + &(0x10..0x10 + classes).map(class).collect::<String>()
    };
    let mut guest = Guest::new(&tree(90)).unwrap();
    assert!((12_288..18_000).contains(&guest.words().len()), "{}", guest.words().len());
    let error = Guest::new(&tree(120)).err().unwrap();
    assert!(error.contains("bytes of words are too many: at most 18000"), "{error}");
    let error = guest.change(&tree(120)).unwrap_err();
    assert!(error.contains("bytes of words are too many"), "{error}");
    assert!(guest.words().len() < 18_000);
}

#[test]
fn one_discipline_stands_below_another_and_none_below_that() {
    let tbf = "tbf rate 1mbit burst 15k limit 30k ";
    let mut guest = Guest::new(&(tbf.to_owned() + "pie")).unwrap();
    for (below, is_deep) in [(tbf, false), ("tbf rate 1mbit burst 15k pie", true), ("drr", false)] {
        let words = tbf.to_owned() + below;
        for error in [Guest::new(&words).err(), guest.change(&words).err()] {
            let is_refused = error.is_some_and(|error| error.contains("stack is small"));
            assert_eq!(is_refused, is_deep, "{words}");
        }
    }
}

#[test]
fn parallel_queues_are_made_changed_and_shown_together() {
    let mut guests = Guest::parallel(" mq  cake bandwidth 12112kbit raw", 3).unwrap();
    assert_eq!(guests.len(), 3);
    for (n, guest) in guests.iter_mut().enumerate() {
        let words = guest.words();
        assert!(words.starts_with("mq cake bandwidth 12112Kbit besteffort "), "{words}");
        (0..20).for_each(|m| guest.enqueue(m + 1, n as u8, 0));
    }
    // A packet takes 1 ms of the line that all of them share, two may go early.
    let mut sent = std::vec![0; 3];
    for micros in 0..15_000 {
        for (guest, sent) in guests.iter_mut().zip(&mut sent) {
            *sent += u32::from(guest.dequeue(micros * 1_000) != 0);
        }
    }
    let all: u32 = sent.iter().sum();
    assert!((15..=18).contains(&all) && sent.iter().all(|&one| one >= 4), "{sent:?}");

    for guest in &mut guests {
        guest.change("bandwidth 5mbit").unwrap();
        assert!(guest.words().starts_with("mq cake bandwidth 5Mbit "), "{}", guest.words());
        guest.change("mq cake bandwidth 6mbit flows").unwrap();
        for (words, part) in [
            ("cake bandwidth 5mbit", "`cake` (word 1): parallel queues run"),
            ("savings 15kb", "`savings`"),
            ("mq cake bandwidth 1mbit bandwith", "`bandwith` (word 5)"),
        ] {
            let error = guest.change(words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
        assert!(guest.words().contains(" 6Mbit besteffort flows "), "{}", guest.words());
    }
    for (words, part) in [
        ("mq", "`nothing` (word 2)"),
        ("mq fq_codel", "`fq_codel` (word 2)"),
        ("mq cake", "`bandwidth`"),
        ("mq cake bandwidth 1mbit autorate-ingress", "`autorate-ingress`"),
        ("mq cake bandwidth 1mbit savings 15kb", "`savings`"),
        ("mq cake bandwidth 1mbit host-guard", "`host-guard`"),
    ] {
        let error = Guest::parallel(words, 3).err().unwrap();
        assert!(error.contains(part), "{words}: {error}");
    }
    let error = Guest::new("cake").unwrap().change("mq cake bandwidth 1mbit").unwrap_err();
    assert!(error.contains("`mq` (word 1): one queue runs"), "{error}");
}

#[test]
fn queues_are_shown_as_classes() {
    let class = |guest: &mut Guest, n| {
        let mut shown = Shown { packets: 0, bytes: 0, is_used: 0, length: 0, statistics: [0; 256] };
        (simnel_class(guest.line(), n, 0, &mut shown) != 0).then_some((shown.is_used, shown.bytes))
    };
    let mut guest = Guest::new("fq_codel flows 16").unwrap();
    guest.enqueue(1, 1, 0);
    let used: Vec<_> = (0..16).filter(|&n| class(&mut guest, n).unwrap().0 != 0).collect();
    assert_eq!(used.len(), 1);
    assert!(class(&mut guest, used[0]).unwrap().1 > 0);
    assert_eq!(class(&mut guest, 16), None);

    let mut guest = Guest::new("sfq divisor 16").unwrap();
    guest.enqueue(1, 1, 0);
    let used: Vec<_> = (0..16).filter(|&n| class(&mut guest, n).unwrap().0 != 0).collect();
    assert_eq!(used.len(), 1);
    assert!(class(&mut guest, used[0]).unwrap().1 > 0);
    assert_eq!(class(&mut guest, 16), None);

    let mut guest = Guest::new("red limit 100kb avpkt 1000").unwrap();
    assert_eq!(class(&mut guest, 0), Some((1, 0)));
    assert_eq!(class(&mut guest, 1), None);
}

/// The C side's part: packets wait in a queue of the test's own.
#[test]
fn red_and_sfb_decide_about_packets_that_wait_below() {
    let decide = |guest: &mut Guest, handle, packets: u32| {
        let mut bytes = packet(1);
        // ECN-capable.
        bytes[1] = 2;
        let line = guest.line();
        line.arrival.packet = Packet::new(handle, 1000);
        (line.arrival.start, line.arrival.captured) = (bytes.as_ptr(), bytes.len() as u32);
        let remaining = bytes.len() as u32;
        let translation = core::ptr::null();
        let unusual = Unusual { translation, remaining, class: 0, is_ethernet: 0 };
        // SAFETY: the arrival's bytes live during the call.
        let is_in = unsafe { simnel_decide(line, &unusual, packets, 1000 * packets, 0) } != 0;
        is_in.then(|| line.arrival.packet.flags.has(Flags::MARKED))
    };
    let red = "red limit 60000 min 5000 max 5001 avpkt 1000 burst 8 ecn";
    for (words, waiting, fate) in [(red, 50, Some(true)), ("sfb max 25 target 1000", 25, None)] {
        let mut guest = Guest::new(words).unwrap();
        guest.enqueue(1, 1, 0);
        simnel_open(guest.line());
        assert_eq!(guest.host.dropped, [(1, 4)], "{words}");
        assert_eq!(simnel_next_event(guest.line()), u64::MAX);
        // Those that are refused below leave no trace, but for RED's average.
        for n in 0..3 {
            assert_eq!(decide(&mut guest, n, 0), Some(false), "{words}");
            simnel_refused(guest.line(), 0);
        }
        let fates: Vec<_> = (0..waiting + 50).map(|n| decide(&mut guest, 1, n)).collect();
        let first = fates.iter().position(|found| *found != Some(false)).unwrap();
        assert!(fates[first..].iter().all(|found| *found == fate), "{words}: {fates:?}");
        assert!((6..=25).contains(&first) && (first == 25 || words == red), "{words}: {first}");
        simnel_left(guest.line(), 0);
        simnel_found_empty(guest.line(), 0);
        // Only its own packets go back to C.
        assert_eq!(guest.host.dropped.len(), 1);
        assert!(decide(&mut guest, 1, 0).is_some());
    }
    // What decides about packets that leave has no such part.
    let mut guest = Guest::new("codel").unwrap();
    assert_eq!(decide(&mut guest, 1, 5000), Some(false));
}

//! Charged lengths: every overhead keyword, cells, minimum sizes, super-packets.

use crate::driver::{packet, with, Driver};

/// Cells as in facts A.1: 0 none, 1 ATM, 2 PTM.
const NONE: u32 = 0;
const ATM: u32 = 1;
const PTM: u32 = 2;

/// Words with overhead, minimum and cells that they stand for.
const WORDS: &[(&str, i32, u32, u32)] = &[
    ("overhead 0", 0, 0, NONE),
    ("overhead -64", -64, 0, NONE),
    ("overhead 256", 256, 0, NONE),
    ("overhead 10 mpu 100", 10, 100, NONE),
    ("overhead 10 atm", 10, 0, ATM),
    ("overhead 10 ptm", 10, 0, PTM),
    ("overhead 10 atm noatm", 10, 0, NONE),
    ("conservative", 48, 0, ATM),
    ("ipoa-vcmux", 8, 0, ATM),
    ("ipoa-llcsnap", 16, 0, ATM),
    ("bridged-vcmux", 24, 0, ATM),
    ("bridged-llcsnap", 32, 0, ATM),
    ("pppoa-vcmux", 10, 0, ATM),
    ("pppoa-llc", 14, 0, ATM),
    ("pppoe-vcmux", 32, 0, ATM),
    ("pppoe-llcsnap", 40, 0, ATM),
    ("pppoe-ptm", 30, 0, PTM),
    ("bridged-ptm", 22, 0, PTM),
    ("ethernet", 38, 84, NONE),
    ("docsis", 18, 64, NONE),
    // Keywords add up; `overhead` and `conservative` set.
    ("ethernet ether-vlan", 42, 84, NONE),
    ("ether-vlan ether-vlan", 8, 0, NONE),
    ("pppoe-ptm ether-vlan", 34, 0, PTM),
    ("pppoe-vcmux via-ethernet", 32, 0, ATM),
    ("overhead 20 ether-vlan", 24, 0, NONE),
    ("ether-vlan overhead 20", 20, 0, NONE),
    ("ethernet conservative", 48, 84, ATM),
    ("bridged-vcmux docsis", 42, 64, NONE),
    ("docsis bridged-vcmux", 42, 64, ATM),
    ("bridged-vcmux ptm", 24, 0, PTM),
    ("overhead -20 mpu 64 atm", -20, 64, ATM),
];

/// Bytes on the line of a network-layer packet of `len` bytes.
fn on_the_line(len: u32, overhead: i32, mpu: u32, cells: u32) -> u32 {
    let len = (len as i32 + overhead).max(0).max(mpu as i32) as u32;
    match cells {
        ATM => len.div_ceil(48) * 53,
        PTM => len + len.div_ceil(64),
        _ => len,
    }
}

#[test]
fn every_keyword_adds_its_bytes() {
    for (words, overhead, mpu, cells) in WORDS {
        let mut driver = Driver::new(&format!("besteffort bandwidth 10mbit {words}"));
        for len in [15, 54, 60, 61, 62, 78, 98, 110, 158, 590, 1004, 1500, 1514] {
            driver.put(packet(1, len));
            let sent = driver.take().unwrap();
            let expected = on_the_line(len - 14, *overhead, *mpu, *cells);
            assert_eq!((sent.adj_len, sent.len), (expected, len), "`{words}`, {len}");
        }
        let stats = driver.stats();
        assert_eq!((stats.min_network_size, stats.max_network_size), (1, 1500), "`{words}`");
        let ends = [1, 1500].map(|len| on_the_line(len, *overhead, *mpu, *cells) as u16);
        assert_eq!([stats.min_adj_size, stats.max_adj_size], ends, "`{words}`");
    }
}

#[test]
fn raw_takes_sizes_as_they_are() {
    for words in ["", "raw", "raw ethernet", "overhead 40 raw"] {
        let mut driver = Driver::new(words);
        driver.put(packet(1, 1514));
        let sent = driver.take().unwrap();
        // Overhead words after `raw` count, but from the start of the frame.
        let expected = if words == "raw ethernet" { 1552 } else { 1514 };
        assert_eq!(sent.adj_len, expected, "`{words}`");
        assert_eq!(driver.stats().max_network_size, 1514);
    }
    // Minimum and cells need no overhead.
    let mut driver = Driver::new("raw mpu 100 atm");
    driver.put(packet(1, 60));
    assert_eq!(driver.take().unwrap().adj_len, 3 * 53);
}

#[test]
fn the_overhead_counts_from_the_network_header_wherever_that_is() {
    let mut driver = Driver::new("overhead 10");
    for offset in [0u8, 14, 18, 22] {
        let mut tagged = packet(1, 1500 + u32::from(offset));
        tagged.network_offset = offset;
        driver.put(tagged);
        assert_eq!(driver.take().unwrap().adj_len, 1510);
    }
    // A packet that is shorter than its link header is empty, not enormous.
    let mut runt = packet(1, 10);
    runt.network_offset = 200;
    driver.put(runt);
    assert_eq!(driver.take().unwrap().adj_len, 10);
}

#[test]
fn the_mean_offset_of_the_network_header_is_learnt() {
    let mut driver = Driver::new("");
    let mut tagged = packet(1, 1500);
    tagged.network_offset = 18;
    for _ in 0..3_000 {
        driver.put(tagged);
        driver.take();
    }
    assert_eq!(driver.stats().avg_hdr_offset, 18);
}

#[test]
fn a_super_packet_is_charged_for_each_segment() {
    for (words, overhead, mpu, cells) in WORDS {
        let mut driver = Driver::new(&format!("bandwidth 10mbit no-split-gso {words}"));
        // 54 bytes of headers, of which 14 are Ethernet's; ten segments of 1000, one of 7.
        let mut long = packet(1, 54 + 10_007);
        (long.gso_size, long.gso_segs, long.header_len) = (1000, 11, 54);
        driver.put(long);
        let begin = driver.now;
        let charged = driver.take().unwrap().adj_len;
        let line = |len| on_the_line(len, *overhead, *mpu, *cells);
        assert_eq!(charged, 10 * line(1040) + line(47), "`{words}`");
        // And it takes its time: 0.8 us a byte.
        driver.put(packet(1, 64));
        driver.take();
        assert_eq!(driver.now.since(begin).0, u64::from(charged) * 800, "`{words}`");
    }
}

/// Sizes come in runs, and the cost of the last one is kept. It holds for the same length, behind a
/// link header of the same length, under the same framing.
#[test]
fn a_cost_that_is_kept_is_kept_for_the_same_packet_only() {
    let mut driver = Driver::new("besteffort overhead 0");
    let cost = |driver: &mut Driver, packet| {
        driver.put(packet);
        driver.take().expect("a packet waits").adj_len
    };
    // Until the moving average of the header's offset stands still: then costs are kept.
    for _ in 0..10_000 {
        assert_eq!(cost(&mut driver, packet(1, 1514)), 1500);
    }
    // The same length behind a VLAN tag.
    let tagged = with(packet(1, 1514), |packet| packet.network_offset = 18);
    assert_eq!(cost(&mut driver, tagged), 1496);
    assert_eq!(driver.stats().min_network_size, 1496);
    for _ in 0..10_000 {
        assert_eq!(cost(&mut driver, packet(1, 1514)), 1500);
    }
    for (words, expected) in [("overhead 44", 1544), ("overhead 44 atm", 1749), ("raw", 1514)] {
        driver.change(&format!("besteffort {words}"));
        assert_eq!(cost(&mut driver, packet(1, 1514)), expected, "{words}");
        for _ in 0..10 {
            cost(&mut driver, packet(1, 1514));
        }
    }
}

/// Lengths come in runs, of which the cost is remembered; a super-packet of the same length has
/// another.
#[test]
fn a_super_packet_costs_its_own_within_a_run() {
    let mut driver = Driver::new("overhead 10 no-split-gso memlimit 1mb");
    let plain = with(packet(1, 3_000), |p| p.network_offset = 0);
    let long = with(plain, |p| (p.gso_size, p.gso_segs, p.header_len) = (1000, 3, 40));
    let mut cost = |packet| {
        driver.put(packet);
        driver.take().expect("a packet waits").adj_len
    };
    let (alone, whole) = (cost(plain), cost(long));
    // Two more headers and overheads.
    assert_eq!((alone, whole), (3_010, 3_010 + 2 * 50));
    for packet in [plain, plain, long, plain, long, long, plain, plain] {
        assert_eq!(cost(packet), if packet.gso_segs > 0 { whole } else { alone });
    }
}

//! The gateway's promises, one function each. Every case makes its own world.

use std::cell::Cell;
use std::net::UdpSocket;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use simnel_core::qdisc::Config;
use simnel_gateway::Direction;
use simnel_testbed::witness::{within_tries, Try, Witness};

use crate::accuracy;
use crate::bridge;
use crate::cgroups;
use crate::clocks;
use crate::control;
use crate::flows;
use crate::hangs;
use crate::in_kernel;
use crate::kernel;
use crate::marked;
use crate::marks;
use crate::memory;
use crate::names;
use crate::others;
use crate::realtime;
use crate::rules;
use crate::soak;
use crate::steered;
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, bound, option, packet_socket, receive_tos, World};

/// A case by name.
pub type Case = (&'static str, fn());

/// Slow lines only, or none that is measured: three of these have room beside each other.
pub const TOGETHER: &[Case] = &[
    // The longest first.
    ("what_is_held_stays_the_same", soak::what_is_held_stays_the_same),
    (
        "a_stopped_daemon_lets_a_bridges_frames_pass",
        bridge::a_stopped_daemon_lets_a_bridges_frames_pass,
    ),
    ("a_stopped_daemon_lets_traffic_pass", hangs::a_stopped_daemon_lets_traffic_pass),
    ("a_stopped_thread_lets_traffic_pass", hangs::a_stopped_thread_lets_traffic_pass),
    ("a_stopped_lane_lets_traffic_pass", hangs::a_stopped_lane_lets_traffic_pass),
    ("a_thread_that_ends_lets_traffic_pass", hangs::a_thread_that_ends_lets_traffic_pass),
    (
        "a_daemon_killed_for_memory_lets_traffic_pass",
        memory::a_daemon_killed_for_memory_lets_traffic_pass,
    ),
    ("both_directions_are_shaped_v4", || both_directions_are_shaped("10.77.2.2")),
    ("both_directions_are_shaped_v6", || both_directions_are_shaped("fd77:2::2")),
    ("the_routers_own_traffic_is_shaped_v4", || own_traffic_is_shaped("10.77.2.2", SHARE_V4)),
    ("the_routers_own_traffic_is_shaped_v6", || own_traffic_is_shaped("fd77:2::2", SHARE_V6)),
    ("masqueraded_flows_are_shaped", masquerade),
    ("a_second_up_is_refused", a_second_up_is_refused),
    ("marks_and_washing_reach_the_far_side", marks_and_washing_reach_the_far_side),
    ("a_bridge_passes_each_frame_once", bridge::a_bridge_passes_each_frame_once),
    (
        "a_port_without_segmentation_gets_segments",
        bridge::a_port_without_segmentation_gets_segments,
    ),
    ("a_bridges_ports_may_change", bridge::a_bridges_ports_may_change),
    (
        "what_waits_between_ports_leaves_at_the_end",
        bridge::what_waits_between_ports_leaves_at_the_end,
    ),
    ("marks_and_washing_pass_a_bridge", bridge::marks_and_washing_pass_a_bridge),
    ("bridges_that_do_more_are_refused", bridge::bridges_that_do_more_are_refused),
    ("damaged_packets_pass", damaged_packets_pass),
    ("reloading_changes_what_runs", reloading_changes_what_runs),
    ("a_file_that_cannot_be_taken_over", a_file_that_cannot_be_taken_over_changes_nothing),
    ("flow_offload_is_warned_of", flow_offload_is_warned_of),
    ("deaf_clients_keep_nobody_waiting", control::deaf_clients_keep_nobody_waiting),
    ("flows_are_told_of", flows::flows_are_told_of),
    ("round_trips_leave_our_own_queue_out", flows::round_trips_leave_our_own_queue_out),
    ("connection_tracking_tells_the_same_flows", flows::connection_tracking_tells_the_same_flows),
    ("fragments_are_paid_for", flows::fragments_are_paid_for),
    ("hosts_say_their_names_by_mdns", flows::hosts_say_their_names_by_mdns),
    ("rules_except_what_ipsec_will_encapsulate", kernel::rules_except_what_ipsec_will_encapsulate),
    ("marks_of_others_stay_as_they_are", kernel::marks_of_others_stay_as_they_are),
    ("privileges_are_given_up", control::privileges_are_given_up),
    ("refused_real_time_is_told_once", realtime::refused_real_time_is_told_once),
    (
        "what_others_do_to_an_interface_is_followed",
        others::what_others_do_to_an_interface_is_followed,
    ),
    ("a_changed_queue_length_is_followed", others::a_changed_queue_length_is_followed),
    (
        "a_queue_length_that_failed_is_tried_again",
        others::a_queue_length_that_failed_is_tried_again,
    ),
    ("a_change_of_bridge_is_told", others::a_change_of_bridge_is_told),
    ("addresses_and_default_routes_are_told", others::addresses_and_default_routes_are_told),
    (
        "other_users_of_our_queue_numbers_are_seen",
        others::other_users_of_our_queue_numbers_are_seen,
    ),
    ("firewalls_may_reload", others::firewalls_may_reload),
    ("connection_tracking_that_is_off_is_told", others::connection_tracking_that_is_off_is_told),
    ("mark_bits_that_others_use_are_left_alone", marks::mark_bits_that_others_use_are_left_alone),
    ("rules_choose_tiers", rules::rules_choose_tiers),
    ("bits_of_tiers_are_given_back", rules::bits_of_tiers_are_given_back),
    ("rules_choose_classes", rules::rules_choose_classes),
    ("rules_with_long_lists_are_laid", rules::rules_with_long_lists_are_laid),
    ("lists_fit_what_their_items_do", rules::lists_fit_what_their_items_do),
    ("rules_know_control_groups", cgroups::rules_know_control_groups),
    ("rules_follow_host_names", names::rules_follow_host_names),
    ("auto_takes_the_best_that_is_there", kernel::auto_takes_the_best_that_is_there),
    (
        "rates_in_the_kernel_outlive_who_sets_them",
        steered::rates_in_the_kernel_outlive_who_sets_them,
    ),
    ("an_absent_interface_is_waited_for", kernel::an_absent_interface_is_waited_for),
    ("what_a_full_queue_cannot_take_passes", kernel::what_a_full_queue_cannot_take_passes),
    ("the_service_manager_hears_who_lives", hangs::the_service_manager_hears_who_lives),
    ("ending_in_good_order_loses_nothing", ending_in_good_order_loses_nothing),
];

/// Cases that need the whole machine: they let traffic pass unshaped, take a core or are exact.
pub const ALONE: &[Case] = &[
    ("a_killed_daemon_lets_traffic_pass", a_killed_daemon_lets_traffic_pass),
    (
        "frames_of_a_bridge_are_shaped_and_pass_when_the_daemon_dies",
        bridge::frames_of_a_bridge_are_shaped_and_pass_when_the_daemon_dies,
    ),
    ("a_thread_in_circles_lets_traffic_pass", hangs::a_thread_in_circles_lets_traffic_pass),
    ("a_starved_core_lets_traffic_pass", hangs::a_starved_core_lets_traffic_pass),
    ("a_guard_that_fails_is_replaced", hangs::a_guard_that_fails_is_replaced),
    ("shares_have_floors_and_caps", rules::shares_have_floors_and_caps),
    ("long_lateness_is_forfeited", kernel::long_lateness_is_forfeited),
    ("two_interfaces_at_once", two_interfaces_at_once),
    ("show_change_and_down", show_change_and_down),
    ("rates_are_reached_and_never_exceeded", accuracy::rates_are_reached_and_never_exceeded),
    (
        "super_packets_are_queued_whole_and_paid_for_in_full",
        accuracy::super_packets_are_queued_whole_and_paid_for_in_full,
    ),
];

/// Cases that do to the machine what only a guest of ours bears.
pub const OF_A_GUEST: &[Case] = &[
    ("a_clock_that_is_set_changes_nothing", clocks::a_clock_that_is_set_changes_nothing),
    ("hours_follow_a_clock_that_is_set", clocks::hours_follow_a_clock_that_is_set),
    ("a_machine_that_slept_shapes_as_before", clocks::a_machine_that_slept_shapes_as_before),
];

/// Cases for the kernel's disciplines: what does not depend on who does the work, and what does.
pub const IN_THE_KERNEL: &[Case] = &[
    ("both_directions_are_shaped_v4", || both_directions_are_shaped("10.77.2.2")),
    ("both_directions_are_shaped_v6", || both_directions_are_shaped("fd77:2::2")),
    ("the_routers_own_traffic_is_shaped_v4", || own_traffic_is_shaped("10.77.2.2", SHARE_V4)),
    ("the_routers_own_traffic_is_shaped_v6", || own_traffic_is_shaped("fd77:2::2", SHARE_V6)),
    ("masqueraded_flows_are_shaped", masquerade),
    ("marks_and_washing_reach_the_far_side", marks_and_washing_reach_the_far_side),
    ("damaged_packets_pass", damaged_packets_pass),
    ("show_change_and_down", in_kernel::show_change_and_down),
    (
        "a_daemon_answers_for_what_the_kernel_shapes",
        in_kernel::a_daemon_answers_for_what_the_kernel_shapes,
    ),
    ("its_hosts_and_flows_are_told", in_kernel::its_hosts_and_flows_are_told),
    ("rules_choose_tiers_in_the_kernel", marked::rules_choose_tiers_in_the_kernel),
    ("rules_follow_host_names", names::rules_follow_host_names),
    ("rules_know_control_groups_in_the_kernel", marked::rules_know_control_groups_in_the_kernel),
    ("shares_have_floors_and_caps", rules::shares_have_floors_and_caps),
    ("shares_hold_what_arrives_in_the_kernel", marked::shares_hold_what_arrives_in_the_kernel),
    (
        "a_device_without_its_interface_is_removed",
        in_kernel::a_device_without_its_interface_is_removed,
    ),
    (
        "rates_in_the_kernel_outlive_who_sets_them",
        steered::rates_in_the_kernel_outlive_who_sets_them,
    ),
    ("connection_tracking_that_is_off_is_told", others::connection_tracking_that_is_off_is_told),
];

thread_local! {
    static NOT_RUN: Cell<bool> = const { Cell::new(false) };
}

/// Says loudly that the present case cannot show what it is for.
pub fn not_run(reason: &str) {
    eprintln!("*** NOT RUN: {reason} ***");
    NOT_RUN.set(true);
}

/// True if [`not_run`] was called on this thread since it was last asked.
pub fn was_not_run() -> bool {
    NOT_RUN.take()
}

const SECOND: Duration = Duration::from_secs(1);
/// After it, what slow start lost has been sent again.
const WARM_UP: Duration = Duration::from_secs(3);
/// Payload share of full packets: 1448 (v4) and 1428 (v6) of 1514 bytes.
const SHARE_V4: f64 = 1448.0 / 1514.0;
const SHARE_V6: f64 = 1428.0 / 1514.0;

/// Asserts that a measured rate is within `shares` of the ideal, both in bit/s.
///
/// Other people's work takes time from the hosts that send here, and then the line is not full.
/// Where that, as a witness from outside of the gateway saw, spoilt too many measurements, it is
/// said. For too much there is no excuse.
fn assert_share(
    what: &str,
    ideal: f64,
    shares: RangeInclusive<f64>,
    mut measure: impl FnMut() -> f64,
) {
    let measured = within_tries(what, || {
        let witness = Witness::start();
        let rate = measure();
        let (machine, share) = (witness.testify(), rate / ideal);
        let (rate, ideal, off) = (rate / 1e6, ideal / 1e6, (share - 1.0) * 100.0);
        println!("  {what}: {rate:.3} of {ideal:.3} Mbit/s ({off:+.2} %); {machine}");
        match shares.contains(&share) {
            true => Try::Holds,
            false if share < *shares.start() && machine.machine_was_busy() => Try::Unclear,
            false => Try::Misses,
        }
    });
    if !measured {
        not_run(&format!("the machine was too busy to measure {what}"));
    }
}

/// A rate within 3 % of the ideal; the exact figure is for `measure`.
pub fn assert_rate(what: &str, ideal: f64, measure: impl FnMut() -> f64) {
    assert_share(what, ideal, 0.97..=1.03, measure);
}

/// Settings that `tc`'s words mean.
fn settings(words: &str) -> Config {
    simnel_core::qdisc::parse(words).unwrap()
}

fn both_directions_are_shaped(server: &str) {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let (up, down) = (8e6, 20e6);
    let upload = Transfer::start(&world, "c", "s", address(server, 5001), false);
    std::thread::sleep(WARM_UP);
    assert_rate(&format!("{server} up"), up, || world.wire_rate("s", "wan0", SECOND * 2));
    let download = Transfer::start(&world, "s", "c", address(server, 5002), true);
    std::thread::sleep(WARM_UP);
    // Acknowledgements wait behind the packets of the other direction, which slows both.
    for (way, rate, place, interface) in [("up", up, "s", "wan0"), ("down", down, "c", "lan0")] {
        let both = format!("{server} both, {way}");
        assert_share(&both, rate, 0.6..=1.01, || world.wire_rate(place, interface, SECOND));
    }
    upload.end();
    std::thread::sleep(SECOND);
    assert_rate(&format!("{server} down"), down, || world.wire_rate("c", "lan0", SECOND * 2));
    download.end();
    world.stop();
}

fn own_traffic_is_shaped(server: &str, share: f64) {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let upload = Transfer::start(&world, "g", "s", address(server, 5001), false);
    std::thread::sleep(WARM_UP);
    assert_rate(&format!("{server} own up"), 8e6, || world.wire_rate("s", "wan0", SECOND * 2));
    upload.end();
    let download = Transfer::start(&world, "s", "g", address(server, 5002), true);
    std::thread::sleep(WARM_UP);
    // Behind the shaper there is only the application.
    let down = format!("{server} own down");
    assert_share(&down, 20e6 * share, 0.9..=1.05, || download.rate(SECOND * 4));
    download.end();
    world.stop();
}

fn masquerade() {
    let mut world = World::new();
    world.nft(&["add", "table", "ip", "nat"]);
    let hook = "{ type nat hook postrouting priority 100; }";
    world.nft(&["add", "chain", "ip", "nat", "post", hook]);
    world.nft(&["add", "rule", "ip", "nat", "post", "oifname", "wan0", "masquerade"]);
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(WARM_UP);
    assert_rate("masqueraded up", 8e6, || world.wire_rate("s", "wan0", SECOND * 2));
    upload.end();
    world.stop();
}

fn a_killed_daemon_lets_traffic_pass() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 50mbit|cake bandwidth 8mbit"]);
    assert!(world.nft(&["list", "tables"]).contains("simnel_wan0"));
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(SECOND);
    // Nobody is to start another one.
    let (daemon, _) = hangs::family_where(&world, |_| true);
    world.signal(libc::SIGSTOP);
    hangs::kill(daemon, libc::SIGKILL);
    let dead = Instant::now();
    loop {
        // Asking takes its time, too.
        let asked = dead.elapsed();
        if !world.nft(&["list", "tables"]).contains("simnel") {
            break;
        }
        // What is promised of any end of the daemon; the guard looks 20 times a second.
        assert!(asked < Duration::from_millis(500), "the table is still there");
    }
    println!("  table gone after {:?}", dead.elapsed());
    std::thread::sleep(SECOND);
    let rate = upload.rate(SECOND);
    println!("  afterwards {:.0} Mbit/s", rate / 1e6);
    assert!(rate > 50e6, "the transfer did not go on: {rate} bit/s");
    upload.end();
    world.signal(libc::SIGKILL);
    world.reap();
    // The lock and the socket that were left behind are no obstacle.
    world.start(&["wan0=|cake bandwidth 8mbit"]);
    world.stop();
}

fn ending_in_good_order_loses_nothing() {
    const PACKETS: u32 = 300;
    let mut world = World::new();
    world.start(&["wan0=|line rate 200kbit fifo 1000p"]);
    let (ready, wait) = std::sync::mpsc::channel();
    let receiver = world.spawn("s", move || {
        let socket = bound("10.77.2.2:6000");
        socket.set_read_timeout(Some(SECOND * 2)).unwrap();
        // All come at once.
        option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 4 << 20);
        ready.send(()).unwrap();
        let mut numbers = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok(n) = socket.recv(&mut buffer) {
            assert_eq!(n, 500);
            numbers.push(u32::from_be_bytes(*buffer.first_chunk().unwrap()));
        }
        numbers
    });
    wait.recv().unwrap();
    world.within("c", || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for n in 0..PACKETS {
            let mut bytes = [0; 500];
            bytes[..4].copy_from_slice(&n.to_be_bytes());
            socket.send_to(&bytes, "10.77.2.2:6000").unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    let queued = world.client("wan0").show().unwrap()[0].stats.backlog.packets;
    assert!(queued > 250, "only {queued} queued: nothing to lose");
    let start = Instant::now();
    world.stop();
    println!("  {queued} queued packets let go, daemon ended in {:?}", start.elapsed());
    let numbers = receiver.join().unwrap();
    assert_eq!(numbers, (0..PACKETS).collect::<Vec<_>>());
}

fn a_second_up_is_refused() {
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 8mbit"]);
    // By the lock, and where that lies elsewhere, by the kernel.
    let elsewhere = world.control.with_extension("2");
    let places = [(&world.control, "(by process "), (&elsewhere, "with another --control-dir")];
    for (control, owner) in places {
        let output = world
            .daemon_command(&["wan0=|cake bandwidth 8mbit"], control)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("  {}", error.trim());
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains("`wan0` is already managed") && error.contains(owner), "{error}");
    }
    let _ = std::fs::remove_dir_all(elsewhere);
    for (interface, complaint) in [
        ("nope0", "there is no interface `nope0`"),
        ("lo", "loopback"),
        ("a/b", "is not an interface name"),
        ("lan0=|", "neither `upload` nor `download`"),
    ] {
        let words = if interface.contains('=') { "" } else { "=|cake bandwidth 8mbit" };
        let output = world
            .daemon_command(&[&format!("{interface}{words}")], &world.control)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(complaint), "{interface}: {error}");
    }
    // The first is unharmed.
    assert_eq!(world.client("wan0").show().unwrap().len(), 1);
    world.stop();
}

fn two_interfaces_at_once() {
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 8mbit", "wan1=|cake bandwidth 16mbit"]);
    let first = Transfer::start(&world, "g", "s", address("10.77.2.2", 5001), false);
    let second = Transfer::start(&world, "g", "s", address("10.77.3.2", 5002), false);
    std::thread::sleep(WARM_UP);
    // On the wire: what arrives in order jumps whenever TCP has filled a gap.
    assert_rate("wan0 on the wire", 8e6, || world.wire_rate("s", "wan0", SECOND * 2));
    assert_rate("wan1 on the wire", 16e6, || world.wire_rate("s", "wan1", SECOND * 2));
    // One ends, the other goes on.
    world.client("wan0").down().unwrap();
    // Removing chains makes the kernel drop what the other interface had queued.
    std::thread::sleep(WARM_UP);
    assert!(first.rate(SECOND) > 50e6, "wan0 is still shaped");
    assert_rate("wan1 alone, on the wire", 16e6, || world.wire_rate("s", "wan1", SECOND * 2));
    first.end();
    second.end();
    world.stop();
}

fn marks_and_washing_reach_the_far_side() {
    marks_and_washing(
        World::new(),
        &[
            ("c", "s", "10.77.2.2"),
            ("c", "s", "fd77:2::2"),
            ("s", "c", "10.77.1.2"),
            ("s", "c", "fd77:1::2"),
            ("s", "g", "10.77.2.1"),
            ("g", "s", "10.77.2.2"),
        ],
    );
}

/// The same from place to place, at an address of the second.
pub fn marks_and_washing(mut world: World, ways: &[(&str, &str, &str)]) {
    const EF_ECT0: u8 = 46 << 2 | 2;
    const EF_NOT_ECT: u8 = 46 << 2;
    // An odd length, so that checksums have a last byte; every so often, so that the queue is empty
    // or full.
    let idle = ("50mbit", 11, Duration::from_millis(20));
    let loaded = ("1mbit", 1001, Duration::from_millis(4));
    for (words, (rate, size, gap), sent, expected) in [
        ("", idle, EF_ECT0, EF_ECT0),
        ("wash", idle, EF_ECT0, 2),
        ("wash", idle, EF_NOT_ECT, 0),
        ("", loaded, EF_ECT0, EF_ECT0 | 3),
        ("wash", loaded, EF_ECT0, 3),
    ] {
        let cake = format!("cake bandwidth {rate} {words}");
        world.start(&[&format!("wan0={cake}|{cake}")]);
        for &(from, to, bind) in ways {
            let at = address(bind, 6001);
            let arrived = Arc::new(AtomicBool::new(false));
            let done = Arc::clone(&arrived);
            let (ready, wait) = std::sync::mpsc::channel();
            let receiver = world.spawn(to, move || {
                let socket = bound(at);
                socket.set_read_timeout(Some(SECOND * 3)).unwrap();
                match at.is_ipv4() {
                    true => option(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
                    false => option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
                }
                ready.send(()).unwrap();
                let start = Instant::now();
                // A wrong header checksum would not get here.
                let mut result = receive_tos(&socket);
                // Marks come once the queue has stood for a while; until then, all but CE holds.
                let unmarked = |tos: u8| expected & 3 == 3 && tos == expected & !1;
                while result.as_ref().is_ok_and(|(_, tos)| unmarked(*tos))
                    && start.elapsed() < SECOND * 5
                {
                    result = receive_tos(&socket);
                }
                done.store(true, Ordering::Relaxed);
                result
            });
            wait.recv().unwrap();
            world.within(from, move || {
                let any = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any).unwrap();
                match at.is_ipv4() {
                    true => option(&socket, libc::IPPROTO_IP, libc::IP_TOS, sent.into()),
                    false => option(&socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, sent.into()),
                }
                // Neighbours may not know each other yet.
                while !arrived.load(Ordering::Relaxed) {
                    // The receiver may be gone by now; then there is nothing more to send.
                    let _ = socket.send_to(&vec![0x5a; size], at);
                    std::thread::sleep(gap);
                }
            });
            let (bytes, tos) = receiver
                .join()
                .unwrap()
                .unwrap_or_else(|e| panic!("{words}: {from} to {bind}: nothing came: {e}"));
            assert_eq!(bytes, vec![0x5a; size]);
            assert_eq!(tos, expected, "`{words}`, {from} to {bind}, sent {sent:#x}");
        }
        world.stop();
    }
}

fn damaged_packets_pass() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 50mbit|cake bandwidth 50mbit"]);
    // Neighbours must know each other first.
    round_trips(&world, address("10.77.2.2", 6002), 1, Duration::ZERO);
    round_trips(&world, address("fd77:2::2", 6002), 1, Duration::ZERO);
    let mac = |place: &str| -> [u8; 6] {
        let text = world.ip(place, "-o link show lan0");
        let mac = text.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
        let bytes: Vec<u8> = mac.split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
        bytes.try_into().unwrap()
    };
    let header =
        |ethertype: u16| [&mac("g")[..], &mac("c")[..], &ethertype.to_be_bytes()[..]].concat();
    let v4 = |protocol: u8, payload: &[u8]| {
        let mut ip = vec![0x45, 0, 0, (20 + payload.len()) as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
        ip.extend([10, 77, 1, 2, 10, 77, 2, 2]);
        let sum: u32 = ip.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [header(0x0800), ip, payload.to_vec()].concat()
    };
    let v6 = |next: u8, payload: &[u8]| {
        let mut ip = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        let mut address = [0xfd, 0x77, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        ip.extend(address);
        address[3] = 2;
        ip.extend(address);
        [header(0x86dd), ip, payload.to_vec()].concat()
    };
    let frames = vec![
        v4(253, b"unknown protocol"),
        v4(6, b"xy"),                      // TCP, cut after two bytes
        v4(6, &[0xff; 20]),                // TCP whose options are longer than the packet
        v4(17, &[1, 2, 3, 4, 0, 1, 0, 0]), // UDP with an impossible length
        v4(17, b""),
        v4(41, &[0x61]), // 6in4 with one byte of IPv6
        v6(253, b"unknown header"),
        v6(60, &[6, 200, 0, 0]), // destination options that go beyond the end
        v6(44, &[6, 0]),         // half a fragment header
        v6(6, b"z"),
        v6(59, b""),
    ];
    let count = frames.len();
    // What arrives at the server, by its last bytes (after MAC addresses, TTL and checksum).
    let expected: Vec<(u16, Vec<u8>)> = frames
        .iter()
        .map(|f| {
            (u16::from_be_bytes([f[12], f[13]]), f[if f[12] == 8 { 26 } else { 22 }..].to_vec())
        })
        .collect();
    let (ready, wait) = std::sync::mpsc::channel();
    let capture = world.spawn("s", move || {
        let socket = packet_socket("wan0");
        ready.send(()).unwrap();
        let mut missing = expected;
        let start = Instant::now();
        let mut buffer = [0u8; 2048];
        while !missing.is_empty() && start.elapsed() < SECOND * 2 {
            // SAFETY: pointer and length describe `buffer`.
            let n = unsafe {
                libc::recv(
                    socket.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            if n < 14 {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let frame = &buffer[..n as usize];
            let kind = u16::from_be_bytes([frame[12], frame[13]]);
            let from = if kind == 0x0800 { 26 } else { 22 };
            if let Some(rest) = frame.get(from..) {
                if let Some(at) = missing.iter().position(|(k, f)| *k == kind && rest == &f[..]) {
                    missing.remove(at);
                }
            }
        }
        missing
    });
    wait.recv().unwrap();
    let received = |world: &World| {
        if in_kernel::is_asked() {
            return in_kernel::sent(world);
        }
        let shown = world.client("wan0").show().unwrap();
        shown.iter().find(|e| e.direction == Direction::Upload).unwrap().datapath.received
    };
    let before = received(&world);
    world.within("c", move || {
        let socket = packet_socket("lan0");
        for frame in frames {
            // SAFETY: pointer and length describe `frame`.
            let n =
                unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
            assert_eq!(n, frame.len() as isize);
        }
    });
    let missing = capture.join().unwrap();
    assert!(missing.is_empty(), "did not arrive: {missing:x?}");
    assert!(received(&world) >= before + count as u64, "they went around us");
    round_trips(&world, address("10.77.2.2", 6003), 10, Duration::ZERO);
    world.stop();
}

fn show_change_and_down() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let mut client = world.client("wan0");
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(SECOND / 2);
    let shown = client.show().unwrap();
    let directions: Vec<_> = shown.iter().map(|e| (e.direction, settings(&e.config))).collect();
    assert_eq!(
        directions,
        [
            (Direction::Download, settings("cake bandwidth 20mbit")),
            (Direction::Upload, settings("cake bandwidth 8mbit")),
        ]
    );
    let entry = &shown[1];
    let totals = entry.stats.totals;
    assert_eq!(totals.enqueued_packets, entry.datapath.received);
    assert_eq!(
        totals.enqueued_packets,
        totals.sent_packets + totals.drops() + u64::from(entry.stats.backlog.packets)
    );
    assert_eq!((entry.kernel.queue_dropped, entry.kernel.user_dropped), (0, 0));

    // In place, and by another discipline.
    client.change(Direction::Upload, "cake bandwidth 16mbit").unwrap();
    std::thread::sleep(SECOND);
    assert_rate("changed", 16e6, || world.wire_rate("s", "wan0", SECOND));
    client.change(Direction::Upload, "line rate 4mbit fifo 50p").unwrap();
    std::thread::sleep(SECOND);
    assert_rate("replaced", 4e6, || world.wire_rate("s", "wan0", SECOND * 2));
    let error = client.change(Direction::Upload, "cake bandwith 1mbit").unwrap_err().to_string();
    assert!(error.contains("`bandwith`"), "{error}");

    client.down().unwrap();
    assert!(world.reap().success());
    assert!(!world.nft(&["list", "tables"]).contains("simnel"));
    std::thread::sleep(SECOND);
    assert!(upload.rate(SECOND) > 50e6);
    upload.end();
}

fn reloading_changes_what_runs() {
    let mut world = World::new();
    let file = world.file();
    let put = |world: &World, interfaces: &str| {
        let directory = world.control.display();
        std::fs::write(&file, format!("control_dir = \"{directory}\"\n{interfaces}")).unwrap();
    };
    put(&world, "[[interface]]\nname = \"wan0\"\nupload = \"8mbit\"\n");
    world.start(&["file"]);
    let write = |interfaces: &str| {
        put(&world, interfaces);
        world.signal(libc::SIGHUP);
        std::thread::sleep(SECOND / 2);
    };
    let running = |interface: &str| {
        let shown = world.client(interface).show().unwrap();
        shown.iter().map(|e| (e.direction, settings(&e.config))).collect::<Vec<_>>()
    };
    write(
        "[[interface]]\nname = \"wan0\"\nupload = \"5mbit\"\n\
         [[interface]]\nname = \"wan1\"\nupload = \"6mbit\"\nqdisc = \"cake nat\"\n",
    );
    assert_eq!(
        running("wan0"),
        [(Direction::Upload, settings("cake bandwidth 5mbit host-guard src"))]
    );
    assert_eq!(
        running("wan1"),
        [(Direction::Upload, settings("cake bandwidth 6mbit nat host-guard src"))]
    );
    // A mistake changes nothing.
    write("[[interface]]\nname = \"wan0\"\nupload = \"5mbit\"\nqdisc = \"cakes\"\n");
    assert_eq!(
        running("wan1"),
        [(Direction::Upload, settings("cake bandwidth 6mbit nat host-guard src"))]
    );
    write("[[interface]]\nname = \"wan1\"\ndownload = \"7mbit\"\n");
    assert!(simnel_gateway::control::Client::connect(&world.control, "wan0").is_err());
    let download = settings("cake bandwidth 7mbit ingress host-guard dst");
    assert_eq!(running("wan1"), [(Direction::Download, download.clone())]);
    // A daemon in place of that begins with what was read last, not with what was at the start.
    put(&world, "an edit that nobody has asked to read");
    let (dead, _) = hangs::family_where(&world, |_| true);
    hangs::kill(dead, libc::SIGKILL);
    hangs::family_where(&world, |(daemon, _)| daemon != dead);
    let start = Instant::now();
    while !world.serves("wan1") {
        assert!(start.elapsed() < SECOND * 8, "another daemon does not serve");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(running("wan1"), [(Direction::Download, download)]);
    assert!(!world.serves("wan0"), "it was taken out of the file");
    world.stop();
}

/// Another control directory, and a file that nobody ends; afterwards, where a link leads.
fn a_file_that_cannot_be_taken_over_changes_nothing() {
    let mut world = World::new();
    let (file, elsewhere) = (world.file(), tempfile::tempdir().unwrap());
    let target = elsewhere.path().join("settings");
    std::os::unix::fs::symlink(&target, &file).unwrap();
    let text = |directory: &std::path::Path, rate: &str| {
        let interface = format!("[[interface]]\nname = \"wan0\"\nupload = \"{rate}\"\n");
        format!("control_dir = \"{}\"\n{interface}", directory.display())
    };
    std::fs::write(&target, text(&world.control, "8mbit")).unwrap();
    let said = world.start_heard(&["file"]);
    let rate = |world: &World| {
        let shown = world.client("wan0").show().unwrap();
        simnel_core::qdisc::parse(&shown[0].config).unwrap().rate().unwrap().bits()
    };
    std::fs::write(&target, text(elsewhere.path(), "7mbit")).unwrap();
    world.signal(libc::SIGHUP);
    said.wait_for("is another one: restart the daemon");
    assert_eq!(rate(&world), 8_000_000);
    std::fs::remove_file(&target).unwrap();
    crate::world::run(&format!("mkfifo {}", target.display()));
    world.signal(libc::SIGHUP);
    said.wait_for("this is no regular file");
    assert_eq!(rate(&world), 8_000_000);
    std::fs::remove_file(&target).unwrap();
    std::fs::write(&target, text(&world.control, "6mbit")).unwrap();
    world.signal(libc::SIGHUP);
    said.wait_for("wan0: upload changed");
    assert_eq!(rate(&world), 6_000_000);
    world.stop();
}

fn flow_offload_is_warned_of() {
    let world = World::new();
    world.nft(&["add", "table", "inet", "fw"]);
    let devices = "{ hook ingress priority 0; devices = { wan0, lan0 }; }";
    if world.try_nft(&["add", "flowtable", "inet", "fw", "fast", devices]).is_err() {
        return not_run("this kernel has no flowtables (CONFIG_NF_FLOW_TABLE)");
    }
    for (interface, warned) in [("wan0", true), ("wan1", false)] {
        let words = format!("{interface}=|cake bandwidth 8mbit");
        let mut command = world.daemon_command(&[&words], &world.control);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let socket = simnel_gateway::control::socket_path(&world.control, interface);
        let start = Instant::now();
        let mut client = loop {
            match simnel_gateway::control::Client::connect(&world.control, interface) {
                Ok(client) => break client,
                Err(e) => assert!(start.elapsed() < SECOND * 5, "{}: {e}", socket.display()),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        client.down().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("flowtable `fast` of table `fw`"), warned, "{said}");
    }
}

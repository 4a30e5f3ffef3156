//! Rules for disciplines of the kernel, which find tiers in marks: module's and Linux's cake alike.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use simnel_gateway::kernel::{self, Own, Shaped};
use simnel_gateway::Direction;

use crate::cases::not_run;
use crate::cgroups::{self, Group};
use crate::hangs::{family_where, kill};
use crate::rules::{exchange, reload, start, words, EACH};
use crate::transfer::Transfer;
use crate::world::{address, bound, World};

const SECOND: Duration = Duration::from_secs(1);
const AF41: i32 = 34 << 2;

fn shaped(world: &World) -> Vec<Shaped> {
    world.within("g", || kernel::shaped(Some("wan0")).unwrap())
}

/// Packets that each tier has sent, of upload and download.
pub fn tins(world: &World) -> [[u64; 4]; 2] {
    let all = shaped(world);
    [Direction::Upload, Direction::Download].map(|direction| {
        let own = Own::of(&Shaped::find(&all, direction).unwrap().listed);
        <[u64; 4]>::try_from(own.tins.iter().map(|tin| tin.sent_packets).collect::<Vec<_>>())
            .expect("four tiers")
    })
}

/// Those sent during `work`. Neighbours are asked for and groups reported beside it, by best effort
/// and voice.
fn sent(world: &World, work: impl FnOnce()) -> [[u64; 4]; 2] {
    let before = tins(world);
    work();
    let after = tins(world);
    [0, 1].map(|way| [0, 1, 2, 3].map(|tin| after[way][tin] - before[way][tin]))
}

#[track_caller]
fn assert_sent(sent: [[u64; 4]; 2], expected: [[u64; 4]; 2]) {
    println!("  {sent:?}: bulk, best effort, video, voice; upload, download");
    for (sent, expected) in sent.as_flattened().iter().zip(expected.as_flattened()) {
        assert!((*expected..expected + 5).contains(sent), "{sent}, not {expected}");
    }
}

/// Packets of each rule, of upload and download.
fn counted(world: &World) -> Vec<[u64; 2]> {
    let rules = world.client("wan0").rules().unwrap();
    rules.iter().map(|rule| [rule.upload, rule.download].map(|c| c.unwrap().packets)).collect()
}

/// Datagrams of a server that speaks first, to a client's port.
fn push(world: &World, port: u16) {
    let client = world.within("c", || bound(address("10.77.1.2", port)));
    client.set_read_timeout(Some(SECOND * 2)).unwrap();
    let server = world.within("s", || UdpSocket::bind(address("0.0.0.0", 0)).unwrap());
    for _ in 0..EACH {
        server.send_to(&[0; 32], address("10.77.1.2", port)).unwrap();
        client.recv(&mut [0; 64]).expect("a datagram was lost");
    }
}

/// True if `holds` before long.
fn soon(world: &World, holds: impl Fn(&World) -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < SECOND * 5 {
        if holds(world) {
            return true;
        }
        std::thread::sleep(SECOND / 50);
    }
    false
}

fn has_table(world: &World) -> bool {
    world.nft(&["list", "tables"]).contains("simnel")
}

fn filters(world: &World) -> usize {
    let has = |kind: &&str| {
        world.try_shell("g", &format!("tc filter show dev wan0 ingress | grep -q {kind}"))
    };
    ["mirred", "ctinfo"].into_iter().filter(has).count()
}

/// True if the module is loaded, which alone has classes.
pub fn has_module() -> bool {
    std::path::Path::new("/sys/module/simnel").exists()
}

/// True if this kernel can have rules for what arrives.
pub fn has_ctinfo(world: &World) -> bool {
    let filter = "tc filter add dev lan0 ingress matchall action ctinfo cpmark 1 2>/dev/null";
    let has = world.try_shell("g", &format!("tc qdisc add dev lan0 clsact && {filter}"));
    world.try_shell("g", "tc qdisc del dev lan0 clsact");
    has
}

/// Port, address and hardware address choose tiers both ways, in the kernel's own cake.
pub fn rules_choose_tiers_in_the_kernel() {
    let mut world = World::new();
    if !has_ctinfo(&world) {
        return not_run("this kernel lacks the action ctinfo");
    }
    let shown = world.ip("c", "link show lan0");
    let mac = shown.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).unwrap();
    let rules = |tier: &str| {
        format!(
            "[[rule]]\nprotocol = \"udp\"\nport = 7001\ntier = \"{tier}\"\n\
             [[rule]]\nmac = \"{mac}\"\nport = 7002\ntier = \"video\"\n\
             [[rule]]\naddress = \"10.77.1.0/25\"\nport = 7003\ntier = \"bulk\"\n"
        )
    };
    // Whoever looks at what arrives sees no mark of ours.
    world.nft(&["add", "table", "inet", "behind"]);
    let hook = "{ type filter hook prerouting priority -305; }";
    world.nft(&["add", "chain", "inet", "behind", "in", hook]);
    let udp = "meta l4proto udp meta mark != 0 counter";
    world.nft(&["add", "rule", "inet", "behind", "in", udp]);
    let words = &words("cake diffserv4");
    start(&mut world, words, &rules("voice"));

    let [one, none] = [EACH, 0];
    let both = |work: &dyn Fn()| sent(&world, work);
    let to = |port: u16, tos: i32| both(&|| exchange(&world, "10.77.2.2", port, tos));
    assert_sent(to(7001, 0), [[none, none, none, one]; 2]);
    assert_sent(to(7002, 0), [[none, none, one, none]; 2]);
    assert_sent(to(7003, AF41), [[one, none, none, none]; 2]);
    // Without a rule where the code point leads.
    assert_sent(to(7004, AF41), [[none, none, one, none]; 2]);
    assert_sent(to(7004, 0), [[none, one, none, none]; 2]);
    let v6 = both(&|| exchange(&world, "fd77:2::2", 7001, 0));
    assert_sent(v6, [[none, none, none, one]; 2]);
    assert_eq!(counted(&world), [[2 * EACH; 2], [EACH; 2], [EACH; 2]]);
    // The first packet of a connection from outside comes before any rule could decide.
    let pushed = both(&|| push(&world, 7001));
    assert_sent(pushed, [[0; 4], [0, 1, 0, EACH - 1]]);
    assert_eq!(counted(&world)[0], [2 * EACH, 3 * EACH]);
    let behind = world.nft(&["list", "table", "inet", "behind"]);
    assert!(behind.contains("packets 0 "), "a mark of ours stays: {behind}");

    // Other rules hold from the next packet on; without any, nothing of them stays.
    let other = rules("bulk").replace("7001", "\"7001-7001\"").replace("7002", "7005");
    reload(&world, words, &format!("[[rule]]\nport = 7009\ntier = 1\n{other}"), "port 7009");
    assert_sent(sent(&world, || exchange(&world, "10.77.2.2", 7001, 0)), [[one, 0, 0, 0]; 2]);
    assert_eq!(counted(&world)[1], [EACH; 2]);
    assert_eq!(filters(&world), 2);
    let change = |words: &str| world.client("wan0").change(Direction::Upload, words);
    let refused = change("cake bandwidth 8mbit besteffort").unwrap_err().to_string();
    assert!(refused.contains("rule 1: `tier = 1`") || refused.contains("one tier"), "{refused}");
    crate::rules::write(&world, words, "");
    world.signal(libc::SIGHUP);
    assert!(soon(&world, |world| !has_table(world)), "the table is still there");
    assert_eq!(filters(&world), 1);
    assert!(shaped(&world).iter().all(|one| !one.words().unwrap().contains("fwmark")));
    assert_sent(sent(&world, || exchange(&world, "10.77.2.2", 7001, 0)), [[0, one, 0, 0]; 2]);

    // A daemon that dies is followed by one that has the rules again.
    reload(&world, words, &rules("voice"), "udp port 7001");
    let (daemon, _) = family_where(&world, |_| true);
    kill(daemon, libc::SIGKILL);
    family_where(&world, |(other, _)| other != daemon);
    assert!(soon(&world, |world| world.serves("wan0") && has_table(world)));
    assert_sent(sent(&world, || exchange(&world, "10.77.2.2", 7001, 0)), [[0, 0, 0, one]; 2]);
    // All dead: rules are gone, what is shaped passes as its code points say.
    let (daemon, guard) = family_where(&world, |_| true);
    let supervisor = world.daemon.as_ref().unwrap().id() as i32;
    kill(daemon, libc::SIGSTOP);
    for process in [supervisor, guard, daemon] {
        kill(process, libc::SIGKILL);
    }
    assert!(!world.reap().success());
    assert!(soon(&world, |world| !has_table(world)), "the table is still there");
    assert_sent(sent(&world, || exchange(&world, "10.77.2.2", 7006, 0)), [[0, one, 0, 0]; 2]);
    world.within("g", || kernel::down("wan0").unwrap());
    assert_eq!((shaped(&world).len(), filters(&world)), (0, 0));
    start(&mut world, words, &rules("voice"));
    assert_sent(sent(&world, || exchange(&world, "10.77.2.2", 7001, 0)), [[0, 0, 0, one]; 2]);
    world.stop();
    assert!(!has_table(&world));
    assert_eq!((shaped(&world).len(), filters(&world)), (0, 0));
}

/// A program of the router: what it sends from its first packet on, and what arrives for it from
/// the second on.
pub fn rules_know_control_groups_in_the_kernel() {
    let world = &mut World::new();
    let Some(root) = Group::root().filter(|_| has_ctinfo(world)) else {
        return not_run("no control groups of the second version, or no action ctinfo");
    };
    let name = format!("simnel-{}", std::process::id());
    let slice = Group::make(root.join(&name));
    world.cgroups = true;
    let rules = format!("[[rule]]\ncgroup = \"{name}\"\ntier = \"voice\"\n");
    start(world, &words("cake diffserv4"), &rules);
    for (group, tier) in [(None, 1), (Some(&*slice.0), 3)] {
        let sent = sent(world, || cgroups::exchange(world, group, 7_001));
        println!("  {sent:?}: bulk, best effort, video, voice; upload, download");
        for sent in sent {
            let others: u64 = sent.iter().sum::<u64>() - sent[tier];
            assert!((20..400).contains(&sent[tier]) && others < 9, "tier {tier}: {sent:?}");
        }
    }
    world.stop();
}

/// A device's share of what arrives, and all of the line without it. By the module only.
pub fn shares_hold_what_arrives_in_the_kernel() {
    let world = &mut World::new();
    if !has_ctinfo(world) || !has_module() {
        return not_run("this kernel lacks the action ctinfo, or the module");
    }
    // Behind address translation: the rule knows the device by its own address all the same.
    world.nft(&["add table ip home"]);
    world.nft(&["add chain ip home out { type nat hook postrouting priority srcnat; }"]);
    world.nft(&["add rule ip home out oifname wan0 masquerade"]);
    let share = "[[share]]\naddress = \"10.77.1.2\"\ndownload = \"4mbit..5mbit\"\n";
    let rule = "[[rule]]\nport = 7001\ntier = \"voice\"\n";
    let words = &words("cake diffserv4");
    start(world, words, share);
    // A packet of TCP's takes 2.4 ms in the share, half of what its cake allows.
    let rates = |world: &World, wanted: f64| {
        let transfer = Transfer::start(world, "s", "c", address("10.77.2.2", 5001), true);
        std::thread::sleep(SECOND);
        let rate = world.wire_rate("c", "lan0", SECOND * 2);
        println!("  {:.2} of {:.2} Mbit/s", rate / 1e6, wanted / 1e6);
        assert!((0.75..1.02).contains(&(rate / wanted)));
        transfer.end();
    };
    rates(world, 5e6);
    let [upload, download] = counted(world)[0];
    assert!(upload == 0 && download > 100, "{upload} {download}");
    // A rule is the more special one: its traffic is not the share's.
    reload(world, words, &format!("{}{share}", rule.replace("7001", "5001")), "port 5001");
    rates(world, 20e6);
    reload(world, words, &format!("{rule}{share}"), "port 7001");
    rates(world, 5e6);
    reload(world, words, rule, "port 7001");
    assert!(soon(world, |world| counted(world).len() == 1));
    rates(world, 20e6);
    world.stop();
}

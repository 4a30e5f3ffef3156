//! Interfaces that the kernel shapes: what holds whoever does the work, and what is different
//! there. With GW_BACKEND=kernel, where the module is loaded or Linux's cake is there.

use std::path::Path;
use std::time::{Duration, Instant};

use simnel_core::qdisc;
use simnel_gateway::control::Request;
use simnel_gateway::kernel::{self, Shaped};
use simnel_gateway::view::{Names, Viewer};
use simnel_gateway::{Direction, Settings};

use crate::cases::{assert_rate, not_run};
use crate::hangs::{family_where, kill};
use crate::transfer::Transfer;
use crate::world::{address, World};

const SECOND: Duration = Duration::from_secs(1);

/// True if the kernel is to do the work.
pub fn is_asked() -> bool {
    std::env::var_os("GW_BACKEND").is_some_and(|backend| backend == "kernel")
}

/// Directions of `wan0` that the kernel shapes.
fn shaped(world: &World) -> Vec<Shaped> {
    world.within("g", || kernel::shaped(Some("wan0")).unwrap())
}

/// Packets that the upload's discipline has sent.
pub fn sent(world: &World) -> u64 {
    let upload = shaped(world).into_iter().find(|shaped| shaped.direction == Direction::Upload);
    upload.unwrap().listed.common.sent_packets
}

/// Settings change in place, and the discipline by another.
pub fn show_change_and_down() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(SECOND / 2);
    let settings = |words: &str| qdisc::parse(words).unwrap();
    let now = shaped(&world);
    let told = |shaped: &Shaped| (shaped.direction, settings(&shaped.words().unwrap()));
    assert_eq!(
        now.iter().map(told).collect::<Vec<_>>(),
        [
            (Direction::Upload, settings("cake bandwidth 8mbit")),
            (Direction::Download, settings("cake bandwidth 20mbit")),
        ]
    );
    let is_ours = Path::new("/sys/module/simnel").exists();
    assert!(now.iter().all(|shaped| shaped.listed.is_ours() == is_ours));

    let change = |words: &str| world.within("g", || kernel::change(&now[0], &settings(words)));
    change("cake bandwidth 16mbit").unwrap();
    std::thread::sleep(SECOND);
    assert_rate("changed", 16e6, || world.wire_rate("s", "wan0", SECOND));
    // By another discipline, which Linux's own would not follow as the same qdisc.
    let other = change("fq_codel limit 1000");
    assert_eq!(other.is_ok(), is_ours, "{other:?}");
    let expected = if is_ours { "fq_codel limit 1000" } else { "cake bandwidth 16mbit" };
    assert_eq!(told(&shaped(&world)[0]).1, settings(expected));

    world.within("g", || kernel::down("wan0").unwrap());
    assert!(shaped(&world).is_empty());
    upload.end();
    world.stop();
}

/// Settings of the upload, which are to become `words`.
fn settings_become(world: &World, words: &str) {
    let wanted = qdisc::parse(words).unwrap();
    let begin = Instant::now();
    loop {
        let told = world.within("g", || kernel::words("wan0", Direction::Upload).unwrap());
        if told.as_ref().is_some_and(|words| qdisc::parse(words).unwrap() == wanted) {
            return;
        }
        assert!(begin.elapsed() < SECOND * 30, "{told:?}, not {words}");
        std::thread::sleep(SECOND / 20);
    }
}

/// A daemon changes and tries settings, makes anew what others take away, and is followed by one
/// that knows what it was told.
pub fn a_daemon_answers_for_what_the_kernel_shapes() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let mut client = world.client("wan0");
    client.change(Direction::Upload, "cake bandwidth 5mbit").unwrap();
    settings_become(&world, "cake bandwidth 5mbit");
    let told = client.ask(&Request::Flows {}).unwrap();
    assert_eq!((told.lines, told.flows), (Some(Vec::new()), Some(Vec::new())));
    assert!(told.untold.is_some_and(|why| why.contains("no connections are tracked")));
    client.try_out(Direction::Upload, "cake bandwidth 3mbit", SECOND * 5).unwrap();
    settings_become(&world, "cake bandwidth 3mbit");
    assert_eq!(client.trials().unwrap().len(), 1);
    settings_become(&world, "cake bandwidth 5mbit");
    world.shell("g", "tc qdisc del dev wan0 root");
    settings_become(&world, "cake bandwidth 5mbit");
    let (daemon, _) = family_where(&world, |_| true);
    kill(daemon, libc::SIGKILL);
    family_where(&world, |(other, _)| other != daemon);
    world.shell("g", "tc qdisc del dev wan0 root");
    settings_become(&world, "cake bandwidth 5mbit");
    assert!(world.client("wan0").change(Direction::Upload, "rubbish").is_err());
    world.stop();
    assert!(shaped(&world).is_empty());
}

/// An upload behind address translation: connection tracking tells whose it is, and its rate.
pub fn its_hosts_and_flows_are_told() {
    let mut world = World::new();
    world.nft(&["add table ip home"]);
    world.nft(&["add chain ip home out { type nat hook postrouting priority srcnat; }"]);
    world.nft(&["add rule ip home out oifname wan0 masquerade"]);
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    let mut viewer = Viewer::new();
    let mut look = || {
        std::thread::sleep(SECOND);
        world.within("g", || viewer.look(&world.control, "wan0", &Names::none())).unwrap()
    };
    look();
    let view = look();
    if let Some(why) = view.untold.filter(|why| why.contains("not told")) {
        return not_run(&why);
    }
    println!("  {:?}; {:?}", view.words, view.hosts);
    let [host] = &view.hosts[..] else { panic!("{:?}", view.hosts) };
    assert_eq!((host.address, host.held), (address("10.77.1.2", 0).ip(), None));
    assert_eq!((host.flows, view.flows.len()), (2, 2), "one each way");
    assert!((7_000_000..9_000_000).contains(&host.upload_bps), "{host:?}");
    let words = &view.words[0];
    assert!(words.starts_with("the upload is full: 10.77.1.2, 1 flow"), "{words}");
    // Linux's own cake does not count how long packets wait.
    let ours = shaped(&world)[0].listed.is_ours();
    let delay = view.lines.iter().find(|line| line.direction == Direction::Upload).unwrap().delay;
    println!("  {delay:?}");
    assert_eq!(delay.is_some(), ours);
    if let Some(delay) = delay {
        assert!((1_000_000..=delay.p99_ns).contains(&delay.p50_ns), "{delay:?}");
        assert!(delay.p99_ns < 60_000_000, "{delay:?}");
    }
    upload.end();
    world.stop();
}

/// An interface is deleted while no process of ours is there.
pub fn a_device_without_its_interface_is_removed() {
    let world = World::new();
    let up = |interface: &str| {
        let mut settings = Settings::new(interface);
        settings.download = Some(qdisc::parse("cake bandwidth 20mbit").unwrap());
        world.within("g", || kernel::up(&settings)).unwrap();
    };
    let orphans = || world.within("g", kernel::orphans).unwrap();
    let devices = || world.ip("g", "-o link show");
    up("wan0");
    assert!(orphans().is_empty());
    world.shell("g", "ip link del wan0");
    let [left] = &orphans()[..] else { panic!("{:?}", orphans()) };
    assert!(devices().contains(left.as_str()));
    up("lan0");
    assert!(orphans().is_empty() && !devices().contains(left.as_str()), "{}", devices());
    world.within("g", || kernel::down("lan0")).unwrap();
    assert!(!devices().contains("simnel-"));
}

//! Rates in the kernel that a daemon sets: what becomes of them when it dies, what is repaired.

use std::time::{Duration, Instant};

use simnel_core::{qdisc, Rate};
use simnel_gateway::autorate::Report;
use simnel_gateway::control::{Client, Request};
use simnel_gateway::kernel::{self, Shaped};
use simnel_gateway::Direction;

use crate::cases::not_run;
use crate::hangs::{family_where, kill};
use crate::kernel::write_file;
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);

fn shaped(world: &World) -> Vec<Shaped> {
    world.within("g", || kernel::shaped(Some("wan0")).unwrap())
}

fn config(shaped: &Shaped) -> qdisc::Config {
    qdisc::parse(&shaped.words().unwrap()).unwrap()
}

fn report(world: &World) -> Option<Report> {
    Client::connect(&world.control, "wan0").ok()?.ask(&Request::Show {}).ok()?.autorate
}

/// The first answer of `ask` about a daemon that a reflector answers.
fn once<T>(world: &World, what: &str, ask: impl Fn(&Report) -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        let told = report(world);
        if let Some(found) = told.as_ref().filter(|told| told.answering() == 1).and_then(&ask) {
            return found;
        }
        assert!(begin.elapsed() < SECOND * 30, "{what}: {told:?}, {:?}", shaped(world));
        std::thread::sleep(SECOND / 20);
    }
}

/// Rates of both directions, bit/s, the download's first.
fn rates(told: &Report) -> Vec<u64> {
    told.directions.iter().map(|direction| direction.rate_bps).collect()
}

/// The rates that the kernel has, in the same order.
fn kernels(world: &World) -> Vec<u64> {
    let rate = |shaped: &Shaped| config(shaped).rate().map_or(0, Rate::bits);
    shaped(world).iter().rev().map(rate).collect()
}

pub fn rates_in_the_kernel_outlive_who_sets_them() {
    let mut world = World::new();
    let file = "[[interface]]\nname = \"wan0\"\nbackend = \"kernel\"\nautorate = true\n\
                download = \"4mbit..40mbit\"\nupload = \"2mbit..20mbit\"\n\
                reflectors = [\"10.77.2.2\"]\n";
    let cake = |verb: &str| format!("tc qdisc {verb} dev lan0 root cake 2>/dev/null");
    let has_cake = world.try_shell("g", &cake("add")) && world.try_shell("g", &cake("del"));
    if !has_cake && !crate::in_kernel::is_asked() {
        return not_run("this kernel lacks the qdiscs `simnel` and `cake`");
    }
    write_file(&world, file);
    world.start(&["file"]);
    // In the middle of their ranges, by the mean of the logarithms.
    let set =
        once(&world, "rates are set", |told| (rates(told) == kernels(&world)).then(|| rates(told)));
    let near = |rate: u64, mbit: f64| (rate as f64 / 1e6 - mbit).abs() < 0.01;
    assert!(near(set[0], 12.65) && near(set[1], 6.32), "{set:?}");
    // Words change, the rate is autorate's.
    let words = "cake bandwidth 9mbit besteffort";
    world.client("wan0").change(Direction::Upload, words).unwrap();
    let now = config(&shaped(&world)[0]);
    assert!(
        now.to_string().contains("besteffort") && now.rate().unwrap().bits() == set[1],
        "{now}"
    );
    // What others take away comes back.
    world.shell("g", "tc qdisc del dev wan0 root");
    once(&world, "the upload is shaped again", |_| (kernels(&world) == set).then_some(()));

    // The kernel goes on alone, and the next daemon begins where it is.
    let all_die = |world: &mut World| {
        let (daemon, guard) = family_where(world, |_| true);
        let supervisor = world.daemon.as_ref().unwrap().id() as i32;
        // It would give the interface back when the supervisor is gone.
        kill(daemon, libc::SIGSTOP);
        for process in [supervisor, guard, daemon] {
            kill(process, libc::SIGKILL);
        }
        assert!(!world.reap().success());
        std::thread::sleep(SECOND / 5);
        assert_eq!(kernels(world), set, "the kernel shapes on");
    };
    all_die(&mut world);
    world.within("g", || {
        let download = &kernel::shaped(Some("wan0")).unwrap()[1];
        kernel::change(download, &qdisc::parse("cake bandwidth 7mbit ingress").unwrap()).unwrap();
    });
    world.start(&["file"]);
    let begun = once(&world, "another daemon", |told| Some(rates(told)));
    assert_eq!((begun[0], begun[1], begun == kernels(&world)), (7_000_000, set[1], true));
    // A daemon alone is followed by another one, which knows what the first was told since.
    let (daemon, _) = family_where(&world, |_| true);
    world.client("wan0").change(Direction::Upload, words).unwrap();
    kill(daemon, libc::SIGKILL);
    family_where(&world, |(other, _)| other != daemon);
    assert_eq!(once(&world, "a daemon that follows", |told| Some(rates(told))), begun);
    assert!(config(&shaped(&world)[0]).to_string().contains("besteffort"));
    // In good order nothing is left.
    world.stop();
    assert!(shaped(&world).is_empty());
    let left = world.try_shell("g", "ip link show | grep -q simnel-");
    assert!(!left, "the device of the download");
}

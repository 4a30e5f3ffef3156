//! Hangs, which do not cut the line. A daemon is stopped, a thread stands still or runs in circles,
//! others have taken a core, or the guard itself fails.
//!
//! A ping every few milliseconds shows for how long nothing passed.

use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use simnel_gateway::Direction;

use crate::cases::not_run;
use crate::transfer::Transfer;
use crate::world::{address, bound, World};

const SECOND: Duration = Duration::from_secs(1);
/// The promise: a hang is no longer than this on the line.
pub const PROMISED: Duration = Duration::from_millis(500);
/// Time between pings.
const GAP: Duration = Duration::from_millis(5);
/// Length of a hang that no guard ends.
const HANG: Duration = Duration::from_millis(1_500);

/// Pings from the client to the server and back, both ways through the gateway.
pub struct Pings {
    answers: Arc<Mutex<Vec<Instant>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Pings {
    pub fn start(world: &World) -> Pings {
        let stop = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(Mutex::new(Vec::new()));
        let (ready, wait) = std::sync::mpsc::channel();
        let stopped = Arc::clone(&stop);
        let echo = world.spawn("s", move || {
            off_first_core();
            let socket = bound("10.77.2.2:7000");
            socket.set_read_timeout(Some(SECOND / 5)).unwrap();
            ready.send(()).unwrap();
            let mut buffer = [0; 64];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((n, from)) = socket.recv_from(&mut buffer) {
                    socket.send_to(&buffer[..n], from).unwrap();
                }
            }
        });
        wait.recv().unwrap();
        let (stopped, arrived) = (Arc::clone(&stop), Arc::clone(&answers));
        let client = world.spawn("c", move || {
            off_first_core();
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect("10.77.2.2:7000").unwrap();
            let receiving = socket.try_clone().unwrap();
            receiving.set_read_timeout(Some(SECOND / 5)).unwrap();
            let until = Arc::clone(&stopped);
            let receiver = std::thread::spawn(move || {
                while !until.load(Ordering::Relaxed) {
                    if receiving.recv(&mut [0; 64]).is_ok() {
                        arrived.lock().unwrap().push(Instant::now());
                    }
                }
            });
            while !stopped.load(Ordering::Relaxed) {
                // A refusal is an answer that the echo has ended.
                let _ = socket.send(&[0; 32]);
                std::thread::sleep(GAP);
            }
            receiver.join().unwrap();
        });
        let pings = Pings { answers, stop, threads: vec![echo, client] };
        std::thread::sleep(SECOND / 2);
        assert!(pings.answers.lock().unwrap().len() > 10, "no ping comes back");
        pings
    }

    /// The longest time without an answer since `start`.
    pub fn silence(&self, start: Instant) -> Duration {
        let answers = self.answers.lock().unwrap();
        let moments = answers.iter().copied().filter(|&at| at >= start).chain([Instant::now()]);
        let mut last = start;
        moments
            .map(|at| {
                let gap = at - last;
                last = at;
                gap
            })
            .max()
            .unwrap()
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Keeps the calling thread, and those that it will start, off the core that a test takes away.
fn off_first_core() {
    if cores() > 1 {
        pin(0, &(1..cores()).collect::<Vec<_>>());
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// sched_setaffinity(2) for a thread, 0 for the calling one.
fn pin(thread: i32, cores: &[usize]) {
    // SAFETY: all zero is an empty set; the set outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cores.iter().for_each(|&core| libc::CPU_SET(core, &mut set));
        let result = libc::sched_setaffinity(thread, size_of_val(&set), &raw const set);
        assert_eq!(result, 0, "sched_setaffinity: {}", std::io::Error::last_os_error());
    }
}

pub fn kill(process: i32, signal: i32) {
    // SAFETY: takes integers only.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0, "{process} is gone");
}

/// The daemon and the guard of the supervisor that the world started.
fn family(world: &World) -> Option<(i32, i32)> {
    let parent = world.daemon.as_ref().unwrap().id();
    let (mut daemon, mut guard) = (None, None);
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let (begin, rest) = stat.rsplit_once(')').unwrap();
        let mut rest = rest.split_whitespace();
        let (state, ppid) = (rest.next().unwrap(), rest.next().unwrap());
        if ppid != parent.to_string() || state == "Z" {
            continue;
        }
        let pid = entry.file_name().to_string_lossy().parse().unwrap();
        let role = if begin.ends_with("simnel-guard") { &mut guard } else { &mut daemon };
        *role = Some(pid);
    }
    Some((daemon?, guard?))
}

/// Waits until there are a daemon and a guard for which `wanted` holds.
pub fn family_where(world: &World, wanted: impl Fn((i32, i32)) -> bool) -> (i32, i32) {
    let start = Instant::now();
    loop {
        match family(world) {
            Some(family) if wanted(family) => return family,
            family => assert!(start.elapsed() < SECOND * 8, "there are only {family:?}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number of a thread of `process`.
fn thread_named(process: i32, name: &str) -> i32 {
    threads_named(process, name)[0]
}

/// The numbers of all threads of `process` that are called so.
pub fn threads_named(process: i32, name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let named = |path: &Path| std::fs::read_to_string(path.join("comm")).unwrap().trim() == name;
    let found = tasks.flatten().filter(|task| named(&task.path()));
    found.map(|task| task.file_name().to_string_lossy().parse().unwrap()).collect()
}

/// Wake-ups of each of the threads within a second.
fn wakes(process: i32, threads: &[i32]) -> Vec<u64> {
    let all = || -> Vec<u64> {
        let count = |thread: &i32| {
            let path = format!("/proc/{process}/task/{thread}/status");
            let text = std::fs::read_to_string(path).unwrap();
            let line = text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        };
        threads.iter().map(count).collect()
    };
    let before = all();
    std::thread::sleep(SECOND);
    all().iter().zip(before).map(|(after, before)| after - before).collect()
}

/// Lets `hang` do its work on the daemon; traffic must pass soon, and another daemon shape it as
/// the last one had been told.
fn survives(hang: impl FnOnce(i32, Duration)) {
    survives_in(World::new(), 1, hang);
}

/// The same in a world, with so many lanes each way.
pub fn survives_in(mut world: World, lanes: usize, hang: impl FnOnce(i32, Duration)) {
    let [download, upload, later] =
        [20, 8, 4].map(|rate| format!("cake bandwidth {rate}mbit besteffort"));
    world.start(&[&format!("wan0 lanes {lanes}={download}|{upload}")]);
    world.client("wan0").change(Direction::Upload, &later).unwrap();
    let (daemon, guard) = family_where(&world, |_| true);
    let pings = Pings::start(&world);
    let start = Instant::now();
    hang(daemon, HANG);
    let silence = pings.silence(start);
    println!("  nothing passed for {silence:?}");
    assert!(silence < PROMISED, "{silence:?}");
    let (daemon, _) = family_where(&world, |(new, other)| new != daemon && other != guard);
    std::thread::sleep(SECOND / 2);
    let shown = world.client("wan0").show().unwrap();
    assert!(shown[1].config.contains("4Mbit"), "{}", shown[1].config);
    let of = |direction: &str| threads_named(daemon, direction);
    let threads = [of("simnel-upload"), of("simnel-download")];
    assert!(threads.iter().all(|threads| threads.len() == lanes), "{threads:?}");
    let wakes = wakes(daemon, &threads.concat());
    assert!(!wakes.contains(&0), "of upload and download: {wakes:?}");
    pings.end();
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    std::thread::sleep(SECOND);
    // A busy machine may not fill the line in every second; none is above the rate.
    let is_full = (0..5).any(|_| {
        let rate = world.wire_rate("s", "wan0", SECOND);
        assert!(rate < 4.05e6, "not shaped again: {rate}");
        rate >= 3.6e6
    });
    assert!(is_full, "the line is not full");
    upload.end();
    world.stop();
}

pub fn a_stopped_daemon_lets_traffic_pass() {
    survives(stop);
}

/// A hang of the whole process.
pub fn stop(daemon: i32, time: Duration) {
    kill(daemon, libc::SIGSTOP);
    std::thread::sleep(time);
}

pub fn a_stopped_thread_lets_traffic_pass() {
    survives(|daemon, time| {
        let _stopped = Traced::stop(thread_named(daemon, "simnel-upload"));
        std::thread::sleep(time);
    });
}

/// One lane of two, the one that the pings take.
pub fn a_stopped_lane_lets_traffic_pass() {
    survives_in(World::new(), 2, |daemon, time| {
        let lanes = threads_named(daemon, "simnel-upload");
        let wakes = wakes(daemon, &lanes);
        println!("  lanes wake so often in a second: {wakes:?}");
        assert_eq!(lanes.len(), 2);
        let busiest = lanes.into_iter().zip(wakes).max_by_key(|(_, wakes)| *wakes);
        let start = Instant::now();
        let _stopped = Traced::stop(busiest.unwrap().0);
        std::thread::sleep(time.saturating_sub(start.elapsed()));
    });
}

pub fn a_thread_in_circles_lets_traffic_pass() {
    if !cfg!(target_arch = "x86_64") {
        return not_run("an endless loop is injected on x86-64 only");
    }
    survives(|daemon, time| {
        Traced::stop(thread_named(daemon, "simnel-upload")).loop_for_ever(daemon);
        std::thread::sleep(time);
    });
}

pub fn a_thread_that_ends_lets_traffic_pass() {
    if !cfg!(target_arch = "x86_64") {
        return not_run("an end of a thread is injected on x86-64 only");
    }
    survives(|daemon, time| {
        Traced::stop(thread_named(daemon, "simnel-upload")).end(daemon);
        std::thread::sleep(time);
    });
}

pub fn a_starved_core_lets_traffic_pass() {
    static HIGHEST: libc::c_int = 99;
    if cores() < 2 {
        return not_run("the only core cannot be taken from everybody");
    }
    survives(|daemon, time| {
        pin(thread_named(daemon, "simnel-upload"), &[0]);
        let spinner = std::thread::spawn(move || {
            pin(0, &[0]);
            let (policy, priority) = (libc::SCHED_FIFO, &raw const HIGHEST);
            // SAFETY: the priority outlives the call; 0 is the calling thread.
            let result =
                unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, priority) };
            assert_eq!(result, 0, "SCHED_FIFO: {}", std::io::Error::last_os_error());
            let start = Instant::now();
            while start.elapsed() < time {
                std::hint::spin_loop();
            }
        });
        spinner.join().unwrap();
    });
}

/// The line stays shaped, and another guard comes.
pub fn a_guard_that_fails_is_replaced() {
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 4mbit"]);
    let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
    let (daemon, _) = family_where(&world, |_| true);
    std::thread::sleep(SECOND * 2);
    for signal in [libc::SIGKILL, libc::SIGSTOP] {
        let (_, guard) = family_where(&world, |_| true);
        kill(guard, signal);
        let rate = world.wire_rate("s", "wan0", SECOND * 3);
        println!("  guard after signal {signal}: {:.3} Mbit/s", rate / 1e6);
        assert!((3.8e6..4.05e6).contains(&rate), "not shaped: {rate}");
        let (same, _) = family_where(&world, |(_, other)| other != guard);
        assert_eq!(same, daemon);
    }
    upload.end();
    // The new guard knows its work.
    let pings = Pings::start(&world);
    let start = Instant::now();
    kill(daemon, libc::SIGSTOP);
    std::thread::sleep(SECOND);
    let silence = pings.silence(start);
    println!("  nothing passed for {silence:?}");
    assert!(silence < PROMISED, "{silence:?}");
    pings.end();
    family_where(&world, |(new, _)| new != daemon);
    std::thread::sleep(SECOND / 2);
    world.stop();
}

/// sd_notify(3): that it serves, that it lives while its main loop does, that it ends.
pub fn the_service_manager_hears_who_lives() {
    let mut world = World::new();
    std::fs::create_dir_all(&world.control).unwrap();
    let path = world.control.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(SECOND * 3)).unwrap();
    let words = "wan0=|cake bandwidth 8mbit";
    let mut command = world.daemon_command(&[words], &world.control);
    world.daemon = Some(command.env("NOTIFY_SOCKET", &path).spawn().unwrap());
    let next = || {
        let mut state = [0; 64];
        manager.recv(&mut state).ok().map(|n| String::from_utf8_lossy(&state[..n]).into_owned())
    };
    let is = |state: &str| Some(String::from(state));
    assert_eq!(next(), is("READY=1"));
    assert_eq!(next(), is("WATCHDOG=1"));
    let (daemon, _) = family_where(&world, |_| true);
    let stopped = Traced::stop(daemon);
    // Some may come before three looks saw the same.
    std::thread::sleep(SECOND * 4);
    manager.set_nonblocking(true).unwrap();
    while next().is_some() {}
    std::thread::sleep(SECOND * 2);
    assert_eq!(next(), None, "all is well, while the main loop stands still");
    manager.set_nonblocking(false).unwrap();
    drop(stopped);
    assert_eq!(next(), is("WATCHDOG=1"));
    world.signal(libc::SIGTERM);
    while let Some(state) = next() {
        if state == "STOPPING=1" {
            assert!(world.reap().success());
            return;
        }
    }
    panic!("nobody said that it ends");
}

/// A thread of another process in the hands of ptrace(2); goes on when this is dropped.
struct Traced(i32);

impl Traced {
    fn stop(thread: i32) -> Traced {
        // SAFETY: takes integers and a place for the status.
        unsafe {
            let none = std::ptr::null_mut::<libc::c_void>();
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, thread, none, none), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, thread, none, none), 0);
            let mut status = 0;
            assert_eq!(libc::waitpid(thread, &raw mut status, libc::__WALL), thread);
        }
        Traced(thread)
    }

    /// The thread runs in circles from now on.
    fn loop_for_ever(self, process: i32) {
        const JUMP_TO_ITSELF: u64 = 0xfeeb;
        self.execute(process, JUMP_TO_ITSELF);
    }

    /// The thread ends, and nothing in the program hears of it.
    fn end(self, process: i32) {
        const SYSTEM_CALL: u64 = 0x050f;
        self.execute(process, SYSTEM_CALL);
    }

    /// Makes the thread go on with two bytes of code, in place of the program's entry, which is
    /// needed no more. A system call is exit(2).
    #[cfg(target_arch = "x86_64")]
    fn execute(self, process: i32, code: u64) {
        let auxiliary = std::fs::read(format!("/proc/{process}/auxv")).unwrap();
        let words: Vec<u64> =
            auxiliary.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap())).collect();
        let entry = words.chunks_exact(2).find(|pair| pair[0] == libc::AT_ENTRY).unwrap()[1];
        // SAFETY: the thread is stopped; the registers have the kernel's own layout.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            let none = std::ptr::null_mut::<libc::c_void>();
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, self.0, none, &raw mut registers), 0);
            registers.rip = entry;
            // No system call is to be begun again.
            registers.orig_rax = u64::MAX;
            (registers.rax, registers.rdi) = (libc::SYS_exit as u64, 0);
            assert_eq!(libc::ptrace(libc::PTRACE_POKEDATA, self.0, entry, code), 0);
            assert_eq!(libc::ptrace(libc::PTRACE_SETREGS, self.0, none, &raw const registers), 0);
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn execute(self, _: i32, _: u64) {}
}

impl Drop for Traced {
    fn drop(&mut self) {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: takes integers only; no status is wanted.
        unsafe {
            libc::ptrace(libc::PTRACE_DETACH, self.0, none, none);
            // A thread that was killed meanwhile stays until its tracer has seen its end.
            libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG);
        }
    }
}

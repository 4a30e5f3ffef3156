//! Real traffic over real Linux networking, in network namespaces of this machine.
//!
//! A [`Testbed`] makes namespaces, joins them with veth pairs and takes everything down again when
//! it is dropped, and also on SIGINT, SIGTERM and SIGHUP. Names carry the process id, so that
//! several can exist side by side. [`Home`] is the topology that most checks want: two LAN hosts, a
//! gateway, an Internet line, a server. [`traffic`], [`probe`] and [`wire`] load it and measure,
//! and a [`witness`] tells a busy machine from a slow gateway.
//!
//! Needs root and iproute2 (`ip`); ethtool for [`Testbed::plain_frames`], nftables for
//! masquerading. Nothing leaves the machine. Rule for callers: keep the `Testbed` alive as long as
//! anything runs in its namespaces.
//!
//! ```no_run
//! use simnel_testbed::{Home, HomeOptions};
//!
//! let home = Home::new("try-", HomeOptions { masquerade: true })?;
//! home.gateway.run("ip", &["route", "show"])?;
//! // What this thread opens, it opens at a computer of the home.
//! let socket = home.lan1.enter(|| std::net::UdpSocket::bind("0.0.0.0:0"))?;
//! # drop(socket);
//! # Ok::<(), simnel_testbed::TestbedError>(())
//! ```

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

pub mod demo;
mod home;
pub mod probe;
mod process;
pub mod traffic;
pub mod wire;
pub mod witness;

/// ICMP's messages.
pub use simnel_measure::icmp;

pub use home::{Home, HomeOptions};
pub use process::{Group, Process};

/// Reasons for which a testbed cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// Not root.
    #[error("a testbed makes network namespaces and therefore needs root: try again with sudo")]
    NotRoot,
    /// A program could not be started.
    #[error("cannot start `{program}`: {source} (is it installed?)")]
    NoProgram {
        /// The program.
        program: String,
        /// The system's message.
        source: io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// Its standard error.
        message: String,
    },
    /// A namespace could not be entered.
    #[error("cannot enter the network namespace `{namespace}`: {source}")]
    Enter {
        /// Its name.
        namespace: String,
        /// The system's message.
        source: io::Error,
    },
    /// Traffic could not be started.
    #[error("{what}: {source}")]
    Traffic {
        /// The attempt, and its place.
        what: String,
        /// The system's message.
        source: io::Error,
    },
}

/// Network namespaces that exist as long as this does.
#[derive(Debug)]
pub struct Testbed {
    prefix: String,
    namespaces: Vec<Namespace>,
    directory: OnceLock<PathBuf>,
    /// Directories that were not there, and are removed if nobody has used them.
    places: Vec<PathBuf>,
}

/// A network namespace of a [`Testbed`]; copies name the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
}

impl Testbed {
    /// An empty testbed. Its namespaces' names begin with `prefix`, the process id and a number.
    pub fn new(prefix: &str) -> Result<Testbed, TestbedError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return Err(TestbedError::NotRoot);
        }
        clean_up_on_signals();
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let prefix = format!("{prefix}{process}-{number}-");
        let (namespaces, places) = (Vec::new(), Vec::new());
        Ok(Testbed { prefix, namespaces, directory: OnceLock::new(), places })
    }

    /// Makes sure that a directory is there, for a mount namespace to have something else in its
    /// place. One that was not there goes with this, if it is empty.
    pub fn place(&mut self, path: &Path) -> Result<(), TestbedError> {
        if path.exists() {
            return Ok(());
        }
        let failed = |source| {
            let what = format!("cannot create {}", path.display());
            TestbedError::Traffic { what, source }
        };
        remains().places.insert(path.to_owned());
        self.places.push(path.to_owned());
        std::fs::create_dir_all(path).map_err(failed)
    }

    /// A directory that exists as long as this does, for sockets of programs under test.
    pub fn directory(&self) -> Result<&Path, TestbedError> {
        let directory = self
            .directory
            .get_or_init(|| std::env::temp_dir().join(self.prefix.trim_end_matches('-')));
        let failed = |source| TestbedError::Traffic {
            what: format!("cannot create {}", directory.display()),
            source,
        };
        std::fs::create_dir_all(directory).map_err(failed)?;
        remains().directories.insert(directory.clone());
        Ok(directory)
    }

    /// Makes a namespace with loopback up. TCP there is CUBIC unless a socket asks for another (or
    /// the host's settings forbid it). IPv6 is off, so that nothing but the experiment is on the
    /// wire.
    pub fn namespace(&mut self, name: &str) -> Result<Namespace, TestbedError> {
        let namespace = Namespace { name: format!("{}{name}", self.prefix) };
        run("ip", &["netns", "add", &namespace.name])?;
        remains().namespaces.insert(namespace.name.clone());
        self.namespaces.push(namespace.clone());
        namespace.ip(&["link", "set", "lo", "up"])?;
        // Refused where the host's tcp_allowed_congestion_control does not list it. `traffic` asks
        // for its congestion control socket by socket and does not depend on this.
        let _ = namespace.sysctl("net/ipv4/tcp_congestion_control", "cubic");
        // A kernel may be built without it.
        if Path::new("/proc/sys/net/ipv6").exists() {
            namespace.sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            namespace.sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        Ok(namespace)
    }

    /// Joins two namespaces by a veth pair, both ends up.
    pub fn veth(
        &self,
        (a, interface_a): (&Namespace, &str),
        (b, interface_b): (&Namespace, &str),
    ) -> Result<(), TestbedError> {
        let pair = ["link", "add", interface_a, "type", "veth", "peer", "name", interface_b];
        a.ip(&[&pair[..], &["netns", &b.name]].concat())?;
        a.ip(&["link", "set", interface_a, "up"])?;
        b.ip(&["link", "set", interface_b, "up"])
    }

    /// Makes both directions of an interface carry frames as a wire would: none above the MTU, and
    /// complete checksums. With offloads, a veth carries super-packets of up to 64 KB, which occupy
    /// a slow line for tens of milliseconds each.
    pub fn plain_frames(&self, namespace: &Namespace, interface: &str) -> Result<(), TestbedError> {
        let off = ["tso", "off", "gso", "off", "gro", "off", "tx", "off"];
        namespace.run("ethtool", &[&["-K", interface][..], &off[..]].concat())
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if let Some(directory) = self.directory.get() {
            let _ = std::fs::remove_dir_all(directory);
            remains().directories.remove(directory);
        }
        self.namespaces.iter().for_each(|namespace| process::end_all_in(&namespace.name));
        for place in &self.places {
            // What is not empty belongs to somebody else by now.
            let _ = std::fs::remove_dir(place);
            remains().places.remove(place);
        }
        for namespace in &self.namespaces {
            // What fails here has nobody left to tell; the name stays listed for a signal's turn.
            if run("ip", &["netns", "del", &namespace.name]).is_ok() {
                remains().namespaces.remove(&namespace.name);
            }
        }
    }
}

impl Namespace {
    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` on the namespace.
    pub fn ip(&self, arguments: &[&str]) -> Result<(), TestbedError> {
        run("ip", &[&["-n", &self.name][..], arguments].concat())
    }

    /// Runs a program in the namespace, to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<(), TestbedError> {
        run("ip", &[&["netns", "exec", &self.name, program][..], arguments].concat())
    }

    /// Gives an interface an address, `10.0.0.1/24`.
    pub fn address(&self, interface: &str, address: &str) -> Result<(), TestbedError> {
        self.ip(&["address", "add", address, "dev", interface])
    }

    /// Adds a route; `default` for all.
    pub fn route(&self, destination: &str, via: &str) -> Result<(), TestbedError> {
        self.ip(&["route", "add", destination, "via", via])
    }

    /// Makes it a router.
    pub fn forward(&self) -> Result<(), TestbedError> {
        self.sysctl("net/ipv4/ip_forward", "1")
    }

    /// Hides what it forwards out of `interface` behind its own address.
    pub fn masquerade(&self, interface: &str) -> Result<(), TestbedError> {
        self.run("nft", &["add", "table", "ip", "nat"])?;
        let chain = "{ type nat hook postrouting priority srcnat; }";
        self.run("nft", &["add", "chain", "ip", "nat", "post", chain])?;
        let rule = ["add", "rule", "ip", "nat", "post", "oifname", interface, "masquerade"];
        self.run("nft", &rule)
    }

    /// Sets a kernel parameter of the namespace, `net/ipv4/ip_forward`.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<(), TestbedError> {
        let path = format!("/proc/sys/{name}");
        let failed = |source| TestbedError::Traffic { what: format!("cannot set {path}"), source };
        self.enter(|| std::fs::write(&path, value))?.map_err(failed)
    }

    /// Runs `work` on a thread that is in the namespace. Sockets that it opens stay there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let place = self.open()?;
        thread::scope(|scope| {
            let thread = scope.spawn(|| move_into(&place).map(|()| work()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
        .map_err(|source| self.not_entered(source))
    }

    /// Begins `work` on a thread that is in the namespace; the error of that thread is that it
    /// could not go there.
    pub fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<io::Result<T>>, TestbedError> {
        let place = self.open()?;
        Ok(thread::spawn(move || move_into(&place).map(|()| work())))
    }

    fn open(&self) -> Result<File, TestbedError> {
        File::open(format!("/run/netns/{}", self.name)).map_err(|source| self.not_entered(source))
    }

    fn not_entered(&self, source: io::Error) -> TestbedError {
        TestbedError::Enter { namespace: self.name.clone(), source }
    }
}

/// Moves this thread into a network namespace.
fn move_into(place: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Runs a program to its end.
fn run(program: &str, arguments: &[&str]) -> Result<(), TestbedError> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| TestbedError::NoProgram { program: program.to_owned(), source })?;
    if output.status.success() {
        return Ok(());
    }
    Err(TestbedError::Command {
        command: format!("{program} {}", arguments.join(" ")),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Leftovers of a killed process.
#[derive(Default)]
struct Remains {
    namespaces: BTreeSet<String>,
    processes: BTreeSet<i32>,
    groups: BTreeSet<i32>,
    directories: BTreeSet<PathBuf>,
    places: BTreeSet<PathBuf>,
}

fn remains() -> MutexGuard<'static, Remains> {
    static REMAINS: Mutex<Remains> = Mutex::new(Remains {
        namespaces: BTreeSet::new(),
        processes: BTreeSet::new(),
        groups: BTreeSet::new(),
        directories: BTreeSet::new(),
        places: BTreeSet::new(),
    });
    REMAINS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True while a first SIGINT is left to somebody who stops by himself.
static STOPS_BY_ITSELF: AtomicBool = AtomicBool::new(false);

/// As long as this lives, a first SIGINT ends nothing here: its owner, who hears of it as well,
/// stops what runs, and drops it. A second one does not wait for him.
#[derive(Debug)]
pub struct Stopper(());

impl Stopper {
    /// From now on.
    #[must_use]
    pub fn begin() -> Stopper {
        STOPS_BY_ITSELF.store(true, Ordering::Relaxed);
        Stopper(())
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        STOPS_BY_ITSELF.store(false, Ordering::Relaxed);
    }
}

/// Starts, once, a thread that cleans up when a signal asks the program to end. It ends all in our
/// namespaces and deletes them, and then lets the signal do what it does.
fn clean_up_on_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without the handlers, only Drop cleans up: no reason not to work.
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
            return;
        };
        thread::spawn(move || {
            for signal in signals.forever() {
                if signal == SIGINT && STOPS_BY_ITSELF.swap(false, Ordering::Relaxed) {
                    continue;
                }
                let remains = remains();
                for &process in &remains.processes {
                    process::terminate(process);
                }
                for &group in &remains.groups {
                    process::kill_group(group);
                }
                for name in &remains.namespaces {
                    process::end_all_in(name);
                    let _ = run("ip", &["netns", "del", name]);
                }
                for directory in &remains.directories {
                    let _ = std::fs::remove_dir_all(directory);
                }
                for place in &remains.places {
                    let _ = std::fs::remove_dir(place);
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    });
}

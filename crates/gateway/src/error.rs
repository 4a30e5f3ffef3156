//! Errors, by name and with the fix.
//!
//! One enum for the crate: its verbs (`up`, `change`, `show`, `down`) share most causes. Each
//! message names the thing and says what to do; the CLI prints it as it is.

use std::io;
use std::path::PathBuf;

use crate::direction::Direction;

/// Reason why a verb failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The interface is not there.
    #[error("there is no interface `{0}`: `ip link` lists those there are")]
    NoInterface(String),
    /// Two interfaces cannot be joined.
    #[error("no bridge is made: {0}")]
    Bridge(String),
    /// A bridge does more than the data path could.
    #[error(
        "this kernel lacks nft_queue, and without it only a bridge that passes everything on can \
         be shaped, but `{bridge}` has {what}: `modprobe nft_queue`, or turn that off"
    )]
    BridgeDecides {
        /// The bridge.
        bridge: String,
        /// Its other work.
        what: &'static str,
    },
    /// A bridge has more ports than the data path could serve, or fewer.
    #[error(
        "this kernel lacks nft_queue, and without it only a bridge of two ports can be shaped, \
         but `{bridge}` has {ports}: `modprobe nft_queue`, or leave two"
    )]
    BridgePorts {
        /// The bridge.
        bridge: String,
        /// Ports that it has.
        ports: usize,
    },
    /// There are no sockets for a bridge's frames.
    #[error(
        "this kernel lacks nft_queue, and `{0}` has become the port of a bridge since the start, \
         so there are no sockets for its frames: start simnel anew, or `modprobe nft_queue`"
    )]
    NoFrameSockets(String),
    /// Lanes where there is one way only.
    #[error(
        "this kernel lacks nft_queue, and without it a bridge's frames have one lane: leave \
         `lanes` out, or `modprobe nft_queue`"
    )]
    LanesOnBridge,
    /// Frames of an interface cannot be had.
    #[error(transparent)]
    Frames(#[from] crate::frames::FrameError),
    /// The interface cannot be shaped.
    #[error("`{0}` is the loopback interface: name the one that leads to the Internet")]
    Loopback(String),
    /// Not a name that Linux gives to interfaces.
    #[error(
        "`{0}` is not an interface name: 1 to 15 bytes without `/`, spaces or control characters"
    )]
    BadInterfaceName(String),
    /// CAP_NET_ADMIN is missing.
    #[error(
        "the capability CAP_NET_ADMIN is missing: run as root, or with \
         `AmbientCapabilities=CAP_NET_ADMIN` under systemd"
    )]
    Privilege,
    /// Neither direction has settings.
    #[error("neither `upload` nor `download` is set for `{0}`: set at least one")]
    NothingToDo(String),
    /// The marks need two bits.
    #[error("mark mask {0:#x} is unusable: it must have exactly two bits set")]
    MarkMask(u32),
    /// All bits of the mark are used.
    #[error(
        "no two bits of the packet mark are free; {0} uses most: say with `mark_mask` in the \
         configuration file which two may be taken all the same"
    )]
    NoMarkBits(String),
    /// No four bits of the mark are free beside each other.
    #[error(
        "rules with `tier` need four bits of the packet mark beside each other, and none are free; \
         {0} uses some: take those rules out, or leave `mark_mask` out"
    )]
    NoTierBits(String),
    /// A rule of an interface that the kernel shapes.
    #[error(
        "{rule} for `{interface}`: {why}; with `backend = \"kernel\"` it cannot be had: say \
         `backend = \"userspace\"`, or take it out"
    )]
    RuleInKernel {
        /// The interface.
        interface: String,
        /// The rule, or what stands for it in the file.
        rule: String,
        /// The reason.
        why: &'static str,
    },
    /// Rules of a bridge's port.
    #[error("`{0}` is a port of a bridge, for which there are no rules yet: take the rules out")]
    RulesOnBridge(String),
    /// A rule and the discipline do not fit.
    #[error("{0}")]
    Rule(String),
    /// A second `up`.
    #[error(
        "`{interface}` is already managed (by {owner}): `simnel show {interface}` shows \
         how, `simnel down {interface}` ends it"
    )]
    AlreadyUp {
        /// The interface.
        interface: String,
        /// Its process.
        owner: String,
    },
    /// The kernel shapes it already.
    #[error(
        "the kernel shapes `{0}` already: `simnel show {0}` shows how, `simnel down {0}` ends it"
    )]
    InKernel(String),
    /// Somebody records already.
    #[error(
        "another client records the {direction} of `{interface}`: end that, or say another \
         `--direction`"
    )]
    Recorded {
        /// The interface.
        interface: String,
        /// The direction.
        direction: Direction,
    },
    /// An account that is none.
    #[error("there is no user `{0}` here: `getent passwd` lists them")]
    NoUser(String),
    /// The directory of another user's to be is in use.
    #[error(
        "{} cannot become another user's: a process of root's serves `{interface}` in it, or has \
         it on trial; end that first, or name another with `--control-dir`",
        path.display()
    )]
    RootsDirectory {
        /// Its path.
        path: PathBuf,
        /// The interface that is served.
        interface: String,
    },
    /// Somebody else could have put something in our files' place.
    #[error(
        "{} is not safe to use ({reason}): make it root's with `chown root` and \
         `chmod go-w`, remove it, or name another with `--control-dir`",
        path.display()
    )]
    UnsafePlace {
        /// The directory or file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// The nftables table is there, but no live process of ours owns it.
    #[error(
        "the nftables table `inet {table}` exists and belongs to another program: remove it with \
         `nft delete table inet {table}`"
    )]
    TableExists {
        /// Name of the table.
        table: String,
    },
    /// A kernel part is missing.
    #[error("this kernel lacks {what}: {fix}")]
    KernelLacks {
        /// The part.
        what: &'static str,
        /// The fix.
        fix: &'static str,
    },
    /// The kernel does not know the qdisc `simnel`.
    #[error(
        "this kernel has no qdisc `simnel`: build and install the module with \
         `make install-kernel`, then load it with `modprobe simnel`"
    )]
    NoModule,
    /// Linux's own cake, which is all that the kernel has, lacks some words.
    #[error(
        "this kernel has no qdisc `simnel`, and Linux's own cake cannot do `{0}`: install the \
         module with `make install-kernel` and `modprobe simnel`, or leave that out"
    )]
    NotLinuxs(String),
    /// The kernel's traffic control refused something.
    #[error("{doing}: {reason}")]
    Refused {
        /// The action that was asked for.
        doing: String,
        /// In the kernel's words.
        reason: String,
    },
    /// All queue numbers that we tried are taken.
    #[error(
        "no free NFQUEUE number from {first} to {last}: \
         /proc/net/netfilter/nfnetlink_queue lists them"
    )]
    NoQueueNumber {
        /// First that was tried.
        first: u16,
        /// Last that was tried.
        last: u16,
    },
    /// All log groups that we tried are taken.
    #[error(
        "no free NFLOG group from {first} to {last}: /proc/net/netfilter/nfnetlink_log lists them"
    )]
    NoLogGroup {
        /// First that was tried.
        first: u16,
        /// Last that was tried.
        last: u16,
    },
    /// A direction that is not running was to be changed.
    #[error(
        "`{interface}` has no {direction} discipline: end it with `simnel down {interface}` \
         and start it with one"
    )]
    NoDirection {
        /// The interface.
        interface: String,
        /// `upload` or `download`.
        direction: Direction,
    },
    /// The discipline refused its settings, or the words were not understood.
    #[error("{direction}: {reason}")]
    Discipline {
        /// The direction.
        direction: Direction,
        /// In the discipline's own words.
        reason: String,
    },
    /// There is no trial to keep.
    #[error("nothing of `{0}` is on trial: what runs stays as it is")]
    NoTrial(String),
    /// CAP_NET_RAW is missing.
    #[error(
        "autorate of `{0}` needs the capability CAP_NET_RAW to ask reflectors for echoes: run as \
         root, or add it to the service's CapabilityBoundingSet and AmbientCapabilities"
    )]
    NoRaw(String),
    /// Autorate that a reload brought.
    #[error(
        "autorate of `{0}` needs sockets that only a start can open: restart the service; until \
         then its rates stay at the ends of their ranges"
    )]
    NoProbes(String),
    /// Autorate without reflectors of an interface that the kernel shapes, and without copies.
    #[error(
        "nobody tells the delay of `{interface}`: without reflectors passing TCP tells it, by \
         copies of its headers ({error}); name `reflectors`, or give the service CAP_NET_RAW and \
         RestrictAddressFamilies=AF_PACKET"
    )]
    NobodyTells {
        /// The interface.
        interface: String,
        /// Reason why there is no socket for them.
        error: String,
    },
    /// Disciplines that were there.
    #[error(
        "what the kernel shaped `{0}` with is gone: others took it away, or the interface went"
    )]
    TakenAway(String),
    /// A question about packets that the daemon does not see.
    #[error(
        "the kernel shapes `{0}`, and its packets do not pass the daemon: `simnel record {0} FILE` \
         has copies of its own"
    )]
    NotOurs(String),
    /// A qdisc is where one would be that sees what leaves.
    #[error(
        "`{0}` has the qdisc `ingress`, which does not see what leaves: `simnel down {0}` and \
         `simnel up` put `clsact` in its place, or say `--direction download`"
    )]
    NoCopies(String),
    /// Lanes of an interface that the kernel shapes.
    #[error("lanes of `{0}` need the daemon: leave `backend` out, or `lanes`")]
    LanesInKernel(String),
    /// Disciplines of an interface that the module would make on a stack that is too small.
    #[error(
        "the kernel takes one discipline below another, and those of `{0}` stand deeper: leave \
         `backend` out, or one of them"
    )]
    DeepInKernel(String),
    /// A trial's time.
    #[error("a trial lasts from 1 s to 7 days, so {0} ms is no time for one")]
    TrialTime(u64),
    /// A thread of the data path does not answer.
    #[error("the {0} thread does not answer: see the system log, then `simnel down` and `up`")]
    Unresponsive(Direction),
    /// A thread of the data path has ended by itself.
    #[error("{interface}: the {direction} thread has ended, which it never should: see above")]
    Ended {
        /// The interface.
        interface: String,
        /// The direction.
        direction: Direction,
    },
    /// No daemon is listening.
    #[error(
        "nothing manages `{interface}` (no answer at {}): {}",
        path.display(),
        match is_there {
            true => "start it with `simnel up`",
            false => "there is no such interface, and no daemon waits for it; `ip link` lists \
                      those there are",
        }
    )]
    NotUp {
        /// The interface.
        interface: String,
        /// The control socket.
        path: PathBuf,
        /// False if there is no such interface here.
        is_there: bool,
    },
    /// Its daemon could not take it over yet.
    #[error(
        "`{interface}` is not shaped yet, and waited for: {reason}; `simnel down {interface}` ends \
         that"
    )]
    Awaited {
        /// The interface.
        interface: String,
        /// The reason.
        reason: String,
    },
    /// Its daemon has ended, and the supervisor is about to start another one.
    #[error(
        "the daemon of `{0}` is about to start; traffic passes unshaped until then (`simnel down \
         {0}` waits for it)"
    )]
    Restarting(String),
    /// Its daemon has ended, or has ended the connection, in the middle of a request.
    #[error(
        "the daemon of `{0}` went away before it answered: if it was not told to end, another one \
         is about to start; `simnel show {0}` says what runs"
    )]
    Unanswered(String),
    /// The daemon's answer: an error that it reports.
    #[error("{0}")]
    Remote(String),
    /// The daemon's answer is not one of ours.
    #[error("the answer of the daemon was not understood ({0}): are both the same version?")]
    Protocol(String),
    /// The configuration file.
    #[error("{}: {reason}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// Key, line and what was expected.
        reason: String,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// Its purpose.
        doing: String,
        /// The system's word.
        source: io::Error,
    },
}

impl Error {
    /// A failed system call, and what it was for.
    pub(crate) fn system(doing: impl Into<String>, source: io::Error) -> Error {
        Error::System { doing: doing.into(), source }
    }
}

//! Processes of a user of their own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Instant;

use rustix::process::{kill_process, Signal};
use simnel_gateway::control::Client;
use simnel_testbed::{Home, Process};

use crate::trial::daemon_of;
use crate::{text, threads, within, Live, SECOND, SIMNEL};

const NOBODY: &str = "65534";

/// Each thread is this user's, in no other group, with no capability beyond those of a family.
fn assert_nobodys(process: u32) {
    const NET_ADMIN: u64 = 1 << 12;
    // Where root may not lift the limit of what is locked.
    const IPC_LOCK: u64 = 1 << 14;
    const SYS_NICE: u64 = 1 << 23;
    let threads = threads(process);
    // Supervisor, guard, the daemon's control thread and its two directions.
    assert!(threads.len() >= 5, "{threads:?}");
    for thread in threads {
        let status = fs::read_to_string(thread.join("status")).unwrap();
        let said = |name: &str| -> Vec<&str> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().collect()
        };
        assert_eq!(said("Uid:"), [NOBODY; 4], "{status}");
        assert_eq!(said("Gid:"), [NOBODY; 4], "{status}");
        assert!(said("Groups:").is_empty(), "{status}");
        for set in ["CapPrm:", "CapEff:"] {
            let bits = u64::from_str_radix(said(set)[0], 16).unwrap();
            assert!(
                bits & !(NET_ADMIN | IPC_LOCK | SYS_NICE) == 0 && bits & NET_ADMIN != 0,
                "{status}"
            );
        }
        for (name, value) in [("CapInh:", "0000000000000000"), ("NoNewPrivs:", "1")] {
            assert_eq!(said(name), [value], "{status}");
        }
    }
}

#[test]
fn what_root_starts_becomes_the_user_that_is_named() {
    let test = "what_root_starts_becomes_the_user_that_is_named";
    let Some(live) = Live::beside_others(test) else { return };
    let wire = live.line("rate 20mbit delay 1ms");
    let directory = std::env::temp_dir().join(format!("simnel-user-{}", std::process::id()));
    let at = directory.to_str().unwrap();
    let simnel = |words: &str| live.simnel_in(at, words);
    let up = live.start_in(at, "wan", "up wan download 20mbit upload 3mbit --user nobody");
    thread::sleep(SECOND / 2);
    assert_nobodys(up.id());
    let server = Home::SERVER.to_string();
    let pinged = within(&live.home.lan1, "ping", &["-c", "3", "-i", "0.2", "-W", "1", &server]);
    assert!(pinged.status.success(), "{pinged:?}");
    let shown = text(&simnel("show -s wan").stdout);
    assert!(shown.contains("bandwidth 3Mbit") && !shown.contains("Sent 0 bytes 0 pkt"), "{shown}");
    // The kernel's list of queues is root's to open, and was opened before.
    let entries = Client::connect(&directory, "wan").unwrap().show().unwrap();
    assert!(entries.iter().all(|entry| entry.kernel.id_sequence > 0), "{entries:?}");

    kill_process(daemon_of(up.id()), Signal::KILL).unwrap();
    let back = Instant::now();
    while !simnel("show wan").status.success() {
        assert!(back.elapsed() < SECOND * 2, "no other daemon");
        thread::sleep(SECOND / 20);
    }
    thread::sleep(SECOND / 2);
    assert_nobodys(up.id());
    let changed = simnel("change wan upload 2mbit");
    assert!(changed.status.success(), "{changed:?}");
    assert!(text(&simnel("show wan").stdout).contains("bandwidth 2Mbit"));

    // What another user could have prepared is nothing for root.
    let refused = simnel("up lan1 upload 9mbit --anyway");
    assert!(text(&refused.stderr).contains("it belongs to user 65534"), "{refused:?}");
    let down = simnel("down wan");
    assert!(down.status.success(), "{down:?}");
    drop(up);
    assert!(live.is_clean() && !Path::new(at).join("wan.sock").exists());
    wire.stop();
    fs::remove_dir_all(directory).unwrap();
}

/// A process of the user's, where the kernel has no discipline that could shape.
#[test]
fn a_user_is_of_the_process_that_stays_or_told_that_none_does() {
    let test = "a_user_is_of_the_process_that_stays_or_told_that_none_does";
    let Some(live) = Live::beside_others(test) else { return };
    let directory = std::env::temp_dir().join(format!("simnel-auto-{}", std::process::id()));
    let at = directory.to_str().unwrap();
    let words = "up wan download 9mbit upload 3mbit --backend auto";
    let mut up = live.spawn_in(at, &format!("{words} --user nobody"));
    let begun = Instant::now();
    while !live.simnel_in(at, "show wan").status.success() {
        assert!(begun.elapsed() < SECOND * 5, "`{words}` does not come up: {:?}", up.failure());
        thread::sleep(SECOND / 20);
    }
    match directory.join("wan.sock").exists() {
        true => assert_nobodys(up.id()),
        false => {
            let begun = Instant::now();
            let said = loop {
                // The error is made of what was said, whatever the end was.
                if let Some(said) = up.failure() {
                    break said.to_string();
                }
                assert!(begun.elapsed() < SECOND * 5, "`{words}` does not end");
                thread::sleep(SECOND / 20);
            };
            assert!(said.contains("`--user` changes nothing, since no daemon stays"), "{said}");
        }
    }
    assert!(live.simnel_in(at, "down wan").status.success());
    drop(up);
    assert!(live.is_clean());
    let _ = fs::remove_dir_all(directory);
}

#[test]
fn a_user_that_is_none_is_told_and_nothing_is_begun() {
    let Some(live) = Live::beside_others("a_user_that_is_none_is_told_and_nothing_is_begun") else {
        return;
    };
    let told = live.simnel("up wan upload 3mbit --user nobody-of-this-name");
    assert!(text(&told.stderr).contains("there is no user `nobody-of-this-name`"), "{told:?}");
    let told = live.simnel("up wan upload 3mbit --backend kernel --user nobody");
    assert!(text(&told.stderr).contains("`--user` is of a process"), "{told:?}");
    assert!(live.is_clean());
}

/// Processes on the gateway with a /run of their own and, beside root, the account of the packages.
struct WithAccount<'a> {
    live: &'a Live,
    up: Process,
}

impl WithAccount<'_> {
    /// The first of them is what `words` start, which manages `wan`.
    fn new<'a>(live: &'a Live, words: &str) -> WithAccount<'a> {
        let passwd = format!("{}/passwd", live.control_dir());
        let accounts = format!("root:x:0:0::/:/bin/sh\nsimnel:x:{NOBODY}:{NOBODY}::/:\n");
        fs::write(&passwd, accounts).unwrap();
        let line = format!(
            "mount --bind {passwd} /etc/passwd && mount -t tmpfs -o mode=755 none /run && \
             exec {SIMNEL} {words}"
        );
        let up = live.home.gateway.spawn("sh", &["-c", &line]).unwrap();
        let mut there = WithAccount { live, up };
        let begun = Instant::now();
        while !there.simnel("show wan").status.success() {
            if let Some(error) = there.up.failure() {
                panic!("{error}");
            }
            assert!(begun.elapsed() < SECOND * 5, "`{words}` does not come up");
            thread::sleep(SECOND / 20);
        }
        there
    }

    /// Runs a command there to its end.
    fn within(&self, program: &str, words: &str) -> Output {
        let up = self.up.id().to_string();
        let all = ["-t", &up, "-m", program].into_iter().chain(words.split_whitespace());
        within(&self.live.home.gateway, "nsenter", &all.collect::<Vec<_>>())
    }

    fn simnel(&self, words: &str) -> Output {
        self.within(SIMNEL, words)
    }
}

/// Number of the user of `process`.
fn user(process: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn what_root_starts_is_the_packages_account_where_there_is_one() {
    let test = "what_root_starts_is_the_packages_account_where_there_is_one";
    let Some(live) = Live::beside_others(test) else { return };
    let there = WithAccount::new(&live, "up wan download 20mbit upload 3mbit");
    assert_nobodys(there.up.id());
    let about = text(&there.within("stat", "-c %u:%g:%a /run/simnel /run/simnel/wan.sock").stdout);
    assert_eq!(about, format!("{NOBODY}:0:2755\n{NOBODY}:0:660\n"));
    // Root's next `up` agrees with the first one, and `--user root` does not.
    let refused = there.simnel("up lan1 upload 9mbit --anyway --user root");
    assert!(text(&refused.stderr).contains("it belongs to user 65534"), "{refused:?}");
    let second = there.within("timeout", &format!("3 {SIMNEL} up lan1 upload 9mbit --anyway"));
    assert!(text(&second.stderr).contains("user      simnel, since"), "{second:?}");
    // Root without any capability, as `serve` is, is answered.
    let bare = || {
        let words = format!("--bounding-set -all --inh-caps -all {SIMNEL} show wan");
        text(&there.within("setpriv", &words).stdout).contains("bandwidth 3Mbit")
    };
    assert!(bare());
    kill_process(daemon_of(there.up.id()), Signal::KILL).unwrap();
    let back = Instant::now();
    while !bare() {
        assert!(back.elapsed() < SECOND * 5, "no other daemon answers");
        thread::sleep(SECOND / 20);
    }
    let down = there.simnel("down wan");
    assert!(down.status.success(), "{down:?}");
    drop(there);
    assert!(live.is_clean());
}

#[test]
fn root_stays_root_where_that_is_said_or_another_directory_is_named() {
    let test = "root_stays_root_where_that_is_said_or_another_directory_is_named";
    let Some(live) = Live::beside_others(test) else { return };
    let there = WithAccount::new(&live, "up wan upload 3mbit --user root");
    assert_eq!(user(there.up.id()), "0");
    // A process of root's uses the directory: the next one is root's, too.
    let second = there.within("timeout", &format!("3 {SIMNEL} up lan1 upload 9mbit --anyway"));
    let said = text(&second.stderr);
    assert!(said.contains("lan1: up") && !said.contains("user      simnel"), "{second:?}");
    // Nobody uses this one, but it is not the packages'.
    let words = format!("3 {SIMNEL} up lan1 upload 9mbit --anyway --control-dir /run/other");
    let other = there.within("timeout", &words);
    let said = text(&other.stderr);
    assert!(said.contains("lan1: up") && !said.contains("user      simnel"), "{other:?}");
    assert!(there.simnel("down wan").status.success());
    drop(there);
    assert!(live.is_clean());
}

#[test]
fn a_service_is_the_packages_account_if_that_may_read_its_file() {
    let test = "a_service_is_the_packages_account_if_that_may_read_its_file";
    let Some(live) = Live::beside_others(test) else { return };
    let text = "[[interface]]\nname = \"wan\"\nupload = \"3mbit\"\n";
    for (mode, expected) in [("644", NOBODY), ("600", "0")] {
        let file = std::env::temp_dir().join(format!("simnel-{mode}-{}", std::process::id()));
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(u32::from_str_radix(mode, 8).unwrap()))
            .unwrap();
        let there = WithAccount::new(&live, &format!("daemon --config {}", file.display()));
        assert_eq!(user(there.up.id()), expected, "{mode}");
        drop(there);
        fs::remove_file(file).unwrap();
    }
    assert!(live.is_clean());
}

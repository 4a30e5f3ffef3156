//! Settings on trial end by themselves, also if the daemon dies meanwhile.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};

use crate::{text, Live, SECOND};

/// The daemon among the children of the process that `simnel up` is.
pub(crate) fn daemon_of(process: u32) -> Pid {
    let children =
        fs::read_to_string(format!("/proc/{process}/task/{process}/children")).expect("a process");
    let named = |pid: &&str| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() != "simnel-guard"
    };
    let daemon = children.split_whitespace().find(named).expect("a daemon");
    Pid::from_raw(daemon.parse().unwrap()).unwrap()
}

fn upload(live: &Live) -> String {
    let shown = live.ok("show wan");
    shown.lines().find(|line| !line.contains("wan:download")).unwrap_or_default().to_owned()
}

#[test]
fn a_trial_ends_by_itself_unless_it_is_kept() {
    let Some(live) = Live::beside_others("a_trial_ends_by_itself_unless_it_is_kept") else {
        return;
    };
    let told = text(&live.simnel("up wan upload 10mbit --for 1s").stderr);
    assert!(told.contains("wan: the trial has ended\nsimnel: wan: down"), "{told}");
    let begin = Instant::now();
    let mut up = live.start("wan", "up wan download 50mbit upload 10mbit --for 4s");
    let shown = text(&live.simnel("show wan").stderr);
    assert!(shown.contains("wan is on trial: given back in"), "{shown}");
    let said = live.simnel("change wan upload 8mbit --for 1s");
    assert!(said.status.success() && text(&said.stderr).contains("as before in 1 s"));
    assert!(upload(&live).contains("bandwidth 8Mbit"));
    // No timer is lost with a daemon.
    kill_process(daemon_of(up.id()), Signal::KILL).unwrap();
    let back = Instant::now();
    while !live.simnel("show wan").status.success() {
        assert!(back.elapsed() < SECOND, "no other daemon");
        thread::sleep(SECOND / 20);
    }
    let shown = text(&live.simnel("show wan").stderr);
    assert!(
        shown.contains("upload in") && shown.contains("again cake bandwidth 10Mbit"),
        "{shown}"
    );
    assert!(upload(&live).contains("bandwidth 8Mbit"));
    thread::sleep(SECOND * 6 / 5);
    assert!(upload(&live).contains("bandwidth 10Mbit"));
    while up.failure().is_none() && !live.is_clean() {
        assert!(begin.elapsed() < SECOND * 6, "the trial does not end");
        thread::sleep(SECOND / 20);
    }
    let lasted = begin.elapsed();
    assert!((SECOND * 39 / 10..SECOND * 5).contains(&lasted), "{lasted:?}");
    drop(up);

    let up = live.start("wan", "up wan upload 10mbit --for 1s");
    assert_eq!(live.ok("keep wan"), "wan: kept\n");
    let again = text(&live.simnel("keep wan").stderr);
    assert!(again.contains("nothing of `wan` is on trial"), "{again}");
    // A change that is said without a time is a decision.
    live.ok("change wan upload 9mbit --for 1s");
    live.ok("change wan upload 7mbit");
    thread::sleep(Duration::from_millis(1_300));
    assert!(upload(&live).contains("bandwidth 7Mbit"));
    for (words, complaint) in [
        ("up wan upload 1mbit --for 10", "a time from 1s to 168h"),
        ("up wan upload 1mbit --for 0s", "a time from 1s to 168h"),
        ("change wan upload 1mbit --for 8d", "a time from 1s to 168h"),
    ] {
        let output = live.simnel(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(text(&output.stderr).contains(complaint), "{words}: {}", text(&output.stderr));
    }
    live.ok("down wan");
    drop(up);
    assert!(live.is_clean());
}

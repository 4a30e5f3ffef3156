//! An interface that a daemon waits for: what can be asked meanwhile, and its end by command.

use std::path::Path;
use std::time::Instant;
use std::{fs, thread};

use simnel_testbed::Process;

use crate::{text, within, Live, SECOND, SIMNEL};

/// A daemon that waits for `late0`.
fn waiting(live: &Live) -> Process {
    let directory = live.control_dir();
    let (file, socket) = (format!("{directory}/simnel.toml"), format!("{directory}/late0.sock"));
    let interface = "[[interface]]\nname = \"late0\"\nupload = \"5mbit\"\n";
    fs::write(&file, format!("control_dir = \"{directory}\"\n{interface}")).unwrap();
    let mut daemon = live.home.gateway.spawn(SIMNEL, &["daemon", "--config", &file]).unwrap();
    within_seconds(|| match daemon.failure() {
        None => Path::new(&socket).exists(),
        Some(error) => panic!("{error}"),
    });
    daemon
}

fn within_seconds(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SECOND * 10, "it does not come to that");
        thread::sleep(SECOND / 20);
    }
}

#[test]
fn an_interface_that_is_waited_for_is_told_of() {
    let Some(live) = Live::beside_others("an_interface_that_is_waited_for_is_told_of") else {
        return;
    };
    let daemon = waiting(&live);
    const WHY: &str = "waited for: there is no interface `late0`";
    for words in ["show late0", "show -s", "show"] {
        let shown = live.simnel(words);
        assert_eq!((shown.status.code(), text(&shown.stdout).as_str()), (Some(1), ""), "{words}");
        let told = text(&shown.stderr);
        assert!(told.starts_with(&format!("simnel: late0: {WHY}")), "{words}: {told}");
        assert_eq!(told.lines().count(), 1, "{words}: {told}");
    }
    let shown = live.simnel("show --json late0");
    let items: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(1));
    assert_eq!((&items[0]["kind"], &items[0]["dev"]), (&"trouble".into(), &"late0".into()));
    assert!(items[0]["text"].as_str().unwrap().starts_with(WHY), "{items}");
    assert_eq!(items.as_array().unwrap().len(), 1);
    for words in ["change late0 upload 3mbit", "keep late0", "rules late0", "rules"] {
        let told = text(&live.simnel(words).stderr);
        assert!(told.contains("`late0` is not shaped yet"), "{words}: {told}");
    }

    let ip = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        assert!(within(&live.home.gateway, "ip", &words).status.success(), "{words:?}");
    };
    ip("link add late0 type veth peer name late1");
    within_seconds(|| live.simnel("show late0").status.success());
    assert!(live.ok("show late0").contains("bandwidth 5Mbit"));
    daemon.stop();
    assert!(live.is_clean());
}

#[test]
fn what_is_waited_for_is_ended_by_down() {
    let Some(live) = Live::beside_others("what_is_waited_for_is_ended_by_down") else { return };
    let mut daemon = waiting(&live);
    assert_eq!(live.ok("down late0"), "late0: down, 0 queued packets let go\n");
    let mut end = String::new();
    within_seconds(|| match daemon.failure() {
        None => false,
        Some(error) => {
            end = error.to_string();
            true
        }
    });
    assert!(end.contains("exit status: 0"), "{end}");
    let shown = live.simnel("show late0");
    assert!(text(&shown.stderr).contains("nothing manages `late0`"), "{shown:?}");
    assert!(live.is_clean() && !Path::new(&live.control_dir()).join("late0.sock").exists());
}

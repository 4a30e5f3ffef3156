//! Commands and configuration files: what they do, and what they say about mistakes.

use std::process::Command;

use crate::{text, Live, SIMNEL};

#[test]
fn two_interfaces_at_once_and_no_second_gateway_on_one() {
    let Some(live) = Live::new("two_interfaces_at_once_and_no_second_gateway_on_one") else {
        return;
    };
    let wan = live.start("wan", "up wan download 50mbit upload 10mbit diffserv4 nat docsis");
    let lan = live.start("br-lan", "up br-lan download 40mbit");
    let second = live.simnel("up wan upload 5mbit");
    assert_eq!(second.status.code(), Some(1));
    let error = text(&second.stderr);
    assert!(error.contains("`wan` is already managed"), "{error}");

    let shown = live.ok("show");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    for (word, device) in [("10Mbit", "wan "), ("50Mbit", "wan:download"), ("40Mbit", "br-lan")] {
        let line = lines.iter().find(|line| line.contains(word)).expect(word);
        assert!(line.contains(device) && line.contains("qdisc cake"), "{line}");
    }
    assert!(live.ok("show -s wan").contains("Sent "));
    let json: serde_json::Value = serde_json::from_str(&live.ok("show -s -j wan")).unwrap();
    assert_eq!(json[0]["kind"], "cake");
    assert_eq!(json.as_array().map(Vec::len), Some(2));

    live.ok("change wan upload 8mbit ack-filter");
    let shown = live.ok("show wan");
    let upload = shown.lines().find(|line| !line.contains("wan:download")).unwrap();
    for word in ["bandwidth 8Mbit", "diffserv4", " nat ", "ack-filter", "overhead 18"] {
        assert!(upload.contains(word), "no `{word}` in {upload}");
    }
    // Status 2 for words that make no sense, 1 for what cannot be done.
    for (words, status, complaint) in [
        ("change wan sideload 8mbit", 2, "`sideload` is no direction"),
        ("change wan upload 8mbits", 2, "`8mbits`"),
        ("change br-lan upload 8mbit", 1, "`br-lan` has no upload discipline"),
        ("down lan1", 1, "nothing manages `lan1`"),
        ("up nope upload 1mbit", 1, "no interface `nope`"),
        ("up lo upload 1mbit", 1, "loopback"),
    ] {
        let output = live.simnel(words);
        let error = text(&output.stderr).replace(['\n', '│'], " ");
        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(status), "{words}: {error}");
        assert!(error.contains(complaint), "`{words}`: {error}");
    }
    live.ok("down wan");
    assert!(live.ok("show").contains("br-lan"));
    live.ok("down br-lan");
    drop((wan, lan));
    assert!(live.is_clean());
}

/// Standard error of a command that must fail, on one line.
fn complaint(words: &[&str], status: i32) -> String {
    let output = Command::new(SIMNEL).args(words).output().unwrap();
    let error = text(&output.stderr).replace('│', " ");
    assert_eq!(output.status.code(), Some(status), "{words:?}: {error}");
    error.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn mistakes_are_named() {
    for (words, expected) in [
        ("up eth0", "neither `download RATE` nor `upload RATE` follows `eth0`"),
        ("up eth0 upload", "`upload` needs a rate"),
        ("up eth0 upload fast", "`fast`"),
        ("up eth0 upload 10mbit cake difserv4", "`difserv4`"),
        ("up eth0 upload 10mbit cakes", "`cakes`"),
        ("up eth0 upload 10mbit pfifo", "`pfifo` does not shape"),
        ("up a/b upload 10mbit", "`a/b` is not an interface name"),
        ("link eth0 rate lots", "`lots`"),
        ("link eth0 eth1", "nothing says what the line is like"),
    ] {
        let error = complaint(&words.split(' ').collect::<Vec<_>>(), 2);
        assert!(error.contains(expected), "`{words}`: {error}");
    }
    for (words, expected) in [
        ("link eth0 eth0 rate 1mbit", "both ends are `eth0`"),
        ("daemon --config /no/such/file", "/no/such/file"),
    ] {
        let error = complaint(&words.split(' ').collect::<Vec<_>>(), 1);
        assert!(error.contains(expected), "`{words}`: {error}");
    }
}

#[test]
fn mistakes_in_the_configuration_file_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("simnel.toml");
    for (content, expected) in [
        ("", "no [[interface]]"),
        ("[[interface]]\nname = \"eth0\"\n", "neither `download` nor `upload`"),
        ("[[interface]]\nname = \"eth0\"\nuplaod = \"1mbit\"\n", "`uplaod`"),
        ("[[interface]]\nname = \"eth0\"\nupload = 1\n", "line 3"),
        ("[[interface]]\nname = \"eth0\"\nupload = \"1mbit\"\nqdisc = \"cake nate\"\n", "`nate`"),
        ("[[interface]\n", "line 1"),
        ("[[interface]]\nname = \"eth0\"\nupload = \"1mbit\"\nmark_mask = 1\n", "mark mask"),
    ] {
        std::fs::write(&file, content).unwrap();
        let error = complaint(&["daemon", "--config", file.to_str().unwrap()], 1);
        assert!(error.contains(expected), "{content:?}: {error}");
    }
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    let error = complaint(&["daemon", "--config", file.to_str().unwrap()], 1);
    assert!(error.contains("UTF-8"), "{error}");
}

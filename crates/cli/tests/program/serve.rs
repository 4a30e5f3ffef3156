//! `simnel serve` on a bad day.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::{text, unwrapped, SIMNEL};

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `serve` gives its rights up, so that modes of files count for root as well.
#[test]
fn sockets_that_may_not_be_opened_are_told() {
    let room = tempfile::tempdir().unwrap();
    let socket = room.path().join("wan.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, Permissions::from_mode(0o000)).unwrap();
    let child = Command::new(SIMNEL)
        .args(["serve", "--listen", "127.0.0.1:0", "--control-dir"])
        .arg(room.path())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Ended(child.expect("the program starts"));
    let mut said = BufReader::new(server.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let (mut trouble, mut address) = (String::new(), String::new());
    while trouble.is_empty() || address.is_empty() {
        let line = said.next().expect("both are told");
        match line.split_once("http://") {
            Some((_, rest)) => address = rest.split('/').next().unwrap().to_owned(),
            None => trouble = line,
        }
    }
    assert!(trouble.contains("wan.sock (are you root?)"), "{trouble}");
    let answer = get(&address, "/api/v1/interfaces");
    assert!(answer.contains("not everything that runs is seen"), "{answer}");
    assert!(get(&address, "/metrics").contains("simnel_sockets_open{} 0.0"));
}

#[test]
fn servers_for_nobody_and_tokens_to_be_guessed_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let token = room.path().join("token");
    let refused = |arguments: &[&str], complaint: &str| {
        let output = Command::new("timeout").args(["60", SIMNEL, "serve"]).args(arguments).output();
        let output = output.expect("the program starts");
        let said = text(&output.stderr);
        assert!(unwrapped(&said).contains(complaint), "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
    };
    refused(&["--test", "--sessions", "0"], "0 is not in 1..=128");
    let path = token.to_str().unwrap();
    for (text, complaint) in [
        ("x\n", "has 1 character, of at least 8"),
        ("\nx\n", "no token"),
        ("p\u{e4}sswort\n", "has `\u{e4}`, which"),
        ("two words\n", "has ` `, which"),
        ("100%&more\n", "has `%`, which"),
        ("quite#short\n", "has `#`, which"),
    ] {
        std::fs::write(&token, text).unwrap();
        refused(&["--test", "--token-file", path], complaint);
        refused(&["--listen", "0.0.0.0:0", "--token-file", path], complaint);
    }
}

/// No command that is told leads to 0.0.0.0.
#[test]
fn servers_at_all_addresses_are_told_as_a_host_to_be_named() {
    for (arguments, told) in [(&["--test"][..], "--server HOST:"), (&[], "http://HOST:")] {
        let room = tempfile::tempdir().unwrap();
        let token = room.path().join("token");
        std::fs::write(&token, "Long-enough_1.~\n").unwrap();
        let child = Command::new(SIMNEL)
            .args(["serve", "--listen", "0.0.0.0:0", "--control-dir"])
            .args([room.path(), "--token-file".as_ref(), &token])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn();
        let mut server = Ended(child.expect("the program starts"));
        let said = BufReader::new(server.0.stderr.take().unwrap());
        assert!(said.lines().map(Result::unwrap).any(|line| line.contains(told)), "{told}");
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it serves");
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn history_on_a_full_disk_is_told_and_ends_nothing() {
    let room = tempfile::tempdir().unwrap();
    // A disk of its own, too small for the file.
    let serve = format!(
        "mount -t tmpfs -o size=8k none '{0}' && exec {SIMNEL} serve --listen 127.0.0.1:0 \
         --history '{0}/history' --control-dir '{0}/none'",
        room.path().display()
    );
    let namespaces = ["--user", "--map-root-user", "--mount"];
    if !Command::new("unshare").args(namespaces).arg("true").status().is_ok_and(|s| s.success()) {
        println!("NOT RUN: history_on_a_full_disk_is_told_and_ends_nothing (unshare)");
        return;
    }
    let child = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", &serve])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Ended(child.expect("unshare starts"));
    let said = BufReader::new(server.0.stderr.take().unwrap());
    let (mut trouble, mut address) = (String::new(), String::new());
    for line in said.lines().map(Result::unwrap) {
        if let Some((_, rest)) = line.split_once("http://") {
            address = rest.split('/').next().unwrap().to_owned();
        } else {
            trouble = line;
        }
        if !trouble.is_empty() && !address.is_empty() {
            break;
        }
    }
    assert!(trouble.contains("history is in memory only"), "{trouble}");
    assert!(trouble.contains("No space left on device"), "{trouble}");

    let answer = get(&address, "/api/v1/history");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("No space left"), "{answer}");
}

/// `simnel serve --test` on an address of its own.
fn test_server() -> (Ended, String) {
    let child = Command::new(SIMNEL)
        .args(["serve", "--test", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Ended(child.expect("the program starts"));
    let mut said = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let (_, address) = said.split_once("listening at ").expect("it listens");
    let (address, _) = address.split_once(',').expect("an address");
    (server, address.to_owned())
}

/// A short measurement with a page at `report`.
fn measure(address: &str, report: &Path) -> Output {
    Command::new(SIMNEL)
        .args(["test", "--server", address, "--seconds", "1", "--load", "download"])
        .args(["--gateway", "none", "--report"])
        .arg(report)
        .output()
        .expect("the program starts")
}

#[test]
fn a_page_that_cannot_be_written_takes_no_result_away() {
    let (_server, address) = test_server();
    let output = measure(&address, Path::new("/dev/full"));
    assert_eq!(output.status.code(), Some(1));
    let (result, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(result.contains("download") && result.contains("Grade"), "{result}");
    assert!(errors.contains("cannot write /dev/full: No space left"), "{errors}");
}

#[test]
fn before_and_after_stand_side_by_side() {
    let (_server, address) = test_server();
    let room = tempfile::tempdir().unwrap();
    let pages = room.path().join("pages");
    let told = [(); 2].map(|()| {
        let output = measure(&address, &pages);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        let (_, page) = said.trim_end().rsplit_once("page: ").expect("the page's name is told");
        PathBuf::from(page)
    });
    let mut there: Vec<PathBuf> =
        std::fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().path()).collect();
    there.sort();
    assert_eq!(there, told);
}

//! A network namespace of its own for a unit test that asks the kernel. It goes with its thread.

use std::process::Command;

/// Runs `work` in a new namespace with loopback up. Without root nothing is checked, which it says.
pub(crate) fn apart(test: &str, work: impl FnOnce() + Send + 'static) {
    let test = test.to_owned();
    let alone = move || {
        // SAFETY: takes an integer; only the calling thread leaves its network namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            eprintln!("NOT RUN: {test} needs root");
            return;
        }
        ip("link set lo up");
        work();
    };
    std::thread::spawn(alone).join().expect("what fails has said why");
}

/// Two ends of a cable there, both up; `address` is that of `name`, with the length of its network.
pub(crate) fn cable(name: &str, other: &str, address: &str) {
    ip(&format!("link add {name} type veth peer name {other}"));
    ip(&format!("address add {address} dev {name}"));
    ip(&format!("link set {name} up"));
    ip(&format!("link set {other} up"));
}

/// Runs `ip` there.
pub(crate) fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.is_ok_and(|status| status.success()), "ip {words}");
}

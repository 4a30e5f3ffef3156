//! Threads that are refused real-time priority: for lack of a capability, or by a control group.

use std::path::{Path, PathBuf};

use simnel_gateway::control::Request;

use crate::cases::not_run;
use crate::cgroups::Group;
use crate::world::World;

/// Groups of version 1 that share real time out, of which a new one has none.
const RATIONED: &str = "/sys/fs/cgroup/cpu";

/// Asserts that a daemon that `words` start says `lack`, in its log and when it is asked.
fn assert_told(words: &str, lack: &str) {
    let mut world = World::new();
    world.started_by = words.split('\t').map(String::from).collect();
    let said = world.start_heard(&["wan0=|cake bandwidth 5mbit"]);
    let told = [
        format!(
            "its threads are not in real time, so packets leave late on a busy machine, {lack}"
        ),
        format!("the guard is not in real time, so it may step in late on a busy machine, {lack}"),
    ];
    let warnings = [format!("warning: wan0: {}", told[0]), format!("warning: {}", told[1])];
    warnings.iter().for_each(|warning| said.wait_for(warning));
    let shown = world.client("wan0").ask(&Request::Show {}).unwrap();
    assert!(!shown.qdiscs.unwrap()[0].datapath.realtime);
    let begins = |(warning, told): (&String, &String)| warning.starts_with(told.as_str());
    assert_eq!(shown.warnings.len(), told.len(), "{:?}", shown.warnings);
    assert!(shown.warnings.iter().zip(&told).all(begins), "{:?}", shown.warnings);
    for warning in &warnings {
        assert_eq!(said.count(warning), 1, "{}", said.all());
    }
    world.stop();
}

pub fn refused_real_time_is_told_once() {
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 5mbit"]);
    let shown = world.client("wan0").ask(&Request::Show {}).unwrap();
    assert!(shown.warnings.is_empty(), "{:?}", shown.warnings);
    world.stop();
    assert_told("setpriv\t--bounding-set\t-sys_nice", "for lack of CAP_SYS_NICE: run as root");
    if !Path::new(RATIONED).join("cpu.rt_runtime_us").exists() {
        return not_run("no control groups of version 1 share real time out here");
    }
    let path = PathBuf::from(format!("{RATIONED}/simnel-test-{}", std::process::id()));
    let group = Group::make(path);
    let join = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let lack = "for lack of a share of real time for its control group: give it one";
    assert_told(&format!("sh\t-c\t{join}\tsh"), lack);
}

//! Rules about the machine's own programs, by control group.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rules::{start, tiers};
use crate::world::{address, listener, World};

/// Bytes each way; with headers, some 70 packets.
const BYTES: usize = 100_000;
const SERVER: &str = "10.77.2.2";

/// Path of a control group of the test's own. [`Group::root`] is where the groups of the second
/// version are mounted.
pub struct Group(pub PathBuf);

impl Group {
    pub fn root() -> Option<PathBuf> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines.find(|words| words[2] == "cgroup2").map(|words| words[1].into())
    }

    pub fn make(path: PathBuf) -> Group {
        std::fs::create_dir_all(&path).unwrap();
        Group(path)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A program of the gateway in `group` that sends and takes [`BYTES`].
pub fn exchange(world: &World, group: Option<&Path>, port: u16) {
    let listener = world.within("s", || listener(address(SERVER, port)));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut bytes = vec![0; BYTES];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let join = group.map(|group| format!("echo $$ > {}/cgroup.procs; ", group.display()));
    let client = format!(
        "exec 3<>/dev/tcp/{SERVER}/{port}; head -c {BYTES} /dev/zero >&3; \
         head -c {BYTES} <&3 | wc -c"
    );
    let line = format!(
        "{}exec ip netns exec {} bash -c '{client}'",
        join.unwrap_or_default(),
        world.ns("g")
    );
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), BYTES.to_string(), "{errors}");
    server.join().unwrap();
}

/// Packets in each tier, of download and upload, that `work` makes.
fn made(world: &World, work: impl FnOnce()) -> Vec<[u64; 4]> {
    let sent = || -> Vec<_> { world.client("wan0").show().unwrap().iter().map(tiers).collect() };
    let before = sent();
    work();
    let difference =
        |(after, before): ([u64; 4], [u64; 4])| [0, 1, 2, 3].map(|t| after[t] - before[t]);
    sent().into_iter().zip(before).map(difference).collect()
}

pub fn rules_know_control_groups() {
    let Some(root) = Group::root() else {
        return crate::cases::not_run("no control groups of the second version are mounted");
    };
    let name = format!("simnel-{}", std::process::id());
    let slice = Group::make(root.join(&name));
    let inner = Group::make(slice.0.join("inner"));
    let other = Group::make(slice.0.join("other"));
    let mut world = World::new();
    world.cgroups = true;
    // The first that fits decides, also where a group is within another.
    let rules = format!(
        "[[rule]]\ncgroups = [\"{name}/other\", \"{name}/inner\"]\nport = 7002\npass = true\n\
         [[rule]]\ncgroup = \"{name}\"\ntier = \"voice\"\n\
         [[rule]]\ncgroup = \"{name}/later\"\ntier = \"video\"\n\
         [[rule]]\nport = 7009\ntier = \"bulk\"\n"
    );
    start(&mut world, "qdisc = \"cake diffserv4\"", &rules);
    let check = |what: &str, made: &[[u64; 4]], tier: Option<usize>| {
        println!("  {what}: {made:?}");
        for tiers in made {
            for (at, packets) in tiers.iter().enumerate() {
                let expected = if tier == Some(at) { 20..=400 } else { 0..=8 };
                assert!(expected.contains(packets), "{what}: {packets} in tier {at}");
            }
        }
    };
    let [bulk, best, voice] = [Some(0), Some(1), Some(3)];
    check("elsewhere", &made(&world, || exchange(&world, None, 7_001)), best);
    check("in the group", &made(&world, || exchange(&world, Some(&slice.0), 7_001)), voice);
    check("below it", &made(&world, || exchange(&world, Some(&inner.0), 7_001)), voice);
    check("below it, past", &made(&world, || exchange(&world, Some(&inner.0), 7_002)), None);
    check("elsewhere, by port", &made(&world, || exchange(&world, None, 7_009)), bulk);
    // What is forwarded is of no program here; a mark of others is no number of a group.
    world.nft(&["add", "table", "inet", "marking"]);
    let hook = "{ type filter hook prerouting priority -150; }";
    world.nft(&["add", "chain", "inet", "marking", "before", hook]);
    world.nft(&["add", "rule", "inet", "marking", "before", "meta", "mark", "set", "0x02000000"]);
    let forwarded = made(&world, || crate::rules::exchange(&world, SERVER, 7_003, 0));
    check("forwarded, with a mark", &forwarded, best);
    world.nft(&["delete", "table", "inet", "marking"]);
    let counted = world.client("wan0").rules().unwrap();
    let packets = counted.iter().map(|rule| rule.upload.unwrap().packets).collect::<Vec<_>>();
    println!("  {packets:?}");
    assert!(packets[0] > 20 && packets[1] > 40 && packets[2] == 0 && packets[3] > 20);
    // A group that comes later, and one that is made anew: another number.
    for _ in 0..2 {
        let later = Group::make(root.join(&name).join("later"));
        let number = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&later.0).unwrap());
        let begin = Instant::now();
        while !follows(&world, number) {
            assert!(begin.elapsed() < Duration::from_secs(5), "the group is not found");
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("  followed after {:?}", begin.elapsed());
    }
    world.stop();
    drop((other, inner, slice));
}

/// True if the table knows the group's number. `nft` cannot spell it where the group is not
/// mounted, so the rules are asked for as they are.
fn follows(world: &World, number: u64) -> bool {
    let listed: Child = Command::new("ip")
        .args(["netns", "exec", &world.ns("g"), "nft", "--debug=netlink", "list", "table"])
        .args(["inet", "simnel_wan0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = String::from_utf8_lossy(&listed.wait_with_output().unwrap().stdout).into_owned();
    text.contains(&format!("0x{number:08x}"))
}

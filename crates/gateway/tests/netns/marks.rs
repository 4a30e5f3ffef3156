//! The bits of the mark that are ours keep clear of everybody else's.

use std::process::Stdio;

use crate::world::World;

/// Mark bits in a rule that clears ours, as nft prints it: all others are kept.
fn clears(world: &World, ours: u32) -> bool {
    let rules = world.nft(&["list", "chain", "inet", "simnel_wan0", "left"]);
    println!("  {}", rules.lines().last().unwrap_or_default());
    rules.contains(&format!("{:#010x}", !ours)) || rules.contains(&(!ours).to_string())
}

/// Two free bits are chosen; those that were configured are kept, and who uses them is said.
pub fn mark_bits_that_others_use_are_left_alone() {
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 8mbit"]);
    assert!(clears(&world, 0x3000_0000), "the bits that we like best");
    world.stop();

    world.nft(&["add", "table", "inet", "other"]);
    let hook = "{ type filter hook prerouting priority -150; }";
    world.nft(&["add", "chain", "inet", "other", "pre", hook]);
    for words in [
        "meta mark and 0xf0000000 == 0x10000000 counter",
        "meta mark set meta mark and 0xf7ffffff or 0x08000000",
        "iifname lan0 meta mark set 0x04000001",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        world.nft(&[&["add", "rule", "inet", "other", "pre"], &words[..]].concat());
    }
    world.ip("g", "rule add fwmark 0x02000000/0x02000000 lookup main");
    world.ip("g", "-6 rule add fwmark 0x01000000/0x01000000 lookup main");
    world.start(&["wan0=|cake bandwidth 8mbit"]);
    assert!(clears(&world, 0x00c0_0000), "the two highest that nobody uses");
    world.stop();

    let text = |mask: &str| {
        let directory = world.control.display();
        format!(
            "control_dir = \"{directory}\"\n\
             [[interface]]\nname = \"wan0\"\nupload = \"8mbit\"\nmark_mask = {mask}\n"
        )
    };
    for (mask, user) in [
        ("0x30000000", "chain `pre` of table `other`"),
        ("0x02100000", "of `ip rule`"),
        ("0x00300000", ""),
    ] {
        std::fs::write(world.file(), text(mask)).unwrap();
        let mut command = world.daemon_command(&["file"], &world.control);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut ready).unwrap();
        world.client("wan0").down().unwrap();
        let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        let warning = said.lines().find(|line| line.contains("mark_mask"));
        println!("  {mask}: {}", warning.unwrap_or("no warning"));
        assert_eq!(warning.is_some(), !user.is_empty(), "{said}");
        assert!(said.contains(user), "{said}");
    }
}

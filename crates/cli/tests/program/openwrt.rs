//! OpenWrt's packages: settings as the daemon's file, and LuCI's page for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use simnel_gateway::{config, Settings};

use crate::text;

/// Functions of OpenWrt's shell library, for one section whose options are variables.
const LIBRARY: &str = r#"
config_load() { :; }
config_foreach() { "$1" wan; }
config_get() { eval "$1=\${OPTION_$3-}"; }
config_get_bool() { eval "$1=\${OPTION_$3-$4}"; }
config_list_foreach() {
    local item function=$3
    eval "set -- \${OPTION_$2-}"
    for item; do "$function" "$item"; done
}
. "$1"
FILE=$2
write_file
"#;

/// LuCI's classes, as far as the page asks for them; prints the options that it makes.
const LUCI: &str = r#"
const text = require('fs').readFileSync(process.argv[1], 'utf8');
const options = [];
const any = () => new Proxy(() => {}, { get: () => any(), set: () => true });
const section = { tab: () => {}, taboption: (tab, kind, name) => (options.push(name), any()) };
const map = { section: () => section, render: () => Promise.resolve('map') };
const kinds = { Map: function () { return map; } };
const form = new Proxy(kinds, { get: (own, kind) => own[kind] ?? kind });
const fs = { exec: () => ({ stdout: 'shown' }) };
const E = (...parts) => JSON.stringify(parts);
const L = { resolveDefault: (value) => Promise.resolve(value) };
const page = new Function('form', 'fs', 'widgets', 'view', '_', 'E', 'L', text);
const made = page(form, fs, any(), { extend: (own) => own }, (word) => word, E, L);
made.load().then((shown) => made.render(shown)).then((node) => {
    if (!node.includes('shown')) throw new Error('what runs is not shown');
    console.log(JSON.stringify(options));
});
"#;

fn openwrt() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/openwrt")
}

/// The file that is made of `options`, and how the daemon understands it.
fn translated(options: &[(&str, &str)]) -> (String, Vec<Settings>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("simnel.toml");
    let mut shell = Command::new("sh");
    let init = openwrt().join("files/simnel.init");
    shell.args(["-c", LIBRARY, "sh"]).arg(init).arg(&file);
    shell.envs(options.iter().map(|(key, value)| (format!("OPTION_{key}"), value)));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let text = std::fs::read_to_string(file).unwrap();
    let settings = config::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (text, settings)
}

#[test]
fn openwrts_settings_are_the_daemons() {
    let (text, all) = translated(&[
        ("device", "eth1"),
        ("backend", "auto"),
        ("download", "50mbit"),
        ("upload", "10mbit"),
        ("qdisc", "cake diffserv4"),
        ("download_qdisc", "cake besteffort"),
        ("upload_qdisc", "cake diffserv8"),
        ("mark_mask", "0x300"),
        ("realtime", "7"),
        ("queue_length", "4096"),
        ("lanes", "2"),
    ]);
    assert_eq!(all.len(), 1, "{text}");
    let settings = &all[0];
    assert_eq!(settings.interface, "eth1");
    assert!(settings.download.as_ref().unwrap().to_string().contains("besteffort"));
    assert!(settings.upload.as_ref().unwrap().to_string().contains("diffserv8"));
    let tuning = &settings.tuning;
    assert_eq!((tuning.realtime, tuning.queue_length), (Some(7), Some(4096)));
    assert_eq!(tuning.lanes.count, 2);
    assert_eq!(settings.backend, simnel_gateway::Backend::Auto);

    let line = [("device", "wwan0"), ("download", "10mbit..80mbit"), ("autorate", "1")];
    let (_, all) = translated(&line);
    let public = all[0].autorate.as_ref().unwrap().reflectors.len();
    let named = [&line[..], &[("reflectors", "192.0.2.1 irtt:192.0.2.2")]].concat();
    let (text, all) = translated(&named);
    assert!(public > 2 && all[0].autorate.as_ref().unwrap().reflectors.len() == 2, "{text}");
}

/// Words of the translation that are names of options.
fn known(init: &str) -> BTreeSet<String> {
    let lists = init.lines().filter_map(|line| line.trim().strip_prefix("for key in "));
    let listed = lists.flat_map(|list| list.trim_end_matches("; do").split(' '));
    let single = ["config_get ", "config_get_bool ", "config_list_foreach "];
    let read = init.lines().filter_map(|line| {
        let call = single.iter().find_map(|name| line.trim().strip_prefix(name))?;
        call.split(' ').find(|word| !word.contains('"') && !["name", "value"].contains(word))
    });
    listed.chain(read).map(str::to_owned).collect()
}

#[test]
fn lucis_page_has_each_option_that_is_translated() {
    let root = openwrt().join("luci-app-simnel");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let json = |path: &str| serde_json::from_str::<Value>(&read(path)).expect(path);
    let menu = json("root/usr/share/luci/menu.d/luci-app-simnel.json");
    let entry = &menu["admin/network/simnel"];
    let rights = json("root/usr/share/rpcd/acl.d/luci-app-simnel.json");
    let rights = &rights[entry["depends"]["acl"][0].as_str().unwrap()];
    assert_eq!(rights["write"]["uci"][0], "simnel");
    assert!(rights["read"]["file"]["/usr/bin/simnel show -s"].is_array());
    let page = format!("{}.js", entry["action"]["path"].as_str().unwrap());
    let page = root.join("htdocs/luci-static/resources/view").join(page);

    let Ok(output) = Command::new("node").args(["-e", LUCI]).arg(&page).output() else {
        eprintln!("NOT RUN: LuCI's page (node is missing: apt-get install nodejs)");
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let options: BTreeSet<String> = serde_json::from_slice(&output.stdout).unwrap();
    let init = std::fs::read_to_string(openwrt().join("files/simnel.init")).unwrap();
    assert_eq!(options, known(&init));
    assert!(options.len() > 10, "{options:?}");
}

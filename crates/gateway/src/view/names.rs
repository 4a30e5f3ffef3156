//! Names of hosts at home: from `/etc/hosts`, from what DHCP servers write down, and from the hosts
//! themselves.
//!
//! Files are read as they are found, and damaged lines are passed over. Hosts without a name there
//! may be asked (`mdns.rs`). Later sources do not overrule earlier ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use simnel_core::{Span, Time};

use super::mdns::{is_name, Asker};
use super::View;
use crate::sys;

/// Time between two readings of the files.
const READ_AGAIN: Span = Span::from_secs(30);
/// Bytes of a file that are read; a home's leases are far below.
const LONGEST_FILE: u64 = 1 << 20;

/// A way to read a file.
type Reader = fn(&str, &mut Names);

/// Files of names: the system's, OpenWrt's dnsmasq and odhcpd, Debian's dnsmasq, ISC's server, Kea.
const FILES: [(&str, Reader); 7] = [
    ("/etc/hosts", hosts),
    ("/tmp/dhcp.leases", dnsmasq),
    ("/var/lib/misc/dnsmasq.leases", dnsmasq),
    ("/var/lib/dhcp/dhcpd.leases", isc),
    ("/var/lib/kea/kea-leases4.csv", kea),
    ("/var/lib/kea/kea-leases6.csv", kea),
    ("/tmp/hosts/odhcpd", hosts),
];
/// One file an interface, of systemd-networkd's DHCP server.
const NETWORKD: &str = "/var/lib/systemd/network/dhcp-server-lease";

/// A source of names that goes on: files are read again, and hosts asked.
pub struct Naming {
    files: Names,
    read: Time,
    /// None: nothing is asked of the network.
    asker: Option<Asker>,
}

impl Naming {
    /// Reads all files that are there; with `asks`, hosts without a name will be asked.
    pub fn new(asks: bool) -> Naming {
        let asker = asks.then(Asker::default);
        Naming { files: Names::read(), read: sys::now(), asker }
    }

    /// The names of now.
    pub fn names(&mut self) -> Names {
        let now = sys::now();
        if now.since(self.read) >= READ_AGAIN {
            (self.files, self.read) = (Names::read(), now);
        }
        let mut names = self.files.clone();
        for (address, name) in self.asker.iter().flat_map(Asker::names) {
            names.0.entry(address).or_insert_with(|| name.to_owned());
        }
        names
    }

    /// Asks those hosts of `views` that have no name, without waiting, and takes in what was
    /// answered.
    pub fn ask<'a>(&mut self, views: impl IntoIterator<Item = &'a View>) {
        let hosts = views.into_iter().flat_map(|view| &view.hosts).map(|host| host.address);
        let unknown = hosts.filter(|host| self.files.of(*host).is_none());
        if let Some(asker) = &mut self.asker {
            asker.turn(unknown, sys::now());
        }
    }
}

/// Names by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<IpAddr, String>);

impl Names {
    /// Nothing is known.
    pub fn none() -> Names {
        Names::default()
    }

    /// Reads all files that are there.
    pub fn read() -> Names {
        Names::read_below(Path::new("/"))
    }

    fn read_below(root: &Path) -> Names {
        let mut names = Names::default();
        for (path, reader) in FILES {
            if let Some(text) = text_of(&root.join(path.trim_start_matches('/'))) {
                reader(&text, &mut names);
            }
        }
        let leases = std::fs::read_dir(root.join(NETWORKD.trim_start_matches('/')));
        for file in leases.into_iter().flatten().flatten() {
            if let Some(text) = text_of(&file.path()) {
                networkd(&text, &mut names);
            }
        }
        names
    }

    /// The name of `address`.
    pub fn of(&self, address: IpAddr) -> Option<String> {
        self.0.get(&address).cloned()
    }

    /// Gives `address` a name.
    pub fn insert(&mut self, address: IpAddr, name: &str) {
        self.0.insert(address, name.to_owned());
    }

    /// Learns a name, unless the address has one or it says nothing.
    fn learn(&mut self, address: &str, name: &str) {
        let name = name.trim_end_matches('.');
        if !is_name(name) {
            return;
        }
        if let Ok(address) = address.parse() {
            self.0.entry(address).or_insert_with(|| name.to_owned());
        }
    }
}

fn text_of(path: &Path) -> Option<String> {
    use std::io::Read;
    let file = std::fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// `ADDRESS NAME …`, hosts(5).
fn hosts(text: &str, names: &mut Names) {
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        if let (Some(address), Some(name)) = (words.next(), words.next()) {
            names.learn(address, name);
        }
    }
}

/// `EXPIRY MAC ADDRESS NAME CLIENT`, dnsmasq(8).
fn dnsmasq(text: &str, names: &mut Names) {
    for line in text.lines() {
        let mut words = line.split_whitespace().skip(2);
        if let (Some(address), Some(name)) = (words.next(), words.next()) {
            names.learn(address, name);
        }
    }
}

/// `lease ADDRESS { … client-hostname "NAME"; … }`, dhcpd.leases(5); the last block counts.
fn isc(text: &str, names: &mut Names) {
    let mut leases = BTreeMap::new();
    let mut address = "";
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("lease ") {
            address = rest.split_whitespace().next().unwrap_or_default();
        } else if let Some(name) = line.strip_prefix("client-hostname ") {
            leases.insert(address, name.trim_end_matches(';').trim_matches('"'));
        }
    }
    leases.into_iter().for_each(|(address, name)| names.learn(address, name));
}

/// CSV with a heading; the last line of an address counts.
fn kea(text: &str, names: &mut Names) {
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |wanted| heading.iter().position(|&column| column == wanted);
    let (Some(address), Some(name)) = (column("address"), column("hostname")) else { return };
    let mut leases = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if let (Some(address), Some(name)) = (cells.get(address), cells.get(name)) {
            leases.insert(*address, *name);
        }
    }
    leases.into_iter().for_each(|(address, name)| names.learn(address, name));
}

/// JSON: `{"Leases":[{"Address":[192,168,1,5],"Hostname":"laptop",…},…]}`.
fn networkd(text: &str, names: &mut Names) {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else { return };
    let leases = value.get("Leases").and_then(|leases| leases.as_array());
    for lease in leases.into_iter().flatten() {
        let address: Option<[u8; 4]> =
            lease.get("Address").and_then(|bytes| serde_json::from_value(bytes.clone()).ok());
        let name = lease.get("Hostname").and_then(|name| name.as_str());
        if let (Some(address), Some(name)) = (address, name) {
            names.learn(&Ipv4Addr::from(address).to_string(), name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_each_servers_file() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("/etc/hosts", "127.0.0.1 localhost\n10.0.0.1 router # ours\n::1 ip6-loopback\nx y\n");
        write(
            "/tmp/dhcp.leases",
            "1700000000 aa:bb:cc:00:11:22 10.0.0.2 laptop 01:aa\n\
             1700000000 aa:bb:cc:00:11:23 10.0.0.3 * *\n\
             1700000000 aa:bb:cc:00:11:24 10.0.0.1 impostor *\n",
        );
        write(
            "/var/lib/dhcp/dhcpd.leases",
            "lease 10.0.0.4 {\n  client-hostname \"old\";\n}\n\
             lease 10.0.0.4 {\n  client-hostname \"phone\";\n}\n",
        );
        write(
            "/var/lib/kea/kea-leases4.csv",
            "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname\n\
             10.0.0.5,aa:bb,,3600,1700000000,1,0,0,tv.lan.\n10.0.0.6\n",
        );
        write(
            "/var/lib/systemd/network/dhcp-server-lease/lan0",
            r#"{"Leases":[{"Address":[10,0,0,7],"Hostname":"printer"},{"Address":[1]}]}"#,
        );
        let names = Names::read_below(root);
        let of = |address: &str| names.of(address.parse().unwrap());
        for (address, name) in [
            ("10.0.0.1", Some("router")),
            ("10.0.0.2", Some("laptop")),
            ("10.0.0.3", None),
            ("10.0.0.4", Some("phone")),
            ("10.0.0.5", Some("tv.lan")),
            ("10.0.0.6", None),
            ("10.0.0.7", Some("printer")),
            ("127.0.0.1", None),
        ] {
            assert_eq!(of(address).as_deref(), name, "{address}");
        }
    }

    #[test]
    fn a_name_holds_nothing_that_a_terminal_obeys() {
        let mut names = Names::none();
        hosts("10.0.0.1 a\u{1b}[31m\n10.0.0.2 \u{202e}b\n", &mut names);
        assert_eq!(names, Names::none());
    }

    /// Files are read again after half a minute.
    #[test]
    fn names_of_files_stay_until_they_are_read_again() {
        let address = [192, 0, 2, 77].into();
        let mut files = Names::none();
        files.insert(address, "laptop");
        let mut naming = Naming { files, read: sys::now(), asker: None };
        assert_eq!(naming.names().of(address).as_deref(), Some("laptop"));
        naming.read = sys::now() - READ_AGAIN;
        assert_eq!(naming.names().of(address), None, "no file of this machine has it");
    }
}

//! The network of a run: home, gateway, line and Internet as namespaces.
//!
//! ```text
//! [home] net0 --- lan [gateway] wan --- near [line] far --- net0 [internet]
//! ```
//! Where packets take their time on the line, its other end stands before home, since the gateway
//! holds what queues on the way down:
//!
//! ```text
//! [home] net0 --- house [line] street --- lan [gateway]
//! ```
//! One namespace stands for all hosts of a side and has all their addresses, those of the
//! simulator: disciplines tell hosts by address. Whoever uses this puts the disciplines at the
//! gateway and the delay into the line. No interface uses offloads, and hosts send super-packets,
//! cut into segments before the wire, only where the scenario says so.

use std::net::Ipv4Addr;

use super::plan::Plan;
use simnel_sim::Direction;
use simnel_testbed::{Namespace, Testbed, TestbedError};

/// The namespaces.
#[derive(Debug)]
pub struct Network {
    /// All hosts at home.
    pub home: Namespace,
    /// The router, with the interfaces [`Network::LAN`] and [`Network::WAN`].
    pub gateway: Namespace,
    /// The line, between [`Network::NEAR`] and [`Network::FAR`].
    pub line: Namespace,
    /// All hosts on the Internet.
    pub internet: Namespace,
    /// Deletes all of them; dropped last.
    pub testbed: Testbed,
}

/// Kernel settings of every host: buffers as the simulator's endpoints have them, and no memory of
/// earlier connections, which share addresses.
const SETTINGS: [(&str, &str); 3] = [
    ("net/ipv4/tcp_rmem", "4096 131072 6291456"),
    ("net/ipv4/tcp_wmem", "4096 16384 4194304"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

impl Network {
    /// The hosts' interface, on either side.
    pub const HOST: &str = "net0";
    /// The gateway's interface towards home.
    pub const LAN: &str = "lan";
    /// The gateway's interface towards the line.
    pub const WAN: &str = "wan";
    /// The line's end at home.
    pub const NEAR: &str = "near";
    /// The line's end on the Internet.
    pub const FAR: &str = "far";
    /// The way down's end at home, behind [`Network::STREET`], if packets take their time on it.
    pub const HOUSE: &str = "house";
    /// The way down's end at the gateway.
    pub const STREET: &str = "street";

    /// Builds it, with a prefix for the namespaces' names. The line carries nothing yet.
    pub fn new(prefix: &str, plan: &Plan) -> Result<Network, TestbedError> {
        let mut testbed = Testbed::new(prefix)?;
        let mut namespace = |name| testbed.namespace(name);
        let (home, gateway) = (namespace("home")?, namespace("gw")?);
        let (line, internet) = (namespace("line")?, namespace("net")?);
        let network = Network { home, gateway, line, internet, testbed };
        let Network { home, gateway, line, internet, .. } = &network;
        if plan.wire[Direction::Down as usize].is_some() {
            network.join((home, Network::HOST), (line, Network::HOUSE))?;
            network.join((line, Network::STREET), (gateway, Network::LAN))?;
        } else {
            network.join((home, Network::HOST), (gateway, Network::LAN))?;
        }
        network.join((gateway, Network::WAN), (line, Network::NEAR))?;
        network.join((line, Network::FAR), (internet, Network::HOST))?;
        for (hosts, addresses, port) in
            [(home, &plan.home, Network::LAN), (internet, &plan.internet, Network::WAN)]
        {
            for address in addresses {
                hosts.address(Network::HOST, &format!("{address}/16"))?;
            }
            let router = router(addresses.first().copied());
            gateway.address(port, &format!("{router}/16"))?;
            hosts.route("default", &router.to_string())?;
            let segments = plan.segments.to_string();
            hosts.ip(&["link", "set", Network::HOST, "gso_max_segs", &segments])?;
            for (name, value) in SETTINGS {
                hosts.sysctl(name, value)?;
            }
            hosts.sysctl("net/ipv4/tcp_ecn", &plan.tcp_ecn.to_string())?;
        }
        gateway.forward()?;
        Ok(network)
    }

    /// A wire without offloads at either end.
    fn join(&self, a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<(), TestbedError> {
        self.testbed.veth(a, b)?;
        self.testbed.plain_frames(a.0, a.1)?;
        self.testbed.plain_frames(b.0, b.1)
    }
}

/// The router's address in the /16 of a host: the last one, which scenarios give to nobody.
fn router(host: Option<Ipv4Addr>) -> Ipv4Addr {
    let [a, b, _, _] = host.unwrap_or(Ipv4Addr::new(10, 1, 0, 1)).octets();
    Ipv4Addr::new(a, b, 255, 254)
}

//! A home network on an Internet line: lan1 and lan2, a gateway, the line, a server.
//!
//! ```text
//! lan1 192.168.77.11 --+
//!                      +-- br-lan [gateway] wan --- home [isp] core --- net0 [server] 10.77.0.1
//! lan2 192.168.77.12 --+   192.168.77.1     10.77.0.2
//! ```
//! The isp namespace carries nothing by itself: whatever joins its two interfaces (`simnel link
//! home core ...`) is the line. No interface uses offloads, so that the line sees frames as a modem
//! does.

use std::net::{IpAddr, Ipv4Addr};

use crate::{Namespace, Testbed, TestbedError};

/// A home network. Fields are its namespaces.
#[derive(Debug)]
pub struct Home {
    /// A host in the home.
    pub lan1: Namespace,
    /// Another.
    pub lan2: Namespace,
    /// The router, with the interfaces [`Home::LAN`] and [`Home::WAN`].
    pub gateway: Namespace,
    /// Namespace of the line, which joins its interfaces [`Home::LINE_HOME`] and
    /// [`Home::LINE_CORE`].
    pub isp: Namespace,
    /// A host in the Internet.
    pub server: Namespace,
    /// Deletes all of them; dropped last.
    pub testbed: Testbed,
}

/// Settings of a [`Home`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeOptions {
    /// The gateway hides the LAN behind its own address.
    pub masquerade: bool,
}

impl Home {
    /// The gateway's interface towards the home.
    pub const LAN: &str = "br-lan";
    /// The gateway's interface towards the line.
    pub const WAN: &str = "wan";
    /// The line's end at the home.
    pub const LINE_HOME: &str = "home";
    /// The line's end in the Internet.
    pub const LINE_CORE: &str = "core";
    /// The server's address.
    pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));

    /// Builds the network, with a name prefix for its namespaces.
    pub fn new(prefix: &str, options: HomeOptions) -> Result<Home, TestbedError> {
        let mut testbed = Testbed::new(prefix)?;
        let mut namespace = |name| testbed.namespace(name);
        let (lan1, lan2) = (namespace("lan1")?, namespace("lan2")?);
        let (gateway, isp, server) = (namespace("gw")?, namespace("isp")?, namespace("srv")?);
        let home = Home { lan1, lan2, gateway, isp, server, testbed };

        home.gateway.ip(&["link", "add", Home::LAN, "type", "bridge"])?;
        home.gateway.ip(&["link", "set", Home::LAN, "up"])?;
        for (host, port, address) in
            [(&home.lan1, "lan1", "192.168.77.11/24"), (&home.lan2, "lan2", "192.168.77.12/24")]
        {
            home.join((host, "net0"), (&home.gateway, port))?;
            home.gateway.ip(&["link", "set", port, "master", Home::LAN])?;
            host.address("net0", address)?;
            host.route("default", "192.168.77.1")?;
        }
        home.join((&home.gateway, Home::WAN), (&home.isp, Home::LINE_HOME))?;
        home.join((&home.isp, Home::LINE_CORE), (&home.server, "net0"))?;
        home.gateway.address(Home::LAN, "192.168.77.1/24")?;
        home.gateway.address(Home::WAN, "10.77.0.2/24")?;
        home.gateway.route("default", "10.77.0.1")?;
        home.gateway.forward()?;
        home.server.address("net0", "10.77.0.1/24")?;
        if options.masquerade {
            home.gateway.masquerade(Home::WAN)?;
        } else {
            home.server.route("192.168.77.0/24", "10.77.0.2")?;
        }
        Ok(home)
    }

    /// A wire without offloads at either end.
    fn join(&self, a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<(), TestbedError> {
        self.testbed.veth(a, b)?;
        self.testbed.plain_frames(a.0, a.1)?;
        self.testbed.plain_frames(b.0, b.1)
    }
}

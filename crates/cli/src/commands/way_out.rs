//! The way to the Internet: which interfaces the default routes lead by.

use std::path::Path;

use miette::miette;
use simnel_gateway::default_routes;

/// True if there is such an interface.
pub(super) fn exists(interface: &str) -> bool {
    Path::new("/sys/class/net").join(interface).exists()
}

/// An error if the default route, where there is one, leads by other interfaces than that of
/// `command`.
pub(super) fn leads_out(command: &str, interface: &str) -> miette::Result<()> {
    let routes = default_routes();
    // What does not exist, or can never be shaped, is the gateway's to say.
    let can_be = interface != "lo" && exists(interface);
    if routes.is_empty() || !can_be || routes.iter().any(|name| name == interface) {
        return Ok(());
    }
    let names = routes.join("` and `");
    Err(miette!(
        help =
            format!("say `simnel {command} {}`, or --anyway if `{interface}` is meant", routes[0]),
        "`{interface}` does not lead to the Internet: the default route goes by `{names}`"
    ))
}

/// The interface of the default route.
pub(super) fn way_out() -> miette::Result<String> {
    let routes = default_routes();
    match &routes[..] {
        [one] => Ok(one.clone()),
        [] => Err(miette!(
            help = "name the interface: simnel setup IFACE --server HOST",
            "no default route leads out of this machine"
        )),
        several => Err(miette!(
            help = format!("name one: simnel setup {} --server HOST", several[0]),
            "default routes lead out by several interfaces: `{}`",
            several.join("` and `")
        )),
    }
}

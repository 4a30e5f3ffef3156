//! The live arm: the gateway's own data path and Linux's TCP, in namespaces, in real time.
//!
//! `simnel link` delays both directions by half the round-trip time and has no rate. The gateway,
//! started by `simnel daemon` with the experiment's disciplines, is the only bottleneck.

use std::path::Path;
use std::time::Duration;

use super::error::ArmError;
use super::generator::{self, Means, Recorded, Sides};
use super::network::Network;
use super::plan::Plan;
use simnel_testbed::Process;

/// Programs are ready within this time: longer than it takes them to refuse their words.
const START_UP: Duration = Duration::from_millis(1_000);
/// Packets under way on the line: a second of 100 Mbit/s.
const UNDER_WAY: u32 = 10_000;

/// Carries `plan` out once. `simnel` is the program with the commands `link` and `daemon`.
pub fn run(
    plan: &Plan,
    simnel: &Path,
    means: Means,
    step: &mut dyn FnMut(Duration) -> bool,
) -> Result<Recorded, ArmError> {
    let network = Network::new("simnel-live-", plan)?;
    let mut line = start_line(&network, plan, simnel)?;
    let mut gateway = start_gateway(&network, plan, simnel)?;
    std::thread::sleep(START_UP);
    check(&mut [&mut line, &mut gateway])?;
    let Network { home, internet, .. } = &network;
    let sides = Sides { home, internet, gateway: &network.gateway, means, work_takes_time: true };
    let heard = generator::run(plan, sides, step)?;
    check(&mut [&mut line, &mut gateway])?;
    Ok(heard)
}

fn start_line(network: &Network, plan: &Plan, simnel: &Path) -> Result<Process, ArmError> {
    let words = format!(
        "link {} {} delay {}us in-flight {UNDER_WAY}",
        Network::NEAR,
        Network::FAR,
        plan.one_way().unwrap_or_default().as_micros()
    );
    let words: Vec<&str> = words.split(' ').collect();
    Ok(network.line.spawn(simnel, &words)?)
}

fn start_gateway(network: &Network, plan: &Plan, simnel: &Path) -> Result<Process, ArmError> {
    let directory = network.testbed.directory()?;
    let file = directory.join("simnel.toml");
    let failed = |source| ArmError::File { path: file.clone(), source };
    std::fs::write(&file, configuration(plan, &directory.to_string_lossy())).map_err(failed)?;
    let words = ["daemon", "--config", &file.to_string_lossy()];
    Ok(network.gateway.spawn(simnel, &words)?)
}

/// The gateway's configuration file. Download disciplines stand at egress here, as upload ones do:
/// nothing was queued before them.
fn configuration(plan: &Plan, control: &str) -> String {
    let words = |words: &String| match words.starts_with("cake") {
        true if !words.split(' ').any(|word| ["ingress", "egress"].contains(&word)) => {
            format!("{words} egress")
        }
        _ => words.clone(),
    };
    let [up, down] = plan.qdisc.each_ref().map(words);
    let entry = |(key, value): (&str, String)| (key.to_string(), toml::Value::from(value));
    let keys = [("name", Network::WAN.into()), ("download_qdisc", down), ("upload_qdisc", up)];
    let interface: toml::Table = keys.map(entry).into_iter().collect();
    let mut file = toml::Table::from_iter([entry(("control_dir", control.into()))]);
    file.insert("interface".into(), vec![interface].into());
    file.to_string()
}

fn check(processes: &mut [&mut Process]) -> Result<(), ArmError> {
    match processes.iter_mut().find_map(|process| process.failure()) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

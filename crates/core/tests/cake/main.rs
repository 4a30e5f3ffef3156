//! CAKE's mechanisms, one file each, through the public contract: what `tc` words make of packets,
//! and what statistics say about it. Numbers come from the papers and from the facts about Linux
//! (sections A.1 to A.13), worked out here by other means than in the code.

mod ack_filter;
mod autorate;
mod changes;
mod driver;
mod fairness;
mod flow_modes;
mod framing;
mod guard;
mod host_guard;
mod ingress;
mod overflow;
mod rounds;
mod savings;
mod settings;
mod shaper;
mod sparse;
mod statistics;

mod tin_rates;
mod tins;

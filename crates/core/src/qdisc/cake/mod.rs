//! CAKE. (Interface only: the discipline follows.)

mod params;

pub use params::{AckFilter, DiffservMode, FlowMode, HostLoad, Params};

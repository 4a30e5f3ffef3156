//! Active queue management: what to drop or mark, decided packet by packet as a queue is served.

pub mod cobalt;
pub mod codel;
pub mod inverse_sqrt;
pub mod pie;
pub mod red;

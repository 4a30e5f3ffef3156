//! Bytes to descriptors, and ECN/DSCP back into bytes.

pub mod tcp;

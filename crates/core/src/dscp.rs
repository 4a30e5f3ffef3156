//! Code points and tiers.

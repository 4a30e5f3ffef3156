//! What to drop or mark.

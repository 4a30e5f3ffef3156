//! Whom to serve.

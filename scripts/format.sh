#!/bin/bash
# Formats all code; with --check only says what is not formatted.
#
# rustfmt finds modules by their `mod` lines, and those of the disciplines come from a macro
# (crates/core/src/qdisc/list.rs).
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all -- "$@"
rustfmt --edition 2021 "$@" crates/core/src/qdisc/*.rs crates/core/src/qdisc/*/mod.rs

#!/usr/bin/env bash
# Formatting, clippy, protos and dependencies; warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "lint: formatting" >&2
cargo fmt --all --check
echo "lint: clippy" >&2
cargo clippy --workspace --all-targets -- -D warnings
cargo clippy --workspace --all-targets --features sessionplane-server/failpoints -- -D warnings
echo "lint: protos" >&2
tests/proto.sh
echo "lint: conformance" >&2
python3 tests/conformance.py --check
echo "lint: mutants" >&2
python3 tests/mutants.py --check
echo "lint: dependencies" >&2
tests/deny.sh

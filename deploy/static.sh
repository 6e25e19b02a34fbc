#!/usr/bin/env bash
# Builds sessiond and sessionctl as static binaries (musl). `deploy/static.sh [--release] [TARGET]`; prints their folder, whole.
# It needs musl's C compiler, which Debian packages as musl-tools.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=debug flags=()
if [ "${1:-}" = --release ]; then
    profile=release flags=(--release)
    shift
fi
target=${1:-$(uname -m)-unknown-linux-musl}
if rustup --version >/dev/null 2>&1; then
    rustup target add "$target" >&2
fi
# The few C libraries in it are compiled for musl as well.
variable=CC_${target//-/_}
export "$variable=${!variable:-musl-gcc}"
cargo build --locked "${flags[@]}" --target "$target" --package sessionplane-server --bin sessiond >&2
cargo build --locked "${flags[@]}" --target "$target" --package sessionplane-client --bin sessionctl >&2
echo "$(realpath "${CARGO_TARGET_DIR:-target}")/$target/$profile"

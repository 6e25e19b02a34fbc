#!/usr/bin/env bash
# Runs the pinned buf in proto/.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/setup.sh buf

case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) platform=linux-x64 ;;
    Linux-aarch64) platform=linux-aarch64 ;;
    Darwin-arm64) platform=darwin-arm64 ;;
    Darwin-x86_64) platform=darwin-x64 ;;
    *) echo "buf: no binary known for $(uname -s) $(uname -m)" >&2; exit 1 ;;
esac
tools=$PWD/tests/tools
cd proto
exec "$tools/node_modules/@bufbuild/buf-$platform/bin/buf" "$@"

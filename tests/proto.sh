#!/usr/bin/env bash
# Lints the protos and compares them with the baseline in proto/image.binpb. `accept` makes the protos the baseline:
# free before the first release, later only for changes that buf does not call breaking.
set -euo pipefail
cd "$(dirname "$0")"

./buf.sh lint
if [ "${1:-}" = accept ]; then
    ./buf.sh build --exclude-source-info -o image.binpb
    echo "proto: proto/image.binpb is the new baseline" >&2
fi
./buf.sh breaking --against image.binpb

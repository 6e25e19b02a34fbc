#!/usr/bin/env bash
# Makes the Go stubs in gen/ from the protos: buf from npm, the generators from go.mod.
set -euo pipefail
cd "$(dirname "$0")"

rm -rf gen
../../tests/buf.sh generate --template ../examples/go/buf.gen.yaml --output ../examples/go --path sessionplane/v1

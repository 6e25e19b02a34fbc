#!/usr/bin/env bash
# Makes the Python stubs in gen/ from the protos. `pip install -r requirements.txt` first; PYTHON names another python.
set -euo pipefail
cd "$(dirname "$0")"

rm -rf gen && mkdir gen
"${PYTHON:-python3}" -m grpc_tools.protoc --proto_path=../../proto --python_out=gen --grpc_python_out=gen \
    ../../proto/sessionplane/v1/*.proto

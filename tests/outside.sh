#!/usr/bin/env bash
# Looks at the built binaries from outside: health, deployment files, certificates, the examples, grpcurl and ghz. With names of
# modules in tests/outside as arguments, only those.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/setup.sh buf python-tools go-tools strace musl tmux

if [ $# -gt 0 ]; then
    modules=("$@")
else
    modules=(test_health test_readme test_identity test_examples test_tools test_deploy test_top)
fi
cd tests/outside
exec ../tools/venv/bin/python -m unittest -v "${modules[@]}"

#!/usr/bin/env bash
# Licenses, sources, bans and known advisories of all dependencies, by deny.toml. The advisory database is a git
# repository; where it cannot be reached, the rest is checked and the gap is said.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/setup.sh cargo-deny

if output=$(timeout 60 cargo deny fetch db 2>&1); then
    cargo deny --log-level error check
else
    cargo deny --log-level error check bans licenses sources
    echo "deny: ADVISORIES NOT CHECKED, their database could not be fetched:" >&2
    echo "$output" | tail -n 3 | sed 's/^/deny:   /' >&2
fi

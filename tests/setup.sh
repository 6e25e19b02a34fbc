#!/usr/bin/env bash
# Installs the tools that are missing. With names as arguments: only those.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO_DENY=0.20.2
GRPCURL=v1.9.3

say() { echo "setup: $*" >&2; }

component() { # name, the cargo subcommand it provides
    cargo "$2" --version >/dev/null 2>&1 || { say "rustup component $1"; rustup component add "$1"; }
}

crate() { # name, version
    cargo "${1#cargo-}" --version >/dev/null 2>&1 || { say "$1 $2"; cargo install "$1" --version "$2" --locked; }
}

buf() {
    # The platform's binary is called directly, so install scripts are not needed.
    [ -e tests/tools/node_modules/.package-lock.json ] && [ ! tests/tools/package-lock.json -nt tests/tools/node_modules/.package-lock.json ] && return
    say "buf, from tests/tools/package-lock.json"
    npm ci --prefix tests/tools --ignore-scripts --no-audit --no-fund >&2
    touch tests/tools/node_modules/.package-lock.json
}

grpcurl() {
    [ -x tests/tools/bin/grpcurl ] && return
    say "grpcurl $GRPCURL"
    GOBIN="$PWD/tests/tools/bin" go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$GRPCURL"
}

strace() {
    [ -n "$(type -P strace)" ] && return
    say "strace, from the system's packages"
    apt-get install -y --no-install-recommends strace >&2 || { apt-get update && apt-get install -y --no-install-recommends strace; } >&2
}

[ $# -gt 0 ] || set -- clippy rustfmt cargo-deny buf grpcurl strace
for tool in "$@"; do
    case "$tool" in
        clippy) component clippy clippy ;;
        rustfmt) component rustfmt fmt ;;
        cargo-deny) crate cargo-deny "$CARGO_DENY" ;;
        buf | grpcurl | strace) "$tool" ;;
        *) say "unknown tool $tool"; exit 2 ;;
    esac
done

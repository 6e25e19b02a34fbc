#!/usr/bin/env bash
# Installs the tools that are missing. With names as arguments: only those.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2

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

python-tools() {
    # Rebuilt when the pins change.
    local pins=tests/tools/requirements.txt venv=tests/tools/venv
    cmp --silent "$pins" "$venv/installed.txt" && return
    say "Python packages, from $pins"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$pins" >&2
    cp "$pins" "$venv/installed.txt"
}

go-tools() {
    # grpcurl, ghz and a parser of compose files; go.sum pins all that is in them.
    local sums=tests/tools/go.sum bin=tests/tools/bin
    cmp --silent "$sums" "$bin/installed.sum" && return
    say "Go tools, from tests/tools/go.mod"
    (cd tests/tools && GOFLAGS=-mod=readonly GOBIN="$PWD/bin" go install tool)
    mv "$bin/cmd" "$bin/compose-go"
    cp "$sums" "$bin/installed.sum"
}

package() { # name, a program of it
    [ -n "$(type -P "$2")" ] && return
    say "$1, from the system's packages"
    apt-get install -y --no-install-recommends "$1" >&2 || { apt-get update && apt-get install -y --no-install-recommends "$1"; } >&2
}

[ $# -gt 0 ] || set -- clippy rustfmt cargo-deny buf python-tools go-tools strace musl systemd openssl tmux
for tool in "$@"; do
    case "$tool" in
        clippy) component clippy clippy ;;
        rustfmt) component rustfmt fmt ;;
        cargo-deny) crate cargo-deny "$CARGO_DENY" ;;
        cargo-fuzz) crate cargo-fuzz "$CARGO_FUZZ" ;;
        buf | python-tools | go-tools) "$tool" ;;
        strace | systemd | openssl | tmux) package "$tool" "${tool/#systemd/systemd-analyze}" ;;
        musl) package musl-tools musl-gcc ;;
        *) say "unknown tool $tool"; exit 2 ;;
    esac
done

#!/usr/bin/env bash
# Fuzzes every parser of bytes from outside for SECONDS each (5), or those that are named after it.
# The corpus grows in tests/fuzz/corpus, which is not kept; an input that breaks a promise is left in
# tests/fuzz/artifacts, and belongs into tests/fuzz/seeds with its mend. `make fuzz SECONDS=3600` is a long run.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
shift || true
tests/setup.sh cargo-fuzz

# No sanitizer: this workspace has no unsafe code of its own, and without one the stable compiler does.
fuzz=(--fuzz-dir tests/fuzz --sanitizer none)
# A short run is over before an optimized build would be.
[ "$seconds" -ge 60 ] || fuzz+=(--dev)
cargo fuzz build "${fuzz[@]}" parsers
if [ $# -eq 0 ]; then
    # Asked for none, the target names all, and ends.
    mapfile -t parsers < <(cargo fuzz run "${fuzz[@]}" parsers 2>/dev/null | grep -E '^[a-z_]+$')
    # It counts as a crash of the empty input, which it is not.
    rm -f tests/fuzz/artifacts/parsers/crash-da39a3ee5e6b4b0d3255bfef95601890afd80709
    [ ${#parsers[@]} -gt 0 ] || { echo "fuzz: the target names no parser" >&2; exit 1; }
else
    parsers=("$@")
fi
for parser in "${parsers[@]}"; do
    corpus=tests/fuzz/corpus/$parser
    mkdir -p "$corpus" "tests/fuzz/seeds/$parser"
    echo "fuzz: $parser for $seconds s" >&2
    PARSER=$parser cargo fuzz run "${fuzz[@]}" parsers "$corpus" "tests/fuzz/seeds/$parser" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 -print_final_stats=0
done
echo "fuzz: ${#parsers[@]} parsers, $seconds s each, nothing found" >&2

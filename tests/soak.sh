#!/usr/bin/env bash
# The randomized tests and those marked as soak, again and again with fresh seeds for MINUTES.
set -euo pipefail
cd "$(dirname "$0")/.."

features=sessionplane-server/failpoints
end=$((SECONDS + ${MINUTES:-30} * 60))
cargo build --workspace --bins --features "$features"
round=0
while [ "$SECONDS" -lt "$end" ]; do
    round=$((round + 1))
    echo "soak: round $round, $(((end - SECONDS) / 60)) min left" >&2
    # A crash round of full length is enough; the later ones vary the seed.
    SESSIONPLANE_CRASHES=$([ "$round" = 1 ] && echo "${CRASHES:-200}" || echo 40) \
        PROPTEST_CASES=${CASES:-5000} cargo test --workspace --features "$features" -- --include-ignored
done

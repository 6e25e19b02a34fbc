#!/usr/bin/env bash
# All that `make test` runs, at the issue's counts instead of small ones, and then the mutants. Each
# count can be set. What was seen goes to docs/soak.md by hand: it is evidence, not output.
set -euo pipefail
cd "$(dirname "$0")/.."

features=sessionplane-server/failpoints
export SESSIONPLANE_CRASHES=${CRASHES:-200}   # kills of the real server
export SESSIONPLANE_POWER_LOSSES=${LOSSES:-100} # losses of its power
export SESSIONPLANE_DAMAGES=${DAMAGES:-60}    # places of a damage in each file of a store
export SESSIONPLANE_DAMAGED_PLACES=${PLACES:-10} # the same in each file of a data directory, by processes
export SESSIONPLANE_DORMANT=${DORMANT:-100000} # sessions at rest that a server starts on
export SESSIONPLANE_UPDATES=${UPDATES:-1000000} # small updates before an opening
export SESSIONPLANE_SEEDS=${SEEDS:-10000}     # seeds of the core's simulation, fresh ones
export SEEDS=${SEEDS:-3000}                   # seeds of the simulation through the application, fresh ones
export SESSIONPLANE_READS=${READS:-10000}     # states read in the instant of an event
export PROPTEST_CASES=${CASES:-2000}          # cases of each property
export SESSIONPLANE_OBSERVERS=${OBSERVERS:-1000} # observers of one session, a tenth of which does not read
export SESSIONPLANE_FLAPPING=${FLAPPING:-1000,100} # sessions that change, and who watches them
export SESSIONPLANE_SETTLED=${SETTLED:-25000} # runs that settle before the fleet is looked at
started=$SECONDS
tests/setup.sh
tests/lint.sh
cargo build --workspace --bins --features "$features"
cargo test --workspace --features "$features"
tests/outside.sh
echo "soak: tests passed in $((SECONDS - started)) s: $SESSIONPLANE_CRASHES kills, $SESSIONPLANE_SEEDS seeds of the core, $SEEDS of the application, $PROPTEST_CASES cases" >&2
tests/mutants.py # at the small counts, whatever is set above
echo "soak: all passed in $((SECONDS - started)) s" >&2

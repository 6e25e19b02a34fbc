# The doors of the repository. The logic is in tests/*.sh, so that each step can be run by hand.

FEATURES := sessionplane-server/failpoints

.DEFAULT_GOAL := help
.PHONY: help run test soak bench mutants fuzz lint fmt proto setup

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

run: ## start a server on this machine; ARGS="..." are its flags
	cargo build --workspace --bins
	exec "$${CARGO_TARGET_DIR:-target}/debug/sessiond" $(ARGS)

test: setup lint ## everything a change must pass: tools, lint, build of all binaries, all tests
	cargo build --workspace --bins --features $(FEATURES)
	cargo test --workspace --features $(FEATURES)
	tests/outside.sh

soak: ## the same at full counts (200 kills, 10,000 seeds), and the mutants; CRASHES, SEEDS, CASES set them
	tests/soak.sh

bench: ## floors and ours in one run, in release mode; see docs/performance.md
	cargo build --release --package sessionplane-server --bin sessiond
	cargo bench --package sessionplane --bench floors

mutants: ## break the code in known ways, in a copy, and expect a named test to notice; MUTANTS=text selects
	tests/mutants.py

fuzz: ## throw bytes at every parser of what comes from outside; SECONDS each (5), PARSERS="names" some of them
	tests/fuzz.sh $(or $(SECONDS),5) $(PARSERS)

lint: ## formatting, clippy, protos, dependencies; warnings are errors
	tests/lint.sh

fmt: ## format all Rust code
	cargo fmt --all

proto: ## check the protos; ACCEPT=1 also makes them the baseline of the breaking check
	tests/proto.sh $(if $(ACCEPT),accept)

setup: ## install the tools that are missing, by name and version
	tests/setup.sh

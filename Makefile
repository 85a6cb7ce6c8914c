# Thin on purpose: each line calls cargo or one small script. `make test` is what must hold before anything is merged.

CARGO ?= cargo
SOAK  ?= 600
SEEDS ?= 20000
BENCH  = $(CARGO) run --release --manifest-path bench/Cargo.toml --target-dir target/bench --quiet --

.PHONY: demo test check fmt lint rust-test loom shuttle docs bench bench-full bench-generators bench-instructions soak fuzz fuzz-seeds generate mutants sim

# Built together: apart, what both stand on would be built twice.
demo:
	$(CARGO) build --release --quiet --target-dir target -p billing-demo -p lobby
	target/release/billing-demo
	target/release/lobby

test: fmt lint rust-test loom shuttle fuzz-seeds docs

check: fmt lint
	$(CARGO) test --quiet -p zlink-runtime --test house

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	scripts/mutants --check

rust-test:
	scripts/cargo-test $(CARGO) test --workspace --all-features

loom:
	scripts/model loom loom_

shuttle:
	scripts/model shuttle shuttle_

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps

bench:
	$(BENCH) run

bench-full: bench-generators
	$(BENCH) run --full

# Beside tonic-build, in the dev profile that build scripts run in; with 500 services it takes minutes.
bench-generators:
	$(CARGO) run --manifest-path bench/generator/Cargo.toml --target-dir target/bench-generator --quiet -- target/bench-generator/work $(SERVICES)

bench-instructions:
	$(BENCH) instructions

soak: fuzz
	scripts/model loom --ignored soak_loom_
	ZLINK_SOAK_SECONDS=$(SOAK) $(CARGO) test --workspace --all-features --release -- --ignored --nocapture --test-threads=1 soak

fuzz:
	SOAK_SECONDS=$(SOAK) fuzz/soak

# Replays every seed, and every input that was ever a finding.
fuzz-seeds:
	cd fuzz && $(CARGO) test --quiet --target-dir ../target

generate:
	ZLINK_BLESS=1 $(CARGO) test --quiet -p zlink-codegen --all-features --test generated

# The storms of the simulation on more seeds than `make test` has; one that fails prints the command that repeats it.
sim:
	ZLINK_SIM_SEEDS=$(SEEDS) $(CARGO) test -p zlink-runtime --all-features --test simulation -- --nocapture storm

mutants:
	scripts/mutants

# Simnel. `make demo` and `make test` work on a fresh Debian or Ubuntu with git and a network:
# scripts/setup.sh installs what is missing and is silent when nothing is.

CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)

SIMNEL = --locked --package simnel --

.PHONY: all build gateway static site test test-web demo bench python lint fuzz mutants rehearse install uninstall deb test-deb kernel-module install-kernel uninstall-kernel tc-plugin test-kernel clean setup help

all: build

build: setup ## build everything but the Python package, optimised
	cargo build --release --locked --workspace --exclude simnel-python

gateway: setup ## build the gateway alone: below 4 MB, without the lab
	cargo build --profile router --locked --package simnel --no-default-features

static: setup ## the same as static binaries: x86_64, aarch64, armv7 (ARGS=armv7 for one), built and run
	@scripts/static.sh $(ARGS)

site: setup ## the lab in a browser: target/site, files for any static host; `simnel lab` serves it
	@scripts/site.sh build

install: ## install what `make build` built, as root: PREFIX=/usr/local DESTDIR= BINARY=
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" BINARY="$(BINARY)" scripts/install.sh

uninstall: ## remove what `make install` installed; the configuration stays
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install.sh --uninstall

deb: build ## make the Debian package, with cargo-deb (built into ~/.cache/simnel where it is missing)
	@dist/debian/build

test-deb: ## install, upgrade and remove the package in a clean Debian, as root; needs mmdebstrap
	@dist/debian/test

test: setup ## tests, Python, browser; ARGS=all for what CI runs: also lints, fuzzing, guest, package
	@scripts/test.sh $(ARGS)

test-web: setup ## `simnel serve` against its API's description: schemathesis, which pip installs
	@scripts/test-web.sh

demo: setup ## see it work: ARGS=--json for numbers only
	@cargo run --quiet --profile quick $(SIMNEL) demo $(ARGS)

bench: setup ## time the core: ARGS="--flows 100 --json"
	@cargo run --quiet --release $(SIMNEL) bench core $(ARGS)

python: setup ## build the Python package: a wheel in target/wheels; ARGS=test for its tests
	@scripts/python.sh $(or $(ARGS),build)

lint: setup ## format, lints, documentation: what only reads the code
	@scripts/test.sh lint

fuzz: setup ## bounded fuzzing: SECONDS=600 for each target
	@scripts/fuzz.sh $(or $(SECONDS),60)

mutants: ## whether tests notice small changes of the code: ARGS="--file crates/core/src/aqm/blue.rs"
	@scripts/mutants.sh $(ARGS)

rehearse: setup ## the data path's loop against a model of the kernel with faults: HOURS=1000
	@scripts/rehearse.sh $(or $(HOURS),1000)

kernel-module: setup ## build the kernel module for the running kernel's headers, or KDIR=...
	kernel/build target/kernel-module $(KDIR)

install-kernel: setup ## install the module through DKMS, as root, and tc's plug-in; KERNEL=VERSION
	@kernel/dkms/install $(KERNEL)

uninstall-kernel: ## remove what install-kernel installed
	@kernel/dkms/uninstall

tc-plugin: ## build iproute2's plug-in for the kernel module: target/tc/q_simnel.so
	@kernel/tc/build target/tc

test-kernel: setup ## the module in guests, for hours: ARGS=short for minutes
	@kernel/test/run target/kernel-test $(or $(ARGS),long)

clean: ## remove everything that was built
	cargo clean

setup:
	@scripts/setup.sh

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

# SPDX-License-Identifier: Apache-2.0
# The two commands that matter: make demo, make test. Both do all the set-up.

PYTHON   ?= /usr/bin/python3
VENV     := .venv
BIN      := $(VENV)/bin
BUILD    := build
RELEASE  := $(BUILD)/release/bin
JOBS     ?= $(shell nproc)
# Libraries of these very files; LOCKED= takes the newest versions that pyproject.toml allows.
LOCKED   ?= yes
PIP      := $(BIN)/pip install --quiet --disable-pip-version-check
# Where it is set, each of some thousand processes would compile wbscope again.
unexport PYTHONDONTWRITEBYTECODE
export WBSCOPE_CACHE_DIR := $(CURDIR)/$(BUILD)/cache

# Debian packages: to build and run, and what the tests need on top.
DEBS      := cmake g++ libsqlite3-dev libtraceevent-dev libxxhash-dev libzstd-dev \
             libprotozero-dev ninja-build pkg-config python3-venv zlib1g-dev
TEST_DEBS := busybox-static e2fsprogs fio fish gcc git less libc6-dev libgtest-dev mandoc nodejs procps \
	trace-cmd zsh zstd
# For tests/fleet with Spark and with systemd's own check, which are skipped where these are not.
FLEET_DEBS := openjdk-17-jre-headless systemd
# For tests/ui, which are skipped where it cannot be had.
BROWSER   := chromium
# Only make fuzz needs these; llvm has the program that names lines in stacks.
FUZZ_DEBS := clang libclang-rt-14-dev llvm
# To boot stock kernels; then tests/live does.
GUEST_DEBS := btrfs-progs cpio e2fsprogs fio kmod qemu-system-x86 xfsprogs xz-utils zstd
# What experiments of examples/lab copy into their guests, and what builds the FUSE server.
LAB_DEBS := busybox-static fsmark gcc libc6-dev libmemcached-tools linux-perf memcached
# To compile and boot the patched kernels.
KERNEL_DEBS := bc binutils bison busybox-static cpio e2fsprogs flex gcc kmod libc6-dev libelf-dev \
             libssl-dev patch perl qemu-system-x86 xz-utils
# To build what is installed without a checkout.
WHEEL_DEBS := debian-archive-keyring
DEB_DEBS   := binutils git
# A new root to try all this in.
FRESH_DEBS := debian-archive-keyring debootstrap git
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
FUZZ_BIN  := $(BUILD)/fuzz/bin

CXX_SOURCES := CMakeLists.txt $(shell find ingest tests/unit/ingest tests/fuzz/targets -name '*.cc' -o -name '*.h' -o -name CMakeLists.txt 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help locks setup demo check test test-all test-setup tests-built wheel deb sdist sbom fresh programs guest-test guest-kernels lab kernel-test bench validate-gate fuzz lint clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

setup: $(BIN)/.installed ## Debian packages that are missing, .venv, the program

demo: setup ## three recorded runs, from trace to answers and a timeline
	tools/demo

lint: $(BIN)/.test-tools ## format, lint, types, layout, imports, generated files
	$(BIN)/ruff format --check --quiet analyzers tests tools
	$(BIN)/ruff check --quiet analyzers tests tools
	$(BIN)/mypy analyzers/wbscope
	$(BIN)/python tools/check_imports.py
	$(BIN)/python tools/check_layout.py
	$(BIN)/python tools/check_programs.py
	$(BIN)/python tools/gen_ui.py --check
	$(BIN)/python tools/gen_config.py --check

check: test-setup ## what a contributor runs: lint, C++ unit tests, a few cases of each quick test function
	$(BIN)/python tools/run_tests.py quick

test: test-setup ## what CI runs: every quick test function, of the others the eighth of this commit
	$(BIN)/python tools/run_tests.py commit

test-all: $(BIN)/.fleet-tools guest-kernels ## every test: all cases, Spark, HDFS, S3, guests, a new Debian; before a release
	tools/install-debs $(FRESH_DEBS) || echo "no debootstrap: a root that was made before is used"
	$(BIN)/python tools/run_tests.py all

# Packages and libraries of the tests come while the program is compiled.
test-setup:
	@$(MAKE) --no-print-directory -j 3 $(BIN)/.test-tools

# The C++ that tests use, with sanitizers.
tests-built: $(BUILD)/tests/.built

fresh: ## make demo, make test, the wheel and the .deb in a new minimal Debian 12; QUICK=1: make demo
	tools/install-debs $(FRESH_DEBS) || echo "no debootstrap: a root that was made before is used"
	$(PYTHON) tools/fresh.py $(if $(QUICK),--quick)

# PROCESSORS="x86_64 aarch64" builds both on either.
PROCESSORS ?=
wheel: | $(BUILD)/.debs ## build/dist/wbscope-*.whl for any Linux with glibc 2.28, to install with pipx
	tools/install-debs $(WHEEL_DEBS)
	$(PYTHON) tools/make_wheel.py $(PROCESSORS)

deb: | $(BUILD)/.debs ## build/dist/wbscope_*.deb for this Debian
	tools/install-debs $(DEB_DEBS)
	$(PYTHON) tools/make_deb.py

locks: ## tools/locks and examples/ci/requirements.txt, after a change of pyproject.toml
	$(PYTHON) tools/make_locks.py

sdist: $(RELEASE)/.installed ## build/dist/wbscope-*.tar.gz
	$(RELEASE)/python -m build --quiet --no-isolation --sdist --outdir $(BUILD)/dist .

sbom: $(BIN)/.test-tools ## build/dist/wbscope-*.cdx.json: what a release is made of, with licences
	$(BIN)/python tools/make_sbom.py

# That the packages of the lists have the programs that are started: in a new root, as make fresh
# does, for on one's own machine it installs them all. LISTS="DEBS TEST_DEBS"
LISTS ?= DEBS TEST_DEBS FUZZ_DEBS GUEST_DEBS LAB_DEBS KERNEL_DEBS FRESH_DEBS
programs: | $(BUILD)/.debs
	tools/install-debs $(foreach list,$(LISTS),$($(list)))
	$(PYTHON) tools/check_programs.py --installed $(LISTS)

guest-test: setup $(BIN)/.test-tools guest-kernels ## record in QEMU guests with stock kernels, some minutes each
	$(BIN)/pytest -q $(wildcard tests/live/test_guest*.py)

lab: setup $(BIN)/.test-tools ## one round of every experiment of examples/lab, about half an hour
	tools/install-debs $(GUEST_DEBS) $(LAB_DEBS)
	mkdir -p $(BUILD)/lab
	$(CC) -O2 -Wall -static -o $(BUILD)/lab/passfs examples/lab/fuse/passfs.c
	PATH=$(abspath $(BUILD)/lab):$$PATH $(BIN)/pytest -q tests/lab

# KERNELS="6.1" fetches one; those of older Debian releases keep their number.
KERNELS ?= 5.10 6.1 6.12 7.2
SUITE_5.10 := bullseye
SUITE_6.1 := bookworm
SUITE_6.12 := trixie
SUITE_7.2 := sid
guest-kernels: | $(BUILD)/.debs
	tools/install-debs $(GUEST_DEBS)
	for k in $(foreach k,$(KERNELS),$(k):$(SUITE_$(k))); do \
	  [ -d $(BUILD)/guests/$${k%:*}/kernel ] || tools/record-samples/fetch amd64 $${k#*:} \
	    linux-image-cloud-amd64 $(BUILD)/guests/$${k%:*} || exit 1; done

# BOOT="6.1 6.12 7.2" builds and boots all three.
BOOT ?= 6.1
kernel-test: setup $(BIN)/.test-tools ## our kernel patches: apply, compile, boot, compare; QUICK=1 for a part
	tools/install-debs $(KERNEL_DEBS)
	WBSCOPE_KERNEL_QUICK=$(QUICK) WBSCOPE_KERNEL_BOOT="$(BOOT)" $(BIN)/pytest -q tests/kernel
	$(if $(QUICK),,tools/kernel_stamp.py --write --booted "$(BOOT)")

bench: setup $(BIN)/.test-tools ## speed and memory against trace-cmd report; all queries on a million events; BEFORE=REVISION against that
	$(BIN)/python tools/bench.py $(TRACE)
	$(BIN)/python tools/bench_queries.py
	$(if $(BEFORE),$(BIN)/python tools/bench_before.py $(BEFORE) $(TRACE))

validate-gate: setup $(BIN)/.test-tools ## false alarms and detection of compare and gate, simulated
	$(BIN)/python tools/validate_gate.py

fuzz: $(FUZZ_BIN)/.built ## fuzz the reader: FUZZ_SECONDS=60 a target, FUZZ_TARGETS="a b"
	$(PYTHON) tests/fuzz/run.py $(FUZZ_BIN)/tests/fuzz/targets $(BUILD)/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

clean: ## remove what was built, keep .venv
	rm -rf $(BUILD)

# A Debian package is installed only when it is missing.
$(BUILD)/.debs:
	@mkdir -p $(BUILD)
	tools/install-debs $(DEBS)
	@touch $@

$(BUILD)/.test-debs: $(BUILD)/.debs Makefile
	tools/install-debs $(TEST_DEBS)
	tools/install-debs $(BROWSER) || echo "no $(BROWSER): tests/ui will be skipped"
	@touch $@

$(BIN)/python: | $(BUILD)/.debs
	$(PYTHON) -m venv $(VENV)

$(BIN)/.libraries: $(BIN)/python pyproject.toml tools/locks/setup.txt
	$(if $(LOCKED),$(PIP) --require-hashes -r tools/locks/setup.txt)
	@touch $@

$(BIN)/.installed: $(BIN)/.libraries $(CXX_SOURCES) | $(BUILD)/.debs
	$(PIP) $(if $(LOCKED),--no-deps --no-build-isolation --editable .,--editable '.[all]')
	@touch $@

# Libraries of tests come while the program is compiled.
$(BIN)/.test-libraries: $(BIN)/$(if $(LOCKED),.libraries,.installed) tools/locks/test.txt
	$(PIP) $(if $(LOCKED),--require-hashes -r tools/locks/test.txt,--editable '.[test]')
	@touch $@

$(BIN)/.test-tools: $(BIN)/.installed $(BIN)/.test-libraries | $(BUILD)/.test-debs
	@touch $@

# What makes a release, apart from what wbscope itself needs.
$(RELEASE)/.installed: tools/locks/release.txt | $(BUILD)/.debs
	$(PYTHON) -m venv --clear $(BUILD)/release
	$(RELEASE)/pip install --quiet --disable-pip-version-check --require-hashes -r tools/locks/release.txt
	@touch $@

# 450 MB of Spark, built of its source package: once.
$(BIN)/.fleet-tools: $(BIN)/.test-tools $(BUILD)/s3/.installed tools/locks/fleet.txt
	tools/install-debs $(FLEET_DEBS) || echo "no Java: tests/fleet with Spark will be skipped"
	$(PIP) $(if $(LOCKED),--require-hashes -r tools/locks/fleet.txt,--editable '.[spark]' kubernetes-validate) \
	  || echo "no PySpark: tests/fleet with Spark will be skipped"
	@touch $@

# A server of S3 for tests/fleet, in a place of its own: it wants older libraries than these.
$(BUILD)/s3/.installed: tools/locks/s3.txt | $(BUILD)/.debs
	$(PYTHON) -m venv --clear $(BUILD)/s3
	$(BUILD)/s3/bin/pip install --quiet --disable-pip-version-check --require-hashes -r tools/locks/s3.txt \
	  || echo "no moto: tests/fleet with S3 will be skipped"
	@touch $@

# The C++ tests run with sanitizers, in a build of their own.
$(BUILD)/tests/.built: $(CXX_SOURCES) | $(BUILD)/.test-debs
	cmake -S . -B $(BUILD)/tests -G Ninja -DWBSCOPE_TESTS=ON -DWBSCOPE_SANITIZE=ON -DWBSCOPE_WERROR=ON > $(BUILD)/cmake.log
	cmake --build $(BUILD)/tests --parallel $(JOBS)
	@touch $@

$(BUILD)/.fuzz-debs: $(BUILD)/.debs
	tools/install-debs $(FUZZ_DEBS)
	@touch $@

$(FUZZ_BIN)/.built: $(CXX_SOURCES) | $(BUILD)/.fuzz-debs
	@mkdir -p $(FUZZ_BIN)
	cmake -S . -B $(FUZZ_BIN) -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DWBSCOPE_FUZZ=ON -DWBSCOPE_SANITIZE=ON > $(BUILD)/fuzz/cmake.log
	cmake --build $(FUZZ_BIN) --parallel $(JOBS)
	@touch $@

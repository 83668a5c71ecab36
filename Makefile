# Thin targets; the build itself is meson's (meson.build), the test run is tests/run.
#
#   make            build; on any distribution, installs nothing, says what is missing
#   make install    the same, then into PREFIX, stripped; make uninstall takes it back
#   make demo       on Debian: install what is missing, build, show the main job (under a minute after the build)
#   make tour       the same as demo for each part by itself: locks, leases, file edits, journal
#   make check      on Debian: the same for the whole test suite
#   make check-fresh  both of these in a new, minimal Debian 12 (root, debootstrap; not part of check)
#   make check-clients  our hooks in the real Claude Code, Codex, Copilot and Gemini, offline (npm, 1 GB; not part of check)
#   make chaos      a fleet of three etcd members and three hosts under faults, CHAOS_SECONDS long (900)
#   make wheel      the Python module with the library inside, in build/wheel
#   make bench      on Debian: the same for the benchmarks; ratios to the real peers, side by side

BUILD ?= build/release
PREFIX ?= /usr/local
SECONDS_EACH ?= 60
CHAOS_SECONDS ?= 900

.PHONY: all deps build demo tour check check-fresh check-clients chaos wheel bench fuzz install uninstall clean

all: build

deps:
	@tools/deps check --install

build:
	@tools/deps build
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) --buildtype=release -Dtests=false --prefix $(abspath $(PREFIX)) >/dev/null
	@meson compile -C $(BUILD) >$(BUILD)/compile.log || { cat $(BUILD)/compile.log; exit 1; }
	@echo "built: $(BUILD)/cli/holdfast"

demo:
	@tools/deps build --install
	@$(MAKE) --no-print-directory build
	@HOLDFAST=$(abspath $(BUILD))/cli/holdfast examples/demo

tour:
	@tools/deps build --install
	@$(MAKE) --no-print-directory build
	@HOLDFAST=$(abspath $(BUILD))/cli/holdfast examples/tour

check: deps
	@tests/run

check-fresh:
	@tools/check-fresh

check-clients: deps
	@tests/run --build-only gcc
	@tests/clients/run --install build/gcc build/clients

chaos: deps
	@tests/run --build-only gcc
	@tests/fleet/chaos/run build/gcc cut-off
	@tests/fleet/chaos/run build/gcc random --sessions --seconds $(CHAOS_SECONDS)
	@tests/fleet/chaos/run build/gcc history --seconds 60

wheel:
	@tools/deps build
	@tools/wheel

bench:
	@tools/deps check --install
	@tools/deps bench --install
	@tests/run --build-only bench
	@bench/run build/bench

fuzz:
	@tools/deps check
	@tests/run --build-only fuzz
	@tests/fuzz/run build/fuzz $(SECONDS_EACH)

install: build
	@meson configure $(BUILD) --prefix $(abspath $(PREFIX)) >/dev/null
	@meson install -C $(BUILD) --strip --quiet >$(BUILD)/install.log 2>&1 || { cat $(BUILD)/install.log; exit 1; }
	@echo "installed: $(DESTDIR)$(abspath $(PREFIX))/bin/holdfast"

uninstall:
	@[ -f $(BUILD)/meson-logs/install-log.txt ] || { echo "$(BUILD) has no record of an installation; run 'make install' with the same PREFIX first" >&2; exit 1; }
	@grep -v '^#' $(BUILD)/meson-logs/install-log.txt | while IFS= read -r file; do \
		if [ -d "$$file" ] && [ ! -L "$$file" ]; then rmdir "$$file" 2>/dev/null || true; else rm -f "$$file"; fi; done
	@echo "removed what 'make install' put below $$(sed -n 's,/bin/holdfast$$,,p' $(BUILD)/meson-logs/install-log.txt)"

clean:
	rm -rf build

# Thin targets; the build itself is meson's (meson.build), the test run is tests/run.
#
#   make demo    install what is missing, build, show the main job (under a minute after the build)
#   make check   the same for the whole test suite
#   make bench   ratios to the real peers, side by side

BUILD ?= build/gcc
PREFIX ?= /usr/local
SECONDS_EACH ?= 60

.PHONY: all deps deps-build build demo check bench fuzz install clean

all: build

deps:
	@tools/deps check

deps-build:
	@tools/deps build

build: deps-build
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) -Dtests=false --prefix $(PREFIX) >/dev/null
	@ninja -C $(BUILD) --quiet
	@echo "built: $(BUILD)/cli/holdfast"

demo: build
	@HOLDFAST=$(abspath $(BUILD))/cli/holdfast examples/demo

check: deps
	@tests/run

bench: deps
	@tools/deps bench
	@tests/run --build-only bench
	@bench/run build/bench

fuzz: deps
	@tests/run --build-only fuzz
	@tests/fuzz/run build/fuzz $(SECONDS_EACH)

install: build
	@meson configure $(BUILD) --prefix $(abspath $(PREFIX))
	meson install -C $(BUILD)

clean:
	rm -rf build

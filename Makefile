# Weft: `make demo` shows it, `make test` proves it. Both set themselves up.
.DEFAULT_GOAL := help
SHELL := /bin/bash

GO       ?= go
FUZZTIME ?= 5s
TOOL     := $(GO) tool -modfile=tools.mod
# The newest tag, as 1.2.3 or 1.2.3-4-gabcdef; empty without one, for which weft has a fallback.
VERSION  := $(patsubst v%,%,$(shell git describe --tags --match 'v*' --dirty 2>/dev/null))
LDFLAGS  := -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse --short=12 HEAD 2>/dev/null)

.PHONY: help demo build console console-deps test unit vm-test fuzz siege kills current-clickhouse clickhouse-cluster bench bpf lint fmt man clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## Run the whole system on an embedded default, no configuration
	./bin/weft demo

build: ## Build bin/weft
	@scripts/need gcc:gcc g++:g++
	@$(GO) build -trimpath -pgo=cmd/weft/weft.pgo -ldflags '$(LDFLAGS)' -o bin/weft ./cmd/weft

# npm install, because npm ci requires packages of every platform in the registry.
# The lock file pins the versions all the same.
NPM := npm install --no-audit --no-fund --no-save

console: ## Rebuild the console from console/web (needs Node 20)
	cd console/web && $(NPM) && npm run types && npm run check && npm run build

# The console's tests need Node 20 and its packages; without them they say so and
# are skipped.
console-deps:
	@if [ "$$(node --version 2>/dev/null | cut -c2- | cut -d. -f1)" -ge 20 ] 2>/dev/null; then \
	  scripts/need chromium:chromium && (cd console/web && test -d node_modules || $(NPM)); \
	else echo "Node 20 not found: the console is not compared with its source nor tested in a browser"; fi

# Packages whose tests leave something to a run without the race detector:
# internal/race says what and why.
PLAIN = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=node_modules -E '/internal/(race|browsertest)"' .)))

# Of those, the ones that hold a fabric of this machine's kernel to real time: they run
# after the others, with all cores.
ALONE = ./dataplane/lab/

# Packages tested at once: many tests wait for sockets and browsers, so that more than
# one a core keep all cores busy.
PACKAGES ?= $(shell echo $$(($$(nproc) * 3 / 2)))

test: unit vm-test fuzz ## Run every test with the race detector, those that need a stock kernel in an emulated machine, and each fuzz test for FUZZTIME (5s)

# Properties are checked with the same draws everywhere, so that a failure can be repeated;
# RAPID_SEED=0 draws others.
unit: export RAPID_SEED ?= 1
unit: console-deps
	@scripts/need gcc:gcc g++:g++ tshark:tshark ns3++:libns3-dev promtool:prometheus prometheus-alertmanager:prometheus-alertmanager \
	  ovs-vswitchd:openvswitch-switch redis-server:redis-server softflowd:softflowd lldpd:lldpd vtysh:frr iperf3:iperf3 clickhouse-server:clickhouse-server zooinspector:zookeeper
	$(GO) test -p $(PACKAGES) -timeout 20m -race ./...
	$(GO) test -p $(PACKAGES) -timeout 20m -vet=off -run "$$($(GO) run ./internal/race/leftover $(PLAIN))" $(filter-out $(ALONE),$(PLAIN)) # vetted above
	$(GO) test -timeout 20m -vet=off -run "$$($(GO) run ./internal/race/leftover $(ALONE))" $(ALONE)

JOB ?=

vm-test: ## Run JOB, or all of scripts/vm/jobs, under Debian's stock kernel in QEMU
	@scripts/vm/run $(JOB)

fuzz:
	@scripts/fuzz $(FUZZTIME)

# A service that requires MACs, in chaos, attacked by one kind after the other, and then for
# DURATION by all attackers at RATE datagrams/s: docs/security.md.
DURATION ?= 1h
RATE     ?= 10000
RESULTS  ?= $(CURDIR)/dist/siege.json

siege: ## Attack a service for DURATION (1h) beside an honest fabric, and check what it found
	@mkdir -p $(dir $(RESULTS))
	$(GO) test ./control/serve/siege -run '^Test(Chaos|EveryAttackFails|HostileHour)$$' -count=1 -timeout 0 -v -args \
	  -siege.duration=$(DURATION) -siege.rate=$(RATE) -siege.results=$(RESULTS)

KILLS ?= 20

kills: ## Kill leader, analyzer, broker and ClickHouse of a cluster KILLS (20) times each, then any of them, and check what it found
	@scripts/need clickhouse-server:clickhouse-server
	$(GO) test ./control/cluster -run '^TestKills(AtRandom)?$$' -count=1 -timeout 0 -v -args -kills=$(KILLS)

CHDB_DIR ?= .cache

current-clickhouse: ## Test the store with the ClickHouse of chDB, which is newer than Debian's
	@scripts/need npm:npm
	library=$$(scripts/chdb $(CHDB_DIR)) && WEFT_TEST_CHDB=$$library $(GO) test ./store/clickhouse -count=1

clickhouse-cluster: ## Test the store with four ClickHouse servers, two shards of two replicas, and ZooKeeper
	@scripts/need clickhouse-server:clickhouse-server zooinspector:zookeeper
	$(GO) test ./store/clickhouse -run '^TestCluster' -count=1 -v -args -cluster

bench: build ## Benchmark Weft against comparable tools
	@scripts/need ns3++:libns3-dev redis-server:redis-server clickhouse-server:clickhouse-server
	./bin/weft bench

lint: ## Check format, vet, and run staticcheck
	@unformatted=$$($(TOOL) gofumpt -l .); \
	  if [ -n "$$unformatted" ]; then echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) mod verify
	$(GO) vet -tags vm ./... # the tag only adds files
	$(TOOL) staticcheck -tags vm ./...

fmt: ## Format all Go code
	$(TOOL) gofumpt -w .

bpf: ## Rebuild the eBPF objects from C (needs clang)
	@scripts/need clang:clang llvm-strip:llvm
	$(GO) generate ./dataplane/ebpf

man: build ## Write man pages to dist/man
	./bin/weft man dist/man

clean: ## Remove what was built
	rm -rf bin dist

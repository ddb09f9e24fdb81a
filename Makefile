# Everything here also works without make: the recipes are plain commands, and what would be a
# shell program is Go in internal/tools. A machine needs Go, git, make and a C compiler.

GO ?= go
# Packages for test, race, fuzz, bench: make test PKG=./engine/...
PKG ?= ./...
# Time for each fuzz target, or a number of runs such as 1000x.
FUZZTIME ?= 10s
# Random histories of the crash model.
HISTORIES ?= 2000
# Benchmarks to run, and rounds of bench-compare.
BENCH ?= .
COUNT ?= 6
# Where `make run` listens.
BIND ?= 127.0.0.1:8545

# Packages whose goroutines meet; the others gain nothing from the race detector.
RACE = ./codec ./engine/... ./ingest/... ./internal/lowpriority ./internal/progress ./segments ./serve/...
# Packages that decode what others wrote: make check runs their fuzz targets for a moment.
DECODERS = ./chain ./codec ./config ./engine ./fuzz ./ingest/archive ./ingest/era ./ingest/remote ./internal/header ./internal/hexenc \
	./internal/receipt ./internal/rlp ./keys ./segments ./serve/rpc

.DEFAULT_GOAL := help
.PHONY: help build run demo test race clients conformance invariants crash e2e fuzz golden generate lint fmt bench bench-large bench-compare load check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: ## build bin/leani
	$(GO) build -o bin/leani ./cmd/leani

run: build ## fill a demo store from bundled Mainnet blocks and serve it on BIND until Ctrl-C
	$(GO) run ./internal/tools/demo -dir data/run -bind $(BIND) -stay

demo: build ## the same on a free port, with a few queries and a reorganization over a WebSocket; ends by itself
	$(GO) run ./internal/tools/demo

test: ## run all tests of PKG; says how long packages take and what is skipped
	$(GO) run ./internal/tools/task test -timeout 10m $(PKG)

race: ## run the tests of concurrent packages, shortened, with the race detector and invariants
	$(GO) run ./internal/tools/task test -race -short -tags invariants -timeout 15m $(RACE)

clients: ## run viem, ethers, web3, Ponder and Subsquid against a node; needs Node.js and the data in ../shared/data
	LEANI_REQUIRE_NODE=1 LEANI_REQUIRE_DATA=1 $(GO) run ./internal/tools/task test -count 1 -timeout 10m ./clients/...

conformance: ## play the JSON-RPC suite of ethereum/execution-apis; needs its data in ../shared/data
	LEANI_REQUIRE_DATA=1 $(GO) test -count 1 -timeout 10m -v -run '^TestConformance$$' ./serve/rpc

invariants: ## run the tests with the checks of internal/invariants
	$(GO) run ./internal/tools/task test -tags invariants -timeout 15m $(PKG)

crash: ## run HISTORIES random histories of the store with crashes, and every single crash and error
	$(GO) test -timeout 60m -run 'Crash|EveryOperation' -count 1 ./engine ./engine/history -crash.histories $(HISTORIES)

e2e: ## run the end-to-end tests at length: kills, flipped bits, memory
	$(GO) test -timeout 120m -count 1 ./cmd/leani -e2e.long

fuzz: ## run every fuzz target of PKG for FUZZTIME
	$(GO) run ./internal/tools/task fuzz -time $(FUZZTIME) $(PKG)

golden: ## rewrite golden files; read the difference before you commit it
	$(GO) run ./internal/tools/task golden

generate: ## rewrite what is derived from source: settings schema and tables
	$(GO) run ./internal/tools/configdoc

lint: ## gofmt, go vet, staticcheck
	$(GO) run ./internal/tools/task fmt-check
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

fmt: ## format the source
	$(GO) run ./internal/tools/task fmt

bench: ## run the benchmarks BENCH of PKG; docs/benchmarks.md says which data they use
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PKG)

bench-large: ## queries of a long chain with little memory; needs 2 GB in data/bench
	$(GO) run ./bench/cmd/largecold -dir data/bench

load: ## 200 clients and 256 WebSockets at a node for a minute, every answer checked; prints figures
	$(GO) run ./bench/cmd/load

bench-compare: ## compare BENCH of PKG with revision REF
	$(GO) run ./internal/tools/task bench-compare -ref '$(REF)' -bench '$(BENCH)' -count $(COUNT) -pkg '$(PKG)'

check: lint test race ## all that CI runs: lint, tests (layering among them), race, decoders fuzzed for 2 s each
	$(GO) run ./internal/tools/task fuzz -time 2s $(DECODERS)

clean: ## remove what the other targets made
	rm -rf bin data/demo data/run data/bench

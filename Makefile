# "make help" lists the targets; each says in its comment what it is for.

GO ?= go
# The race detector pays where goroutines share things; the rest runs about twice as fast without it.
RACE ?= -race
RACE_PACKAGES := ./adapters/... ./agent/... ./core/controlplane ./fakes/... ./hosts/...
PLAIN_PACKAGES = $(filter-out %/core/controlplane,$(shell $(GO) list ./core/... ./ports/... ./acceptance/...))
# The histories run under the race detector too, fewer of them: there they take ten times as long.
HISTORIES := -short -run 'Linearizable|OneKey' ./acceptance/linear
TEST_TIMEOUT ?= 15m
GOLANGCI := .toolchain/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help build run test lint acceptance stack bench generate verify toolchain clean-dev

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/pgherd and bin/svc
	@mkdir -p bin
	$(GO) build -trimpath -o bin/ ./hosts/pgherd $(wildcard ./hosts/svc)

run: build toolchain ## start a whole pgherd on this machine, until Ctrl-C; its state stays in .pgherd/dev
	@exec bin/pgherd dev

test: toolchain ## run every test, those of the real stack too
	$(GO) test $(RACE) -timeout $(TEST_TIMEOUT) $(RACE_PACKAGES)
	$(GO) test $(RACE) -timeout $(TEST_TIMEOUT) $(HISTORIES)
	$(GO) test -timeout $(TEST_TIMEOUT) $(PLAIN_PACKAGES)

lint: $(GOLANGCI) ## check the style and the import rules
	$(GOLANGCI) run ./...

acceptance: ## run the scenarios in process, on the drivers core and http
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestMatrix$$/^(core|http)$$' ./acceptance

stack: toolchain ## run the scenarios on the driver stack: real PostgreSQL, PgBouncer, agent and TLS
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestMatrix$$/^stack$$' ./acceptance

bench: toolchain ## measure speed and memory as ratios to plain baselines
	$(GO) run ./acceptance/bench

generate: ## rewrite the files that tests generate, such as docs/states.md
	PGHERD_UPDATE_GOLDEN=1 $(GO) test -count=1 -run Golden ./core/... ./adapters/...

verify: generate ## fail when a generated file is not up to date
	git diff --exit-code

toolchain: ## find PostgreSQL 16 and PgBouncer on this machine, or fetch them into .toolchain
	@$(GO) run ./hosts/toolchain/ensure

clean-dev: ## wipe the state of "make run"
	rm -rf .pgherd/dev

# Built from source, pinned in tools/go.mod: minutes the first time, then kept.
$(GOLANGCI): tools/go.mod tools/go.sum
	@mkdir -p $(@D)
	$(GO) -C tools build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

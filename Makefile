# "make help" lists the targets with their comments.

GO ?= go
# The same objects serve every target, and every clone. Without what debuggers read, all compiles in five sixths of the time.
export GOFLAGS ?= -trimpath -gcflags=all=-dwarf=false -ldflags=-w
# The compiler needs a quarter less time where it collects garbage only beyond a gigabyte, which few packages reach.
COMPILE = GOGC=off GOMEMLIMIT=1GiB $(GO)
# What takes long shows one in several of its cases to "make test": those of the day. "make test SAMPLE=7" shows another day's.
SAMPLE ?= $(shell date +%Y%j)
# The longest go first.
PACKAGES ?= ./agent ./acceptance ./acceptance/crash ./agent/logins ./agent/backup ./acceptance/conformance/agent ./...
# Of a package, on a slow or busy machine too.
TEST_TIMEOUT ?= 25m
# Tests also wait for processes: one more package than cores is tested at a time. Vet is part of "make lint".
AT_A_TIME ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# Where the tests keep their files; the Go tool's own stay where they are. Tests look at GOTMPDIR before TMPDIR, too.
FILES = $(shell .ci/tmpdir)
TESTS = $(if $(FILES),GOTMPDIR=/tmp TMPDIR=$(FILES)) $(GO) test $(if $(FILES),-exec 'env -u GOTMPDIR') -timeout $(TEST_TIMEOUT) -vet=off -p $(AT_A_TIME)
FUZZTIME ?= 10m
GOLANGCI := .toolchain/golangci-lint
# What "make packages" packs by, and lists what the programs are made of by.
PACKERS := .toolchain/nfpm .toolchain/cyclonedx-gomod
SCHEMA = $(firstword $(subst _, ,$(notdir $(lastword $(sort $(wildcard adapters/postgres/migrations/*.sql))))))
RECORDED = adapters/postgres/testdata/statements/$(SCHEMA)_$(shell git describe --tags --always).json
NEXT = PGHERD_PGBOUNCER=$(CURDIR)/.toolchain/pooler-next/bin/pgbouncer $(GO) test -count=1 -timeout $(TEST_TIMEOUT)

.DEFAULT_GOAL := help
.PHONY: help build server run test check ready tools compile crash logins lint acceptance stack pooler-next versions on-version openapi bench round-trips \
	pictures regression-database abuse interruptions previews upgrade record-statements fuzz generate verify toolchain schemas \
	objectstore offsite moves scale load clean-dev install install-server install-svc uninstall archiver-next packages try-packages terraform \
	try-terraform try-traces try-monitoring operators-year soak

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: server ## build bin/pgherd, bin/svc, and the man pages and completions of svc in bin/share
	GOARCH=$(ARCH) $(COMPILE) build $(STAMP) -o bin/ ./hosts/svc
	$(COMPILE) run ./hosts/svc/manual bin/share

# What the programs say that they are, where git does not say it: VERSION=v1.0.0, and COMMIT, the whole of it.
MADE_FROM = github.com/pgherd/pgherd/hosts/internal/version
STAMP = $(if $(VERSION)$(COMMIT),-ldflags="-w -X $(MADE_FROM).stampedVersion=$(VERSION) -X $(MADE_FROM).stampedCommit=$(COMMIT)")

ARCH ?= $(shell $(GO) env GOARCH)

BIN = bin
server:
	@mkdir -p $(BIN)
	GOARCH=$(ARCH) $(COMPILE) build $(STAMP) -o $(BIN)/ ./hosts/pgherd

# Needs neither Go nor the network. Users and folders are made by systemd-sysusers and systemd-tmpfiles: see
# docs/operate/production.md.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
DATADIR ?= $(PREFIX)/share
UNITS = hosts/pgherd/systemd
UNIT_NAMES = $(notdir $(wildcard $(UNITS)/*.service $(UNITS)/*.path))
# Examples for the programs that watch pgherd, or stand before it.
EXAMPLES = alerts.yml grafana.json prometheus.yml alertmanager.yml rsyslog.conf haproxy.cfg

install: install-server install-svc ## install bin/pgherd, its systemd units and examples, and svc, below DESTDIR; run "make build" before

install-server:
	@[ -x bin/pgherd ] || { echo 'bin/pgherd does not exist: run "make build" first, which needs Go' >&2; exit 1; }
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(LIBDIR)/systemd/system $(LIBDIR)/sysusers.d $(LIBDIR)/tmpfiles.d $(DATADIR)/pgherd)
	install -m 0755 bin/pgherd $(DESTDIR)$(BINDIR)/pgherd
	for unit in $(UNIT_NAMES); do \
		sed 's|/usr/local/bin/|$(BINDIR)/|' $(UNITS)/$$unit > $(DESTDIR)$(LIBDIR)/systemd/system/$$unit && \
		chmod 0644 $(DESTDIR)$(LIBDIR)/systemd/system/$$unit || exit; \
	done
	install -m 0644 $(UNITS)/sysusers.conf $(DESTDIR)$(LIBDIR)/sysusers.d/pgherd.conf
	install -m 0644 $(UNITS)/tmpfiles.conf $(DESTDIR)$(LIBDIR)/tmpfiles.d/pgherd.conf
	install -m 0644 $(addprefix docs/operate/,$(EXAMPLES)) $(DESTDIR)$(DATADIR)/pgherd/

COMPLETIONS = bash-completion/completions/svc zsh/site-functions/_svc fish/vendor_completions.d/svc.fish

install-svc: ## install bin/svc alone, with its man pages and completions, as on a machine of somebody who uses the service
	@[ -x bin/svc ] && [ -d bin/share/man ] || { echo 'bin/svc does not exist: run "make build" first, which needs Go' >&2; exit 1; }
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(DATADIR)/man/man1 $(addprefix $(DATADIR)/,$(dir $(COMPLETIONS))))
	install -m 0755 bin/svc $(DESTDIR)$(BINDIR)/svc
	install -m 0644 bin/share/man/man1/*.1 $(DESTDIR)$(DATADIR)/man/man1/
	for file in $(COMPLETIONS); do install -m 0644 bin/share/$$file $(DESTDIR)$(DATADIR)/$$file || exit; done

# Users, their folders and settings stay, and units run on until they are stopped.
uninstall: ## remove what "make install" has put below DESTDIR, as before Debian's packages
	rm -f $(addprefix $(DESTDIR),$(BINDIR)/pgherd $(BINDIR)/svc $(LIBDIR)/sysusers.d/pgherd.conf $(LIBDIR)/tmpfiles.d/pgherd.conf \
		$(addprefix $(LIBDIR)/systemd/system/,$(UNIT_NAMES)) $(addprefix $(DATADIR)/pgherd/,$(EXAMPLES)) \
		$(addprefix $(DATADIR)/,$(COMPLETIONS)) $(DATADIR)/man/man1/svc.1 $(DATADIR)/man/man1/svc-*.1)
	rmdir $(DESTDIR)$(DATADIR)/pgherd 2> /dev/null || true

# Without inlining too, it takes three fifths. What is installed, "make build" makes. What fetches the tools is compiled first:
# two compilers at a time would both compile what they share. Without C it is what packages have, and needs no C compiler.
run: export CGO_ENABLED = 0
run: export GOFLAGS += '-gcflags=all=-l -dwarf=false'
run: ## run a whole pgherd on this machine until Ctrl-C, with SERVERS=2 on two servers; its state is kept in .pgherd/dev
	@$(COMPILE) build -o bin/dev/ ./hosts/toolchain/ensure
	@$(MAKE) --no-print-directory -j2 server toolchain BIN=bin/dev ENSURE=bin/dev/ensure
	@nice env $(COMPILE) build -o bin/ ./hosts/svc & exec bin/dev/pgherd dev $(if $(SERVERS),--servers $(SERVERS))

test: ready ## run the tests, including those on the real stack; of what takes long, a sample ("make check" has all)
	@echo 'PGHERD_SAMPLE=$(SAMPLE)'
	PGHERD_SAMPLE=$(SAMPLE) $(TESTS) $(PACKAGES)

# With the race detector everything takes several times as long, so that what has a time to end in fails where there are two cores.
# Of what is not a sample, two packages keep all cores busy and have the machine alone: beside others, tests run out of time.
check: ready lint verify ## run everything, for hours: each test, crash point and history; with the race detector, a sample
	PGHERD_FUZZ=1m $(TESTS) -p 2 -count=1 -timeout 3h $(SHARING)
	PGHERD_FUZZ=1m $(TESTS) -p 1 -count=1 -timeout 3h $(ALONE)
	PGHERD_SAMPLE=$(SAMPLE) $(TESTS) -race -count=1 -timeout 3h $(PACKAGES)
	$(MAKE) --no-print-directory offsite moves versions soak
	$(MAKE) --no-print-directory -j2 $(BESIDE)

ALONE = ./agent ./acceptance
# The longest first.
SHARING = ./acceptance/crash $(filter-out $(addprefix %/pgherd/,$(ALONE:./%=%) acceptance/crash),$(shell $(GO) list ./...))

# What measures nothing, and may run beside each other.
BESIDE = try-packages try-terraform try-traces try-monitoring operators-year

crash: toolchain objectstore ## kill at each point in every case that there is
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run 'Crash|PowerCut' ./agent/...
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) ./acceptance/crash

logins: toolchain ## run the agent's tests of logins, roles and opt-ins whole, over both kinds of databases
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) ./agent/logins ./agent/overlay

lint: $(GOLANGCI) ## check style, import rules, and that the modules beside compile: the Terraform provider, and what makes a release
	$(GOLANGCI) run ./...
	$(GO) -C hosts/terraform vet ./...
	$(GO) -C tools/release vet ./...

acceptance: ## run the scenarios over HTTP, with everything behind it in memory
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestMatrix$$/^http$$' ./acceptance

stack: toolchain objectstore ## run the scenarios on the real stack: PostgreSQL, PgBouncer, an object store, agent and TLS
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestMatrix$$/^stack$$' ./acceptance

# What another version of PgBouncer could break. Every package fails where not the next PgBouncer runs: by a test of its own, or
# because its stack does not start.
pooler-next: ## run the tests that PgBouncer matters to on its next version, which is fetched for that
	@$(GO) run ./hosts/toolchain/ensure pooler-next objectstore
	$(NEXT) ./agent/pooler ./agent ./agent/databases ./agent/logins ./agent/overlay ./agent/relocate ./agent/settings
	$(NEXT) -run 'Pooler|PgBouncer' ./hosts/cluster
	$(NEXT) -run '^TestRealAgent$$' ./acceptance/conformance/agent
	$(NEXT) -run '^TestMatrix$$/^stack$$' ./acceptance
	$(NEXT) -run 'Logins|Rotations|LateRequests|PoolerAway' ./acceptance/crash
	$(NEXT) -run '^TestKilled$$/^(.*roles|rotating_logins|opening_and_closing)$$' ./acceptance/crash

# What another version of PostgreSQL could break: what the agent asks of it, has it do, and keeps customers from. The control plane
# knows nothing of it but its number, so the scenarios run on one. What takes long is a sample, as of "make test". Every package
# fails where not that version is found: PGHERD_PG_BINDIR is an order.
ON_VERSION = PGHERD_SAMPLE=$(SAMPLE) PGHERD_PG_BINDIR=$(CURDIR)/.toolchain/server-$(ON)/bin $(TESTS) -count=1
versions: ## run the tests that PostgreSQL's version matters to on 17 and 18, which are fetched for that
	@$(GO) run ./hosts/toolchain/ensure server-17 server-18 client-18 objectstore
	$(MAKE) --no-print-directory on-version ON=17
	$(MAKE) --no-print-directory on-version ON=18
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -tags versions -run '^Test(Upgrades|Rehearsal|Words)' ./agent/follow ./agent

on-version:
	$(ON_VERSION) $(addprefix ./agent/,setup sidecar load copies backup databases logins overlay settings extensions relocate \
		follow endless guard statements inventory)
	$(ON_VERSION) -run 'RoundTrip|Archive|Rebuil|Moment|Program' ./agent
	$(ON_VERSION) -run '^TestReal(Agent|Moves)$$' ./acceptance/conformance/agent

archiver-next: ## run the tests that pgBackRest matters to on its next version, which is fetched for that
	@$(GO) run ./hosts/toolchain/ensure archiver-next
	PGHERD_PGBACKREST=$(CURDIR)/.toolchain/archiver-next/bin/pgbackrest $(GO) test -count=1 -timeout $(TEST_TIMEOUT) ./agent/archive/...

openapi: ## lint the OpenAPI document, and try clients in Go and TypeScript generated from it; fetches tools, and needs Node.js
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -tags openapi ./acceptance/openapi

offsite: toolchain objectstore ## measure an archive in an object store: with 200 databases and one of 500 MB, and with 1,000
	PGHERD_OFFSITE=200x500 $(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestOffsite$$' ./acceptance/offsite
	PGHERD_CROWD=1000 $(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestCrowd$$' ./acceptance/offsite

# Of a database that is moved, in megabytes: three times as much has to be free. Of the databases of a server that is drained.
MOVE ?= 10000
DRAIN ?= 50
moves: toolchain ## move a database of MOVE megabytes under load, and DRAIN databases off a server; measure, and hold what is promised
	PGHERD_MOVE=$(MOVE) PGHERD_DRAIN=$(DRAIN) $(GO) test -count=1 -v -timeout 2h -parallel 1 ./acceptance/moves

# 100,000 databases take 30 GB of disk meanwhile, the 5,000 of one real server 40 GB, and all of it some hours.
scale: toolchain ## measure what pgherd costs as it grows: 100,000 databases of agents in memory, 5,000 of one real server
	$(GO) run ./acceptance/scale

load: toolchain ## find the highest rate that an API host keeps up with, hold it, and send three times as many
	$(GO) run ./acceptance/load

bench: toolchain ## measure speed and memory relative to plain baselines
	$(GO) run ./acceptance/bench

# What a walk through the dashboard saw, and what the docs call it.
PICTURES = docs/operate/pictures
pictures: ready ## take the pictures of the docs anew, by a walk through the dashboard
	seen=$$(mktemp -d) && trap 'rm -rf "$$seen"' EXIT && \
	PGHERD_SCREENSHOTS="$$seen" $(TESTS) -count=1 -run TestWalk ./acceptance/walk && mkdir -p $(PICTURES) && \
	cp "$$seen/owner database 1440 light.png" $(PICTURES)/database.png && \
	cp "$$seen/owner database backups 1440 light.png" $(PICTURES)/backups.png && \
	cp "$$seen/server checked 1440 light.png" $(PICTURES)/console.png

round-trips: toolchain schemas ## back up and restore a database of each schema that tests have, and compare it with what it was
	$(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run 'RoundTrip' ./agent

regression-database: toolchain ## the same with what PostgreSQL's regression tests leave when a database's owner runs them
	@$(GO) run ./hosts/toolchain/ensure regression >/dev/null
	$(GO) test -count=1 -v -timeout 1h -tags regression -run 'RegressionDatabase' ./agent

interruptions: toolchain ## end 10,000 sessions that are in no transaction, and count the transactions that this interrupts
	PGHERD_ROUNDS=10000 $(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run EndedSessionsInterrupt ./agent/settings

previews: toolchain ## let a thousand leases end on fakes, and a hundred on the dev host until they are purged: nothing is left of them
	PGHERD_PREVIEWS=1000 $(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run ManyLeases ./core/controlplane
	PGHERD_PREVIEWS=100 $(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run README ./hosts/dev

abuse: toolchain ## measure a bystander beside each thing that one customer can hold
	$(GO) test -count=1 -v -timeout 2h ./acceptance/abuse -figures

# What fails is kept in testdata, and belongs into the repository with the change that mends it. With PGHERD_FUZZ_SEED, which the
# log of a search names, the same inputs are made again. A release's figures are kept with RECORD=acceptance/fuzz/figures.txt.
fuzz: toolchain ## run each fuzz target for FUZZTIME, AT_A_TIME of them at the same time: those with ONLY in their names
	$(GO) run ./acceptance/fuzz -for $(FUZZTIME) -at-a-time $(AT_A_TIME) -only '$(ONLY)' -record '$(RECORD)'

# docs/develop/releasing.md says when.
upgrade: toolchain ## kill the version FROM, a tag or commit, during a backup, and go on with this one: make upgrade FROM=v1.0.0
	$(GO) run ./acceptance/upgrade $(FROM)

record-statements: toolchain ## record what this version, a release, sends to the metadata database
	@mkdir -p $(dir $(RECORDED))
	PGHERD_RECORD_STATEMENTS=$(CURDIR)/$(RECORDED) $(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '/postgres$$' ./acceptance/conformance/store

generate: ## rewrite the files that tests generate, such as docs/develop/states.md
	PGHERD_UPDATE_GOLDEN=1 $(GO) test -count=1 -run Golden ./core/... ./adapters/... ./agent/floors ./acceptance/grafana \
		./hosts/svc/manual ./acceptance/docs ./acceptance/fuzz
	PGHERD_UPDATE_GOLDEN=1 $(GO) -C hosts/terraform test -count=1 -run Golden .

verify: generate ## fail if a generated file is out of date
	git diff --exit-code

ENSURE = $(COMPILE) run ./hosts/toolchain/ensure
toolchain: ## find PostgreSQL 16, PgBouncer and pgBackRest on this machine, or download them into .toolchain
	@$(ENSURE)

schemas objectstore:
	@$(GO) run ./hosts/toolchain/ensure $@ >/dev/null

# The tools are fetched while Go compiles.
ready:
	@$(MAKE) --no-print-directory -j2 tools compile

tools: toolchain
	@$(GO) run ./hosts/toolchain/ensure schemas browser axe objectstore >/dev/null

compile:
	@$(COMPILE) list -export -test ./... >/dev/null

DIST ?= dist
MAINTAINER ?= pgherd maintainers <maintainers@pgherd.invalid>
packages: $(PACKERS) ## make VERSION=v1.0.0 in the folder DIST: .deb files, what they are made of, and checksums, signed with KEY
	@DIST='$(DIST)' VERSION='$(VERSION)' ARCH='$(ARCH)' KEY='$(KEY)' MAINTAINER='$(MAINTAINER)' hosts/pgherd/package/build

try-packages: $(PACKERS) toolchain ## try the packages and what docs/*/start.md do with them, in bare Debians 12 and 13; takes root
	@$(GO) run ./hosts/toolchain/ensure roots >/dev/null
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -tags packages ./acceptance/packages

try-monitoring: toolchain ## have Prometheus, Alertmanager and rsyslog watch a pgherd by the examples of docs/operate; takes root
	@$(GO) run ./hosts/toolchain/ensure monitoring >/dev/null
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -tags monitoring ./acceptance/monitoring

# A module of its own: nothing else needs what it is built from.
terraform: ## build bin/terraform-provider-pgherd
	GOARCH=$(ARCH) $(COMPILE) -C hosts/terraform build $(STAMP) -o ../../bin/terraform-provider-pgherd .

try-terraform: toolchain $(GOLANGCI) ## have the machine's terraform make, change, import and destroy everything on a development host
	cd hosts/terraform && ../../$(GOLANGCI) run ./...
	$(GO) -C hosts/terraform test -count=1 -timeout $(TEST_TIMEOUT) ./...

# The collector is a module of its own, which takes minutes to compile.
try-traces: toolchain ## send the traces of a whole pgherd to the OpenTelemetry Collector
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -tags traces ./acceptance/traces

operators-year: $(PACKERS) toolchain ## do what an operator does in a year by docs/operate, on seven machines that are namespaces; takes root
	@$(GO) run ./hosts/toolchain/ensure balancer objectstore >/dev/null
	$(GO) test -count=1 -v -timeout 90m -tags machines -run '^TestTheOperatorsYear$$' ./acceptance/install

# A plan of each seed, from FROM on: what is done, and what goes wrong. Of one that fails, a smaller plan is left in .toolchain,
# which PLAN carries out again. Without SEEDS, it is one small seed.
SEEDS ?=
FROM ?= 1
soak: toolchain ## do everything that there is by seeded plans, while all is killed, cut off, filled and set wrong; takes root
	@$(GO) run ./hosts/toolchain/ensure objectstore >/dev/null
	$(GO) test -count=1 -v -tags soak -timeout 10m ./acceptance/soak/machines
	PGHERD_SOAK_SEEDS=$(SEEDS) PGHERD_SOAK_FROM=$(FROM) PGHERD_SOAK_PLAN=$(PLAN) \
		$(GO) test -count=1 -v -tags soak -timeout 0 -run '^TestSoak$$' ./acceptance/soak

clean-dev: ## delete the state of "make run"
	rm -rf .pgherd/dev

# Built from source at the version pinned in tools/go.mod; the first build takes minutes.
$(GOLANGCI): tools/go.mod tools/go.sum
	@mkdir -p $(@D)
	$(GO) -C tools build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(PACKERS): tools/release/go.mod tools/release/go.sum
	@mkdir -p $(@D)
	$(GO) -C tools/release build -o ../../.toolchain/ tool
	@touch $(PACKERS)

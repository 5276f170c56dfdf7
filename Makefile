# Every target works on a fresh machine: it first installs missing programs.

GO      ?= go
BIN     := bin/humanqa
TOOLS   := .tools
PACKAGE ?= ./...

# scripts/install-go.sh puts Go here where the system has none.
export PATH := $(CURDIR)/$(TOOLS)/go/bin:$(PATH)

# Some systems' Go stays at its own version unless it is told to fetch that of go.mod.
export GOTOOLCHAIN ?= auto

# Without an answer from git (no git, or another user's checkout) go would refuse to
# build, instead of leaving the revision out.
ifeq ($(shell git rev-parse --verify --quiet HEAD 2>/dev/null),)
export GOFLAGS += -buildvcs=false
endif

# Packages run their own PostgreSQL, and wait now and then: so more run at once than there
# are processors. RACE=-race turns the race detector on, as CI does: it needs a C compiler,
# and a build of its own of every dependency. The limit of a package is for a machine that
# is a tenth as fast: the waits within the tests find a hang, and say what they waited for.
RACE       ?=
TEST_FLAGS ?= -count=1 -timeout 3h -p 4

LINT_VERSION = $(shell awk '$$1 == "github.com/golangci/golangci-lint/v2" { print $$2 }' tools/go.mod)
LINT         = $(TOOLS)/golangci-lint-$(LINT_VERSION)

CLIENTS      = tools/clients
PACKAGES     = $(TOOLS)/clients
SQUAWK       = tools/squawk

# The client waits for the network and for people: a program a tenth smaller is worth more
# than inlined calls. It has so many bytes at most.
SMALL        = -trimpath -gcflags=all=-l
HQA_MOST     = 12000000

.DEFAULT_GOAL := help

.PHONY: run
run: go ## install missing programs, build, and start the whole service with a demo account
	@scripts/install.sh curl jq
	@GO="$(GO)" scripts/build.sh $(BIN) ./cmd/humanqa
	@echo "starting: $(BIN) serve --demo"
	@GO="$(GO)" nice scripts/build.sh bin/humanqa-parquet ./cmd/humanqa-parquet >/dev/null 2>&1 &
	@$(BIN) serve --demo

.PHONY: demo
demo: build ## with `make run` up: one job from submission to a verified webhook
	$(BIN) demo

.PHONY: build
build: go ## build bin/humanqa, the program beside it for Parquet, and bin/hqa, its client (LDFLAGS= keeps the data for debuggers)
	@GO="$(GO)" scripts/build.sh $(BIN) ./cmd/humanqa
	@GO="$(GO)" scripts/build.sh bin/humanqa-parquet ./cmd/humanqa-parquet
	@GO="$(GO)" GOFLAGS="$(GOFLAGS) $(SMALL)" CGO_ENABLED=0 MOST=$(HQA_MOST) scripts/build.sh bin/hqa ./cmd/hqa

.PHONY: test
test: go postgres chromium ## install missing programs and run the whole test suite (RACE=-race: with the race detector)
	@scripts/install.sh curl jq
	@GO="$(GO)" RACE="$(RACE)" TEST_FLAGS="$(TEST_FLAGS)" exec scripts/test.sh $(PACKAGE)

.PHONY: contract
contract: go alerts clients postgres chromium ## check the OpenAPI document, the log, the exports, the agents' protocol and the alerts with third-party tools, the client packages, and the types of the pages' scripts
	cd $(CLIENTS) && node_modules/.bin/tsc -p pages.tsconfig.json
	$(GO) test $(RACE) -vet=off -count=1 -timeout 60m -run TestTheDocumentInOtherTools ./httpapi/openapi -args -clients $(CURDIR)/$(CLIENTS)
	PATH="$$(dirname "$$(scripts/fetch-deb.sh nginx usr/sbin/nginx $(CURDIR)/$(TOOLS)/nginx)"):$$PATH" \
		$(GO) test $(RACE) -vet=off -count=1 -timeout 60m -run TestAJobIsTestedBehindNginx ./cmd/humanqa
	$(GO) test $(RACE) -vet=off -count=1 -timeout 60m -run "TestOthersReadWhatWeWrote|TestTheService/the_official_libraries" ./cmd/humanqa -args -clients $(CURDIR)/$(CLIENTS)
	$(GO) test $(RACE) -vet=off -count=1 -timeout 60m -run TestTheOfficial ./httpapi/mcp -args -clients $(CURDIR)/$(CLIENTS)
	$(GO) test $(RACE) -vet=off -count=1 -timeout 60m -run "TestTheClientPackages|TestGeneratedClients" ./httpapi -args -packages $(CURDIR)/$(PACKAGES) -clients $(CURDIR)/$(CLIENTS)
	$(GO) test $(RACE) -vet=off -count=1 -timeout 60m -run TestTheNodeServesTheClient ./eventstore/node -args -clients $(CURDIR)/$(CLIENTS)

.PHONY: clients
clients: $(CLIENTS)/node_modules ## build the client packages for npm and Python (.tools/clients)
	@scripts/install.sh python3
	rm -rf $(PACKAGES) && scripts/clients.sh $(PACKAGES) 0.0.0

.PHONY: alerts
alerts: ## check the alerts' rules, and play them with Prometheus' own promtool
	@scripts/alerts.sh

.PHONY: alarms
alarms: go alerts postgres ## cause every alert in a running service that a Prometheus server watches (four minutes, as root: it mounts a small disk)
	$(GO) test -count=1 -timeout 60m -v -run TestAlertsFire ./cmd/humanqa -args -prometheus $(CURDIR)/$(TOOLS)/prometheus/usr/bin/prometheus

.PHONY: torture
torture: go postgres ## kill the service and its database under load, take the log from its node, overload it, break the connections between every two parts, let a year of retention pass, read what 20,000 webhooks tell, then send 20,000 hostile requests each to the API and the pages (three hours at most)
	$(GO) test -count=1 -timeout 60m -v -run TestTorture ./cmd/humanqa -args -torture
	$(GO) test -count=1 -timeout 80m -v -run TestNoAppendIsLostOrDoubled ./eventstore/node -args -torture
	$(GO) test -count=1 -timeout 90m -v -run TestFaultsBetweenTheParts ./cmd/humanqa -args -torture -faults.operations 100000
	$(GO) test -count=1 -timeout 60m -v -run TestHostileRequests ./httpapi -args -hostile.count 20000
	$(GO) test -count=1 -timeout 60m -v -run TestHostilePages ./httpapi/console -args -hostile.count 20000
	$(GO) test -count=1 -timeout 60m -v -run TestAReceiverReadsWhatEachWebhookTells ./cmd/humanqa -args -torture -told.deliveries 10000
	$(GO) test -count=1 -timeout 60m -v -run 'TestReadsAtOnce|TestOverload|TestAbuseIsNotFeltByOthers|TestADataDirectoryOfAnOlder' ./cmd/humanqa -args -torture
	$(GO) test -count=1 -timeout 60m -v -run TestAYearOfRetention ./cmd/humanqa -args -torture -retention.events 1000000 -retention.pieces 10000
	$(GO) test -count=1 -timeout 60m -v -run 'TestTheClientAgainstAService/a_wait_outlasts' ./cmd/hqa -args -report.after 8m
	$(GO) test -count=1 -timeout 60m -v -run TestAsOfAnswers ./httpapi -args -asof.steps 200

.PHONY: bench
bench: go postgres ## measure the service beside plain PostgreSQL, a CRUD twin and River
	$(GO) -C bench run .

.PHONY: release
release: go $(CLIENTS)/node_modules ## write binaries, packages, the clients, an image, SBOMs and checksums of this commit to dist (PLATFORMS=linux/amd64 for one)
	cd tools/release && $(GO) test -timeout 60m . && $(GO) run . -out $(CURDIR)/dist $(if $(VERSION),-version $(VERSION)) $(if $(PLATFORMS),-platforms $(PLATFORMS))

.PHONY: try-release
try-release: ## install the release in dist in fresh roots and run it there (as root on Debian; make release first)
	scripts/try-release.sh dist

.PHONY: assets
assets: go ## bundle the pages' scripts and styles (httpapi/ui/assets/dist)
	cd tools && $(GO) run ./assets ../httpapi/ui/assets

.PHONY: openapi
openapi: go ## build the API's document from its YAML files (httpapi/openapi/dist), and the Go client's types from the document
	$(GO) run ./httpapi/openapi/assemble/write
	mkdir -p $(CLIENTS)/generated && gunzip -c httpapi/openapi/dist/openapi.json.gz >$(CLIENTS)/generated/openapi.json
	cd $(CLIENTS) && $(GO) tool oapi-codegen -config types.yaml -o ../../integrations/clients/go/humanqa/types.gen.go generated/openapi.json

.PHONY: shots
shots: go postgres chromium ## write a picture of every page, in each state, on each screen, to .shots
	mkdir -p .shots
	HUMANQA_TEST_SHOTS=$(CURDIR)/.shots $(GO) test -count=1 -timeout 60m -run TestEveryPage ./httpapi/dashboard ./httpapi/workbench ./httpapi/console ./httpapi/room

.PHONY: lint
lint: go $(LINT) $(SQUAWK)/node_modules ## golangci-lint, formatting, the locks of new migrations, and the state of go.mod and go.sum, of the service and of bench
	$(LINT) run ./...
	scripts/lint-migrations.sh
	cd bench && ../$(LINT) run ./...
	cd tools/actionlint && $(GO) tool actionlint $(CURDIR)/integrations/github/example/*.yml
	@test -z "$$(gofmt -l *.go */)" || { echo "run make fmt; not formatted:"; gofmt -l *.go */; exit 1; } >&2
	$(GO) mod verify
	$(GO) mod tidy -diff
	$(GO) -C bench mod tidy -diff

.PHONY: vuln
vuln: go ## find known vulnerabilities in called code (asks the Go vulnerability database)
	cd tools && GOBIN=$(CURDIR)/$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck
	$(TOOLS)/govulncheck ./...

.PHONY: fmt
fmt: go $(LINT) ## format the Go code and group its imports
	$(LINT) fmt ./...
	cd bench && ../$(LINT) fmt ./...

.PHONY: clean
clean: ## remove the output of other targets; data stays
	rm -rf bin $(TOOLS) $(CLIENTS)/node_modules $(CLIENTS)/generated $(SQUAWK)/node_modules

.PHONY: go
go: ## install Go if it is missing, or too old to fetch the version in go.mod
	@scripts/install-go.sh "$(GO)"

.PHONY: postgres
postgres: ## install PostgreSQL's server programs if they are missing
	@scripts/install.sh

.PHONY: chromium
chromium: ## install a browser for the tests of pages if there is none
	scripts/install-chromium.sh

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / && !seen[$$1]++ {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# No script of a package runs during the installation.
$(CLIENTS)/node_modules $(SQUAWK)/node_modules: %/node_modules: %/package.json %/package-lock.json
	scripts/install-node.sh
	cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	mkdir -p $@
	touch $@

# The tools module pins and checks its version like every other dependency. The name
# carries the version, so a change of it builds anew.
$(LINT): | go
	cd tools && GOGC=$${GOGC:-400} GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	mv $(TOOLS)/golangci-lint $@

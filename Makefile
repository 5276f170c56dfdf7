# Every target works on a fresh machine; what is missing is installed first.

GO      ?= go
BIN     := bin/humanqa
TOOLS   := .tools
PACKAGE ?= ./...

# Where git does not answer (no git, a checkout that belongs to another user)
# go would refuse to build instead of leaving the revision out.
ifeq ($(shell git rev-parse --verify --quiet HEAD 2>/dev/null),)
export GOFLAGS += -buildvcs=false
endif

# Two packages at a time in each of the suite's two groups (scripts/test.sh): each
# runs a PostgreSQL of its own, and waits now and then. The race detector needs a C
# compiler; without one go says 0 here.
RACE        = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
TEST_FLAGS ?= -count=1 -timeout 30m -p 2

LINT_VERSION = $(shell awk '$$1 == "github.com/golangci/golangci-lint/v2" { print $$2 }' tools/go.mod)
LINT         = $(TOOLS)/golangci-lint-$(LINT_VERSION)

CLIENTS      = tools/clients

.DEFAULT_GOAL := help

.PHONY: run
run: ## install what is missing, build, and start the whole service with a demo account
	@scripts/install.sh curl jq
	@GO="$(GO)" scripts/build.sh $(BIN) ./cmd/humanqa
	@echo "starting: $(BIN) serve --demo"
	@$(BIN) serve --demo

.PHONY: demo
demo: build ## beside a running `make run`: one job from submission to a verified webhook
	$(BIN) demo

.PHONY: build
build: ## build bin/humanqa (LDFLAGS= keeps what a debugger needs)
	@GO="$(GO)" scripts/build.sh $(BIN) ./cmd/humanqa

.PHONY: go
go:
	@scripts/needs-go.sh "$(GO)"

.PHONY: test
test: go postgres chromium ## install what is missing and run the whole test suite, race detector on where it works
	@GO="$(GO)" RACE="$(RACE)" PAGES_RACE="$(PAGES_RACE)" TEST_FLAGS="$(TEST_FLAGS)" scripts/test.sh $(PACKAGE)

.PHONY: race
race: RACE = -race
race: PAGES_RACE = -race
race: test ## the same with the race detector everywhere, and fail where it does not work

.PHONY: contract
contract: $(CLIENTS)/node_modules postgres ## hold the OpenAPI document, the log and the exports against others' tools, and the pages' scripts against their types
	cd $(CLIENTS) && node_modules/.bin/tsc -p pages.tsconfig.json
	$(GO) test -count=1 -timeout 10m -run TestTheDocumentInOtherTools ./httpapi/openapi -args -clients $(CURDIR)/$(CLIENTS)
	$(GO) test -count=1 -timeout 10m -run TestOthersReadWhatWeWrote ./cmd/humanqa -args -clients $(CURDIR)/$(CLIENTS)

.PHONY: torture
torture: postgres ## kill the service and its database under load, again and again; then 20,000 hostile requests (an hour at most)
	$(GO) test -count=1 -timeout 30m -v -run TestTorture ./cmd/humanqa -args -torture
	$(GO) test -count=1 -timeout 30m -v -run TestHostileRequests ./httpapi -args -hostile.count 20000
	$(GO) test -count=1 -timeout 30m -v -run TestReadsAtOnce ./cmd/humanqa -args -torture
	$(GO) test -count=1 -timeout 30m -v -run TestAsOfAnswers ./httpapi -args -asof.steps 200

.PHONY: bench
bench: postgres ## measure against plain PostgreSQL, a CRUD twin and River, side by side
	$(GO) run ./bench

.PHONY: assets
assets: ## bundle the pages' scripts and styles anew (httpapi/ui/assets/dist)
	cd tools && $(GO) run ./assets ../httpapi/ui/assets

.PHONY: openapi
openapi: ## put the YAML files of the API's document together (httpapi/openapi/dist)
	$(GO) run ./httpapi/openapi/assemble/write

.PHONY: shots
shots: postgres chromium ## write a picture of every page, in each state, on each screen, to .shots
	mkdir -p .shots
	HUMANQA_TEST_SHOTS=$(CURDIR)/.shots $(GO) test -count=1 -timeout 15m -run TestEveryPage ./httpapi/dashboard ./httpapi/workbench ./httpapi/console

.PHONY: lint
lint: $(LINT) ## golangci-lint, formatting, and the state of go.mod and go.sum
	$(LINT) run ./...
	@test -z "$$(gofmt -l .)" || { echo "run make fmt; not formatted:"; gofmt -l .; exit 1; } >&2
	$(GO) mod verify
	$(GO) mod tidy -diff

.PHONY: vuln
vuln: ## known vulnerabilities in what we call (asks the Go vulnerability database)
	cd tools && GOBIN=$(CURDIR)/$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck
	$(TOOLS)/govulncheck ./...

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w .

.PHONY: clean
clean: ## remove what the other targets built; data stays
	rm -rf bin $(TOOLS) $(CLIENTS)/node_modules $(CLIENTS)/generated

.PHONY: postgres
postgres: ## install PostgreSQL's server programs unless they are there
	@scripts/install.sh

.PHONY: chromium
chromium: ## install a browser for the tests of pages unless there is one
	scripts/install-chromium.sh

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / && !seen[$$1]++ {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Nothing of them runs while it is installed.
$(CLIENTS)/node_modules: $(CLIENTS)/package.json $(CLIENTS)/package-lock.json
	scripts/install-node.sh
	cd $(CLIENTS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# Built from the tools module, so its version is pinned and checked like every
# other dependency. The name carries the version: a change of it builds anew.
$(LINT):
	cd tools && GOGC=$${GOGC:-400} GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	mv $(TOOLS)/golangci-lint $@

# The verbs of the project; CONTRIBUTING.md says what each is for.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE   ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/system-s3
MASTERS ?= 3
TOUR    ?= # of the tour: its flags, such as -seed 7 or -times 1 -least 0
CLIENTS ?= # of the client matrix: -fast, or -clients boto3,rclone
SANDBOX := bin/sandbox
export SANDBOX_DIR ?= /var/lib/system-s3-sandbox
export GARAGE_BINARY ?= $(CACHE)/garage-2.5.0/bin/garage

GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint
CONTROLLER_GEN := sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.0
UNITS   := . tests/sandbox tests/chart tests/monitoring tests/page tests/demo tests/clients tests/clients/program/trial tests/suite tests/tour
MODULES := $(UNITS) tests/scale tests/e2e tests/bench

.PHONY: help demo down up test unit e2e tour leaving placement replicas migration scale clients suite suite-fast bench dashboards reproducible lint generate check-generate tools

help: ## list the verbs
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

$(SANDBOX): FORCE
	@mkdir -p bin && cd tests/sandbox && go build -o ../../$(SANDBOX) .
FORCE:

tools: $(SANDBOX) ## build third-party programs into the cache
	@$(SANDBOX) build

up: tools ## bring the sandbox up with the module installed, not enabled
	@$(SANDBOX) up --masters $(MASTERS)

demo: up ## the main job, from nothing; leaves the cluster up
	@cd tests/demo && go run .

down: $(SANDBOX) ## take the sandbox away
	@$(SANDBOX) down

unit: tools ## unit, schema, template and contract tests
	@for m in $(UNITS); do echo "== go test $$m"; (cd $$m && go test -count=1 -timeout 15m -parallel 4 ./...); done # most wait for Garage

e2e: tools ## end-to-end tests on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS) --key-lifetime 30s # an expiry is waited for, not believed
	@cd tests/e2e && go test -count=1 -timeout 30m -v -skip '^TestBadMoments$$' ./...

tour: tools ## the fault tour of an hour or more on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS) --key-lifetime 30s
	@cd tests/tour && go build -o ../../bin/tour .
	@bin/tour $(TOUR)

leaving: tools ## disabling the module at fifteen bad moments, on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS) --key-lifetime 30s
	@cd tests/e2e && go test -count=1 -timeout 60m -v -run '^(TestLeaving|TestBadMoments)$$' ./...

scale: tools ## how fast buckets are made and deleted and what many cost, on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS)
	@cd tests/scale && go build -o ../../bin/scale .
	@cd tests/clients/thirdparty/rclone && go build -o ../../../../bin/rclone .
	@for m in creation deletion many; do bin/scale $$m --rclone bin/rclone; done

replicas: tools ## one replica becomes three and one again under load, on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS) --key-lifetime 30s
	@cd tests/e2e && go test -count=1 -timeout 40m -v -tags placement -run '^TestReplicas$$' ./...

migration: tools ## the store moves to another StorageClass and back under load, on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS) --key-lifetime 30s
	@cd tests/e2e && go test -count=1 -timeout 60m -v -tags placement -run '^TestMigration$$' ./...

placement: tools ## the long stories on the sandbox: every tier, every kind of StorageClass, full volumes
	@$(SANDBOX) up --masters $(MASTERS)
	@cd tests/e2e && go test -count=1 -timeout 60m -v -tags placement -run 'EveryPlacement' ./...

clients: tools ## the client matrix on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS) --key-lifetime 30s
	@cd tests/clients && go run . $(CLIENTS)

bench: tools ## what access costs, side by side with nginx, MinIO, bare Garage and rclone; needs a machine at rest
	@go test -run '^$$' -bench 'Admission|SignedChunks' ./images/gateway/internal/s3 ./lib/sigv4
	@cd tests/bench && go test -count=1 -timeout 60m -v ./...
	@cd tests/clients/thirdparty/rclone && go build -o ../../../../bin/rclone .
	@RCLONE=$(CURDIR)/bin/rclone go test -run '^$$' -bench Move -benchtime 1x -timeout 2h ./images/controller/internal/mover

suite: tools ## a peer's S3 suite on the sandbox, brought up if it is not
	@$(SANDBOX) up --masters $(MASTERS)
	@cd tests/suite && go run .

suite-fast: tools ## the same suite on one Garage and one gateway, no cluster
	@cd tests/suite && go vet ./... && go test -count=1 -timeout 15m -v ./...

$(GOLANGCI):
	@echo "building golangci-lint $(GOLANGCI_VERSION) (a few minutes)"
	@GOBIN=$(dir $(GOLANGCI)) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

dashboards: demo ## every query of the dashboards, by a real Prometheus that scrapes the sandbox
	@cd tests/monitoring && go test -count=1 -v -tags sandbox -run "^TestEveryQuery" ./...

reproducible: ## two builds of each program, in two folders with empty caches: the digests must be the same (minutes)
	@cd tests/sandbox && go test -count=1 -v -timeout 30m -run '^TestBuildsAreReproducible$$' ./platform -cold

lint: $(GOLANGCI) ## golangci-lint over every Go module
	@for m in $(MODULES); do echo "== lint $$m"; (cd $$m && $(GOLANGCI) run -c $(CURDIR)/.golangci.yml ./...); done

generate: ## CRD and deepcopy from the Go types
	@go run $(CONTROLLER_GEN) object paths=./lib/api/...
	@go run $(CONTROLLER_GEN) crd paths=./lib/api/... output:crd:stdout > crds/systembucket.yaml

check-generate: generate
	@git diff --exit-code -- crds lib/api || { echo "generated files are stale: run make generate and commit" >&2; exit 1; }

test: check-generate unit lint ## everything that must pass before a landing
	@$(SANDBOX) down
	@trap '$(SANDBOX) down' EXIT; $(MAKE) dashboards && $(MAKE) clients CLIENTS=-fast && $(MAKE) e2e

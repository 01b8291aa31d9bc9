# Tools, pinned.
staticcheck := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help run test race lint bench overload soak alerts walkthrough lessons page picture load instances update fuzz ci

help: ## show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve on 127.0.0.1:3000
	go run ./cmd/storefront

test: ## every test, the README included
	go test ./...

race: ## every test with the race detector
	go test -race -count=1 ./...

lint: ## gofmt, go mod tidy, go vet, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	go run $(staticcheck) ./...
	@for module in scripts/browser scripts/bench; do (cd $$module && go mod tidy -diff && go vet ./... && go run $(staticcheck) ./...) || exit 1; done

# For a short run: BENCH="-count 1 -benchtime 50x", OVERLOAD="-step 500ms".
BENCH ?=
OVERLOAD ?= -picture ../overload.svg
bench: ## what each pattern costs, beside its peers, as a table with goals; 4 minutes
	cd scripts/bench && go run ./table $(BENCH)

overload: ## what the patterns are for: goodput and percentiles under too much load, and the README's picture of them
	cd scripts/bench && go run ./overload $(OVERLOAD)

SOAK ?= 1m
soak: ## everything goes wrong at random for SOAK (1m), with the race detector; then all must be back, and add up
	STOREFRONT_SOAK=$(SOAK) go test -race -count=1 -timeout 0 -run '^TestSoak$$' -v ./internal/storefront

alerts: ## the alert rules for Prometheus, checked and tested; needs its promtool
	promtool check rules scripts/alerts.yml
	promtool check config scripts/prometheus.yml
	promtool test rules scripts/alerts_test.yml

walkthrough: ## the README's walkthrough with real binaries, real curl, real time
	scripts/walkthrough.sh

lessons: ## the whole README and all lessons, in the same way; a short load; instances that share a rate limit
	scripts/lessons.sh

page: ## the live page in a real browser; needs a Chromium
	cd scripts/browser && go test -count=1 ./...

picture: ## take the picture of the live page that the README shows; needs a Chromium
	cd scripts/browser && go test -count=1 -run TestPicture$$ -picture ../page.png ./...

update: ## rewrite what pages and golden files show to what is really printed; read the diff
	go test -p 1 ./cmd/... ./scripts/exercises -update

load: ## a load on the server at localhost:3000, with shares by status, percentiles and a plot
	scripts/load.sh

instances: ## five instances, each with a rate limit of its own and with one that they share; needs a redis-server
	scripts/instances.sh

# Counted, not timed: a fuzz run that its clock ends can fail with "context
# deadline exceeded" on a busy machine (go.dev/issue/75804).
fuzzed := -run '^$$' -fuzztime 40000x -fuzzminimizetime 1000x
fuzz: ## the parsers, 40,000 inputs each
	go test $(fuzzed) -fuzz FuzzRetryAfter ./internal/dependency
	go test $(fuzzed) -fuzz FuzzAPIKey ./internal/storefront
	go test $(fuzzed) -fuzz FuzzUrgency ./internal/storefront
	go test $(fuzzed) -fuzz FuzzCharge ./internal/simulator
	go test $(fuzzed) -fuzz FuzzIdempotencyKey ./internal/simulator
	go test $(fuzzed) -fuzz FuzzFault ./internal/simulator

ci: ## what CI runs, apt-get install included
	.ci/run

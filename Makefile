# Tools, pinned.
staticcheck := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help run test race lint bench walkthrough fuzz ci

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

bench: ## what each pattern costs; compare within one run
	go test -run '^$$' -bench . -benchmem ./internal/...

walkthrough: ## the README's sessions with real binaries, real curl, real time
	scripts/walkthrough.sh
	STOREFRONT_FOR_REAL=1 go test -count=1 -run ForReal ./cmd/storefront

fuzz: ## the parsers, for a few seconds each
	go test -run '^$$' -fuzz FuzzRetryAfter -fuzztime 5s ./internal/dependency
	go test -run '^$$' -fuzz FuzzAPIKey -fuzztime 5s ./internal/storefront
	go test -run '^$$' -fuzz FuzzUrgency -fuzztime 5s ./internal/storefront
	go test -run '^$$' -fuzz FuzzCharge -fuzztime 5s ./internal/simulator
	go test -run '^$$' -fuzz FuzzIdempotencyKey -fuzztime 5s ./internal/simulator

ci: ## what CI runs, apt-get install included
	.ci/run

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// scripts/load.sh sends what it says, accounts for each request and draws a plot.
func TestLoadForReal(t *testing.T) {
	term := newLive(t)()
	term.plain(t)
	plot := filepath.Join(t.TempDir(), "plot.html")
	out, err := term.run(t, "PLOT="+plot+" scripts/load.sh http://localhost:3000 45 2")
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]int{} // by route
	for _, row := range regexp.MustCompile(`(?m)^(\S+) +(\d+)((?:  \d+: [\d.]+%)+)$`).FindAllStringSubmatch(out, -1) {
		requests[row[1]], _ = strconv.Atoi(row[2])
		sum := 0.0
		for _, share := range regexp.MustCompile(`([\d.]+)%`).FindAllStringSubmatch(row[3], -1) {
			s, _ := strconv.ParseFloat(share[1], 64)
			sum += s
		}
		if sum < 99.5 || sum > 100.5 {
			t.Errorf("the shares of %s make %.1f%%", row[1], sum)
		}
		if regexp.MustCompile(` [05]00: `).MatchString(row[3]) {
			t.Errorf("%s: no answers or errors of ours: %s", row[1], row[3])
		}
	}
	want := map[string]int{"/checkout": 30, "/stock": 20, "/profile": 10, "/limited": 10, "/slow": 10, "/charge": 10, "all": 90}
	for route, n := range want {
		if requests[route] != n {
			t.Errorf("%s: %d requests, want %d", route, requests[route], n)
		}
		if !regexp.MustCompile(`(?m)^` + route + `( +\d+\.\d){5}$`).MatchString(out) {
			t.Errorf("no percentiles of %s", route)
		}
	}
	if page, err := os.ReadFile(plot); err != nil || !strings.Contains(string(page), "45 requests a second") {
		t.Errorf("the plot: %v, %d bytes", err, len(page))
	}
	if t.Failed() {
		t.Log(out)
	}
	term.close(t)
}

// It refuses what is not this machine, or not bounded.
func TestLoadRefusesForReal(t *testing.T) {
	term := newLive(t)()
	for args, want := range map[string]string{
		"http://example.com":                "load: URL: http://example.com is not a server on this machine",
		"http://localhost:3000@example.com": "load: URL: http://localhost:3000@example.com is not",
		"http://localhost.example.com":      "load: URL: http://localhost.example.com is not",
		"http://localhost:3000 0":           "load: RATE: 0 is not a whole number from 1 to 500",
		"http://localhost:3000 501":         "load: RATE: 501 is not",
		"http://localhost:3000 5 61":        "load: SECONDS: 61 is not a whole number from 1 to 60",
		"http://localhost:3000 5 1.5":       "load: SECONDS: 1.5 is not",
		"http://localhost:3000 5 1 more":    "load: too many arguments",
		"http://127.0.0.1:1":                "load: no storefront answers at http://127.0.0.1:1; start one with: go run ./cmd/storefront",
	} {
		out, err := term.run(t, "scripts/load.sh "+args+"; echo exit $?")
		code := "exit 2\n"
		if strings.Contains(want, "no storefront") {
			code = "exit 1\n"
		}
		if err != nil || !strings.HasPrefix(out, want) || !strings.HasSuffix(out, code) {
			t.Errorf("%s: %v, got:\n%swant:\n%s … %s", args, err, out, want, code)
		}
	}
}

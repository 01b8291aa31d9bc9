package main

import "fmt"

// group is some rows that compare with each other.
type group struct {
	title string
	rows  []row
	needs string // a program, without which there are no figures
}

// row is a line of the table.
type row struct {
	what    string
	figures []figure
}

// figure is a number in it.
type figure struct {
	of     string // benchmark and unit
	column string // each or ratio
	format func(float64) string
	goal   float64 // at most; 0 is none
}

// groups is the table: what is in it, in what order, and every goal.
var groups = []group{
	{title: "a route beside a bare net/http handler: CPU of 16 requests at once, both ends", rows: []row{
		way("bare handler", "Routes/answering", "bare", "", "cpu-ns"),
		way("`/limited`", "Routes/answering", "limited", "bare", "cpu-ns").ratioAtMost(1.25),
		way("`/flaky`", "Routes/answering", "flaky", "bare", "cpu-ns"),
		way("`/checkout`, which calls `/flaky`", "Routes/calling", "checkout", "bare", "cpu-ns"),
		way("`/stock/mug`, which calls inventory", "Routes/calling", "stock", "bare", "cpu-ns"),
		way("`/profile/ada`, which calls profiles", "Routes/calling", "profile", "bare", "cpu-ns"),
		way("`/charge`, which calls payments", "Routes/calling", "charge", "bare", "cpu-ns"),
		way("`/slow`, which waits 1 ms", "Routes/calling", "slow", "bare", "cpu-ns"),
	}},
	{title: "a call to a dependency that succeeds: CPU, both ends", rows: []row{
		way("bare, with a tuned client", "Checkout", "bare", "", "cpu-ns"),
		way("through bulkhead, breaker, retry and timeout", "Checkout", "stack", "bare", "cpu-ns").ratioAtMost(1.15),
	}},
	{title: "a request served and refused: CPU of the handler, and of the call behind it", rows: []row{
		way("`/checkout` served", "Refusal", "served", "", "cpu-ns"),
		way("breaker open", "Refusal", "open", "served", "cpu-ns").ratioAtMost(0.25),
		way("bulkhead full", "Refusal", "full", "served", "cpu-ns").ratioAtMost(0.25),
		way("caller limited", "Refusal", "limited", "served", "cpu-ns").ratioAtMost(0.25),
		way("`/slow` shed", "Refusal", "shed", "served", "cpu-ns").ratioAtMost(0.25),
	}},
	{title: "the rate limiter, a token taken", rows: []row{
		keys("1 key", "1", 250),
		keys("1,000 keys, at random", "1000", 250),
		keys("1,000,000 keys, at random", "1000000", 1500),
	}},
	{title: "a circuit breaker, closed", rows: peers("BreakerClosed/1-at-once", breakers...)},
	{title: "the same, 2 goroutines at once", rows: peers("BreakerClosed/2-at-once", breakers...)},
	{title: "a circuit breaker, open", rows: atMost(150, peers("BreakerOpen/1-at-once", breakers...))},
	{title: "the same, 2 goroutines at once", rows: atMost(150, peers("BreakerOpen/2-at-once", breakers...))},
	{title: "a retry policy with a budget, success at once", rows: peers("Retry", "ours", "failsafe")},
	{title: "a rate limiter, 1,000 keys in turn, a token taken", rows: peers("LimiterAllows/1-at-once", "ours", "go-limiter")},
	{title: "the same, 2 goroutines at once", rows: peers("LimiterAllows/2-at-once", "ours", "go-limiter")},
	{title: "a rate limiter, refused", rows: peers("LimiterRefuses", "ours", "go-limiter")},
	{title: "the rate limiter, a token taken, in memory and in Redis", rows: inRedis("1"), needs: "redis-server"},
	{title: "the same, 20 goroutines at once", rows: inRedis("20"), needs: "redis-server"},
}

var breakers = []string{"ours", "gobreaker", "failsafe", "atomic"}

// names are what the peers are called, where not as in the benchmarks.
var names = map[string]string{
	"gobreaker": "gobreaker, which ours is built on",
	"failsafe":  "failsafe-go",
	"atomic":    "by hand, on atomics",
}

// way is a row of one way that took its turn, and its ratio to the base.
func way(what, benchmark, name, base, unit string) row {
	r := row{what, []figure{{of: benchmark + " " + name + "-" + unit, column: "each", format: duration}}}
	if base != "" {
		r.figures = append(r.figures, figure{of: benchmark + " " + name + "/" + base, column: "ratio", format: ratio})
	}
	return r
}

func (r row) ratioAtMost(goal float64) row {
	r.figures[1].goal = goal
	return r
}

// peers are a row each, the first of which is ours.
func peers(benchmark string, ways ...string) []row {
	var rows []row
	for i, name := range ways {
		what, base := name, ways[0]
		if long, ok := names[name]; ok {
			what = long
		}
		if i == 0 {
			base = ""
		}
		r := way(what, benchmark, name, base, "ns")
		r.figures = append(r.figures, figure{of: benchmark + " " + name + "-allocs", column: "each", format: allocations})
		rows = append(rows, r)
	}
	return rows
}

// inRedis are the rows of the limiter, with so many decisions at once.
func inRedis(n string) []row {
	return []row{
		way("in memory", "Shared/"+n+"-at-once", "memory", "", "ns"),
		way("shared through a Redis on the same machine", "Shared/"+n+"-at-once", "redis", "memory", "ns"),
	}
}

// atMost sets the goal of ours, in ns.
func atMost(goal float64, rows []row) []row {
	rows[0].figures[0].goal = goal
	return rows
}

// keys is a row of the limiter with so many buckets.
func keys(what, n string, goal float64) row {
	figures := []figure{{of: "Allow/" + n + " ns/op", column: "each", format: duration, goal: goal}}
	if n != "1" { // or the limiter itself is what is measured
		figures = append(figures, figure{of: "Allow/" + n + " bytes/key", column: "each", format: bytesEach, goal: 200})
	}
	return row{what, figures}
}

func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	default:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
}

func ratio(r float64) string       { return fmt.Sprintf("%.2f", r) }
func bytesEach(n float64) string   { return fmt.Sprintf("%.0f bytes", n) }
func allocations(n float64) string { return fmt.Sprintf("%.0f allocs", n) }

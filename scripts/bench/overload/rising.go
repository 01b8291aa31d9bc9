package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/storefront"
)

// multiples of capacity that are offered.
var multiples = []float64{0.5, 1, 2, 5, 10}

// series is one route under rising load, an outcome for each of multiples.
type series struct {
	route         string
	with, without []outcome
}

// risingLoad offers more and more.
func risingLoad(ctx context.Context, w io.Writer, step time.Duration) ([]series, error) {
	with := storefront.Config{SlowPermits: places, SlowWork: work}
	with.Flaky.Bulkhead = bulkhead.Config{Permits: places}
	// What is taken away on /slow is the shedding: all may wait, in a queue without end.
	without := storefront.Config{SlowPermits: places, SlowWork: work, SlowPolicy: shed.Wait, SlowQueue: 10_000, SlowMaxWait: time.Hour, MaxInFlight: 1_000_000}
	all := []series{{route: "/slow"}, {route: "/checkout"}}
	for i := range all {
		s := &all[i]
		fmt.Fprintf(w, "\n%s: %d at once, %v each, so %d a second; clients leave after %v\n", s.route, places, work, capacity, patience)
		fmt.Fprintf(w, "%10s  %-44s  %s\n", "", "with the patterns", "without")
		fmt.Fprintf(w, "%10s  %s  %s\n", "offered/s", heading, heading)
		path := s.route
		if path == "/checkout" {
			path += "?without=bulkhead,breaker,retry,timeout"
		}
		for _, multiple := range multiples {
			good, err := once(ctx, with, s.route, multiple*capacity, step)
			if err != nil {
				return nil, err
			}
			bad, err := once(ctx, without, path, multiple*capacity, step)
			if err != nil {
				return nil, err
			}
			s.with, s.without = append(s.with, good), append(s.without, bad)
			fmt.Fprintf(w, "%10.0f  %s  %s\n", multiple*capacity, good, bad)
		}
		last := len(multiples) - 1
		share, peak := s.with[last].goodput()/peak(s.with), peak(s.with)
		goal(w, fmt.Sprintf("goodput at %v times capacity is %.2f of its peak of %.0f a second, goal 0.95 at least", multiples[last], share, peak), share >= 0.95)
		p99, half := s.with[last].percentile(99), s.with[0].percentile(99)
		goal(w, fmt.Sprintf("p99 of what was accepted is %.2f of that at half load, goal 1.2 at most", float64(p99)/float64(half)), float64(p99) <= 1.2*float64(half))
	}
	return all, nil
}

// once offers one load to a new stage.
func once(ctx context.Context, cfg storefront.Config, path string, rate float64, d time.Duration) (outcome, error) {
	s, err := newStage(cfg)
	if err != nil {
		return outcome{}, err
	}
	defer s.close()
	o := offer(ctx, rate, d, patience, get(s.front.URL+path))
	return o, s.idle(ctx)
}

const heading = "goodput/s     p50     p99  refused  late  fail"

// String is a row under heading: times in ms, and shares of the requests.
func (o outcome) String() string {
	share := func(n int) string {
		return fmt.Sprintf("%.0f%%", 100*float64(n)/float64(o.good+o.refused+o.late+o.failed))
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
	return fmt.Sprintf("%9.0f %7s %7s %8s %5s %5s", o.goodput(), ms(o.percentile(50)), ms(o.percentile(99)), share(o.refused), share(o.late), share(o.failed))
}

func peak(all []outcome) float64 {
	peak := 0.0
	for _, o := range all {
		peak = max(peak, o.goodput())
	}
	return peak
}

package inturn

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// burn is a way that uses so much processor time.
func burn(name string, rounds int) Way {
	return Way{name, func() error {
		for range rounds {
			runtime.KeepAlive(rounds)
		}
		return nil
	}}
}

// benchmark runs f as a benchmark of a few rounds.
func benchmark(t *testing.T, f func(*testing.B)) testing.BenchmarkResult {
	t.Helper()
	r := testing.Benchmark(f)
	if r.N == 0 {
		t.Fatal("the benchmark failed")
	}
	return r
}

func TestTheDearerWayHasTheHigherRatio(t *testing.T) {
	for name, compare := range map[string]func(b *testing.B, ways ...Way){
		"CPU":   CPU,
		"Time":  func(b *testing.B, ways ...Way) { Time(b, 1, ways...) },
		"Waits": func(b *testing.B, ways ...Way) { Waits(b, 1, ways...) },
	} {
		t.Run(name, func(t *testing.T) {
			got := benchmark(t, func(b *testing.B) { compare(b, burn("once", 2000), burn("five", 10_000)) }).Extra
			// It is 5; far from it on either side would be a ratio of something else.
			if ratio := got["five/once"]; ratio < 2 || ratio > 12 {
				t.Errorf("ratio %v, want about 5: %v", ratio, got)
			}
			if _, own := got["once/once"]; own {
				t.Error("the first has a ratio to itself")
			}
		})
	}
}

func TestTimeCountsAllocationsAndMakesCallsAtOnce(t *testing.T) {
	var now, most atomic.Int32
	var kept atomic.Pointer[[64]byte]
	got := benchmark(t, func(b *testing.B) {
		Time(b, 2, burn("none", 1), Way{"two", func() error {
			n := now.Add(1)
			defer now.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			kept.Store(new([64]byte))
			kept.Store(new([64]byte))
			return nil
		}})
	}).Extra
	if got["none-allocs"] != 0 || got["two-allocs"] != 2 {
		t.Errorf("%v", got)
	}
	if most.Load() > 2 {
		t.Errorf("%d at once", most.Load())
	}
}

func TestAFailedCallFailsTheBenchmark(t *testing.T) {
	for _, n := range []int{1, 3} {
		calls, errDown := atomic.Int32{}, errors.New("down")
		err := atOnce(n, 5, func() error {
			if calls.Add(1) == 3 {
				return errDown
			}
			return nil
		})
		if !errors.Is(err, errDown) {
			t.Errorf("%d at once: %v", n, err)
		}
	}
}

func TestMedianIsTheMiddle(t *testing.T) {
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Error(got)
	}
}

func TestCPUTimeRises(t *testing.T) {
	start, begin := cpuTime(), time.Now()
	for cpuTime() == start {
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not")
		}
	}
}

// Package inturn compares ways of doing a thing, for benchmarks. The ways take turns within
// one benchmark, so that all meet the same machine: two benchmarks that run one after the
// other meet two.
package inturn

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Way is one of several. Its Call is made again and again.
type Way struct {
	Name string
	Call func() error
}

// CPU compares by processor time, on all processors and so on both sides of every socket.
// For each way it reports NAME-cpu-ns, what a call takes, and NAME/FIRST, its ratio to the
// first way in the same round: both as medians over the rounds.
func CPU(b *testing.B, ways ...Way) {
	compare(b, "cpu-ns", cpuTime, 20, 1, ways)
}

// Time compares calls that wait for nothing by the clock, n of them at once. It reports
// NAME-ns, the time in which one call ends, and NAME/FIRST as CPU does, and NAME-allocs, the
// allocations of a call.
func Time(b *testing.B, n int, ways ...Way) { byClock(b, n, 10_000, ways) }

// Waits is Time for calls of which one may wait, for a tenth of a millisecond or so.
func Waits(b *testing.B, n int, ways ...Way) { byClock(b, n, 1000, ways) }

func byClock(b *testing.B, n, batch int, ways []Way) {
	start := time.Now()
	compare(b, "ns", func() time.Duration { return time.Since(start) }, batch, n, ways)
}

// compare takes each way for a batch of calls, shared by n goroutines, as clocks are coarse.
func compare(b *testing.B, unit string, clock func() time.Duration, batch, n int, ways []Way) {
	took, ratios, allocs := make([][]float64, len(ways)), make([][]float64, len(ways)), make([][]float64, len(ways))
	for b.Loop() {
		for i, way := range ways {
			before := mallocs()
			start := clock()
			err := atOnce(n, batch/n, way.Call)
			each := float64(clock()-start) / float64(batch/n*n)
			if err != nil {
				b.Fatalf("%s: %v", way.Name, err)
			}
			took[i] = append(took[i], each)
			ratios[i] = append(ratios[i], each/last(took[0]))
			allocs[i] = append(allocs[i], float64(mallocs()-before)/float64(batch))
		}
	}
	b.ReportMetric(0, "ns/op") // of all together: says nothing
	for i, way := range ways {
		b.ReportMetric(median(took[i]), way.Name+"-"+unit)
		if unit == "ns" {
			b.ReportMetric(float64(int(median(allocs[i])+0.1)), way.Name+"-allocs") // some are the machine's
		}
		if i > 0 {
			b.ReportMetric(median(ratios[i]), way.Name+"/"+ways[0].Name)
		}
	}
}

// atOnce makes calls in n goroutines, and returns one of the errors.
func atOnce(n, calls int, call func() error) error {
	some := func() error {
		for range calls {
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}
	if n == 1 {
		return some()
	}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		all.Go(func() { errs[i] = some() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func last(numbers []float64) float64 { return numbers[len(numbers)-1] }

func median(numbers []float64) float64 {
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(fmt.Sprint("getrusage: ", err)) // it knows no such error
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

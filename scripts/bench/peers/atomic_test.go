package peers

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("down")

func fail() error    { return errDown }
func succeed() error { return nil }

// It does what a breaker must, or measuring it would say nothing.
func TestAtomicBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &atomicBreaker{failures: 3, cooldown: 10 * time.Second}
		for i, step := range []struct {
			after time.Duration
			fn    func() error
			want  error
		}{
			{0, fail, errDown}, {0, fail, errDown}, {0, succeed, nil}, // two in a row are forgotten
			{0, fail, errDown}, {0, fail, errDown}, {0, fail, errDown},
			{0, succeed, errOpen},
			{10 * time.Second, succeed, errOpen},
			{1, fail, errDown}, // the probe opens it again
			{10 * time.Second, succeed, errOpen},
			{1, succeed, nil}, // the probe closes it
			{0, fail, errDown}, {0, fail, errDown}, {0, succeed, nil},
		} {
			time.Sleep(step.after)
			if got := b.do(step.fn); got != step.want {
				t.Errorf("step %d: %v, want %v", i, got, step.want)
			}
		}
	})
}

func TestAtomicBreakerLetsOneProbePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &atomicBreaker{failures: 1, cooldown: time.Second}
		b.do(fail)
		time.Sleep(time.Second + 1)
		var probes atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				b.do(func() error { probes.Add(1); time.Sleep(time.Second); return nil })
			})
		}
		all.Wait()
		if probes.Load() != 1 {
			t.Errorf("%d probes, want 1", probes.Load())
		}
	})
}

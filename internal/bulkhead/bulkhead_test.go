package bulkhead

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFullIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Permits: 2})
		if err != nil {
			t.Fatal(err)
		}
		var held sync.WaitGroup
		for range 2 {
			held.Go(func() { b.Do(func() error { time.Sleep(time.Second); return nil }) })
		}
		synctest.Wait()
		start := time.Now()
		if err := b.Do(func() error { t.Error("ran without a permit"); return nil }); err != ErrFull {
			t.Errorf("third: %v, want %v", err, ErrFull)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("third waited %v", waited)
		}
		if got, want := b.Snapshot(), (Snapshot{Permits: 2, InUse: 2, Rejected: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		held.Wait()
		if err := b.Do(func() error { return nil }); err != nil {
			t.Errorf("with the permits back: %v", err)
		}
	})
}

func TestPermitIsGivenBackOnEveryPath(t *testing.T) {
	errDown := errors.New("down")
	for name, fn := range map[string]func() error{
		"result": func() error { return nil },
		"error":  func() error { return errDown },
		"panic":  func() error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			b, err := New(Config{Permits: 2})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				func() {
					defer func() { _ = recover() }()
					if err := b.Do(fn); err == ErrFull {
						t.Fatal("a permit was kept")
					}
				}()
			}
			if got, want := b.Snapshot(), (Snapshot{Permits: 2}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestNeverMoreThanItsPermits(t *testing.T) {
	b, err := New(Config{Permits: 3})
	if err != nil {
		t.Fatal(err)
	}
	var running, ran atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 100 {
				b.Do(func() error {
					if n := running.Add(1); n > 3 {
						t.Errorf("%d at once", n)
					}
					ran.Add(1)
					running.Add(-1)
					return nil
				})
			}
		})
	}
	all.Wait()
	if got := b.Snapshot(); uint64(ran.Load())+got.Rejected != 5000 || got.InUse != 0 {
		t.Errorf("%d ran, %+v: want 5000 in all and none in use", ran.Load(), got)
	}
}

func TestRefusingAllocatesNothing(t *testing.T) {
	b, err := New(Config{Permits: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.Do(func() error {
		fn := func() error { return nil }
		if n := testing.AllocsPerRun(100, func() { b.Do(fn) }); n > 0 {
			t.Errorf("%v allocations a refusal, want 0", n)
		}
		return nil
	})
}

func TestZeroConfigMeansTwentyPermits(t *testing.T) {
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Snapshot().Permits; got != 20 {
		t.Errorf("%d permits, want 20", got)
	}
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	if _, err := New(Config{Permits: -1}); err == nil || !strings.Contains(err.Error(), "Permits") {
		t.Errorf("Permits negative: %v, want an error that names it", err)
	}
}

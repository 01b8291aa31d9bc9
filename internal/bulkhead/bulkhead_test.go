package bulkhead

import (
	"context"
	"errors"
	"slices"
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
			held.Go(func() { b.Do(t.Context(), func() error { time.Sleep(time.Second); return nil }) })
		}
		synctest.Wait()
		start := time.Now()
		if err := b.Do(t.Context(), func() error { t.Error("ran without a permit"); return nil }); err != ErrFull {
			t.Errorf("third: %v, want %v", err, ErrFull)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("third waited %v", waited)
		}
		if got, want := b.Snapshot(), (Snapshot{Permits: 2, InUse: 2, Rejected: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		held.Wait()
		if err := b.Do(t.Context(), func() error { return nil }); err != nil {
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
					if err := b.Do(context.Background(), fn); err == ErrFull {
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
				b.Do(t.Context(), func() error {
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
	b.Do(t.Context(), func() error {
		fn := func() error { return nil }
		if n := testing.AllocsPerRun(100, func() { b.Do(context.Background(), fn) }); n > 0 {
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

func TestWaitEndsWithAPermitOrAfterItsTime(t *testing.T) {
	for _, tt := range []struct {
		held time.Duration // how long the permit is taken
		want error
		took time.Duration
	}{
		{time.Second - 1, nil, time.Second - 1},
		{time.Second + 1, ErrFull, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, err := New(Config{Permits: 1, MaxWait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			go b.Do(t.Context(), func() error { time.Sleep(tt.held); return nil })
			synctest.Wait()
			start := time.Now()
			ran := false
			if err := b.Do(t.Context(), func() error { ran = true; return nil }); err != tt.want {
				t.Errorf("held for %v: %v, want %v", tt.held, err, tt.want)
			}
			if took := time.Since(start); took != tt.took || ran != (tt.want == nil) {
				t.Errorf("held for %v: took %v, ran %v, want %v, %v", tt.held, took, ran, tt.took, tt.want == nil)
			}
			synctest.Wait()
			time.Sleep(time.Second)
			want := Snapshot{Permits: 1}
			if tt.want != nil {
				want.Rejected = 1
			}
			if got := b.Snapshot(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Permits: 1, MaxWait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				b.Do(t.Context(), func() error { order = append(order, i); time.Sleep(time.Second); return nil })
			})
			synctest.Wait()
		}
		if got, want := b.Snapshot(), (Snapshot{Permits: 1, InUse: 1, Waiting: 4}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("served %v", order)
		}
	})
}

func TestCallerThatLeavesDuringTheWaitIsNotARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Permits: 1, MaxWait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		b.Do(t.Context(), func() error {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			if err := b.Do(ctx, func() error { t.Error("ran"); return nil }); err != context.Canceled || time.Since(start) != time.Second {
				t.Errorf("%v after %v, want %v after 1s", err, time.Since(start), context.Canceled)
			}
			return nil
		})
		if got, want := b.Snapshot(), (Snapshot{Permits: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestCallerThatHasLeftIsNotARefusal(t *testing.T) {
	b, err := New(Config{Permits: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.Do(t.Context(), func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Do(ctx, func() error { t.Error("ran"); return nil }); err != context.Canceled {
			t.Errorf("Do = %v, want %v", err, context.Canceled)
		}
		return nil
	})
	if got, want := b.Snapshot(), (Snapshot{Permits: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	for field, cfg := range map[string]Config{"Permits": {Permits: -1}, "MaxWait": {MaxWait: -1}} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s negative: %v, want an error that names it", field, err)
		}
	}
}

func TestResetForgetsRefusalsAndKeepsPermits(t *testing.T) {
	b, err := New(Config{Permits: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.Do(t.Context(), func() error {
		b.Do(t.Context(), func() error { return nil })
		b.Reset()
		if got, want := b.Snapshot(), (Snapshot{Permits: 1, InUse: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if err := b.Do(t.Context(), func() error { return nil }); err != ErrFull {
			t.Errorf("beside a call under way: %v, want %v", err, ErrFull)
		}
		return nil
	})
}

func TestNilHasNoBound(t *testing.T) {
	var none *Bulkhead
	errDown := errors.New("down")
	err := none.Do(t.Context(), func() error {
		return none.Do(t.Context(), func() error { return errDown })
	})
	if err != errDown {
		t.Errorf("%v, want %v", err, errDown)
	}
}

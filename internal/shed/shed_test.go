package shed

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func shedder(t *testing.T, cfg Config) *Shedder {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func want(t *testing.T, s *Shedder, want Snapshot) {
	t.Helper()
	if got := s.Snapshot(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNewestIsShedWhenThereIsNoRoom(t *testing.T) {
	s := shedder(t, Config{})
	ctx := t.Context()
	errDown := errors.New("down")
	err := s.Do(ctx, 0, func() error {
		return s.Do(ctx, 7, func() error {
			if err := s.Do(ctx, 0, func() error { t.Error("ran without room"); return nil }); err != ErrBusy {
				t.Errorf("third: %v, want %v", err, ErrBusy)
			}
			want(t, s, Snapshot{Permits: 2, InUse: 2, Rejected: 1})
			return errDown
		})
	})
	if err != errDown {
		t.Errorf("Do = %v, want the work's own error", err)
	}
	want(t, s, Snapshot{Permits: 2, Rejected: 1})
}

// arrival is work that comes at a time, and when and how it ends.
type arrival struct {
	at      time.Duration
	urgency int
	ends    time.Duration
	err     error
}

// Each piece of work takes 2 s, one at a time.
func TestTimelines(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name     string
		cfg      Config
		arrivals []arrival
	}{
		{"wait serves in the order of arrival, whatever the urgency", Config{Policy: Wait, Queue: 2, MaxWait: time.Hour}, []arrival{
			{0, 3, 2 * s, nil}, {1, 7, 4 * s, nil}, {2, 0, 6 * s, nil},
		}},
		{"wait sheds the newest when the queue is full", Config{Policy: Wait, Queue: 1, MaxWait: time.Hour}, []arrival{
			{0, 3, 2 * s, nil}, {1, 7, 4 * s, nil}, {2, 0, 2, ErrBusy}, {2 * s, 3, 6 * s, nil}, {2*s + 1, 3, 2*s + 1, ErrBusy},
		}},
		{"who waited too long is shed", Config{Policy: Wait, Queue: 2, MaxWait: 3 * s}, []arrival{
			{0, 3, 2 * s, nil}, {0, 3, 4 * s, nil}, {s - 1, 3, 4*s - 1, ErrBusy}, {4 * s, 3, 6 * s, nil},
		}},
		{"who waited just less is served", Config{Policy: Wait, Queue: 2, MaxWait: 3 * s}, []arrival{
			{0, 3, 2 * s, nil}, {0, 3, 4 * s, nil}, {s + 1, 3, 6 * s, nil},
		}},
		{"priority serves in the order of urgency, then of arrival", Config{Policy: Priority, Queue: 4, MaxWait: time.Hour}, []arrival{
			{0, 7, 2 * s, nil}, {1, 5, 8 * s, nil}, {2, 3, 4 * s, nil}, {3, 5, 10 * s, nil}, {4, 3, 6 * s, nil},
		}},
		{"priority sheds the least urgent", Config{Policy: Priority, Queue: 2, MaxWait: time.Hour}, []arrival{
			{0, 3, 2 * s, nil}, {1, 5, 3, ErrBusy}, {2, 3, 6 * s, nil}, {3, 0, 4 * s, nil},
		}},
		{"which may be the newest", Config{Policy: Priority, Queue: 2, MaxWait: time.Hour}, []arrival{
			{0, 3, 2 * s, nil}, {1, 3, 4 * s, nil}, {2, 3, 6 * s, nil}, {3, 7, 3, ErrBusy},
		}},
		{"and is the newest of the least urgent", Config{Policy: Priority, Queue: 2, MaxWait: time.Hour}, []arrival{
			{0, 3, 2 * s, nil}, {1, 5, 6 * s, nil}, {2, 5, 4, ErrBusy}, {3, 5, 3, ErrBusy}, {4, 4, 4 * s, nil},
		}},
		{"urgency does not stop work under way", Config{Policy: Priority, Queue: 1, MaxWait: time.Hour}, []arrival{
			{0, 7, 2 * s, nil}, {1, 0, 4 * s, nil}, {2, 0, 2, ErrBusy},
		}},
		{"priority sheds who waited too long as well", Config{Policy: Priority, Queue: 2, MaxWait: 3 * s}, []arrival{
			{0, 3, 2 * s, nil}, {1, 7, 3*s + 1, ErrBusy}, {2, 0, 4 * s, nil},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.cfg.Permits = 1
				s := shedder(t, tt.cfg)
				start := time.Now()
				var all sync.WaitGroup
				for i, a := range tt.arrivals {
					time.Sleep(time.Until(start.Add(a.at)))
					synctest.Wait() // what ends now has ended
					all.Go(func() {
						err := s.Do(t.Context(), a.urgency, func() error { time.Sleep(2 * time.Second); return nil })
						if at := time.Since(start); at != a.ends || err != a.err {
							t.Errorf("arrival %d: %v at %v, want %v at %v", i, err, at, a.err, a.ends)
						}
					})
					synctest.Wait() // it has its place
				}
				all.Wait()
				if got := s.Snapshot(); got.InUse != 0 || got.Waiting != 0 {
					t.Errorf("%+v at the end, want nothing in use", got)
				}
			})
		})
	}
}

func TestWhoLeavesFreesThePlaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shedder(t, Config{Permits: 1, Policy: Wait, Queue: 1, MaxWait: time.Hour})
		s.Do(t.Context(), 3, func() error {
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error)
			go func() { left <- s.Do(ctx, 3, func() error { t.Error("ran"); return nil }) }()
			synctest.Wait()
			want(t, s, Snapshot{Permits: 1, InUse: 1, Queue: 1, Waiting: 1})
			cancel()
			if err := <-left; err != context.Canceled {
				t.Errorf("Do = %v, want %v", err, context.Canceled)
			}
			want(t, s, Snapshot{Permits: 1, InUse: 1, Queue: 1}) // no refusal
			return nil
		})
		want(t, s, Snapshot{Permits: 1, Queue: 1})
	})
}

// A permit comes in the instant in which the wait or the waiter ends: whatever is
// made of it, it is given back.
func TestPermitInTheLastInstantIsNotLost(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := shedder(t, Config{Permits: 1, Policy: Wait, MaxWait: time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var all sync.WaitGroup
			hold := func() error { time.Sleep(time.Second); return nil }
			for range 3 {
				all.Go(func() { s.Do(ctx, 3, hold) })
			}
			all.Wait()
			if got := s.Snapshot(); got.InUse != 0 || got.Waiting != 0 {
				t.Fatalf("%+v, want nothing in use", got)
			}
		})
	}
}

func TestWhoHasLeftTakesNobodysPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shedder(t, Config{Permits: 1, Policy: Priority, Queue: 1})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		served := make(chan error, 1)
		s.Do(t.Context(), 3, func() error {
			go func() { served <- s.Do(t.Context(), 7, func() error { return nil }) }()
			synctest.Wait()
			if err := s.Do(gone, 0, func() error { t.Error("ran"); return nil }); err != context.Canceled {
				t.Errorf("Do = %v, want %v", err, context.Canceled)
			}
			return nil
		})
		if err := <-served; err != nil {
			t.Errorf("the one that waits got %v", err)
		}
		want(t, s, Snapshot{Permits: 1, Queue: 1})
	})
}

func TestPanicGivesItsPlaceBack(t *testing.T) {
	s := shedder(t, Config{Permits: 1})
	for range 3 {
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want boom", p)
				}
			}()
			s.Do(t.Context(), 3, func() error { panic("boom") })
		}()
	}
	want(t, s, Snapshot{Permits: 1})
}

// milliseconds draws whole ones, so that things happen in the same instant.
func milliseconds(below int) time.Duration { return time.Duration(rand.N(below)) * time.Millisecond }

// Arrivals, departures and ends in any order: nothing is lost or let in twice.
func TestCrowd(t *testing.T) {
	for _, policy := range []Policy{Newest, Wait, Priority} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shedder(t, Config{Permits: 3, Policy: policy, Queue: 5, MaxWait: 20 * time.Millisecond})
				var running, ran, busy, left atomic.Int64
				var all sync.WaitGroup
				for range 2000 {
					all.Go(func() {
						time.Sleep(milliseconds(1000))
						ctx, cancel := context.WithTimeout(t.Context(), milliseconds(40))
						defer cancel()
						err := s.Do(ctx, rand.N(8), func() error {
							if n := running.Add(1); n > 3 {
								t.Errorf("%d at once", n)
							}
							defer running.Add(-1)
							time.Sleep(milliseconds(10))
							ran.Add(1)
							return nil
						})
						switch {
						case err == ErrBusy:
							busy.Add(1)
						case err != nil:
							left.Add(1)
						}
					})
				}
				all.Wait()
				got := s.Snapshot()
				if got.InUse != 0 || got.Waiting != 0 || int64(got.Rejected) != busy.Load() || ran.Load()+busy.Load()+left.Load() != 2000 {
					t.Errorf("%d ran, %d busy, %d left of 2000, %+v", ran.Load(), busy.Load(), left.Load(), got)
				}
				if ran.Load() == 0 || busy.Load() == 0 || left.Load() == 0 {
					t.Errorf("%d ran, %d busy, %d left: the test tests nothing", ran.Load(), busy.Load(), left.Load())
				}
			})
		})
	}
}

func TestZeroConfigShedsTheNewestBeyondTwo(t *testing.T) {
	want(t, shedder(t, Config{}), Snapshot{Permits: 2})
	want(t, shedder(t, Config{Policy: Wait}), Snapshot{Permits: 2, Queue: 4})
	if got := shedder(t, Config{Policy: Priority}).cfg.MaxWait; got != 5*time.Second {
		t.Errorf("a wait of %v, want 5s", got)
	}
}

func TestRefusingTheNewestAllocatesNothing(t *testing.T) {
	s := shedder(t, Config{Permits: 1})
	s.Do(t.Context(), 3, func() error {
		fn := func() error { return nil }
		if n := testing.AllocsPerRun(100, func() { s.Do(context.Background(), 3, fn) }); n > 0 {
			t.Errorf("%v allocations a refusal, want 0", n)
		}
		return nil
	})
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Permits": {Permits: -1}, "Policy": {Policy: "oldest"}, "Queue": {Queue: -1}, "MaxWait": {MaxWait: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "shed: "+field+" is ") {
			t.Errorf("%s out of range: %v, want an error that names it", field, err)
		}
	}
	var all []Policy
	for _, p := range []Policy{"", Newest, Wait, Priority} {
		all = append(all, shedder(t, Config{Policy: p}).cfg.Policy)
	}
	if !slices.Equal(all, []Policy{Newest, Newest, Wait, Priority}) {
		t.Errorf("policies %v", all)
	}
}

func TestResetForgetsWhatWasShedAndKeepsPermits(t *testing.T) {
	s := shedder(t, Config{Permits: 1})
	s.Do(t.Context(), 0, func() error {
		s.Do(t.Context(), 0, func() error { return nil })
		want(t, s, Snapshot{Permits: 1, InUse: 1, Rejected: 1})
		s.Reset()
		want(t, s, Snapshot{Permits: 1, InUse: 1})
		return nil
	})
	want(t, s, Snapshot{Permits: 1})
}

package breaker

import (
	"cmp"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// results makes calls in turn: F fails, S succeeds, N is neutral, H answers in
// good health.
func results(b *Breaker, script string) {
	for _, letter := range script {
		call(b, map[rune]error{'F': errDown, 'S': nil, 'N': errGone, 'H': err404}[letter])
	}
}

var errGone = errors.New("gone")

func TestRules(t *testing.T) {
	const s = time.Second
	ratio := Config{FailureRatio: 0.5, MinCalls: 20, Window: 10 * s}
	row := Config{Failures: 3, Window: 10 * s}
	type calls struct {
		at     time.Duration
		script string
		want   State
	}
	const nine, ten = "FFFFFFFFF", "FFFFFFFFFF"
	for _, tt := range []struct {
		name  string
		cfg   Config
		calls []calls
	}{
		{"half of twenty open it", ratio, []calls{{0, ten + "SSSSSSSSS", Closed}, {0, "F", Open}}},
		{"less than half do not", ratio, []calls{{0, "SSSSSSSSSSS" + nine, Closed}, {0, "F", Closed}, {0, "F", Open}}}, // 10 of 21, 11 of 22
		{"it takes a failure to open", ratio, []calls{{0, ten + "SSSSSSSSS", Closed}, {0, "S", Closed}, {0, "F", Open}}},
		{"nineteen are too few", ratio, []calls{{0, ten + nine, Closed}, {0, "F", Open}}},
		{"hang-ups do not count", ratio, []calls{{0, ten + nine + "NNNN", Closed}, {0, "F", Open}}},
		{"answers in good health count as successes", ratio, []calls{{0, "HHHHHHHHHHH" + nine, Closed}}},
		{"at 10 s the window still has them", ratio, []calls{{0, ten + nine, Closed}, {10 * s, "F", Open}}},
		{"and a step later no more", ratio, []calls{{0, ten + nine, Closed}, {10*s + 200*time.Millisecond, "F", Closed}}},
		{"it counts afresh once it has closed", Config{FailureRatio: 0.5, MinCalls: 20, Probes: 1}, []calls{
			{0, ten + ten, Open}, {11 * s, "S", Closed}, {11 * s, ten + nine, Closed}, {11 * s, "F", Open},
		}},
		{"probes are no part of the count", Config{FailureRatio: 1, MinCalls: 1, Probes: 3}, []calls{
			{0, "F", Open}, {11 * s, "SS", HalfOpen}, {12 * s, "S", Closed}, {12 * s, "F", Open},
		}},
		{"a ratio that is not exact in binary", Config{FailureRatio: 0.07, MinCalls: 100}, []calls{
			{0, many("S", 93) + "FFFFFF", Closed}, {0, "F", Open},
		}},
		{"a ratio of 1", Config{FailureRatio: 1, MinCalls: 2}, []calls{{0, "SFFFF", Closed}, {11 * s, "F", Closed}, {11 * s, "F", Open}}},

		{"what was cleared does not come back", Config{FailureRatio: 0.5, MinCalls: 20, Probes: 1, Cooldown: s}, []calls{
			{0, ten + ten, Open}, {s + 1, "S", Closed}, {s + 1, many("S", 19) + "F", Closed},
		}},
		{"failures and calls are forgotten together", ratio, []calls{
			{0, "S", Closed}, {190 * time.Millisecond, nine, Closed}, {10300 * time.Millisecond, many("S", 19) + "F", Closed},
		}},

		{"three in a row within the window", row, []calls{{0, "FF", Closed}, {10 * s, "F", Open}}},
		{"too far apart", row, []calls{{0, "FF", Closed}, {10*s + 200*time.Millisecond, "F", Closed}}},
		{"the window rolls", row, []calls{{0, "F", Closed}, {9 * s, "F", Closed}, {11 * s, "F", Closed}, {12 * s, "F", Open}}},
		{"in a row means without a success", row, []calls{{0, "FFSFFSFF", Closed}, {0, "F", Open}}},
		{"hang-ups do not break a row", row, []calls{{0, "FNFNF", Open}}},
		{"without a window a row may take for ever", Config{Failures: 2}, []calls{{0, "F", Closed}, {1000 * time.Hour, "F", Open}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.cfg.Cooldown = cmp.Or(tt.cfg.Cooldown, 10*s)
				tt.cfg.Healthy = func(err error) bool { return err == err404 }
				tt.cfg.Neutral = func(err error) bool { return err == errGone }
				b, err := New(tt.cfg)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				for i, c := range tt.calls {
					time.Sleep(time.Until(start.Add(c.at)))
					results(b, c.script)
					if got := b.Snapshot().State; got != c.want {
						t.Errorf("row %d at %v: %v after %s, want %v", i, c.at, got, c.script, c.want)
					}
				}
			})
		})
	}
}

func many(letter string, n int) (script string) {
	for range n {
		script += letter
	}
	return script
}

// Nobody calls, and yet what the window forgets leaves the picture.
func TestSnapshotOfARatioGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{FailureRatio: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		results(b, "FFSSS")
		want := Snapshot{State: Closed, Failures: 2, Calls: 5, MinCalls: 20, FailureRatio: 0.5}
		if got := b.Snapshot(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		time.Sleep(10 * time.Second)
		if got := b.Snapshot(); got != want {
			t.Errorf("at 10s %+v, want %+v", got, want)
		}
		time.Sleep(200 * time.Millisecond)
		want.Failures, want.Calls = 0, 0
		if got := b.Snapshot(); got != want {
			t.Errorf("later %+v, want %+v", got, want)
		}
	})
}

func TestFailuresAndCallsAreForgottenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{FailureRatio: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		for range 15 {
			results(b, "F")
			time.Sleep(70 * time.Millisecond)
		}
		for range 1200 {
			time.Sleep(10 * time.Millisecond)
			if got := b.Snapshot(); got.Failures != got.Calls {
				t.Fatalf("%+v, want as many failures as calls", got)
			}
		}
	})
}

func TestSnapshotCountsNothingUnlessClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{FailureRatio: 1, MinCalls: 1, Probes: 2})
		if err != nil {
			t.Fatal(err)
		}
		results(b, "F")
		if got := b.Snapshot(); got.State != Open || got.Failures != 0 || got.Calls != 0 {
			t.Errorf("open: %+v", got)
		}
		time.Sleep(31 * time.Second)
		results(b, "S")
		if got := b.Snapshot(); got.State != HalfOpen || got.Failures != 0 || got.Calls != 0 {
			t.Errorf("half-open: %+v", got)
		}
	})
}

// Looking, in whatever order, does not change what is decided.
func TestSnapshotOfARatioChangesNothing(t *testing.T) {
	for _, looks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, err := New(Config{FailureRatio: 0.5})
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				wait   time.Duration
				script string
			}{{time.Millisecond, "S"}, {190 * time.Millisecond, "FFFFFFFFF"}, {10110 * time.Millisecond, many("S", 19)}, {0, "F"}} {
				if looks {
					b.Snapshot()
				}
				time.Sleep(step.wait)
				if got := b.Snapshot(); looks && got.Failures > got.Calls {
					t.Errorf("%+v: more failures than calls", got)
				}
				results(b, step.script)
			}
			if got := b.Snapshot().State; got != Closed {
				t.Errorf("looking %v: %v, want closed", looks, got)
			}
		})
	}
}

func TestSomeProbesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{Probes: 3})
		results(b, "FF")
		time.Sleep(10*time.Second + 1)
		first, second := begin(b), begin(b)
		third := begin(b)
		if err := call(b, nil); !errors.Is(err, ErrOpen) {
			t.Errorf("a fourth beside three probes: %v, want a refusal", err)
		}
		first <- nil
		second <- errDown
		synctest.Wait()
		if got := b.Snapshot(); got.State != Open || got.RetryAfter != 10*time.Second {
			t.Errorf("%+v after one of three has failed, want open", got)
		}
		time.Sleep(5 * time.Second)
		third <- errDown // too late to count
		synctest.Wait()
		if got := b.Snapshot().RetryAfter; got != 5*time.Second {
			t.Errorf("%v left, want 5s", got)
		}
	})
}

func TestShortestCooldownWithJitterIsNotNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			b, err := New(Config{Failures: 1, Cooldown: 1, Jitter: 0.9, Probes: 1})
			if err != nil {
				t.Fatal(err)
			}
			call(b, errDown)
			time.Sleep(2 * time.Nanosecond)
			if err := call(b, nil); err != nil {
				t.Fatalf("%v after a cool-down of 1ns", err)
			}
		}
	})
}

func TestJitterIsDrawnOnceAndSpreadsTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		least, most := time.Duration(math.MaxInt64), time.Duration(0)
		for range 1000 {
			b, err := New(Config{Failures: 1, Cooldown: 5 * time.Second, Jitter: 0.1, Probes: 1})
			if err != nil {
				t.Fatal(err)
			}
			call(b, errDown)
			first := b.Snapshot().RetryAfter
			time.Sleep(first) // exactly its end
			if err := call(b, nil); !errors.Is(err, ErrOpen) {
				t.Fatal("closed before the end of the cool-down that it reports")
			}
			time.Sleep(time.Nanosecond)
			if err := call(b, errDown); err != errDown {
				t.Fatal("still open after the cool-down that it reports")
			}
			if again := b.Snapshot().RetryAfter; again != first {
				t.Fatalf("%v and then %v, want one draw", first, again)
			}
			least, most = min(least, first), max(most, first)
		}
		// 1000 draws reach within a twentieth of both ends, but for odds of 1e-22.
		if least < 4500*time.Millisecond || least > 4550*time.Millisecond || most < 5450*time.Millisecond || most > 5500*time.Millisecond {
			t.Errorf("%v to %v, want nearly all of 4.5s to 5.5s", least, most)
		}
	})
}

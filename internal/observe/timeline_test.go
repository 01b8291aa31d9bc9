package observe

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// since is what Since has, with times as those after the epoch.
func since(l *Timeline, from, now time.Duration) (got string) {
	for _, s := range l.Since(epoch.Add(from), epoch.Add(now)) {
		got += fmt.Sprint(s.At-epoch.Unix(), s.Counts, " ")
	}
	return got
}

func TestTimelineCountsByTheSecond(t *testing.T) {
	const s = time.Second
	var l Timeline
	check := func(from, now time.Duration, want string) {
		t.Helper()
		if got := since(&l, from, now); got != want {
			t.Errorf("from %v to %v: got %q, want %q", from, now, got, want)
		}
	}
	check(0, 0, "")
	l.Count(epoch, "served")
	l.Count(epoch.Add(s-1), "served") // the same second
	l.Count(epoch.Add(s-1), "failed")
	check(0, 0, "0 map[failed:1 served:2] ")
	l.Count(epoch.Add(s), "served") // the next
	l.Count(epoch.Add(5*s+s/2), "limiter")
	check(0, 5*s, "0 map[failed:1 served:2] 1 map[served:1] 5 map[limiter:1] ")
	// Those from the second of from to that of now, both included.
	check(s-1, s-1, "0 map[failed:1 served:2] ")
	check(s-1, 2*s-1, "0 map[failed:1 served:2] 1 map[served:1] ")
	check(s, 4*s, "1 map[served:1] ")
	check(2*s, 5*s-1, "")
	check(2*s, 5*s, "5 map[limiter:1] ")
	check(6*s, 5*s, "")
	if all := l.Since(time.Time{}, epoch.Add(5*s)); len(all) != 3 {
		t.Errorf("from the zero time: %v", all)
	}
}

func TestTimelineGoesBackTwoMinutes(t *testing.T) {
	const s = time.Second
	for _, at := range []time.Duration{0, s - 1} { // whenever in its second
		var l Timeline
		l.Count(epoch.Add(at), "old")
		for now, want := range map[time.Duration]string{
			119 * s:   "0 map[old:1] ",
			120*s - 1: "0 map[old:1] ",
			120 * s:   "",
			240 * s:   "", // which has its place in the ring
			time.Hour: "",
		} {
			if got := since(&l, 0, now); got != want {
				t.Errorf("counted at %v, after %v: got %q, want %q", at, now, got, want)
			}
		}
		l.Count(epoch.Add(119*s), "other")
		if got, want := since(&l, 0, 119*s), "0 map[old:1] 119 map[other:1] "; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		l.Count(epoch.Add(120*s), "new") // takes its place
		if got, want := since(&l, -time.Hour, 120*s), "119 map[other:1] 120 map[new:1] "; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhatATimelineHandedOutStays(t *testing.T) {
	var l Timeline
	l.Count(epoch, "served")
	got := l.Since(epoch, epoch)
	l.Count(epoch, "served")
	if got[0].Counts["served"] != 1 {
		t.Errorf("got %v, want the count of then", got)
	}
	got[0].Counts["served"] = 99
	if now := since(&l, 0, 0); now != "0 map[served:2] " {
		t.Errorf("%q: a reader changed it", now)
	}
}

func TestResetEmptiesATimeline(t *testing.T) {
	var l Timeline
	l.Count(epoch, "served")
	l.Reset()
	if got := l.Since(epoch, epoch); got == nil || len(got) != 0 { // nil would be null in JSON
		t.Errorf("%#v, want none", got)
	}
	l.Count(epoch, "served")
	if got := since(&l, 0, 0); got != "0 map[served:1] " {
		t.Errorf("%q, want one alone", got)
	}
}

func TestNoCountIsLost(t *testing.T) {
	var l Timeline
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				l.Count(epoch.Add(time.Duration(i%2)*time.Second), "served")
				l.Since(epoch, epoch)
			}
		})
	}
	all.Wait()
	if got, want := since(&l, 0, time.Second), "0 map[served:4000] 1 map[served:4000] "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

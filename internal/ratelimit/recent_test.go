package ratelimit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// recentOf is Recent in one line.
func recentOf(l *Limiter, at time.Duration) string {
	var got []string
	for _, b := range l.Recent(epoch.Add(at)) {
		got = append(got, fmt.Sprintf("%s:%.2f", b.Key, b.Tokens))
	}
	return strings.Join(got, " ")
}

func TestRecentHasTheLastEightKeysTheLatestFirst(t *testing.T) {
	l := limiter(t, Config{})
	if got := l.Recent(epoch); got == nil || len(got) != 0 {
		t.Errorf("at the start: %#v, want none", got)
	}
	for _, tt := range []struct{ key, want string }{
		{"a", "a:2.00"},
		{"a", "a:1.00"},
		{"b", "b:2.00 a:1.00"},
		{"c", "c:2.00 b:2.00 a:1.00"},
		{"a", "a:0.00 c:2.00 b:2.00"},
		{"a", "a:0.00 c:2.00 b:2.00"}, // refused: it was used all the same
		{"b", "b:1.00 a:0.00 c:2.00"},
		{"d", "d:2.00 b:1.00 a:0.00 c:2.00"},
		{"e", "e:2.00 d:2.00 b:1.00 a:0.00 c:2.00"},
		{"f", "f:2.00 e:2.00 d:2.00 b:1.00 a:0.00 c:2.00"},
		{"g", "g:2.00 f:2.00 e:2.00 d:2.00 b:1.00 a:0.00 c:2.00"},
		{"h", "h:2.00 g:2.00 f:2.00 e:2.00 d:2.00 b:1.00 a:0.00 c:2.00"},   // eight
		{"c", "c:1.00 h:2.00 g:2.00 f:2.00 e:2.00 d:2.00 b:1.00 a:0.00"},   // the last comes first
		{"i", "i:2.00 c:1.00 h:2.00 g:2.00 f:2.00 e:2.00 d:2.00 b:1.00"},   // the ninth: a goes
		{"a", "a:0.00 i:2.00 c:1.00 h:2.00 g:2.00 f:2.00 e:2.00 d:2.00"},   // and is back
		{"f", "f:1.00 a:0.00 i:2.00 c:1.00 h:2.00 g:2.00 e:2.00 d:2.00"},   // from the middle
		{"zz", "zz:2.00 f:1.00 a:0.00 i:2.00 c:1.00 h:2.00 g:2.00 e:2.00"}, // d goes
	} {
		l.Allow(epoch, tt.key)
		if got := recentOf(l, 0); got != tt.want {
			t.Errorf("after %s: got %q, want %q", tt.key, got, tt.want)
		}
	}
}

func TestRecentOfTheEmptyKey(t *testing.T) {
	l := limiter(t, Config{})
	l.Allow(epoch, "")
	l.Allow(epoch, "a")
	if got, want := recentOf(l, 0), "a:2.00 :2.00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Tokens flow in with time; a bucket that was dropped, as it was full, is not told.
func TestRecentFollowsTime(t *testing.T) {
	const full = 3*time.Second + time.Millisecond
	l := limiter(t, Config{})
	for _, key := range []string{"a", "b", "b", "b", "b"} {
		l.Allow(epoch, key)
	}
	for _, tt := range []struct {
		at   time.Duration
		want string
	}{
		{-time.Hour, "b:0.00 a:2.00"}, // a clock that steps back
		{0, "b:0.00 a:2.00"},
		{500 * time.Millisecond, "b:0.50 a:2.50"},
		{1 * time.Second, "b:1.00 a:3.00"},
		{full, "b:3.00 a:3.00"}, // kept for one more period
		{2*full - 1, "b:3.00 a:3.00"},
		{2 * full, ""},
		{0, "b:0.00 a:2.00"}, // to look changed nothing
	} {
		if got := recentOf(l, tt.at); got != tt.want {
			t.Errorf("at %v: got %q, want %q", tt.at, got, tt.want)
		}
	}
	l.Allow(epoch.Add(full), "c")
	l.Allow(epoch.Add(full), "b")
	if got, want := recentOf(l, full), "b:2.00 c:2.00 a:3.00"; got != want {
		t.Errorf("a in the generation before: got %q, want %q", got, want)
	}
	l.Allow(epoch.Add(2*full), "c")
	if got, want := recentOf(l, 2*full), "c:2.00 b:3.00"; got != want {
		t.Errorf("a dropped: got %q, want %q", got, want)
	}
	l.Allow(epoch.Add(2*full), "a") // in a new one
	if got, want := recentOf(l, 2*full), "a:2.00 c:2.00 b:3.00"; got != want {
		t.Errorf("a is back: got %q, want %q", got, want)
	}
}

func TestTokensAreNeverFewerThanNone(t *testing.T) {
	for _, rate := range []float64{0.07, 0.3, 1.0 / 3, 0.7, 1.1, 7.7} {
		l := limiter(t, Config{Burst: 1, Rate: rate})
		now := epoch
		for range 1000 {
			for range 2 {
				d := l.Allow(now, "k")
				if got := l.Recent(now); len(got) != 1 || got[0].Tokens < 0 || got[0].Tokens > 1 {
					t.Fatalf("rate %v, %v: %+v", rate, d, got)
				}
			}
			now = now.Add(time.Duration(float64(time.Second) / rate)) // x/time/rate forgives what is rounded off
		}
	}
}

// Keys without a bucket of their own are not told: nobody has bounded them.
func TestKeysThatShareTheOverflowAreNotRecent(t *testing.T) {
	l := limiter(t, Config{MaxKeys: 2})
	for _, key := range []string{"a", "b", "c", "d", "a"} {
		l.Allow(epoch, key)
	}
	if got, want := recentOf(l, 0), "a:1.00 b:2.00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResetForgetsTheRecentKeys(t *testing.T) {
	l := limiter(t, Config{})
	l.Allow(epoch, "a")
	l.Allow(epoch, "b")
	l.Reset()
	if got := recentOf(l, 0); got != "" {
		t.Errorf("after the reset: %q", got)
	}
	l.Allow(epoch, "b")
	l.Allow(epoch, "c")
	if got, want := recentOf(l, 0), "c:2.00 b:2.00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The same requests with somebody looking all the while, far into the future too.
func TestLookingAtRecentChangesNothing(t *testing.T) {
	looked, alone := limiter(t, Config{MaxKeys: 5}), limiter(t, Config{MaxKeys: 5})
	for i := range 5000 {
		now := epoch.Add(time.Duration(i) * 171 * time.Millisecond)
		key := fmt.Sprint(i * i % 11)
		looked.Recent(now)
		looked.Recent(now.Add(time.Hour))
		if got, want := looked.Allow(now, key), alone.Allow(now, key); got != want {
			t.Fatalf("request %d: %+v, want %+v", i, got, want)
		}
		looked.Recent(now.Add(-time.Hour))
	}
	if got, want := looked.Snapshot(epoch), alone.Snapshot(epoch); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestRecentWhileOthersAreAllowed(t *testing.T) {
	l := limiter(t, Config{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 500 {
				l.Allow(epoch.Add(time.Duration(n)*time.Second), fmt.Sprint(i, n%5))
				if got := l.Recent(epoch.Add(time.Duration(n) * time.Second)); len(got) > 8 {
					t.Errorf("%d buckets", len(got))
				}
			}
		})
	}
	all.Wait()
}

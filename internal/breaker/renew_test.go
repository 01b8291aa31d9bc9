package breaker

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestRenewedIsClosedAndTheOldOneHasNoSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		b := breaker(t, Config{OnTransition: func(tr Transition) { told = append(told, fmt.Sprintf("%s>%s", tr.From, tr.To)) }})
		call(b, errDown)
		call(b, errDown)
		call(b, nil)
		next := b.Renew()
		if got, want := next.Snapshot(), (Snapshot{State: Closed, OpensAfter: 2}); got != want {
			t.Errorf("renewed: %+v, want %+v", got, want)
		}
		again := b.Renew() // two at the same time tell once
		call(again, nil)
		// Calls that the old one let through go on.
		time.Sleep(10*time.Second + time.Nanosecond)
		call(b, errDown)
		if got := next.Snapshot(); got.State != Closed || got.Failures != 0 {
			t.Errorf("after a failure of the old one: %+v", got)
		}
		call(next, errDown)
		call(next, errDown)
		if want := []string{"closed>open", "open>closed", "closed>open"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestRenewedTellsNothingIfItWasClosed(t *testing.T) {
	b := breaker(t, Config{OnTransition: func(tr Transition) { t.Errorf("told %v", tr) }})
	call(b, errDown)
	if got := b.Renew().Snapshot().Failures; got != 0 {
		t.Errorf("%d failures, want none", got)
	}
	call(b, errDown) // opens the old one, which nobody asks any more
}

// Jitter is drawn once.
func TestRenewedHasTheSameCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{Failures: 1, Jitter: 0.9})
		call(b, errDown)
		want := b.Snapshot().RetryAfter
		next := b.Renew().Renew()
		call(next, errDown)
		if got := next.Snapshot().RetryAfter; got != want {
			t.Errorf("open for %v, want %v", got, want)
		}
	})
}

func TestNilLetsEveryCallPass(t *testing.T) {
	var none *Breaker
	for range 10 {
		if err := call(none, errDown); err != errDown {
			t.Errorf("%v, want %v", err, errDown)
		}
	}
	none.Do(func(opened func() bool) error {
		if opened() {
			t.Error("opened")
		}
		return nil
	})
}

func TestSnapshotsAsJSON(t *testing.T) {
	for _, tt := range []struct {
		s    Snapshot
		want string
	}{
		{Snapshot{State: Closed, Failures: 2, OpensAfter: 3},
			`{"state":"closed","probe_due":false,"consecutive_failures":2,"opens_after":3,"retry_after_ms":0,"transitions":0,"rejected":0}`},
		{Snapshot{State: Open, ProbeDue: true, OpensAfter: 3, Transitions: 1, Rejected: 7},
			`{"state":"open","probe_due":true,"consecutive_failures":0,"opens_after":3,"retry_after_ms":0,"transitions":1,"rejected":7}`},
		{Snapshot{State: Open, OpensAfter: 3, RetryAfter: time.Second + 1},
			`{"state":"open","probe_due":false,"consecutive_failures":0,"opens_after":3,"retry_after_ms":1001,"transitions":0,"rejected":0}`},
		{Snapshot{State: HalfOpen, MinCalls: 20, FailureRatio: 0.5, Calls: 4, Failures: 1},
			`{"state":"half_open","probe_due":false,"failures":1,"calls":4,"min_calls":20,"failure_ratio":0.5,"retry_after_ms":0,"transitions":0,"rejected":0}`},
	} {
		got, err := json.Marshal(tt.s)
		if err != nil || string(got) != tt.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
		}
	}
}

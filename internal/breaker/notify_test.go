package breaker

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnTransitionIsCalledInOrderWithNoLockHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *Breaker
		var told []string
		start := time.Now()
		b = breaker(t, Config{OnTransition: func(tr Transition) {
			told = append(told, fmt.Sprintf("%v %s>%s", tr.At.Sub(start), tr.From, tr.To))
			b.Snapshot()
			call(b, nil) // a call from the callback must not hang either
		}})
		call(b, errDown)
		call(b, errDown)
		time.Sleep(10*time.Second + 1)
		b.Do(func(func() bool) error {
			if len(told) != 2 {
				t.Errorf("the probe runs before OnTransition: %q", told)
			}
			return nil
		})
		want := []string{"0s closed>open", "10.000000001s open>half_open", "10.000000001s half_open>closed"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestOnTransitionIsCalledOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan State, 3)
		b := breaker(t, Config{OnTransition: func(tr Transition) {
			if tr.To == Open {
				time.Sleep(time.Minute) // others change the state meanwhile
			}
			told <- tr.To
		}})
		call(b, errDown)
		go call(b, errDown)
		time.Sleep(10*time.Second + time.Nanosecond)
		if err := call(b, nil); err != nil || len(told) != 0 {
			t.Errorf("a call beside a slow callback: %v, %d told", err, len(told))
		}
		for _, want := range []State{Open, HalfOpen, Closed} {
			if got := <-told; got != want {
				t.Errorf("told %v, want %v", got, want)
			}
		}
	})
}

func TestTransitionsGoOnAfterACallbackPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		b := breaker(t, Config{OnTransition: func(Transition) {
			if told++; told == 1 {
				panic("boom")
			}
		}})
		call(b, errDown)
		func() {
			defer func() { _ = recover() }()
			call(b, errDown)
		}()
		time.Sleep(10*time.Second + 1)
		if err := call(b, nil); err != nil || told != 3 {
			t.Errorf("%v, %d told, want all 3", err, told)
		}
	})
}

package peers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/inturn"
)

// breakers returns a call through each breaker, all of which open on three failures in a row
// for an hour.
func breakers(b *testing.B) map[string]func(fn func() error) error {
	ours, err := breaker.New(breaker.Config{Failures: 3, Cooldown: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	bare := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     time.Hour,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 3 },
	})
	peer := failsafe.With[any](circuitbreaker.NewBuilder[any]().WithFailureThreshold(3).WithDelay(time.Hour).Build())
	byHand := &atomicBreaker{failures: 3, cooldown: time.Hour}
	return map[string]func(fn func() error) error{
		"ours": func(fn func() error) error { return ours.Do(func(func() bool) error { return fn() }) },
		"gobreaker": func(fn func() error) error {
			_, err := bare.Execute(func() (struct{}, error) { return struct{}{}, fn() })
			return err
		},
		"failsafe": peer.Run,
		"atomic":   byHand.do,
	}
}

var breakerNames = []string{"ours", "gobreaker", "failsafe", "atomic"}

// BenchmarkBreakerClosed is a call that succeeds, by one goroutine and by two at once.
func BenchmarkBreakerClosed(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprint(n, "-at-once"), func(b *testing.B) {
			call := breakers(b)
			var ways []inturn.Way
			for _, name := range breakerNames {
				ways = append(ways, inturn.Way{Name: name, Call: func() error { return call[name](succeed) }})
			}
			inturn.Time(b, n, ways...)
		})
	}
}

// BenchmarkBreakerOpen is a call that is refused.
func BenchmarkBreakerOpen(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprint(n, "-at-once"), func(b *testing.B) {
			call := breakers(b)
			refusals := map[string]error{"ours": breaker.ErrOpen, "gobreaker": gobreaker.ErrOpenState, "failsafe": circuitbreaker.ErrOpen, "atomic": errOpen}
			var ways []inturn.Way
			for _, name := range breakerNames {
				for range 3 {
					call[name](fail)
				}
				if err := call[name](succeed); !errors.Is(err, refusals[name]) {
					b.Fatalf("%s: %v, want a refusal", name, err)
				}
				ways = append(ways, inturn.Way{Name: name, Call: func() error {
					if call[name](succeed) == nil {
						return errors.New("not refused")
					}
					return nil
				}})
			}
			inturn.Time(b, n, ways...)
		})
	}
}

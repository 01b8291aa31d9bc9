package exercises

import (
	"errors"
	"fmt"
	"time"

	"example.com/storefront/internal/breaker"
)

func checkBreaker(config func() breaker.Config) error {
	for _, tt := range []struct {
		name  string
		calls int
		fails func(call int) bool
		opens bool
	}{
		{"every second of 100 calls fails", 100, func(call int) bool { return call%2 == 1 }, true},
		{"all of 100 calls fail", 100, func(int) bool { return true }, true},
		{"every tenth of 100 calls fails", 100, func(call int) bool { return call%10 == 9 }, false},
		{"the first three calls fail", 3, func(int) bool { return true }, false},
	} {
		b, err := breaker.New(config())
		if err != nil {
			return err
		}
		reached := 0
		for call := range tt.calls {
			_ = b.Do(func(func() bool) error { // the state is what counts here
				reached++
				if tt.fails(call) {
					return errors.New("503 Service Unavailable")
				}
				return nil
			})
			time.Sleep(100 * time.Millisecond)
		}
		if opened := b.Snapshot().Transitions > 0; opened != tt.opens {
			return fmt.Errorf("%s: %d reach the catalogue, and the breaker has opened: %v, want %v", tt.name, reached, opened, tt.opens)
		}
		if tt.opens && reached > 50 {
			return fmt.Errorf("%s: the breaker opens, and %d of them reach the catalogue all the same, want at most 50", tt.name, reached)
		}
	}
	return nil
}

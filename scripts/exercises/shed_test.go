package exercises

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/storefront/internal/shed"
)

func checkShed(config func() shed.Config) error {
	const (
		work     = 100 * time.Millisecond
		patience = time.Second
	)
	s, err := shed.New(config())
	if err != nil {
		return err
	}
	if permits := s.Snapshot().Permits; permits != 2 {
		return fmt.Errorf("%d at once, and there are two workers", permits)
	}
	var inTime, late atomic.Int64
	var callers sync.WaitGroup
	for n := range 500 {
		callers.Go(func() {
			start := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_ = s.Do(ctx, shed.DefaultUrgency, func() error { // who is not served is not counted
				time.Sleep(work)
				if time.Since(start) <= patience {
					inTime.Add(1)
				} else {
					late.Add(1)
				}
				return nil
			})
		})
		// Not quite 50 a second, so that no two things happen at the same instant.
		time.Sleep(20*time.Millisecond + time.Duration(n%7)*time.Microsecond)
	}
	callers.Wait()
	if inTime.Load() < 180 {
		return fmt.Errorf("of 500 reports %d are made in time, want 180 or more; %d are made for people who have left", inTime.Load(), late.Load())
	}
	return nil
}

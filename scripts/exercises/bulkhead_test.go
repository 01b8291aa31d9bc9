package exercises

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"

	"example.com/storefront/internal/bulkhead"
)

func checkPools(pools func() (checkouts, reports *bulkhead.Bulkhead, err error)) error {
	checkouts, reports, err := pools()
	if err != nil {
		return err
	}
	var (
		ctx     = context.Background()
		release = make(chan struct{})
		open    = make(chan struct{}, 100)
		done    sync.WaitGroup
	)
	defer done.Wait()
	defer close(release)
	hold := func(pool *bulkhead.Bulkhead, ended chan<- error) {
		done.Go(func() {
			ended <- pool.Do(ctx, func() error {
				open <- struct{}{}
				<-release
				return nil
			})
		})
	}
	ended := make(chan error, 200)
	for range 30 {
		hold(reports, ended)
	}
	synctest.Wait()
	refused := len(ended)
	if refused == 30 {
		return fmt.Errorf("30 reports come, and none finds a permit")
	}
	busy := len(open)
	for n := range 10 {
		hold(checkouts, ended)
		synctest.Wait()
		if len(ended) > refused {
			for range refused {
				<-ended
			}
			return fmt.Errorf("%d reports hang: checkout %d gets %q", busy, n+1, <-ended)
		}
		if len(open) != busy+n+1 {
			return fmt.Errorf("%d reports hang: checkout %d waits for a permit", busy, n+1)
		}
	}
	for range 50 {
		hold(checkouts, ended)
	}
	synctest.Wait()
	if len(open) > Connections {
		return fmt.Errorf("reports and checkouts together open %d connections, want at most %d", len(open), Connections)
	}
	return nil
}

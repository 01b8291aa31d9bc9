package exercises

import (
	"errors"

	"example.com/storefront/internal/bulkhead"
)

// PoolsAnswer has a pool for each workload, and both together are what the database
// takes.
func PoolsAnswer() (checkouts, reports *bulkhead.Bulkhead, err error) {
	checkouts, err1 := bulkhead.New(bulkhead.Config{Permits: 15})
	reports, err2 := bulkhead.New(bulkhead.Config{Permits: Connections - 15})
	return checkouts, reports, errors.Join(err1, err2)
}

package exercises

import "example.com/storefront/internal/bulkhead"

// Connections is how many the database takes.
const Connections = 20

// Pools are for two workloads on one database, which takes Connections at once and
// not one more. Ten checkouts at once must always find a permit.
//
// As it stands there is one pool for both, and reports can take all of it.
func Pools() (checkouts, reports *bulkhead.Bulkhead, err error) {
	pool, err := bulkhead.New(bulkhead.Config{Permits: Connections})
	return pool, pool, err
}

package exercises

import (
	"context"
	"time"
)

// PageTime is how long a page may take.
const PageTime = time.Second

// Service is one of those that a page asks. Of a hundred answers, 99 take at most
// 120 ms, and the last takes 150 ms; then again it may hang, until ctx ends.
type Service func(ctx context.Context) (string, error)

// Page asks the services in turn, and returns what each said, "" where it said
// nothing in time. Whatever hangs, the page takes no more than PageTime and ends at
// once when its visitor leaves, which ends ctx. With two of three services hanging,
// it still shows what the third said. There may be more of them than three.
//
// As it stands it does not.
func Page(ctx context.Context, services []Service) []string {
	said := make([]string, len(services))
	for i, ask := range services {
		attempt, cancel := context.WithTimeout(context.Background(), 800*time.Millisecond)
		said[i], _ = ask(attempt)
		cancel()
	}
	return said
}

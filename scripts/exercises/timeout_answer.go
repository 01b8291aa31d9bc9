package exercises

import (
	"context"
	"time"
)

// PageAnswer is Page put right: the outer time is the page's, and comes from the
// visitor's context; the inner one is well above 120 ms, and three of it fit into
// the outer.
func PageAnswer(ctx context.Context, services []Service) []string {
	ctx, cancel := context.WithTimeout(ctx, PageTime)
	defer cancel()
	said := make([]string, len(services))
	for i, ask := range services {
		attempt, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		said[i], _ = ask(attempt)
		cancel()
	}
	return said
}

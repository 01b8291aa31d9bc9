package exercises

import (
	"context"
	"fmt"
	"slices"
	"time"
)

func answersAfter(latency time.Duration) Service {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(latency):
			return "yes", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

var (
	answers = answersAfter(120 * time.Millisecond)
	late    = answersAfter(150 * time.Millisecond)
	hangs   = answersAfter(time.Hour)
)

func checkPage(page func(context.Context, []Service) []string) error {
	for _, tt := range []struct {
		name     string
		services []Service
		want     []string
	}{
		{"all answer", []Service{answers, answers, answers}, []string{"yes", "yes", "yes"}},
		{"the first hangs", []Service{hangs, answers, answers}, []string{"", "yes", "yes"}},
		{"the first two hang", []Service{hangs, hangs, answers}, []string{"", "", "yes"}},
		{"one takes 150ms", []Service{answers, late, answers}, []string{"yes", "yes", "yes"}},
		{"of five all hang", []Service{hangs, hangs, hangs, hangs, hangs}, make([]string, 5)},
		{"all hang", []Service{hangs, hangs, hangs}, []string{"", "", ""}},
	} {
		start := time.Now()
		got := page(context.Background(), tt.services)
		if took := time.Since(start); took > PageTime {
			return fmt.Errorf("%s: the page took %v, want at most %v", tt.name, took, PageTime)
		}
		if !slices.Equal(got, tt.want) {
			return fmt.Errorf("%s: the page shows %q, want %q", tt.name, got, tt.want)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	page(ctx, []Service{hangs, hangs, hangs})
	if took := time.Since(start); took > 50*time.Millisecond {
		return fmt.Errorf("the visitor left after 50ms, and the page went on until %v", took)
	}
	return nil
}

package dependency

import (
	"math"
	"testing"
	"time"
)

var now = time.Date(1994, 11, 6, 8, 49, 30, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	const s = time.Second
	for value, want := range map[string]time.Duration{
		"0":                              0,
		"7":                              7 * s,
		"007":                            7 * s,
		"3600":                           3600 * s,
		"9223372036":                     9223372036 * s,
		"Sun, 06 Nov 1994 08:49:37 GMT":  7 * s, // RFC 5322
		"Sunday, 06-Nov-94 08:49:37 GMT": 7 * s, // RFC 850
		"Sun Nov  6 08:49:37 1994":       7 * s, // asctime
		"Sun, 06 Nov 1994 08:49:30 GMT":  0,
		"Sun, 06 Nov 1994 08:49:29 GMT":  0, // passed
		"Sun, 06 Nov 2290 08:49:37 GMT":  0, // overflows a Duration
		"":                               0,
		" ":                              0,
		"9223372037":                     0, // overflows a Duration
		"18446744073709551616":           0,
		"-3":                             0,
		"+3":                             0,
		"1.5":                            0,
		"1e3":                            0,
		"0x10":                           0,
		"1_000":                          0,
		"3 ":                             0,
		"3s":                             0,
		"soon":                           0,
		"Sun, 06 Nov 1994 08:49:37 CET":  0,
		"1994-11-06T08:49:37Z":           0,
	} {
		if got := parseRetryAfter(value, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", value, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"7", "-3", "9223372037", "Sun, 06 Nov 1994 08:49:37 GMT", "1.5", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := parseRetryAfter(value, now)
		if got < 0 || got > math.MaxInt64/time.Second*time.Second {
			t.Errorf("Retry-After %q: %v", value, got)
		}
	})
}

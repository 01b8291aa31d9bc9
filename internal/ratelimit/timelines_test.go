package ratelimit

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"example.com/storefront/internal/redistest"
)

const ms, s = time.Millisecond, time.Second

// row is a request at a time since the epoch.
type row struct {
	at   time.Duration
	key  string
	ok   bool
	left int
	next int // s
}

// timelines have the same answers in memory and in Redis.
var timelines = []struct {
	name string
	cfg  Config
	rows []row
}{
	{"a burst of 3, then none; another key has its own; one more after 1 s", Config{}, []row{
		{0, "k1", true, 2, 1},
		{0, "k1", true, 1, 1},
		{0, "k1", true, 0, 1},
		{0, "k1", false, 0, 1},
		{0, "k2", true, 2, 1},
		{999 * ms, "k1", false, 0, 1},
		{1*s - 2, "k1", false, 0, 1},
		{1 * s, "k1", true, 0, 1}, // the refusals took nothing
		{1 * s, "k1", false, 0, 1},
		{4 * s, "k1", true, 2, 1}, // full again
	}},
	{"the time to the next token falls", Config{Burst: 1, Rate: 0.1}, []row{
		{0, "k", true, 0, 10},
		{0, "k", false, 0, 10},
		{1 * ms, "k", false, 0, 10}, // rounded up
		{3 * s, "k", false, 0, 7},
		{9999 * ms, "k", false, 0, 1},
		{10 * s, "k", true, 0, 10},
	}},
	{"a fast rate still says a whole second", Config{Burst: 2, Rate: 1000}, []row{
		{0, "k", true, 1, 1},
		{0, "k", true, 0, 1},
		{0, "k", false, 0, 1},
		{1 * ms, "k", true, 0, 1},
	}},
	{"a tenth of a token ten times is one", Config{Burst: 1, Rate: 10}, []row{
		{0, "k", true, 0, 1},
		{10 * ms, "k", false, 0, 1},
		{20 * ms, "k", false, 0, 1},
		{30 * ms, "k", false, 0, 1},
		{40 * ms, "k", false, 0, 1},
		{50 * ms, "k", false, 0, 1},
		{60 * ms, "k", false, 0, 1},
		{70 * ms, "k", false, 0, 1},
		{80 * ms, "k", false, 0, 1},
		{90 * ms, "k", false, 0, 1},
		{100 * ms, "k", true, 0, 1},
	}},
	{"a clock that steps back mints nothing", Config{Burst: 2, Rate: 1}, []row{
		{2 * time.Hour, "k", true, 1, 1},
		{1 * time.Hour, "k", true, 0, 1},
		{2 * time.Hour, "k", false, 0, 1},
		{2 * time.Hour, "k", false, 0, 1},
		{2*time.Hour + s, "k", true, 0, 1},
	}},
	{"the slowest rates do not overflow", Config{Burst: 1, Rate: math.SmallestNonzeroFloat64}, []row{
		{0, "k", true, 0, math.MaxInt32},
		{1000 * time.Hour, "k", false, 0, math.MaxInt32},
	}},
}

func TestTimelines(t *testing.T) {
	for _, tt := range timelines {
		t.Run(tt.name, func(t *testing.T) {
			l := limiter(t, tt.cfg)
			for i, r := range tt.rows {
				r.check(t, i, l.Allow(epoch.Add(r.at), r.key))
			}
		})
	}
}

func TestTimelinesInRedis(t *testing.T) {
	server := redistest.Start(t)
	r := openRedis(t, server.URL())
	r.script = redis.NewScript(1, withClock(t, takeSource))
	for _, tt := range timelines {
		t.Run(tt.name, func(t *testing.T) {
			l, err := NewShared(r, tt.name, tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range tt.rows {
				now := epoch.Add(row.at)
				server.Do("HSET", "clock", "s", now.Unix(), "us", now.Nanosecond()/1000)
				row.check(t, i, l.Allow(context.Background(), row.key))
			}
		})
	}
}

// withClock is the script with a clock that the test sets, by which buckets expire no more.
func withClock(t *testing.T, source string) string {
	t.Helper()
	for real, fake := range map[string]string{
		"redis.call('TIME')":              "redis.call('HMGET', 'clock', 's', 'us')",
		"redis.call('PEXPIRE', KEYS[1], ": "redis.call('HSET', KEYS[1], 'expires', ",
	} {
		if strings.Count(source, real) != 1 {
			t.Fatalf("the script has not one %s", real)
		}
		source = strings.Replace(source, real, fake, 1)
	}
	return source
}

func (r row) check(t *testing.T, i int, got Decision) {
	t.Helper()
	want := Decision{Allowed: r.ok, Left: r.left, Next: time.Duration(r.next) * s}
	if got != want {
		t.Errorf("row %d at %v: %+v, want %+v", i, r.at, got, want)
	}
}

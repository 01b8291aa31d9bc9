package ratelimit

import (
	"context"
	"io"
	"net"
	"testing"
)

func TestBadURLs(t *testing.T) {
	for _, tt := range []struct {
		url string
		ok  bool
	}{
		{"redis://127.0.0.1:6379/0", true},
		{"redis://127.0.0.1", true},
		{"redis://localhost:6379/", true},
		{"redis://[::1]:6379/15", true},
		{"rediss://user:pass@redis.example:6380/1", true},
		{"redis://:pass@redis.example", true},
		{"", false},
		{"127.0.0.1:6379", false},
		{"localhost:6379", false},
		{"redis:127.0.0.1", false},
		{"redis://", false},
		{"redis://:6379", false},
		{"redis:///0", false},
		{"http://127.0.0.1:6379", false},
		{"redis://[::1]", true},
		{"redis://127.0.0.1:", true},
		{"redis://127.0.0.1:0", false},
		{"redis://127.0.0.1:65536", false},
		{"redis://127.0.0.1:x", false},
		{"redis://127.0.0.1:6379/x", false},
		{"redis://127.0.0.1:6379/-1", false},
		{"redis://127.0.0.1:6379/0/1", false},
		{"redis://127.0.0.1:6379/0?db=1", false},
		{"redis://127.0.0.1:6379/0#1", false},
		{"redis://127.0.0.1 :6379", false},
		{"redis://%zz@127.0.0.1", false},
	} {
		if err := CheckURL(tt.url); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.url, err)
		}
	}
	for _, url := range []string{"redis://user:sec@ret@127.0.0.1:x", "redis://127.0.0.1?password=secret", "redis://:secret"} {
		_, err := OpenRedis(RedisConfig{URL: url})
		if want := `ratelimit: URL: must be like redis://127.0.0.1:6379/0`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := OpenRedis(RedisConfig{URL: actedURL, Timeout: -1})
	if want := `ratelimit: Timeout is -1ns, must not be negative`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestWithoutAPort(t *testing.T) {
	for url, want := range map[string]string{
		"redis://127.0.0.1": "127.0.0.1:6379", "redis://127.0.0.1:/1": "127.0.0.1:6379",
		"redis://[::1]": "[::1]:6379", "redis://me:secret@[::1]:1/0": "[::1]:1",
	} {
		var dialed string
		r, err := OpenRedis(RedisConfig{URL: url, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			return nil, io.EOF
		}})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		if dialed != want {
			t.Errorf("%s: dialed %s, want %s", url, dialed, want)
		}
	}
}

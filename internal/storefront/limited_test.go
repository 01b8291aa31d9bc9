package storefront

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLimitedTimeline(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for _, row := range []struct {
			at                        time.Duration
			key, want, left, retryFor string
		}{
			{0, "k1", "200 ok", "2", ""},
			{0, "k1", "200 ok", "1", ""},
			{0, "k1", "200 ok", "0", ""},
			{0, "k1", "429 rate limit exceeded", "0", "1"},
			{0, "k2", "200 ok", "2", ""},
			{0, "", "200 ok", "2", ""},
			{time.Second - 2, "k1", "429 rate limit exceeded", "0", "1"},
			{time.Second, "k1", "200 ok", "0", ""}, // as Retry-After said
			{time.Second, "k1", "429 rate limit exceeded", "0", "1"},
		} {
			time.Sleep(time.Until(w.start.Add(row.at)))
			var header []string
			if row.key != "" {
				header = []string{"X-API-Key: " + row.key}
			}
			got := w.get("/limited", header...)
			w.want(got, row.want)
			for name, want := range map[string]string{
				"RateLimit-Policy": `"default";q=3;w=3`,
				"RateLimit":        fmt.Sprintf(`"default";r=%s;t=1`, row.left),
				"Retry-After":      row.retryFor,
				"Cache-Control":    "no-store",
			} {
				if got := got.header.Get(name); got != want {
					w.Errorf("at %v, key %q: %s %q, want %q", row.at, row.key, name, got, want)
				}
			}
		}
	})
}

func TestRetryAfterOfLimitedFallsWithTime(t *testing.T) {
	inBubble(t, Config{LimitBurst: 1, LimitRate: 0.1}, func(w *world) {
		w.want(w.get("/limited"), "200 ok")
		for _, row := range []struct {
			at   time.Duration
			want string
		}{
			{0, "10"}, {time.Millisecond, "10"}, {time.Second, "9"}, {8500 * time.Millisecond, "2"}, {9999 * time.Millisecond, "1"},
		} {
			time.Sleep(time.Until(w.start.Add(row.at)))
			got := w.get("/limited")
			w.want(got, "429 rate limit exceeded")
			if got := got.header.Get("Retry-After"); got != row.want {
				w.Errorf("at %v: Retry-After %q, want %q", row.at, got, row.want)
			}
		}
		time.Sleep(time.Until(w.start.Add(10 * time.Second)))
		w.want(w.get("/limited"), "200 ok")
	})
}

func TestNothingButTheKeyChoosesTheBucket(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		served := 0
		for i := range 100 {
			ip := fmt.Sprint("10.0.0.", i)
			got := w.get("/limited?i="+ip, "X-API-Key: k1", "X-Forwarded-For: "+ip, "X-Real-Ip: "+ip,
				"Forwarded: for="+ip, "User-Agent: "+ip, "Cookie: id="+ip)
			if got.status == 200 {
				served++
			}
		}
		if served != 3 {
			w.Errorf("%d of 100 served, want 3", served)
		}
	})
}

func TestParallelRequestsShareOneBurst(t *testing.T) {
	inBubble(t, Config{LimitBurst: 10}, func(w *world) {
		var mu sync.Mutex
		got := map[int]int{}
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				a := w.get("/limited", "X-API-Key: k1")
				mu.Lock()
				defer mu.Unlock()
				got[a.status]++
			})
		}
		all.Wait()
		if got[200] != 10 || got[429] != 490 {
			w.Errorf("%v, want 10 served and 490 refused", got)
		}
	})
}

func TestBadKeysGet400AndStoreNothing(t *testing.T) {
	const visible, once = "400 X-API-Key: must be 1 to 128 visible ASCII characters", "400 X-API-Key: sent more than once"
	for _, tt := range []struct {
		name string
		keys []string
		want string
	}{
		{"none", nil, "200 ok"},
		{"shortest", []string{"k"}, "200 ok"},
		{"longest", []string{strings.Repeat("k", 128)}, "200 ok"},
		{"first and last visible", []string{"!~"}, "200 ok"},
		{"empty", []string{""}, visible},
		{"too long", []string{strings.Repeat("k", 129)}, visible},
		{"a space", []string{"a b"}, visible},
		{"a tab", []string{"a\tb"}, visible},
		{"not ASCII", []string{"kä"}, visible},
		{"two", []string{"a", "b"}, once},
		{"the same twice", []string{"a", "a"}, once},
		{"larger than a header may be", []string{strings.Repeat("k", 900_000)}, "431 431 Request Header Fields Too Large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(w *world) {
				var header []string
				for _, k := range tt.keys {
					header = append(header, "X-API-Key: "+k)
				}
				got := w.get("/limited", header...)
				w.want(got, tt.want)
				stored := w.service.limiter.Snapshot(time.Now()).Keys
				if (got.status == http.StatusOK) != (stored == 1) {
					w.Errorf("%d keys stored with status %d, want 1 with 200 only", stored, got.status)
				}
			})
		})
	}
}

// At the cap an active bucket stays, and who comes later shares one.
func TestNewKeysShareABucketAtTheCap(t *testing.T) {
	inBubble(t, Config{LimitMaxKeys: 2}, func(w *world) {
		for i, row := range []struct{ key, want, left string }{
			{"a", "200 ok", "2"}, {"b", "200 ok", "2"},
			{"c", "200 ok", "2"}, {"d", "200 ok", "1"}, {"e", "200 ok", "0"}, {"f", "429 rate limit exceeded", "0"},
			{"a", "200 ok", "1"}, {"a", "200 ok", "0"}, {"a", "429 rate limit exceeded", "0"},
		} {
			got := w.get("/limited", "X-API-Key: "+row.key)
			w.want(got, row.want)
			if want := `"default";r=` + row.left + ";t=1"; got.header.Get("RateLimit") != want {
				w.Errorf("row %d: RateLimit %q, want %q", i, got.header.Get("RateLimit"), want)
			}
		}
		for i := range 1000 {
			w.get("/limited", fmt.Sprint("X-API-Key: invented-", i))
		}
		if got := w.service.limiter.Snapshot(time.Now()).Keys; got != 2 {
			w.Errorf("%d keys, want 2", got)
		}
	})
}

func TestCallerLimitIsOffByDefault(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		got := w.get("/stock/mug", "X-API-Key: no key at all")
		w.want(got, `200 {"sku":"mug","stock":12}`)
		if got := got.header.Get("RateLimit"); got != "" {
			w.Errorf("RateLimit %q on a route without a limit", got)
		}
	})
}

// One bucket for a caller over all business routes, and none for the others.
func TestCallerLimit(t *testing.T) {
	inBubble(t, Config{CallerRate: 0.5, CallerBurst: 4}, func(w *world) {
		const key = "X-API-Key: k1"
		for i, row := range []struct {
			method, path string
			status       int
			left         string
		}{
			{"GET", "/checkout", 200, "3"},
			{"HEAD", "/stock/mug", 200, "2"},
			{"POST", "/charge", 400, "1"}, // a bad request has its cost too
			{"GET", "/profile/ada", 200, "0"},
			{"GET", "/limited", 429, "0"},
			{"GET", "/slow", 429, "0"},
		} {
			got := w.send(w.Context(), row.method, row.path, key)
			policy, left := got.header.Get("RateLimit-Policy"), got.header.Get("RateLimit")
			if got.status != row.status || policy != `"caller";q=4;w=8` || !strings.HasPrefix(left, `"caller";r=`+row.left+";t=") {
				w.Errorf("row %d: %v, %s, %s", i, got, policy, left)
			}
			if got.status == 429 && (got.body != "rate limit exceeded" || got.header.Get("Retry-After") != "2") {
				w.Errorf("row %d: %v with Retry-After %q, want 2", i, got, got.header.Get("Retry-After"))
			}
		}
		for _, path := range []string{"/flaky", "/upstream/inventory/stock/mug", "/healthz", "/readyz", "/nope"} {
			if got := w.get(path, key); got.status == 429 || got.header.Get("RateLimit") != "" {
				w.Errorf("%s: %v, want no limit", path, got)
			}
		}
		// Another key, and the address for those without one: buckets of their own.
		w.want(w.get("/limited", "X-API-Key: k2"), "200 ok")
		w.want(w.get("/limited"), "200 ok")
		w.want(w.get("/limited", "X-API-Key: 127.0.0.1"), "200 ok")
		w.want(w.get("/limited", "X-API-Key: a b"), "400 X-API-Key: must be 1 to 128 visible ASCII characters")
		for range 3 {
			w.get("/stock/mug", "X-Forwarded-For: 10.0.0.9")
		}
		w.want(w.get("/stock/mug", "X-Forwarded-For: 10.0.0.10"), "429 rate limit exceeded")
		time.Sleep(2 * time.Second)
		got := w.get("/limited", key)
		w.want(got, "200 ok")
		if got := strings.Join(got.header.Values("RateLimit"), ", "); got != `"caller";r=0;t=2, "default";r=2;t=1` {
			w.Errorf("RateLimit %s, want both policies", got)
		}
		if got := strings.Join(got.header.Values("RateLimit-Policy"), ", "); got != `"caller";q=4;w=8, "default";q=3;w=3` {
			w.Errorf("RateLimit-Policy %s, want both policies", got)
		}
	})
}

// The address is the host's, whatever the port, and no key is taken for one.
func TestCallerWithoutAKeyIsItsAddress(t *testing.T) {
	s, err := newService(Config{Log: quiet, CallerRate: 0.001, CallerBurst: 1, LimitMaxKeys: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		addr, key string
		want      int
	}{
		{"192.0.2.1:1", "", 200},
		{"192.0.2.1:2", "", 429},
		{"192.0.2.1:2", "192.0.2.1", 200},
		{"192.0.2.2:1", "", 200}, // the third: shares a bucket with all that follow
		{"192.0.2.3:1", "", 429},
		{"192.0.2.1:1", "a b", 400},
	} {
		r := httptest.NewRequest("GET", "/limited", nil)
		r.RemoteAddr = row.addr
		if row.key != "" {
			r.Header.Set("X-API-Key", row.key)
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if rec.Code != row.want {
			t.Errorf("from %s with key %q: %d, want %d", row.addr, row.key, rec.Code, row.want)
		}
	}
	// Who is told to go away loses no token.
	s.drain.begin()
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest("GET", "/limited", nil))
	if rec.Code != 503 || rec.Header().Get("RateLimit") != "" {
		t.Errorf("draining: %d %v, want 503 before any limit", rec.Code, rec.Header())
	}
}

func TestRemoteIP(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:1234":          "192.0.2.1",
		"[2001:db8::1]:1234":      "2001:db8::1",
		"[::ffff:192.0.2.1]:1234": "192.0.2.1",
		"@":                       "@",
		"":                        "",
	} {
		if got := remoteIP(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}

func FuzzAPIKey(f *testing.F) {
	for _, seed := range []string{"", "k1", "a b", "kä", "\x7f", strings.Repeat("k", 129)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{"X-Api-Key": {value}}}
		key, err := apiKey(r)
		visible := len(value) >= 1 && len(value) <= 128 &&
			strings.IndexFunc(value, func(c rune) bool { return c <= ' ' || c >= 0x7f }) < 0
		if visible != (err == nil) || key != value && err == nil {
			t.Errorf("key %q: got %q, %v", value, key, err)
		}
	})
}

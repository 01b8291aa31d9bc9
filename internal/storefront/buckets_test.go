package storefront

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tail is what /status says last: of the controls and, to who may use them, the buckets.
func tail(status string) string {
	_, rest, _ := strings.Cut(status, `"draining":`)
	_, rest, _ = strings.Cut(rest, ",")
	return rest
}

func TestStatusTellsBucketsToWhoMayControl(t *testing.T) {
	const shown, hidden = `"controls":true,"buckets":[{"key":"anon","tokens":2}]}`, `"controls":false}`
	for _, tt := range []struct {
		controls     Controls
		listen, host string
		want         string
	}{
		{"", "127.0.0.1:3000", "localhost:3000", shown},
		{"", "127.0.0.1:3000", "127.0.0.1", shown},
		{"", "127.0.0.1:3000", "evil.example", hidden},
		{"", "127.0.0.1:3000", "", hidden},
		{"", "[::]:3000", "localhost", hidden},
		{ControlsOn, "[::]:3000", "evil.example", shown},
		{ControlsOff, "127.0.0.1:3000", "localhost", hidden},
	} {
		inBubble(t, Config{Controls: tt.controls}, func(w *world) {
			address, err := net.ResolveTCPAddr("tcp", tt.listen)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // until it serves
			w.service.address = address
			w.get("/limited")
			if got := tail(w.raw("GET /status", "Host: "+tt.host, "").body); got != tt.want {
				w.Errorf("controls %q, listening on %s, Host %q: got %s, want %s", tt.controls, tt.listen, tt.host, got, tt.want)
			}
			// A stream says the same to the same.
			conn := w.dial()
			fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\n\r\n", tt.host)
			lines := bufio.NewReader(conn)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					w.Fatal(err)
				}
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					if got := tail(strings.TrimSpace(data)); got != tt.want {
						w.Errorf("controls %q, listening on %s, Host %q: told %s, want %s", tt.controls, tt.listen, tt.host, got, tt.want)
					}
					break
				}
			}
			go io.Copy(io.Discard, conn) // until the end of the test
		})
	}
}

// A key may be a secret: no more of it is told than four characters, nowhere.
func TestOfAKeyFourCharactersAreTold(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		stream := w.openStream()
		for _, key := range []string{"k", "abc", "abcd", "abcde", "abcdefgh", "secret-" + strings.Repeat("x", 121)} {
			w.want(w.get("/limited", "X-API-Key: "+key), "200 ok")
		}
		time.Sleep(250 * time.Millisecond)
		body := w.get("/status").body
		const want = `"buckets":[{"key":"secr","tokens":2.25},{"key":"abcd","tokens":2.25},{"key":"abcd","tokens":2.25},` +
			`{"key":"abcd","tokens":2.25},{"key":"abc","tokens":2.25},{"key":"k","tokens":2.25}]}`
		if !strings.HasSuffix(body, want) {
			w.Errorf("got %s, want %s", tail(body), want)
		}
		told := body + w.get("/metrics").body
		for _, e := range append(stream.take(), w.openStream().take()...) {
			told += e.data
		}
		for _, secret := range []string{"abcde", "secre"} {
			if strings.Contains(told, secret) {
				w.Errorf("%s is told: %s", secret, told)
			}
		}
	})
}

func TestTokensAreRoundedDownToHundredths(t *testing.T) {
	inBubble(t, Config{LimitBurst: 2, LimitRate: 0.5}, func(w *world) {
		if got, want := tail(w.get("/status").body), `"controls":true,"buckets":[]}`; got != want {
			w.Errorf("nobody has come: got %s, want %s", got, want)
		}
		w.get("/limited", "X-API-Key: k")
		w.get("/limited", "X-API-Key: k")
		for _, tt := range []struct {
			at     time.Duration
			tokens string
		}{
			{0, "0"},
			{19 * time.Millisecond, "0"},
			{20 * time.Millisecond, "0.01"},
			{1999 * time.Millisecond, "0.99"},
			{2 * time.Second, "1"},
			{3333 * time.Millisecond, "1.66"},
			{3999 * time.Millisecond, "1.99"}, // it would be allowed one, not two
			{4 * time.Second, "2"},
			{8 * time.Second, "2"},
			{8*time.Second + 2*time.Millisecond, ""}, // full for as long as it takes to fill
		} {
			time.Sleep(time.Until(w.start.Add(tt.at)))
			want := `"controls":true,"buckets":[{"key":"k","tokens":` + tt.tokens + "}]}"
			if tt.tokens == "" {
				want = `"controls":true,"buckets":[]}`
			}
			for range 2 { // to look changes nothing
				if got := tail(w.get("/status").body); got != want {
					w.Errorf("at %v: got %s, want %s", tt.at, got, want)
				}
			}
		}
	})
}

func TestBucketsAreOfTheEightKeysUsedLast(t *testing.T) {
	inBubble(t, Config{LimitMaxKeys: 10}, func(w *world) {
		for i := range 12 { // the last two share a bucket, which is nobody's
			w.get("/limited", fmt.Sprint("X-API-Key: k", i))
		}
		w.get("/limited", "X-API-Key: k1")
		var status struct {
			Limiter struct {
				Burst int
				Rate  float64
			}
			Buckets []bucketSnapshot
		}
		if err := json.Unmarshal([]byte(w.get("/status").body), &status); err != nil {
			w.Fatal(err)
		}
		got := fmt.Sprint(status.Limiter, status.Buckets)
		if want := "{3 1} [{k1 1} {k9 2} {k8 2} {k7 2} {k6 2} {k5 2} {k4 2} {k3 2}]"; got != want {
			w.Errorf("got %s, want %s", got, want)
		}
		w.post("/reset", "")
		if got, want := tail(w.get("/status").body), `"controls":true,"buckets":[]}`; got != want {
			w.Errorf("after a reset: got %s, want %s", got, want)
		}
	})
}

// The caller limit has keys as well, and addresses: none of them is told.
func TestBucketsAreThoseOfLimitedAlone(t *testing.T) {
	inBubble(t, Config{CallerRate: 1, CallerBurst: 9}, func(w *world) {
		w.get("/stock/mug", "X-API-Key: k1")
		w.get("/stock/mug")
		if got, want := tail(w.get("/status").body), `"controls":true,"buckets":[]}`; got != want {
			w.Errorf("got %s, want %s", got, want)
		}
	})
}

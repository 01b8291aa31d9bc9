package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// ask calls a dependency once. A panic that aborts the reply is status 0.
func ask(h http.Handler, method, body string, header ...string) (status int, answer string) {
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			status = 0
		}
	}()
	h.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

func TestEveryThirdCallOfFlakySucceeds(t *testing.T) {
	f := Flaky()
	for n := 1; n <= 9; n++ {
		wantStatus, wantBody := 503, ""
		if n%3 == 0 {
			wantStatus, wantBody = 200, fmt.Sprintf(`{"call":%d}`, n)
		}
		if status, body := ask(f, "GET", ""); status != wantStatus || body != wantBody {
			t.Errorf("call %d: %d %q, want %d %q", n, status, body, wantStatus, wantBody)
		}
	}
}

func TestParallelCallsShareOneCount(t *testing.T) {
	f := Flaky()
	var served atomic.Int64
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() {
			if status, _ := ask(f, "GET", ""); status == 200 {
				served.Add(1)
			}
		})
	}
	all.Wait()
	if served.Load() != 100 {
		t.Errorf("%d of 300 succeeded, want 100", served.Load())
	}
}

func TestScriptRepeats(t *testing.T) {
	f := Flaky()
	set(t, f, Fault{Script: "SFMLS", Status: 500})
	for round := range 2 {
		for i, want := range []string{`200 {"call":1}`, "500 ", `200 {"call":`, "0 ", `200 {"call":5}`} {
			status, body := ask(f, "GET", "")
			want = strings.NewReplacer("1}", fmt.Sprint(5*round+1, "}"), "5}", fmt.Sprint(5*round+5, "}")).Replace(want)
			if got := fmt.Sprint(status, " ", body); got != want {
				t.Errorf("round %d, letter %d: got %q, want %q", round, i, got, want)
			}
		}
	}
}

func set(t *testing.T, d *Dependency, f Fault) {
	t.Helper()
	if _, err := d.Set(f); err != nil {
		t.Fatal(err)
	}
}

func TestSetStartsTheScriptAndTheCountAgain(t *testing.T) {
	f := Flaky()
	ask(f, "GET", "")
	set(t, f, Fault{Script: "S"})
	if status, body := ask(f, "GET", ""); status != 200 || body != `{"call":1}` {
		t.Errorf("%d %s, want call 1", status, body)
	}
	set(t, f, Fault{}) // its own again
	if status, _ := ask(f, "GET", ""); status != 503 {
		t.Errorf("%d, want the first 503 of FFS", status)
	}
	ask(f, "GET", "")
	f.Reset()
	if status, _ := ask(f, "GET", ""); status != 503 {
		t.Errorf("%d after Reset, want the first 503 of FFS", status)
	}
}

func TestRetryAfterGoesOutAsItStands(t *testing.T) {
	f := Flaky()
	set(t, f, Fault{Script: "FS", RetryAfter: "next week"})
	for _, want := range []string{"next week", ""} {
		rec := httptest.NewRecorder()
		f.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		if got := rec.Header().Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q, want %q", got, want)
		}
	}
}

func TestLatencyAndHangEndWithTheCaller(t *testing.T) {
	for name, fault := range map[string]Fault{
		"latency": {Latency: 30 * time.Second},
		"hanging": {Script: "H"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPayments()
				set(t, p.Dependency, fault)
				r := httptest.NewRequest("POST", "/", strings.NewReader(mug))
				ctx, leave := context.WithCancel(r.Context())
				time.AfterFunc(time.Second, leave)
				start := time.Now()
				func() {
					defer func() {
						if p := recover(); p != http.ErrAbortHandler {
							t.Errorf("recovered %v, want an aborted reply", p)
						}
					}()
					p.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
				}()
				if took := time.Since(start); took != time.Second {
					t.Errorf("took %v, want 1s", took)
				}
				wantLedger(t, p, "[]")
			})
		})
	}
}

func TestLatencyComesBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Flaky()
		set(t, f, Fault{Latency: 2 * time.Second})
		start := time.Now()
		if status, _ := ask(f, "GET", ""); status != 503 || time.Since(start) != 2*time.Second {
			t.Errorf("%d after %v, want 503 after 2s", status, time.Since(start))
		}
	})
}

// On a real wire, R is a reset and L an end without a reply.
func TestResetAndLostReplyOnTheWire(t *testing.T) {
	for script, want := range map[string]error{"R": syscall.ECONNRESET, "L": io.EOF} {
		f := Flaky()
		set(t, f, Fault{Script: script})
		server := httptest.NewServer(f)
		_, err := server.Client().Get(server.URL)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", script, err, want)
		}
		server.Close()
	}
}

func TestSetNamesTheFieldAndChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		bad, good Fault
		want      string
	}{
		{Fault{Script: "SX"}, Fault{Script: "SFHRML"}, `script: "SX" must have only the letters S, F, H, R, M and L, in upper case`},
		{Fault{Script: "s"}, Fault{Script: "S"}, `script: "s" must have only the letters S, F, H, R, M and L, in upper case`},
		{Fault{Script: strings.Repeat("S", 65)}, Fault{Script: strings.Repeat("S", 64)}, "script: 65 letters are too many, 1 to 64"},
		{Fault{Status: 399}, Fault{Status: 400}, "status: must be a whole number from 400 to 599"},
		{Fault{Status: 600}, Fault{Status: 599}, "status: must be a whole number from 400 to 599"},
		{Fault{Status: -1}, Fault{}, "status: must be a whole number from 400 to 599"},
		{Fault{Latency: -1}, Fault{Latency: 1}, "latency: -1ns is out of range, 0s to 30s"},
		{Fault{Latency: 30*time.Second + 1}, Fault{Latency: 30 * time.Second}, "latency: 30.000000001s is out of range, 0s to 30s"},
	} {
		f := Flaky()
		set(t, f, Fault{Script: "SF"})
		ask(f, "GET", "")
		if _, err := f.Set(tt.bad); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.bad, err, tt.want)
		}
		if status, _ := ask(f, "GET", ""); status != 503 {
			t.Errorf("%+v: the script went on with %d, want 503", tt.bad, status)
		}
		if _, err := f.Set(tt.good); err != nil {
			t.Errorf("%+v: %v", tt.good, err)
		}
	}
}

package simulator

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

func TestEveryThirdCallSucceeds(t *testing.T) {
	var f Flaky
	for n := 1; n <= 9; n++ {
		rec := httptest.NewRecorder()
		f.ServeHTTP(rec, httptest.NewRequest("GET", "/flaky", nil))
		status, body := 503, ""
		if n%3 == 0 {
			status, body = 200, fmt.Sprintf(`{"call":%d}`, n)
		}
		if rec.Code != status || rec.Body.String() != body {
			t.Errorf("call %d: %d %q, want %d %q", n, rec.Code, rec.Body, status, body)
		}
	}
}

func TestParallelCallsShareOneCount(t *testing.T) {
	var f Flaky
	var served atomic.Int64
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() {
			rec := httptest.NewRecorder()
			f.ServeHTTP(rec, httptest.NewRequest("GET", "/flaky", nil))
			if rec.Code == 200 {
				served.Add(1)
			}
		})
	}
	all.Wait()
	if served.Load() != 100 {
		t.Errorf("%d of 300 succeeded, want 100", served.Load())
	}
}

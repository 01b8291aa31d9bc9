package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPercentileIsOfWhatWasAccepted(t *testing.T) {
	var o outcome
	if got := o.percentile(99); got != 0 {
		t.Errorf("of nothing %v, want 0", got)
	}
	for i := range 100 {
		o.accepted = append(o.accepted, time.Duration(i+1))
	}
	for p, want := range map[float64]time.Duration{0: 1, 1: 1, 1.1: 2, 50: 50, 99: 99, 99.1: 100, 100: 100} {
		if got := o.percentile(p); got != want {
			t.Errorf("p%v is %d, want %d", p, got, want)
		}
	}
}

func TestOfferTellsAnswersApart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(503)
		case "/limited":
			w.WriteHeader(429)
		case "/hangs":
			<-r.Context().Done()
		case "/broken":
			w.WriteHeader(500)
		}
	}))
	defer server.Close()
	o := offer(t.Context(), 60, time.Second, 200*time.Millisecond,
		get(server.URL), get(server.URL+"/busy"), get(server.URL+"/limited"), get(server.URL+"/hangs"), get(server.URL+"/broken"), get("http://127.0.0.1:1"))
	if o.good != 10 || o.refused != 20 || o.late != 10 || o.failed != 20 {
		t.Errorf("good %d, refused %d, late %d, failed %d; want 10, 20, 10, 20", o.good, o.refused, o.late, o.failed)
	}
	if o.goodput() != 10 || len(o.accepted) != 20 || o.percentile(99) != 200*time.Millisecond {
		t.Errorf("goodput %v, %d accepted, p99 %v; want 10, 20, and the patience", o.goodput(), len(o.accepted), o.percentile(99))
	}
}

func TestPictureShowsBothRoutes(t *testing.T) {
	var run []outcome
	for range multiples {
		run = append(run, outcome{seconds: 1, good: 50, accepted: []time.Duration{time.Millisecond}})
	}
	file := filepath.Join(t.TempDir(), "a.svg")
	if err := picture(file, []series{{"/slow", run, run}, {"/checkout", run, run}}); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"/slow: answers in time, a second", "/checkout: p99 of what was accepted, ms", "without"} {
		if !strings.Contains(string(svg), ">"+text+"<") {
			t.Errorf("no %q in the picture", text)
		}
	}
	if err := picture(filepath.Join(t.TempDir(), "none", "a.svg"), nil); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}

package storefront

import (
	"fmt"
	"testing"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/simulator"
)

const ada = `200 {"id":"ada","name":"Ada Lovelace"}`

func TestProfileIsWhatProfilesSays(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for path, want := range map[string]string{
			"/profile/ada":           ada,
			"/profile/grace":         `200 {"id":"grace","name":"Grace Hopper"}`,
			"/profile/linus":         `200 {"id":"linus","name":"Linus Torvalds"}`,
			"/profile/a%64a":         ada,
			"/profile/nobody":        "404 unknown id; try ada, grace or linus",
			"/upstream/profiles/ada": ada,
		} {
			got := w.get(path)
			w.wantFallback(got, want, "")
			if got.header.Get("Age") != "" {
				w.Errorf("%s: Age %q for a fresh answer", path, got.header.Get("Age"))
			}
		}
	})
}

func TestProfileFallsBackToTheLastGoodCopy(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	inBubble(t, Config{}, func(w *world) {
		w.want(w.get("/profile/ada"), ada)
		w.fault(profiles, simulator.Fault{Script: "F"})
		for _, at := range []time.Duration{10 * s, 20*s + 600*ms, 30 * s} {
			time.Sleep(time.Until(w.start.Add(at)))
			before := w.snapshot(profiles).Retry.Attempts
			got := w.get("/profile/ada")
			w.wantFallback(got, ada, "cached")
			if age := time.Since(w.start).Truncate(s); got.header.Get("Age") != fmt.Sprint(int(age.Seconds())) {
				w.Errorf("at %v: Age %q", at, got.header.Get("Age"))
			}
			if made := w.snapshot(profiles).Retry.Attempts - before; made != 2 {
				w.Errorf("%d attempts, want 2", made)
			}
		}
		// Nobody has asked for grace yet.
		w.wantFallback(w.get("/profile/grace"), "502 profile unavailable: 503 Service Unavailable", "")
	})
}

func TestProfileWithAnOpenBreaker(t *testing.T) {
	const s = time.Second
	inBubble(t, Config{}, func(w *world) {
		w.want(w.get("/profile/ada"), ada)
		w.fault(profiles, simulator.Fault{Script: "F", Status: 500})
		for range 3 {
			w.wantFallback(w.get("/profile/ada"), ada, "cached")
		}
		w.wantFallback(w.get("/profile/ada"), ada, "cached")
		got := w.get("/profile/grace")
		w.wantFallback(got, "503 circuit open", "")
		if got := got.header.Get("Retry-After"); got != "30" {
			w.Errorf("Retry-After %q, want 30", got)
		}
		w.fault(profiles, simulator.Fault{})
		time.Sleep(30 * s)
		w.want(w.get("/profile/grace"), "503 circuit open")
		time.Sleep(time.Nanosecond)
		for _, want := range []breaker.State{breaker.HalfOpen, breaker.HalfOpen, breaker.Closed} {
			w.wantFallback(w.get("/profile/ada"), ada, "")
			if got := w.snapshot(profiles).Breaker.State; got != want {
				w.Errorf("%v after a good probe, want %v", got, want)
			}
		}
	})
}

// Three failures in a row open it, but not when they are far apart.
func TestProfileFailuresCountOverTenSeconds(t *testing.T) {
	for gap, want := range map[time.Duration]breaker.State{5 * time.Second: breaker.Open, 5200 * time.Millisecond: breaker.Closed} {
		inBubble(t, Config{}, func(w *world) {
			w.fault(profiles, simulator.Fault{Script: "F", Status: 500})
			for range 3 {
				w.want(w.get("/profile/ada"), "502 profile unavailable: 500 Internal Server Error")
				time.Sleep(gap)
			}
			if got := w.snapshot(profiles).Breaker.State; got != want {
				w.Errorf("%v apart: %v, want %v", gap, got, want)
			}
		})
	}
}

// What profiles no longer knows must not come back from the cache.
func TestProfileThatIsGoneHasNoCopy(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.want(w.get("/profile/ada"), ada)
		w.fault(profiles, simulator.Fault{Script: "F", Status: 404})
		w.want(w.get("/profile/ada"), "404 unknown id; try ada, grace or linus")
		w.fault(profiles, simulator.Fault{Script: "F", Status: 500})
		w.want(w.get("/profile/ada"), "502 profile unavailable: 500 Internal Server Error")
	})
}

func TestProfileTriesAHangingDependencyTwice(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(profiles, simulator.Fault{Script: "H"})
		w.want(w.get("/profile/ada"), "502 profile unavailable: attempt timed out after 500ms")
		if took := time.Since(w.start); took < time.Second || took > 1100*time.Millisecond {
			w.Errorf("took %v, want two attempts of 500ms", took)
		}
	})
}

func TestCopiesAreBounded(t *testing.T) {
	var c copies
	start := time.Now()
	c.put("large", make([]byte, maxCopySize), start)
	if _, _, ok := c.get("large", start); !ok {
		t.Error("no copy of the largest size")
	}
	c.put("large", make([]byte, maxCopySize+1), start)
	if _, _, ok := c.get("large", start); ok {
		t.Error("a copy larger than that, or an outdated one")
	}
	for i := range maxCopies + 10 {
		c.put(fmt.Sprint(i), nil, start.Add(time.Duration(i)))
		c.put("0", []byte("fresh"), start.Add(time.Duration(i)))
	}
	if len(c.byID) != maxCopies {
		t.Errorf("%d copies, want %d", len(c.byID), maxCopies)
	}
	if body, _, ok := c.get("0", start); !ok || string(body) != "fresh" {
		t.Error("the copy that was made again and again is gone")
	}
	if _, _, ok := c.get("10", start); ok {
		t.Error("the oldest copy is still there")
	}
	if _, _, ok := c.get("11", start); !ok {
		t.Error("a newer copy is gone")
	}
}

package storefront

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/storefront/internal/simulator"
)

// only has the events of these names, one a line.
func only(events []received, names ...string) (lines []string) {
	for _, e := range events {
		if slices.Contains(names, e.name) {
			lines = append(lines, e.name+" "+e.data)
		}
	}
	return lines
}

// names has those of all events, in their order.
func names(events []received) (all []string) {
	for _, e := range events {
		all = append(all, e.name)
	}
	return all
}

// drawn is what a page has of the timeline after these events: by second since the start,
// what was counted.
func (w *world) drawn(events []received) map[int]string {
	w.Helper()
	seconds := map[int]string{}
	for _, e := range events {
		switch e.name {
		case "reset":
			clear(seconds)
		case "timeline":
			var got timelineEvent
			if err := json.Unmarshal([]byte(e.data), &got); err != nil {
				w.Fatal(err)
			}
			if !got.Now.Equal(e.at) {
				w.Errorf("a timeline of %v came at %v", got.Now, e.at)
			}
			for _, s := range got.Seconds {
				counts := fmt.Sprint(s.Counts)
				seconds[int(s.At-w.start.Unix())] = strings.TrimSuffix(strings.TrimPrefix(counts, "map["), "]")
			}
		}
	}
	return seconds
}

func TestWhoReconnectsGetsTheCallsAndTransitionsOfLateInTheirOrder(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Breaker.Failures = 1
	inBubble(t, cfg, func(w *world) {
		live := w.openStream()
		w.get("/checkout")
		w.fault(flaky, simulator.Fault{Script: "F", Status: 500})
		w.get("/stock/mug")
		w.get("/checkout") // which opens it
		w.get("/profile/ada")
		w.get("/checkout")
		w.post("/charge", mug)
		time.Sleep(10*time.Second + 1)
		w.fault(flaky, simulator.Fault{Script: "S"})
		w.get("/checkout") // the probe, which closes it
		w.get("/limited")  // a decision, which is not kept
		told := only(live.take(), "call", "transition")
		if len(told) != 10 {
			w.Fatalf("told %d: %q", len(told), told)
		}
		for range 2 {
			again := w.openStream()
			got := again.take()
			if len(got) < 2 || got[0].name != "snapshot" || got[len(got)-1].name != "timeline" || len(got) != len(told)+2 {
				w.Errorf("got %q, want a snapshot, what was told, and a timeline", names(got))
			}
			if replayed := only(got, "call", "transition"); !slices.Equal(replayed, told) {
				w.Errorf("got\n%s\nwant\n%s", strings.Join(replayed, "\n"), strings.Join(told, "\n"))
			}
			w.get("/checkout") // goes on live, once
			next := only(again.take(), "call")
			if len(next) != 1 {
				w.Errorf("got %q, want one call", next)
			}
			told = append(told, next...)
			again.close()
		}
	})
}

// A busy dependency pushes out nothing of another, nor its own transitions.
func TestThirtyCallsOfEachDependencyAreReplayed(t *testing.T) {
	inBubble(t, oneFailureOpens(), func(w *world) {
		for range 40 {
			w.get("/checkout") // the first opens the breaker
		}
		w.get("/profile/ada")
		for range 31 {
			w.get("/stock/mug")
		}
		for range 30 {
			w.post("/charge", mug)
		}
		count := map[string]int{}
		for _, e := range w.openStream().take() {
			var c callEvent
			switch {
			case e.name == "transition":
				count["transitions"]++
			case e.name == "call" && json.Unmarshal([]byte(e.data), &c) == nil:
				count[c.Dependency]++
			}
		}
		if want := map[string]int{"transitions": 1, flaky: 30, profiles: 1, inventory: 30, payments: 30}; !maps.Equal(count, want) {
			w.Errorf("got %v, want %v", count, want)
		}
	})
}

// Nobody else is told what somebody missed.
func TestAReplayIsForWhoConnectsAlone(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.get("/stock/mug")
		first := w.openStream()
		first.take()
		w.openStream()
		if got := only(first.take(), "call", "transition", "timeline"); len(got) != 0 {
			w.Errorf("got %q", got)
		}
	})
}

func TestTheTimelineIsToldWhenItHasChangedAndOnlyWhatHas(t *testing.T) {
	inBubble(t, Config{LimitBurst: 100}, func(w *world) {
		const s, quarter = time.Second, 250 * time.Millisecond
		w.get("/limited")
		time.Sleep(time.Until(w.start.Add(2 * s)))
		w.get("/limited")
		time.Sleep(time.Until(w.start.Add(2*s + 100*time.Millisecond)))
		opened := time.Now()
		stream := w.openStream()
		check := func(want ...string) { // each a time since it was opened, and what came
			w.Helper()
			var got []string
			for _, e := range stream.take() {
				if e.name == "timeline" {
					got = append(got, fmt.Sprint(e.at.Sub(opened), w.drawn([]received{e})))
				}
			}
			if !slices.Equal(got, want) {
				w.Errorf("got  %q\nwant %q", got, want)
			}
		}
		check("0s map[0:served:1 2:served:1]")
		// From now on between two looks, which are 250 ms apart.
		time.Sleep(s + quarter/2)
		check()           // what has been told, over two seconds, is not told again
		w.get("/limited") // at 3.225 s
		w.get("/limited")
		check()
		time.Sleep(quarter)
		check("1.25s map[3:served:2]")
		w.get("/limited")
		time.Sleep(quarter)
		check("1.5s map[3:served:3]")
		time.Sleep(time.Until(opened.Add(3*s + quarter + quarter/2)))
		w.get("/stock/mug") // at 5.475 s: the second of the last change has not changed
		time.Sleep(quarter)
		check("3.5s map[5:served:1]")
		time.Sleep(time.Until(w.start.Add(6*s - 1)))
		w.get("/stock/mug") // just before the next second, told in it
		time.Sleep(2 * time.Nanosecond)
		w.get("/stock/mug")
		time.Sleep(quarter)
		check("4s map[5:served:2 6:served:1]")
		// One that was slow to be counted, in a second that is over.
		w.service.timeline.Count(w.start.Add(6*s-1), "served")
		time.Sleep(quarter)
		check("4.25s map[5:served:3]")
		time.Sleep(200 * s)
		check() // that it grows old is no change
	})
}

func TestTheTimelineOfANewReaderGoesBackTwoMinutes(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.get("/limited")
		time.Sleep(119 * time.Second)
		w.get("/stock/mug")
		first := w.openStream()
		if got := fmt.Sprint(w.drawn(first.take())); got != "map[0:served:1 119:served:1]" {
			w.Error(got)
		}
		time.Sleep(time.Second)
		if got := fmt.Sprint(w.drawn(w.openStream().take())); got != "map[119:served:1]" {
			w.Error(got)
		}
	})
}

// After a reset what was told before counts no more, for who is there and for who comes.
func TestResetIsToldAndForgetsCallsAndTimeline(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Breaker.Failures = 1
	inBubble(t, cfg, func(w *world) {
		stream := w.openStream()
		w.fault(flaky, simulator.Fault{Script: "F", Status: 500})
		w.get("/checkout")
		w.get("/limited")
		w.get("/limited")
		time.Sleep(300 * time.Millisecond)
		if got := fmt.Sprint(w.drawn(stream.take())); got != "map[0:failed:1 served:2]" {
			w.Error(got)
		}
		w.post("/reset", "")
		got := stream.take()
		if want := `reset {"at":"2000-01-01T00:00:00.3Z"}`; !slices.Equal(only(got, "reset"), []string{want}) {
			w.Errorf("got %q, want %s", only(got, "reset"), want)
		}
		// Within the same second the same again: to a page that has cleared its own, it is new.
		w.fault(flaky, simulator.Fault{Script: "F", Status: 500})
		w.get("/checkout")
		w.get("/limited")
		w.get("/limited")
		time.Sleep(300 * time.Millisecond)
		if got := fmt.Sprint(w.drawn(append(got, stream.take()...))); got != "map[0:failed:1 served:2]" {
			w.Errorf("after the reset and the same again: %s", got)
		}
		w.post("/reset", "")
		if got := w.openStream().take(); !slices.Equal(names(got), []string{"snapshot", "timeline"}) || len(w.drawn(got)) != 0 {
			w.Errorf("after the reset: %v", got)
		}
	})
}

// A refused reset forgets nothing.
func TestARefusedResetForgetsNothing(t *testing.T) {
	inBubble(t, Config{Controls: ControlsOff}, func(w *world) {
		w.get("/stock/mug")
		w.post("/reset", "")
		got := w.openStream().take()
		if !slices.Equal(names(got), []string{"snapshot", "call", "timeline"}) || len(w.drawn(got)) != 1 {
			w.Errorf("got %v", got)
		}
	})
}

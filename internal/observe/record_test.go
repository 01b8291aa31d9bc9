package observe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorded is what who subscribes now is told of before.
func recorded(e *Events) (got []string) {
	before, _, stop := e.Subscribe()
	defer stop()
	for _, event := range before {
		got = append(got, event.Name+" "+string(event.Data))
	}
	return got
}

func TestWhoSubscribesGetsWhatWasRecordedInItsOrder(t *testing.T) {
	var e Events
	if got := recorded(&e); len(got) != 0 {
		t.Errorf("at the start: %q", got)
	}
	e.Record("calls of a", "call", 1)
	e.Record("transitions of a", "transition", 2)
	e.Publish("decision", "published only")
	e.Record("calls of b", "call", map[string]string{"line": "x\ny"})
	e.Record("calls of a", "call", 4)
	want := []string{"call 1", "transition 2", `call {"line":"x\ny"}`, "call 4"}
	for range 2 { // to look takes nothing away
		if got := recorded(&e); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	e.Forget("reset", 0)
	if got := recorded(&e); len(got) != 0 {
		t.Errorf("after Forget: %q", got)
	}
	e.Record("calls of a", "call", 5)
	if got := recorded(&e); !slices.Equal(got, []string{"call 5"}) {
		t.Errorf("after Forget and one more: %q", got)
	}
}

// However many come of one topic, they push out none of another.
func TestTheLastThirtyOfEachTopicAreKept(t *testing.T) {
	for _, n := range []int{29, 30, 31, 300} {
		var e Events
		e.Record("rare", "rare", 0)
		want := []string{"rare 0"}
		for i := range n {
			e.Record("often", "often", i)
			if i >= n-30 {
				want = append(want, fmt.Sprint("often ", i))
			}
		}
		if got := recorded(&e); !slices.Equal(got, want) {
			t.Errorf("%d recorded: got %q, want %q", n, got, want)
		}
	}
}

func TestARecordedEventReachesSubscribersToo(t *testing.T) {
	var e Events
	e.Record("a", "call", 1)
	before, events, stop := e.Subscribe()
	defer stop()
	e.Record("b", "call", 2)
	e.Forget("reset", 0) // takes back nothing that is on its way
	if len(before) != 1 || len(events) != 2 || string((<-events).Data) != "2" || (<-events).Name != "reset" {
		t.Errorf("before %v and %d events, want 1, and then 2 and the reset", before, len(events))
	}
}

// Whenever one subscribes while others record, it gets each event once, from the first
// of those kept on.
func TestNoEventIsLostOrDoubledForWhoSubscribesMeanwhile(t *testing.T) {
	const topics, each, readers = 4, 250, 50 // fewer events than a subscriber may be behind
	var e Events
	var all sync.WaitGroup
	for topic := range topics {
		all.Go(func() {
			for i := range each {
				e.Record(fmt.Sprint(topic), fmt.Sprint(topic), i)
			}
		})
	}
	for range readers {
		all.Go(func() {
			before, events, stop := e.Subscribe()
			defer stop()
			next := map[string]int{} // by topic; what must come
			check := func(event Event) {
				var n int
				fmt.Sscan(string(event.Data), &n)
				if want, ok := next[event.Name]; ok && n != want {
					t.Errorf("topic %s: got event %d, want %d", event.Name, n, want)
				}
				next[event.Name] = n + 1
			}
			seen := map[string]int{}
			for _, event := range before {
				check(event)
				seen[event.Name]++
			}
			for topic := range topics {
				name := fmt.Sprint(topic)
				if _, ok := next[name]; !ok {
					next[name] = 0 // nothing yet: the first must come
				}
				if n := seen[name]; n > 30 || n < 30 && n != next[name] {
					t.Errorf("topic %s: %d before, up to %d", name, n, next[name])
				}
			}
			for next["0"] < each || next["1"] < each || next["2"] < each || next["3"] < each {
				event, ok := <-events
				if !ok {
					t.Error("dropped, though it reads")
					return
				}
				check(event)
			}
		})
	}
	all.Wait()
	if got := recorded(&e); len(got) != topics*30 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, " 249") }) {
		t.Errorf("%d kept at the end: %q", len(got), got)
	}
}

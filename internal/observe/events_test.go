package observe

import (
	"fmt"
	"sync"
	"testing"
)

func TestEventsReachEachWatcherInOrder(t *testing.T) {
	var e Events
	if e.Watched() {
		t.Error("watched by nobody")
	}
	e.Tell("lost", 0)
	a, stopA := e.Watch()
	b, stopB := e.Watch()
	e.Tell("call", map[string]string{"line": "a\nb"})
	stopB()
	stopB() // twice is once
	e.Tell("call", 2)
	stopA()
	e.Tell("call", 3)
	for _, want := range []string{`call {"line":"a\nb"}`, "call 2"} {
		if got := <-a; got.Name+" "+string(got.Data) != want {
			t.Errorf("got %s %s, want %s", got.Name, got.Data, want)
		}
	}
	if len(a) != 0 || len(b) != 1 || e.Watched() {
		t.Errorf("%d and %d events after the end, watched %v", len(a), len(b), e.Watched())
	}
}

// Tell never waits: it gives up on who does not read.
func TestASlowWatcherIsDropped(t *testing.T) {
	var e Events
	slow, stop := e.Watch()
	quick, stopQuick := e.Watch()
	defer stopQuick()
	for i := range backlog {
		e.Tell("call", i)
		<-quick
	}
	if len(slow) != backlog {
		t.Fatalf("%d events wait, want %d", len(slow), backlog)
	}
	e.Tell("call", "one too many")
	n := 0
	for range slow { // ends, as it is closed
		n++
	}
	if n != backlog {
		t.Errorf("%d events, then the end, want %d", n, backlog)
	}
	if got := <-quick; string(got.Data) != `"one too many"` || !e.Watched() {
		t.Errorf("the quick one got %s, watched %v", got.Data, e.Watched())
	}
	stop() // after it was dropped
}

func TestWatchersComeAndGoWhileEventsAreTold(t *testing.T) {
	var e Events
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				events, stop := e.Watch()
				e.Tell("call", fmt.Sprint(i))
				<-events
				stop()
			}
		})
	}
	all.Wait()
	if e.Watched() {
		t.Error("watched by nobody")
	}
}

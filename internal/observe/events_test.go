package observe

import (
	"fmt"
	"sync"
	"testing"
)

func TestEventsReachEachSubscriberInOrder(t *testing.T) {
	var e Events
	if e.HasSubscribers() {
		t.Error("nobody has subscribed")
	}
	e.Publish("lost", 0)
	_, a, stopA := e.Subscribe()
	_, b, stopB := e.Subscribe()
	e.Publish("call", map[string]string{"line": "a\nb"})
	stopB()
	stopB() // twice is once
	e.Publish("call", 2)
	stopA()
	e.Publish("call", 3)
	for _, want := range []string{`call {"line":"a\nb"}`, "call 2"} {
		if got := <-a; got.Name+" "+string(got.Data) != want {
			t.Errorf("got %s %s, want %s", got.Name, got.Data, want)
		}
	}
	if len(a) != 0 || len(b) != 1 || e.HasSubscribers() {
		t.Errorf("%d and %d events after the end, subscribers %v", len(a), len(b), e.HasSubscribers())
	}
}

// Publish never waits: it gives up on who does not read.
func TestASlowSubscriberIsDropped(t *testing.T) {
	var e Events
	_, slow, stop := e.Subscribe()
	_, quick, stopQuick := e.Subscribe()
	defer stopQuick()
	for i := range 1024 {
		e.Publish("call", i)
		<-quick
	}
	if len(slow) != 1024 {
		t.Fatalf("%d events wait, want 1024", len(slow))
	}
	e.Publish("call", "one too many")
	n := 0
	for range slow { // ends, as it is closed
		n++
	}
	if n != 1024 {
		t.Errorf("%d events, then the end, want 1024", n)
	}
	if got := <-quick; string(got.Data) != `"one too many"` || !e.HasSubscribers() {
		t.Errorf("the quick one got %s, subscribers %v", got.Data, e.HasSubscribers())
	}
	stop() // after it was dropped
}

func TestSubscribersComeAndGoWhileEventsArePublished(t *testing.T) {
	var e Events
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				_, events, stop := e.Subscribe()
				e.Publish("call", fmt.Sprint(i))
				<-events
				stop()
			}
		})
	}
	all.Wait()
	if e.HasSubscribers() {
		t.Error("nobody has subscribed")
	}
}

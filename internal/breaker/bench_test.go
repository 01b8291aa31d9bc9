package breaker

import (
	"testing"
	"time"
)

func TestRefusingAllocatesNothing(t *testing.T) {
	b := breaker(t, Config{})
	call(b, errDown)
	call(b, errDown)
	fn := func(func() bool) error { return nil }
	if n := testing.AllocsPerRun(100, func() { b.Do(fn) }); n > 0 {
		t.Errorf("%v allocations a refusal, want 0", n)
	}
}

func BenchmarkClosed(b *testing.B) {
	br, _ := New(Config{})
	fn := func(func() bool) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		br.Do(fn)
	}
}

func BenchmarkOpen(b *testing.B) {
	br, _ := New(Config{Failures: 1, Cooldown: time.Hour})
	call(br, errDown)
	fn := func(func() bool) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		br.Do(fn)
	}
}

package main

import (
	"strings"
	"testing"
)

// printed is every figure of the table, each 1.
func printed() map[string]float64 {
	values := map[string]float64{}
	for _, g := range groups {
		for _, r := range g.rows {
			for _, f := range r.figures {
				values[f.of] = 1
			}
		}
	}
	return values
}

func TestEveryGoalIsMissedAboveIt(t *testing.T) {
	for _, g := range groups {
		for _, r := range g.rows {
			for _, f := range r.figures {
				if f.goal == 0 {
					continue
				}
				if got := f.verdict(f.goal); !strings.HasSuffix(got, ": met") {
					t.Errorf("%s at its goal: %s", f.of, got)
				}
				if got := f.verdict(f.goal * 1.001); !strings.HasSuffix(got, ": **missed**") {
					t.Errorf("%s above its goal: %s", f.of, got)
				}
			}
		}
	}
}

func TestMediansOfWhatWasPrinted(t *testing.T) {
	var r results
	for _, took := range []string{"300", "90", "100"} {
		out := "cpu: Abacus \nBenchmarkAllow/1000 \t 5 \t " + took + " ns/op \t 145.0 bytes/key\nBenchmarkCheckout \t 2 \t 1.5 stack/bare \t 7000 stack-cpu-ns\n"
		if err := r.add(strings.NewReader(out)); err != nil {
			t.Fatal(err)
		}
	}
	for of, want := range map[string]float64{"Allow/1000 ns/op": 100, "Allow/1000 bytes/key": 145, "Checkout stack/bare": 1.5, "Checkout stack-cpu-ns": 7000} {
		if got := r.values[of]; len(got) != 3 || median(got) != want {
			t.Errorf("%s: %v, want %v three times or as the median", of, got, want)
		}
	}
	if r.cpu != "Abacus" {
		t.Errorf("cpu %q", r.cpu)
	}
}

func TestTheTableNeedsEveryFigure(t *testing.T) {
	for without := range printed() {
		values := map[string][]float64{}
		for of := range printed() {
			if of != without {
				values[of] = []float64{1}
			}
		}
		if err := print(new(strings.Builder), groups, values); err == nil || !strings.Contains(err.Error(), without) {
			t.Errorf("without %q: %v", without, err)
		}
	}
}

func TestFiguresAreReadable(t *testing.T) {
	for got, want := range map[string]string{
		duration(14.2): "14 ns", duration(1234): "1.23 µs", duration(1_110_000): "1.11 ms", ratio(1.2449): "1.24", bytesEach(136.2): "136 bytes",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

package main

import (
	"context"
	"math"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// patience is how long a client waits for an answer before it leaves.
const patience = time.Second

// outcome is how the requests of a load fared.
type outcome struct {
	seconds  float64
	good     int // answered with 200 in time
	refused  int // 503 or 429
	late     int // the client had left
	failed   int // anything else
	accepted []time.Duration
}

// offer sends requests at a steady rate, however slow the answers are: clients do not know
// how the others fare. It returns when all have been answered or given up.
func offer(ctx context.Context, rate float64, d, patience time.Duration, targets ...vegeta.Target) outcome {
	attacker := vegeta.NewAttacker(vegeta.Timeout(patience), vegeta.MaxWorkers(uint64(rate*patience.Seconds())+1000), vegeta.Redirects(vegeta.NoFollow))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	o := outcome{seconds: d.Seconds()}
	pace := vegeta.Rate{Freq: int(math.Round(rate * 10)), Per: 10 * time.Second}
	for r := range attacker.Attack(vegeta.NewStaticTargeter(targets...), pace, d, "") {
		switch {
		case r.Code == 200:
			o.good++
			o.accepted = append(o.accepted, r.Latency)
		case r.Code == 503 || r.Code == 429:
			o.refused++
		case r.Code == 0 && r.Latency >= patience:
			o.late++
			o.accepted = append(o.accepted, patience)
		default:
			o.failed++
		}
	}
	slices.Sort(o.accepted)
	return o
}

// goodput is the requests a second that were of use.
func (o outcome) goodput() float64 { return float64(o.good) / o.seconds }

// percentile is of the requests that were not refused (nearest rank). Those for which the
// client had no patience count as long as it had.
func (o outcome) percentile(p float64) time.Duration {
	if len(o.accepted) == 0 {
		return 0
	}
	return o.accepted[max(0, int(math.Ceil(p/100*float64(len(o.accepted))))-1)]
}

func get(url string) vegeta.Target { return vegeta.Target{Method: "GET", URL: url} }

func post(url, body string) vegeta.Target {
	return vegeta.Target{Method: "POST", URL: url, Body: []byte(body)}
}

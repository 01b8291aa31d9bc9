package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// start runs the program and returns where to interrupt it and what gives its
// exit code and output.
func start(args ...string) (signals chan<- os.Signal, end func() (code int, stdout, stderr fmt.Stringer)) {
	var out, errs bytes.Buffer
	interrupts := make(chan os.Signal, 2)
	codes := make(chan int, 1)
	go func() { codes <- run(args, interrupts, &out, &errs) }()
	return interrupts, func() (int, fmt.Stringer, fmt.Stringer) { return <-codes, &out, &errs }
}

func TestOutput(t *testing.T) {
	for _, tt := range []struct {
		args string
		took time.Duration
		want string
	}{
		{"", 0, `event 1 queued
event 2 queued
event 3 dropped: queue full
event 4 dropped: queue full
consumer received [1, 2]
`},
		{"-capacity 3 -events 3", 0, `event 1 queued
event 2 queued
event 3 queued
consumer received [1, 2, 3]
`},
		{"-events 0", 0, "consumer received []\n"},
		{"-policy drop -work 1s -events 3", 2 * time.Second, `event 1 queued
event 2 queued
event 3 dropped: queue full
consumer received [1, 2]
`},
		{"-policy wait -work 1s -events 6", 6 * time.Second, `event 1 queued
event 2 queued
event 3 queued
event 4 queued
event 5 queued
event 6 queued
consumer received [1, 2, 3, 4, 5, 6]
`},
		// The consumer takes 1 at once and works for 120 ms; 2 and 3 fill the
		// queue; 4 and 5 give up after 50 ms each; 6 finds room after 20 ms.
		{"-policy timeout -work 120ms -events 6", 480 * time.Millisecond, `event 1 queued
event 2 queued
event 3 queued
event 4 dropped: no room after 50ms
event 5 dropped: no room after 50ms
event 6 queued
consumer received [1, 2, 3, 6]
`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, end := start(strings.Fields(tt.args)...)
				code, stdout, stderr := end()
				if code != 0 || stdout.String() != tt.want || stderr.String() != "" {
					t.Errorf("exit %d, stderr %q, stdout:\n%s\nwant:\n%s", code, stderr, stdout, tt.want)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

func TestInterruptStopsSendingAndReceivesWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, end := start("-policy", "wait", "-work", "1s", "-events", "6")
		time.Sleep(1500 * time.Millisecond) // 1 is done, 2 under way, 3 and 4 queued, 5 waits
		signals <- syscall.SIGINT
		code, stdout, stderr := end()
		want := `event 1 queued
event 2 queued
event 3 queued
event 4 queued
event 5: consumer stopped
event 6: consumer stopped
consumer received [1, 2, 3, 4]
`
		if code != 0 || stdout.String() != want || stderr.String() != "" {
			t.Errorf("exit %d, stderr %q, stdout:\n%s\nwant:\n%s", code, stderr, stdout, want)
		}
	})
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, end := start("-policy", "wait", "-work", "1h", "-events", "6")
		synctest.Wait()
		began := time.Now()
		signals <- syscall.SIGINT
		signals <- syscall.SIGINT
		code, _, stderr := end()
		if took := time.Since(began); code != 1 || took != 0 || !strings.Contains(stderr.String(), "second signal") {
			t.Errorf("exit %d after %v, %q: want 1 at once", code, took, stderr)
		}
		time.Sleep(24 * time.Hour) // the process is gone; here the consumer has to finish
	})
}

func TestAcceptedIsReceivedWhateverTheMomentOfTheInterrupt(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			policy := []string{"wait", "timeout", "drop"}[round%3]
			signals, end := start("-policy", policy, "-events", "200", "-work", "700us", "-timeout", "1ms", "-capacity", "3")
			time.Sleep(time.Duration(round*round) * 53 * time.Microsecond)
			select {
			case signals <- syscall.SIGINT:
			default:
			}
			code, out, stderr := end()
			stdout := out.String()
			var accepted []string
			for n := 1; n <= 200; n++ {
				if strings.Contains(stdout, fmt.Sprintf("event %d queued\n", n)) {
					accepted = append(accepted, fmt.Sprint(n))
				}
			}
			want := fmt.Sprintf("consumer received [%s]\n", strings.Join(accepted, ", "))
			if code != 0 || stderr.String() != "" || !strings.HasSuffix(stdout, want) || strings.Count(stdout, "\n") != 201 {
				t.Errorf("%s: exit %d, %q, stdout ends %q, want %q", policy, code, stderr, stdout[max(0, len(stdout)-100):], want)
			}
		})
	}
}

func TestBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-capacity 0":       "-capacity: 0 is out of range, 1 to 1000000",
		"-capacity 1000001": "-capacity: 1000001 is out of range, 1 to 1000000",
		"-events -1":        "-events: -1 is out of range, 0 to 1000000",
		"-events 1000001":   "-events: 1000001 is out of range, 0 to 1000000",
		"-policy block":     "-policy: block is not drop, wait or timeout",
		"-timeout 0":        "-timeout: 0s is out of range, 1ns to 1h",
		"-timeout 61m":      "-timeout: 1h1m0s is out of range, 1ns to 1h",
		"-work -1s":         "-work: -1s is out of range, 0s to 1h",
		"-work 61m":         "-work: 1h1m0s is out of range, 0s to 1h",
		"-capacity x":       `invalid value "x" for flag -capacity: parse error`,
		"-nope":             "flag provided but not defined: -nope",
		"drop":              `unexpected argument "drop": every setting is a flag`,
		"-capacity 0 -work -1s": "-capacity: 0 is out of range, 1 to 1000000\n" +
			"-work: -1s is out of range, 0s to 1h",
	} {
		_, end := start(strings.Fields(args)...)
		code, stdout, stderr := end()
		if code != 2 || stdout.String() != "" || stderr.String() != want+"\nbackpressure -h shows the flags\n" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, want 2 and %q", args, code, stdout, stderr, want)
		}
	}
}

func TestHelpShowsTheFlagsAndTheirDefaults(t *testing.T) {
	_, end := start("-h")
	code, stdout, stderr := end()
	if code != 0 || stderr.String() != "" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"-capacity int", "(default 2)", "-events int", "(default 4)", "-policy policy", `(default "drop")`,
		"-timeout duration", "(default 50ms)", "-work duration"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, stdout)
		}
	}
}

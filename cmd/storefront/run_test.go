package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/transcript"
)

// program is a whole process under a fake clock.
type program struct {
	*memnet.Network
	stdout, stderr transcript.Buffer
	signals        chan os.Signal
	code           chan int
}

// start runs the program until it listens, or ends.
func start(network *memnet.Network, env map[string]string, args ...string) *program {
	p := &program{Network: network, signals: make(chan os.Signal, 2), code: make(chan int, 1)}
	go func() {
		p.code <- process{
			args:    args,
			getenv:  func(name string) string { return env[name] },
			listen:  network.Listen,
			signals: p.signals,
			stdout:  &p.stdout,
			stderr:  &p.stderr,
		}.run()
	}()
	synctest.Wait()
	return p
}

func (p *program) get(t *testing.T, url string) string {
	t.Helper()
	transport := &http.Transport{DialContext: p.DialContext}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return resp.Status
}

func TestServesDrainsAndExitsWithZero(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(new(memnet.Network), nil)
				if got, want := p.stdout.String(), "storefront listens on http://127.0.0.1:3000\n"; got != want {
					t.Errorf("printed %q, want %q", got, want)
				}
				slow := make(chan string, 1)
				go func() { slow <- p.get(t, "http://localhost:3000/slow") }()
				time.Sleep(time.Second)
				p.signals <- signal
				synctest.Wait()
				if got := p.get(t, "http://localhost:3000/readyz"); got != "503 Service Unavailable" {
					t.Errorf("/readyz while draining: %s, want 503", got)
				}
				if got := <-slow; got != "200 OK" {
					t.Errorf("accepted work: %s, want 200", got)
				}
				if code := <-p.code; code != 0 {
					t.Errorf("exit %d, want 0; stderr:\n%s", code, &p.stderr)
				}
			})
		})
	}
}

func TestDrainThatRunsOutOfTimeExitsWithOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(new(memnet.Network), nil, "-slow-work", "1h", "-drain-timeout", "3s")
		go p.get(t, "http://localhost:3000/slow")
		synctest.Wait()
		begun := time.Now()
		p.signals <- syscall.SIGTERM
		code := <-p.code
		if took := time.Since(begun); code != 1 || took < 3*time.Second || took > 4*time.Second {
			t.Errorf("exit %d after %v, want 1 after 3s", code, took)
		}
		if !strings.HasSuffix(p.stderr.String(), "storefront: drain ran out of time after 3s\n") {
			t.Errorf("stderr:\n%s", &p.stderr)
		}
	})
}

func TestSecondSignalExitsWithOneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(new(memnet.Network), nil, "-slow-work", "1h")
		go p.get(t, "http://localhost:3000/slow")
		synctest.Wait()
		begun := time.Now()
		p.signals <- syscall.SIGINT
		p.signals <- syscall.SIGINT
		code := <-p.code
		if took := time.Since(begun); code != 1 || took != 0 {
			t.Errorf("exit %d after %v, want 1 at once", code, took)
		}
		time.Sleep(time.Minute) // the process is gone; here the drain has to finish
	})
}

// A log that nobody reads holds up the drain, but neither its timeout nor the
// second signal.
func TestEndsEvenWhenTheLogIsStuck(t *testing.T) {
	for signalled, want := range map[int]time.Duration{1: 12 * time.Second, 2: 0} {
		synctest.Test(t, func(t *testing.T) {
			stuck := make(chan struct{})
			signals := make(chan os.Signal)
			code := make(chan int, 1)
			go func() {
				code <- process{
					getenv:  func(string) string { return "" },
					listen:  new(memnet.Network).Listen,
					signals: signals,
					stdout:  io.Discard,
					stderr:  stuckWriter(stuck),
				}.run()
			}()
			for range signalled {
				signals <- syscall.SIGTERM
			}
			start := time.Now()
			if code := <-code; code != 1 || time.Since(start) != want {
				t.Errorf("%d signals: exit %d after %v, want 1 after %v", signalled, code, time.Since(start), want)
			}
			close(stuck)
			time.Sleep(time.Minute) // the process is gone; here the drain has to finish
		})
	}
}

// With nothing to wait for, no timeout is too short.
func TestIdleDrainNeverRunsOutOfTime(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			p := start(new(memnet.Network), nil, "-drain-timeout", "1ms")
			p.signals <- syscall.SIGTERM
			if code := <-p.code; code != 0 {
				t.Errorf("exit %d, want 0; stderr:\n%s", code, &p.stderr)
			}
		})
	}
}

type stuckWriter chan struct{}

func (w stuckWriter) Write(p []byte) (int, error) { <-w; return len(p), nil }

func TestPortInUseIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		first := start(&network, nil)
		second := start(&network, nil)
		want := "storefront: 127.0.0.1:3000 is in use: stop what runs there, or try -addr 127.0.0.1:0 for a free port\n"
		if code := <-second.code; code != 1 || second.stderr.String() != want || second.stdout.String() != "" {
			t.Errorf("exit %d, stdout %q, stderr %q, want 1 and %q", code, &second.stdout, &second.stderr, want)
		}
		first.signals <- syscall.SIGTERM
		<-first.code
	})
}

func TestPortInUseOnARealSocket(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var out, errs bytes.Buffer
	code := process{
		args:   []string{"-addr", taken.Addr().String()},
		getenv: func(string) string { return "" },
		listen: net.Listen,
		stdout: &out,
		stderr: &errs,
	}.run()
	if code != 1 || !strings.HasPrefix(errs.String(), "storefront: "+taken.Addr().String()+" is in use: ") || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit %d, stderr %q, want 1 and one line", code, &errs)
	}
}

func TestPrintsTheURLThatItGot(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "http://127.0.0.1:49152",
		":0":          "http://localhost:49152",
		"0.0.0.0:80":  "http://localhost:80",
		"[::]:80":     "http://localhost:80",
		"[::1]:80":    "http://[::1]:80",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := start(new(memnet.Network), nil, "-addr", addr)
			if got := p.stdout.String(); got != "storefront listens on "+want+"\n" {
				t.Errorf("-addr %s: printed %q, want %s", addr, got, want)
			}
			p.signals <- syscall.SIGTERM
			<-p.code
		})
	}
}

func TestLogFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-log-level debug":                   "level=DEBUG msg=request method=GET route=/healthz code=200",
		"-log-level debug -log-format json":  `"level":"DEBUG","msg":"request","method":"GET","route":"/healthz","code":200`,
		"-log-level info":                    "level=INFO msg=draining timeout=10s",
		"-log-level info -drain-timeout 10m": "level=INFO msg=draining timeout=10m0s",
		"-log-level INFO -log-format json":   `"msg":"draining","timeout":"10s"}`,
		"-log-level warn":                    "",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := start(new(memnet.Network), nil, strings.Fields(args)...)
			p.get(t, "http://127.0.0.1:3000/healthz")
			p.signals <- syscall.SIGTERM
			<-p.code
			if got := p.stderr.String(); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s: logged\n%s\nwant %s", args, got, want)
			}
		})
	}
}

func TestVersionIsPrintedAndNothingServed(t *testing.T) {
	p := process{args: []string{"-version"}, getenv: os.Getenv}
	var out bytes.Buffer
	p.stdout = &out
	if code := p.run(); code != 0 || !strings.HasPrefix(out.String(), "storefront ") || !strings.Contains(out.String(), " go1.") {
		t.Errorf("exit %d, %q", code, out.String())
	}
}

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// instances is scripts/instances.sh in a process group of its own, which must leave nothing
// behind when it ends.
type instances struct {
	*exec.Cmd
	tmp string
	out strings.Builder
}

func newInstances(t *testing.T, args ...string) *instances {
	t.Helper()
	if os.Getenv("STOREFRONT_FOR_REAL") == "" {
		t.Skip("takes real time: scripts/lessons.sh runs it")
	}
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("STOREFRONT_REDIS_SERVER") != "required" {
		t.Skipf("needs a Redis: %v", err)
	}
	i := &instances{Cmd: exec.Command("scripts/instances.sh", args...), tmp: t.TempDir()}
	i.Dir, i.Env = root, append(environ(), "TMPDIR="+i.tmp)
	i.Stdout, i.Stderr = &i.out, &i.out
	i.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return i
}

func (i *instances) wantNothingLeft(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-i.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("processes are left: %v", err)
		_ = syscall.Kill(-i.Process.Pid, syscall.SIGKILL)
	}
	left, err := os.ReadDir(i.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("a file is left: %s", f.Name())
	}
}

func TestInstancesForReal(t *testing.T) {
	const want = `each for itself:  15 served, 10 refused
with -redis:      3 served, 22 refused
Redis killed:     15 served, 10 refused, 5 of 5 instances degraded
`
	if !strings.Contains(markdown(t, root+"/README.md"), "scripts/instances.sh\n```\n\nsends 25 requests with one key to five instances in turn, and prints\n\n```text\n"+want+"```\n") {
		t.Error("the README shows something else")
	}
	for range 3 {
		i := newInstances(t)
		err := i.Run()
		i.wantNothingLeft(t)
		got := i.out.String()
		if strings.Contains(got, "a busy machine") {
			t.Logf("once more, as instances decided alone:\n%s", got)
			continue
		}
		if err != nil || got != want {
			t.Errorf("%v, got:\n%swant:\n%s", err, got, want)
		}
		return
	}
	t.Error("the machine is too busy")
}

func TestInterruptedInstancesForReal(t *testing.T) {
	i := newInstances(t)
	i.Stdout = nil
	out, err := i.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("printed %q, %v", line, err)
	}
	if err := i.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := i.Wait(); err == nil {
		t.Error("ended well")
	}
	i.wantNothingLeft(t)
}

func TestInstancesTakesNoArgumentsForReal(t *testing.T) {
	i := newInstances(t, "5")
	_ = i.Run() // its exit code is looked at below
	if got, want := i.out.String(), "instances: unexpected argument \"5\"\n"; i.ProcessState.ExitCode() != 2 || got != want {
		t.Errorf("exit %d, got:\n%swant:\n%s", i.ProcessState.ExitCode(), got, want)
	}
	i.wantNothingLeft(t)
}

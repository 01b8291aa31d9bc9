// Package browser tests the live page in a real browser, against a real server.
package browser

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is for what must happen at all; a machine may be busy.
const patience = time.Minute

var (
	chrome string // the browser, empty if there is none
	binary string // the server
)

func TestMain(m *testing.M) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chrome = path
			break
		}
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "storefront")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "storefront")
		build := exec.Command("go", "build", "-o", binary, "./cmd/storefront")
		build.Dir, build.Stderr = "../..", os.Stderr
		if err := build.Run(); err != nil {
			return 1
		}
		return m.Run()
	}())
}

// page is the live page of a server of its own, in a window of its own.
type page struct {
	*testing.T
	ctx    context.Context
	url    string
	server *exec.Cmd
	flags  []string

	mu       sync.Mutex
	problems []string // guarded by mu; what the console complains about
	requests []string // guarded by mu; the URLs asked for
}

// open serves with these flags and shows the page, 1440 by 900 pixels large. The test fails
// if the browser complains in its console or asks for anything from elsewhere.
func open(t *testing.T, flags ...string) *page {
	t.Helper()
	if chrome == "" {
		const missing = "there is no chromium, chromium-browser or google-chrome in PATH (Debian: apt-get install chromium)"
		if os.Getenv("STOREFRONT_BROWSER") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	p := &page{T: t, flags: flags}
	p.url = p.serve("127.0.0.1:0")
	t.Cleanup(p.stop)

	options := append([]chromedp.ExecAllocatorOption{},
		chromedp.ExecPath(chrome), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), // which is small in a container
		chromedp.WSURLReadTimeout(time.Minute))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	p.ctx = ctx
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	p.do(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(p.url))
	p.wait("the cards", `document.querySelectorAll('.card').length === 4`)
	t.Cleanup(p.check)
	return p
}

// serve starts the server, and returns its URL.
func (p *page) serve(addr string) string {
	p.Helper()
	p.server = exec.Command(binary, append([]string{"-addr", addr}, p.flags...)...)
	p.server.Stderr = os.Stderr
	if testing.Verbose() {
		p.server.Stderr = nil
	}
	out, err := p.server.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := p.server.Start(); err != nil {
		p.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.Fatal(err)
	}
	_, at, ok := strings.Cut(strings.TrimSpace(line), "listens on ")
	if !ok {
		p.Fatalf("the server printed %q", line)
	}
	return at
}

func (p *page) stop() {
	if p.server.ProcessState == nil {
		_ = p.server.Process.Kill()
		_ = p.server.Wait() // it was killed
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startRedis starts a Redis for the rest of the test.
func startRedis(t *testing.T, port string) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("STOREFRONT_REDIS_SERVER") == "required" {
			t.Fatal(err)
		}
		t.Skipf("the rest needs a Redis: %v", err)
	}
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
}

func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			p.problems = append(p.problems, fmt.Sprintf("console.%s: %s", e.Type, cmp.Or(arg.Description, string(arg.Value))))
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception.Description))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

// check is for the end of a test.
func (p *page) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.Errorf("the console says %s", problem)
	}
	if !slices.Contains(p.requests, p.url+"/events") {
		p.Errorf("no request for /events was seen, only %q", p.requests)
	}
	home, err := url.Parse(p.url)
	if err != nil {
		p.Fatal(err)
	}
	for _, request := range p.requests {
		if u, err := url.Parse(request); err != nil || u.Host != home.Host {
			p.Errorf("a request to elsewhere: %s", request)
		}
	}
}

// forgive drops the complaints about a lost connection, which a test has provoked.
func (p *page) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = slices.DeleteFunc(p.problems, func(problem string) bool { return strings.Contains(problem, "net::ERR_") })
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.Fatal(err)
	}
}

// get returns the value of an action.
func get[T any](p *page, action chromedp.Action[T]) T {
	p.Helper()
	value, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.Fatal(err)
	}
	return value
}

// call returns the result of a command of the protocol.
func call[P, R any](p *page, command cdp.Command[P, R], params P) R {
	p.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.Fatal(err)
	}
	return result
}

// wait returns when a condition in JavaScript holds.
func (p *page) wait(what, condition string) {
	p.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		p.Fatalf("waiting for %s: %v; the page shows\n%s", what, err, eval[string](p, `document.body.innerText.replace(/\s*\n\s*/g, ' | ')`))
	}
}

// eval returns the value of an expression.
func eval[T any](p *page, expression string) T {
	p.Helper()
	return get(p, chromedp.Evaluate[T](expression))
}

// card is an expression for an element in the card of a dependency.
func card(dependency, selector string) string {
	return fmt.Sprintf("document.querySelector(`[data-dependency=%s] %s`)", dependency, selector)
}

// button is an expression for the one with this name, within the element that a selector
// finds.
func button(within, name string) string {
	return fmt.Sprintf("[...document.querySelectorAll(`%s button`)].find(b => (b.ariaLabel ?? b.textContent) === %q)", within, name)
}

// at is where an element is, which must be the topmost there.
func (p *page) at(element string) (x, y float64) {
	p.Helper()
	at := eval[[]float64](p, fmt.Sprintf(`(() => {
		const e = %s;
		e.scrollIntoView({block: 'center'});
		const r = e.getBoundingClientRect();
		const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
		return e.contains(document.elementFromPoint(x, y)) ? [x, y] : [];
	})()`, element))
	if len(at) != 2 {
		p.Fatalf("%s cannot be seen", element)
	}
	return at[0], at[1]
}

func (p *page) click(element string) {
	p.Helper()
	x, y := p.at(element)
	p.do(chromedp.MouseClickXY(x, y))
}

// point moves the pointer there.
func (p *page) point(element string) {
	p.Helper()
	x, y := p.at(element)
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// fault clicks a fault button and waits until it is in force.
func (p *page) fault(dependency, name string) {
	p.Helper()
	b := button("[data-dependency="+dependency+"]", name)
	p.click(b)
	p.wait(name+" of "+dependency, b+`.ariaPressed === 'true'`)
}

// send clicks a button that sends requests, and waits until all are answered. It returns what
// came.
func (p *page) send(n int, path string) []string {
	p.Helper()
	name := fmt.Sprintf("send %d requests to %s", n, path)
	if n == 1 {
		name = "send 1 request to " + path
	}
	row := "document.querySelector(`[data-path='" + path + "']`)"
	p.click(button("[data-path='"+path+"']", name))
	p.wait("answers to "+name, fmt.Sprintf(`%[1]s.querySelector('.progress').textContent === '%[2]d of %[2]d' && !%[1]s.querySelector('[data-running]')`, row, n))
	return eval[[]string](p, `[...`+row+`.querySelectorAll('.answers li')].map(li => li.textContent)`)
}

// key fills in the key with which requests are sent.
func (p *page) key(value string) {
	p.Helper()
	eval[string](p, fmt.Sprintf("document.getElementById('send-key').value = %q", value))
}

// ask asks the server, past the browser.
func (p *page) ask(path string) {
	p.Helper()
	resp, err := http.Get(p.url + path)
	if err != nil {
		p.Fatal(err)
	}
	resp.Body.Close()
}

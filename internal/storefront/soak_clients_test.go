package storefront

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// soakers is how many clients there are at once: more than /slow has room for.
const soakers = 16

// soakClients ask for everything, and do what clients do. They remember what they saw.
type soakClients struct {
	addr string
	http *http.Client
	runs uint64

	mu       sync.Mutex
	answered map[routeCode]int // guarded by mu
	left     map[string]int    // guarded by mu; whole requests whose answer nobody read, by route
}

func newSoakClients(addr string) *soakClients {
	return &soakClients{
		addr:     addr,
		http:     &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakers + 1}, Timeout: 30 * time.Second},
		answered: map[routeCode]int{},
		left:     map[string]int{},
	}
}

// run lets them loose for a while, and returns when the last has finished what it had begun.
func (c *soakClients) run(t *testing.T, d time.Duration) {
	t.Helper()
	c.runs++
	end := time.Now().Add(d)
	var group sync.WaitGroup
	loop := func(seed uint64, act func(rng *rand.Rand)) {
		group.Go(func() {
			for rng := rand.New(rand.NewPCG(c.runs, seed)); time.Now().Before(end) && !t.Failed(); {
				act(rng)
			}
		})
	}
	for i := range uint64(soakers) {
		loop(i, func(rng *rand.Rand) {
			if err := c.act(rng); err != nil {
				t.Error(err)
			}
		})
	}
	loop(soakers, func(rng *rand.Rand) {
		if err := c.breakSomething(rng); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(100+rng.IntN(200)) * time.Millisecond)
	})
	group.Wait()
}

// act does what a client does: mostly it asks and reads the answer.
func (c *soakClients) act(rng *rand.Rand) error {
	time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
	switch n := rng.IntN(1000); {
	case n < 3: // half a header, held until the server has had enough of it
		return c.half("GET /checkout HTTP/1.1\r\nHost: 127.0", true, "")
	case n < 30: // half a header, and gone
		return c.half("GET /checkout HTTP/1.1\r\nHost: 127.0", false, "")
	case n < 33:
		return c.half(halfCharge, true, "/charge")
	case n < 60:
		return c.half(halfCharge, false, "/charge")
	case n < 80:
		return c.watch(time.Duration(rng.IntN(200)) * time.Millisecond)
	case n < 250:
		return c.leave(soakRequestOf(rng), time.Duration(rng.IntN(50))*time.Millisecond)
	default:
		return c.ask(soakRequestOf(rng))
	}
}

const halfCharge = "POST /charge HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 34\r\n\r\n{\"amount\""

// soakRequest is a request, and the route that counts it.
type soakRequest struct{ route, method, path, key, body string }

func soakRequestOf(rng *rand.Rand) soakRequest {
	switch rng.IntN(12) {
	case 0, 1:
		return soakRequest{route: "/checkout", method: "GET", path: "/checkout"}
	case 2, 3:
		return soakRequest{route: "/stock/{sku}", method: "GET", path: "/stock/mug"}
	case 4:
		return soakRequest{route: "/charge", method: "POST", path: "/charge", body: mug}
	case 5:
		return soakRequest{route: "/charge", method: "POST", path: "/charge", body: mug, key: fmt.Sprint("key-", rng.IntN(50))}
	case 6, 7:
		return soakRequest{route: "/profile/{id}", method: "GET", path: "/profile/" + []string{"ada", "nobody"}[rng.IntN(2)]}
	case 8:
		return soakRequest{route: "/limited", method: "GET", path: "/limited", key: fmt.Sprint("key-", rng.IntN(20))}
	case 9, 10:
		return soakRequest{route: "/slow", method: "GET", path: "/slow"}
	default:
		path := []string{"/status", "/metrics", "/healthz", "/readyz", "/faults", "/"}[rng.IntN(6)]
		return soakRequest{route: path, method: "GET", path: path}
	}
}

// ask reads the whole answer.
func (c *soakClients) ask(what soakRequest) error {
	req, err := http.NewRequest(what.method, "http://"+c.addr+what.path, strings.NewReader(what.body))
	if err != nil {
		return err
	}
	if what.key != "" {
		req.Header.Set("X-API-Key", what.key)
		req.Header.Set("Idempotency-Key", what.key)
	}
	return c.exchange(req, what.route)
}

func (c *soakClients) exchange(req *http.Request, route string) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("%s: reading the answer: %w", route, err)
	}
	c.saw(route, resp.StatusCode)
	return nil
}

func (c *soakClients) saw(route string, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered[routeCode{route, code}]++
}

// leave sends the whole request, and hangs up after a while.
func (c *soakClients) leave(what soakRequest, after time.Duration) error {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	key := ""
	if what.key != "" {
		key = fmt.Sprintf("X-API-Key: %s\r\nIdempotency-Key: %[1]s\r\n", what.key)
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		what.method, what.path, c.addr, key, len(what.body), what.body); err != nil {
		return err
	}
	c.mu.Lock()
	c.left[what.route]++
	c.mu.Unlock()
	time.Sleep(after)
	return nil
}

// half sends what is not a whole request. Then it hangs up or, if it is held, waits until
// the server does. The route is where it counts, empty if it has not come to one.
func (c *soakClients) half(request string, held bool, route string) error {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	if !held {
		if route != "" {
			c.mu.Lock()
			c.left[route]++
			c.mu.Unlock()
		}
		return nil
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return fmt.Errorf("half a request, held: %w", err)
	}
	if route != "" {
		if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			return fmt.Errorf("half a body: answered %.100q, want a 408", answer)
		}
		c.saw(route, 408)
	}
	return nil
}

// watch reads the events for a while.
func (c *soakClients) watch(d time.Duration) error {
	resp, err := c.http.Get("http://" + c.addr + "/events")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.saw("/events", resp.StatusCode)
	timer := time.AfterFunc(d, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, resp.Body) // always ends with an error: the body was closed
	return nil
}

// breakSomething sets a fault, or takes one away.
func (c *soakClients) breakSomething(rng *rand.Rand) error {
	method, fields := "DELETE", url.Values{}
	if rng.IntN(4) > 0 {
		method = "PUT"
		script := "F" // one time of four it is down
		if rng.IntN(4) > 0 {
			script = ""
			for range 1 + rng.IntN(6) {
				script += string("SSSFFHRML"[rng.IntN(9)])
			}
		}
		fields.Set("script", script)
		fields.Set("latency", fmt.Sprint(rng.IntN(20), "ms"))
	}
	name := []string{flaky, inventory, payments, profiles}[rng.IntN(4)]
	req, err := http.NewRequest(method, "http://"+c.addr+"/faults/"+name, strings.NewReader(fields.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.exchange(req, "/faults/{dependency}")
}

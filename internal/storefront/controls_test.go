package storefront

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// Every control, with the answer that it gets where it is allowed.
var everyControl = []struct{ method, path, want string }{
	{"PUT", "/faults/flaky", `200 {"script":"FFS","next":0,"status":503}`},
	{"DELETE", "/faults/flaky", `200 {"script":"FFS","next":0,"status":503}`},
	{"DELETE", "/faults", `200 {"flaky":`},
	{"POST", "/reset", "200 reset"},
	{"POST", "/send", "400 the body: must be a form"}, // allowed
	{"GET", "/stock/mug?without=retry", `200 {"sku":"mug","stock":12}`},
	{"GET", "/checkout?without=bulkhead", `200 {"call":3}`},
	{"GET", "/profile/ada?without=timeout", `200 {"id":"ada","name":"Ada Lovelace"}`},
	{"POST", "/charge?without=breaker", `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`},
}

func TestControlsAreForThisMachineUnlessToldOtherwise(t *testing.T) {
	const off = "403 controls are off, as other machines can reach this server; -controls on allows them"
	const foreign = "403 controls are for requests to localhost or an IP address"
	for _, tt := range []struct {
		controls Controls
		listen   string
		host     string
		want     string // empty: allowed
	}{
		{"", "127.0.0.1:3000", "127.0.0.1:3000", ""},
		{"", "127.0.0.1:3000", "localhost:3000", ""},
		{"", "127.0.0.1:3000", "LOCALHOST", ""},
		{"", "127.0.0.1:3000", "[::1]:3000", ""},
		{"", "127.0.0.1:3000", "[::1]", ""},
		{"", "127.0.0.1:3000", "192.0.2.7", ""},
		{"", "127.0.0.1:3000", "evil.example:3000", foreign},
		{"", "127.0.0.1:3000", "localhost.evil.example", foreign},
		{"", "127.0.0.1:3000", "127.0.0.1.evil.example", foreign},
		{"", "127.0.0.1:3000", "", foreign},
		{"", "127.9.9.9:80", "localhost", ""},
		{"", "[::1]:3000", "localhost", ""},
		{"", "[::]:3000", "localhost", off}, // all addresses, so :0 too
		{"", "0.0.0.0:3000", "127.0.0.1", off},
		{"", "192.0.2.7:3000", "192.0.2.7:3000", off},
		{ControlsAuto, "127.0.0.1:3000", "localhost", ""},
		{ControlsAuto, "[::]:3000", "localhost", off},
		{ControlsOn, "[::]:3000", "evil.example", ""},
		{ControlsOn, "127.0.0.1:3000", "evil.example", ""},
		{ControlsOff, "127.0.0.1:3000", "localhost", "403 controls are off, by -controls off"},
	} {
		for _, c := range everyControl {
			inBubble(t, Config{Controls: tt.controls}, func(w *world) {
				address, err := net.ResolveTCPAddr("tcp", tt.listen)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // until it serves
				w.service.address = address
				body := ""
				if c.method == "POST" {
					body = mug
				}
				got := w.raw(c.method+" "+c.path, "Host: "+tt.host, body)
				want := tt.want
				if want == "" {
					want = c.want
				}
				if !strings.HasPrefix(got.String(), want) {
					w.Errorf("controls %q, listening on %s, Host %q: %s %s: %q, want %q", tt.controls, tt.listen, tt.host, c.method, c.path, got, want)
				}
				for _, path := range []string{"/faults", "/faults/flaky", "/status", "/stock/mug"} {
					if got := w.raw("GET "+path, "Host: "+tt.host, ""); got.status != 200 {
						w.Errorf("controls %q, Host %q: %s: %v, as if it were a control", tt.controls, tt.host, path, got)
					}
				}
			})
		}
	}
}

// A refused control changes nothing.
func TestRefusedControlsChangeNothing(t *testing.T) {
	inBubble(t, Config{Controls: ControlsOff}, func(w *world) {
		w.get("/checkout")
		w.get("/limited")
		before := w.get("/status").body
		for _, c := range everyControl {
			w.send(w.Context(), c.method, c.path)
		}
		w.put("/faults/flaky", "script=X") // no telling what is wrong with it, either
		if after := w.get("/status").body; after != before {
			w.Errorf("before %s\nafter  %s", before, after)
		}
	})
}

// The handler that New returns does not know where it is served.
func TestControlsUnderNewGoByWhereTheRequestCameIn(t *testing.T) {
	h, err := New(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]int{"127.0.0.1:80": 200, "[::ffff:127.0.0.1]:80": 200, "192.0.2.7:80": 403, "": 403} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/reset", nil)
		if address != "" {
			local, err := net.ResolveTCPAddr("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			r = r.WithContext(withLocalAddr(r.Context(), local))
		}
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != want {
			t.Errorf("a request to %q: %d %s, want %d", address, rec.Code, rec.Body, want)
		}
	}
}

// A web page may make a browser on this machine send anything, but not hide where it
// comes from.
func TestWritesFromPagesOfAnotherOriginAreRefusedEverywhere(t *testing.T) {
	const refused = "403 a web page of another origin may not do this"
	for _, controls := range []Controls{ControlsAuto, ControlsOn} {
		inBubble(t, Config{Controls: controls}, func(w *world) {
			for _, tt := range []struct{ method, path string }{
				{"PUT", "/faults/flaky"}, {"DELETE", "/faults/flaky"}, {"DELETE", "/faults"}, {"POST", "/reset"}, {"POST", "/send"},
				{"POST", "/charge"}, {"POST", "/upstream/payments/charge"}, {"POST", "/checkout"}, {"PATCH", "/nope"},
			} {
				for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://evil.example", "Origin: http://127.0.0.1:4000", "Origin: null"} {
					got := w.sendBody(w.Context(), tt.method, tt.path, strings.NewReader(mug), header)
					w.want(got, refused)
				}
			}
			w.want(w.get("/upstream/payments/charges"), "200 []")
			for _, header := range []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "Origin: http://127.0.0.1:3000"} {
				w.want(w.sendBody(w.Context(), http.MethodPost, "/reset", nil, header), "200 reset")
			}
			w.want(w.get("/limited", "Sec-Fetch-Site: cross-site", "Origin: http://evil.example"), "200 ok") // a read
		})
	}
}

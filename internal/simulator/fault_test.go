package simulator

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestFaultsAsForms(t *testing.T) {
	for _, tt := range []struct{ form, want string }{
		{"", `{"script":"FFS","next":0,"status":503}`},
		{"script=F", `{"script":"F","next":0,"status":503}`},
		{"script=SFHRML", `{"script":"SFHRML","next":0,"status":503}`},
		{"script=" + strings.Repeat("S", 64), `{"script":"` + strings.Repeat("S", 64) + `","next":0,"status":503}`},
		{"status=400", `{"script":"F","next":0,"status":400}`},
		{"status=599&script=SF", `{"script":"SF","next":0,"status":599}`},
		{"retry_after=Fri, 31 Dec 1999 23:59:59 GMT", `{"script":"F","next":0,"status":503,"retry_after":"Fri, 31 Dec 1999 23:59:59 GMT"}`},
		{"retry_after=1" + strings.Repeat("+", 62) + "1", `{"script":"F","next":0,"status":503,"retry_after":"1` + strings.Repeat(" ", 62) + `1"}`},
		{"retry_after=%2B3", `{"script":"F","next":0,"status":503,"retry_after":"+3"}`},
		{"latency=2s", `{"script":"FFS","next":0,"status":503,"latency":"2s"}`},
		{"latency=0", `{"script":"FFS","next":0,"status":503}`},
		{"latency=30s&script=H", `{"script":"H","next":0,"status":503,"latency":"30s"}`},

		{"script=" + strings.Repeat("S", 65), `script: 65 letters are too many, 1 to 64`},
		{"script=", `script: must not be empty`},
		{"script=f", `script: "f" must have only the letters S, F, H, R, M and L, in upper case`},
		{"script=S F", `script: "S F" must have only the letters S, F, H, R, M and L, in upper case`},
		{"script=S%0aF", `script: "S\nF" must have only the letters S, F, H, R, M and L, in upper case`},
		{"script=S&script=F", `script: given twice`},
		{"status=399", `status: must be a whole number from 400 to 599`},
		{"status=600", `status: must be a whole number from 400 to 599`},
		{"status=0x1f7", `status: must be a whole number from 400 to 599`},
		{"status=5_03", `status: must be a whole number from 400 to 599`},
		{"status=%2B503", `status: must be a whole number from 400 to 599`},
		{"status=66039", `status: must be a whole number from 400 to 599`},
		{"status=0", `status: must be a whole number from 400 to 599`},
		{"status=503.0", `status: must be a whole number from 400 to 599`},
		{"status=", `status: must be a whole number from 400 to 599`},
		{"latency=30s1ns", `latency: 30.000000001s is out of range, 0s to 30s`},
		{"latency=-1ns", `latency: -1ns is out of range, 0s to 30s`},
		{"latency=2", `latency: "2" is not a duration like 250ms or 2s`},
		{"latency=", `latency: "" is not a duration like 250ms or 2s`},
		{"latency=" + strings.Repeat("9", 100), `latency: "` + strings.Repeat("9", 40) + `…" is not a duration like 250ms or 2s`},
		{"retry_after=", `retry_after: must not be empty`},
		{"retry_after=+", `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"retry_after=1%0d%0aSet-Cookie: x", `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"retry_after=+5", `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"retry_after=5+", `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"retry_after=1" + strings.Repeat("+", 63) + "1", `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"retry_after=ü", `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"retry_after=" + strings.Repeat("1", 65), `retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible`},
		{"scripts=F", `"scripts": unknown field; try script, status, latency or retry_after`},
		{"Script=F", `"Script": unknown field; try script, status, latency or retry_after`},
		{"script=F&x%0ay=1", `"x\ny": unknown field; try script, status, latency or retry_after`},
	} {
		form, err := url.ParseQuery(tt.form)
		if err != nil {
			t.Fatal(err)
		}
		d := Flaky()
		set(t, d, Fault{Script: "M"})
		f, err := ParseFault(form)
		if err == nil {
			_, err = d.Set(f)
		}
		got := ""
		if err != nil {
			got = err.Error()
			if d.Setting().Script != "M" {
				t.Errorf("%s: refused, and in force: %+v", tt.form, d.Setting())
			}
		} else {
			body, err := json.Marshal(d.Setting())
			if err != nil {
				t.Fatal(err)
			}
			got = string(body)
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.form, got, tt.want)
		}
	}
}

func TestSettingSaysWhereTheScriptStands(t *testing.T) {
	f := Flaky()
	for n := range 7 {
		for range 2 { // looking moves nothing
			if got := f.Setting().Next; got != n%3 {
				t.Errorf("after %d calls: next %d, want %d", n, got, n%3)
			}
		}
		ask(f, "GET", "")
	}
	set(t, f, Fault{Script: "SF"})
	if got, want := f.Setting(), (Setting{Script: "SF", Status: 503}); got != want {
		t.Errorf("set anew: %+v, want %+v", got, want)
	}
	f.Reset()
	if got, want := f.Setting(), (Setting{Script: "FFS", Status: 503}); got != want {
		t.Errorf("reset: %+v, want %+v", got, want)
	}
}

func FuzzFault(f *testing.F) {
	for _, seed := range []string{"", "script=F", "status=503&latency=2s", "retry_after=120", "script=S&script=F", "latency=1h", "a%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		form, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		fault, err := ParseFault(form)
		d := Flaky()
		if err == nil {
			_, err = d.Set(fault)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: the error has more than one line: %q", query, err)
			}
			return
		}
		s := d.Setting()
		if s.Script == "" || len(s.Script) > 64 || strings.Trim(s.Script, "SFHRML") != "" || s.Status < 400 || s.Status > 599 ||
			strings.ContainsAny(s.RetryAfter, "\r\n\x00") {
			t.Errorf("%q: in force: %+v", query, s)
		}
	})
}

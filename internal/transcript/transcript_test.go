package transcript

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
)

const page = "# Title\n\n```console\n$ one\n1\n$ two\n$ three\n3\n\n3\n```\n\n```sh\nnot run\n```\n"

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func steps(t *testing.T, file string) []Step {
	t.Helper()
	blocks, err := Blocks(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := blocks[0].Steps()
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestBlocksAndSteps(t *testing.T) {
	file := write(t, page)
	blocks, err := Blocks(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 2 || blocks[0].Lang != "console" || blocks[0].Line != 3 || blocks[1].Lang != "sh" || blocks[1].Line != 13 {
		t.Errorf("blocks %+v", blocks)
	}
	want := []Step{{file, 4, "one", "1\n"}, {file, 6, "two", ""}, {file, 7, "three", "3\n\n3\n"}}
	if got := steps(t, file); !reflect.DeepEqual(got, want) {
		t.Errorf("steps %+v, want %+v", got, want)
	}
}

func TestMalformedPagesNameTheLine(t *testing.T) {
	if _, err := Blocks(write(t, "a\n```sh\nb\n")); err == nil || !strings.Contains(err.Error(), "page.md:2: the block is not closed") {
		t.Errorf("open block: %v", err)
	}
	for text, want := range map[string]string{
		"```bash\nb\n```\n":         "page.md:1: \"```bash\" is no fence of console, sh or text",
		"a\n  ```console\nb\n":      "page.md:2: \"  ```console\" is no fence",
		"~~~\nb\n~~~\n":             "page.md:1: \"~~~\" is no fence",
		"```console\n$ a\n```sh\n":  "page.md:3: \"```sh\" is no fence",
		"```text\n$ a\n```\n":       "page.md:2: a command outside of a console block",
		"```sh\n$ a\n```\n":         "page.md:2: a command outside of a console block",
		"    $ a\n":                 "page.md:1: a command outside of a console block",
		"```console\n $ a\n```\n":   "page.md:2: a command outside of a console block",
		"```console\n$ a\n…\n```\n": "page.md:3: … alone on a line says nothing",
	} {
		if _, err := Blocks(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := (Block{File: "page.md", Line: 7, Lines: []string{"output"}}).Steps(); err == nil || err.Error() != "page.md:8: output before the first command" {
		t.Errorf("output first: %v", err)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		ok        bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "a", false},
		{"a\n", "b\n", false},
		{"a.c\n", "abc\n", false},
		{"a … c\n", "a b c\n", true},
		{"a …\n", "a b c\n", true},
		{"a…\n", "a\nb\n", false},
		{"…a\n", "a\nb\n", false},
		{"Date: …\nx\n", "Date: today\nx\n", true},
	} {
		if got := Matches(tt.want, tt.got); got != tt.ok {
			t.Errorf("want %q, got %q: %v", tt.want, tt.got, got)
		}
	}
}

func TestUpdate(t *testing.T) {
	file := write(t, page)
	s := steps(t, file)
	for _, u := range []struct {
		step Step
		got  string
	}{{s[2], "drei\n"}, {s[1], "zwei\n"}, {s[0], ""}} {
		if err := u.step.Update(u.got); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Replace(page, "$ one\n1\n$ two\n$ three\n3\n\n3\n", "$ one\n$ two\nzwei\n$ three\ndrei\n", 1)
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// shell has a server at localhost:3000 that echoes the request.
func shell(t *testing.T) *Shell {
	t.Helper()
	var network memnet.Network
	ln, err := network.Listen("tcp", "127.0.0.1:3000")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Key", strings.Join(r.Header.Values("x-api-key"), "+"))
		w.WriteHeader(418)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
	})}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	s, err := NewShell(map[string]Command{"curl": Curl(network.DialContext)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shell(t)
		for _, tt := range []struct {
			line string
			took time.Duration
			want string
		}{
			{`curl -s -w '\n' localhost:3000/a`, 0, "GET /a \n"},
			{`curl -s -o /dev/null -w '%{http_code}\n' localhost:3000/a`, 0, "418\n"},
			{`curl -s localhost:3000 >/dev/null`, 0, ""},
			{`curl -sX PUT localhost:3000/a -d x=1`, 0, "PUT /a x=1"},
			{`curl -s localhost:3000/a -d x=1`, 0, "POST /a x=1"},
			{`curl -s localhost:3000/a -d x=1 -d y=2`, 0, "POST /a x=1&y=2"},
			{`curl -sI localhost:3000/a`, 0, "HTTP/1.1 418 I'm a teapot\nX-Key: \nDate: Sat, 01 Jan 2000 00:00:00 GMT\nContent-Length: 8\nContent-Type: text/plain; charset=utf-8\n\n"},
			{`curl -si -H 'x-api-key: k1' localhost:3000/a`, 0, "HTTP/1.1 418 I'm a teapot\nX-Key: k1\nDate: Sat, 01 Jan 2000 00:00:00 GMT\nContent-Length: 7\nContent-Type: text/plain; charset=utf-8\n\nGET /a "},
			{`curl -sI -H 'x-api-key: a' -H 'x-api-key: b' -H 'accept: x/y' localhost:3000`, 0, "HTTP/1.1 418 I'm a teapot\nX-Key: a+b\nDate: Sat, 01 Jan 2000 00:00:00 GMT\nContent-Length: 7\nContent-Type: text/plain; charset=utf-8\n\n"},
			{`curl -s -w '%{http_code}' localhost:1; echo " $?"`, 0, "000 7\n"},
			{`for i in 1 2; do curl -s -w ';' localhost:3000/$i; done`, 0, "GET /1 ;GET /2 ;"},
			{`curl -s -o /dev/null -w '%{time_total}' localhost:3000`, 0, "0.000000"},
			{`sleep 10`, 10 * time.Second, ""},
			{`echo '{"a":{"n":1},"a":{"n":2}}' | grep -o '"a":{[^}]*}' | head -1`, 0, "\"a\":{\"n\":1}\n"},
			{`(for i in 2 1 3; do (sleep $i; echo $((9-i))) & done; wait) | sort`, 3 * time.Second, "6\n7\n8\n"},
			{`echo x | grep -o y`, 0, ""},
			{`echo xay | grep -o 'b*'`, 0, ""},
			{`printf 'b\n\na\n' | sort`, 0, "\na\nb\n"},
			{`printf '\na\n' | head -1`, 0, "\n"},
			{`curl -si -o /dev/null -w 'x' localhost:3000`, 0, "x"},
			{`(for i in 2 1; do (sleep $i; echo $i) & done; wait)`, 2 * time.Second, "1\n2\n"},
		} {
			start := time.Now()
			got, err := s.Run(t.Context(), tt.line)
			got = strings.ReplaceAll(got, time.Now().UTC().Format(http.TimeFormat), "Sat, 01 Jan 2000 00:00:00 GMT")
			if err != nil || got != tt.want {
				t.Errorf("%s: %v, got %q, want %q", tt.line, err, got, tt.want)
			}
			if took := time.Since(start); took != tt.took {
				t.Errorf("%s: took %v, want %v", tt.line, took, tt.took)
			}
		}
	})
}

func TestShellIsStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shell(t)
		for line, want := range map[string]string{
			"rm -rf /":                       "rm is not a command of this shell",
			"echo x >file":                   "file: only /dev/null can be opened",
			"curl -s -k localhost:3000":      "curl: -k is not known to this curl",
			"curl -s --max-time 1 localhost": "curl: -- is not known to this curl",
			"curl localhost:3000":            "curl: without -s the real one may print a progress meter",
			"curl -s a b":                    "curl: a second URL, b",
			"curl -s":                        "curl: no URL",
			"curl -s a -H":                   "curl: -H needs its value in the next word",
			"curl -s -Hx:y a":                "curl: -H needs its value in the next word",
			"curl -s -H x a":                 "curl: -H x: no colon",
			"curl -s -o f a":                 "curl: -o f: only /dev/null is known",
			"curl -s -w '%{time}' a":         `curl: -w %{time}: only %{http_code}, %{time_total} and \n are known`,
			"for":                            "must be followed by",
			"echo x | grep x":                "grep: only -o PATTERN is known",
			`echo x | grep -o 'x\|y'`:        `grep: \ in a pattern is not known`,
			"echo x | grep -o '[x'":          "grep: error parsing regexp",
			"echo x | grep -o 'x{2}'":        "grep: {2 in a pattern is not known",
			"echo x | grep -o '^x'":          "grep: ^ in a pattern is not known",
			"echo x | head -2":               "head: only -1 is known",
			"echo x | sort -n":               "sort: -n is not known",
			"(echo x | sort)":                "1:2: a pipe is only known between the commands of a line",
			"echo x; echo y | sort":          "1:9: a pipe is only known between the commands of a line",
			"sleep":                          "sleep: []: want a number of seconds",
			"sleep 1m":                       "sleep: [1m]: want a number of seconds",
		} {
			got, err := s.Run(t.Context(), line)
			if said := fmt.Sprint(got, err); !strings.Contains(said, want) {
				t.Errorf("%s: %q, want %q", line, said, want)
			}
		}
	})
}

func TestCurlEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		go io.Copy(io.Discard, server)
		curl := Curl(func(context.Context, string, string) (net.Conn, error) { return client, nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if code := curl(ctx, []string{"curl", "-s", "x"}, nil, io.Discard, io.Discard); code != 52 {
			t.Errorf("exit %d, want 52", code)
		}
	})
}

func TestUpdateRefusesAFileThatHasChanged(t *testing.T) {
	file := write(t, page)
	s := steps(t, file)
	if err := os.WriteFile(file, []byte("\n"+page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s[0].Update("x\n"); err == nil || !strings.Contains(err.Error(), "page.md:4: the file has changed meanwhile, $ one is not there") {
		t.Errorf("%v", err)
	}
	if got, _ := os.ReadFile(file); string(got) != "\n"+page {
		t.Errorf("it was written all the same:\n%s", got)
	}
}

func TestUpdateKeepsLinesThatStillMatch(t *testing.T) {
	file := write(t, "```console\n$ one\nDate: …\nold\nafter 1.… s\n```\n")
	if err := steps(t, file)[0].Update("new\nDate: today\nafter 1.5 s\nafter 2.5 s\n"); err != nil {
		t.Fatal(err)
	}
	want := "```console\n$ one\nnew\nDate: …\nafter 1.… s\nafter 2.5 s\n```\n"
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestCommands(t *testing.T) {
	root := t.TempDir()
	readme, lesson := filepath.Join(root, "README.md"), filepath.Join(root, "scripts", "lessons", "1-one.md")
	if err := os.MkdirAll(filepath.Dir(lesson), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{readme, lesson} {
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Commands(root, "t")
	want := []Step{{readme, 6, "two", ""}, {readme, 7, "three", "3\n\n3\n"}, {lesson, 6, "two", ""}, {lesson, 7, "three", "3\n\n3\n"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, got %+v, want %+v", err, got, want)
	}
}

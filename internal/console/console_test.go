package console

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// pageFiles has every file of the page by its path in the folder.
func pageFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(files, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		all[strings.TrimPrefix(name, "page/")] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryFileGoesOutAsItStands(t *testing.T) {
	all := pageFiles(t)
	all[""] = all["index.html"]
	for name, body := range all {
		rec := httptest.NewRecorder()
		if !Serve(rec, name) || rec.Code != http.StatusOK || rec.Body.String() != body {
			t.Errorf("%q: %d, %d bytes, want %d", name, rec.Code, rec.Body.Len(), len(body))
		}
		kind := types[path.Ext(name)]
		if name == "" {
			kind = "text/html; charset=utf-8"
		}
		if kind == "" {
			t.Errorf("%s has no type", name)
		}
		for header, want := range map[string]string{
			"Content-Type":            kind,
			"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
			"Cache-Control":           "no-cache",
		} {
			if got := rec.Header()[header]; len(got) != 1 || got[0] != want {
				t.Errorf("%q: %s %q, want %q", name, header, got, want)
			}
		}
	}
}

func TestAModuleIsJavaScriptToEveryBrowser(t *testing.T) {
	for ext, want := range map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	} {
		if types[ext] != want {
			t.Errorf("%s: %q, want %q", ext, types[ext], want)
		}
	}
}

func TestUnknownFilesAreNotAnswered(t *testing.T) {
	for _, name := range []string{"nope", "nope.js", ".", "..", "/", "../console.go", "./index.html", "/index.html", "index.html/", "INDEX.HTML", "page/index.html", "index.html\x00", "\\index.html"} {
		rec := httptest.NewRecorder()
		if Serve(rec, name) || len(rec.Header()) > 0 || rec.Body.Len() > 0 {
			t.Errorf("%q: %d %v %q, want nothing", name, rec.Code, rec.Header(), rec.Body)
		}
	}
}

// The policy allows nothing else, and a browser says so only in its console.
func TestThePageNeedsNothingThatThePolicyForbids(t *testing.T) {
	total := 0
	html := regexp.MustCompile(`(?is)<style|<script(\s[^>]*)?>|\s(style|on[a-z]+)\s*=\s*["'a-z]|javascript:|data:`)
	hasSource := regexp.MustCompile(`(?is)^<script\s[^>]*\bsrc\s*=`)
	address := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"'` + "`" + `)<]*|https?://[^\s"'` + "`" + `)<]*`)
	sets := regexp.MustCompile(`setAttribute\(\s*["'` + "`" + `](style|on[a-z]+)|\beval\(|new Function\(`)
	for name, body := range pageFiles(t) {
		total += len(body)
		for _, found := range address.FindAllString(body, -1) {
			if found != "http://www.w3.org/2000/svg" {
				t.Errorf("%s names %s", name, found)
			}
		}
		switch path.Ext(name) {
		case ".html", ".svg":
			for _, found := range html.FindAllString(body, -1) {
				if !hasSource.MatchString(found) {
					t.Errorf("%s has %q", name, found)
				}
			}
		case ".js":
			for _, found := range sets.FindAllString(body, -1) {
				t.Errorf("%s has %q", name, found)
			}
		}
	}
	if total >= 100_000 {
		t.Errorf("%d bytes, want less than 100 kB", total)
	}
}

// What the page names must be there: a wrong name is a 404 in the browser alone.
func TestEveryFileThatThePageNamesIsThere(t *testing.T) {
	all := pageFiles(t)
	named := regexp.MustCompile(`["'](?:/?console/|\./)([A-Za-z0-9._-]+)["']`)
	for name, body := range all {
		for _, m := range named.FindAllStringSubmatch(body, -1) {
			if _, ok := all[m[1]]; !ok {
				t.Errorf("%s names %s, which is not there", name, m[0])
			}
		}
	}
}

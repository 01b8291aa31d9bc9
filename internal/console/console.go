// Package console is the live page: plain HTML, CSS and JavaScript modules that go out as
// they stand in the folder page.
package console

import (
	"embed"
	"net/http"
	"path"
)

//go:embed page
var files embed.FS

// types by extension: those of the machine may be wrong, and a browser runs no module that
// is called text/plain.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Serve answers a file of the page, by its name; without a name the page itself. It returns
// false, and has answered nothing, if there is no such file.
//
// The page may load and connect to what comes from the same origin, and nothing else; nor
// may another page frame it, to have its buttons clicked.
func Serve(w http.ResponseWriter, name string) bool {
	if name == "" {
		name = "index.html"
	}
	body, err := files.ReadFile("page/" + name)
	if err != nil {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", types[path.Ext(name)])
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // the next build may have another
	_, _ = w.Write(body)               // the client may have left
	return true
}

package storefront

import (
	"testing"
	"testing/synctest"
)

func TestThePageIsThereForEverybody(t *testing.T) {
	inBubble(t, Config{Controls: ControlsOff}, func(w *world) {
		page := w.get("/")
		if page.status != 200 || page.body == "" || page.header.Get("Content-Type") != "text/html; charset=utf-8" ||
			page.header.Get("Content-Security-Policy") == "" {
			w.Errorf("%v %v", page, page.header)
		}
		w.want(w.get("/console/index.html"), page.String())
		w.want(w.raw("GET /", "Host: evil.example", ""), page.String())
		slow := w.begin(w.Context(), "/slow")
		w.stop()
		synctest.Wait()
		w.want(w.get("/"), page.String()) // which shows the drain
		<-slow
	})
}

func TestUnknownFilesOfThePageGet404(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for _, name := range []string{"nope", "nope.js", "INDEX.HTML", "..", "..%2fconsole.go", "%2e%2e%2fconsole.go", "index.html%2f", "index.html%00"} {
			got := w.raw("GET /console/"+name, "Host: localhost", "")
			w.want(got, "404 "+errNotFound.Error())
			for _, header := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
				if got.header.Get(header) != "" {
					w.Errorf("%s: %s %q", name, header, got.header.Get(header))
				}
			}
			if cache, kind := got.header.Get("Cache-Control"), got.header.Get("Content-Type"); cache != "no-store" || kind != textType {
				w.Errorf("%s: %s, %s", name, cache, kind)
			}
		}
	})
}

package browser

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "keep the pictures of the page in this directory")

// busy brings the page into a state in which there is something to see.
func busy(p *page) {
	p.Helper()
	p.send(1, "/checkout")
	p.send(10, "/checkout")
	p.send(10, "/profile/ada")
	p.fault("profiles", "failing")
	p.send(10, "/profile/ada")
	p.fault("inventory", "slow")
	p.send(50, "/stock/mug")
	p.fault("payments", "lost reply")
	p.key("order-1")
	p.send(1, "/charge")
	p.key("")
	p.send(1, "/charge")
	p.fault("flaky", "failing")
	p.send(10, "/checkout")
	p.send(10, "/checkout")
	p.send(10, "/slow")
	p.send(10, "/limited")
}

// media sets features of the media that the page is shown on, given as name and value.
func (p *page) media(features ...string) {
	p.Helper()
	var params emulation.SetEmulatedMediaParams
	for feature := range slices.Chunk(features, 2) {
		params.Features = append(params.Features, &emulation.MediaFeature{Name: feature[0], Value: feature[1]})
	}
	call(p, emulation.SetEmulatedMedia, params)
}

// The page as it looks, on a projector and on a phone, by day and by night.
func TestPictures(t *testing.T) {
	p := open(t)
	busy(p)
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"1440", 1440, 900}, {"400", 400, 800}} {
		for _, scheme := range []string{"light", "dark"} {
			p.do(chromedp.EmulateViewport(size.width, size.height))
			p.media("prefers-color-scheme", scheme)
			picture := get(p, chromedp.FullScreenshot(100))
			if wide := eval[int64](p, `document.documentElement.scrollWidth`); wide > size.width {
				p.Errorf("the page is %d pixels wide in a window of %d", wide, size.width)
			}
			ellipses := `[...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow === 'ellipsis').map(e => e.textContent).join()`
			if cut := eval[string](p, ellipses); cut != "" {
				p.Errorf("cut off at a width of %d: %s", size.width, cut)
			}
			if *pictures != "" {
				if err := os.WriteFile(filepath.Join(*pictures, size.name+"-"+scheme+".png"), picture, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

var picture = flag.String("picture", "", "keep the README's picture of the page in this file")

// The picture that stands in the README: some of everything.
func TestPicture(t *testing.T) {
	p := open(t)
	p.do(chromedp.EmulateViewport(1440, 1080))
	p.media("prefers-color-scheme", "light", "prefers-reduced-motion", "reduce")
	busy(p)
	p.click(button("[data-path='/slow']", "send 10 requests to /slow"))
	for _, key := range []string{"ada-1", "grace-1", "linus-1"} {
		p.key(key)
		p.send(1, "/limited")
	}
	p.send(1, "/limited")
	p.do(chromedp.Evaluate[chromedp.Void](`(scrollTo(0, 0), document.activeElement.blur())`))
	p.wait("the buckets", `document.querySelectorAll('.buckets tr:not([data-empty])').length >= 4`)
	p.wait("work under way", `document.querySelector('#shedding .words').textContent === '2 of 2 places'`)
	shot := get(p, chromedp.CaptureScreenshot())
	if *picture != "" {
		if err := os.WriteFile(*picture, shot, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

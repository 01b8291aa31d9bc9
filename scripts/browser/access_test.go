package browser

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused is the name of the element that has the focus.
const focused = `(e => e.ariaLabel ?? e.labels?.[0]?.textContent.trim() ?? e.textContent)(document.activeElement)`

// tabTo presses the tab key until the focus is there, and returns what it passed.
func (p *page) tabTo(element string) (passed []string) {
	p.Helper()
	for range 100 {
		p.do(chromedp.KeyEvent(kb.Tab))
		name := eval[string](p, focused)
		if eval[bool](p, `document.activeElement === document.body`) {
			continue // it has gone around
		}
		if style := eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`); style != "solid" {
			p.Errorf("the focus on %q is not to be seen: %s", name, style)
		}
		passed = append(passed, name)
		if eval[bool](p, element+` === document.activeElement`) {
			return passed
		}
	}
	p.Fatalf("the tab key does not come to %s, only to %q", element, passed)
	return nil
}

func TestTheKeyboardAloneWillDo(t *testing.T) {
	p := open(t, "-breaker-cooldown", "2s")
	p.ask("/checkout")
	p.ask("/checkout")
	p.wait("two marks", card("flaky", ".marks")+`.querySelectorAll('.mark').length === 2`)
	last := button("[data-path='/slow']", "send 50 requests to /slow")
	passed := p.tabTo(last)
	var want []string
	want = append(want, "Reset everything")
	for _, dependency := range []string{"flaky", "inventory", "payments", "profiles"} {
		want = append(want, "the last 30 calls of "+dependency+", the oldest first", "healthy", "default", "failing", "hanging", "slow", "lost reply")
	}
	want = append(want, "bulkhead", "breaker", "retry", "timeout", "key")
	for _, path := range []string{"/checkout", "/stock/mug", "/charge", "/profile/ada", "/limited", "/slow"} {
		want = append(want, "send 1 request to "+path, "send 10 requests to "+path, "send 50 requests to "+path)
	}
	if !slices.Equal(passed, want) {
		t.Errorf("the tab key went to\n%q, want\n%q", passed, want)
	}

	// From call to call by the arrow keys.
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	p.tabTo(card("flaky", ".marks"))
	for _, step := range []struct{ key, want string }{{kb.ArrowLeft, "0"}, {kb.ArrowLeft, "0"}, {kb.ArrowRight, "1"}, {kb.ArrowRight, "1"}, {kb.Home, "0"}, {kb.End, "1"}} {
		p.do(chromedp.KeyEvent(step.key))
		marks := `[...` + card("flaky", ".marks") + `.querySelectorAll('.mark')]`
		p.wait("the call "+step.want, marks+`.findIndex(m => m.ariaSelected === 'true' && m.id === document.activeElement.getAttribute('aria-activedescendant')) === `+step.want+
			` && `+marks+`[`+step.want+`].ariaLabel.endsWith(`+card("flaky", ".steps")+`.textContent)`)
	}

	// One that is chosen may go, with thirty that come.
	p.do(chromedp.KeyEvent(kb.Home))
	for range 31 {
		p.ask("/checkout?without=retry")
	}
	p.wait("the oldest call", card("flaky", ".marks")+`.getAttribute('aria-activedescendant') === `+card("flaky", ".place:first-child .mark")+`?.id`)

	// An outage and its end.
	p.tabTo(button("[data-dependency=flaky]", "failing"))
	p.do(chromedp.KeyEvent(" "))
	p.wait("the fault", button("[data-dependency=flaky]", "failing")+`.ariaPressed === 'true'`)
	p.tabTo(button("[data-path='/checkout']", "send 10 requests to /checkout"))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.state("flaky", "open", "open, probe due")
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	p.tabTo(button("[data-dependency=flaky]", "healthy"))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait("the fault", button("[data-dependency=flaky]", "healthy")+`.ariaPressed === 'true'`)
	p.tabTo(`document.getElementById('layer-retry')`)
	p.do(chromedp.KeyEvent(" "))
	p.tabTo(button("[data-path='/checkout']", "send 1 request to /checkout"))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.state("flaky", "closed", "closed")
	p.wait("the retry left out", card("flaky", ".summary")+`.textContent.startsWith('served after 1 attempt')`)
}

func TestAScreenReaderHasNamesForEverything(t *testing.T) {
	p := open(t)
	p.send(10, "/checkout")
	tree := call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	roles := map[string]int{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role, name := strings.Trim(string(node.Role.Value), `"`), ""
		if node.Name != nil {
			name = strings.Trim(string(node.Name.Value), `"`)
		}
		roles[role]++
		if slices.Contains([]string{"button", "checkbox", "textbox", "image", "listbox", "option", "group", "article", "region", "rowheader", "columnheader", "heading"}, role) && name == "" {
			t.Errorf("a %s has no name", role)
		}
	}
	for role, least := range map[string]int{"article": 4, "image": 4, "listbox": 4, "option": 10, "button": 24 + 18 + 1, "checkbox": 4, "textbox": 1, "table": 3, "heading": 10} {
		if roles[role] < least {
			t.Errorf("%d of the role %s, want at least %d", roles[role], role, least)
		}
	}
}

// Each text stands out from what is behind it, in the ratio that WCAG 2.2, 1.4.3, asks for.
func TestTextsCanBeRead(t *testing.T) {
	p := open(t)
	busy(p)
	for _, scheme := range []string{"light", "dark"} {
		p.media("prefers-color-scheme", scheme)
		for _, pale := range eval[[]string](p, `(() => {
			const rgb = (c) => (c.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
			const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
			const behind = (e) => {
				if (e.closest('.node')) return rgb(getComputedStyle(e.closest('.node').querySelector('rect')).fill);
				for (; e; e = e.parentElement) {
					const c = rgb(getComputedStyle(e).backgroundColor);
					if (c.length === 3 || c[3] > 0) return c;
				}
				return [255, 255, 255];
			};
			const pale = [];
			for (const e of document.querySelectorAll('body *')) {
				const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
				if (!own || !e.checkVisibility() || e.closest('[data-empty], .unseen, :disabled, script')) continue;
				const style = getComputedStyle(e);
				const [a, b] = [light(rgb(e instanceof SVGElement ? style.fill : style.color)), light(behind(e))].sort((a, b) => b - a);
				if ((a + .05) / (b + .05) < 4.5) pale.push(e.textContent + ' ' + ((a + .05) / (b + .05)).toFixed(1));
			}
			return pale;
		})()`) {
			t.Errorf("%s: %s to 1", scheme, pale)
		}
	}
}

func TestMotionIsReducedWhereAsked(t *testing.T) {
	p := open(t)
	moving := `document.querySelectorAll('*').values().filter(e => getComputedStyle(e).transitionDuration !== '0s' || getComputedStyle(e).animationName !== 'none').toArray().length`
	p.media("prefers-reduced-motion", "no-preference")
	if n := eval[int](p, moving); n == 0 {
		t.Error("nothing moves at all")
	}
	p.media("prefers-reduced-motion", "reduce")
	if n := eval[int](p, moving); n > 0 {
		t.Errorf("%d elements move", n)
	}
}

// load asks for every kind of answer, at once and for some seconds, past the browser.
func (p *page) load(seconds int) {
	p.Helper()
	var all sync.WaitGroup
	for _, path := range []string{"/checkout", "/stock/mug", "/stock/none", "/profile/ada", "/limited", "/slow"} {
		for range 3 {
			all.Go(func() {
				for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					resp, err := http.Get(p.url + path)
					if err != nil {
						p.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
	}
	all.Wait()
}

func TestNothingShiftsWhileItUpdates(t *testing.T) {
	p := open(t)
	p.wait("fonts", `document.fonts.status === 'loaded'`)
	eval[int](p, `(window.shifts = [], new PerformanceObserver(list => {
		for (const e of list.getEntries()) if (!e.hadRecentInput) shifts.push(e.value.toFixed(5) + ' ' + e.sources.map(s => s.node?.className?.baseVal ?? s.node?.className ?? s.node?.parentElement?.className).join());
	}).observe({type: 'layout-shift'}), 0)`)
	p.load(2)
	for _, fault := range []string{"script=F", "script=H", "script=S&latency=250ms&status=500&retry_after=3600"} {
		for _, dependency := range []string{"flaky", "inventory"} {
			req, err := http.NewRequest("PUT", p.url+"/faults/"+dependency, strings.NewReader(fault))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		p.load(1)
	}
	p.state("flaky", "open", "open")
	if shifts := eval[[]string](p, `shifts`); len(shifts) > 0 {
		t.Errorf("%d shifts:\n%s", len(shifts), strings.Join(shifts, "\n"))
	}
}

// However much comes, it is drawn once a frame, and a click is answered meanwhile.
func TestABurstLeavesThePageResponsive(t *testing.T) {
	p := open(t)
	eval[int](p, `(window.frames_ = [], (function tick(t) { frames_.push(t); requestAnimationFrame(tick); })(performance.now()), 0)`)
	done := make(chan bool)
	go func() {
		defer close(done)
		p.load(5)
	}()
	for _, fault := range []string{"failing", "healthy", "slow", "default"} {
		start := time.Now()
		p.fault("payments", fault)
		t.Logf("a click took %v", time.Since(start).Round(time.Millisecond))
	}
	<-done
	gaps := eval[[]float64](p, `frames_.slice(1).map((t, i) => t - frames_[i]).sort((a, b) => a - b)`)
	t.Logf("%d frames; %.0f ms between them in the median, at most %.0f ms", len(gaps), gaps[len(gaps)/2], gaps[len(gaps)-1])
	if longest := gaps[len(gaps)-1]; longest > 1000 {
		t.Errorf("the page stood still for %.0f ms", longest)
	}
	counted := eval[int](p, `[...document.querySelectorAll('.lanes .number')].map(td => Number(td.textContent)).filter(n => n > 0).reduce((a, b) => a + b)`)
	if counted < 500 {
		t.Errorf("the page has seen %d answers", counted)
	}
	if got := eval[string](p, connection); got != "live" {
		t.Errorf("the connection is %s", got)
	}
}

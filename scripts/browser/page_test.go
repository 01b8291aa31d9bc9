package browser

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

const connection = `document.getElementById('connection').textContent`

// state waits until a breaker is in this state, in the words of the card and in the drawing.
func (p *page) state(dependency, lit, words string) {
	p.Helper()
	p.wait(dependency+" "+words, card(dependency, ".state")+".textContent.startsWith("+fmt.Sprintf("%q", words)+") && "+
		card(dependency, "[data-lit]")+".dataset.node === "+fmt.Sprintf("%q", lit)+" && "+
		card(dependency, ".machine")+".ariaLabel.includes("+fmt.Sprintf("%q", words)+")")
}

func TestTheFirstSnapshotDrawsEverything(t *testing.T) {
	p := open(t)
	for range 4 {
		p.ask("/limited")
	}
	p.ask("/checkout")
	p.ask("/stock/none")
	p.do(chromedp.Reload())
	p.wait("the cards", `document.querySelectorAll('.card').length === 4`)
	// All in the frame in which the first came, and without a further request.
	got := eval[string](p, `[
		[...document.querySelectorAll('.card h2')].map(h => h.textContent).join(),
		[...document.querySelectorAll('.state')].map(s => s.textContent).join(),
		[...document.querySelectorAll('.card')].map(c => c.querySelectorAll('.mark').length).join(),
		[...document.querySelectorAll('.card .summary')].map(s => s.textContent.replace(/ in .*/, '')).join(),
		[...document.querySelectorAll('.meter')].map(m => m.textContent).join(),
		[...document.querySelectorAll('.faults .words')].map(w => w.textContent).join(),
		[...document.querySelectorAll('.lanes tbody tr')].map(r => r.textContent).join(),
		document.querySelector('#limiter .counts').textContent,
		document.querySelector('.buckets tbody tr').textContent.replace(/\.\d/, ''),
		[...document.querySelectorAll('#send [data-path]')].map(r => r.dataset.path).join(),
		document.getElementById('connection').textContent,
	].join('\n')`)
	want := strings.Join([]string{
		"flaky GET /checkout,inventory GET /stock/{sku},payments POST /charge,profiles GET /profile/{id}",
		"closed0 calls refused,closed0 calls refused,closed0 calls refused,closed0 calls refused",
		"1,1,0,0",
		"served after 3 attempts,served after 1 attempt,no call yet,no call yet",
		"failures0 of 3 in a row,bulkhead0 of 20 permits0 refused,budget498 left0 refused," +
			"failures0 of 1 callopens at 10,bulkhead0 of 20 permits0 refused,budget500 left0 refused," +
			"failures0 of 3 in a row,bulkhead0 of 100 permits0 refused,budget500 left0 refused," +
			"failures0 of 3 in a row,bulkhead0 of 20 permits0 refused,budget500 left0 refused," +
			"at work0 of 2 places0 refused,queuenonerefused at once,all business requests0 of 10240 refused",
		"next: answer 503 · script FFS,next: succeed · script S,next: succeed · script S,next: succeed · script S",
		"served5,fallback0,failed0,refused by breaker0,refused by bulkhead0,refused by rate limit1,refused by shedding0,refused by the cap over all0," +
			"breaker of flakyclosed,breaker of inventoryclosed,breaker of paymentsclosed,breaker of profilesclosed",
		"3 allowed · 1 refused",
		"anon0",
		"/checkout,/stock/mug,/charge,/profile/ada,/limited,/slow",
		"live",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// seen has, in window.seen, each state that the card of flaky showed: in words, and as the node
// that is lit.
const seen = `(() => {
	const card = document.querySelector('[data-dependency=flaky]');
	window.seen = [];
	const look = () => {
		const now = card.querySelector('.is').textContent + ' (' + card.querySelector('[data-lit]').dataset.node + ')';
		if (now !== seen.at(-1)) seen.push(now);
	};
	look();
	new MutationObserver(look).observe(card, {subtree: true, childList: true, characterData: true, attributes: true});
	return 0;
})()`

// The whole round, by clicks.
func TestAFaultButtonOpensTheBreaker(t *testing.T) {
	p := open(t, "-breaker-cooldown", "4s")
	eval[int](p, seen)
	p.fault("flaky", "failing")
	for n := range 2 {
		p.send(1, "/checkout")
		p.wait("a failure", card("flaky", ".meter .words")+fmt.Sprintf(`.textContent === '%d of 3 in a row'`, n+1))
	}
	if got := p.send(1, "/checkout"); !slices.Equal(got, []string{"1 × 502 payment failed: 503 Service Unavailable"}) {
		t.Errorf("the page says %q", got)
	}
	p.state("flaky", "open", "open, probe in ")
	p.send(1, "/checkout")
	p.wait("a refused mark", card("flaky", ".place:last-child svg.refused")+` !== null`)
	p.wait("the refusal in words", card("flaky", ".summary")+`.textContent === 'refused: circuit open' && `+card("flaky", ".refusals")+`.textContent === '1 call refused'`)
	p.state("flaky", "open", "open, probe due")

	p.fault("flaky", "hanging")
	p.send(1, "/checkout")
	p.fault("flaky", "healthy")
	p.state("flaky", "open", "open, probe due")
	if got := p.send(1, "/checkout"); !slices.Equal(got, []string{"1 × 200"}) {
		t.Errorf("the page says %q", got)
	}
	p.state("flaky", "closed", "closed")

	var states []string
	left := 5
	for _, state := range eval[[]string](p, `seen`) {
		var seconds int
		if n, _ := fmt.Sscanf(state, "open, probe in %d s (open)", &seconds); n == 1 {
			if !slices.Contains(states, "counting down") && seconds < 3 {
				t.Errorf("the countdown from 4 s begins with %d", seconds)
			}
			if seconds >= left {
				t.Errorf("%d s after %d s", seconds, left)
			}
			left, state = seconds, "counting down"
		} else {
			left = 5
		}
		if !slices.Equal(states[max(0, len(states)-1):], []string{state}) {
			states = append(states, state)
		}
	}
	// The last probe may end before anybody sees it.
	got := strings.ReplaceAll(strings.Join(states, ", "), "half-open, probing (half_open), closed", "closed")
	if want := "closed (closed), counting down, open, probe due (open), half-open, probing (half_open), counting down, open, probe due (open), closed (closed)"; got != want {
		t.Errorf("the card showed %s, want %s", got, want)
	}
	if got := eval[string](p, `document.getElementById('announcement').textContent`); got != "circuit breaker of flaky: closed" {
		t.Errorf("a screen reader is told %q", got)
	}
	// To open, half-open, open, half-open, closed.
	lane := `[...document.querySelectorAll('.lanes tr')].find(r => r.textContent === 'breaker of flakyclosed')`
	p.wait("five lines in the timeline", lane+`?.querySelectorAll('.change').length === 5`)
}

func TestABurstShowsRefusedMarks(t *testing.T) {
	p := open(t)
	p.fault("flaky", "slow")
	got := p.send(50, "/checkout")
	if !slices.Equal(got, []string{"30 × 503 bulkhead full", "20 × 200"}) {
		t.Errorf("the page says %q", got)
	}
	p.wait("30 marks", card("flaky", ".marks")+`.querySelectorAll('.mark').length === 30`)
	// The 20 that were served ended last.
	if got := eval[string](p, `[...`+card("flaky", ".marks")+`.querySelectorAll('.mark svg')].map(m => m.getAttribute('class')).join(' ')`); got !=
		strings.Repeat("refused ", 10)+strings.TrimSpace(strings.Repeat("served ", 20)) {
		t.Errorf("the marks are %s", got)
	}
	p.wait("the lane", `[...document.querySelectorAll('.lanes tr')].some(r => r.textContent === 'refused by bulkhead30')`)
	p.wait("the meter", card("flaky", ".permits")+`.parentElement.textContent === 'bulkhead0 of 20 permits30 refused'`)

	if got := p.send(10, "/limited"); !slices.Equal(got, []string{"3 × 200", "7 × 429 rate limit exceeded"}) && !slices.Equal(got, []string{"7 × 429 rate limit exceeded", "3 × 200"}) {
		t.Errorf("the page says %q", got)
	}
	if got := p.send(10, "/slow"); !slices.Equal(got, []string{"8 × 503 busy", "2 × 200"}) {
		t.Errorf("the page says %q", got)
	}
	colours := `['429', '503', '200'].map(status => document.querySelector('.answers [data-status="' + status + '"]')).map(e => getComputedStyle(e).color).join('; ')`
	if got := strings.Split(eval[string](p, colours), "; "); got[0] != got[1] || got[0] == got[2] {
		t.Errorf("429, 503 and 200 are %s, want one colour for both refusals", got)
	}
	p.key("ada-and-a-secret")
	p.send(1, "/limited")
	p.wait("the bucket", `[...document.querySelectorAll('.buckets tbody th')].some(th => th.textContent === 'ada-')`)
	if text := eval[string](p, `document.body.innerHTML`); strings.Contains(text, "secret") {
		t.Error("the page shows a whole key")
	}
	p.key("")
	p.click(`document.getElementById('layer-bulkhead')`)
	if got := p.send(50, "/checkout"); !slices.Equal(got, []string{"50 × 200"}) {
		t.Errorf("without the bulkhead the page says %q", got)
	}
	p.fault("flaky", "hanging") // for three seconds and more, so that all are sent before one ends
	for range 3 {               // as many as leave a connection for other buttons
		p.click(button("[data-path='/checkout']", "send 1 request to /checkout"))
	}
	others := `[...document.querySelectorAll('#send button')]`
	p.wait("the others to wait", others+`.every(b => b.disabled) && !`+button("", "Reset everything")+`.disabled`)
	p.wait("their turn", others+`.every(b => !b.disabled)`)
	p.wait("the end of all three", `!document.querySelector('#send [data-running]')`)
	p.click("document.getElementById('reset')")
	p.wait("a clean slate", `document.querySelectorAll('.mark').length === 0 && `+card("flaky", ".faults .words")+`.textContent.endsWith('script FFS')`)
}

// What a mark tells when it is pointed at, and without.
func TestAMarkTellsItsTiming(t *testing.T) {
	p := open(t)
	p.send(1, "/checkout")
	p.send(1, "/stock/mug")
	p.send(1, "/checkout")
	told := card("flaky", ".steps") + ".textContent"
	p.wait("the last call", told+`.startsWith('1: 503 ')`)
	bars := eval[string](p, `[...`+card("flaky", ".timing")+`.children].map(e => e.getAttribute('class')).join(' ')`)
	if bars != "bad wait bad wait good" {
		t.Errorf("the bars are %s", bars)
	}
	last := eval[string](p, told)
	p.point(card("flaky", ".mark"))
	p.wait("the first call", told+` !== `+fmt.Sprintf("%q", last))
	if label := eval[string](p, card("flaky", ".mark")+`.ariaLabel`); !strings.HasPrefix(label, "served after 3 attempts in ") || !strings.Contains(label, ": 1: 503 ") {
		t.Errorf("a screen reader says %q", label)
	}
	p.point(`document.querySelector('h1')`)
	p.wait("the last call again", told+` === `+fmt.Sprintf("%q", last))
}

func TestControlsAreHiddenWhereTheyAreOff(t *testing.T) {
	p := open(t, "-controls", "off")
	p.ask("/limited")
	p.wait("the request", `document.querySelector('#limiter .counts').textContent === '1 allowed · 0 refused'`)
	if got := eval[[]string](p, `[...document.querySelectorAll('button, input')].filter(e => e.checkVisibility()).map(e => e.textContent)`); len(got) > 0 {
		t.Errorf("there are controls: %q", got)
	}
	if got := eval[string](p, `document.getElementById('limiter').innerText`); !strings.Contains(got, "Keys are shown only where controls are on.") || strings.Contains(got, "anon") {
		t.Errorf("the limiter says %s", got)
	}
}

func TestTheLimiterSaysWhetherItIsShared(t *testing.T) {
	port := freePort(t)
	p := open(t, "-redis", "redis://127.0.0.1:"+port)
	p.wait("no Redis", `document.getElementById('limiter').innerText.includes('Redis is away: this instance decides alone.')`)
	startRedis(t, port)
	p.wait("Redis", `document.getElementById('limiter').innerText.includes('Shared through Redis; the counts are those of this instance.')`)
}

func TestALostConnectionSaysSoAndComesBack(t *testing.T) {
	p := open(t)
	p.ask("/limited")
	p.wait("a request", `document.querySelector('#limiter .counts').textContent === '1 allowed · 0 refused'`)
	p.stop()
	p.wait("the loss", connection+`.startsWith('connection lost')`)
	if !eval[bool](p, button("", "Reset everything")+`.disabled && document.querySelectorAll('.card').length === 4`) {
		t.Error("buttons go on, or the page is blank")
	}
	p.serve(strings.TrimPrefix(p.url, "http://"))
	p.wait("the return", connection+` === 'live' && document.querySelector('#limiter .counts').textContent === '0 allowed · 0 refused'`)
	p.forgive()

	// One that goes silent, as a network may.
	if err := p.server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.wait("the silence", connection+`.startsWith('connection lost')`)
	if err := p.server.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.wait("the return", connection+` === 'live'`)

	// One that says goodbye.
	if err := p.server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.server.Wait(); err != nil {
		t.Fatal(err)
	}
	p.wait("the loss", connection+`.startsWith('connection lost')`)
	p.serve(strings.TrimPrefix(p.url, "http://"))
	p.wait("the return", connection+` === 'live'`)
	p.forgive()
}

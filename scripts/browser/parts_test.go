package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// What the parts of the page make of what they are given, each by itself.
func TestTheParts(t *testing.T) {
	p := open(t)
	for _, tt := range []struct{ name, module, expression, want string }{
		{"a bar in part", "bar", `(b => (b.draw(1, 3), b.element.querySelector('.taken').getAttribute('width') + ' ' + b.element.hasAttribute('data-full')))(m.newBar('x'))`, "100.0 false"},
		{"a full bar", "bar", `(b => (b.draw(5, 3), b.element.querySelector('.taken').getAttribute('width') + ' ' + b.element.hasAttribute('data-full')))(m.newBar('x'))`, "300.0 true"},
		{"a bar of nothing", "bar", `(b => (b.draw(0, 0), b.element.querySelector('.taken').getAttribute('width') + ' ' + b.element.hasAttribute('data-full')))(m.newBar('x'))`, "0.0 false"},
		{"gaps between places", "bar", `(b => (b.draw(1, 4), b.element.querySelector('.gaps').getAttribute('d')))(m.newBar('x'))`, "M75.0 0v14M150.0 0v14M225.0 0v14"},
		{"too many places for gaps", "bar", `(b => (b.draw(1, 101), b.element.querySelector('.gaps').getAttribute('d')))(m.newBar('x'))`, ""},
		{"a threshold", "bar", `(b => (b.draw(1, 20, 10), b.element.querySelector('.limit').getAttribute('d')))(m.newBar('x'))`, "M150.0 0v14"},
		{"no threshold", "bar", `(b => (b.draw(1, 20, 10), b.draw(1, 20), b.element.querySelector('.limit').hasAttribute('d')))(m.newBar('x')) + ''`, "false"},

		{"each answer has a shape of its own", "mark", `['served', 'fallback', 'refused', 'failed', 'nothing'].map(a => m.shape(a).innerHTML).filter((x, i, all) => x && all.indexOf(x) === i).length + ''`, "5"},
		{"which results are good", "mark", `['200', '404', '422', '429', '500', '503', 'timeout', 'connection', 'undecodable', 'cancelled'].filter(result => m.succeeded({result})).join()`, "200,404,422"},
		{"a mark of two attempts", "mark", `[...m.mark({answer: 'served', steps: [{attempt: 1, result: '503'}, {}, {attempt: 2, result: '200'}]}).querySelectorAll('rect')].map(r => r.getAttribute('class') + r.getAttribute('y')).join()`, "bad14.5,good23.0"},
		{"twenty attempts have room", "mark", `(r => +r.getAttribute('y') + +r.getAttribute('height') <= 48)([...m.mark({answer: 'failed', steps: Array(20).fill({attempt: 1, result: '503'})}).querySelectorAll('rect')].at(-1)) + ''`, "true"},

		{"a call served", "mark", `m.title({answer: 'served', attempts: 1, took_ms: 1234, steps: []})`, "served after 1 attempt in 1.2 s"},
		{"a call failed", "mark", `m.title({answer: 'failed', attempts: 4, took_ms: 12.34, steps: []})`, "failed after 4 attempts in 12 ms"},
		{"a caller gone", "mark", `m.title({answer: 'nothing', attempts: 2, took_ms: 0.25, steps: []})`, "caller left after 2 attempts in 0.3 ms"},
		{"a call refused by the breaker", "mark", `m.title({answer: 'refused', outcome: 'circuit_open', attempts: 0, steps: []})`, "refused: circuit open"},
		{"a call refused by the bulkhead", "mark", `m.title({answer: 'refused', outcome: 'bulkhead_full', attempts: 0, steps: []})`, "refused: bulkhead full"},
		{"a fallback for a call refused", "mark", `m.title({answer: 'fallback', outcome: 'circuit_open', attempts: 0, steps: []})`, "fallback: circuit open"},
		{"a caller that left before an attempt", "mark", `m.title({answer: 'nothing', outcome: 'cancelled', attempts: 0, steps: []})`, "caller left"},
		{"a fallback before an attempt", "mark", `m.title({answer: 'fallback', outcome: 'timeout', attempts: 0, steps: []})`, "fallback"},
		{"its story", "mark", `m.story({answer: 'failed', attempts: 2, gave_up: 'no attempt left', steps: [{attempt: 1, result: '503', took_ms: 1}, {took_ms: 57.4}, {attempt: 2, result: 'timeout', took_ms: 800}]})`, "1: 503 1.0 ms, wait 57 ms, 2: timeout 800 ms, gave up: no attempt left"},
		{"the story of a no", "mark", `m.story({answer: 'served', attempts: 1, gave_up: 'not transient', steps: [{attempt: 1, result: '404', took_ms: 1}]})`, "1: 404 1.0 ms"},
		{"the story of a refusal", "mark", `m.story({answer: 'refused', attempts: 0, steps: []})`, "no attempt was made"},

		{"attempts and waits in proportion", "timing", `(t => (t.draw({steps: [{attempt: 1, result: 'timeout', took_ms: 800}, {took_ms: 100}, {attempt: 2, result: '200', took_ms: 100}]}), [...t.element.children].map(e => e.getAttribute('class') + ' ' + (e.getAttribute('width') ?? e.getAttribute('d'))).join()))(m.newTiming())`,
			"bad 238.0,wait M240.0 10H270.0,good 28.0"},
		{"a short attempt can be seen", "timing", `(t => (t.draw({steps: [{attempt: 1, result: '503', took_ms: 0.1}, {took_ms: 4000}]}), +t.element.firstChild.getAttribute('width') > 2))(m.newTiming()) + ''`, "true"},
		{"all of it has room", "timing", `(t => (t.draw({steps: Array(20).fill([{attempt: 1, result: '503', took_ms: 0.1}, {took_ms: 100}]).flat()}), t.element.lastChild.getAttribute('d').split('H')[1]))(m.newTiming())`, "300.0"},
		{"a call without a step", "timing", `(t => (t.draw({steps: []}), t.element.children.length))(m.newTiming()) + ''`, "0"},

		{"which fault is which", "faults", `[{script: 'S', status: 503}, {script: 'FFS', status: 503}, {script: 'F', status: 503}, {script: 'F', status: 500}, {script: 'F', status: 503, retry_after: '1'}, {script: 'F', status: 503, latency: '1s'}, {script: 'S', status: 503, latency: '150ms'}, {script: 'LS', status: 503}].map(fault => (f => (f.draw({next: 0, ...fault}, {status: {controls: true}}), [...f.element.querySelectorAll('[aria-pressed=true]')].map(b => b.textContent).join('+') || '-'))(m.newFaults('flaky'))).join()`,
			"healthy,default,failing,-,-,-,slow,lost reply"},
		{"the default of another", "faults", `(f => (f.draw({next: 0, script: 'S', status: 503}, {status: {controls: true}}), [...f.element.querySelectorAll('[aria-pressed=true]')].map(b => b.textContent).join()))(m.newFaults('inventory'))`, "healthy,default"},
		{"a fault in words", "faults", `(f => (f.draw({next: 2, script: 'SHF', status: 500, latency: '1s', retry_after: '<b>7</b>'}, {status: {}}), f.element.querySelector('.words').textContent))(m.newFaults('flaky'))`, "next: answer 500 · 1s late · Retry-After <b>7</b> · script SHF"},

		{"a legend for each shape", "legend", `m.newLegend()[0].querySelectorAll('li svg > *').length + ''`, "7"},

		{"closed", "words", `m.stateOf({state: 'closed'})`, "closed"},
		{"the last second", "words", `m.stateOf({state: 'open', retry_after_ms: 1000})`, "open, probe in 1 s"},
		{"a bit more than it", "words", `m.stateOf({state: 'open', retry_after_ms: 1001})`, "open, probe in 2 s"},
		{"due", "words", `m.stateOf({state: 'open', retry_after_ms: 0, probe_due: true})`, "open, probe due"},
		{"probing", "words", `m.stateOf({state: 'half_open', retry_after_ms: 0})`, "half-open, probing"},

		{"bars in the timeline", "timeline", lanes("{served: 1, slow: 100}", `[...rows].map(r => r.querySelector('.bars')?.getAttribute('d')).slice(0, 2).join() + rows[0].lastChild.textContent`), "M595.0 20v-3.0h4v3.0z,1"},
		{"a scale for few", "timeline", lanes("{served: 1}", `rows[0].querySelector('.bars').getAttribute('d')`), "M595.0 20v-4.0h4v4.0z"},
		{"the band of a breaker", "timeline", lanes("{}", `[...[...rows].at(-1).querySelector('svg').children].map(e => e.getAttribute('class') + ' ' + (e.getAttribute('x') ?? e.getAttribute('d').split(' ')[0]) + ' ' + e.getAttribute('width')).join()`),
			"open 550.0 50.0,change M550.0 null,half_open 500.0 50.0,change M500.0 null,open 0.0 500.0"},
		{"caller limits have a lane where they are on", "timeline", lanes("{callers: 2}", `[...rows].map(r => r.textContent).filter(t => t.includes('caller')).join()`), ""},

		{"30 calls of each", "state", `((s, r) => { for (let i = 1; i <= 31; i++) r.call({dependency: 'a', i}); r.call({dependency: 'b'}); return s.calls.a.length + ' from ' + s.calls.a[0].i + ' and ' + s.calls.b.length; })(...(s => [s, m.receivers(s)])(m.newState()))`, "30 from 2 and 1"},
		{"two minutes of seconds", "state", `((s, r) => { const now = new Date('2026-01-01T00:02:00.5Z'); const at = now / 1000 | 0; for (const ago of [121, 120, 119, 0]) r.timeline({now: now.toISOString(), seconds: [{at: at - ago, counts: {served: 1}}]}); return [...s.counts.keys()].map(k => at - k).join(); })(...(s => [s, m.receivers(s)])(m.newState()))`, "119,0"},
		{"a second told again replaces", "state", `((s, r) => { for (const served of [1, 3]) r.timeline({now: '2026-01-01T00:00:00Z', seconds: [{at: 1767225600, counts: {served}}]}); return JSON.stringify([...s.counts]); })(...(s => [s, m.receivers(s)])(m.newState()))`, `[[1767225600,{"served":3}]]`},
		{"a clock that is ahead", "state", `(s => { m.receivers(s).timeline({now: '2036-01-01T00:00:00Z', seconds: []}); return Math.abs(m.now(s) - Date.parse('2036-01-01T00:00:00Z') / 1000) < 5; })(m.newState()) + ''`, "true"},
		{"a new connection begins anew", "state", forgets("begin"), `{} {} 0 false`},
		{"a reset forgets", "state", forgets("reset"), `{} {} 0 true`},
		{"live", "state", `m.connectionOf({lost: false, status: {}}).join()`, "live,live"},
		{"draining", "state", `m.connectionOf({lost: false, status: {draining: true}}).join()`, "draining,the server is stopping"},
		{"gone after that", "state", `m.connectionOf({lost: true, status: {draining: true}}).join()`, "lost,the server is stopping. Trying again …"},
		{"never there", "state", `m.connectionOf({lost: true, status: null}).join()`, "lost,no connection. Trying again …"},
	} {
		got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf(`import('/console/%s.js').then(m => %s)`, tt.module, tt.expression), chromedp.EvalAwaitPromise))
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q, want %q; %v", tt.name, got, tt.want, err)
		}
	}
}

// lanes is something of the rows of a timeline with these counts in this second, more before the
// two minutes, and a breaker that opened 10 s ago and was half-open for 10 s before that.
func lanes(counts, expression string) string {
	return fmt.Sprintf(`(t => {
		const clock = 1767225600000 - Date.now();
		t.draw({
			clock, status: {dependencies: {flaky: {breaker: {state: 'open'}}}},
			counts: new Map([[1767225600 - 120, {served: 9, slow: 999}], [1767225600, %s]]),
			transitions: {flaky: [{at: 1767225601 - 200, from: 'closed', to: 'open'}, {at: 1767225601 - 20, from: 'open', to: 'half_open'}, {at: 1767225601 - 10, from: 'half_open', to: 'open'}]},
		});
		const rows = t.elements[0].querySelectorAll('tbody tr');
		return %s;
	})(m.newTimeline())`, counts, expression)
}

// forgets is what is left of a state after an event.
func forgets(event string) string {
	return strings.ReplaceAll(`(s => {
		const r = m.receivers(s);
		r.lost();
		r.call({dependency: 'a'});
		r.transition({dependency: 'a', at: '2026-01-01T00:00:00Z'});
		r.timeline({now: '2026-01-01T00:00:00Z', seconds: [{at: 1767225600, counts: {served: 1}}]});
		r.EVENT({});
		return JSON.stringify(s.calls) + ' ' + JSON.stringify(s.transitions) + ' ' + s.counts.size + ' ' + s.lost;
	})(m.newState())`, "EVENT", event)
}

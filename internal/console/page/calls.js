// The last 30 calls of a dependency as marks, and the timing of one of them: the one that is
// pointed at or chosen with the arrow keys, else the last.

import { h, say, set } from './dom.js';
import { mark, story, title } from './mark.js';
import { lastCalls } from './state.js';
import { newTiming } from './timing.js';

export function newCalls(dependency) {
  const timing = newTiming();
  const summary = h('p', { class: 'summary' });
  const steps = h('p', { class: 'steps' });
  // Marks go from place to place, and the places stay.
  const places = Array.from({ length: lastCalls }, () => h('span', { class: 'place', role: 'presentation' }));
  const strip = h('div', {
    class: 'marks', role: 'listbox', tabindex: 0, 'aria-orientation': 'horizontal', 'aria-label': `the last ${lastCalls} calls of ${dependency}, the oldest first`,
  }, ...places);
  const markOf = new WeakMap(); // by call
  const callOf = new WeakMap(); // by mark
  let made = 0;
  let calls = []; // in the strip
  let chosen = null; // with the keyboard
  let pointed = null; // with the pointer
  let told; // in the detail, null for none

  strip.addEventListener('keydown', (event) => {
    const at = calls.indexOf(chosen);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: calls.length - 1 }[event.key];
    if (to === undefined || !calls.length) return;
    event.preventDefault();
    choose(calls[Math.min(Math.max(to, 0), calls.length - 1)]);
  });
  strip.addEventListener('focus', () => choose(calls.at(-1) ?? null));
  strip.addEventListener('blur', () => choose(null));
  strip.addEventListener('pointerover', (event) => {
    pointed = callOf.get(event.target.closest('.mark')) ?? null;
    tell();
  });
  strip.addEventListener('pointerleave', () => {
    pointed = null;
    tell();
  });

  function choose(call) {
    if (chosen) set(markOf.get(chosen), 'aria-selected', 'false');
    chosen = call;
    if (chosen) set(markOf.get(chosen), 'aria-selected', 'true');
    set(strip, 'aria-activedescendant', chosen && markOf.get(chosen).id);
    tell();
  }

  function tell() {
    const call = pointed ?? chosen ?? calls.at(-1) ?? null;
    if (call === told) return;
    told = call;
    say(summary, call ? title(call) : 'no call yet');
    set(summary, 'data-answer', call?.answer);
    say(steps, call ? story(call) : '');
    timing.draw(call ?? { steps: [] });
  }

  function newMark(call) {
    const element = h('span', {
      class: 'mark', role: 'option', id: `${dependency}-call-${++made}`, 'aria-selected': 'false', 'aria-label': `${title(call)}: ${story(call)}`,
    }, mark(call));
    markOf.set(call, element);
    callOf.set(element, call);
    return element;
  }

  tell();
  return {
    element: h('div', { class: 'calls' }, strip, summary, timing.element, steps),
    draw(now = []) {
      if (now.length === calls.length && now.at(-1) === calls.at(-1)) return;
      calls = [...now];
      places.forEach((place, i) => {
        const call = calls[i - lastCalls + calls.length];
        const element = call && (markOf.get(call) ?? newMark(call));
        if (!element) place.replaceChildren();
        else if (place.firstChild !== element) place.replaceChildren(element);
      });
      if (chosen && !calls.includes(chosen)) choose(calls[0] ?? null);
      if (pointed && !calls.includes(pointed)) pointed = null;
      tell();
    },
  };
}

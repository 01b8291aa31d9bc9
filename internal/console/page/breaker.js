// The circuit breaker as a state machine: three states, the ways between them, and the one
// that it is in.

import { h, s, say, set } from './dom.js';
import { count, stateOf } from './words.js';

const nodes = [
  { state: 'closed', text: 'closed', x: 2, y: 16, w: 92 },
  { state: 'open', text: 'open', x: 226, y: 16, w: 92 },
  { state: 'half_open', text: 'half-open', x: 108, y: 92, w: 104 },
];

const ways = [
  { from: 'closed', to: 'open', d: 'M94 30H222', x: 160, y: 24, text: 'failures' },
  { from: 'open', to: 'half_open', d: 'M290 52C290 100 260 110 216 110', x: 284, y: 118, text: 'wait over' },
  { from: 'half_open', to: 'open', d: 'M186 92C190 70 205 52 223 44', x: 178, y: 64, text: 'failure' },
  { from: 'half_open', to: 'closed', d: 'M108 110C60 110 30 100 30 56', x: 36, y: 118, text: 'success' },
];

export function newBreaker() {
  const boxes = nodes.map((n) => s('g', { class: 'node', 'data-node': n.state },
    s('rect', { x: n.x, y: n.y, width: n.w, height: 36, rx: 8 }),
    s('text', { x: n.x + n.w / 2, y: n.y + 24 }, n.text)));
  const arrows = ways.map((w) => s('g', { class: 'way' },
    s('path', { d: w.d, 'marker-end': 'url(#arrow)' }), s('text', { x: w.x, y: w.y }, w.text)));
  const words = h('span', { class: 'is' });
  const refusals = h('span', { class: 'refusals' });
  const line = h('p', { class: 'state' }, words, refusals);
  const machine = s('svg', { class: 'machine', viewBox: '0 0 320 130', role: 'img' }, ...arrows, ...boxes);
  return {
    element: h('div', { class: 'breaker' }, line, machine),
    // draw shows the breaker of a snapshot; last is how it came into its state, if known.
    draw(breaker, last) {
      const state = stateOf(breaker);
      say(words, state);
      say(refusals, `${count(breaker.rejected, 'call')} refused`);
      set(line, 'data-state', breaker.state);
      set(line, 'data-due', breaker.probe_due);
      set(machine, 'aria-label', `circuit breaker, a state machine: ${state}`);
      nodes.forEach((n, i) => set(boxes[i], 'data-lit', n.state === breaker.state));
      ways.forEach((w, i) => set(arrows[i], 'data-taken', last?.from === w.from && last?.to === w.to && last.to === breaker.state));
    },
  };
}

// newArrow is the head of the ways, which a page needs once.
export function newArrow() {
  return s('svg', { class: 'unseen', 'aria-hidden': 'true' },
    s('defs', {}, s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto' },
      s('path', { d: 'M0 0L8 4L0 8Z', class: 'head' }))));
}

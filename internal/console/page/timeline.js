// The last two minutes, by the second: a lane for each kind of answer, and one for the state
// of each breaker.

import { h, s, say, set } from './dom.js';
import { now, seconds } from './state.js';
import { states } from './words.js';

const lanes = [
  { name: 'served', kind: 'served' },
  { name: 'fallback', kind: 'fallback' },
  { name: 'failed', kind: 'failed' },
  { name: 'refused by breaker', kind: 'refused', count: 'breaker' },
  { name: 'refused by bulkhead', kind: 'refused', count: 'bulkhead' },
  { name: 'refused by rate limit', kind: 'refused', count: 'limiter' },
  { name: 'refused by shedding', kind: 'refused', count: 'slow' },
  { name: 'refused by the cap over all', kind: 'refused', count: 'in_flight' },
  { name: 'refused by caller limit', kind: 'refused', count: 'callers', only: (status) => status.callers },
];

const width = 600; // 5 a second
const height = 20;
const step = width / seconds;

export function newTimeline() {
  const body = h('tbody');
  const scale = h('p', { class: 'totals' });
  let rows = null;
  let drawnAt = 0;
  let drawnCounts = '';

  const begin = (status) => {
    rows = [
      ...lanes.filter((lane) => !lane.only || lane.only(status)).map(newLane),
      ...Object.keys(status.dependencies).map(newBand),
    ];
    body.replaceChildren(...rows.map((row) => row.element));
  };
  return {
    elements: [h('table', { class: 'lanes' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'answers'),
        h('th', { scope: 'col', class: 'axis' }, h('span', {}, '2 min ago'), h('span', {}, '1 min ago'), h('span', {}, 'now')),
        h('th', { scope: 'col', class: 'number' }, 'in all'))),
      body), scale],
    draw(state) {
      if (!rows) begin(state.status);
      const end = Math.floor(now(state)) + 1; // of the second under way
      const counts = JSON.stringify([...state.counts]) + JSON.stringify(state.transitions);
      if (end === drawnAt && counts === drawnCounts) return;
      [drawnAt, drawnCounts] = [end, counts];
      const from = end - seconds;
      let most = 0;
      for (const [at, names] of state.counts) {
        if (at >= from) most = Math.max(most, ...Object.values(names));
      }
      for (const row of rows) row.draw(state, from, Math.max(5, most));
      say(scale, `The highest bar is ${Math.max(5, most)} a second.`);
    },
  };
}

function newRow(name, kind) {
  const picture = s('svg', { class: `lane ${kind}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  const total = h('td', { class: 'number' });
  const element = h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: 'wide' }, picture), total);
  return { element, picture, total };
}

function newLane({ name, kind, count = name }) {
  const { element, picture, total } = newRow(name, kind);
  const bars = s('path', { class: 'bars' });
  picture.append(bars);
  return {
    element,
    draw({ counts }, from, most) {
      let d = '';
      let sum = 0;
      for (const [at, names] of counts) {
        const n = names[count];
        if (!n || at < from) continue;
        sum += n;
        const tall = Math.max(3, (height * n) / most);
        d += `M${((at - from) * step).toFixed(1)} ${height}v-${tall.toFixed(1)}h${step - 1}v${tall.toFixed(1)}z`;
      }
      set(bars, 'd', d);
      say(total, String(sum));
    },
  };
}

// newBand shows when a breaker was open or half-open, with a line at each transition.
function newBand(dependency) {
  const { element, picture, total } = newRow(`breaker of ${dependency}`, 'band');
  let drawn = '';
  return {
    element,
    draw({ status, transitions }, from) {
      const changes = transitions[dependency] ?? [];
      const { state } = status.dependencies[dependency].breaker;
      say(total, states[state]);
      const x = (at) => Math.min(width, Math.max(0, (at - from) * step)).toFixed(1);
      // Backwards from the state of now, which was reached by the last change.
      let [until, is] = [from + seconds, state];
      const parts = [];
      for (const change of changes.toReversed()) {
        if (until <= from) break;
        parts.push([is, x(change.at), x(until), change.at >= from]);
        [until, is] = [change.at, change.from];
      }
      if (until > from) parts.push([is, x(from), x(until), false]);
      const key = JSON.stringify(parts);
      if (key === drawn) return;
      drawn = key;
      picture.replaceChildren(...parts.flatMap(([of, left, right, marked]) => [
        s('rect', { class: of, x: left, width: (right - left).toFixed(1), y: { closed: 8, half_open: 5, open: 1 }[of], height: { closed: 4, half_open: 10, open: 18 }[of] }),
        ...(marked ? [s('path', { class: 'change', d: `M${left} 0V${height}` })] : []),
      ]));
    },
  };
}

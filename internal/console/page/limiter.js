// The token buckets of the keys that were used last.

import { newBar } from './bar.js';
import { h, say, set } from './dom.js';
import { count } from './words.js';

const rows = 6;

export function newLimiter() {
  const totals = h('p', { class: 'counts' });
  const keys = h('p', { class: 'totals' });
  const buckets = Array.from({ length: rows }, () => {
    const bar = newBar('tokens');
    const key = h('th', { scope: 'row' });
    const tokens = h('td', { class: 'number' });
    return { bar, key, tokens, row: h('tr', {}, key, h('td', { class: 'wide' }, bar.element), tokens) };
  });
  const note = h('p', { class: 'note' });
  return {
    elements: [totals, h('table', { class: 'buckets' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'key'), h('th', { scope: 'col' }, 'bucket'), h('th', { scope: 'col' }, 'tokens'))),
      h('tbody', {}, ...buckets.map((b) => b.row))), note, keys],
    draw({ status }) {
      const { limiter } = status;
      say(totals, `${limiter.allowed} allowed · ${limiter.rejected} refused`);
      say(keys, `${count(limiter.burst, 'token')} a key, ${limiter.rate} more a second · ${count(limiter.keys, 'key')} of ${limiter.max_keys.toLocaleString('en')}`);
      // By name, so that rows stay where they are while keys take turns.
      const recent = (status.buckets ?? []).slice(0, rows).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
      buckets.forEach(({ bar, key, tokens, row }, i) => {
        const bucket = recent[i];
        set(row, 'data-empty', !bucket);
        say(key, bucket ? bucket.key : '–');
        say(tokens, bucket ? bucket.tokens.toFixed(1) : '');
        bar.draw(bucket ? bucket.tokens : 0, limiter.burst);
      });
      say(note, explain(status));
    },
  };
}

function explain({ limiter, buckets }) {
  const shared = limiter.backend !== 'redis' ? ''
    : limiter.degraded ? 'Redis is away: this instance decides alone. ' : 'Shared through Redis; the counts are those of this instance. ';
  if (!buckets) return `${shared}Keys are shown only where controls are on.`;
  return `${shared}The first four characters of the keys used last. A bucket that is full again is forgotten.`;
}

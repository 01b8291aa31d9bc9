// A bar of places, some of them taken: permits, tokens, a queue. Its numbers always stand
// beside it in words.

import { h, s, say, set } from './dom.js';

const width = 300;
const height = 14;

export function newBar(kind) {
  const taken = s('rect', { class: 'taken', height, width: 0 });
  const gaps = s('path', { class: 'gaps' });
  const limit = s('path', { class: 'limit' });
  const element = s('svg', { class: `bar ${kind}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    s('rect', { class: 'free', width, height }), taken, gaps, limit);
  let places;
  return {
    element,
    // draw shows n of total places; mark is where a threshold lies, if there is one.
    draw(n, total, mark = null) {
      const share = total > 0 ? Math.min(1, n / total) : 0;
      set(taken, 'width', (width * share).toFixed(1));
      set(element, 'data-full', share >= 1);
      set(limit, 'd', mark === null ? null : `M${((width * mark) / total).toFixed(1)} 0v${height}`);
      if (places === total) return;
      places = total;
      let d = '';
      for (let i = 1; i < total && total <= 100; i++) d += `M${((width * i) / total).toFixed(1)} 0v${height}`;
      set(gaps, 'd', d);
    },
  };
}

// newMeter is a bar with its name and its words above, and a note beside it.
export function newMeter(name, kind) {
  const bar = newBar(kind);
  const words = h('span', { class: 'words' });
  const note = h('span', { class: 'note' });
  return {
    element: h('div', { class: 'meter' }, h('span', { class: 'name' }, name), words, bar.element, note),
    draw(text, aside, ...places) {
      say(words, text);
      say(note, aside);
      bar.draw(...places);
    },
  };
}

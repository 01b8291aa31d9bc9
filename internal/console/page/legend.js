// What the shapes mean.

import { h, s } from './dom.js';
import { shape } from './mark.js';
import { answers } from './words.js';

export function newLegend() {
  const box = (kind) => s('svg', { class: 'shape', viewBox: '0 0 10 12', 'aria-hidden': 'true' }, s('rect', { class: kind, x: 1.5, y: 3, width: 7, height: 6 }));
  return [h('ul', { class: 'legend' },
    ...Object.entries(answers).map(([answer, words]) => h('li', {}, shape(answer), ` ${words}`)),
    h('li', {}, box('good'), ' attempt that succeeded'),
    h('li', {}, box('bad'), ' attempt that failed')),
  h('p', { class: 'note' }, 'One mark is one call, the newest on the right. Point at it, or go there with the tab and arrow keys, to see its attempts and waits.')];
}

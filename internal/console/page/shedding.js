// Room for incoming work: places, the queue, who was refused.

import { newMeter } from './bar.js';
import { h, say, set } from './dom.js';
import { count } from './words.js';

export function newShedding() {
  const places = newMeter('at work', 'permits');
  const queue = newMeter('queue', 'permits');
  const inFlight = newMeter('all business requests', 'permits');
  const callers = h('p', { class: 'totals' });
  return {
    elements: [places.element, queue.element, inFlight.element, callers],
    draw({ status: { slow, in_flight: all, callers: limit, streams } }) {
      say(places.words, `${slow.in_use} of ${count(slow.permits, 'place')} · ${slow.rejected} refused`);
      places.bar.draw(slow.in_use, slow.permits);
      say(queue.words, slow.queue ? `${slow.waiting} of ${count(slow.queue, 'place')}` : 'none: refused at once');
      queue.bar.draw(slow.waiting, slow.queue);
      say(inFlight.words, `${all.in_use} of ${all.permits} · ${all.rejected} refused`);
      inFlight.bar.draw(all.in_use, all.permits);
      say(callers, (limit ? `limit per caller: ${limit.rejected} refused, ${count(limit.keys, 'caller')} · ` : '') + `${count(streams.in_use, 'page')} watching`);
      set(inFlight.element, 'data-quiet', all.rejected === 0);
    },
  };
}

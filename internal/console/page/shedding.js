// Room for incoming work: places, the queue, who was refused.

import { newMeter } from './bar.js';
import { h, say } from './dom.js';
import { count } from './words.js';

export function newShedding() {
  const places = newMeter('at work', 'permits');
  const queue = newMeter('queue', 'permits');
  const inFlight = newMeter('all business requests', 'permits');
  const callers = h('p', { class: 'totals' });
  return {
    elements: [places.element, queue.element, inFlight.element, callers],
    draw({ status: { slow, in_flight: all, callers: limit, streams } }) {
      places.draw(`${slow.in_use} of ${count(slow.permits, 'place')}`, `${slow.rejected} refused`, slow.in_use, slow.permits);
      queue.draw(slow.queue ? `${slow.waiting} of ${count(slow.queue, 'place')}` : 'none', slow.queue ? '' : 'refused at once', slow.waiting, slow.queue);
      inFlight.draw(`${all.in_use} of ${all.permits}`, `${all.rejected} refused`, all.in_use, all.permits);
      say(callers, (limit ? `limit per caller: ${limit.rejected} refused, ${count(limit.keys, 'caller')} · ` : '') + `${count(streams.in_use, 'page')} watching`);
    },
  };
}

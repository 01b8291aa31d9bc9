// The fault in force of a dependency, and buttons for others.

import { control } from './control.js';
import { h, say, set } from './dom.js';
import { mayControl } from './state.js';
import { letters } from './words.js';

// Forms for PUT /faults/{dependency}; null is DELETE, which brings back the default.
const presets = [
  { name: 'healthy', form: { script: 'S' } },
  { name: 'default', form: null },
  { name: 'failing', form: { script: 'F' } },
  { name: 'hanging', form: { script: 'H' } },
  { name: 'slow', form: { script: 'S', latency: '150ms' } },
  { name: 'lost reply', form: { script: 'LS' } },
];

const own = { flaky: 'FFS' }; // the default scripts that are not S

export function newFaults(dependency) {
  const words = h('span', { class: 'words' });
  const problem = h('p', { class: 'problem', role: 'status' });
  const buttons = presets.map(({ name, form }) => {
    const button = h('button', { type: 'button' }, name);
    const options = form ? { method: 'PUT', body: new URLSearchParams(form) } : { method: 'DELETE' };
    button.addEventListener('click', () => control(`/faults/${dependency}`, options, problem));
    return button;
  });
  const group = h('div', { class: 'buttons', role: 'group', 'aria-label': `fault of ${dependency}` }, ...buttons, problem);
  return {
    element: h('div', { class: 'faults' }, h('p', { class: 'fault' }, h('b', {}, 'fault'), ' ', words), group),
    draw(fault, state) {
      const next = letters[fault.script[fault.next]](fault);
      const extra = [fault.latency && `${fault.latency} late`, fault.retry_after && `Retry-After ${fault.retry_after}`].filter(Boolean);
      say(words, [`next: ${next}`, ...extra, `script ${fault.script}`].join(' · '));
      set(group, 'hidden', !state.status.controls);
      presets.forEach(({ form }, i) => {
        const script = form ? form.script : (own[dependency] ?? 'S');
        const is = fault.script === script && fault.latency === form?.latency && fault.status === 503 && !fault.retry_after;
        set(buttons[i], 'aria-pressed', String(is));
        set(buttons[i], 'disabled', !mayControl(state));
      });
    },
  };
}

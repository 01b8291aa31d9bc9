// Sending requests, with or without some of the layers, and counting the answers as they come.

import { control } from './control.js';
import { h, say, set } from './dom.js';
import { mayControl } from './state.js';
import { count } from './words.js';

const targets = [
  { path: '/checkout', layered: true },
  { path: '/stock/mug', layered: true },
  { path: '/charge', layered: true, method: 'POST' },
  { path: '/profile/ada', layered: true },
  { path: '/limited' },
  { path: '/slow' },
];
const layers = ['bulkhead', 'breaker', 'retry', 'timeout'];

// A browser has six connections to a host. One is for /events, two are left for buttons.
const atOnce = 3;
let underWay = 0;

export function newSend(redraw) {
  const boxes = layers.map((name) => h('input', { type: 'checkbox', id: `layer-${name}`, checked: true }));
  const key = h('input', { type: 'text', id: 'send-key', maxlength: 128, size: 10, placeholder: 'none', autocomplete: 'off', spellcheck: 'false' });
  const rows = targets.map((target) => newRow(target, boxes, key, redraw));
  return {
    elements: [
      h('div', { class: 'options' },
        h('fieldset', {}, h('legend', {}, 'layers of the first four'),
          ...layers.map((name, i) => h('label', {}, boxes[i], ` ${name}`))),
        h('p', {}, h('label', { for: 'send-key' }, 'key '), key,
          h('span', { class: 'note' }, ' X-API-Key, and Idempotency-Key of /charge'))),
      h('table', { class: 'sending' },
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'route'), h('th', { scope: 'col' }, 'send'), h('th', { scope: 'col' }, 'answers'))),
        h('tbody', {}, ...rows.map((row) => row.element))),
    ],
    draw(state) {
      for (const row of rows) row.draw(mayControl(state));
    },
    clear() {
      for (const row of rows) row.clear();
    },
  };
}

function newRow({ path, layered, method = 'GET' }, boxes, key, redraw) {
  const problem = h('span', { class: 'problem', role: 'status' });
  const answers = h('ul', { class: 'answers' });
  const progress = h('span', { class: 'progress' });
  let tally = new Map();
  let [sent, come, running] = [0, 0, 0];

  async function send(n) {
    if (running === 0) [tally, sent, come] = [new Map(), 0, 0];
    running++;
    underWay++;
    sent += n;
    draw(true);
    redraw();
    const form = new URLSearchParams({ route: path, count: n });
    const without = layered ? boxes.filter((box) => !box.checked).map((box) => box.id.replace('layer-', '')) : [];
    if (without.length) form.set('without', without);
    if (key.value) form.set('key', key.value);
    const response = await control('/send', { method: 'POST', body: form }, problem);
    let got = 0;
    if (response?.ok) {
      await lines(response, (line) => {
        got++;
        come++;
        tally.set(line, (tally.get(line) ?? 0) + 1);
        redraw();
      });
    }
    sent -= n - got; // those that nothing is known of
    running--;
    underWay--;
    redraw();
  }

  const buttons = [1, 10, 50].map((n) => {
    const button = h('button', { type: 'button', 'aria-label': `send ${count(n, 'request')} to ${path}` }, String(n));
    button.addEventListener('click', () => send(n));
    return button;
  });
  const element = h('tr', { 'data-path': path },
    h('th', { scope: 'row' }, h('span', { class: 'route' }, `${method} ${path}`)),
    h('td', { class: 'buttons' }, ...buttons),
    h('td', { class: 'wide' }, h('div', { class: 'outcome' }, progress, problem, answers)));

  function draw(enabled) {
    for (const button of buttons) set(button, 'disabled', !enabled || underWay >= atOnce);
    say(progress, sent ? `${come} of ${sent}` : '');
    set(progress, 'data-running', running > 0);
    const all = [...tally].map(([line, n]) => `${n} × ${line}`);
    while (answers.children.length > all.length) answers.lastElementChild.remove();
    all.forEach((text, i) => {
      const item = answers.children[i] ?? answers.appendChild(h('li'));
      say(item, text);
      set(item, 'data-status', text.match(/× (\d+)/)?.[1]);
    });
  }
  return {
    element,
    draw,
    clear() {
      if (running === 0) [tally, sent, come] = [new Map(), 0, 0];
    },
  };
}

// lines calls back for each line of a response as it comes.
async function lines(response, line) {
  let rest = '';
  try {
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split('\n');
      rest = parts.pop();
      parts.forEach(line);
    }
  } catch {
    // The connection is lost, which the page says elsewhere.
  }
}

// The live page: what comes from /events changes the state, and the state is drawn, once a
// frame at most however much has come.

import { newArrow } from './breaker.js';
import { newCard } from './card.js';
import { control } from './control.js';
import { say, set } from './dom.js';
import { newLegend } from './legend.js';
import { newLimiter } from './limiter.js';
import { newSend } from './send.js';
import { newShedding } from './shedding.js';
import { connectionOf, mayControl, newState, receivers } from './state.js';
import { follow } from './stream.js';
import { newTimeline } from './timeline.js';
import { states } from './words.js';

const state = newState();
const $ = (id) => document.getElementById(id);

let due = false;
function redraw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw();
  });
}

const limiter = newLimiter();
const shedding = newShedding();
const timeline = newTimeline();
const send = newSend(redraw);
const cards = new Map();

document.body.append(newArrow());
$('limiter').append(...limiter.elements);
$('shedding').append(...shedding.elements);
$('timeline').append(...timeline.elements);
$('send').append(...send.elements);
$('legend').append(...newLegend());
$('reset').addEventListener('click', () => control('/reset', { method: 'POST' }, $('problem')));

function draw() {
  const { status } = state;
  const [connection, words] = connectionOf(state);
  say($('connection'), words);
  set($('connection'), 'data-state', connection);
  set(document.body, 'data-connection', connection);
  if (!status) return;

  set($('reset'), 'hidden', !status.controls);
  set($('reset'), 'disabled', !mayControl(state));
  set($('send'), 'hidden', !status.controls);
  for (const dependency of Object.keys(status.dependencies)) {
    if (!cards.has(dependency)) {
      cards.set(dependency, newCard(dependency));
      $('dependencies').append(cards.get(dependency).element);
    }
    cards.get(dependency).draw(state);
  }
  limiter.draw(state);
  shedding.draw(state);
  timeline.draw(state);
  send.draw(state);
}

// Each event changes the state, and has it drawn.
const on = Object.fromEntries(Object.entries(receivers(state)).map(([name, receive]) => [name, (data) => {
  receive(data);
  redraw();
}]));
let live = false; // past what is told again of before
follow({
  ...on,
  begin() {
    live = false;
    on.begin();
  },
  reset(data) {
    send.clear();
    on.reset(data);
  },
  timeline(data) {
    live = true;
    on.timeline(data);
  },
  transition(data) {
    on.transition(data);
    if (live) say($('announcement'), `circuit breaker of ${data.dependency}: ${states[data.to]}`);
  },
});
setInterval(redraw, 500); // time goes on in the timeline when nothing happens

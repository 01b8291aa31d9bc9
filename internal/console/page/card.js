// The card of a dependency: its layers, its last calls, and its fault.

import { newMeter } from './bar.js';
import { newBreaker } from './breaker.js';
import { newCalls } from './calls.js';
import { h, say } from './dom.js';
import { newFaults } from './faults.js';
import { count, routes } from './words.js';

export function newCard(dependency) {
  const breaker = newBreaker();
  const failures = newMeter('failures', 'failures');
  const bulkhead = newMeter('bulkhead', 'permits');
  const budget = h('span', { class: 'words' });
  const budgetNote = h('span', { class: 'note' });
  const calls = newCalls(dependency);
  const faults = newFaults(dependency);
  const element = h('article', { class: 'card', 'data-dependency': dependency, 'aria-labelledby': `card-${dependency}` },
    h('h2', { id: `card-${dependency}` }, dependency, ' ', h('span', { class: 'route' }, routes[dependency] ?? '')),
    breaker.element, failures.element, bulkhead.element,
    h('div', { class: 'meter budget' }, h('span', { class: 'name' }, 'budget'), budget, budgetNote),
    calls.element, faults.element);
  return {
    element,
    draw(state) {
      const now = state.status.dependencies[dependency];
      breaker.draw(now.breaker, state.transitions[dependency]?.at(-1));
      drawFailures(failures, now.breaker);
      const waiting = now.bulkhead.waiting ? ` · ${now.bulkhead.waiting} wait` : '';
      bulkhead.draw(`${now.bulkhead.in_use} of ${count(now.bulkhead.permits, 'permit')}${waiting}`, `${now.bulkhead.rejected} refused`,
        now.bulkhead.in_use, now.bulkhead.permits);
      say(budget, `${now.retry.budget_left} left`);
      say(budgetNote, `${now.retry.budget_refused} refused`);
      calls.draw(state.calls[dependency]);
      faults.draw(now.faults, state);
    },
  };
}

// drawFailures shows how near a closed breaker is to opening.
function drawFailures(meter, breaker) {
  const counts = breaker.state === 'closed';
  if (breaker.opens_after) { // so many in a row
    meter.draw(counts ? `${breaker.consecutive_failures} of ${breaker.opens_after} in a row` : 'not counted now', '',
      breaker.consecutive_failures, breaker.opens_after);
    return;
  }
  const calls = Math.max(breaker.calls, breaker.min_calls);
  const limit = Math.ceil(calls * breaker.failure_ratio);
  meter.draw(counts ? `${breaker.failures} of ${count(breaker.calls, 'call')}` : 'not counted now', `opens at ${limit}`, breaker.failures, calls, limit);
}

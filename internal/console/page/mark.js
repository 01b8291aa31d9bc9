// A call as a mark: what the caller got as a shape, and an attempt as a box, full if it
// succeeded.

import { s } from './dom.js';
import { answers, count, duration } from './words.js';

const shapes = {
  served: () => s('circle', { cx: 5, cy: 6, r: 4 }),
  fallback: () => s('path', { d: 'M5 1L9.5 6L5 11L.5 6Z' }),
  refused: () => s('path', { d: 'M.8 4H9.2V8H.8Z' }),
  failed: () => s('path', { d: 'M1 2L9 10M9 2L1 10', class: 'stroke' }),
  nothing: () => s('circle', { cx: 5, cy: 6, r: 3, class: 'stroke' }),
};

const bottom = 48;

export function shape(answer) {
  return s('svg', { class: `shape ${answer}`, viewBox: '0 0 10 12', 'aria-hidden': 'true' }, shapes[answer]());
}

export function mark(call) {
  const attempts = call.steps.filter((step) => step.attempt);
  const each = Math.min(8.5, (bottom - 14) / Math.max(1, attempts.length));
  return s('svg', { class: call.answer, viewBox: `0 0 10 ${bottom}`, 'aria-hidden': 'true' },
    shapes[call.answer](),
    ...attempts.map((step, i) => s('rect', {
      class: succeeded(step) ? 'good' : 'bad', x: 1.5, width: 7, y: (14.5 + i * each).toFixed(1), height: Math.max(1, each - 2.5).toFixed(1),
    })));
}

export const succeeded = (step) => /^[1-4]\d\d$/.test(step.result) && step.result !== '429';

// title is the call in a few words.
export function title(call) {
  const what = answers[call.answer];
  if (call.attempts > 0) return `${what} after ${count(call.attempts, 'attempt')} in ${duration(call.took_ms)}`;
  const why = { bulkhead_full: 'bulkhead full', circuit_open: 'circuit open' }[call.outcome];
  return why ? `${what}: ${why}` : what;
}

// story is all that it did.
export function story(call) {
  const steps = call.steps.map((step) => (step.attempt ? `${step.attempt}: ${step.result} ${duration(step.took_ms)}` : `wait ${duration(step.took_ms)}`));
  if (call.attempts === 0) steps.push('no attempt was made');
  if (call.gave_up && call.answer !== 'served') steps.push(`gave up: ${call.gave_up}`);
  return steps.join(', ');
}

// How long a call took: attempts as boxes, the waits between them as lines.

import { s } from './dom.js';
import { succeeded } from './mark.js';

const width = 300;
const height = 20;

export function newTiming() {
  const element = s('svg', { class: 'timing', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  return {
    element,
    draw(call) {
      const total = Math.max(0.1, call.steps.reduce((sum, step) => sum + step.took_ms, 0));
      // However short, an attempt must be seen.
      const widths = call.steps.map((step) => Math.max(step.attempt ? 5 : 1, (width * step.took_ms) / total));
      const scale = width / Math.max(width, widths.reduce((sum, w) => sum + w, 0));
      let x = 0;
      element.replaceChildren(...call.steps.map((step, i) => {
        const from = x;
        x += widths[i] * scale;
        if (!step.attempt) return s('path', { class: 'wait', d: `M${from.toFixed(1)} ${height / 2}H${x.toFixed(1)}` });
        return s('rect', { class: succeeded(step) ? 'good' : 'bad', x: (from + 1).toFixed(1), y: 2, width: Math.max(1, x - from - 2).toFixed(1), height: height - 4 });
      }));
    },
  };
}

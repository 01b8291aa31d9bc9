// The words for what the service reports, in one place.

export const routes = {
  flaky: 'GET /checkout',
  inventory: 'GET /stock/{sku}',
  payments: 'POST /charge',
  profiles: 'GET /profile/{id}',
};

export const states = { closed: 'closed', open: 'open', half_open: 'half-open' };

// What a caller got.
export const answers = {
  served: 'served',
  fallback: 'fallback',
  refused: 'refused',
  failed: 'failed',
  nothing: 'caller left',
};

// What a simulated dependency does, by the letter in its script.
export const letters = {
  S: () => 'succeed',
  F: (fault) => `answer ${fault.status}`,
  H: () => 'hang',
  R: () => 'reset the connection',
  M: () => 'answer nonsense',
  L: () => 'lose the reply',
};

export const count = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

export function duration(ms) {
  if (ms >= 9950) return `${Math.round(ms / 1000)} s`;
  if (ms >= 995) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 9.95 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

// stateOf is the state of a breaker, and how long until it lets a probe through.
export function stateOf(breaker) {
  if (breaker.state === 'closed') return 'closed';
  if (breaker.state === 'half_open') return 'half-open, probing';
  if (breaker.probe_due) return 'open, probe due';
  return `open, probe in ${Math.ceil(breaker.retry_after_ms / 1000)} s`;
}

// What the page knows: the last snapshot, the last calls, and two minutes of answers.

export const lastCalls = 30;
export const seconds = 120;

export function newState() {
  return {
    status: null, // the body of /status
    calls: {}, // by dependency, the last 30, the oldest first
    transitions: {}, // by dependency, the oldest first
    counts: new Map(), // by second in Unix time, how many of each name
    clock: 0, // ms by which the service's clock is ahead of ours
    lost: false,
  };
}

// receivers change state by what comes from /events.
export function receivers(state) {
  const forget = () => {
    state.calls = {};
    state.transitions = {};
    state.counts.clear();
  };
  return {
    begin() {
      state.lost = false;
      forget();
    },
    lost() {
      state.lost = true;
    },
    reset: forget,
    snapshot(status) {
      state.status = status;
    },
    call(call) {
      const calls = (state.calls[call.dependency] ??= []);
      calls.push(call);
      if (calls.length > lastCalls) calls.shift();
    },
    transition(transition) {
      const all = (state.transitions[transition.dependency] ??= []);
      all.push({ ...transition, at: Date.parse(transition.at) / 1000 });
      if (all.length > 100) all.shift();
    },
    timeline(timeline) {
      state.clock = Date.parse(timeline.now) - Date.now();
      for (const second of timeline.seconds) state.counts.set(second.at, second.counts);
      for (const at of state.counts.keys()) {
        if (at <= now(state) - seconds) state.counts.delete(at);
      }
    },
  };
}

// connectionOf is the state of the connection, and the words for it.
export function connectionOf({ lost, status }) {
  if (lost && status?.draining) return ['lost', 'the server is stopping. Trying again …'];
  if (lost) return ['lost', status ? 'connection lost: this is how it was. Trying again …' : 'no connection. Trying again …'];
  if (!status) return ['connecting', 'connecting …'];
  return status.draining ? ['draining', 'the server is stopping'] : ['live', 'live'];
}

// mayControl says whether buttons would work at this moment.
export const mayControl = ({ lost, status }) => !lost && Boolean(status?.controls);

// now is the service's time, in seconds.
export const now = (state) => (Date.now() + state.clock) / 1000;

// Following /events, and coming back after the connection is lost.

const again = 1000; // ms until the next try
const silence = 20_000; // ms; the service repeats its snapshot after 15 s in which nothing happens

// follow calls on[name](data) for each event of that name, and on.lost() when the connection
// is lost or turns out to be dead. The first event of each connection is a snapshot; with it
// comes on.begin().
export function follow(on) {
  const source = new EventSource('/events');
  let begun = false;
  let watchdog;

  const lost = () => {
    clearTimeout(watchdog);
    source.close();
    on.lost();
    setTimeout(follow, again, on);
  };
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(lost, silence);
  };
  alive();
  source.onerror = lost;
  for (const name of ['snapshot', 'call', 'transition', 'timeline', 'reset']) {
    source.addEventListener(name, (event) => {
      alive();
      if (!begun) on.begin();
      begun = true;
      on[name](JSON.parse(event.data));
    });
  }
  source.addEventListener('decision', alive);
}

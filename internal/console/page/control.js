// Asking the service to change something; what goes wrong is told in an element.

import { say } from './dom.js';

export async function control(path, options, problem) {
  try {
    const response = await fetch(path, options);
    say(problem, response.ok ? '' : `${response.status} ${await response.text()}`);
    return response;
  } catch {
    say(problem, 'no answer');
    return null;
  }
}

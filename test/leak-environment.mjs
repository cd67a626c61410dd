// Fails a test file that leaves a socket, server, child process or timer behind. Jest alone would warn that a worker
// did not exit, without a name and without failing. A hook of a setup file was refused: it runs before the file's own.
import { TestEnvironment } from 'jest-environment-node';
import { setTimeout as sleep } from 'node:timers/promises';

const WATCHED = { TCPSocketWrap: 'socket', TCPServerWrap: 'server', ProcessWrap: 'child process', Timeout: 'timer' };
/** What is closing already may take its time. */
const GRACE_MS = 2_000;
/** How long a worker may take to be replaced. */
const REPLACED_WITHIN_MS = 5_000;

export default class LeakEnvironment extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    this.replacedFrom = config.projectConfig.testEnvironmentOptions.replacedFrom;
  }

  // Jest replaces a worker that has grown too large (`workerIdleMemoryLimit`) when it has sent it the next file already, which is then begun
  // anew: a file that had opened or stored something by then would leave it behind.
  async setup() {
    await super.setup();
    if (process.send && process.memoryUsage().heapUsed > this.replacedFrom) await sleep(REPLACED_WITHIN_MS);
  }

  async handleTestEvent(event, state) {
    if (event.name === 'setup') this.before = open();
    if (event.name === 'run_finish') await this.#failOnLeaks(state);
  }

  async #failOnLeaks(state) {
    const deadline = Date.now() + GRACE_MS;
    let leaks = this.#leaks();
    while (leaks.length > 0 && Date.now() < deadline) {
      await sleep(20, undefined, { ref: false });
      leaks = this.#leaks();
    }
    // Thrown, it would take the results of the tests along.
    if (leaks.length > 0) state.unhandledErrors.push(new Error(`this file left open: ${leaks.join(', ')}`));
  }

  #leaks() {
    const now = open();
    return Object.entries(WATCHED)
      .map(([type, name]) => ({ name, more: (now[type] ?? 0) - (this.before[type] ?? 0) }))
      .filter(({ more }) => more > 0)
      .map(({ name, more }) => `${more} ${name}${more > 1 ? 's' : ''}`);
  }
}

function open() {
  const counts = {};
  for (const type of process.getActiveResourcesInfo()) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}

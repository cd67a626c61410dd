// Several worker processes on one queue, that together run so many jobs.
import { deferred } from './measure/numbers.mjs';
import { start } from './processes.mjs';

/**
 * @param {number} count
 * @param {object} args of roles/work.mjs
 * @param {number} jobs how many they run together
 */
export function startWorkers(count, args, jobs) {
  const ran = new Map();
  const finished = deferred();
  const workers = Array.from({ length: count }, (_, n) => {
    const worker = start('./roles/work.mjs', args);
    worker.onNote((runs) => {
      ran.set(n, runs);
      if ([...ran.values()].reduce((sum, each) => sum + each, 0) >= jobs) finished.resolve();
    });
    return worker;
  });
  const results = Promise.all(workers.map(({ result }) => result));
  void results.catch(() => {}); // Whoever waits for one of the two below hears of it.
  return {
    ready: Promise.all(workers.map(({ ready }) => ready)),
    /** All jobs ran, or a worker failed. */
    finished: Promise.race([finished.promise, results]),
    /** Asks them to end. @returns what each of them did */
    end() {
      for (const worker of workers) worker.ask();
      return results;
    },
  };
}

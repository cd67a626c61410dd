// Due jobs under a limit over several processes: how much of it is used, and whether more is ever used. By the times at which handlers
// begin and end, on the clock of this machine; a library promises its limit at the claim, a network delay before.
import { deferred } from '../measure/numbers.mjs';
import { run, start } from '../processes.mjs';

export default async function limited({ place, jobs, processes, concurrency, limits, handlerMs = 0 }) {
  await run('./roles/fill.mjs', { ...place, jobs });
  const ran = new Map();
  const finished = deferred();
  const workers = Array.from({ length: processes }, (_, n) => {
    const worker = start('./roles/limited-work.mjs', { ...place, concurrency, limits, handlerMs });
    worker.onNote((count) => {
      ran.set(n, count);
      if ([...ran.values()].reduce((sum, each) => sum + each, 0) >= jobs) finished.resolve();
    });
    return worker;
  });
  await Promise.race([finished.promise, Promise.all(workers.map(({ result }) => result))]);
  for (const worker of workers) worker.ask();
  const runs = (await Promise.all(workers.map(({ result }) => result))).flatMap((each) => each.runs);
  if (runs.length !== jobs) throw new Error(`${runs.length} runs of ${jobs} jobs`);
  return limits.rate ? ofRate(runs, limits.rate) : ofRunning(runs, limits.running);
}

function ofRate(runs, { max, perMs }) {
  const starts = runs.map(([began]) => began).sort((a, b) => a - b);
  let [worst, from] = [0, 0];
  for (const [n, at] of starts.entries()) {
    while (at - starts[from] >= perMs) from++;
    worst = Math.max(worst, n - from + 1);
  }
  // The first window is full at once, and the last one may not be: between them a start of each further one is due.
  const windows = Math.floor((starts.at(-1) - starts[0]) / perMs);
  const within = starts.filter((at) => at < starts[0] + windows * perMs).length;
  return { usedPercent: (within / (windows * max)) * 100, worst };
}

function ofRunning(runs, most) {
  const changes = runs.flatMap(([began, ended]) => [
    [began, 1],
    [ended, -1],
  ]);
  changes.sort(([a, by], [b, other]) => a - b || by - other);
  let [running, worst] = [0, 0];
  for (const [, by] of changes) worst = Math.max(worst, (running += by));
  const busyMs = runs.reduce((sum, [began, ended]) => sum + ended - began, 0);
  return { usedPercent: (busyMs / ((changes.at(-1)[0] - changes[0][0]) * most)) * 100, worst };
}

import { expect, it } from '@jest/globals';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseStep } from '../../lib/redis/step.protocol.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const MEBIBYTE = 1024 * 1024;

/** An answer of which one job is small; the other makes it a mebibyte long. */
function answer(n: number, envelope: string): unknown {
  const batch = ['0', `id-of-a-job-${n}`, envelope, '0', 'large', '1'.repeat(MEBIBYTE)].join('\x1e');
  return [0, 1, -1, -1, '', -1, 0, [], [], [], batch, []];
}

it.each<[string, string, (job: { id: string; envelope: string }) => string]>([
  ['id', '1-\n{}', ({ id }) => id],
  ['envelope whose payload a codec reads', '2-\nj\n{}', ({ envelope }) => envelope],
])('the %s of a job does not keep in memory what it came with', (_, envelope, keep) => {
  const kept: string[] = [];
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 50; n++) kept.push(keep(parseStep(answer(n, `${envelope}${' '.repeat(20)}${n}`)).jobs[0]!));
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10 * MEBIBYTE);
  expect(new Set(kept).size).toBe(50);
});

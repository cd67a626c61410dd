import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defineQueue } from '../../lib/index.js';
import { getQueueToken } from '../../lib/producer/delay-queue.js';
import { getDelayQueueToken } from '../../lib/delay-queue.tokens.js';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { assertJobId } from '../../lib/job/job-id.js';
import { queueNameOf } from '../../lib/job/queue-definition.js';
import { ShardKeys, slotOf } from '../../lib/redis/keys.js';
import { fateNow, fuzz, FUZZ_MS } from './fuzz.js';
import { anyName, isName, nothingUseful, plainName, unboxed } from './values.js';

const PLACES = {
  queue: { most: 128, ends: true, code: 'ERR_DQ_INVALID_QUEUE', give: (name: any) => queueNameOf(name) },
  definition: { most: 128, ends: true, code: 'ERR_DQ_INVALID_QUEUE', give: (name: any) => defineQueue(name).name },
  id: { most: 256, ends: false, code: 'ERR_DQ_INVALID_ID', give: (name: any) => assertJobId(name) },
  prefix: {
    most: 64,
    ends: true,
    code: 'ERR_DQ_INVALID_OPTION',
    give: (name: any) => resolveModuleOptions({ prefix: name }, 'default').prefix,
  },
} as const;

const inputs = fc.record({
  place: fc.constantFrom(...(Object.keys(PLACES) as (keyof typeof PLACES)[])),
  name: fc.oneof({ weight: 6, arbitrary: anyName }, nothingUseful),
  other: plainName,
});

describe('Names', () => {
  it(
    'of queues, jobs and prefixes are kept as they are or refused, and keep to their keys',
    () =>
      fuzz('names', inputs, {
        check: ({ place, name: boxed, other }) => {
          const name: unknown = unboxed(boxed);
          const { most, ends, code, give } = PLACES[place];
          let kept: unknown;
          const fate = fateNow(() => (kept = give(name)));
          expect(fate).toBe(isName(name, most, { ends }) ? 'accepted' : code);
          if (fate !== 'accepted') return fate;
          expect(kept).toBe(name);
          if (place === 'queue') {
            const keys = new ShardKeys('dq', name as string);
            const slots = keys.fixed.map((key) => slotOf(key));
            expect(new Set([...slots, slotOf(keys.session('x'))]).size).toBe(1);
            expect(keys.fixed.every((key) => key.startsWith(`dq:{${name as string}}:`))).toBe(true);
            expect(keys.fixed.every((key) => Buffer.from(key).toString() === key)).toBe(true);
          }
          if (place === 'definition' && name !== other) {
            // A queue and an instance never share a token with others, wherever the name is cut.
            const cuts = [...(name as string).matchAll(/:/g)].map(({ index }) => index);
            for (const at of cuts) {
              const [instance, rest] = [(name as string).slice(0, at), (name as string).slice(at + 1)];
              if (rest === '' || rest !== rest.trim()) continue;
              expect(getQueueToken(rest, `${other}:${instance}`)).not.toBe(getQueueToken(name as string, other));
            }
            expect(getDelayQueueToken(`queue:${other}`)).not.toBe(getQueueToken('DelayQueueProducer', other));
          }
          return fate;
        },
      }),
    FUZZ_MS,
  );
});

import { expect, it } from '@jest/globals';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import type { InstanceContext } from '../../lib/instance/instance-context.js';
import { Payloads } from '../../lib/job/payloads.js';
import { JobPlanner } from '../../lib/producer/job-planner.js';

it('what is known of queues by their names is bounded: an application may have one for each customer', () => {
  const module = resolveModuleOptions({}, 'default');
  let looks = 0;
  const queues = new Proxy(module.queues, {
    get(target, name: string) {
      if (name === 'first') looks++;
      return target[name];
    },
  });
  const context = { nameOf: String, definitionOf: () => undefined, payloads: new Payloads(module) };
  const planner = new JobPlanner({ ...module, queues }, context as Pick<InstanceContext, keyof typeof context>);
  const looksFor = (queue: string) => {
    const before = looks;
    void planner.plan(queue, 1, undefined);
    return looks - before;
  };
  expect(looksFor('first')).toBeGreaterThan(0);
  expect(looksFor('first')).toBe(0);
  for (let n = 0; n < 2_000; n++) looksFor(`customer-${n}`);
  expect(looksFor('first')).toBeGreaterThan(0);
});

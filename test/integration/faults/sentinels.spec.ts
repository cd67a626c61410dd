import { expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { FalseSentinel } from '../../helpers/false-sentinel.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();

it('a Sentinel that takes a question and never answers does not keep a process from asking the next one', async () => {
  const silent = end(await FalseSentinel.of(here.world.url));
  const other = end(await FalseSentinel.of(here.world.url));
  silent.holds = true;
  const connection = { sentinels: [silent.address, other.address], name: 'jobs' };
  const options = { connection, consume: false, connect: 'lazy', commandTimeout: 1_000 } as const;
  const { producer } = await here.start({ options });
  await eventually(() => producer.enqueue('asked', {}));
  expect(silent.asked).toBeGreaterThan(0);
});

it('a process that asks a Sentinel for the master while another one announces a new one connects all the same', async () => {
  const proxy = end(await Proxy.before(here.world.url));
  const sentinels = [end(await FalseSentinel.of(proxy.url)), end(await FalseSentinel.of(proxy.url))];
  const connection = { sentinels: sentinels.map(({ address }) => address), name: 'jobs' };
  const { producer } = await here.start({ options: { connection, consume: false, commandTimeout: 1_000 } });
  await producer.enqueue('watched', {});
  // Both connections of the process have a subscriber at each Sentinel.
  for (const one of sentinels) await eventually(() => expect(one.subscribers).toBe(2));

  for (const one of sentinels) one.holds = true;
  proxy.cut();
  const asked = () => sentinels.reduce((sum, one) => sum + one.asked, 0);
  await eventually(() => expect(asked()).toBe(2));
  for (const one of sentinels) one.announce();
  // It has heard of it: it waits for news no more.
  for (const one of sentinels) await eventually(() => expect(one.subscribers).toBe(0));
  for (const one of sentinels) one.answer();

  await eventually(() => producer.enqueue('watched', {}));
});

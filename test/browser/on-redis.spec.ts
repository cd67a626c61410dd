import 'reflect-metadata';
import { expect } from '@jest/globals';
import { DelayQueueModule } from '../../lib/index.js';
import { serveDashboard } from '../helpers/dashboard.js';
import type { Dashboard } from '../helpers/dashboard.js';
import { inAWorld } from '../helpers/in-a-world.js';
import { closeDesks, closeLater, PAGE } from './desk.js';
import { inABrowser, story } from './story.js';

// The one part of the stories that needs a server: what is stored there byte by byte, and its end.
const redis = inAWorld({ appendfsync: 'always' });
const here = inABrowser();
closeDesks();

async function serve(): Promise<Dashboard & { home: string }> {
  const { connection, prefix } = redis.world;
  const dashboard = await serveDashboard({
    imports: [DelayQueueModule.forRoot({ connection, prefix, shutdownHooksWarning: false })],
    options: { access: 'unprotected', assets: PAGE },
  });
  closeLater(dashboard);
  return Object.assign(dashboard, { home: `http://127.0.0.1:${dashboard.port}/delay-queue/` });
}

story('on Redis: numbers have all their digits, a job is cancelled, and an outage is told with its age', async () => {
  const { producer, inspector, home } = await serve();
  const { page, go, allow } = await here.visit(home);
  await producer.enqueue('ledger', { account: 1.5, amount: 2.5 }, { id: 'A', delay: '1h' });
  const key = redis.world.key('ledger', 'jobs');
  const stored = (await redis.world.redis.hget(key, 'A'))!;
  await redis.world.redis.hset(key, 'A', stored.replace('1.5', '12345678901234567890').replace('2.5', '1.10'));
  await go('job?queue=ledger&id=A');
  await page.getByRole('heading', { name: 'Payload' }).waitFor();
  expect(await page.locator('pre').first().textContent()).toBe(
    '{\n  "account": 12345678901234567890,\n  "amount": 1.10\n}',
  );
  await page.getByRole('button', { name: 'Tree' }).click();
  expect(await page.locator('.number-value').allTextContents()).toEqual(['12345678901234567890', '1.10']);

  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Cancel 1 job' }).click();
  await page.getByText('1 cancelled').waitFor();
  expect(await inspector.counts('ledger')).toMatchObject({ delayed: 0 });
  allow(/404|503/); // the job is gone, and so is Redis
  // Behind what became of it, which stays until somebody has read it.
  await page.getByText('This job is gone').waitFor();
  await page.getByRole('button', { name: 'Done' }).click();

  await go('queues');
  await page.getByRole('link', { name: 'ledger', exact: true }).waitFor();
  await redis.server.kill();
  const banner = page.getByRole('alert').filter({ hasText: 'What you see is' });
  await banner.waitFor();
  await page.getByRole('link', { name: 'ledger', exact: true }).waitFor();
  await redis.server.restart();
  await banner.waitFor({ state: 'detached' });
});

import 'reflect-metadata';
import { expect } from '@jest/globals';
import { dashboardCommand } from '../helpers/dashboard-command.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { inAWorld } from '../helpers/in-a-world.js';
import { inABrowser, story } from './story.js';

// `npx nestjs-delay-queue dashboard`, as whoever has typed it sees it.
const redis = inAWorld();
const end = endingWithEachTest();
const here = inABrowser();

story(
  'from the shell: the printed address opens the page, and is left without the token; a job is cancelled',
  async () => {
    const { producer } = await redis.start({ options: { consume: false } });
    await producer.enqueue('payment.check', { order: 1 }, { id: 'order-1', delay: '1h' });
    const { url, said } = await dashboardCommand(redis.world, end);
    const { page, go } = await here.visit(url.href, { home: `${url.origin}/` });
    await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
    expect(page.url()).not.toContain('token');
    await go('job?queue=payment.check&id=order-1');
    await page.getByRole('button', { name: 'Cancel…' }).click();
    await page.getByRole('button', { name: 'Cancel 1 job' }).click();
    await page.getByText('1 cancelled').waitFor();
    expect(await producer.get('payment.check', 'order-1')).toBeUndefined();
    expect(said()).toContain('jobs/cancel of queue "payment.check": 1 cancelled.');
  },
);

story('from the shell: without the token there is no page, and --read-only offers no acts', async () => {
  const { producer } = await redis.start({ options: { consume: false } });
  await producer.enqueue('payment.check', { order: 1 }, { id: 'order-1', delay: '1h' });
  const { url } = await dashboardCommand(redis.world, end, ['--read-only']);
  const { page, go, allow } = await here.visit(`${url.origin}/`);
  allow(/401/);
  allow(/favicon/);
  expect(await page.textContent('body')).toContain('Open the address that the command has printed');
  await page.goto(url.href);
  await page.getByText('read only').waitFor();
  await go('job?queue=payment.check&id=order-1');
  await page.getByRole('heading', { name: 'order-1' }).waitFor();
  await page.getByText('Reading…').waitFor({ state: 'detached' });
  expect(
    await page
      .getByRole('main')
      .getByRole('button', { name: /^(?:Cancel|Run now|Move)/ })
      .count(),
  ).toBe(0);
});

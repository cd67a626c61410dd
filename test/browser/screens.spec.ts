import 'reflect-metadata';
import { expect } from '@jest/globals';
import { DelayQueueHistoryModule } from '../../lib/history/index.js';
import { closeDesks, openDesk } from './desk.js';
import type { Desk } from './desk.js';
import { hurdles, inABrowser, overflow, story } from './story.js';

const here = inABrowser();
closeDesks();

const SCREENS = [
  ['queues', 'Queues'],
  ['timeline?queue=payment.check', 'Timeline'],
  ['jobs?queue=payment.check', 'Jobs'],
  ['job?queue=payment.check&id=order-1', 'order-1'],
  ['dead?queue=payment.check', 'Dead letters'],
  ['lateness?queue=payment.check', 'Lateness'],
  ['processes', 'Processes'],
  ['schedules', 'Schedules'],
  ['server', 'Server'],
] as const;

async function filled(): Promise<Desk> {
  const desk = await openDesk({ imports: [DelayQueueHistoryModule], options: { environment: 'staging' } });
  const queues = ['payment.check', 'payment.refund', 'mail.welcome', 'mail.digest', 'sms', 'search'];
  for (const [n, queue] of queues.entries()) {
    for (let job = 0; job < 4; job++) {
      await desk.producer.enqueue(queue, { job }, { id: `order-${job}`, delay: `${n + job + 1}h` });
    }
  }
  return desk;
}

const LOOKS = [
  { width: 1280, dark: false },
  { width: 1280, dark: true },
  { width: 375, dark: false },
  { width: 375, dark: true },
] as const;

for (const { width, dark } of LOOKS) {
  story(`every screen can be read at ${width} px, ${dark ? 'dark' : 'light'}, by everybody`, async () => {
    const desk = await filled();
    const { page, go } = await here.visit(desk.home, { width, height: 780, dark });
    for (const [hash, heading] of SCREENS) {
      await go(hash);
      await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor();
      await page.getByText('Reading…').waitFor({ state: 'detached' });
      expect([hash, await hurdles(page), await overflow(page)]).toEqual([hash, [], 0]);
    }
  });
}

story('on a narrow window the row of screens shows the present one, and is no higher than it needs to be', async () => {
  const desk = await filled();
  const { page, go } = await here.visit(desk.home, { width: 375, height: 900 });
  for (const [hash, heading] of SCREENS) {
    await go(hash);
    await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor();
    const link = (await page.locator('.nav a[aria-current]').boundingBox())!;
    expect([hash, link.x >= 0, link.x + link.width <= 375]).toEqual([hash, true, true]);
    const row = (await page.locator('.side').boundingBox())!;
    expect([hash, row.height < 120]).toEqual([hash, true]);
  }
});

story('a queue that was never used is called so, and no queue is made of it', async () => {
  const desk = await filled();
  const { page, go } = await here.visit(desk.home);
  for (const hash of ['timeline?queue=paymnet.check', 'jobs?queue=paymnet.check', 'dead?queue=paymnet.check']) {
    await go(hash);
    await page.getByText('No queue of this name was ever used.').waitFor();
  }
  await go('jobs?queue=payment.check');
  await page.getByText('No queue of this name was ever used.').waitFor({ state: 'detached' });
  expect(await desk.inspector.queues()).not.toContain('paymnet.check');
});

story('keys lead to every screen, and ? tells which', async () => {
  const desk = await filled();
  const { page } = await here.visit(desk.home);
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  for (const [key, heading] of [
    ['t', 'Timeline'],
    ['d', 'Dead letters'],
    ['s', 'Schedules'],
    ['p', 'Processes'],
    ['r', 'Server'],
    ['q', 'Queues'],
  ] as const) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor();
  }
  for (const key of ['j', 'j', 'k', 'Enter']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'Jobs by due time' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('search for a queue, a job or a screen').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
});

story('times are of this computer or UTC, and both choices are remembered', async () => {
  const desk = await filled();
  const { page, go } = await here.visit(desk.home);
  await go('job?queue=payment.check&id=order-1');
  const due = (await desk.inspector.list('payment.check', 'delayed')).jobs[1]!.dueAt;
  const clock = (zone: string) => due.toLocaleTimeString('en-GB', { timeZone: zone });
  await page.getByText(clock('Europe/Berlin')).first().waitFor();
  await page.getByRole('button', { name: 'Local' }).click();
  await page.getByText(clock('UTC')).first().waitFor();
  await page.getByRole('button', { name: /^Colours: system/ }).click();
  await page.getByRole('button', { name: /^Colours: light/ }).click();
  await page.reload();
  await page.getByText(clock('UTC')).first().waitFor();
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
});

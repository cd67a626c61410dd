import 'reflect-metadata';
import { expect } from '@jest/globals';
import { eventually } from '../helpers/eventually.js';
import { closeDesks, openDesk } from './desk.js';
import type { Desk } from './desk.js';
import { inABrowser, story } from './story.js';
import type { Visit } from './story.js';

const here = inABrowser();
closeDesks();

const HOUR = 3_600_000;

async function fill(desk: Desk, many: number): Promise<void> {
  for (let from = 0; from < many; from += 500) {
    const numbers = Array.from({ length: Math.min(500, many - from) }, (_, n) => from + n);
    await Promise.all(
      numbers.map((n) => desk.producer.enqueue('payment.check', { n }, { id: `order-${n}`, delay: HOUR + n * 1_000 })),
    );
  }
}

const asked = ({ requests }: Visit) => requests.filter((path) => path.includes('/api/state')).length;

/** Nothing is asked while the page would have asked several times. */
async function asksNothing(visit: Visit): Promise<void> {
  await visit.page.waitForTimeout(300); // what was on its way
  const before = asked(visit);
  await visit.page.waitForTimeout(5_000);
  expect(asked(visit)).toBe(before);
}

story('10,000 jobs: page by page, and all of a range are chosen, counted first', async () => {
  const desk = await openDesk();
  await fill(desk, 10_000);
  const { page, go } = await here.visit(desk.home);
  await go('jobs?queue=payment.check');
  await page.getByRole('link', { name: 'order-0', exact: true }).waitFor();
  await page.getByRole('link', { name: 'Next page' }).click();
  await page.getByRole('link', { name: 'order-50', exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'order-49', exact: true }).count()).toBe(0);
  await page.goBack();
  await page.getByRole('link', { name: 'order-0', exact: true }).waitFor();
  const from = desk.harness.now.getTime() + HOUR + 4_000_000;
  await go(`jobs?queue=payment.check&from=${from}`);
  await page.getByRole('link', { name: 'order-4000', exact: true }).waitFor();
  await page.getByRole('checkbox', { name: 'Select order-4000' }).check();
  await page.getByRole('button', { name: 'All in the range' }).click();
  await page.getByText('6,000 jobs in the range').waitFor();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Cancel 6,000 jobs' }).click();
  await page.getByText('6,000 cancelled').waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByText('None is in this range.').waitFor();
  expect(await desk.inspector.counts('payment.check')).toMatchObject({ delayed: 4_000 });
});

story('while Redis is away the page says so with the age of what it shows, and goes on when it is back', async () => {
  const desk = await openDesk();
  await fill(desk, 3);
  const { page, allow } = await here.visit(desk.home);
  allow(/503/);
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  await desk.harness.disconnect();
  const banner = page.getByRole('alert').filter({ hasText: 'What you see is' });
  await banner.waitFor();
  expect(await banner.textContent()).toMatch(/Redis .*not reachable.*What you see is \d.* old/);
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  await desk.harness.reconnect();
  await banner.waitFor({ state: 'detached' });
  await fill(desk, 5);
  await page
    .getByRole('row', { name: /payment.check/ })
    .getByText('5', { exact: true })
    .waitFor();
});

story('a paused page asks nothing, and says how old it is; resumed it asks at once', async () => {
  const desk = await openDesk();
  await fill(desk, 3);
  const visit = await here.visit(desk.home);
  const { page } = visit;
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Live' }).click();
  await page.getByText('Refreshing is paused.').waitFor();
  await asksNothing(visit);
  expect(await page.getByRole('status').filter({ hasText: 'paused' }).textContent()).toMatch(/What you see is \d/);
  const before = asked(visit);
  await page.getByRole('button', { name: 'Paused' }).click();
  await eventually(() => expect(asked(visit)).toBeGreaterThan(before));
});

story('a page that nobody sees asks nothing', async () => {
  const desk = await openDesk();
  await fill(desk, 3);
  const visit = await here.visit(desk.home);
  const { page } = visit;
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));`);
  await asksNothing(visit);
  const before = asked(visit);
  await page.evaluate(`delete document.hidden; document.dispatchEvent(new Event('visibilitychange'));`);
  await eventually(() => expect(asked(visit)).toBeGreaterThan(before));
});

story('an unchanged state costs no more than a 304', async () => {
  const desk = await openDesk();
  await fill(desk, 1);
  const { page } = await here.visit(desk.home);
  const isState = (response: { url(): string }) => response.url().includes('/api/state');
  await page.waitForResponse((response) => isState(response) && response.status() === 304);
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
});

story('the address is the state: a link opens the same range, and goes back by the browser', async () => {
  const desk = await openDesk();
  await fill(desk, 3);
  const { page, go, home } = await here.visit(desk.home);
  const from = desk.harness.now.getTime();
  await go(`timeline?queue=payment.check&span=7d&sf=${from}&st=${from + 2 * HOUR}`);
  await page.getByRole('heading', { name: '3 jobs due in this range' }).waitFor();
  await page.getByRole('link', { name: 'List' }).click();
  await page.getByRole('link', { name: 'order-2' }).waitFor();
  expect(page.url()).toMatch(`${home}#/jobs?`);
  await page.goBack();
  await page.getByRole('heading', { name: '3 jobs due in this range' }).waitFor();
});

story('a link with times that are none shows the screen without them', async () => {
  const desk = await openDesk();
  await fill(desk, 3);
  const { page, go } = await here.visit(desk.home);
  await go('jobs?queue=payment.check&from=tomorrow&to=99999999999999999');
  await page.getByRole('link', { name: 'order-2' }).waitFor();
  expect(await page.getByLabel('Due from').inputValue()).toBe('');
  await go('timeline?queue=payment.check&from=tomorrow&to=1&sf=x&st=y');
  await page.getByText('Jobs by due time').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

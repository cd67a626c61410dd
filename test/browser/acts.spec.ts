import 'reflect-metadata';
import { expect } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnDelayed } from '../../lib/index.js';
import { eventually } from '../helpers/eventually.js';
import { closeDesks, openDesk } from './desk.js';
import type { Desk } from './desk.js';
import { inABrowser, story } from './story.js';
import type { Visit } from './story.js';

const here = inABrowser();
closeDesks();

@Injectable()
class Payments {
  readonly ran: string[] = [];

  @OnDelayed('payment.check', { attempts: 1 })
  check(payload: { order: number; fails?: boolean }): void {
    if (payload.fails) throw new Error(`The gateway did not answer within ${5_000 + payload.order} ms`);
    this.ran.push(String(payload.order));
  }
}

const HOUR = 3_600_000;

async function enqueue(desk: Desk, many: number, delayMs: (n: number) => number): Promise<void> {
  const jobs = Array.from({ length: many }, (_, n) => ({ order: n, delay: delayMs(n) }));
  await Promise.all(
    jobs.map(({ order, delay }) => desk.producer.enqueue('payment.check', { order }, { id: `order-${order}`, delay })),
  );
}

/** From one part of the width of the chart to another. */
async function brush({ page }: Visit, from: number, to: number): Promise<void> {
  const over = page.locator('.u-over');
  await over.waitFor();
  const { x, y, width, height } = (await over.boundingBox())!;
  await page.mouse.move(x + width * from, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * to, y + height / 2, { steps: 4 });
  await page.mouse.up();
}

story('a job is found by its id, from any screen, by keys alone', async () => {
  const desk = await openDesk();
  await enqueue(desk, 3, () => HOUR);
  const { page } = await here.visit(desk.home);
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.locator('[role=combobox]:focus').waitFor();
  await page.keyboard.type('order-2');
  await page.getByRole('option', { name: /order-2 delayed job of payment.check/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'order-2' }).waitFor();
  expect(await page.locator('pre').first().textContent()).toBe('{\n  "order": 2\n}');
});

story('a peak is brushed, counted and spread, in the order of its jobs', async () => {
  const desk = await openDesk();
  const { now } = desk.harness;
  await enqueue(desk, 300, () => 12 * HOUR);
  const { page, go, ...visit } = await here.visit(desk.home);
  await go('timeline?queue=payment.check');
  await brush({ page, go, ...visit }, 0.4, 0.6);
  await page.getByRole('heading', { name: '300 jobs due in this range' }).waitFor();
  await page.getByRole('button', { name: 'Reschedule…' }).click();
  await page.getByLabel('So long from now').check();
  await page.getByRole('textbox', { name: 'From now' }).fill('6h');
  await page.getByLabel(/Spread evenly/).fill('10m');
  await page.getByText('One each 2 s.').waitFor();
  await page.getByRole('button', { name: 'Reschedule 300 jobs' }).click();
  await page.getByText('300 have a new due time').waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('heading', { name: '0 jobs due in this range' }).waitFor();
  const due = (await desk.harness.enqueued('payment.check')).map(
    ({ dueAt }) => dueAt.getTime() - now.getTime() - 6 * HOUR,
  );
  const inOrder = [...due].sort((a, b) => a - b);
  expect(inOrder[0]).toBeGreaterThanOrEqual(0);
  expect(inOrder.at(-1)).toBeLessThan(600_000);
  expect(new Set(inOrder).size).toBe(300);
});

story('the range of a chart is chosen by keys and in its table as well', async () => {
  const desk = await openDesk();
  await enqueue(desk, 5, () => 12 * HOUR);
  const { page, go } = await here.visit(desk.home);
  await go('timeline?queue=payment.check&span=24h');
  await page.getByRole('group', { name: /^Chart: 5 jobs/ }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('heading', { name: '0 jobs due in this range' }).waitFor();
  await page.keyboard.down('Shift');
  for (let n = 0; n < 50; n++) await page.keyboard.press('ArrowRight');
  await page.keyboard.up('Shift');
  await page.getByRole('heading', { name: '5 jobs due in this range' }).waitFor();
  await page.getByRole('button', { name: 'Let go' }).click();
  await page.getByRole('button', { name: 'As table' }).click();
  await page.getByRole('button', { name: 'Choose' }).click();
  await page.getByRole('heading', { name: '5 jobs due in this range' }).waitFor();
});

story('selected jobs run now', async () => {
  const desk = await openDesk({ providers: [Payments] });
  await enqueue(desk, 3, (n) => HOUR + n * 1_000);
  const { page, go } = await here.visit(desk.home);
  await go('jobs?queue=payment.check');
  await page.getByRole('link', { name: 'order-0' }).waitFor();
  for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
  await page.getByText('2 jobs selected').waitFor();
  // By keys alone: the acts stand behind all rows.
  await page.keyboard.press('a');
  await page.locator('.bar button:focus').waitFor();
  await page.getByRole('button', { name: 'Run now…' }).press('Enter');
  await page.getByRole('button', { name: 'Run now 2 jobs' }).click();
  await page.getByText('2 are due now').waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await desk.harness.runDue();
  expect(desk.app.get(Payments).ran.sort()).toEqual(['0', '1']);
  await page.getByRole('link', { name: 'order-0' }).waitFor({ state: 'detached' });
});

story('a group of dead letters is requeued, spread, with the rate in words', async () => {
  const desk = await openDesk({ providers: [Payments] });
  const { producer, harness } = desk;
  for (let n = 0; n < 6; n++) await producer.enqueue('payment.check', { order: n, fails: true }, { id: `order-${n}` });
  await harness.runDue();
  const { page, go } = await here.visit(desk.home);
  await go('dead?queue=payment.check');
  const group = page.getByRole('article', { name: /^6 jobs: Error: The gateway did not answer within # ms/ });
  await group.getByRole('button', { name: 'Requeue…' }).click();
  await page.getByLabel(/First one after/).fill('1h');
  await page.getByLabel(/Spread evenly/).fill('1m');
  await page.getByText('One each 10 s.').waitFor();
  await page.getByRole('button', { name: 'Requeue 6 dead letters' }).click();
  await page.getByText('6 jobs of payment.check requeued.').waitFor();
  await page.getByText('No dead letters').waitFor();
  const waiting = await harness.enqueued('payment.check');
  const start = harness.now.getTime() + HOUR;
  expect(waiting.map(({ dueAt }) => Math.round((dueAt.getTime() - start) / 10_000)).sort((a, b) => a - b)).toEqual([
    0, 1, 2, 3, 4, 5,
  ]);
});

story('a queue is paused, and resumed by the same line that says so', async () => {
  const desk = await openDesk();
  await enqueue(desk, 1, () => HOUR);
  const { page } = await here.visit(desk.home);
  await page.getByRole('button', { name: 'Pause payment.check' }).click();
  await page.getByText('payment.check is paused').waitFor();
  await page.getByRole('cell', { name: 'paused' }).waitFor();
  expect(await desk.inspector.counts('payment.check')).toMatchObject({ paused: true });
  await page.locator('.toast').getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause payment.check' }).waitFor();
  expect(await desk.inspector.counts('payment.check')).toMatchObject({ paused: false });
});

story('a purge whose dialog is closed ends after the call that is on its way', async () => {
  const desk = await openDesk();
  await enqueue(desk, 1_300, () => HOUR);
  const { page, go } = await here.visit(desk.home);
  let calls = 0;
  let goOn!: () => void;
  const isClosed = new Promise<void>((resolve) => (goOn = resolve));
  await page.route('**/api/queue/purge*', async (call) => {
    if (call.request().postDataJSON().dryRun !== true) {
      calls++;
      await isClosed;
    }
    await call.continue();
  });
  await go('timeline?queue=payment.check');
  await page.getByRole('button', { name: 'Purge…' }).click();
  await page.getByLabel(/Type the name/).fill('payment.check');
  await page.getByRole('button', { name: 'Remove 1,300 jobs' }).click();
  await page.getByRole('button', { name: '0 removed…' }).waitFor();
  await page.getByRole('button', { name: 'Keep as it is' }).click();
  goOn();
  await page.getByText(/jobs of payment.check removed\./).waitFor();
  expect([calls, (await desk.inspector.counts('payment.check')).delayed]).toEqual([1, 300]);
});

story('a purge tells the number, and waits for the name of the queue', async () => {
  const desk = await openDesk();
  await enqueue(desk, 7, () => HOUR);
  const { page, go } = await here.visit(desk.home);
  await go('timeline?queue=payment.check');
  await page.getByRole('button', { name: 'Purge…' }).click();
  const remove = page.getByRole('button', { name: 'Remove 7 jobs' });
  await remove.waitFor();
  expect(await remove.isDisabled()).toBe(true);
  await page.getByLabel(/Type the name/).fill('payment');
  expect(await remove.isDisabled()).toBe(true);
  await page.getByLabel(/Type the name/).fill('payment.check');
  await remove.click();
  await page.getByText('7 jobs of payment.check removed.').waitFor();
  await eventually(async () => expect(await desk.inspector.counts('payment.check')).toMatchObject({ delayed: 0 }));
});

story('acts on all take no more jobs than were confirmed, whatever comes meanwhile', async () => {
  const desk = await openDesk({ providers: [Payments] });
  const { producer, harness, inspector } = desk;
  const die = async (from: number, to: number) => {
    for (let n = from; n < to; n++) await producer.enqueue('payment.check', { order: n, fails: true }, { id: `d${n}` });
    await harness.runDue();
  };
  await die(0, 6);
  const { page, go } = await here.visit(desk.home);
  await go('dead?queue=payment.check');
  await page.getByRole('button', { name: 'Requeue all…' }).click();
  await page.getByLabel(/First one after/).fill('1h');
  const requeueAll = page.getByRole('button', { name: 'Requeue 6 dead letters' });
  await requeueAll.waitFor();
  await die(6, 9);
  await requeueAll.click();
  await page.getByText('6 jobs of payment.check requeued.').waitFor();
  expect(await inspector.counts('payment.check')).toMatchObject({ delayed: 6, dead: 3 });

  await page.getByText('3 dead letters, by cause.').waitFor();
  await page.getByRole('button', { name: 'Remove all…' }).click();
  const removeAll = page.getByRole('button', { name: 'Remove 3 dead letters' });
  await removeAll.waitFor();
  await die(9, 11);
  await removeAll.click();
  await page.getByText('3 jobs of payment.check removed.').waitFor();
  expect(await inspector.counts('payment.check')).toMatchObject({ delayed: 6, dead: 2 });

  await go('timeline?queue=payment.check');
  await page.getByRole('button', { name: 'Purge…' }).click();
  await page.getByRole('textbox').last().fill('payment.check');
  const purge = page.getByRole('button', { name: 'Remove 8 jobs' });
  await purge.waitFor();
  await enqueue(desk, 5, () => 2 * HOUR);
  await purge.click();
  await page.getByText('8 jobs of payment.check removed.').waitFor();
  expect(await inspector.counts('payment.check')).toMatchObject({ delayed: 5, dead: 0 });
});

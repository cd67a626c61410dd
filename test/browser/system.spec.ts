import 'reflect-metadata';
import { expect } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnDelayed } from '../../lib/index.js';
import { shardsToken } from '../../lib/delay-queue.tokens.js';
import { minuteKey, processesKey, processKey } from '../../lib/history/history.keys.js';
import { DelayQueueHistoryModule } from '../../lib/history/index.js';
import { serverTime } from '../../lib/history/server-time.js';
import type { InstanceContext } from '../../lib/instance/instance-context.js';
import { eventually } from '../helpers/eventually.js';
import { closeDesks, openDesk } from './desk.js';
import type { Desk, DeskSettings } from './desk.js';
import { inABrowser, story } from './story.js';

// Schedules, lateness and processes: what an operator asks of the system rather than of jobs.
const here = inABrowser();
closeDesks();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

@Injectable()
class Reports {
  readonly made: unknown[] = [];

  @OnDelayed('report')
  make(payload: unknown): void {
    this.made.push(payload);
  }
}

async function withSchedules(options: DeskSettings['options'] = {}): Promise<Desk> {
  const desk = await openDesk({ providers: [Reports], options });
  const { producer } = desk;
  await producer.schedule('report', 'morning', { cron: '0 9 * * *', timeZone: 'Europe/Berlin' }, { report: 7 });
  await producer.schedule('report', 'hourly', { every: '1h' }, { report: 'hour' }, { jitter: '5m' });
  return desk;
}

story('schedules tell their times by the clock of their zone, and what they bring', async () => {
  const desk = await withSchedules();
  const { page, go } = await here.visit(desk.home);
  await go('schedules');
  const morning = page.getByRole('article', { name: 'Schedule morning' });
  await morning.getByText('0 9 * * *, Europe/Berlin').waitFor();
  await morning.getByText('declared by a call').waitFor();
  await page.getByRole('article', { name: 'Schedule hourly' }).getByText('every 1 h, jitter 5 min').waitFor();
  await morning.getByText('Next times and payload').click();
  const times = await morning.getByRole('listitem').allTextContents();
  expect(times).toHaveLength(10);
  expect(times.filter((time) => !time.endsWith('09:00:00'))).toEqual([]);
  expect(await morning.locator('pre').textContent()).toBe('{\n  "report": 7\n}');
});

story('a schedule is paused, goes on, and begins once more on demand', async () => {
  const desk = await withSchedules();
  const { page, go } = await here.visit(desk.home);
  await go('schedules?queue=report');
  const hourly = page.getByRole('article', { name: 'Schedule hourly' });
  const pausedOnes = async () =>
    (await desk.producer.listSchedules('report')).schedules.flatMap(({ id, paused }) => (paused ? [id] : []));
  await hourly.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('hourly is paused: it makes no jobs.').waitFor();
  await hourly.getByText('no next time').waitFor();
  expect(await pausedOnes()).toEqual(['hourly']);
  await hourly.getByRole('button', { name: 'Resume' }).click();
  await page.getByText('hourly goes on.').waitFor();
  await hourly.getByText('no next time').waitFor({ state: 'detached' });
  expect(await pausedOnes()).toEqual([]);
  await hourly.getByRole('button', { name: 'Trigger' }).click();
  await page.getByText(/^Made the job /).waitFor();
  await desk.harness.runDue();
  expect(desk.app.get(Reports).made).toEqual([{ report: 'hour' }]);
});

story('the times of the past in a range are made up for, counted first', async () => {
  const desk = await withSchedules();
  await desk.producer.schedule('report', 'on-the-hour', { cron: '0 * * * *' }, 'missed');
  const { page, go } = await here.visit(desk.home);
  await go('schedules?queue=report');
  await page.getByRole('article', { name: 'Schedule on-the-hour' }).getByRole('button', { name: 'Backfill…' }).click();
  const dialog = page.getByRole('dialog');
  const to = Math.floor(desk.harness.now.getTime() / HOUR) * HOUR - HOUR / 2;
  await dialog.getByLabel('From').fill(local(to - 3 * HOUR));
  await dialog.getByLabel('Before').fill(local(to));
  await dialog.getByRole('button', { name: 'Make 3 occurrences' }).click();
  await page.getByText('3 occurrences of on-the-hour made.').waitFor();
  await desk.harness.runDue();
  expect(desk.app.get(Reports).made).toEqual(['missed', 'missed', 'missed']);
});

story('who may only read sees schedules, and is offered no acts on them', async () => {
  const desk = await withSchedules({ access: () => 'read' });
  const { page, go } = await here.visit(desk.home);
  await go('schedules');
  await page.getByRole('article', { name: 'Schedule hourly' }).waitFor();
  expect(await page.getByRole('article').getByRole('button').count()).toBe(0);
});

/** As an input for a time takes it, in the zone of the browser. */
function local(at: number): string {
  return new Date(at).toLocaleString('sv-SE', { timeZone: 'Europe/Berlin' }).replace(' ', 'T');
}

const contextOf = ({ app }: Desk) => app.get<InstanceContext>(shardsToken('default'));

/** What some process counted in one minute of the past. */
async function happened(desk: Desk, minutesAgo: number, counts: Record<string, number>): Promise<void> {
  const { connection, options } = contextOf(desk);
  const minute = Math.floor((await serverTime(connection)) / MINUTE) - minutesAgo;
  const key = minuteKey(options.prefix, 'payment.check', minute);
  for (const [field, count] of Object.entries(counts)) await connection.commands.hincrby(key, field, count);
}

story('lateness is told minute by minute, as chart and as table, for as far back as is asked', async () => {
  const desk = await openDesk({ imports: [DelayQueueHistoryModule] });
  await desk.producer.enqueue('payment.check', 1, { delay: '1h' });
  await happened(desk, 3, { claimed: 90, completed: 88, failed: 2, deadLettered: 1, late0: 90, latenessMs: 90 });
  await happened(desk, 5, { claimed: 10, completed: 10, late14: 10, latenessMs: 4_000_000 });
  await happened(desk, 90, { claimed: 1_000, completed: 1_000, late0: 1_000, latenessMs: 1_000 });
  const { page, go } = await here.visit(desk.home);
  await go('lateness?queue=payment.check');
  const figure = (name: string) =>
    page.locator('dl.figures > div').filter({ has: page.getByText(name, { exact: true }) });
  await figure('Started').getByText('100', { exact: true }).waitFor();
  await figure('Failed runs').getByText('1 dead-lettered').waitFor();
  await figure('Latest').getByText('over 5 min').waitFor();
  await page.getByRole('img', { name: /^Chart: how late jobs started/ }).waitFor();
  await page.getByRole('button', { name: 'As table' }).click();
  const rows = page.getByRole('region', { name: 'Minutes' }).locator('tbody tr');
  // The job above makes a row of its own, of a minute in which nothing started, where the test takes longer.
  const started = async () => {
    const cells = (await rows.allInnerTexts()).map((text) => text.split('\t').slice(1).join(' '));
    return cells.filter((text) => text !== '– – – 0 0 0');
  };
  expect(await started()).toEqual([
    expect.stringMatching(/^\d ms \d ms \d ms 90 88 2$/),
    expect.stringMatching(/^5 min 5 min over 5 min 10 10 0$/),
  ]);
  await page.getByRole('link', { name: '6 h' }).click();
  await figure('Started').getByText('1,100', { exact: true }).waitFor();
  expect(await started()).toHaveLength(3);
});

story('processes tell which are full, are draining, hang, or hold handlers that ran on', async () => {
  const desk = await openDesk({ imports: [DelayQueueHistoryModule], providers: [Reports] });
  const { connection, options } = contextOf(desk);
  const at = await serverTime(connection);
  const queue = { queue: 'payment.check', busy: 10, slots: 10, lastClaimMs: 90_000, zombies: 2, paused: true };
  const stored = { host: 'worker-7', pid: 4711, version: '0.1.0', node: 'v22.1.0', upMs: 2 * HOUR, at, draining: true };
  const text = JSON.stringify({ ...stored, queues: [queue] });
  await connection.commands.set(processKey(options.prefix, 'other'), text, 'PX', HOUR);
  await connection.commands.zadd(processesKey(options.prefix), at, 'other');
  const { page, go } = await here.visit(desk.home);
  await go('processes');
  const other = page.getByRole('row').filter({ hasText: 'worker-7' });
  for (const said of [
    'pid 4711',
    'draining',
    '10 / 10',
    '10 of 10 busy',
    'paused',
    'claim loop not answered',
    '2 zombies',
  ]) {
    await other.getByText(said).first().waitFor();
  }
  const own = page.getByRole('row').filter({ hasText: `pid ${process.pid}` });
  await own.getByText('0 of 10 busy').waitFor();
  await eventually(async () => expect(await own.getByText('claim loop not answered').count()).toBe(0));
  expect(await own.locator('.badge').count()).toBe(0);
});

story('without history the page says what to import, and asks for none', async () => {
  const desk = await openDesk();
  await desk.producer.enqueue('payment.check', 1, { delay: '1h' });
  const { page, go, requests } = await here.visit(desk.home);
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  for (const [screen, what] of [
    ['lateness?queue=payment.check', 'How late jobs started is not kept'],
    ['processes', 'Which processes live is not kept'],
  ] as const) {
    await go(screen);
    await page.getByText(what).waitFor();
    await page.getByText('DelayQueueHistoryModule').waitFor();
  }
  expect(requests.filter((path) => /api\/(?:lateness|processes)/.test(path))).toEqual([]);
});

story('a queue with limits tells how near it is to them, and whose jobs wait; one without does not', async () => {
  const desk = await openDesk();
  const { producer, inspector } = desk;
  await inspector.setLimits('mail.send', { globalConcurrency: 5, groups: { rateLimit: { max: 2, per: '1h' } } });
  for (const group of ['anna', 'anna', 'ben']) await producer.enqueue('mail.send', 1, { group });
  await producer.enqueue('payment.check', 1, { delay: '1h' });
  const { page, go } = await here.visit(desk.home);
  await go('timeline?queue=mail.send');
  const limits = page.getByRole('region', { name: 'Limits' });
  await limits.getByText('not reached, set by an operator').waitFor();
  await limits.getByText('at most 5 at a time').waitFor();
  await limits.getByText('each 2 in 1 h').waitFor();
  expect(await limits.locator('tbody tr').allInnerTexts()).toEqual([
    expect.stringMatching(/^anna\s+2\s+2\s+0/),
    expect.stringMatching(/^ben\s+1\s+1\s+0/),
  ]);
  await go('timeline?queue=payment.check');
  await page.getByRole('heading', { name: 'Jobs by due time' }).waitFor();
  await limits.waitFor({ state: 'detached' });
});

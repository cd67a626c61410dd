import 'reflect-metadata';
import { expect } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnDelayed } from '../../lib/index.js';
import { FROM_THE_PAGE } from '../helpers/dashboard.js';
import { closeDesks, openDesk } from './desk.js';
import { inABrowser, story } from './story.js';

const here = inABrowser();
closeDesks();

const HOSTILE = '<img src=x onerror=alert(1)>"\'/?%25#&{{7*7}}</script><script>alert(2)</script>';
const QUEUE = 'a/b?c=%2F..%00-<b>&"\'é';

const query = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

@Injectable()
class Failing {
  @OnDelayed(QUEUE, { attempts: 1 })
  run(): void {
    throw Object.assign(new Error(HOSTILE), { name: HOSTILE });
  }
}

story('who may only read is offered no acts, and acts sent by hand are refused', async () => {
  const desk = await openDesk({ options: { access: () => ({ user: 'Eve', level: 'read' as const }) } });
  await desk.producer.enqueue('payment.check', {}, { id: 'A', delay: '1h' });
  const { page, go, allow } = await here.visit(desk.home);
  await page.getByText('read only').waitFor();
  await page.getByRole('link', { name: 'payment.check', exact: true }).waitFor();
  for (const screen of [
    'queues',
    'timeline?queue=payment.check',
    'jobs?queue=payment.check',
    'job?queue=payment.check&id=A',
  ]) {
    await go(screen);
    await page.getByText('Reading…').waitFor({ state: 'detached' });
    for (const act of [/^Pause/, /^Purge/, /^Cancel/, /^Run now/, /^Move/, /^Reschedule/]) {
      const offered = page.getByRole('main').getByRole('button', { name: act });
      expect(await offered.count()).toBe(0);
    }
  }
  expect(await page.getByRole('checkbox').count()).toBe(0);
  allow(/403/);
  const status = await page.evaluate<number>(`fetch('api/jobs/cancel', {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queue: 'payment.check', ids: ['A'] }),
  }).then((response) => response.status)`);
  expect(status).toBe(403);
  expect((await desk.act('queue/pause', { queue: 'payment.check' }, FROM_THE_PAGE)).problem.code).toBe(
    'DASHBOARD_FORBIDDEN',
  );
  expect(await desk.inspector.counts('payment.check')).toMatchObject({ delayed: 1, paused: false });
});

story('hostile names, ids, payloads and errors stay text', async () => {
  const desk = await openDesk({ providers: [Failing] });
  const id = HOSTILE.replace('{{7*7}}', ''); // ids hold no braces
  await desk.producer.enqueue(QUEUE, { [HOSTILE]: HOSTILE, __proto__: 1 }, { id });
  await desk.producer.enqueue(QUEUE, { text: HOSTILE }, { id: `${id} 2`, delay: '1h' });
  await desk.harness.runDue();
  const { page, go } = await here.visit(desk.home);
  await page.getByRole('link', { name: QUEUE, exact: true }).click();
  await page.getByRole('heading', { name: 'Jobs by due time' }).waitFor();
  await go(`jobs?${query({ queue: QUEUE, state: 'delayed' })}`);
  await page.getByRole('link', { name: `${id} 2`, exact: true }).click();
  await page.getByRole('heading', { name: `${id} 2` }).waitFor();
  expect(await page.locator('pre').first().textContent()).toContain(JSON.stringify(HOSTILE));
  await page.getByRole('button', { name: 'Tree' }).click();
  expect(await page.locator('.tree').textContent()).toContain(JSON.stringify(HOSTILE));
  await go(`dead?${query({ queue: QUEUE })}`);
  await page.getByRole('article').getByRole('link', { name: 'Newest' }).click();
  await page.getByRole('heading', { name: 'Last error' }).waitFor();
  expect(await page.getByText(HOSTILE).count()).toBeGreaterThanOrEqual(2);
  expect(await page.locator('main img, main script').count()).toBe(0);
});

story('a payload that the application hides is nowhere on the page, nor in what the page is sent', async () => {
  const desk = await openDesk({ options: { payloads: 'hide' } });
  await desk.producer.enqueue('payment.check', { secret: 'XYZZY' }, { id: 'A', delay: '1h' });
  const { page, go } = await here.visit(desk.home);
  const bodies: Promise<string>[] = [];
  page.on('response', (response) => void bodies.push(response.text().catch(() => '')));
  await go('jobs?queue=payment.check');
  await page.getByRole('link', { name: 'A', exact: true }).click();
  await page.getByText('This application does not show payloads here.').waitFor();
  expect((await Promise.all(bodies)).filter((body) => body.includes('XYZZY'))).toEqual([]);
});

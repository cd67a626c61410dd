// node bench/dashboard.mjs: how soon the dashboard shows itself before many pending jobs. Fills queues, serves
// `nestjs-delay-queue dashboard`, opens it in Chromium with an empty cache, and asks each read of its API.
//
//   --jobs 100000,1000000,10000000 (one after the other)   --queues 50   --runs 5   --serve (goes on until Ctrl-C, and tells how to look at it)
//
// Uses REDIS_URL, else starts a Redis of its own: ten million jobs take 3 GB. Ends with exit code 1 when a first paint took a second.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { DelayQueueProducer } from '../dist-modules/esm/index.js';
import { chromiumFlags, findChromium, WAYS_TO_GET_ONE } from '../tools/find-chromium.mjs';
import { freePort } from '../tools/free-port.mjs';
import { findRedis, START_ORDER } from '../tools/find-redis.mjs';
import { at } from '../tools/project.mjs';
import { Tether } from '../tools/tether.mjs';
import { startApp } from './libraries/ours.mjs';
import { payload } from './payload.mjs';

const GOAL_MS = 1_000;
const DAY = 86_400_000;
const SPREAD_MS = 30 * DAY;
const MOST_AT_ONCE = 2_000;
/** The state is read once a second for all who ask. */
const STATE_VALID_MS = 1_100;

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '100000,1000000,10000000' },
    queues: { type: 'string', default: '50' },
    runs: { type: 'string', default: '5' },
    serve: { type: 'boolean', default: false },
  },
});
const sizes = values.jobs.split(',').map(Number);
const runs = Number(values.runs);
const queues = Array.from(
  { length: Number(values.queues) },
  (_, n) => `shop-${n % 7}.queue-${String(n).padStart(2, '0')}`,
);
const space = `dashboard-${process.pid}`;
const token = randomBytes(24).toString('base64url');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const program = findChromium();
if (!program) throw new Error(`There is no Chromium. ${WAYS_TO_GET_ONE}.`);
const tether = await Tether.open();
let home;
let browser;
try {
  const { url, description } = await findRedis({ tether, order: START_ORDER });
  const app = await startApp({ url, space, consume: false, providers: [] });
  const producer = app.get(DelayQueueProducer);
  home = await serve(url);
  // Its own handler of Ctrl-C would end this process at once.
  browser = await chromium.launch({ executablePath: program, args: chromiumFlags(), handleSIGINT: false });
  console.log(`${description}; ${queues.length} queues; Chromium ${browser.version()}; Node ${process.version}`);
  const measured = [];
  for (let stored = 0, n = 0; n < sizes.length; stored = sizes[n++]) {
    const since = performance.now();
    await fill(producer, stored, sizes[n]);
    const seconds = ((performance.now() - since) / 1_000).toFixed(0);
    console.error(`${sizes[n].toLocaleString('en')} jobs are pending (${seconds} s)`);
    measured.push({ ...(await screens()), ...(await requests()) });
  }
  await app.close();
  report(measured);
  if (measured.some((rows) => rows['Queues: first paint'].at(-1) >= GOAL_MS)) process.exitCode = 1;
  if (values.serve) {
    console.log(`${home}?token=${token}`);
    console.log(`REDIS_URL=${url} DELAY_QUEUE_PREFIX=${space} npm run example -- dashboard`);
    await once(process, 'SIGINT');
  }
} finally {
  await browser?.close();
  await tether.close();
}

/** The command, as an operator starts it. @returns its address */
async function serve(url) {
  const { bin } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const port = await freePort();
  const args = [at(bin['nestjs-delay-queue']), 'dashboard', '--port', String(port), '--redis', url, '--prefix', space];
  const { exited } = await tether.spawn(process.execPath, args, {
    env: { ...process.env, DELAY_QUEUE_DASHBOARD_TOKEN: token },
    log: join(tether.directory, 'dashboard.log'),
  });
  const address = `http://127.0.0.1:${port}/`;
  const listens = async () => {
    while (!(await fetch(address).catch(() => undefined))) await sleep(100);
  };
  await Promise.race([listens(), exited.then(() => Promise.reject(new Error('the dashboard did not start')))]);
  return address;
}

/** Due all over 30 days from now, in all queues alike. */
async function fill(producer, from, to) {
  const now = Date.now();
  const many = Math.min(MOST_AT_ONCE, Math.ceil((to - from) / queues.length));
  for (let done = from, chunk = 0; done < to; done += many, chunk++) {
    const jobs = Array.from({ length: Math.min(many, to - done) }, (_, n) => ({
      payload: payload(done + n),
      at: now + 60_000 + Math.floor(Math.random() * SPREAD_MS),
    }));
    await producer.enqueueMany(queues[chunk % queues.length], jobs);
  }
}

/** Each in a browser that has nothing in its cache: when something is painted, and when what was asked for is there. */
async function screens() {
  const queue = encodeURIComponent(queues[0]);
  const rows = Math.min(50, Math.floor(sizes[0] / queues.length));
  const shown = [
    { screen: 'Queues', hash: 'queues', last: (page) => page.getByRole('link', { name: queues.at(-1), exact: true }) },
    { screen: 'Timeline', hash: `timeline?queue=${queue}&span=all`, last: (page) => page.locator('.u-over') },
    { screen: 'Jobs', hash: `jobs?queue=${queue}`, last: (page) => page.getByRole('checkbox').nth(rows) },
  ];
  const times = {};
  for (const { screen, hash, last } of shown) {
    for (let run = 0; run < runs; run++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      await page.goto(`${home}?token=${token}#/${hash}`);
      await last(page).waitFor();
      const there = await page.evaluate('performance.now()');
      const paint = await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`);
      (times[`${screen}: first paint`] ??= []).push(paint);
      (times[`${screen}: shown`] ??= []).push(there);
      await context.close();
      await sleep(STATE_VALID_MS);
    }
  }
  return sorted(times);
}

/** Each time about another queue, so that no answer is one that was kept. */
async function requests() {
  const times = {};
  const now = Date.now();
  for (let run = 0; run < runs; run++) {
    const queue = encodeURIComponent(queues[(run * 7 + 1) % queues.length]);
    const middle = now + 15 * DAY + run;
    const reads = {
      state: 'state',
      'timeline, all queues': `timeline?from=${now + run}&to=${now + SPREAD_MS}&buckets=120`,
      'timeline, one queue': `timeline?queue=${queue}&buckets=120`,
      'jobs, first page': `jobs?queue=${queue}&state=delayed&limit=50`,
      'jobs, from the middle': `jobs?queue=${queue}&state=delayed&from=${middle}&limit=200`,
      'find, in all queues': `find?id=none-${run}`,
      'dead-groups': `dead-groups?queue=${queue}`,
      forecast: `forecast?queue=${queue}`,
      schedules: `schedules?queue=${queue}`,
      server: 'server',
      me: 'me',
    };
    for (const [name, path] of Object.entries(reads)) {
      const since = performance.now();
      const response = await fetch(`${home}api/${path}`, { headers: { authorization: `Bearer ${token}` } });
      await response.text();
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
      (times[`api/${name}`] ??= []).push(performance.now() - since);
    }
    await sleep(5_100); // what is kept longest: five seconds
  }
  return sorted(times);
}

function sorted(times) {
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, all.sort((a, b) => a - b)]));
}

/** Median and worst, ms. */
function report(measured) {
  const figure = (all) => `${Math.round(all[Math.floor(all.length / 2)])} (${Math.round(all.at(-1))})`;
  console.log(`| median (worst) of ${runs}, ms | ${sizes.map((size) => size.toLocaleString('en')).join(' | ')} |`);
  console.log(`|---|${sizes.map(() => '---:|').join('')}`);
  for (const name of Object.keys(measured[0])) {
    console.log(`| ${name} | ${measured.map((rows) => figure(rows[name])).join(' | ')} |`);
  }
}

// npm run screenshots: writes docs/images/dashboard-*.webp from docs/examples/dashboard.ts, on a store in memory.
import { mkdirSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { answerHelp } from './arguments.mjs';
import { buildIfStale, EXAMPLES, LIBRARY } from './compile.mjs';
import { chromiumFlags, obtainChromium } from './find-chromium.mjs';
import { at } from './project.mjs';

answerHelp('Usage: npm run screenshots       writes docs/images/dashboard-*.webp');

const ORDERS = 2_000;
const SIZE = { width: 1200, height: 750 };
/** What each picture shows, and what is done before it is taken. */
const PICTURES = [
  { name: 'queues', hash: 'queues', ready: 'payment.check' },
  { name: 'timeline', hash: 'timeline?queue=payment.check', ready: 'Jobs by due time', prepare: brush },
  { name: 'dead-letters', hash: 'dead?queue=payment.check', ready: 'GatewayTimeout', theme: 'dark' },
];

const program = await obtainChromium();
if (!program) process.exit(1);
await buildIfStale([LIBRARY, EXAMPLES]);
process.env.REDIS_URL = 'memory://';
await import('reflect-metadata');
const { NestFactory } = await import('@nestjs/core');
const { chromium } = await import('playwright-core');
const { AppModule, run } = await import(pathToFileURL(at('dist-examples', 'dashboard.js')).href);

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error', 'fatal'] });
const browser = await chromium.launch({ executablePath: program, args: chromiumFlags() });
try {
  await app.listen(0, '127.0.0.1');
  await run(app, ORDERS);
  mkdirSync(at('docs', 'images'), { recursive: true });
  for (const picture of PICTURES) await take(picture, `${await app.getUrl()}/delay-queue/`);
} finally {
  await browser.close();
  await app.close();
}

async function take({ name, hash, ready, prepare, theme = 'light' }, home) {
  const page = await browser.newPage({
    reducedMotion: 'reduce',
    viewport: SIZE,
    colorScheme: theme,
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
  });
  await page.goto(`${home}#/${hash}`);
  await page.getByRole('main').getByText(ready).and(page.locator(':visible')).first().waitFor();
  await prepare?.(page);
  await write(await page.context().newCDPSession(page), at('docs', 'images', `dashboard-${name}.webp`));
  await page.close();
}

/** Playwright itself knows no WebP, which is a third of the size. */
async function write(devtools, file) {
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  writeFileSync(file, Buffer.from(data, 'base64'));
}

async function brush(page) {
  const over = page.locator('.u-over');
  await over.waitFor();
  const { x, y, width, height } = await over.boundingBox();
  await page.mouse.move(x + width * 0.26, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.32, y + height / 2, { steps: 4 });
  await page.mouse.up();
  await page.getByText('due in this range').waitFor();
}

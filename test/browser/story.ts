import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { chromiumFlags, findChromium, WAYS_TO_GET_ONE } from '../../tools/find-chromium.mjs';

// Stories of the dashboard as a user lives them, in a real browser. Each one also fails on what no user would see: an error in the
// console, something that the content security policy refused, a request to another host, or a hurdle for assistive technology.

const PROGRAM = findChromium();
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE_MS = 30_000;
const TELL_REFUSALS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('refused by the policy: ' + violatedDirective + ' ' + blockedURI));`;

if (!PROGRAM) console.warn(`The stories of the dashboard are skipped: there is no Chromium. ${WAYS_TO_GET_ONE}.`);

const { skip } = it;
/** A story; skipped where there is no browser. */
export const story: (name: string, run: () => Promise<void>) => void = PROGRAM ? it : skip;

export interface Visit {
  readonly page: Page;
  /** Where the page is, without its hash. */
  readonly home: string;
  /** Goes to a screen by its address. */
  readonly go: (hash: string) => Promise<void>;
  /** What the browser may complain about in this story: a status that the story provokes. */
  readonly allow: (complaint: RegExp) => void;
  /** Paths of all requests so far. */
  readonly requests: string[];
}

export interface VisitOptions {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  /** Where the page is, when the address that opens it is another. */
  readonly home?: string;
}

export interface BrowserOfFile {
  visit(address: string, options?: VisitOptions): Promise<Visit>;
}

/** One browser for a file, one context for a visit; what was seen is judged after each story. */
export function inABrowser(): BrowserOfFile {
  let browser: Browser | undefined;
  const open: { context: BrowserContext; judge: () => Promise<void> }[] = [];

  beforeAll(async () => {
    if (PROGRAM) browser = await chromium.launch({ executablePath: PROGRAM, args: chromiumFlags() });
  });
  afterEach(async () => {
    try {
      for (const { judge } of open) await judge();
    } finally {
      for (const { context } of open.splice(0)) await context.close();
    }
  });
  afterAll(async () => {
    await browser?.close();
  });

  return {
    async visit(address, { width = 1280, height = 800, dark = false, home = address } = {}) {
      const context = await browser!.newContext({
        viewport: { width, height },
        colorScheme: dark ? 'dark' : 'light',
        timezoneId: 'Europe/Berlin',
        locale: 'en-GB',
        reducedMotion: 'reduce',
      });
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      const visit = await beginVisit(page, address, home);
      open.push({ context, judge: visit.judge });
      return visit;
    },
  };
}

async function beginVisit(page: Page, address: string, home: string): Promise<Visit & { judge: () => Promise<void> }> {
  const complaints: string[] = [];
  const allowed: RegExp[] = [];
  const requests: string[] = [];
  const { origin } = new URL(home);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => void complaints.push(`thrown: ${error.message}`));
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog of the browser: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol === 'data:') return;
    requests.push(`${request.method()} ${url.pathname}${url.search}`);
    if (url.origin !== origin) complaints.push(`a request to another host: ${request.url()}`);
  });
  await page.addInitScript({ content: TELL_REFUSALS });
  await page.goto(address);
  return {
    page,
    home,
    requests,
    go: async (hash) => {
      await page.goto(`${home}#/${hash}`);
    },
    allow: (complaint) => void allowed.push(complaint),
    judge: async () => {
      const left = complaints.filter((text) => !allowed.some((pattern) => pattern.test(text)));
      expect(left).toEqual([]);
      expect(await hurdles(page)).toEqual([]);
      expect(await overflow(page)).toBe(0);
    },
  };
}

interface Violation {
  id: string;
  nodes: { target: string[]; failureSummary: string }[];
}

/** What axe-core finds on the page as it is now. */
export async function hurdles(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = await page.evaluate<Violation[]>('axe.run().then(({ violations }) => violations)');
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.target.join(' ')}: ${nodes[0]!.failureSummary}`);
}

/** By so many pixels the page is wider than the window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate<number>('Math.max(0, document.documentElement.scrollWidth - innerWidth)');
}

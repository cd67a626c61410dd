import { afterEach, expect, it } from '@jest/globals';

// By a path that the compiler does not follow: the page is checked with the types of a browser.
const page: string = '../../../lib/dashboard/page/server.js';
const { act, read } = (await import(page)) as Record<'act' | 'read', (path: string, body: object) => Promise<unknown>>;

const { fetch } = globalThis;
afterEach(() => void (globalThis.fetch = fetch));

const html = (status: number) => new Response('<html>', { status, headers: { 'content-type': 'text/html' } });
const problem = (status: number, body: object) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/problem+json' } });
const cutShort = () => {
  const body = new ReadableStream({ start: (stream) => stream.error(new TypeError('network error')) });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
};
const code = 'ERR_DQ_UNAVAILABLE';

it.each([
  ['nobody answers', () => Promise.reject(new TypeError('Failed to fetch')), true],
  ['the answer breaks off', cutShort, true],
  ['a proxy did not wait for it', () => html(504), true],
  ['a proxy has lost the application', () => html(502), true],
  ['the application says that it may be', () => problem(503, { code, detail: 'x', maybeAccepted: true }), true],
  ['the application says that it is not', () => problem(503, { code, detail: 'x' }), false],
  ['a guard refuses it', () => html(403), false],
])('when %s, an act is told as it is: perhaps done, or not done', async (_, answer, maybeAccepted) => {
  globalThis.fetch = async () => answer();
  await expect(act('queue/pause', { queue: 'q' })).rejects.toMatchObject({ maybeAccepted });
  await expect(read('jobs', { queue: 'q' })).rejects.toBeInstanceOf(Error);
});

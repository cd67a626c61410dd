import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { World } from '../../test/helpers/world.js';
import { Sample } from './sample.js';

jest.setTimeout(30_000);

let world: World;
let sample: Sample;

beforeAll(async () => {
  process.env['DASHBOARD_PASSWORD'] = 'open sesame';
  world = await World.open();
  sample = await Sample.start(world);
});

afterAll(async () => {
  delete process.env['DASHBOARD_PASSWORD'];
  await sample.close();
  await world.close();
});

async function look(path: string, password?: string): Promise<{ status: number; text: string; asks: string | null }> {
  const authorization = `Basic ${Buffer.from(`operator:${password}`).toString('base64')}`;
  const headers = { connection: 'close', ...(password !== undefined && { authorization }) };
  const response = await fetch(`${sample.url}/delay-queue${path}`, { headers });
  return { status: response.status, text: await response.text(), asks: response.headers.get('www-authenticate') };
}

it('the dashboard is for those who know the password: page, files and API', async () => {
  await sample.pay(1999, '1h');
  const page = await look('', 'open sesame');
  expect(page).toMatchObject({ status: 200, text: expect.stringContaining('<base href="./delay-queue/">') });
  const [file] = /assets\/[\w-]+\.js/.exec(page.text)!;
  for (const path of ['', '/', `/${file}`, '/api/me', '/api/state']) {
    expect([path, (await look(path, 'open sesame')).status]).toEqual([path, 200]);
    expect([path, (await look(path)).status]).toEqual([path, 401]);
    expect([path, (await look(path, 'guessed')).status]).toEqual([path, 401]);
  }
  expect((await look('')).asks).toMatch(/^Basic/);
  expect((await look('/api/state', 'open sesame')).text).toContain('"payment.check"');
});

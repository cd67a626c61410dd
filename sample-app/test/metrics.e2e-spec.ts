import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { eventually } from '../../test/helpers/eventually.js';
import { World } from '../../test/helpers/world.js';
import { Sample } from './sample.js';

jest.setTimeout(30_000);

let world: World;
let sample: Sample;

beforeAll(async () => {
  world = await World.open();
  sample = await Sample.start(world);
});

afterAll(async () => {
  await sample.close();
  await world.close();
});

it('GET /metrics tells Prometheus of a check that was done', async () => {
  const id = await sample.pay(1999);
  await sample.becomes(id, { status: 'confirmed' });
  await eventually(async () => {
    const response = await fetch(`${sample.url}/metrics`, { headers: { connection: 'close' } });
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; ?version=0.0.4/);
    expect(await response.text()).toContain(
      'delay_queue_jobs_completed_total{delay_queue="default",queue="payment.check"} 1\n',
    );
  });
});

// The test of docs/getting-started.md, which has it for vitest: the same lines under Jest. The page's files are in docs/examples.
import { Test } from '@nestjs/testing';
import type { INestApplication } from '@nestjs/common';
import { DelayQueueHarness, DelayQueueTestingModule } from 'nestjs-delay-queue/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { AppModule } from '../../../docs/examples/getting-started/app.module.js';
import { OrdersService } from '../../../docs/examples/getting-started/orders.service.js';

let app: INestApplication;
let orders: OrdersService;
let jobs: DelayQueueHarness;

beforeEach(async () => {
  const builder = Test.createTestingModule({ imports: [AppModule] });
  const testing = await DelayQueueTestingModule.override(builder).compile();
  app = await testing.createNestApplication().init();
  orders = app.get(OrdersService);
  jobs = DelayQueueHarness.of(app);
});
afterEach(() => app.close());

describe('the application of docs/getting-started.md', () => {
  it('expires after half an hour', async () => {
    const order = await orders.place('1');
    await jobs.advance('29m 59s');
    expect(order.status).toBe('open');
    await jobs.advance('1s');
    expect(order.status).toBe('expired');
  });

  it('does not expire once it is paid', async () => {
    const order = await orders.place('2');
    await orders.pay('2');
    await jobs.advance('30m');
    expect(order.status).toBe('paid');
  });
});

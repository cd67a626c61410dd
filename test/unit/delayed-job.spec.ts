import { inspect } from 'node:util';
import { DelayedJob } from '../../lib/job/delayed-job.js';

const plain = {
  id: 'A',
  queue: 'payment.check',
  payload: { invoice: 7 },
  attempt: 2,
  maxAttempts: 10,
  snoozes: 0,
  dueAt: Date.UTC(2030, 0, 2),
  enqueuedAt: Date.UTC(2030, 0, 1),
  latenessMs: 1,
  context: { tenant: 'acme' },
};
const job = new DelayedJob(plain);

describe('a job shows its times', () => {
  it('as dates, of which each look gets one of its own', () => {
    expect(job.dueAt).toEqual(new Date(Date.UTC(2030, 0, 2)));
    job.dueAt.setUTCFullYear(2100);
    expect(job.dueAt).toEqual(new Date(Date.UTC(2030, 0, 2)));
    expect(job.enqueuedAt).toEqual(new Date(Date.UTC(2030, 0, 1)));
  });

  it('as JSON', () => {
    const [dueAt, enqueuedAt] = ['2030-01-02T00:00:00.000Z', '2030-01-01T00:00:00.000Z'];
    expect(JSON.parse(JSON.stringify(job))).toEqual({ ...plain, dueAt, enqueuedAt });
  });

  it('to console.log', () => {
    expect(inspect(job)).toMatch(/^DelayedJob \{[^]*id: 'A'[^]*dueAt: 2030-01-02T00:00:00\.000Z/);
    expect(inspect({ job }, { depth: 0 })).toBe('{ job: [DelayedJob] }');
    expect(inspect({ among: { job } }, { depth: 2 })).toContain('payload: [Object]');
  });
});

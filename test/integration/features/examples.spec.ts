import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import type { INestApplicationContext, Type } from '@nestjs/common';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Replica } from '../../helpers/replica.js';

interface Example {
  readonly AppModule: Type<unknown>;
  readonly run: (app: INestApplicationContext) => Promise<Record<string, any>>;
}

const FOLDER = 'docs/examples';
/** What the others import. */
const SHARED = ['free-port.ts', 'redis.ts', 'until.ts'];

// A server of its own, because one example waits for a replica. The examples use the package by its name, as it was built.
const here = inAWorld({ config: { 'repl-diskless-sync-delay': '0' } });
let replica: Replica;

beforeAll(async () => {
  replica = await Replica.of(here.server);
  process.env['REDIS_URL'] = here.world.url; // read when the examples are loaded
  process.env['DELAY_QUEUE_PREFIX'] = here.world.prefix;
});
afterAll(() => replica.stop());

async function run(name: string): Promise<Record<string, any>> {
  const example = (await import(`../../../${FOLDER}/${name}.js`)) as Example;
  return example.run(await here.boot({ imports: [example.AppModule] }));
}

describe('the examples of the documentation', () => {
  it('make jobs and change them before they run', async () => {
    expect(await run('producing')).toEqual({
      outcomes: ['created', 'created', 'kept', 'created', 'kept', 'rescheduled', 'cancelled', 'notFound'],
      newYear: new Date('2099-01-01T09:00:00Z'),
      minutesApart: [0, 15, 30, 45],
      sameId: true,
      accepted: [true, true, false],
      indexed: { name: 'Ada' },
      updated: ['updated', true],
    });
  });

  it('serve a dashboard', async () => {
    expect(await run('dashboard')).toEqual({
      // Beside those of the other examples.
      queues: expect.arrayContaining(['mail.digest', 'mail.reminder', 'payment.check', 'payment.refund']),
      reminders: 200,
    });
  });

  it('make jobs that come again and again', async () => {
    expect(await run('recurring')).toEqual({
      outcomes: ['created', 'kept', 'removed'],
      hours: '09',
      sent: ['acme by acme'],
      declared: [{ id: '@code', cron: '0 6 * * *' }],
    });
  });

  it('give queues types, schemas and rules', async () => {
    expect(await run('typed-queues')).toEqual({
      id: 'invite-ada',
      refused: [{ message: 'must be a date', path: 'payload.on' }],
      outcome: 'replaced',
      state: 'delayed',
      typo: true,
      years: [2030],
      welcomed: ['Ada at attempt 1'],
    });
  });

  it('tell what falls due when, and spread a peak', async () => {
    expect(await run('due-times')).toEqual({
      before: [30, 0, 0, 0, 0, 0],
      wouldBe: 30,
      after: [5, 5, 5, 5, 5, 5],
      cancelled: ['r125', 'r126', 'r127', 'r128', 'r129'].map((id) => `${id} cancelled`),
    });
  });

  it('tell which processes live, and foretell a backlog', async () => {
    expect(await run('history')).toEqual({
      works: ['newsletter: 5 slots'],
      basis: 'given',
      peaks: ['600 jobs, the latest 60 s late'],
      minutes: expect.any(Number),
    });
  });

  it('let handlers snooze, discard, fail for good, be retried, and hand on their context', async () => {
    const { log, ...rest } = await run('handlers');
    expect(rest).toEqual({
      outcome: 'running',
      tenants: ['early of eu', 'endless of eu', 'flaky of eu'],
      obsolete: 'discarded',
      broken: 'discarded',
    });
    const lines = [
      'early, attempt 1: ended',
      'broken, attempt 1: a bug',
      'flaky, attempt 1: the database was away',
      'flaky, attempt 2: ended',
    ];
    await eventually(() => expect(log).toEqual(expect.arrayContaining(lines)));
  });

  it('limit what runs over all processes, in groups and by priorities', async () => {
    expect(await run('limits')).toEqual({
      ofAcme: ['A1', 'A2', 'A3'],
      together: 0,
      limits: 1,
      setBy: 'operator',
      groups: ['acme', 'zeta'],
      waiting: 2,
    });
  });

  it('handle many jobs at once', async () => {
    expect(await run('batches')).toEqual({
      sizes: [4],
      dead: [{ payload: { to: 'nobody' }, deadReason: 'discarded' }],
    });
  });

  it('fetch jobs themselves, and add and remove a handler', async () => {
    expect(await run('pulling')).toEqual({
      order: ['u1', 'u2', 'b1'],
      retried: { state: 'delayed', attempts: 1 },
      taken: [{ id: 'b1' }, { id: 'b2' }],
      handled: [{ text: 'Thank you' }],
      queues: false,
    });
  });

  it('look into queues and mend them', async () => {
    const down = 'The gateway is down';
    expect(await run('inspecting')).toEqual({
      dead: [
        ['o1', 'exhausted', down],
        ['o2', 'exhausted', down],
      ],
      requeued: { requeued: 2, remaining: 0 },
      kept: 'completed',
      held: { due: 2, paused: true },
      moved: [
        { id: 'o3', outcome: 'moved' },
        { id: 'o1', outcome: 'notFound' },
      ],
      purged: { removed: 1 },
      refused: true,
      totals: { enqueued: 4, completed: 2 },
      health: { status: 'degraded', orphans: expect.arrayContaining(['orders.ship.v2']) },
      queues: ['orders.ship', 'orders.ship.v2'],
    });
  });

  it('keep what JSON cannot hold, and refuse what is too much', async () => {
    expect(await run('payloads')).toEqual({
      trip: { on: new Date(0), seats: new Map([['12A', 1n]]) },
      noteLength: 20_000,
      tooLarge: true,
      notData: true,
    });
  });

  it('wait for a replica, and split a queue', async () => {
    expect(await run('durability-and-shards')).toEqual({
      durability: { replicas: 1 },
      outcome: 'cancelled',
      delayed: 99,
      resharded: { from: 4, to: 8 },
      found: { id: 'sensor-7' },
    });
  });

  it('use two instances', async () => {
    expect(await run('instances')).toEqual({
      handled: ['eu: 2', 'here: 1'],
      waiting: 1,
      attempts: 7,
      elsewhere: undefined,
    });
  });

  it('hand due jobs to another service', async () => {
    expect(await run('relaying')).toEqual({
      expired: [['o1', { orderId: 'o1', reason: 'not paid in time' }]],
      discarded: 'only a test',
    });
  });

  it('wait for an event or a deadline, and follow one another', async () => {
    expect(await run('recipes')).toEqual({
      events: [true, false],
      decided: ['o1 paid', 'o2 expired'],
      steps: ['o1 invoiced', 'o1 shipped'],
      polls: [3, 'x1 arrived'],
    });
  });

  it('expire orders, send reminders, and index once', async () => {
    expect(await run('everyday')).toEqual({
      outcomes: ['cancelled'],
      orders: ['paid', 'expired'],
      sent: ['ada@x.example after 0 days, key ada@x.example:0'],
      indexed: 'p1: 3',
    });
  });

  it('have guards, providers of a request and its context', async () => {
    expect(await run('in-nest')).toEqual({
      log: ['r1: i1 7 for acme'],
      seen: [{ type: 'delay-queue', jobs: ['i1'] }],
      isType: true,
      refused: 'ForbiddenException',
    });
  });

  it('produce in one process, work in another, and answer 400 for a refused payload', async () => {
    expect(await run('apart')).toEqual({
      statuses: [201, 400],
      issues: [{ message: 'must be text', path: 'payload.to' }],
      sent: ['ada'],
    });
  });

  it('make a job exactly when a transaction commits', async () => {
    expect(await run('outbox')).toEqual({ orders: ['o1'], state: 'due', expired: ['o1', undefined], left: 0 });
  });

  it('do what a module of BullMQ did, and take its delayed jobs over', async () => {
    expect(await run('migrating')).toEqual({
      sent: ['Reminder 1 to ada@x.example', 'Welcome to ada@x.example', 'Welcome to ada@x.example'],
      moved: [
        ['7', 4_000_000_000_007],
        ['8', 4_000_000_000_008],
      ],
      schedules: ['@code'],
    });
  });

  it('are all run here, and all linked from the README or the recipes', () => {
    const examples = readdirSync(FOLDER).filter((name) => name.endsWith('.ts') && !SHARED.includes(name));
    expect(examples.length).toBeGreaterThan(8);
    const spec = readFileSync('test/integration/features/examples.spec.ts', 'utf8');
    expect(examples.filter((name) => !spec.includes(`await run('${name.slice(0, -3)}')`))).toEqual([]);
    const readme = readFileSync('README.md', 'utf8') + readFileSync('docs/recipes.md', 'utf8');
    const links = (name: string) => [`](${FOLDER}/${name})`, `](examples/${name})`];
    expect(examples.filter((name) => !links(name).some((link) => readme.includes(link)))).toEqual([]);
  });
});

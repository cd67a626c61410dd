// Queues whose payloads have types, and rules that producers and handlers share.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  defineQueue,
  DelayQueueModule,
  DelayQueueProducer,
  InjectQueue,
  InvalidQueueError,
  Job,
  JobPayload,
  OnDelayed,
  SchemaError,
} from 'nestjs-delay-queue';
import type { DelayedJob, QueueOf, StandardSchema } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

/** Any Standard Schema will do: of zod, valibot, arktype, ... This one makes a Date of a text. */
const invitation: StandardSchema<{ to: string; on: string }, { to: string; on: Date }> = {
  '~standard': {
    version: 1,
    vendor: 'example',
    validate(value) {
      const { to, on } = (value ?? {}) as { to?: unknown; on?: unknown };
      if (typeof to !== 'string') return { issues: [{ message: 'must be text', path: ['to'] }] };
      if (typeof on !== 'string' || Number.isNaN(Date.parse(on)))
        return { issues: [{ message: 'must be a date', path: ['on'] }] };
      return { value: { to, on: new Date(on) } };
    },
  },
};

const trimmed: StandardSchema<string, string> = {
  '~standard': {
    version: 1,
    vendor: 'example',
    validate: (value) =>
      typeof value === 'string' ? { value: value.trim() } : { issues: [{ message: 'must be text' }] },
  },
};

export const invite = defineQueue('example.invite', {
  schema: invitation,
  id: ({ to }) => `invite-${to}`,
  attempts: 3,
});
export const reindex = defineQueue<{ userId: string }>('example.reindex', {
  id: ({ userId }) => userId,
  debounce: { wait: '10s', maxWait: '2m' },
});

// A queue that is used by its plain name has the type that is said here.
declare module 'nestjs-delay-queue' {
  interface DelayQueues {
    'example.welcome': { name: string };
  }
}

@Injectable()
export class Invitations {
  readonly years: number[] = [];
  readonly welcomed: string[] = [];

  constructor(
    @InjectQueue(invite) readonly invites: QueueOf<typeof invite>,
    @InjectQueue(reindex) readonly index: QueueOf<typeof reindex>,
    readonly producer: DelayQueueProducer,
  ) {}

  /** The handler receives what the schema made of the payload: a Date. */
  @OnDelayed(invite)
  send({ on }: { to: string; on: Date }) {
    this.years.push(on.getUTCFullYear());
  }

  /** A schema for one parameter. What it refuses is a dead letter `invalid` at once. */
  @OnDelayed('example.welcome')
  welcome(@JobPayload('name', { schema: trimmed }) name: string, @Job() job: DelayedJob) {
    this.welcomed.push(`${name} at attempt ${job.attempt}`);
  }
}

@Module({
  imports: [
    DelayQueueModule.forFeature([invite, reindex]),
    DelayQueueModule.forRoot({
      ...redis,
      strictQueues: true, // a name must be handled here, a definition, or listed here
      queues: { 'example.remind': { delay: '1h' } }, // default of jobs that say neither `delay` nor `at`
    }),
  ],
  providers: [Invitations],
})
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const invitations = app.get(Invitations);
  const { id } = await invitations.invites.enqueue({ to: 'ada', on: '2030-05-01' }); // the id comes from the payload

  // Refused before anything is sent, with the path of what is wrong.
  const refused = await invitations.invites
    .enqueue({ to: 'bob', on: 'soon' })
    .catch((error: unknown) => (error instanceof SchemaError ? error.issues : error));

  await invitations.index.enqueue({ userId: 'u1' });
  const { outcome } = await invitations.index.enqueue({ userId: 'u1' }); // 'replaced': the debounce of the definition

  await invitations.producer.enqueue('example.welcome', { name: ' Ada ' }); // { nam: 'Ada' } does not compile

  const { state } = await invitations.producer.enqueue('example.remind', {}); // 'delayed'
  const typo = await invitations.producer
    .enqueue('example.remnid', {})
    .catch((error: unknown) => error instanceof InvalidQueueError);

  const { years, welcomed } = invitations;
  await until(() => years.length === 1 && welcomed.length === 1);
  return { id, refused, outcome, state, typo, years, welcomed };
}

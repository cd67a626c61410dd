// What a module of BullMQ becomes: docs/migrating-from-bullmq.md has the other half.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  exponential,
  OnDelayed,
  SnoozeJob,
} from 'nestjs-delay-queue';
import type { DelayedJob } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

interface User {
  readonly id: string;
  readonly email: string;
}

@Injectable()
export class Mailer {
  readonly sent: string[] = [];

  async send(to: string, subject: string) {
    this.sent.push(`${subject} to ${to}`);
  }
}

@Injectable()
export class SignUp {
  constructor(private readonly producer: DelayQueueProducer) {}

  async registered(user: User) {
    await this.producer.enqueue('mail.welcome', user);
    await this.producer.enqueue(
      'mail.remind',
      user,
      { delay: '3d', id: `remind-${user.id}`, attempts: 5, backoff: exponential('1s') }, // one `id` in each queue
    );
  }

  async confirmed(userId: string) {
    await this.producer.cancel('mail.remind', `remind-${userId}`);
  }

  async invite(users: readonly User[]) {
    await this.producer.enqueueMany(
      'mail.welcome',
      users.map((payload) => ({ payload, id: `invite-${payload.id}` })),
    );
  }
}

@Injectable()
export class MailHandlers {
  quiet = false;

  constructor(private readonly mailer: Mailer) {}

  @OnDelayed('mail.welcome', { concurrency: 5 })
  async welcome({ email }: User) {
    await this.mailer.send(email, 'Welcome');
  }

  @OnDelayed('mail.remind')
  async remind({ email }: User, job: DelayedJob) {
    if (!email.includes('@')) throw new DiscardJob('no address'); // UnrecoverableError
    if (this.quiet) throw new SnoozeJob('20ms'); // moveToDelayed() and DelayedError
    await this.mailer.send(email, `Reminder ${job.attempt}`); // job.attemptsMade + 1
  }

  @OnDelayed('mail.digest', { repeat: { cron: '0 7 * * *', timeZone: 'Europe/Berlin' } })
  async digest() {
    await this.mailer.send('all', 'Digest');
  }
}

@Module({
  imports: [DelayQueueModule.forRoot(redis)],
  providers: [Mailer, MailHandlers, SignUp],
})
export class AppModule {}

/** A job as BullMQ keeps it. */
export interface OldJob {
  readonly id?: string;
  readonly data: unknown;
  readonly timestamp: number;
  readonly delay: number;
  remove(): Promise<unknown>;
}

/** Moves the delayed jobs of a queue, oldest due time first, with their ids and due times. It may be repeated. */
export async function takeOver(
  old: { getDelayed(start: number, end: number): Promise<readonly (OldJob | undefined)[]> },
  producer: DelayQueueProducer,
  queueOf: (job: OldJob) => string,
) {
  for (;;) {
    const page = (await old.getDelayed(0, 499)).filter((job) => job !== undefined);
    if (page.length === 0) return;
    for (const queue of new Set(page.map(queueOf))) {
      const jobs = page.filter((job) => queueOf(job) === queue);
      const items = jobs.map(({ id, data, timestamp, delay }) => ({ payload: data, id, at: timestamp + delay }));
      await producer.enqueueMany(queue, items);
    }
    await Promise.all(page.map((job) => job.remove())); // only now: until then both have them
  }
}

export async function run(app: INestApplicationContext) {
  const [signUp, mailer, handlers] = [app.get(SignUp), app.get(Mailer), app.get(MailHandlers)];
  const [producer, inspector] = [app.get(DelayQueueProducer), app.get(DelayQueueInspector)];
  const ada = { id: '1', email: 'ada@x.example' };
  await signUp.registered(ada);
  await signUp.confirmed(ada.id);
  await signUp.invite([ada, ada]);
  handlers.quiet = true;
  await producer.enqueue('mail.remind', ada, { id: 'now' });
  await until(async () => (await producer.get('mail.remind', 'now'))?.state === 'delayed');
  handlers.quiet = false;
  await until(() => mailer.sent.length === 3);

  // Stands for `new Queue('mail')` of BullMQ.
  const old = [7, 8].map((n) => ({ id: `${n}`, data: ada, timestamp: 4_000_000_000_000, delay: n, name: 'remind' }));
  const queue = {
    getDelayed: async () => old.map((job) => ({ ...job, remove: async () => old.splice(old.indexOf(job), 1) })),
  };
  await takeOver(queue, producer, () => 'mail.remind');
  const { jobs } = await inspector.list('mail.remind', 'delayed');
  return {
    sent: mailer.sent.sort(), // ['Reminder 1 to ada@x.example', 'Welcome to ada@x.example', 'Welcome to ada@x.example']
    moved: jobs.map(({ id, dueAt }) => [id, dueAt.getTime()]), // [['7', 4000000000007], ['8', 4000000000008]]
    schedules: (await producer.listSchedules('mail.digest')).schedules.map(({ id }) => id), // ['@code']
  };
}

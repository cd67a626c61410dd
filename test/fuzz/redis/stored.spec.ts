import { afterAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { LoggerService } from '@nestjs/common';
import fc from 'fast-check';
import { DiscardJob, LayoutError, SnoozeJob, UnknownCodecError } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { decodeEnvelope } from '../../../lib/job/envelope.js';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { anyEnvelope, READER, SECRET } from '../envelopes.js';
import { fuzz, FUZZ_MS } from '../fuzz.js';
import type { Fate } from '../fuzz.js';
import { hostile, spicedText, thrown, unboxed } from '../values.js';

const here = inAWorld();
const QUEUE = 'stored';
const AT_ONCE = 20;
const GOOD = 5;

/** What becomes of a record: it runs, it is a dead letter, or it is left to others. */
function fateOfRecord(text: string): Fate {
  try {
    const { body, mark } = decodeEnvelope(text);
    READER.decode(body, mark);
    return 'accepted';
  } catch (error) {
    return error instanceof LayoutError || error instanceof UnknownCodecError ? 'left' : 'undecodable';
  }
}

interface Said {
  readonly app: TestApp;
  readonly lines: string[];
  readonly ran: Set<string>;
}

/** What a good job's handler does. Payloads, all with a secret, come with it as they are stored. */
type Deed = (payload: any, job: DelayedJob) => unknown;
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.constant<Deed>(() => undefined),
  fc.oneof(thrown, hostile).map((what): Deed => () => {
    throw unboxed(what);
  }),
  spicedText.map((text): Deed => () => {
    throw Object.assign(new Error(text.repeat(50)), { name: text });
  }),
  fc.constant<Deed>((payload) => {
    throw payload;
  }),
  fc.constant<Deed>((payload) => {
    throw Object.assign(new Error('failed'), { payload, cause: payload });
  }),
  fc.tuple(spicedText, fc.constantFrom(1, 20_000)).map(([text, times]): Deed => () => {
    throw new DiscardJob(`no: ${text.repeat(times).slice(0, 200_000)}`);
  }),
  fc.constant<Deed>((payload) => {
    throw new SnoozeJob(0, { payload: { payload, no: () => 1 } });
  }),
  fc.constant<Deed>((payload) => {
    throw new SnoozeJob(0, {
      payload: {
        get field() {
          throw new Error('a getter');
        },
        payload,
      },
    });
  }),
);

let said: Promise<Said> | undefined;
const deeds = new Map<string, Deed>();

async function start(): Promise<Said> {
  const lines: string[] = [];
  const ran = new Set<string>();
  const handle: Deed = (payload, job) => {
    ran.add(job.id);
    return deeds.get(job.id)?.(payload, job);
  };
  const bytes = {
    name: 'bytes',
    encode: (value: unknown) => Buffer.from(JSON.stringify(value)),
    decode: (data: Uint8Array) => JSON.parse(Buffer.from(data).toString()) as unknown,
  };
  const handler = handlerClass(QUEUE, handle, { attempts: 1, concurrency: 50 });
  const app = await here.start({ providers: [handler], options: { codec: ['json', bytes] } });
  // A stack comes after the message and has a line for each call.
  const add = (message: unknown, ...more: unknown[]) => {
    lines.push(String(message));
    for (const part of more)
      lines.push(...(typeof part === 'string' ? part : (JSON.stringify(part) ?? '')).split('\n'));
  };
  const logger: Required<LoggerService> = {
    log: add,
    warn: add,
    error: add,
    debug: add,
    verbose: add,
    fatal: add,
    setLogLevels: () => undefined,
  };
  Logger.overrideLogger(logger);
  return { app, lines, ran };
}

afterAll(() => Logger.overrideLogger(false));

describe('Stored jobs of any content', () => {
  let round = 0;
  const inputs = fc.record({
    records: fc.array(anyEnvelope, { minLength: AT_ONCE, maxLength: AT_ONCE }),
    deeds: fc.array(deed, { minLength: GOOD, maxLength: GOOD }),
  });
  it(
    'run, are dead letters or are left to others; the others run; no line shows a payload',
    () =>
      fuzz('stored jobs', inputs, {
        size: AT_ONCE,
        check: async ({ records, deeds: good }) => {
          const { app, lines, ran } = await (said ??= start());
          const { redis } = here.world;
          const [jobs, due] = [here.world.key(QUEUE, 'jobs'), here.world.key(QUEUE, 'due')];
          lines.length = 0;
          round++;
          await app.inspector.pause(QUEUE);
          const ids = records.map((_, n) => `any-${round}-${n}`);
          const writing = redis.multi();
          for (const [n, id] of ids.entries()) writing.hset(jobs, id, records[n]!).zadd(due, n, id);
          await writing.exec();
          const goodIds = good.map((_, n) => `good-${round}-${n}`);
          for (const [n, id] of goodIds.entries()) deeds.set(id, good[n]!);
          await app.producer.enqueueMany(
            QUEUE,
            goodIds.map((id, n) => ({ id, at: n * 4, payload: { secret: SECRET }, context: { user: SECRET } })),
          );
          await app.inspector.resume(QUEUE);
          const stored = await eventually(async () => {
            const now = await here.world.read(QUEUE);
            expect({ due: Object.keys(now.due).filter((id) => now.due[id]! < 1e12), running: now.running }).toEqual({
              due: [],
              running: {},
            });
            return now;
          }, 20_000);

          expect(goodIds.filter((id) => !ran.has(id))).toEqual([]);
          const fates = ids.map((id, n) => {
            const fate = fateOfRecord(Buffer.from(records[n]!).toString());
            const reason = stored.errors[id]?.split('\n', 1)[0];
            const found = ran.has(id) ? 'accepted' : id in stored.due ? 'left' : reason;
            // One that says so may have run out of attempts, or expired.
            if (fate !== 'accepted' || found === 'accepted')
              expect({ record: records[n], found }).toEqual({ record: records[n], found: fate });
            return fate;
          });
          for (const error of Object.values(stored.errors)) expect(error.length).toBeLessThan(80_000);
          for (const line of lines) {
            expect(line).not.toMatch(/card-4|4111-1/);
            expect(line.length).toBeLessThan(2_000);
            expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
          }
          expect(await here.world.violations(QUEUE)).toEqual([]);
          await app.inspector.purge(QUEUE);
          deeds.clear();
          return fates;
        },
      }),
    FUZZ_MS,
  );
});

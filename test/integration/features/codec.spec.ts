import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { devalueCodec } from '../../../lib/devalue/index.js';
import { defineQueue, DelayQueueConsumer, SnoozeJob } from '../../../lib/index.js';
import type { DelayQueueRootOptions, PayloadCodec, StandardSchema } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { encryptingCodec } from '../../samples/encrypting-codec.js';

const here = inAWorld();
const RICH = { at: new Date(1e12), tags: new Map([['a', new Set([1n])]]), none: undefined };
/** Bytes of every value, and none of them is JSON. */
const reversed: PayloadCodec<Buffer> = {
  name: 'reversed',
  encode: (payload) => Buffer.from(JSON.stringify(payload)).map((byte) => 255 - byte) as Buffer,
  decode: (data) => JSON.parse(Buffer.from(data.map((byte) => 255 - byte)).toString()),
};
const produce = (options: DelayQueueRootOptions) => here.start({ options: { consume: false, ...options } });

let queues = 0;
async function running(options: DelayQueueRootOptions, handle?: (payload: any) => unknown) {
  const queue = `codec-${queues++}`;
  const seen: unknown[] = [];
  const log: string[] = [];
  const work = () => {
    const handler = handlerClass(queue, (payload) => {
      seen.push(payload);
      return handle?.(payload);
    });
    return here.start({ providers: [handler], options, log });
  };
  const record = async (id: string) => (await here.world.redis.hget(here.world.key(queue, 'jobs'), id))!;
  return { queue, seen, log, work, record };
}

describe('a codec', () => {
  it.each<[string, PayloadCodec<any>, number | undefined, unknown]>([
    ['devalue', devalueCodec(), undefined, RICH],
    ['devalue, compressed', devalueCodec(), 100, { ...RICH, text: 'x'.repeat(5_000) }],
    ['bytes', reversed, undefined, { text: 'é\n'.repeat(50) }],
    ['bytes, compressed', reversed, 100, { text: 'é\n'.repeat(5_000) }],
  ])('serves handlers, snapshots and both ways of fetching: %s', async (_, codec, compressAbove, payload) => {
    const { queue, seen, work } = await running({ codec, compressAbove });
    const { app, producer, inspector } = await produce({ codec, compressAbove });
    await producer.enqueue(queue, payload, { id: 'a', delay: '1h', context: { tenant: 't' }, expiresIn: '1d' });
    expect(await producer.get(queue, 'a')).toMatchObject({ payload, context: { tenant: 't' } });
    await producer.reschedule(queue, 'a', { delay: '2h' });
    const { jobs } = await inspector.list(queue, 'delayed');
    expect(jobs.map((job) => job.payload)).toEqual([payload]);

    await producer.enqueueMany(queue, [{ payload, id: 'b' }, { payload, id: 'c' }]); // prettier-ignore
    const consumer = app.get(DelayQueueConsumer);
    const [job] = await consumer.pull(queue);
    expect(job!.payload).toEqual(payload);
    await job!.complete();
    expect(await consumer.take(queue)).toEqual([payload]);

    await work();
    await producer.runNow(queue, 'a');
    await eventually(() => expect(seen).toEqual([payload]));
    // Keys are read one after the other, and the job is only about to be settled.
    await eventually(async () => expect(await here.world.violations(queue)).toEqual([]));
  });

  it('encodes the payload of a snooze, also of a job that JSON wrote, and the other way round', async () => {
    const snooze = (payload: { round?: number }) => {
      if (!payload.round) throw new SnoozeJob(0, { payload: { round: 1, text: 'again '.repeat(100) } });
    };
    const { queue, work, seen, record } = await running({ codec: [reversed], compressAbove: 100 }, snooze);
    const plain = await produce({});
    await plain.producer.enqueue(queue, {}, { id: 'a', delay: '1h', expiresIn: '1d' });
    expect((await record('a'))[0]).toBe('1');
    const worker = await work();
    await plain.producer.runNow(queue, 'a');
    await eventually(() => expect(seen).toEqual([{}, expect.objectContaining({ round: 1 })]));

    const back = await running({ codec: ['json', reversed] }, () => {
      throw new SnoozeJob('1h', { payload: { round: 2 } });
    });
    await worker.producer.enqueue(back.queue, {}, { id: 'b', delay: '1h' });
    expect((await back.record('b'))[0]).toBe('2');
    await back.work();
    await plain.producer.runNow(back.queue, 'b');
    await eventually(async () => expect(await plain.producer.get(back.queue, 'b')).toMatchObject({ payload: { round: 2 } })); // prettier-ignore
    expect((await back.record('b'))[0]).toBe('1');
  });

  it('decides what a schema sees at enqueue, as it does at the handler', async () => {
    const seenBySchema: unknown[] = [];
    const schema: StandardSchema<{ at: Date }> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) => {
          seenBySchema.push(value);
          const { at } = value as { at: unknown };
          return at instanceof Date ? { value: { at } } : { issues: [{ message: 'no Date', path: ['at'] }] };
        },
      },
    };
    // An application says in DelayQueueTypes what its codec keeps; all specs are one program.
    const definition = defineQueue('codec-schema' as never, { schema });
    const rich = await produce({ codec: devalueCodec(), compressAbove: 1 });
    const at = new Date(5);
    await rich.producer.enqueue(definition, { at });
    expect(seenBySchema).toEqual([{ at }]);
    const plain = await produce({});
    await expect(plain.producer.enqueue(definition, { at })).rejects.toMatchObject({ code: 'ERR_DQ_SCHEMA' });
  });

  it('gives one id to one content, compressed or not; one that encrypts needs an identity', async () => {
    const payload = { text: 'same '.repeat(100) };
    const queue = 'codec-ids';
    const { producer } = await produce({ codec: reversed, compressAbove: 10 });
    const { id } = await producer.enqueue(queue, payload, { idFromPayload: true, delay: '1h' });
    const other = await produce({ codec: reversed });
    expect(await other.producer.enqueue(queue, payload, { idFromPayload: true })).toMatchObject({ id, outcome: 'kept' }); // prettier-ignore
    const secret = encryptingCodec(devalueCodec(), { k: randomBytes(32) }, 'k');
    const encrypted = await produce({ codec: secret });
    await expect(encrypted.producer.enqueue(queue, payload, { idFromPayload: true })).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
    });
  });

  it('that cannot encode refuses before anything is sent', async () => {
    const { producer } = await produce({ codec: devalueCodec(), maxPayloadBytes: 100, compressAbove: 10 });
    const queue = 'codec-refusals';
    await expect(producer.enqueue(queue, { run() {} })).rejects.toMatchObject({ code: 'ERR_DQ_PAYLOAD' });
    await expect(producer.enqueue(queue, 'x'.repeat(99))).rejects.toMatchObject({ code: 'ERR_DQ_PAYLOAD_TOO_LARGE' });
    expect(await here.world.keys(queue)).toEqual([]);
  });
});

describe('during a change of codec', () => {
  it('a worker reads what JSON wrote, and a JSON worker what a codec in its list wrote', async () => {
    const both = await running({ codec: ['json', reversed] });
    await (await produce({})).producer.enqueue(both.queue, 'json');
    await (await produce({ codec: reversed })).producer.enqueue(both.queue, 'reversed');
    await both.work();
    await eventually(() => expect(new Set(both.seen)).toEqual(new Set(['json', 'reversed'])));
  });

  it('jobs of a codec that is unknown here are left to others, uncharged, and logged once', async () => {
    const { queue, seen, log, work, record } = await running({});
    const { producer } = await produce({ codec: reversed });
    const ids = ['a', 'b', 'c'];
    await producer.enqueueMany(queue, ids.map((id) => ({ id, payload: id, attempts: 1 }))); // prettier-ignore
    const before = await Promise.all(ids.map(record));
    const blind = await work();
    await eventually(async () => {
      const dueAts = await Promise.all(ids.map(async (id) => (await producer.get(queue, id))!.dueAt.getTime()));
      expect(Math.min(...dueAts)).toBeGreaterThan((await here.world.now()) + 20_000);
    });
    expect(seen).toEqual([]);
    expect(await blind.producer.get(queue, 'a')).toMatchObject({ state: 'delayed', attempts: 0, payload: undefined });
    expect(log.filter((line) => line.includes('was left to others'))).toEqual([
      expect.stringMatching(/^warn Job "." of queue "codec-\d+" was left to others: .*codec "reversed"; add that to/),
    ]);
    expect(await Promise.all(ids.map(record))).toEqual(before);
    await blind.close();

    const knowing = handlerClass(queue, (payload) => void seen.push(payload));
    await here.start({ providers: [knowing], options: { codec: reversed } });
    for (const id of ids) await producer.runNow(queue, id);
    await eventually(() => expect(new Set(seen)).toEqual(new Set(ids)));
  });

  it('a job that its codec cannot read is a dead letter with the raw record, and no log quotes it', async () => {
    const broken = { ...devalueCodec(), decode: (text: string) => JSON.parse(`card-4111${text}`) };
    const { queue, log, work, record } = await running({ codec: broken });
    const { producer, inspector } = await produce({ codec: devalueCodec() });
    await producer.enqueue(queue, 'card-4111', { id: 'a' });
    const before = await record('a');
    await work();
    await eventually(async () => expect(await producer.get(queue, 'a')).toMatchObject({ deadReason: 'undecodable' }));
    expect(await record('a')).toBe(before);
    const [dead] = (await inspector.list(queue, 'dead')).jobs;
    expect(dead).toMatchObject({ payload: 'card-4111', attempts: 0 });
    expect(JSON.stringify([log, dead!.lastError])).not.toContain('4111');
  });
});

describe('the encrypting codec of docs/payloads.md', () => {
  const keys = { '2026': randomBytes(32), '2027': randomBytes(32) };

  it('is the one that is tested here', () => {
    const source = readFileSync('test/samples/encrypting-codec.ts', 'utf8');
    const shown = source.replaceAll('../../lib/index.js', 'nestjs-delay-queue');
    expect(readFileSync('docs/payloads.md', 'utf8')).toContain(`\`\`\`ts\n${shown}\`\`\``);
  });

  it('stores nothing readable, and reads what older keys wrote', async () => {
    const old = encryptingCodec(devalueCodec(), { '2026': keys['2026'] }, '2026');
    const rotated = encryptingCodec(devalueCodec(), keys, '2027');
    const { queue, seen, work, record } = await running({ codec: rotated });
    await (await produce({ codec: old })).producer.enqueue(queue, { card: '4111', ...RICH }, { id: 'a' });
    await (await produce({ codec: rotated })).producer.enqueue(queue, { card: '4222', ...RICH }, { id: 'b' });
    const records = [await record('a'), await record('b')];
    for (const text of records) expect(text + Buffer.from(text.split('\n')[1]!, 'base64').toString('latin1')).not.toMatch(/4111|4222|card/); // prettier-ignore
    await work();
    await eventually(() => expect(seen).toEqual([{ card: '4111', ...RICH }, { card: '4222', ...RICH }])); // prettier-ignore
  });

  it('leaves jobs of a key that is not here to others, and makes tampered ones dead letters', async () => {
    const mine = encryptingCodec(devalueCodec(), { '2026': keys['2026'] }, '2026');
    const { queue, seen, log, work, record } = await running({ codec: mine });
    const { producer } = await produce({ codec: encryptingCodec(devalueCodec(), keys, '2027') });
    await producer.enqueue(queue, 1, { id: 'other-key' });
    const own = await produce({ codec: mine });
    await own.producer.enqueue(queue, 2, { id: 'tampered', delay: '1h' });
    const [head, body] = (await record('tampered')).split('\n') as [string, string];
    const data = Buffer.from(body, 'base64');
    data[data.length - 1]! ^= 1;
    await here.world.redis.hset(here.world.key(queue, 'jobs'), 'tampered', `${head}\n${data.toString('base64')}`);
    await producer.runNow(queue, 'tampered');
    await work();
    await eventually(async () => {
      expect(await producer.get(queue, 'tampered')).toMatchObject({ deadReason: 'undecodable' });
      expect(await producer.get(queue, 'other-key')).toMatchObject({ state: 'delayed', attempts: 0 });
    });
    expect(seen).toEqual([]);
    expect(log.join('\n')).toContain('needs the encryption key "2027", which is not here');
  });
});

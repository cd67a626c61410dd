import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { commandLine } from '../../helpers/command-line.js';
import type { RunSettings } from '../../helpers/command-line.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), 'command-line-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const run = (args: string[], settings?: RunSettings) => commandLine(here.world, args, settings);
const app = () => here.start({ options: { consume: false } });

describe('enqueue', () => {
  it('makes a job of JSON, of a file or of what comes by stdin, also in a new queue', async () => {
    const { producer } = await app();
    const file = join(folder, 'payload.json');
    writeFileSync(file, '{"from":"a file"}');
    const at = String((await here.world.now()) + HOUR);
    const first = await run(['enqueue', 'new', '{"n":1}', '--id', 'A', '--at', at, '--json']);
    expect([first.code, first.objects]).toMatchObject([
      0,
      [{ id: 'A', queue: 'new', outcome: 'created', state: 'delayed' }],
    ]);
    await run(['enqueue', 'new', `@${file}`, '--id', 'B', '--delay', '1h']);
    await run(['enqueue', 'new', '-', '--id', 'C', '--attempts', '2'], { input: '"from stdin"' });
    expect(await producer.get('new', 'A')).toMatchObject({ payload: { n: 1 }, dueAt: new Date(Number(at)) });
    expect(await producer.get('new', 'B')).toMatchObject({ payload: { from: 'a file' }, state: 'delayed' });
    expect(await producer.get('new', 'C')).toMatchObject({ payload: 'from stdin', maxAttempts: 2 });
  });

  it('tells by its exit code when the job that has the id stays, and quotes no payload', async () => {
    await run(['enqueue', 'twice', '1', '--id', 'A']);
    const kept = await run(['enqueue', 'twice', '2', '--id', 'A']);
    expect([kept.code, kept.lines[0]]).toEqual([4, expect.stringMatching(/^A\tkept\tdue\t/)]);
    expect((await run(['enqueue', 'twice', '2', '--id', 'A', '--on-duplicate', 'replace'])).code).toBe(0);
    expect((await run(['enqueue', 'twice', '2', '--id', 'A', '--on-duplicate', 'reject'])).code).toBe(4);
    const wrong = await run(['enqueue', 'twice', '{"card": 4111}}']);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('payload: is not JSON')]);
    expect(wrong.stderr).not.toContain('4111');
  });
});

describe('enqueue of what would arrive as something else', () => {
  it.each(['9007199254740993', '{"to":[1,-12345678901234567891]}'])(
    'refuses digits that would be lost: %s',
    async (text) => {
      const refused = await run(['enqueue', 'ids', text]);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('would lose digits')]);
      expect(refused.stderr).not.toContain(text);
    },
  );

  it('takes digits in texts, exact numbers however large, and fractions', async () => {
    const { producer } = await app();
    const payload = '["9007199254740993","\\"9007199254740993",9007199254740992,-9007199254740991,0.1,1e21]';
    expect((await run(['enqueue', 'ids', payload, '--id', 'A'])).code).toBe(0);
    expect((await producer.get('ids', 'A'))!.payload).toEqual(JSON.parse(payload));
  });

  it.each(['', '0x5', '-1', '10', 'high'])('refuses the priority "%s"', async (priority) => {
    const refused = await run(['enqueue', 'ids', '1', `--priority=${priority}`]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--priority')]);
  });
});

describe('schedules', () => {
  it('are listed, paused, resumed, triggered and removed', async () => {
    const { producer } = await app();
    await producer.schedule('clock', 'daily', { cron: '0 9 * * *', timeZone: 'Europe/Berlin' }, { secret: 1 });
    const listed = await run(['schedules', 'list', '--json']);
    expect(listed.objects).toMatchObject([{ queue: 'clock', id: 'daily', cron: '0 9 * * *', paused: false }]);
    expect(listed.stdout).not.toContain('secret');
    expect((await run(['schedules', 'pause', 'clock', 'daily'])).stdout).toBe('daily\tpaused\t\n');
    expect((await run(['schedules', 'list', 'clock'])).lines).toEqual([
      'clock\tdaily\t0 9 * * * (Europe/Berlin)\tpaused\t0\t0\t0',
    ]);
    expect((await run(['schedules', 'resume', 'clock', 'daily', '--json'])).objects).toMatchObject([
      { outcome: 'resumed' },
    ]);
    const [{ job }] = (await run(['schedules', 'trigger', 'clock', 'daily', '--json'])).objects;
    expect(await producer.get('clock', job)).toMatchObject({ state: 'due' });
    expect((await run(['schedules', 'remove', 'clock', 'daily'])).code).toBe(2);
    expect((await run(['schedules', 'remove', 'clock', 'daily', '--dry-run'])).code).toBe(0);
    expect((await run(['schedules', 'remove', 'clock', 'daily', '--yes'])).code).toBe(0);
    for (const act of ['pause', 'resume', 'trigger']) {
      expect((await run(['schedules', act, 'clock', 'daily'])).code).toBe(3);
    }
  });

  it('are run for a stretch of the past', async () => {
    const { producer, inspector } = await app();
    await producer.schedule('past', 'hourly', { cron: '0 * * * *' }, null);
    const before = (await inspector.counts('past')).due;
    const stretch = ['--from', '2026-01-01T00:30Z', '--to', '2026-01-01T03:30Z'];
    expect((await run(['schedules', 'backfill', 'past', 'hourly', ...stretch])).code).toBe(2);
    expect((await run(['schedules', 'backfill', 'past', 'hourly', ...stretch, '--yes'])).stdout).toBe('times\t3\n');
    expect((await inspector.counts('past')).due).toBe(before + 3);
  });
});

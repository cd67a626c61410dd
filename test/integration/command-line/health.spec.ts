import { describe, expect, it } from '@jest/globals';
import { commandLine, program } from '../../helpers/command-line.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const run = (...args: string[]) => commandLine(here.world, args);
const NOWHERE = ['--redis', 'redis://user:secret@127.0.0.1:1', '--timeout', '300ms'];

describe('health and doctor', () => {
  it('are well on a server whose queues are in order', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('calm', 1, { delay: '1h' });
    const health = await run('health', '--json');
    expect([health.code, health.objects]).toMatchObject([0, [{ status: 'up', reasons: [], redis: { status: 'up' } }]]);
    const doctor = await run('doctor', '--json');
    expect(doctor.code).toBe(0);
    expect(doctor.objects).toContainEqual(expect.objectContaining({ check: 'eviction', status: 'ok' }));
    const { host } = new URL(here.world.url);
    expect(doctor.objects[0].what).toBe(`${host}, database 0 answers, and its user may run scripts`);
    expect(doctor.objects).toContainEqual(expect.objectContaining({ check: 'queue calm', status: 'ok' }));
  });

  it('find a queue that nobody consumes and that lags: degraded is 1, unless --fail-on down', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('alone', 1, { id: 'A' });
    await here.world.makeDue('alone', 'A', 60_000);
    const { code, objects } = await run('health', '--json');
    expect(code).toBe(1);
    expect(objects[0]).toMatchObject({ status: 'degraded', orphans: ['alone'] });
    expect(objects[0].reasons.join(' ')).toMatch(/Queue "alone" lags 1 min/);
    expect((await run('health', '--fail-on', 'down')).code).toBe(0);
    const doctor = await run('doctor', '--json');
    expect(doctor.code).toBe(1);
    const found = doctor.objects.find(({ check }) => check === 'queue alone');
    expect(found).toMatchObject({ status: 'bad', what: 'no live process claims what is due: 1 job' });
    await producer.cancel('alone', 'A');
  });

  it('say that Redis is away without telling its password: health with 2, all others with 5', async () => {
    const health = await program(['health', '--json', ...NOWHERE]);
    expect([health.code, health.objects[0].status]).toEqual([2, 'down']);
    const doctor = await program(['doctor', ...NOWHERE]);
    expect(doctor.code).toBe(5);
    expect(doctor.stderr).toContain('127.0.0.1:1 did not answer within --timeout (300 ms)');
    expect(health.stdout + doctor.stderr).not.toContain('secret');
  });
});

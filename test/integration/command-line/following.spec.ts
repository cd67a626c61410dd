import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { handlerClass } from '../../helpers/app.js';
import { commandLine, inTerminal, program } from '../../helpers/command-line.js';
import type { RunSettings } from '../../helpers/command-line.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const run = (args: string[], settings?: RunSettings) => commandLine(here.world, args, settings);

/** Reads what a process writes, so that the test can wait for it. */
function reader() {
  const said = { text: '' };
  const settings: RunSettings = {
    with: (child) => child.stdout!.on('data', (text: string) => (said.text += text)),
  };
  return { said, settings };
}

let proxy: Proxy | undefined;
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});

describe('watch', () => {
  it('tells each change of a job until it ends, and by its exit code how', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('watched', 1, { id: 'A', delay: '1h' });
    const { said, settings } = reader();
    const watching = run(['watch', 'watched', 'A'], settings);
    await eventually(() => expect(said.text).toMatch(/^delayed\tattempt 0/));
    await producer.runNow('watched', 'A');
    await eventually(() => expect(said.text).toContain('\ndue\tattempt 0'));
    await producer.cancel('watched', 'A');
    const { code, lines } = await watching;
    expect([code, lines.length, lines[2]]).toEqual([0, 3, 'gone']);
    expect((await run(['watch', 'watched', 'A'])).code).toBe(3);
  });

  it('goes on through a restart of Redis', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('outlived', 1, { id: 'A', delay: '1h' });
    proxy = await Proxy.before(here.world.url);
    const { said, settings } = reader();
    const server = ['--redis', proxy.url, '--prefix', here.world.prefix, '--timeout', '1s'];
    const watching = program(['watch', 'outlived', 'A', ...server], settings);
    await eventually(() => expect(said.text).toMatch(/^delayed\t/));
    // No answer comes: a call gives up, and only a watch that goes on makes another one.
    let asked = 0;
    proxy.judge = (direction) => {
      asked += direction === 'request' ? 1 : 0;
      return direction === 'reply' ? 'swallow' : 'pass';
    };
    await eventually(() => expect(asked).toBeGreaterThanOrEqual(4));
    proxy.judge = () => 'pass';
    await producer.runNow('outlived', 'A');
    await eventually(() => expect(said.text).toContain('\ndue\t'));
    await producer.cancel('outlived', 'A');
    expect(await watching).toMatchObject({ code: 0 });
  });

  it('goes on with the job when its queue has got another number of shards', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    for (const id of ['A', 'B', 'C', 'D']) await producer.enqueue('split', 1, { id, delay: '1h' });
    const watched = ['A', 'B', 'C', 'D'].map((id) => {
      const { said, settings } = reader();
      return { id, said, ended: run(['watch', 'split', id], settings) };
    });
    for (const { said } of watched) await eventually(() => expect(said.text).toMatch(/^delayed\t/));
    expect((await run(['reshard', 'split', '--to', '2', '--yes'])).code).toBe(0);
    // Long enough for each to look again.
    await sleep(1_500);
    expect((await run(['run-now', 'split', 'A', 'B', 'C', 'D'])).code).toBe(0);
    for (const { said } of watched) await eventually(() => expect(said.text).toContain('\ndue\t'));
    await run(['cancel', 'split', 'A', 'B', 'C', 'D', '--yes']);
    for (const { ended } of watched) expect(await ended).toMatchObject({ code: 0, stderr: expect.any(String) });
  });

  it('ends with 4 when the job is dead', async () => {
    const failing = handlerClass('fails', () => Promise.reject(new Error('no')), { attempts: 1 });
    const { producer } = await here.start({ providers: [failing] });
    await producer.enqueue('fails', 1, { id: 'A' });
    await eventually(async () => expect(await producer.get('fails', 'A')).toMatchObject({ state: 'dead' }));
    const { code, lines } = await run(['watch', 'fails', 'A']);
    expect([code, lines[0]]).toEqual([4, expect.stringMatching(/^dead\tattempt 1\tdue .*\texhausted: Error: no$/)]);
  });
});

describe('tail', () => {
  it('tells how jobs end in another process, from a moment on', async () => {
    const app = await here.start({
      options: { queues: { told: { events: {} } } },
      providers: [handlerClass('told', () => undefined)],
    });
    await app.producer.enqueue('told', 1, { id: 'A' });
    await app.producer.enqueue('told', 1, { id: 'B' });
    const { code, objects } = await run(['tail', 'told', '--since', '-1h', '--limit', '2', '--json']);
    expect(code).toBe(0);
    expect(new Set(objects.map(({ type, id }) => `${type} ${id}`))).toEqual(new Set(['completed A', 'completed B']));
  });

  it('says how a queue keeps events when it keeps none', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('silent', 1);
    const { code, stderr } = await run(['tail', 'silent']);
    expect([code, stderr]).toEqual([3, expect.stringContaining("queues: { 'silent': { events: {} } }")]);
  });
});

describe('top', () => {
  it('draws all queues again and again until q, and gives the terminal back', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('first', 1);
    const { code, stdout } = await inTerminal(here.world, ['top', '--every', '100ms'], {
      with: (child) => {
        let said = '';
        const next = [
          { when: /first +ok +1/, act: () => void producer.enqueue('first', 1) },
          { when: /first +ok +2/, act: () => child.stdin!.write('/zzz\r') },
          { when: /\/ filter \(zzz\)/, act: () => child.stdin!.write('q') },
        ];
        child.stdout!.on('data', (text: string) => {
          said += text;
          if (next[0]?.when.test(said)) next.shift()!.act();
        });
      },
    });
    expect(code).toBe(0);
    expect(stdout).toContain('\u001b[?1049h');
    expect(stdout.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
  });

  it('draws nothing more after q, when the terminal is given back', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('quit', 1);
    proxy = await Proxy.before(here.world.url);
    const world = { url: proxy.url, connection: proxy.url, prefix: here.world.prefix };
    const { stdout } = await inTerminal(world, ['top', '--every', '100ms'], {
      with: (child) => {
        let said = '';
        child.stdout!.on('data', (text: string) => {
          said += text;
          if (!/quit +ok +1/.test(said)) return;
          // It looks again, and is not answered before it has ended.
          proxy!.judge = (direction) => {
            if (direction === 'reply') return 'swallow';
            child.stdin!.write('q');
            return 'pass';
          };
        });
      },
    });
    expect(stdout.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
  });

  it('sees a queue again that has got another number of shards', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    for (const id of ['A', 'B', 'C']) await producer.enqueue('divided', 1, { id });
    let said = '';
    let top: ChildProcess | undefined;
    const ended = inTerminal(here.world, ['top', '--every', '100ms'], {
      with: (child) => (top = child).stdout!.on('data', (text: string) => (said += text)),
    });
    try {
      await eventually(() => expect(said).toMatch(/divided +ok +3/));
      expect((await run(['reshard', 'divided', '--to', '2', '--yes'])).code).toBe(0);
      said = '';
      // The first of these may have been read before.
      await eventually(() => expect(said).toMatch(/divided +ok +3[^]*divided +ok +3/));
    } finally {
      top!.stdin!.write('q');
      await ended;
    }
  });

  it('is one table without a terminal', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('once', 1);
    const { code, lines } = await run(['top']);
    expect([code, lines.find((line) => line.startsWith('once\tok\t0\t1\t'))]).toEqual([0, expect.any(String)]);
  });
});

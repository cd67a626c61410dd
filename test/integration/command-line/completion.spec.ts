import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { BIN, program } from '../../helpers/command-line.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const end = endingWithEachTest();

it('completes names of queues in bash, and executes nothing that stands in one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'completion-'));
  end({ close: async () => rmSync(folder, { recursive: true, force: true }) });
  symlinkSync(BIN, join(folder, 'nestjs-delay-queue'));
  const { producer } = await here.start({ options: { consume: false } });
  for (const queue of ['mail.welcome', 'mail.remind', 'other', 'mail.$(touch executed)'])
    await producer.enqueue(queue, 1);
  const { stdout: script } = await program(['completion', 'bash']);
  // A machine that does much else needs more than 300 ms, in which nothing is completed.
  const tries = `for n in $(seq 40); do _nestjs_delay_queue; [ \${#COMPREPLY[@]} -gt 0 ] && break; done`;
  const code = `${script}\nCOMP_WORDS=(nestjs-delay-queue list mail.)\nCOMP_CWORD=2\n${tries}\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = {
    PATH: `${folder}:${process.env['PATH']}`,
    REDIS_URL: here.world.url,
    DELAY_QUEUE_PREFIX: here.world.prefix,
  };
  const { stdout } = spawnSync('bash', ['-c', `${code}\nls`], { cwd: folder, env, encoding: 'utf8' });
  expect(stdout.trim().split('\n')).toEqual([
    String.raw`mail.\$\(touch\ executed\)`,
    'mail.remind',
    'mail.welcome',
    'nestjs-delay-queue',
  ]);
});

it('completes nothing where Redis does not answer, and does not wait for it', async () => {
  const { code, stdout } = await program(['__complete', '--', 'list', ''], {
    env: { REDIS_URL: 'redis://127.0.0.1:1' },
  });
  expect([code, stdout]).toEqual([0, '']);
});

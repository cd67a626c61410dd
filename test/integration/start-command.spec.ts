import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { eventually } from '../helpers/eventually.js';
import { World } from '../helpers/world.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** For a build that is stale; everything else takes two seconds. */
const BOOT_MS = 60_000;
const TIMEOUT_MS = 240_000;
const describeOnLinux = existsSync('/proc/self/environ') ? describe : describe.skip; // /proc tells what is left

let command: StartCommand;

afterEach(() => command.killAll());

describeOnLinux('npm start, while a check runs', () => {
  it.each<[string, () => void]>([
    ['Ctrl-C, which reaches the whole process group', () => command.signalGroup('SIGINT')],
    ['SIGTERM to npm alone', () => void command.npm.kill('SIGTERM')],
  ])(
    '%s: the check is finished, the exit code is 0, and no process is left',
    async (_, stop) => {
      command = await StartCommand.serving();
      const id = await command.startSlowCheck();
      stop();
      expect(await command.ended).toEqual({ code: 0, signal: null });
      expect(command.output).toContain(`Payment ${id} is confirmed`);
      expect(command.processes()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'SIGKILL of the start script: the check is finished all the same, and no process is left',
    async () => {
      command = await StartCommand.serving();
      const id = await command.startSlowCheck();
      process.kill(command.pidOf('tools/start.mjs'), 'SIGKILL');
      expect((await command.ended).code).not.toBe(0);
      await eventually(() => expect(command.processes()).toEqual([]), BOOT_MS);
      expect(command.output).toContain(`Payment ${id} is confirmed`);
    },
    TIMEOUT_MS,
  );
});

describeOnLinux('npm start on a Redis of ours', () => {
  let world: World;

  beforeAll(async () => {
    world = await World.open();
  });
  afterAll(() => world.close());

  it(
    'a second Ctrl-C does not cut the drain short: nothing stays behind in Redis',
    async () => {
      command = await StartCommand.serving({ REDIS_URL: world.url, DELAY_QUEUE_PREFIX: world.prefix });
      const id = await command.startSlowCheck(5);
      const application = command.pidOf('dist-sample/main.js');
      command.signalGroup('SIGINT');
      await eventually(async () => expect(await command.delayQueueHealth()).toMatchObject(SHUTTING_DOWN));
      command.signalGroup('SIGINT');
      process.kill(application, 'SIGINT'); // what a terminal would do to an application without a start script

      expect(await command.ended).toEqual({ code: 0, signal: null });
      expect(command.output).toContain(`Payment ${id} is confirmed`);
      expect(await world.read('payment.check')).toMatchObject({ jobs: {}, due: {}, running: {}, dead: {}, idle: {} });
    },
    TIMEOUT_MS,
  );

  it(
    'a PORT that is none: says so and exits with 1',
    async () => {
      command = new StartCommand({ REDIS_URL: world.url, DELAY_QUEUE_PREFIX: world.prefix, PORT: '80a' });
      expect((await command.ended).code).toBe(1);
      expect(command.output).toContain('PORT is "80a"; it must be a whole number from 0 (any free port) to 65535.');
    },
    TIMEOUT_MS,
  );

  it(
    'a PORT that is taken: says so and exits with 1',
    async () => {
      const other = createServer().listen(0);
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      command = new StartCommand({ REDIS_URL: world.url, DELAY_QUEUE_PREFIX: world.prefix, PORT: String(port) });
      const ended = await command.ended;
      other.close();
      expect(ended.code).toBe(1);
      expect(command.output).toMatch(new RegExp(`FATAL.*EADDRINUSE.*${port}`));
    },
    TIMEOUT_MS,
  );
});

const SHUTTING_DOWN = { reasons: ['This process is shutting down.'] };

/** `npm start` as a terminal runs it, in a process group of its own, on any free port. */
class StartCommand {
  readonly npm: ChildProcess;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  output = '';
  /** In the environment of every process that comes of it, sessions of their own included. */
  readonly #mark = `START_COMMAND=${randomUUID()}`;

  constructor(env: NodeJS.ProcessEnv = {}) {
    const [name, value] = this.#mark.split('=') as [string, string];
    const { FORCE_COLOR: _, ...inherited } = process.env;
    this.npm = spawn('npm', ['start'], {
      cwd: ROOT,
      env: { ...inherited, NO_COLOR: '1', PORT: '0', REDIS_URL: '', ...env, [name]: value },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.npm.stdout!, this.npm.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.ended = once(this.npm, 'close').then(([code, signal]) => ({ code, signal }));
  }

  static async serving(env?: NodeJS.ProcessEnv): Promise<StartCommand> {
    const started = new StartCommand(env);
    await eventually(() => started.#url, BOOT_MS);
    return started;
  }

  /** @returns the id of a payment that is being checked now; the simulated gateway takes its time */
  async startSlowCheck(seconds = 3): Promise<string> {
    const { id } = await this.#ask('/payments', { amount: 1040 + seconds, checkIn: 0 });
    await eventually(async () => {
      const { checks } = await this.#ask(`/payments/${id}`);
      if (checks !== 1) throw new Error(`payment ${id} was checked ${checks} times`);
    });
    return id;
  }

  async delayQueueHealth(): Promise<unknown> {
    const { details } = await this.#ask('/health');
    return details.delay_queue;
  }

  signalGroup(signal: NodeJS.Signals): void {
    process.kill(-this.npm.pid!, signal);
  }

  /** What of it still runs: the command lines by process id. */
  processes(): [pid: number, commandLine: string][] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && ofProcess(name, 'environ').split('\0').includes(this.#mark))
      .map((pid) => [Number(pid), ofProcess(pid, 'cmdline').replaceAll('\0', ' ')]);
  }

  pidOf(program: string): number {
    const found = this.processes().find(([, commandLine]) => commandLine.includes(program));
    if (!found) throw new Error(`${program} does not run: ${this.output}`);
    return found[0];
  }

  killAll(): void {
    for (const [pid] of this.processes()) process.kill(pid, 'SIGKILL');
  }

  get #url(): string {
    const url = /Listening on (\S+)$/m.exec(this.output)?.[1];
    if (!url) throw new Error(`npm start does not serve: ${this.output}`);
    return url;
  }

  /** @param payment posted when given */
  async #ask(path: string, payment?: object): Promise<any> {
    const response = await fetch(this.#url + path, {
      method: payment ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(payment),
    });
    return response.json();
  }
}

function ofProcess(pid: string, file: 'environ' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // it ended, or is not ours to look at
  }
}

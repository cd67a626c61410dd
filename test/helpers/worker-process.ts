import { execFile, fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DelayQueueRootOptions, EnqueueOptions, HandlerOptions } from '../../lib/index.js';
import { eventually } from './eventually.js';
import type { World } from './world.js';

export interface WorkerMessage {
  kind: 'ready' | 'start' | 'batch' | 'end' | 'aborted' | 'log' | 'enqueued';
  pid: number;
  /** Monotonic ms of this process, when it came in. */
  at?: number;
  /** Which `enqueue()` was answered. */
  call?: number;
  id?: string;
  /** Of a batch. */
  ids?: string[];
  attempt?: number;
  latenessMs?: number;
  dueAt?: number;
  reason?: string;
  level?: string;
  message?: string;
  payload?: any;
}

export interface WorkerSettings {
  queue: string;
  handler?: HandlerOptions;
  options?: DelayQueueRootOptions;
  /** A queue of a second instance in that process. */
  second?: { queue: string; handler?: HandlerOptions };
  /** Moves this process's wall clock. */
  skewMs?: number;
  /** Ends by SIGKILL instead of sending to Redis what matches. */
  dieBefore?: RegExp;
  connection?: World['connection'];
  /** Another copy of worker-program.mjs, beside another copy of the built package. */
  program?: string;
}

/** A busy machine takes its time to start a process. */
const READY_WITHIN_MS = 30_000;
const SCRIPT = fileURLToPath(new URL('./worker-program.mjs', import.meta.url));

/** A real worker process, to be killed by signal. What its handlers do is told by the payloads (see worker-program.mjs). */
export class WorkerProcess {
  readonly messages: WorkerMessage[] = [];
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  #calls = 0;

  private constructor(readonly child: ChildProcess) {
    child.on('message', (message) => this.messages.push({ ...(message as WorkerMessage), at: performance.now() }));
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  }

  static async start(world: World, settings: WorkerSettings): Promise<WorkerProcess> {
    const worker = WorkerProcess.launch(world, settings);
    try {
      await worker.saw('ready', {}, READY_WITHIN_MS);
      return worker;
    } catch (error) {
      await worker.kill(); // Nobody else knows of it.
      throw error;
    }
  }

  static launch(
    world: World,
    { connection = world.connection, program = SCRIPT, dieBefore, ...settings }: WorkerSettings,
  ): WorkerProcess {
    const WORKER = JSON.stringify({ connection, prefix: world.prefix, dieBefore: dieBefore?.source, ...settings });
    const child = fork(program, [], {
      env: { ...process.env, WORKER, NODE_OPTIONS: '' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    return new WorkerProcess(child);
  }

  of(kind: WorkerMessage['kind']): WorkerMessage[] {
    return this.messages.filter((message) => message.kind === kind);
  }

  /** Waits for a message. */
  async saw(
    kind: WorkerMessage['kind'],
    match: Partial<WorkerMessage> = {},
    withinMs = 15_000,
  ): Promise<WorkerMessage> {
    return eventually(() => {
      const found = this.of(kind).find((message) =>
        Object.entries(match).every(([key, value]) => message[key as keyof WorkerMessage] === value),
      );
      if (!found) throw new Error(`worker ${this.child.pid} did not tell ${kind} ${JSON.stringify(match)}`);
      return found;
    }, withinMs);
  }

  /** Enqueues from within that process. @returns the id and due time that it was told */
  async enqueue(queue: string, payload: unknown, options: EnqueueOptions = {}): Promise<{ id: string; dueAt: number }> {
    const call = ++this.#calls;
    this.child.send({ call, enqueue: [queue, payload, options] });
    const { id, dueAt, message } = await this.saw('enqueued', { call });
    if (id === undefined) throw new Error(message);
    return { id, dueAt: dueAt! };
  }

  /** Begins to move jobs from within that process. It tells nothing of it: the test kills it on the way. */
  move(queue: string, ids: readonly string[], target: string): void {
    this.child.send({ move: [queue, ids, target] });
  }

  /** Begins to remove a queue from within that process, and likewise tells nothing of it. */
  remove(queue: string): void {
    this.child.send({ remove: [queue, { force: true }] });
  }

  /** Ends all its jobs, those to come too, whose payload says `untilLetGo`. */
  letGo(): void {
    this.child.send({ lets: true });
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.child.pid!, signal);
  }

  /** Stops it (SIGSTOP), and waits until it has: what it was just sending has left then. */
  async freeze(): Promise<void> {
    const { pid } = this.child;
    process.kill(pid!, 'SIGSTOP');
    await eventually(async () => {
      if ((await stateOf(pid!)) !== 'T') throw new Error(`Process ${pid} is not stopped yet.`);
    });
  }

  /** Ends it by SIGKILL, frozen or not, and waits for that. */
  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.exited;
  }

  /** Ends it by SIGTERM, which drains. */
  async terminate(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.child.kill('SIGTERM');
    return this.exited;
  }
}

/** A letter, `T` of a stopped process. Debian has no `ps` by itself. */
async function stateOf(pid: number): Promise<string> {
  if (existsSync('/proc/self/stat')) return (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /s, '')[0]!;
  return (await promisify(execFile)('ps', ['-o', 'stat=', '-p', String(pid)])).stdout[0]!;
}

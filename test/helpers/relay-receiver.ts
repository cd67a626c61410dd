import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MicroserviceOptions } from '@nestjs/microservices';

const PROGRAM = fileURLToPath(new URL('./relay-receiver-program.mjs', import.meta.url));

export interface ReceivedMessage {
  /** Of the job. */
  readonly id: string;
  readonly attempt: number;
  /** Beside the data. */
  readonly metadata?: Record<string, string>;
}

export interface ReceiverSettings {
  readonly microservice: MicroserviceOptions;
  readonly pattern: string;
  /** By `@MessagePattern`; otherwise it listens to events. */
  readonly answers: boolean;
}

/** A microservice of Nest in a process of its own, which may be killed. What it has received outlives it. */
export class RelayReceiver {
  readonly #folder = mkdtempSync(join(tmpdir(), 'relay-receiver-'));
  readonly #file = join(this.#folder, 'received');
  #child: ChildProcess | undefined;

  private constructor(private readonly settings: ReceiverSettings) {}

  static async start(settings: ReceiverSettings): Promise<RelayReceiver> {
    const receiver = new RelayReceiver(settings);
    await receiver.restart();
    return receiver;
  }

  /** Every message, in the order in which they came; a doubled one twice. */
  get received(): ReceivedMessage[] {
    const lines = readFileSync(this.#file, 'utf8').split('\n');
    return lines.slice(0, -1).map((line) => JSON.parse(line) as ReceivedMessage);
  }

  /** Ends it by SIGKILL and waits for that. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  }

  /** Ends it if it still runs, and starts it again. */
  async restart(): Promise<void> {
    await this.kill();
    const RECEIVER = JSON.stringify({ ...this.settings, file: this.#file });
    const child = fork(PROGRAM, [], {
      env: { ...process.env, RECEIVER, NODE_OPTIONS: '' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      child.once('exit', (code) => reject(new Error(`the receiver ended with ${code} before it listened`)));
    });
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

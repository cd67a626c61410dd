import { fileURLToPath } from 'node:url';
import type { Tether, TetheredProcess } from '../../tools/tether.mjs';
import { Proxy } from '../helpers/proxy.js';
import type { Historian } from './historian.mjs';
import type { LimitsOfRun, ScheduleOfRun } from './history.js';

const PROGRAM = fileURLToPath(new URL('./process.mjs', import.meta.url));
const END_MS = 15_000;

export interface CrewSettings {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly queue: string;
  readonly seed: number;
  readonly leaseMs: number;
  readonly rate: number;
  readonly limits: LimitsOfRun | undefined;
  readonly schedules: readonly ScheduleOfRun[];
}

/** One process of the run, through all its incarnations, behind a proxy of its own. It is started again when it ends. */
export class Member {
  /** Something is being done to it. */
  hit = false;
  #child!: TetheredProcess;
  #incarnation = 0;
  #asked = false;
  #over = false;
  #gone: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly name: string,
    readonly role: 'worker' | 'producer',
    readonly proxy: Proxy,
    private readonly tether: Tether,
    private readonly settings: CrewSettings,
    private readonly history: Historian,
    private readonly index: number,
  ) {}

  static async join(
    name: string,
    role: 'worker' | 'producer',
    index: number,
    tether: Tether,
    settings: CrewSettings,
    history: Historian,
  ): Promise<Member> {
    const proxy = await Proxy.before(settings.redisUrl);
    const member = new Member(name, role, proxy, tether, settings, history, index);
    await member.#start();
    return member;
  }

  get pid(): number {
    return this.#child.pid;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  send(message: object): void {
    this.#child.send(message);
  }

  /** Resolves when the present incarnation says this, or is gone. @returns whether it said so */
  says(word: 'ready' | 'enough' | 'blocked' | 'counted'): Promise<boolean> {
    const child = this.#child;
    const said = new Promise<boolean>((resolve) =>
      child.on('message', ({ message }: { message: Record<string, boolean> }) => message[word] && resolve(true)),
    );
    return Promise.race([said, child.exited.then(() => false)]);
  }

  /** Ends this incarnation; the next one is started. @returns how it ended */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<NodeJS.Signals | null> {
    const child = this.#child;
    this.#asked = true;
    child.kill(signal);
    const how = (await child.exited).signal;
    await this.#gone;
    return how;
  }

  /** Ends it for good, gently. */
  async leave(): Promise<void> {
    this.#over = true;
    this.#asked = true;
    const child = this.#child;
    child.kill('SIGTERM');
    const impatience = setTimeout(() => {
      this.#asked = false; // it should have ended
      child.kill('SIGKILL');
    }, END_MS);
    await child.exited;
    clearTimeout(impatience);
    await this.#gone;
    await this.proxy.close();
  }

  async #start(): Promise<void> {
    const { redisUrl: _, ...settings } = this.settings;
    const name = `${this.name}.${++this.#incarnation}`;
    const seed = settings.seed * 1_000 + this.index * 100 + this.#incarnation;
    const url = this.proxy.url;
    const history = `${this.tether.directory}/${name}.jsonl`;
    this.#asked = false;
    const child = await this.tether.spawn(process.execPath, [PROGRAM], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        CHAOS: JSON.stringify({ ...settings, name, role: this.role, url, history, seed }),
      },
      channel: true,
      log: `${this.tether.directory}/${name}.log`,
      stopSignal: 'SIGKILL',
    });
    this.#child = child;
    this.#gone = child.exited.then(async ({ code, signal }) => {
      this.history.write({ ev: 'exit', of: name, how: signal ?? String(code), asked: this.#asked });
      if (!this.#over) await this.#start();
    });
  }
}

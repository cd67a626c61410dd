import { processModules } from './builtins.js';
import type { Build } from './fleet.js';
import type { Engine, SimulatedEvent } from './engine.js';
import type { Loader } from './loader.js';
import type { Network } from './network.js';
import { enter } from './present.js';
import { projectOf } from './projects.js';
import { Random } from './random.js';

/** When the simulated world begins. */
export const EPOCH = 1_800_000_000_000;

const FREE_TURNS = 4;
const TURN_MS = 0.05;

/** What a process needs of the world around it. */
export interface World {
  readonly seed: number;
  readonly project: string;
  readonly engine: Engine;
  readonly network: Network;
  /** Whether each process has all modules to itself. */
  readonly isIsolated: boolean;
  /** Whether the process listens to one of the library's channels. */
  hears(channel: string): boolean;
  /** Whether it logs all that there is to say. */
  readonly isChatty: boolean;
  /** A message of one of the library's channels. */
  heard(process: SimulatedProcess, channel: string, message: unknown): void;
}

/** One process of the operating system that runs the library: its clocks, its timers, its chance, and its modules. */
export class SimulatedProcess {
  isDead = false;
  busyUntil = 0;
  postponed = 0;
  /** How often its code was entered. */
  entries = 0;
  /** When it was frozen, simulated ms. */
  readonly freezes: { readonly from: number; until: number }[] = [];
  readonly id: string;
  readonly random: Random;
  readonly loader: Loader;
  readonly bornAt: number;
  readonly globalThis = Object.create(globalThis) as object;
  /** How far its wall clock is wrong, ms. */
  wallClockError: number;
  readonly #rate: number;
  #turns = 0;
  #turnsAt = -1;
  /** The state of its modules while another process runs. */
  #moduleState: unknown[][] = [];

  constructor(
    readonly world: World,
    /** Stays the same when the process starts again. */
    readonly name: string,
    readonly incarnation: number,
    readonly build: Build,
  ) {
    this.id = `${name}#${incarnation}`;
    this.bornAt = world.engine.now;
    this.random = new Random(world.seed, `process ${this.id}`);
    const clocks = new Random(world.seed, `clocks ${this.id}`);
    this.#rate = 1 + clocks.between(-1e-4, 1e-4);
    this.wallClockError = clocks.whole(-5_000, 5_000);
    this.loader = processModules(projectOf(world.project, build), world.isIsolated);
  }

  enter(): void {
    this.entries++;
    enter(this);
  }

  suspend(): void {
    this.#moduleState = this.loader.keepers.map((keeper) => keeper.read());
  }

  resume(): void {
    for (const [i, keeper] of this.loader.keepers.entries()) keeper.write(this.#moduleState[i] ?? keeper.fresh());
  }

  /** How much its clocks go on in so many simulated ms. */
  ownMs(ms: number): number {
    return ms * this.#rate;
  }

  monotonicMs(): number {
    return this.ownMs(this.world.engine.now - this.bornAt) + 1_000;
  }

  wallClockMs(): number {
    const ownMs = this.ownMs(this.world.engine.now - this.bornAt);
    return Math.floor(EPOCH + this.bornAt + ownMs + this.wallClockError);
  }

  /** Nothing happens in it any more. What it has sent is on its way. */
  kill(): void {
    this.isDead = true;
  }

  freeze(ms: number): void {
    const { now } = this.world.engine;
    let last = this.freezes.at(-1);
    if (!last || last.until <= now) this.freezes.push((last = { from: now, until: now }));
    this.busyUntil = last.until = Math.max(this.busyUntil, now + ms);
  }

  /** Too short to be a freeze: nobody need notice. */
  standStill(ms: number): void {
    this.busyUntil = Math.max(this.busyUntil, this.world.engine.now + ms);
  }

  get isFrozen(): boolean {
    return (this.freezes.at(-1)?.until ?? 0) > this.world.engine.now;
  }

  /** How long the next turn of its event loop is away. The first ones at a moment take no time; whoever waits in turns must see it pass. */
  turnMs(): number {
    const { now } = this.world.engine;
    this.#turns = now - this.#turnsAt < 2 * TURN_MS ? this.#turns + 1 : 0;
    this.#turnsAt = now;
    return this.#turns < FREE_TURNS ? 0 : TURN_MS;
  }

  /** Node's timers ring up to a millisecond late, never early. */
  timer(ms: unknown, run: () => void, repeats: boolean): SimulatedTimer {
    const asked = Number(ms);
    const wait = asked >= 1 && asked <= 2 ** 31 - 1 ? Math.trunc(asked) : 1;
    const ring = (ended: () => void): SimulatedEvent =>
      this.world.engine.after(
        (wait + this.random.next()) / this.#rate,
        () => {
          this.world.engine.trace('timer', this.id, wait);
          ended();
          run();
        },
        this,
      );
    return new SimulatedTimer(ring, repeats);
  }
}

/** As far as the library and the driver use the timers of Node. */
export class SimulatedTimer {
  #event: SimulatedEvent;

  constructor(
    private readonly ring: (ended: () => void) => SimulatedEvent,
    private readonly repeats: boolean,
  ) {
    this.#event = this.#arm();
  }

  stop(): void {
    this.#event.cancelled = true;
  }

  close(): void {
    this.stop();
  }

  refresh(): this {
    this.stop();
    this.#event = this.#arm();
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  #arm(): SimulatedEvent {
    return this.ring(() => {
      if (this.repeats) this.#event = this.#arm();
    });
  }
}

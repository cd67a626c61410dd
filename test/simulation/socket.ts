import { EventEmitter } from 'node:events';
import type { Engine, SimulatedEvent } from './engine.js';
import type { SimulatedProcess } from './process.js';

/** What a socket tells the network. */
export interface SocketHooks {
  write(data: Buffer): void;
  /** This end is closed; the server hears of it behind what was sent before. */
  end(): void;
  closed(): void;
}

/** The end of a connection that the driver holds: as much of `net.Socket` as ioredis uses. */
export class SimulatedSocket extends EventEmitter {
  connecting = true;
  bytesRead = 0;
  destroyed = false;
  writable = true;
  readable = true;
  readonly remoteAddress = 'simulated';
  readonly remotePort = 6379;
  readonly _writableState = { ended: false };
  #timeout: SimulatedEvent | undefined;

  constructor(
    private readonly engine: Engine,
    private readonly process: SimulatedProcess,
    private readonly hooks: SocketHooks,
  ) {
    super();
    this.setMaxListeners(0);
  }

  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  resume(): this {
    return this;
  }
  pause(): this {
    return this;
  }
  cork(): void {}
  uncork(): void {}

  setTimeout(ms: number, listener?: () => void): this {
    if (this.#timeout) this.#timeout.cancelled = true;
    this.#timeout = undefined;
    if (listener) this.once('timeout', listener);
    if (ms > 0) this.#timeout = this.engine.after(ms, () => this.emit('timeout'), this.process);
    return this;
  }

  write(data: string | Buffer, encoding?: unknown, written?: () => void): boolean {
    if (this.destroyed) return false;
    this.hooks.write(typeof data === 'string' ? Buffer.from(data, 'utf8') : data);
    if (typeof encoding === 'function') (encoding as () => void)();
    else written?.();
    return true;
  }

  end(): this {
    if (this.destroyed) return this;
    this._writableState.ended = true;
    this.writable = false;
    this.hooks.end();
    this.engine.after(0.2, () => this.lose(), this.process);
    return this;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.hooks.end();
    this.lose(error);
    return this;
  }

  /** The connection is gone, by whatever cause. */
  lose(error?: Error): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.writable = false;
    this.connecting = false;
    this.setTimeout(0);
    this.hooks.closed();
    const tell = () => {
      if (error) this.emit('error', error);
      this.emit('close', Boolean(error));
    };
    this.engine.after(0, tell, this.process);
  }
}

// Starts processes that are certain to end: when asked, in reverse order, or when this process is gone, kill -9 included.
import { fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./tether-process.mjs', import.meta.url));

/** A process of its own session that owns children and a temporary folder on our behalf. */
export class Tether {
  #owner;
  #children = new Map();
  #closed;

  static async open() {
    // A session of its own: a terminal's Ctrl-C must reach neither the Redis nor the application behind it directly.
    const owner = fork(PROGRAM, [], { detached: true, execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const closed = once(owner, 'exit');
    const [first] = await Promise.race([once(owner, 'message'), closed]);
    if (first?.event !== 'ready') throw new Error(`the process that would own Redis ended at once (exit ${first})`);
    return new Tether(owner, first.directory, closed);
  }

  constructor(owner, directory, closed) {
    this.#owner = owner;
    this.#closed = closed;
    /** Temporary folder, removed at the end. */
    this.directory = directory;
    owner.on('message', ({ id, event, ...details }) => this.#children.get(id)?.emit(event, details));
    owner.on('exit', () => {
      for (const child of this.#children.values()) child.emit('exit', { code: null, signal: 'SIGKILL' });
    });
  }

  /**
   * @param {string} command
   * @param {string[]} args
   * @param {object} [options]
   * @param {NodeJS.ProcessEnv} [options.env] this process' own by default
   * @param {string} [options.cwd] the temporary folder by default
   * @param {string} [options.log] file for its output; inherited by default
   * @param {boolean} [options.channel] give it a message channel
   * @param {NodeJS.Signals} [options.stopSignal] how it is asked to end, SIGTERM by default
   */
  async spawn(command, args, { stopSignal = 'SIGTERM', ...options } = {}) {
    const id = this.#children.size + 1;
    const child = new TetheredProcess((request) => this.#send({ id, ...request }));
    this.#children.set(id, child);
    this.#send({ id, verb: 'start', command, args, stopSignal, ...options });
    await child.started;
    return child;
  }

  /** Stops everything, newest first, and resolves when it is gone. */
  async close() {
    this.#send({ verb: 'close' });
    await this.#closed;
  }

  #send(request) {
    if (this.#owner.connected) this.#owner.send(request, () => {});
  }
}

class TetheredProcess extends EventEmitter {
  #request;

  constructor(request) {
    super();
    this.#request = request;
    this.started = new Promise((resolve, reject) => {
      this.once('started', ({ pid }) => resolve((this.pid = pid)));
      this.once('failed', ({ message }) => reject(new Error(message)));
      this.once('exit', () => reject(new Error('ended before it had started')));
    });
    /** Resolves with `{ code, signal }`. */
    this.exited = once(this, 'exit').then(([how]) => {
      this.exit = how;
      return how;
    });
  }

  kill(signal = 'SIGTERM') {
    this.#request({ verb: 'signal', name: signal });
  }

  /** The same, and resolves when it has been sent: who freezes a process must know that it does nothing more. */
  async signal(signal) {
    const sent = once(this, 'signalled');
    this.kill(signal);
    await Promise.race([sent, this.exited]);
  }

  send(message) {
    this.#request({ verb: 'relay', message });
  }
}

import nodeCrypto from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Loader } from './loader.js';
import type { ProcessGlobals } from './loader.js';
import { enter, leave, whoIsPresent } from './present.js';
import { EPOCH, SimulatedProcess } from './process.js';
import type { SimulatedTimer } from './process.js';

const CHANNEL_PREFIX = 'nestjs-delay-queue:';

/** The process whose code asks. */
function here(): SimulatedProcess {
  const present = whoIsPresent();
  if (present instanceof SimulatedProcess) return present;
  throw new Error('A clock, a timer, chance or a socket is asked for where no simulated process runs.');
}

const loaders = new Map<string, Loader>();

/**
 * The modules for the processes of a project, which share them: what runs is compiled, and made fast, once. Their globals and modules
 * of Node are those of the process that runs.
 *
 * @param isOwn all of them for one process, as an operating system has it: slow, to compare with
 */
export function processModules(project: string, isOwn: boolean): Loader {
  let loader = isOwn ? undefined : loaders.get(project);
  if (!loader) {
    // What a module did with time or chance while it is loaded, it would do for the first process only.
    const evaluating = (evaluate: () => void) => {
      const present = whoIsPresent();
      leave();
      evaluate();
      if (present) enter(present);
    };
    const { globals, builtins } = builtinsFor(project);
    loader = new Loader(project, globals, builtins, evaluating);
    if (!isOwn) loaders.set(project, loader);
  }
  return loader;
}

/** As far as it says which server is meant. */
interface Address {
  readonly host: string;
}

interface ProcessBuiltins {
  readonly globals: ProcessGlobals;
  readonly builtins: Readonly<Record<string, unknown>>;
}

/** What simulated processes have in place of the globals and modules of Node. */
function builtinsFor(project: string): ProcessBuiltins {
  const timers = timersOfProcesses();
  const performance = { timeOrigin: EPOCH, now: () => here().monotonicMs(), mark: () => {}, measure: () => {} };
  const node = nodeProcess();
  const globals = {
    globalThis: globalOfProcesses(),
    Date: dateOfProcesses(),
    Math: Object.create(Math, { random: { value: () => here().random.next() } }),
    ...timers,
    performance,
    process: node,
    console: { warn: () => {}, log: () => {}, error: () => {} },
  };
  const connect = ({ host }: Address) => here().world.network.connect(here(), host);
  const common = createRequire(path.join(project, 'x.js'))('@nestjs/common') as object;
  const builtins = {
    timers,
    'timers/promises': {
      setTimeout: (ms: number, value: unknown) => new Promise((done) => timers.setTimeout(done, ms, value)),
    },
    perf_hooks: { performance },
    process: node,
    debug: silentDebug(),
    crypto: cryptoOfProcesses(),
    diagnostics_channel: channelsOfProcesses(),
    net: { createConnection: connect, connect, isIP: () => 4 },
    tls: { connect: withoutTls },
    dns: { lookup: refused('DNS'), resolveSrv: refused('DNS') },
    fs: { readFileSync: refused('a file'), existsSync: () => false },
    '@nestjs/common': { ...common, Logger: loggerOfProcesses() },
    async_hooks: ASYNC_HOOKS,
  };
  return { globals, builtins };
}

function refused(what: string): () => never {
  return () => {
    throw new Error(`A simulated process has no ${what}.`);
  };
}

/** A TLS handshake with a server that speaks none. */
function withoutTls({ host }: Address): unknown {
  const process = here();
  const socket = process.world.network.connect(process, host);
  process.world.engine.after(1, () => socket.lose(new Error('wrong version number')), process);
  return socket;
}

function timersOfProcesses() {
  const make =
    (repeats: boolean) =>
    (run: (...args: unknown[]) => void, ms?: unknown, ...args: unknown[]) =>
      here().timer(ms, () => run(...args), repeats);
  const clear = (timer: SimulatedTimer | undefined) => timer?.stop();
  const setImmediate = (run: (...args: unknown[]) => void, ...args: unknown[]) => {
    const process = here();
    const event = process.world.engine.after(process.turnMs(), () => run(...args), process);
    const immediate = { stop: () => void (event.cancelled = true), ref: () => immediate, unref: () => immediate };
    return immediate;
  };
  return {
    setTimeout: make(false),
    setInterval: make(true),
    setImmediate,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
}

function dateOfProcesses(): DateConstructor {
  return class extends Date {
    constructor(...args: unknown[]) {
      if (args.length === 0) super(here().wallClockMs());
      else super(...(args as [number]));
    }

    static override now(): number {
      return here().wallClockMs();
    }
  } as unknown as DateConstructor;
}

const digests = new Map<string, string>();

/** Each process hashes all scripts when it starts: the same ones each time. */
function createHash(algorithm: string): unknown {
  if (algorithm !== 'sha1') return nodeCrypto.createHash(algorithm);
  const update = (text: string) => ({
    digest(encoding: 'hex') {
      let digest = digests.get(text);
      if (!digest) digests.set(text, (digest = nodeCrypto.createHash(algorithm).update(text).digest(encoding)));
      return digest;
    },
  });
  return { update };
}

function cryptoOfProcesses() {
  const randomBytes = (count: number) => Buffer.from(Array.from({ length: count }, () => here().random.whole(0, 255)));
  const randomInt = (from: number, to?: number) =>
    to === undefined ? here().random.whole(0, from - 1) : here().random.whole(from, to - 1);
  const own = { ...nodeCrypto, createHash, randomBytes, randomInt, randomUUID: () => randomBytes(16).toString('hex') };
  return { ...own, default: own };
}

/** The oracle hears what the library publishes of its work. */
function channelsOfProcesses() {
  const channel = (name: string) => ({
    get hasSubscribers() {
      return here().world.hears(name.slice(CHANNEL_PREFIX.length));
    },
    publish: (message: unknown) => here().world.heard(here(), name.slice(CHANNEL_PREFIX.length), message),
  });
  return { channel, subscribe: () => {}, unsubscribe: () => {} };
}

/** What the library logs is part of the trace. */
function loggerOfProcesses() {
  const tell = (level: string) => (message: unknown) =>
    here().world.engine.trace('log', here().id, `${level} ${String(message)}`);
  return class {
    static isLevelEnabled(): boolean {
      return here().world.isChatty;
    }
    log = tell('log');
    warn = tell('warn');
    error = tell('error');
    debug = tell('debug');
    verbose = tell('verbose');
  };
}

/** What the library keeps there is kept by one process. */
function globalOfProcesses(): object {
  return new Proxy(globalThis, {
    get: (_, name) => Reflect.get(here().globalThis, name) as unknown,
    set: (_, name, value) => Reflect.set(here().globalThis, name, value),
  });
}

function silentDebug() {
  const make = () => Object.assign(() => {}, { enabled: false, extend: () => () => {} });
  const debug = Object.assign(make, { enable: () => {} });
  return Object.assign(debug, { default: debug });
}

function nodeProcess(): object {
  const own = {
    nextTick: (run: (...args: unknown[]) => void, ...args: unknown[]) => process.nextTick(run, ...args),
    env: {},
    pid: 1,
    version: 'v22.0.0',
    versions: { node: '22.0.0' },
    platform: 'linux',
    argv: [],
    stderr: { fd: 2 },
    emitWarning: () => {},
    listenerCount: () => 1,
    on: () => own,
    off: () => own,
    once: () => own,
  };
  return own;
}

/** Node 20 pays for the real one with every promise, and no handler here asks which job is the current one. */
const ASYNC_HOOKS = {
  AsyncLocalStorage: class {
    run(_store: unknown, call: (...args: unknown[]) => unknown, ...args: unknown[]): unknown {
      return call(...args);
    }
    exit(call: (...args: unknown[]) => unknown, ...args: unknown[]): unknown {
      return call(...args);
    }
    getStore(): undefined {
      return undefined;
    }
  },
  AsyncResource: class {
    static bind(call: unknown): unknown {
      return call;
    }
    runInAsyncScope(call: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]): unknown {
      return call.apply(self, args);
    }
    bind(call: unknown): unknown {
      return call;
    }
    emitDestroy(): void {}
  },
};

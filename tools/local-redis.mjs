// A private redis-server (or valkey-server) as a child of a tether: free port, own folder, gone with the tether.
import { execFileSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { freePort } from './free-port.mjs';
import { untilServing } from './server-info.mjs';

const PROGRAMS = ['redis-server', 'valkey-server'];
const OLDEST = [6, 2];
/** Someone else may take a free port before the server does. */
const PORT_TRIES = 3;

/** Full path of the first server program on the PATH, or undefined. */
export function serverOnPath(env = process.env) {
  return onPath(PROGRAMS, env);
}

/** Full path of the first of these programs that is on the PATH, or undefined. */
export function onPath(programs, env) {
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean);
  return programs.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

/** @param {() => Promise<number>} [choosePort] a free port by default */
export async function startLocalRedis(tether, program, flags = [], choosePort = freePort) {
  refuseOld(program);
  for (let tries = 1; ; tries++) {
    const server = new LocalRedis(tether, program, flags, await choosePort());
    try {
      await server.restart();
      return server;
    } catch (error) {
      if (tries === PORT_TRIES || !/already in use/i.test(error.message)) throw error;
    }
  }
}

class LocalRedis {
  kind = 'local';
  #tether;
  #program;
  #flags;
  #directory;
  #process;

  constructor(tether, program, flags, port) {
    this.#tether = tether;
    this.#program = program;
    this.#flags = flags;
    this.#directory = join(tether.directory, String(port));
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
  }

  /** Sends a signal to the server; one that ends it is awaited. */
  async kill(signal = 'SIGKILL') {
    await this.#process.signal(signal);
    if (!['SIGSTOP', 'SIGCONT'].includes(signal)) await this.#process.exited;
  }

  /** Ends the server if it still runs and starts it again on the same port, over the same folder. */
  async restart() {
    if (this.#process && !this.#process.exit) await this.kill('SIGTERM');
    mkdirSync(this.#directory, { recursive: true });
    const log = join(this.#directory, 'redis.log');
    const basics = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#directory, '--save', ''];
    this.#process = await this.#tether.spawn(this.#program, [...basics, ...this.#flags], {
      log,
      stopSignal: 'SIGKILL', // its data is temporary, so there is nothing to wait for
    });
    try {
      const { version, pid } = await untilServing(this.port, { given: () => !this.#process.exit });
      if (pid && pid !== this.#process.pid) throw new Error(`port ${this.port} is already in use`);
      this.description = `${this.#program}${version ? ` ${version}` : ''}`;
    } catch (error) {
      throw new Error(`${this.#program} did not start: ${error.message}; it said: ${lastLines(log)}`, { cause: error });
    }
  }
}

function refuseOld(program) {
  const said = execFileSync(program, ['--version'], { encoding: 'utf8' });
  const [major, minor] = /v=(\d+)\.(\d+)/.exec(said)?.slice(1).map(Number) ?? [];
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    throw new Error(`${program} is version ${major}.${minor}, and ${OLDEST.join('.')} is the oldest that will do`);
  }
}

function lastLines(log) {
  return readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ') || 'nothing';
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

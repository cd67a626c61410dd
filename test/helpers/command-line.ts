import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { World } from './world.js';

export const BIN = fileURLToPath(new URL('../../dist/cli/nestjs-delay-queue.cjs', import.meta.url));

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Lines of stdout, without the empty one at its end. */
  readonly lines: string[];
  /** Of `--json`: one object a line. */
  readonly objects: any[];
}

export interface RunSettings {
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** With the process as soon as it runs. */
  readonly with?: (child: ChildProcess) => void;
}

/** What of a world the program is told. A test may put a proxy there. */
type Server = Pick<World, 'connection' | 'url' | 'prefix'>;

/** Runs the built program on the keys of a world, with pipes: as a script would. */
export async function commandLine(world: Server, args: readonly string[], settings: RunSettings = {}): Promise<Ran> {
  return program([...args, ...flagsOf(world)], settings);
}

/** The server of a world: one, a Cluster, or a master behind Sentinels. */
function flagsOf({ connection, url, prefix }: Server): string[] {
  const { cluster, sentinels, name } = (typeof connection === 'string' ? {} : connection) as {
    cluster?: readonly Node[];
    sentinels?: readonly Node[];
    name?: string;
  };
  const list = (nodes: readonly Node[]) => nodes.map(({ host, port }) => `${host}:${port}`).join(',');
  const server = cluster
    ? ['--cluster', list(cluster)]
    : sentinels
      ? ['--sentinel', list(sentinels), '--master', name!]
      : ['--redis', url];
  return [...server, '--prefix', prefix, '--timeout', '30s'];
}

interface Node {
  readonly host: string;
  readonly port: number;
}

export async function program(
  args: readonly string[],
  { input = '', env = {}, with: meet }: RunSettings = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [BIN, ...args], { env: { ...ownEnv(), ...env } });
  meet?.(child);
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return ranOf(child);
}

/** The same with a terminal, which util-linux makes. Everything comes out as stdout. */
export async function inTerminal(
  world: Server,
  args: readonly string[],
  { input = '', with: meet }: RunSettings = {},
): Promise<Ran> {
  const all = [process.execPath, BIN, ...args, ...flagsOf(world)];
  const command = all.map((text) => `'${text.replaceAll("'", String.raw`'\''`)}'`).join(' ');
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { ...ownEnv(), TERM: 'xterm', COLUMNS: '120' },
  });
  meet?.(child);
  if (!meet) child.stdin.write(input);
  return ranOf(child);
}

async function ranOf(child: ChildProcess): Promise<Ran> {
  const [stdout, stderr] = [child.stdout!, child.stderr!].map((stream) => stream.setEncoding('utf8').toArray());
  const [code] = (await once(child, 'close')) as [number | null];
  const text = (await stdout!).join('');
  const lines = text.split('\n').slice(0, -1);
  return {
    code,
    stdout: text,
    stderr: (await stderr!).join(''),
    lines,
    get objects() {
      return lines.map((line) => JSON.parse(line) as unknown);
    },
  };
}

/** What the machine says of a server or of colours is not the test's. */
function ownEnv(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(?:DELAY_QUEUE_|REDIS_|NODE_OPTIONS|NO_COLOR|FORCE_COLOR)/.test(name),
  );
  return Object.fromEntries(kept);
}

import type { Reply } from '../../lib/memory/memory.replies.js';
import { planOf } from './plan.js';
import type { Configuration } from './plan.js';
import type { ServedCall } from './witness.js';
import { Simulation } from './simulation.js';

/** What a simulated server was asked, what it said, and what it held at the end. */
export interface Recording {
  readonly calls: readonly RecordedCall[];
  readonly published: readonly string[];
  readonly state: State;
  readonly endedAt: number;
}

/** By key: its type, what it holds, and how many ms it has left. */
type State = Readonly<Record<string, { readonly type: string; readonly content: unknown; readonly leftMs: number }>>;

export interface RecordedCall {
  /** Microseconds since 1970, by the server's clock. */
  readonly at: number;
  readonly args: readonly string[];
  readonly reply: unknown;
}

/** A real server whose clock is set, and that was empty before. Texts have one byte per character. */
export interface RealServer {
  setClock(micros: number): void;
  /** @returns as `plainReply` has it */
  call(args: readonly string[]): Promise<unknown>;
  /** `channel message` of all messages since it was empty. */
  published(): Promise<readonly string[]>;
}

const READ: Readonly<Record<string, (key: string) => readonly string[]>> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
};

/** Runs a seed without faults. */
export async function recordSeed(seed: number, given: Partial<Configuration>, project: string): Promise<Recording> {
  const simulation = new Simulation(
    planOf(seed, { ...given, kinds: [], weather: [], forGood: [], cluster: false, durable: 0, nights: 0 }),
    project,
  );
  const calls: RecordedCall[] = [];
  const published: string[] = [];
  const server = simulation.nodes[0]!;
  server.served = ({ at, args, reply }: ServedCall) => {
    calls.push({ at: microsOf(at), args: [...args], reply: plainReply(reply) });
  };
  server.store.subscribe({ pattern: '*', heard: (channel, message) => published.push(`${channel} ${message}`) });
  await simulation.run();
  const command = (args: readonly string[]) =>
    Promise.resolve(plainReply(server.store.command(args[0]!, args.slice(1))));
  return { calls, published, state: await stateOf(command), endedAt: microsOf(server.clockMs()) };
}

/** What TIME tells at this time. */
function microsOf(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000_000 + Math.floor((ms % 1_000) * 1_000);
}

/** @returns what the server does in another way, as texts; at most one of the replies */
export async function differences(recording: Recording, real: RealServer): Promise<string[]> {
  for (const [n, { at, args, reply }] of recording.calls.entries()) {
    real.setClock(at);
    const answer = await real.call(args);
    // How many hear a message is the network's affair.
    if (args[0]!.toUpperCase() === 'PUBLISH') continue;
    const [found, expected] = [comparable(args, answer), comparable(args, reply)];
    if (found !== expected)
      return [`call ${n}, ${shown(args)}: the store in memory says ${expected}, it says ${found}`];
  }
  const wrong: string[] = [];
  const compare = (what: string, expected: unknown, found: unknown) => {
    const [one, other] = [plainText(expected), plainText(found)];
    if (one !== other) wrong.push(`${what}: the store in memory has ${one}, it has ${other}`);
  };
  compare('messages', recording.published, await real.published());
  real.setClock(recording.endedAt);
  const state = await stateOf((args) => real.call(args));
  for (const key of new Set([...Object.keys(recording.state), ...Object.keys(state)])) {
    const [one, other] = [recording.state[key], state[key]];
    // A server counts whole ms, and the store in memory parts of them.
    const isSameEnd = Math.abs((one?.leftMs ?? 0) - (other?.leftMs ?? 0)) <= 1;
    compare(key, one, isSameEnd && one && other ? { ...other, leftMs: one.leftMs } : other);
  }
  return wrong;
}

async function stateOf(command: (args: readonly string[]) => Promise<unknown>): Promise<State> {
  const [, keys] = (await command(['SCAN', '0', 'COUNT', '1000000'])) as [string, string[]];
  const state: Record<string, State[string]> = {};
  for (const key of keys) {
    const type = (await command(['TYPE', key])) as string;
    const read = await command(READ[type]!(key));
    // By the third version of the protocol, members and their scores come in pairs.
    const list = Array.isArray(read) ? (read.flat() as string[]) : undefined;
    const content = list ? (isUnordered(type) ? sorted(type, list) : list) : read;
    state[key] = { type, content, leftMs: Number(await command(['PTTL', key])) };
  }
  return state;
}

function isUnordered(type: string): boolean {
  return type === 'hash' || type === 'set';
}

/** A hash by its fields. */
function sorted(type: string, list: readonly string[]): string[] {
  const width = type === 'hash' ? 2 : 1;
  const entries = Array.from({ length: list.length / width }, (_, n) => list.slice(n * width, (n + 1) * width));
  return entries.map((entry) => entry.join('\0')).toSorted();
}

/** In the form in which two replies are compared: an error is a text that begins with `-`. */
export function plainReply(reply: Reply | Buffer): unknown {
  if (Buffer.isBuffer(reply)) return errorText(reply.toString('latin1').slice(1));
  if (Array.isArray(reply)) return reply.map(plainReply);
  if (reply !== null && typeof reply === 'object') {
    return 'text' in reply ? reply.text : errorText((reply as Error).message);
  }
  return reply;
}

/** Members of a set come in any order, also behind the cursor of a scan. */
function comparable([name]: readonly string[], reply: unknown): string {
  if (!Array.isArray(reply)) return plainText(reply);
  const command = name!.toUpperCase();
  if (command === 'SSCAN') return plainText([reply[0], (reply[1] as string[]).toSorted()]);
  return plainText(command === 'SMEMBERS' ? (reply as string[]).toSorted() : reply);
}

/** Where in which script an error came from each server says in its own way, and Valkey has fewer words for a script that it lacks. */
export function errorText(message: string): string {
  const text = message.trim().replace(/ script: .*$/, '');
  return `-${text.startsWith('NOSCRIPT') ? 'NOSCRIPT' : text}`;
}

function plainText(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}

function shown(args: readonly string[]): string {
  const isScript = args[0]!.toUpperCase().startsWith('EVAL');
  const words = isScript ? args.slice(3 + Number(args[2])) : args.slice(1);
  return `${args[0]!} ${words.join(' ').slice(0, 200)}`;
}

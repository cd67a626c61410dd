import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { ConnectionError } from '../delay-queue.errors.js';
import { cutShort } from '../job/duration.js';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';
import type { RedisClient } from './redis.client.js';
import { isNotPermitted, isTransient, noCommand, unknownCommand } from './redis.errors.js';

const USER = 'docs/operations.md, "A user of its own", lists what a user needs.';
const CERTIFICATE = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|ERR_SSL_|ERR_TLS_|EPROTO)/;
/** A reply of RESP. All that a server without TLS says, wanted or not, begins like this. */
const REPLY = /^[-+]/;
const LOOK_MS = 1_000;
const PING = 'PING\r\n';

interface DriverError extends Error {
  readonly code?: unknown;
  readonly command?: { readonly name?: string };
  /** Of a Cluster: why the last of its nodes could not be asked. */
  readonly lastNodeError?: DriverError;
}

/**
 * The reason if waiting does not help: `connection` or the server must be changed.
 *
 * @param db the database that was asked for
 * @returns undefined for everything that may pass: a server that is away, starts, or is busy
 */
export function refusalOf(error: unknown, address: string, db: number): ConnectionError | undefined {
  const given = error as DriverError;
  const { code, command, message } = given.lastNodeError ?? given;
  const refused = (reason: ConnectionError['reason'], what: string) =>
    new ConnectionError(reason, `Redis at ${address} ${what}`, { cause: plain(message) });
  if (command?.name === 'select') return isTransient(message) ? undefined : noDatabase(message, address, db);
  if (/\bNOAUTH\b/.test(message)) {
    return refused('credentials', `wants a password, and \`connection\` gives none (NOAUTH). Give it one.`);
  }
  if (/\bWRONGPASS\b/.test(message)) {
    return refused(
      'credentials',
      `does not accept the user or the password that \`connection\` gives (${inShort(message)}). ` +
        'Correct them, or the user on the server.',
    );
  }
  if (/\bDENIED\b.*protected mode/s.test(message)) return protectedMode(address);
  if (/cluster support disabled/i.test(message)) {
    return refused(
      'cluster',
      'is a single server and no Redis Cluster. Give its URL, or { host, port }, instead of { cluster }.',
    );
  }
  if (isNotPermitted(given)) {
    return refused('permission', `does not permit this user what is needed (${inShort(message)}). ${USER}`);
  }
  const missing = unknownCommand(message);
  if (missing) return noCommand(missing, `Redis at ${address}`);
  if (typeof code === 'string' && CERTIFICATE.test(code)) {
    return refused(
      'tls',
      `cannot be spoken to over TLS (${code}: ${inShort(message)}). Give its authority by \`tls: { ca }\` or ` +
        'NODE_EXTRA_CA_CERTS, the name in its certificate by `tls: { servername }`, and `tls: { cert, key }` where it asks for them.',
    );
  }
  return undefined;
}

/** What the driver says, cut where it would have no end: it names the host. Of a name with several addresses, such as `localhost`, only the errors of each address say it. */
export function driverMessage({ message, errors }: Error & { readonly errors?: readonly Error[] }): string {
  const said = message !== '' || !errors ? message : [...new Set(errors.map((error) => error.message))].join('; ');
  return cutShort(said, 300);
}

/** Jobs belong to one database; ioredis tells of a failed SELECT and then goes on with database 0. */
export function noDatabase(message: string, address: string, db: number): ConnectionError {
  const advice = /\bNOPERM\b/.test(message)
    ? `Give the user +select. ${USER}`
    : 'Choose one that it has, or raise `databases` on the server.';
  return new ConnectionError(
    'database',
    `Redis at ${address} does not let database ${db} be selected (${inShort(message)}), and no other one is used. ${advice}`,
    { cause: plain(message) },
  );
}

function protectedMode(address: string): ConnectionError {
  return new ConnectionError(
    'protectedMode',
    `Redis at ${address} is in protected mode: without a password it serves its own machine only (DENIED). ` +
      'Set a password on the server, and give it in `connection`.',
  );
}

/** Errors of the driver carry the call that failed, and so the password. */
function plain(message: string): Error {
  return new Error(message);
}

function inShort(message: string): string {
  const [line = ''] = message.trim().split('\n', 1);
  return line.length > 120 ? `${line.slice(0, 120)}...` : line;
}

/** A server that a client speaks to first. */
interface Endpoint {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly tls: boolean;
}

/**
 * Looks at a server that does not answer in the way it was asked: TLS where none is spoken is silence, the reverse a
 * connection that closes, and so is a server in protected mode to a driver that does not listen to it.
 *
 * @returns undefined when nothing of the kind is the matter
 */
export async function examine(client: RedisClient, address: string): Promise<ConnectionError | undefined> {
  for (const endpoint of endpointsOf(client)) {
    const words = await firstWords(endpoint);
    if (words?.startsWith('-DENIED')) return protectedMode(address);
    if (endpoint.tls && words !== undefined && REPLY.test(words)) {
      return new ConnectionError(
        'tls',
        `Redis at ${address} speaks no TLS, and \`connection\` asks for it. Use its TLS port, or redis:// without \`tls\`.`,
      );
    }
    if (!endpoint.tls && words === '' && (await speaksTls(endpoint))) {
      return new ConnectionError(
        'tls',
        `Redis at ${address} speaks TLS only. Use rediss:// or give \`tls\` in \`connection\`.`,
      );
    }
  }
  return undefined;
}

function endpointsOf(client: RedisClient): readonly Endpoint[] {
  if ('nodes' in client) {
    const { startupNodes = [] } = client as unknown as { startupNodes?: readonly unknown[] };
    const tls = Boolean(client.options.redisOptions?.tls);
    return startupNodes.slice(0, 1).map((node) => {
      if (typeof node === 'number') return { port: node, tls };
      if (typeof node !== 'string') return { ...(node as object), tls };
      const url = node.includes('://') ? node : `redis://${node}`;
      if (!URL.canParse(url)) return { tls };
      const { hostname, port, protocol } = new URL(url);
      return { host: hostname, port: Number(port) || undefined, tls: tls || protocol === 'rediss:' };
    });
  }
  const { sentinels, sentinelTLS, host, port, path, tls } = client.options as RedisOptions;
  const [first] = sentinels ?? [];
  if (first) return [{ ...first, tls: Boolean(sentinelTLS) }];
  return [{ host, port, path, tls: Boolean(tls) }];
}

function addressee({ host = '127.0.0.1', port = 6379, path }: Endpoint) {
  return path ? { path } : { host, port };
}

/** Its answer to a PING without TLS: '' if it closes the connection; undefined if it is silent or not reached. */
function firstWords(endpoint: Endpoint): Promise<string | undefined> {
  const socket = new Socket();
  return ask(socket, (answer) => {
    let reached = false;
    socket.on('connect', () => {
      reached = true;
      socket.write(PING);
    });
    socket.on('data', (chunk: Buffer) => answer(REPLY.test(chunk.toString('latin1')) ? chunk.toString('latin1') : ''));
    socket.on('error', () => answer(reached ? '' : undefined));
    socket.on('close', () => answer(reached ? '' : undefined));
    // For a port that is none it throws at once.
    socket.connect(addressee(endpoint));
  });
}

/** Whether, not whom to trust: nothing is sent over it. */
async function speaksTls(endpoint: Endpoint): Promise<boolean> {
  const servername = endpoint.host && !isIP(endpoint.host) ? endpoint.host : undefined;
  const socket = connectTls({ ...addressee(endpoint), servername, rejectUnauthorized: false });
  const said = await ask(socket, (answer) => {
    socket.on('secureConnect', () => answer('TLS'));
    socket.on('error', () => answer(undefined));
    socket.on('close', () => answer(undefined));
  });
  return said !== undefined;
}

/** What throws here has found nothing out. The driver has its own word for the same address. */
function ask(
  socket: Socket,
  listen: (answer: (words: string | undefined) => void) => void,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const answer = (words: string | undefined) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(words);
    };
    const timer = setTimeout(() => answer(undefined), LOOK_MS).unref();
    socket.unref();
    try {
      listen(answer);
    } catch {
      answer(undefined);
    }
  });
}

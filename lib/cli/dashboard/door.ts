import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { problemAnswer } from '../../dashboard/answers.js';
import type { Answer } from '../../dashboard/answers.js';
import type { DashboardCode } from '../../dashboard/api.js';

/** Who comes in. */
export interface Door {
  /** What a request must know; undefined lets everybody in who can reach it. */
  readonly token: string | undefined;
  /** Names, besides addresses and `localhost`, by which a browser may ask. */
  readonly names: ReadonlySet<string>;
  /** Browsers send cookies to all ports of a host, so that of each port has a name of its own. */
  readonly cookie: string;
}

const WRONG_NAME =
  'This dashboard is not known by the name in the address. Ask it by its address, or start it with --allow-host and this name.';
const NO_TOKEN = 'Open the address that the command has printed: it holds the token of this dashboard.';

/** @returns what to answer instead of the dashboard; undefined for a request that may come in */
export function answerAtTheDoor(request: IncomingMessage, door: Door): Answer | undefined {
  if (!isKnown(request.headers.host, door.names)) return refusal(request, 421, 'DASHBOARD_WRONG_HOST', WRONG_NAME);
  if (door.token === undefined) return undefined;
  const { given, rest } = tokenInAddress(request.url ?? '/');
  if (given !== undefined && isSame(given, door.token)) return cookieAnswer(door, rest);
  const known = [bearerOf(request), cookieOf(request, door.cookie)];
  if (known.some((one) => one !== undefined && isSame(one, door.token!))) return undefined;
  return refusal(request, 401, 'DASHBOARD_NO_TOKEN', NO_TOKEN);
}

/**
 * A page of another site can have its own name lead here (DNS rebinding), and then reads answers as if they were its own. What it
 * cannot do is to be asked by an address, or by a name that somebody has allowed.
 */
function isKnown(host: string | undefined, names: ReadonlySet<string>): boolean {
  if (host === undefined || !URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  return isIP(hostname.replaceAll(/^\[|\]$/g, '')) !== 0 || hostname === 'localhost' || names.has(hostname);
}

function tokenInAddress(url: string): { given: string | undefined; rest: string } {
  const [path = '/', search = ''] = url.split('?', 2);
  const query = new URLSearchParams(search);
  const given = query.get('token') ?? undefined;
  query.delete('token');
  return { given, rest: query.size > 0 ? `${path}?${query.toString()}` : path };
}

/** The token leaves the address, where others could read it, and a script of the page never sees it. */
function cookieAnswer({ cookie, token }: Door, rest: string): Answer {
  // Always one slash at the beginning: two would name another host.
  const location = `/${rest.replace(/^[/\\]+/, '')}`;
  const headers = {
    location,
    // Lax: a link to a job, in a chat, opens it. No request that another site makes unseen has the cookie.
    'set-cookie': `${cookie}=${token}; Path=/; HttpOnly; SameSite=Lax`,
    'cache-control': 'no-store',
  };
  return { status: 303, type: 'text/plain; charset=utf-8', body: '', headers };
}

function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
}

function cookieOf({ headers }: IncomingMessage, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** In the same time, however much of it is right. */
function isSame(given: string, token: string): boolean {
  const [one, other] = [given, token].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(one!, other!);
}

/** A sentence for whoever has typed the address, and the usual form for the page. */
function refusal({ url = '/' }: IncomingMessage, status: number, code: DashboardCode, detail: string): Answer {
  const title = status === 401 ? 'Unauthorized' : 'Misdirected Request';
  const problem = problemAnswer({ type: 'about:blank', title, status, detail, code });
  if (url.startsWith('/api/')) return problem;
  return { ...problem, type: 'text/plain; charset=utf-8', body: `${detail}\n` };
}

import type { IncomingMessage } from 'node:http';
import { isPlainObject } from '../job/option-rules.js';
import { within } from '../time-and-randomness.js';
import { DashboardProblem } from './problems.js';

export type AccessLevel = 'write' | 'read' | 'none';

/** What `access` says of a request: what its user may do, and who that is. */
export type DashboardAccess = AccessLevel | { user?: string; level: AccessLevel };

/** Who asks, and what that user may do. */
export interface Visitor {
  readonly user: string | undefined;
  readonly level: 'write' | 'read';
}

const USER_MAX = 200;
/** An `access` that never answers would keep each request, and its connection, for ever. */
const PATIENCE_MS = 10_000;

/**
 * @param ask the application's `access`
 * @throws DashboardProblem when it says none, fails, answers what it must not, or does not answer in time
 */
export async function visitorOf(
  ask: () => unknown,
  tell: (thrown: unknown) => void,
  patienceMs = PATIENCE_MS,
): Promise<Visitor> {
  let [level, user]: unknown[] = [];
  try {
    const asked = (async () => ask())();
    const answer = await within(patienceMs, asked, () => new Error(`it did not answer within ${patienceMs} ms`));
    // What is read of an object of the application may throw as well.
    ({ level, user } = isPlainObject(answer) ? answer : { level: answer, user: undefined });
  } catch (thrown) {
    tell(thrown);
    throw failed('`access` of the application failed');
  }
  if (level === 'none') throw new DashboardProblem(403, 'DASHBOARD_FORBIDDEN', 'This dashboard is not for you.');
  if ((level !== 'read' && level !== 'write') || (user !== undefined && typeof user !== 'string')) {
    tell(new TypeError("`access` must answer 'write', 'read' or 'none', or { user, level } with a text as user"));
    throw failed('`access` of the application answered what it must not');
  }
  return { level, user: user === undefined ? undefined : plain(user) };
}

function failed(why: string): DashboardProblem {
  return new DashboardProblem(500, 'DASHBOARD_ACCESS_FAILED', `${why}, so nothing is shown. Its log says why.`);
}

/** A name ends up in lines of the log. */
function plain(user: string): string {
  // eslint-disable-next-line no-control-regex
  return user.slice(0, USER_MAX).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?');
}

/**
 * Browsers send cookies and passwords with whatever another site has them do. What such a request cannot have is the page's
 * own origin, so an act must show it.
 *
 * @throws DashboardProblem
 */
export function assertFromThePage({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined ? isSameHost(headers.origin, headers.host) : site === 'same-origin') return;
  throw new DashboardProblem(
    403,
    'DASHBOARD_CROSS_SITE',
    'Acts are taken from the page of the dashboard only: by Sec-Fetch-Site: same-origin, or by an Origin of the host that is ' +
      'asked. A proxy before the application must pass the Host on.',
  );
}

function isSameHost(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined || host === undefined) return false;
  try {
    const from = new URL(origin);
    // Through URL both, which knows the ports that go without saying.
    return /^https?:$/.test(from.protocol) && new URL(`${from.protocol}//${host}`).host === from.host;
  } catch {
    return false;
  }
}

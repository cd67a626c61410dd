import type { IncomingMessage, ServerResponse } from 'node:http';
import { UnknownInstanceError } from '../delay-queue.errors.js';
import { queueNameOf } from '../job/queue-definition.js';
import { LIBRARY_VERSION } from '../version.js';
import { assertFromThePage, visitorOf } from './access.js';
import type { Visitor } from './access.js';
import type { ActLog } from './act-log.js';
import { jsonAnswer, problemAnswer, send, taggedAnswer } from './answers.js';
import type { Answer } from './answers.js';
import type { MeResponse } from './api.js';
import { fileAnswer, pageAnswer } from './assets.js';
import type { Assets } from './assets.js';
import { Fields } from './fields.js';
import type { InstanceView } from './instance-view.js';
import { DashboardProblem, internalProblem, notFound, problemOf } from './problems.js';
import { assertJson, bodyOf } from './request-body.js';
import { readProcesses } from './reads/lateness.js';
import { ACTS, READS } from './routes.js';

/** What the handler serves. */
export interface Served {
  readonly assets: Assets;
  /** By their names; at least one. */
  readonly views: ReadonlyMap<string, InstanceView>;
  /** What the user of a request may do. May throw, or answer anything. */
  readonly access: (request: unknown) => unknown;
  readonly environment: string | undefined;
  readonly log: ActLog;
}

/** What a request of `node:http` does not say by itself. */
export interface Mounted {
  /** Path of the dashboard in the URL of the request, as it was sent, without a slash at the end. */
  readonly mount: string;
  /** The body, when somebody has read it already. */
  readonly body?: unknown;
  /** What `access` is asked with. Default: the request. */
  readonly asked?: unknown;
}

export type DashboardHandler = (request: IncomingMessage, response: ServerResponse, mounted: Mounted) => Promise<void>;

/** The whole dashboard as one function of `node:http`, which every framework can be brought down to. Never rejects. */
export function dashboardHandler(served: Served): DashboardHandler {
  return async (request, response, mounted) => {
    let answer: Answer;
    try {
      answer = await answerTo(served, request, mounted);
    } catch (thrown) {
      const problem = problemOf(thrown);
      if (!problem) served.log.fault('The dashboard', thrown);
      answer = problemAnswer(problem ?? internalProblem(), allowed(thrown));
    }
    send(response, answer);
  };
}

class MethodProblem extends DashboardProblem {
  constructor(readonly allow: string) {
    super(405, 'DASHBOARD_METHOD', `Here is only ${allow}.`);
  }
}

function allowed(thrown: unknown): Record<string, string> {
  return thrown instanceof MethodProblem ? { allow: thrown.allow } : {};
}

async function answerTo(served: Served, request: IncomingMessage, mounted: Mounted): Promise<Answer> {
  const url = (request as { originalUrl?: string }).originalUrl ?? request.url ?? '/';
  const [path, search] = split(url);
  const below = path.slice(mounted.mount.length);
  // Whoever may see nothing learns nothing, also not which paths there are.
  const visitor = await visitorOf(
    () => served.access(mounted.asked ?? request),
    (thrown) => served.log.fault('access() of DelayQueueDashboardModule', thrown),
  );
  const name = below.slice(1);
  const act = ACTS.get(name.slice('api/'.length));
  if (name.startsWith('api/') && act) return doAct(served, visitor, request, mounted, name.slice('api/'.length));
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new MethodProblem('GET');
  if (name.startsWith('api/')) return read(served, visitor, request, name.slice('api/'.length), search);
  if (name === '') return pageAnswer(served.assets, mounted.mount, below !== '');
  const file = served.assets.files.get(name);
  if (file) return fileAnswer(file, request.headers['accept-encoding']);
  throw notFound('There is nothing under this path.');
}

/** At the first question mark, and without what is behind a number sign, which no browser sends. */
function split(url: string): [path: string, search: string] {
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

async function read(
  served: Served,
  visitor: Visitor,
  request: IncomingMessage,
  name: string,
  search: string,
): Promise<Answer> {
  const query = Fields.ofQuery(new URLSearchParams(search));
  if (name === 'me') return jsonAnswer(await me(served, visitor, query.optionalText('instance')));
  const reads = READS.get(name);
  if (!reads && name !== 'state') throw notFound('The API has nothing under this path.');
  const view = viewOf(served, query.optionalText('instance'));
  if (reads) return jsonAnswer(await reads(view, query));
  query.end();
  return taggedAnswer(await view.states.read(), request.headers['if-none-match']);
}

async function doAct(
  served: Served,
  visitor: Visitor,
  request: IncomingMessage,
  mounted: Mounted,
  act: string,
): Promise<Answer> {
  if (request.method !== 'POST') throw new MethodProblem('POST');
  if (visitor.level !== 'write') throw new DashboardProblem(403, 'DASHBOARD_FORBIDDEN', 'You may only read here.');
  assertFromThePage(request);
  assertJson(request);
  const body = Fields.ofBody(await bodyOf(request, mounted.body));
  const view = viewOf(served, body.optionalText('instance'));
  const queue = queueNameOf(body.text('queue'));
  const message = { instance: view.name, queue, act, user: visitor.user };
  try {
    // An act makes the queue as an enqueue does: a slip of the pen would look like a queue that stands still.
    if (!(await view.isKnown(queue))) throw notFound(`No queue "${queue}" was ever used, so nothing was done.`);
    const acted = await ACTS.get(act)!(view, queue, body);
    served.log.done(message, acted);
    return jsonAnswer(acted.answer);
  } catch (thrown) {
    served.log.failed(message, thrown);
    throw thrown;
  }
}

/** @throws UnknownInstanceError */
function viewOf({ views }: Pick<Served, 'views'>, name: string | undefined): InstanceView {
  const view = name === undefined ? [...views.values()][0] : views.get(name);
  if (view) return view;
  const known = [...views.keys()].join(', ');
  throw new UnknownInstanceError(`Nothing here is called instance "${(name ?? '').slice(0, 64)}". There is ${known}.`);
}

async function me(
  { views, environment }: Served,
  { user, level }: Visitor,
  instance: string | undefined,
): Promise<MeResponse> {
  // A link may name an instance that is gone. The page offers the others then, and learns here which there are.
  const view = viewOf({ views }, instance !== undefined && views.has(instance) ? instance : undefined);
  const { payloads, errors } = view.privateParts;
  return {
    ...(user !== undefined && { user }),
    level,
    instances: [...views.keys()],
    version: LIBRARY_VERSION,
    payloads: typeof payloads === 'function' ? 'custom' : payloads,
    errors,
    features: { history: await hasHistory(view), schedules: true },
    ...(environment !== undefined && { environment }),
  };
}

/** Some process keeps it, if not this one. */
async function hasHistory(view: InstanceView): Promise<boolean> {
  // While Redis is away nobody knows; then its screens are offered, and say so themselves.
  if (!view.context.connection.isReady) return true;
  return readProcesses(view, Fields.ofQuery(new URLSearchParams())).then(
    ({ processes }) => processes.length > 0,
    () => true,
  );
}

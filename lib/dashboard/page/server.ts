import type { Acts, Problem, Reads } from '../api.js';
import { instance } from './route.js';

/** An answer that is no success, or none at all. */
export class ServerProblem extends Error {
  constructor(
    message: string,
    /** 0: nobody answered. */
    readonly status: number,
    readonly code: string,
    readonly maybeAccepted = false,
  ) {
    super(message);
  }

  get isMissing(): boolean {
    return this.code === 'DASHBOARD_MISSING';
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** What a read answered: `fresh` is undefined when nothing has changed since the answer with that tag. */
export interface Answer<T> {
  readonly fresh: T | undefined;
  readonly tag: string | undefined;
}

export function urlOf(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ instance: instance.value, ...query })) {
    if (value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `api/${path}${text && `?${text}`}`;
}

export async function read<P extends keyof Reads>(
  path: P,
  query: Query = {},
  { tag, signal }: { tag?: string | undefined; signal?: AbortSignal } = {},
): Promise<Answer<Reads[P]>> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (tag) headers['if-none-match'] = tag;
  const response = await ask(urlOf(path, query), { headers, ...(signal && { signal }) });
  const newTag = response.headers.get('etag') ?? undefined;
  if (response.status === 304) return { fresh: undefined, tag: newTag ?? tag };
  return { fresh: (await bodyOf(response)) as Reads[P], tag: newTag };
}

export async function act<P extends keyof Acts>(path: P, body: Acts[P][0]): Promise<Acts[P][1]> {
  const response = await ask(urlOf(path), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ ...(instance.value && { instance: instance.value }), ...body }),
  });
  return (await bodyOf(response, true)) as Acts[P][1];
}

async function ask(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, cache: 'no-store', credentials: 'same-origin' });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new ServerProblem('The application does not answer.', 0, 'NO_ANSWER', init.method === 'POST');
  }
}

/** @param isAct it may have been done although its answer does not come, or is that of a proxy which did not wait for it */
async function bodyOf(response: Response, isAct = false): Promise<unknown> {
  const text = await response.text().catch((error: Error) => {
    if (error.name === 'AbortError') throw error;
    throw new ServerProblem('The answer of the application did not come to its end.', 0, 'NO_ANSWER', isAct);
  });
  const isJson = /^application\/(?:problem\+)?json/.test(response.headers.get('content-type') ?? '');
  if (response.ok && isJson) return JSON.parse(text);
  throw problemOf(response.status, isJson ? text : '', isAct);
}

/** A guard, a proxy or a sign-in page may answer instead of the dashboard: then there is no `Problem`. */
function problemOf(status: number, text: string, isAct: boolean): ServerProblem {
  let problem: Partial<Problem> & { message?: unknown } = {};
  try {
    problem = JSON.parse(text) ?? {};
  } catch {
    // It is told by its status.
  }
  const isOurs = typeof problem.code === 'string';
  const detail = typeof problem.detail === 'string' ? problem.detail : undefined;
  const said = detail ?? (typeof problem.message === 'string' ? problem.message : undefined);
  return new ServerProblem(
    said ?? `The application answered with status ${status}.`,
    status,
    isOurs ? problem.code! : `HTTP_${status}`,
    problem.maybeAccepted === true || (isAct && !isOurs && status >= 500),
  );
}

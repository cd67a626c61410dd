import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Problem } from './api.js';

/** Nothing of another host, nothing inline, no frame around it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SAFE: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the API answers: no cache may keep it. */
export function jsonAnswer(body: object): Answer {
  return { status: 200, type: JSON_TYPE, body: JSON.stringify(body), headers: NO_STORE };
}

/** The same with a tag of its content; 304 when the browser has that already. */
export function taggedAnswer({ tag, text }: Tagged, known: string | undefined): Answer {
  const headers = { ...NO_STORE, etag: tag };
  const has = (known ?? '').split(',').some((one) => one.trim().replace(/^W\//, '') === tag);
  return has
    ? { status: 304, type: JSON_TYPE, body: '', headers }
    : { status: 200, type: JSON_TYPE, body: text, headers };
}

export interface Tagged {
  readonly tag: string;
  readonly text: string;
}

/** @param counted what the tag is of: what may differ without being news is left out of it */
export function tagged(body: object, counted: object): Tagged {
  const digest = createHash('sha1').update(JSON.stringify(counted)).digest('base64url');
  return { tag: `"${digest}"`, text: JSON.stringify(body) };
}

export function problemAnswer(problem: Problem, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status: problem.status,
    type: PROBLEM_TYPE,
    body: JSON.stringify(problem),
    headers: { ...NO_STORE, ...headers },
  };
}

const NO_STORE = { 'cache-control': 'no-store' };

/** Of HEAD Node sends the headers alone. */
export function send(response: ServerResponse, { status, type, body, headers }: Answer): void {
  // Of a response that somebody else has begun, or whose browser is gone, nothing can be said any more.
  if (response.headersSent || response.destroyed) {
    response.end();
    return;
  }
  response.statusCode = status;
  for (const [name, value] of Object.entries({ ...SAFE, ...headers })) response.setHeader(name, value);
  if (status !== 304) {
    response.setHeader('content-type', type);
    response.setHeader('content-length', Buffer.byteLength(body));
  }
  response.end(body);
}

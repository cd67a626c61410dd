import type { IncomingMessage } from 'node:http';
import { isPlainObject } from '../job/option-rules.js';
import { badRequest, DashboardProblem } from './problems.js';

/** 1,000 ids of 256 characters, of four bytes each, and a little more. */
const MOST_BYTES = 1_200_000;

/** @throws DashboardProblem when it is said to be anything but JSON: a form of another site can send the rest unasked */
export function assertJson({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const [type, ...parameters] = (headers['content-type'] ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const isUtf8 = charset === undefined || charset.replaceAll('"', '') === 'utf-8';
  if (type === 'application/json' && isUtf8) return;
  throw new DashboardProblem(415, 'DASHBOARD_MEDIA_TYPE', 'Send JSON in UTF-8, with content-type: application/json.');
}

/**
 * @param parsed what the application's own parser made of it, which has read the stream then
 * @throws DashboardProblem
 */
export async function bodyOf(request: IncomingMessage, parsed: unknown): Promise<Record<string, unknown>> {
  const body = parsed === undefined || parsed === null ? parse(await read(request)) : ofParser(parsed);
  if (!isPlainObject(body)) throw badRequest('The body must be a JSON object.');
  return body;
}

/** Parsers that give text or bytes: of an application with `bodyParser` of its own. */
function ofParser(parsed: unknown): unknown {
  if (typeof parsed === 'string') return parse(parsed);
  return Buffer.isBuffer(parsed) ? parse(parsed.toString()) : parsed;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('The body is not JSON.');
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new DashboardProblem(415, 'DASHBOARD_MEDIA_TYPE', 'Send the body without content-encoding.');
  }
  if (request.readableEnded || request.destroyed) return '';
  const chunks: Buffer[] = [];
  let bytes = 0;
  // What comes beyond is read and forgotten, so that the browser hears the answer; Node ends a request that takes too long.
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= MOST_BYTES) chunks.push(chunk);
      else chunks.length = 0;
    }
  } catch {
    throw badRequest('The body did not come to its end.');
  }
  if (bytes > MOST_BYTES) {
    throw new DashboardProblem(413, 'DASHBOARD_TOO_LARGE', `A body has at most ${MOST_BYTES} bytes: give fewer ids.`);
  }
  return Buffer.concat(chunks).toString();
}

import type { Reply } from '../../lib/memory/memory.replies.js';

/** What Redis writes and reads on the wire. Texts hold one byte per character. */
const STAR = '*'.charCodeAt(0);
const LINE_END = '\r\n';

export function errorReply(text: string): Buffer {
  return Buffer.from(`-${oneLine(text)}${LINE_END}`, 'latin1');
}

/** A message of Pub/Sub, or the answer to SUBSCRIBE. */
export function pushReply(protocol: number, parts: readonly (string | number)[]): Buffer {
  const body = parts.map((part) => (typeof part === 'number' ? `:${part}${LINE_END}` : bulk(part))).join('');
  return Buffer.from(`${protocol === 3 ? '>' : '*'}${parts.length}${LINE_END}${body}`, 'latin1');
}

export function encodeReply(protocol: number, reply: Reply): Buffer {
  return Buffer.from(textOf(protocol, reply), 'latin1');
}

function textOf(protocol: number, reply: Reply): string {
  if (typeof reply === 'string') return bulk(reply);
  if (typeof reply === 'number') return `:${reply}${LINE_END}`;
  if (reply === null) return protocol === 3 ? `_${LINE_END}` : `$-1${LINE_END}`;
  if (Array.isArray(reply)) {
    return `*${reply.length}${LINE_END}${reply.map((one) => textOf(protocol, one)).join('')}`;
  }
  if ('text' in reply) return `+${reply.text}${LINE_END}`;
  return `-${oneLine(reply.message)}${LINE_END}`;
}

function bulk(text: string): string {
  return `$${text.length}${LINE_END}${text}${LINE_END}`;
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]/g, ' ');
}

/** @returns the first command of what was received, and what follows; undefined while it is not complete */
export function parseCommand(buffer: Buffer): { args: string[]; rest: Buffer } | undefined {
  let at = buffer.indexOf(10);
  if (at < 0) return undefined;
  // As a person types it.
  if (buffer[0] !== STAR) {
    return { args: buffer.toString('latin1', 0, at).trim().split(' '), rest: buffer.subarray(at + 1) };
  }
  const count = numberIn(buffer, 1, at - 1);
  at++;
  const args: string[] = [];
  for (let i = 0; i < count; i++) {
    const end = buffer.indexOf(10, at);
    if (end < 0) return undefined;
    const length = numberIn(buffer, at + 1, end - 1);
    if (Number.isNaN(length)) throw new Error('A connection delivered something else than what was sent.');
    if (end + 1 + length + 2 > buffer.length) return undefined;
    args.push(buffer.toString('latin1', end + 1, end + 1 + length));
    at = end + 1 + length + 2;
  }
  return { args, rest: buffer.subarray(at) };
}

function numberIn(buffer: Buffer, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) {
    const digit = buffer[at]! - 48;
    if (digit < 0 || digit > 9) return NaN;
    number = 10 * number + digit;
  }
  return number;
}

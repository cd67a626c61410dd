import { InvalidQueueError } from '../delay-queue.errors.js';
import { schemeOnly, shown } from './duration.js';

// Braces would move the hash tag of the keys, and with it jobs to another Cluster slot. Control characters, line
// separators and lone surrogates break logs and do not survive UTF-8.
const FORBIDDEN = /[{}\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * What is wrong with a name that becomes part of a key, or undefined. Length is counted in characters (code points).
 * Shared by queue names, job ids and the key prefix.
 */
export function nameProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return `${shown(value)} is not text`;
  if (value === '') return 'is empty';
  // The first test spares counting: a character is one or two units long.
  if (value.length > maxLength && (value.length > 2 * maxLength || Array.from(value).length > maxLength)) {
    return `${shown(value)} is longer than ${maxLength} characters`;
  }
  if (FORBIDDEN.test(value)) return `${shown(value)} holds braces, control characters or half a surrogate pair`;
  return undefined;
}

/**
 * @param name 1 to 128 printable characters without braces; spaces are fine except at the ends
 * @param field where the name stands; begins the error message
 * @throws InvalidQueueError
 */
export function assertQueueName(name: unknown, field = 'Queue name'): string {
  const problem = loggedNameProblem(name, 128);
  if (problem !== undefined) {
    throw new InvalidQueueError(`${field}: ${problem}. Use 1 to 128 printable characters without braces.`);
  }
  return name as string;
}

/** Why this is no name for what stands in log lines, where a URL could show its password. */
export function loggedNameProblem(value: unknown, maxLength: number): string | undefined {
  const url = typeof value === 'string' ? schemeOnly(value) : undefined;
  if (url !== undefined) return `${url} is a URL`;
  return nameProblem(value, maxLength) ?? endsProblem(value as string);
}

/** Invisible at the ends of a name: two queues that look the same would be a job that nobody runs. */
function endsProblem(name: string): string | undefined {
  return name === name.trim() ? undefined : `${shown(name)} begins or ends with a space`;
}

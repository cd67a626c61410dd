import { usage } from '../exit-codes.js';

/** @throws CommandError unless it is a whole number from 1 to `most` */
export function countOf(text: string, flag: string, most = Number.MAX_SAFE_INTEGER): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > most) {
    const end = most === Number.MAX_SAFE_INTEGER ? 'on' : `to ${most}`;
    throw usage(`${flag}: "${text}" is not a whole number from 1 ${end}.`);
  }
  return count;
}

/** A number with what it counts: `1 job`, `2 jobs`. */
export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

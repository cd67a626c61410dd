import { usage } from '../exit-codes.js';

/** @throws CommandError unless it is a whole number from 1 on */
export function countOf(text: string, flag: string, most = Number.MAX_SAFE_INTEGER): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > most)
    throw usage(`${flag}: "${text}" is not a whole number from 1 on.`);
  return count;
}

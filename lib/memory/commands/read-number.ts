import { parseNumber, toGeneral } from '../lua/lua.numbers.js';
import { NOT_A_FLOAT, NOT_AN_INTEGER, ReplyError } from '../memory.replies.js';

/** As Redis takes integers: no blanks, no plus, no leading zeros, 64 bits. */
export function integerOf(text: string): number {
  if (!/^(?:0|-?[1-9]\d{0,18})$/.test(text)) throw new ReplyError(NOT_AN_INTEGER);
  return Number(text);
}

/** As Redis takes scores. */
export function floatOf(text: string, problem = NOT_A_FLOAT): number {
  const value = /^\s|\s$/.test(text) ? undefined : parseNumber(text);
  if (value === undefined || Number.isNaN(value)) throw new ReplyError(problem);
  return value;
}

/** As Redis writes scores. */
export function floatText(value: number): string {
  return toGeneral(value, 17);
}
